//! Pages lent to the file server and the pipe server by clients that take them away, or never had them.
//!
//! `hostile streams [ROUNDS]` calls the portals themselves, past the library. What is lent is freed, lent to
//! both sides or left behind by who dies, while a thread sleeps in the pipe server with an offer; nobody's
//! memory changes but what is lent, the servers answer on, and nothing leaks.

use crate::judge::Judge;
use alloc::format;
use alloc::string::String;
use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed};
use pebble::abi::fault::KILLED;
use pebble::abi::{errno, map, status, sys};
use pebble::api::{self, Errno};
use pebble::attack;
use pebble::io::{self, File};
use pebble::portal::{Broken, MILLISECOND, call, time};
use pebble::process::Child;

const PAGE: u64 = map::PAGE;
const BYTES: i64 = PAGE as i64;
const BUSY: i64 = i64::MIN;
const MARK: u64 = 0x6b72_616d;
/// More threads than may sleep in the pipe server.
const CROWD: usize = 10;
/// What a pipe holds.
const RING: i64 = 512;

/// Addresses that nobody can lend for writing: the table, a hole, windows' places, the end of lower memory,
/// the nucleus, the end of everything.
const BAD: [u64; 7] = [0, 0x0700_0000, map::WINDOWS_VA, 0x3fff_f000, map::NUCLEUS_VA, 1 << 39, u64::MAX - 7];

pub fn all(judge: &mut Judge, rounds: u32) {
    judge.steadily(rounds, |judge| {
        for (name, test) in [
            ("bad addresses", bad_addresses as fn() -> Result<bool, Errno>),
            ("counts", counts),
            // Before others leave by another way: an offer that has stuck keeps new ones from its queue.
            ("heir", heir),
            ("freed", freed),
            ("both sides", both_sides),
            ("closed", closed),
            ("left", left),
            ("crowd", crowd),
        ] {
            let outcome = test();
            judge.check(name, outcome == Ok(true), || format!("{outcome:?}"));
        }
    });
}

fn path(token: i64, side: char) -> String {
    format!("/pipe/{token:016x}/{side}")
}

/// A pipe of which this domain has both ends.
pub struct Pipe {
    token: i64,
    pub read: File,
    pub write: File,
}

impl Pipe {
    pub fn new() -> Result<Pipe, Errno> {
        let create = api::portal_open("pipe.create")?;
        let token = call(create, []).unwrap_or(0);
        let _ = api::portal_close(create, 1);
        let end = |side| io::open(&path(token, side));
        Ok(Pipe { token, read: end('r')?, write: end('w')? })
    }

    pub fn path(&self, side: char) -> String {
        path(self.token, side)
    }

    pub fn close(self, pages: &[usize]) {
        pages.iter().for_each(|portal| _ = api::portal_close(*portal, 1));
        self.read.close();
        self.write.close();
    }
}

/// The portal to read into a page, or to write from one.
fn portal(file: File, whence: u64) -> Result<usize, Errno> {
    file.seek(0, whence).map(|portal| portal as usize)
}

pub fn pause() {
    let _ = api::hrsleep(time() + 2 * MILLISECOND);
}

/// A fresh page above the heap, which [`api::sbrk`] can take away again.
pub fn fresh() -> Result<u64, Errno> {
    let end = api::sbrk(0)?;
    let page = end.next_multiple_of(PAGE);
    api::sbrk((page + PAGE - end) as i64)?;
    Ok(page)
}

pub fn gone() -> Result<(), Errno> {
    api::sbrk(-BYTES).map(|_| ())
}

/// A thread that sleeps in the pipe server in a call with two words. No other memory than that is used meanwhile, for the
/// heap would grow above it.
struct Sleeper {
    portal: AtomicUsize,
    words: [AtomicU64; 2],
    calls: AtomicBool,
    answer: AtomicI64,
}

static SLEEPERS: [Sleeper; CROWD + 1] = [const {
    Sleeper {
        portal: AtomicUsize::new(0),
        words: [const { AtomicU64::new(0) }; 2],
        calls: AtomicBool::new(false),
        answer: AtomicI64::new(BUSY),
    }
}; CROWD + 1];

extern "C" fn reads(number: u64) {
    let Sleeper { portal, words, calls, answer } = &SLEEPERS[number as usize];
    calls.store(true, Relaxed);
    let answered = call(portal.load(Relaxed), [0, 1].map(|n: usize| words[n].load(Relaxed)));
    answer.store(answered.unwrap_or(-1), Relaxed);
}

fn sleeper(number: usize, portal: usize, page: u64) -> Result<(), Errno> {
    call_asleep(number, portal, [page, PAGE])
}

/// It sleeps when this returns: it was about to call, and then had the processor several times to itself,
/// however slow that is.
pub fn call_asleep(number: usize, portal: usize, words: [u64; 2]) -> Result<(), Errno> {
    let it = &SLEEPERS[number];
    it.portal.store(portal, Relaxed);
    it.words.iter().zip(words).for_each(|(to, word)| to.store(word, Relaxed));
    it.calls.store(false, Relaxed);
    it.answer.store(BUSY, Relaxed);
    api::thread_create(reads, number as u64, 0)?;
    while !it.calls.load(Relaxed) {
        pause();
    }
    (0..5).for_each(|_| pause());
    Ok(())
}

/// What it was answered.
pub fn answer(number: usize) -> i64 {
    for _ in 0..1000 {
        match SLEEPERS[number].answer.load(Relaxed) {
            BUSY => pause(),
            answer => return answer,
        }
    }
    BUSY
}

fn bad_addresses() -> Result<bool, Errno> {
    let (pipe, file) = (Pipe::new()?, io::create("/ram/streams")?);
    let portals = [
        portal(pipe.read, sys::SEEK_READ_PAGE)?,
        portal(file, sys::SEEK_READ_PAGE)?,
        portal(pipe.write, sys::SEEK_WRITE_PAGE)?,
        portal(file, sys::SEEK_WRITE_PAGE)?,
    ];
    let refused = Err(Broken(status::WINDOW | u64::from(api::get_asid()) << 16));
    let good = portals.iter().all(|portal| BAD.iter().all(|bad| call(*portal, [*bad, PAGE]) == refused));
    // What may only be read is not read into.
    let constant = BAD.as_ptr() as u64;
    let good = good && portals[..2].iter().all(|portal| call(*portal, [constant, PAGE]) == refused);
    portals.iter().for_each(|portal| _ = api::portal_close(*portal, 1));
    file.close();
    io::remove("/ram/streams")?;
    pipe.close(&[]);
    Ok(good)
}

/// No more than the rest of the page goes, whatever is asked for.
fn counts() -> Result<bool, Errno> {
    let file = io::create("/ram/streams")?;
    let [read, write] = [portal(file, sys::SEEK_READ_PAGE)?, portal(file, sys::SEEK_WRITE_PAGE)?];
    let page = fresh()?;
    attack::store(page + PAGE - 8, MARK);
    let many = u64::MAX & !sys::WRITE_APPEND;
    let mut good = call(write, [page + PAGE - 8, many]) == Ok(8) && call(write, [page + 8, 0]) == Ok(0);
    file.seek(0, 0)?;
    good &= call(read, [page + PAGE - 16, u64::MAX]) == Ok(8) && attack::read(page + PAGE - 16) == MARK;
    good &= call(read, [page, u64::MAX]) == Ok(0);
    let pipe = Pipe::new()?;
    let ends = [portal(pipe.read, sys::SEEK_READ_PAGE)?, portal(pipe.write, sys::SEEK_WRITE_PAGE)?];
    good &= call(ends[1], [page + PAGE - 8, u64::MAX]) == Ok(8) && call(ends[1], [page, 0]) == Ok(0);
    good &= call(ends[0], [page + PAGE - 4, u64::MAX]) == Ok(4);
    pipe.close(&ends);
    gone()?;
    [read, write].iter().for_each(|portal| _ = api::portal_close(*portal, 1));
    file.close();
    io::remove("/ram/streams")?;
    Ok(good)
}

/// The page of the sleeper is freed, and one that may be the same memory has another use.
fn freed() -> Result<bool, Errno> {
    let pipe = Pipe::new()?;
    let [read, write] = [portal(pipe.read, sys::SEEK_READ_PAGE)?, portal(pipe.write, sys::SEEK_WRITE_PAGE)?];
    let other = alloc::vec![b'x'; PAGE as usize];
    let from = (other.as_ptr() as u64).next_multiple_of(PAGE);
    let page = fresh()?;
    sleeper(0, read, page)?;
    gone()?;
    let again = fresh()?;
    let written = call(write, [from, PAGE]);
    let told = answer(0);
    let good = written == Ok(BYTES) && told == BYTES && attack::read(again) == 0;
    gone()?;
    pipe.close(&[read, write]);
    Ok(good)
}

/// Writer and reader lend the same page.
fn both_sides() -> Result<bool, Errno> {
    let pipe = Pipe::new()?;
    let [read, write] = [portal(pipe.read, sys::SEEK_READ_PAGE)?, portal(pipe.write, sys::SEEK_WRITE_PAGE)?];
    let page = fresh()?;
    attack::store(page, MARK);
    sleeper(0, read, page)?;
    let written = call(write, [page, PAGE]);
    let good = written == Ok(BYTES) && answer(0) == BYTES && attack::read(page) == MARK;
    gone()?;
    pipe.close(&[read, write]);
    Ok(good)
}

/// Another thread closes the end under the sleeper.
fn closed() -> Result<bool, Errno> {
    let pipe = Pipe::new()?;
    let [read, write] = [portal(pipe.read, sys::SEEK_READ_PAGE)?, portal(pipe.write, sys::SEEK_WRITE_PAGE)?];
    let page = fresh()?;
    sleeper(0, read, page)?;
    let _ = call(pipe.read.0 + sys::FILE_CLOSE, []);
    let good = answer(0) == -errno::EBADF && call(write, [page, PAGE]) == Ok(-errno::EPIPE);
    gone()?;
    pipe.close(&[read, write]);
    Ok(good)
}

/// A program that sleeps with an offer at that end is killed.
pub fn killed_at(how: &str, path: &str) -> Result<(), Errno> {
    let child = Child::run("/bin/hostile", &["hostile", how, path])?;
    (0..20).for_each(|_| pause());
    child.kill()?;
    let status = child.wait()?;
    // It was there, until then.
    if status == i64::from(KILLED) { Ok(()) } else { Err(Errno::new(status)) }
}

/// Who writes next finds no reader, and the next pipe is sound.
fn left() -> Result<bool, Errno> {
    let pipe = Pipe::new()?;
    let write = portal(pipe.write, sys::SEEK_WRITE_PAGE)?;
    let path = pipe.path('r');
    pipe.read.close();
    killed_at("offer", &path)?;
    let page = fresh()?;
    let good = call(write, [page, PAGE]) == Ok(-errno::EPIPE);
    gone()?;
    let _ = api::portal_close(write, 1);
    pipe.write.close();
    Ok(good && both_sides()?)
}

/// Another reader is there: it gets what is written, and not the dead one's page, which is nobody's.
fn heir() -> Result<bool, Errno> {
    let pipe = Pipe::new()?;
    let [read, write] = [portal(pipe.read, sys::SEEK_READ_PAGE)?, portal(pipe.write, sys::SEEK_WRITE_PAGE)?];
    killed_at("offer", &pipe.path('r'))?;
    let other = alloc::vec![0u8; 2 * PAGE as usize];
    let to = (other.as_ptr() as u64).next_multiple_of(PAGE);
    let page = fresh()?;
    attack::store(page, MARK);
    sleeper(0, read, to)?;
    let written = call(write, [page, PAGE]);
    let good = written == Ok(BYTES) && answer(0) == BYTES && attack::read(to) == MARK;
    gone()?;
    pipe.close(&[read, write]);
    Ok(good)
}

/// Where nobody more may sleep, bytes go through the ring, and who waits does so elsewhere. All are told when
/// their ends are closed.
fn crowd() -> Result<bool, Errno> {
    let own = alloc::vec![0u8; (CROWD + 2) * PAGE as usize];
    let first = (own.as_ptr() as u64).next_multiple_of(PAGE);
    let mut pipes = alloc::vec::Vec::new();
    for number in 0..=CROWD {
        let pipe = Pipe::new()?;
        let read = portal(pipe.read, sys::SEEK_READ_PAGE)?;
        sleeper(number, read, first + number as u64 * PAGE)?;
        pipes.push((pipe, read));
    }
    let last = &pipes[CROWD].0;
    let write = portal(last.write, sys::SEEK_WRITE_PAGE)?;
    attack::store(first, MARK);
    let mut good = call(write, [first, PAGE]) == Ok(RING) && answer(CROWD) == RING;
    good &= attack::read(first + CROWD as u64 * PAGE) == MARK;
    let _ = api::portal_close(write, 1);
    for (number, (pipe, read)) in pipes.into_iter().enumerate() {
        let _ = call(pipe.read.0 + sys::FILE_CLOSE, []);
        good &= number == CROWD || answer(number) == -errno::EBADF;
        pipe.close(&[read]);
    }
    Ok(good)
}

/// Sleeps in the pipe server with a page of the heap.
pub fn offer(path: &str) -> i64 {
    let Ok(file) = io::open(path) else { return 1 };
    let Ok(read) = portal(file, sys::SEEK_READ_PAGE) else { return 1 };
    let bytes = alloc::vec![0u8; 2 * PAGE as usize];
    let page = (bytes.as_ptr() as u64).next_multiple_of(PAGE);
    i64::from(call(read, [page, PAGE]).is_err())
}

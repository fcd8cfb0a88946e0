//! `load-client N [restart]`: one of the clients. It calls without pause, and checks every answer, until the
//! judge says stop; then it reports.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use pebble::abi::{errno, status};
use pebble::api::{self, Errno};
use pebble::io::{self, File};
use pebble::link::Import;
use pebble::portal::{Broken, MILLISECOND, call, time};
use pebble_replace_test::MARKS;

pebble::import! {
    ADD = "counter.add";
    FORGET = "counter.forget";
    CLOCK = "clock.nanoseconds";
    WORK = "fragile.work";
    TICK = "judge.tick";
    ENTER = "judge.enter";
    LEAVE = "judge.leave";
    REPORT = "judge.report";
}
pebble::program!(main);

/// What everybody reads.
const FILE: &str = "/share/lines";

/// More bytes than a pipe holds.
const PIPED_AT_ONCE: u64 = 1000;

/// Bits of `Client::failed`: what went wrong at least once.
const ADDED: u64 = 1;
const CLOCKED: u64 = 2;
const NAMED: u64 = 4;
const FILED: u64 = 8;
const WAITED: u64 = 16;
const WROTE: u64 = 32;
const SLEPT: u64 = 64;
const WORKED: u64 = 128;
const PIPED: u64 = 256;
/// Of what went wrong with names: at which step; above it, why.
const STEP: u64 = 1 << 16;

struct Client {
    number: u64,
    console: File,
    own: usize,
    shared: usize,
    /// The reading end of the pipe into which this program's second thread writes, and how much has come.
    pipe: Option<File>,
    piped: u64,
    adds: u64,
    last: u64,
    sum: Option<u64>,
    written: u64,
    dead: u64,
    failures: u64,
    failed: u64,
}

fn main() -> i64 {
    let words: Vec<String> = io::args().collect();
    let Some(number) = words.get(1).and_then(|w| w.parse::<u64>().ok()) else { return 2 };
    let made = || -> Result<Client, Errno> {
        Ok(Client {
            number,
            console: io::open("/dev/console")?,
            own: api::sem_create(0)?,
            shared: api::sem_open("judge.sem")?,
            pipe: None,
            piped: 0,
            adds: 0,
            last: 0,
            sum: None,
            written: 0,
            dead: 0,
            failures: 0,
            failed: 0,
        })
    };
    let Ok(mut client) = made() else { return 3 };
    if words.len() > 2 {
        client.run(Client::survive);
    } else {
        let _ = FORGET.call([]);
        client.pipe = match pipe() {
            Ok(end) => Some(end),
            Err(_) => return 4,
        };
        client.run(Client::work);
        client.end_pipe();
    }
    let Client { number, adds, written, dead, failures, failed, .. } = client;
    let counted = if words.len() > 2 { dead } else { written };
    let told = REPORT.call([number, adds, counted, failures, failed]);
    i64::from(told != Ok(0) || failures != 0)
}

fn is(wanted: i64, answer: Result<i64, Broken>) -> bool {
    answer == Ok(wanted)
}

impl Client {
    fn run(&mut self, mut once: impl FnMut(&mut Client, u64)) {
        let mut turn = 0;
        while is(0, TICK.call([self.number])) {
            once(self, turn);
            turn += 1;
        }
    }

    fn check(&mut self, what: u64, good: bool) {
        if !good {
            self.failures += 1;
            self.failed |= what;
        }
    }

    /// Something of everything; what takes long, less often.
    fn work(&mut self, turn: u64) {
        let answer = ADD.call([turn]);
        self.adds += 1;
        self.check(ADDED, is(self.adds as i64, answer));
        let now = CLOCK.call([]).unwrap_or(-1);
        self.check(CLOCKED, now >= self.last as i64);
        self.last = now as u64;
        let waited = api::sem_post(self.own).and_then(|_| api::sem_wait(self.own));
        self.check(WAITED, waited.is_ok());
        api::yield_now();
        match turn % 16 {
            3 | 11 => self.exclude(),
            5 => self.names(),
            7 => self.read(),
            9 => self.write(),
            13 => self.sleep(),
            15 => self.pipe(),
            _ => {}
        }
    }

    /// At most one client is between the two calls.
    fn exclude(&mut self) {
        let good = api::sem_wait(self.shared).is_ok() && is(0, call_import(&ENTER));
        api::yield_now();
        let left = is(1, call_import(&LEAVE));
        self.check(WAITED, good && left && api::sem_post(self.shared).is_ok());
    }

    fn names(&mut self) {
        let wall = || -> Result<(), [i64; 2]> {
            let index = api::portal_open("clock.wall").map_err(|error| [1, error.number()])?;
            let wall = call(index, []).map_err(|broken| [2, broken.0 as i64])?;
            api::portal_close(index, 1).map_err(|error| [3, error.number()])?;
            match api::portal_open("no.such.name") {
                Err(errno::ENOENT) if wall > 0 => Ok(()),
                other => Err([4, other.err().map_or(0, Errno::number)]),
            }
        };
        let wall = wall();
        self.check(NAMED, wall.is_ok());
        if let Err([step, why]) = wall {
            self.failed |= step as u64 * STEP | (why as u64) << 32;
        }
    }

    /// The same bytes each time.
    fn read(&mut self) {
        let sum = || -> Result<u64, Errno> {
            let file = io::open(FILE)?;
            let (mut bytes, mut sum) = ([0; 32], 0u64);
            loop {
                match file.read(&mut bytes)? {
                    0 => break,
                    count => sum = bytes[..count].iter().fold(sum, |s, b| s.wrapping_mul(31) + u64::from(*b)),
                }
            }
            file.close();
            Ok(sum)
        };
        match (sum(), self.sum) {
            (Ok(sum), None) => self.sum = Some(sum),
            (now, before) => self.check(FILED, now.ok() == before),
        }
    }

    fn write(&mut self) {
        let mark = MARKS[self.number as usize % MARKS.len()];
        let good = self.console.write(&[mark]).is_ok();
        self.written += 1;
        self.check(WROTE, good);
    }

    /// The writer waits in between, and often this reader does.
    fn pipe(&mut self) {
        let until = self.piped + PIPED_AT_ONCE;
        while self.piped < until && self.receive() {}
        self.check(PIPED, self.piped >= until);
    }

    /// Each byte is the one after the last; false at the end, and where one is not.
    fn receive(&mut self) -> bool {
        let Some(end) = &self.pipe else { return false };
        let mut bytes = [0; 32];
        let most = 1 + self.piped as usize % 32;
        let Ok(count @ 1..) = end.read(&mut bytes[..most]) else { return false };
        let from = self.piped;
        let good = (from..).zip(&bytes[..count]).all(|(n, byte)| *byte == nth(n));
        self.piped += count as u64;
        good
    }

    /// What was written comes, and then the end.
    fn end_pipe(&mut self) {
        ENOUGH.store(true, SeqCst);
        while self.receive() {}
        let sent = SENT.load(SeqCst);
        self.check(PIPED, ENDED.load(SeqCst) && sent == self.piped && sent > 0);
    }

    fn sleep(&mut self) {
        let until = time() + MILLISECOND / 100;
        let slept = api::hrsleep(until);
        self.check(SLEPT, slept.is_ok() && time() >= until);
    }

    /// Calls the component that dies; only that it is dead, with its number, excuses it.
    fn survive(&mut self, turn: u64) {
        self.adds += 1;
        match WORK.call([turn]) {
            Ok(answer) => self.check(WORKED, answer == turn as i64 + 1),
            Err(Broken(status)) => {
                let code = status::code(status);
                self.check(
                    WORKED,
                    (code == status::DEAD || code == status::CLOSED) && status::domain(status) != 0,
                );
                self.dead += 1;
                let _ = api::hrsleep(time() + MILLISECOND / 10);
            }
        }
    }
}

/// Bytes that the second thread has written; that it is to stop; that it has, and without an error.
static SENT: AtomicU64 = AtomicU64::new(0);
static ENOUGH: AtomicBool = AtomicBool::new(false);
static ENDED: AtomicBool = AtomicBool::new(false);
static TOKEN: AtomicU64 = AtomicU64::new(0);

/// The n-th byte in the pipe.
fn nth(n: u64) -> u8 {
    (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

fn end_of(token: u64, side: &str) -> Result<File, Errno> {
    io::open(&alloc::format!("/pipe/{token:016x}/{side}"))
}

/// A pipe with a thread that writes; its reading end.
fn pipe() -> Result<File, Errno> {
    let create = api::portal_open("pipe.create")?;
    let token = api::answer(call(create, []))?;
    api::portal_close(create, 1)?;
    TOKEN.store(token, SeqCst);
    let end = end_of(token, "r")?;
    api::thread_create(writes, 0, 0)?;
    Ok(end)
}

/// Pieces of all lengths, each whole.
extern "C" fn writes(_: u64) {
    let Ok(end) = end_of(TOKEN.load(SeqCst), "w") else { return };
    let mut good = true;
    while good && !ENOUGH.load(SeqCst) {
        let from = SENT.load(SeqCst);
        let bytes: [u8; 32] = core::array::from_fn(|n| nth(from + n as u64));
        let count = 1 + (from / 7) as usize % 32;
        // Before it is written: whoever reads the end has seen it.
        SENT.store(from + count as u64, SeqCst);
        good = end.write(&bytes[..count]).is_ok();
    }
    ENDED.store(good, SeqCst);
    end.close();
}

fn call_import(import: &Import) -> Result<i64, Broken> {
    import.call([])
}

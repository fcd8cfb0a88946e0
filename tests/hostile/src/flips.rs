//! Pages that a pipe is to have change places, by clients that take them away, lend them to accomplices, do not
//! have them, or name those of others.
//!
//! `hostile flips [ROUNDS]`: nobody's memory changes but what both sides have named, who had it sees and changes
//! it no more, and nothing leaks.

use crate::judge::Judge;
use crate::streams::{Pipe, answer, call_asleep, fresh, gone, killed_at, pause};
use crate::windows::{Accomplice, ask};
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use pebble::abi::{errno, map, sys};
use pebble::api::{self, Errno};
use pebble::attack;
use pebble::control::{self, Answer};
use pebble::io::File;
use pebble::portal::call;
use pebble::process::Child;

const PAGE: u64 = map::PAGE;
const MARK: u64 = 0x6b72_616d;
const SECRET: u64 = 0x7465_7263_6573;
const COPY: i64 = -(errno::EAGAIN.number());

pub fn all(judge: &mut Judge, rounds: u32) {
    judge.steadily(rounds, |judge| {
        for (name, test) in [
            ("fair", fair as fn() -> Result<bool, Errno>),
            ("bad addresses", bad_addresses),
            ("freed", freed),
            ("both sides", both_sides),
            ("spied on", || Ok(Child::run("/bin/hostile", &["hostile", "spied"])?.wait()? == 0)),
            ("heir", heir),
            ("twisted", twisted),
        ] {
            let outcome = test();
            judge.check(name, outcome == Ok(true), || format!("{outcome:?}"));
        }
    });
}

fn flip(end: File, pages: u64) -> i64 {
    call(end.0 + sys::FILE_SEEK, [pages, sys::SEEK_FLIP]).unwrap_or(i64::MIN)
}

/// A thread that sleeps with the offer of these pages.
fn sleeper(end: File, pages: u64) -> Result<(), Errno> {
    call_asleep(0, end.0 + sys::FILE_SEEK, [pages, sys::SEEK_FLIP])
}

/// So many pages of the heap that nothing else lies in, and what they lie in.
fn pages(count: usize) -> (Vec<u8>, u64) {
    let bytes = vec![0u8; (count + 1) * PAGE as usize];
    let first = (bytes.as_ptr() as u64).next_multiple_of(PAGE);
    (bytes, first)
}

/// What all others are measured by: it works.
fn fair() -> Result<bool, Errno> {
    let pipe = Pipe::new()?;
    let (_own, first) = pages(4);
    attack::store(first, MARK);
    sleeper(pipe.write, first | 2)?;
    let read = flip(pipe.read, (first + 2 * PAGE) | 2);
    let good = read == 2 && answer(0) == 2;
    pipe.close(&[]);
    Ok(good && attack::read(first) == 0 && attack::read(first + 2 * PAGE) == MARK)
}

/// The table, a hole, text, a stack, windows' places, the nucleus, the end of everything; and no pages at all.
/// The other side is told to copy, and keeps what it has.
fn bad_addresses() -> Result<bool, Errno> {
    let local = 0u64;
    let stack = &raw const local as u64 & !(PAGE - 1);
    let (_own, first) = pages(1);
    attack::store(first, MARK);
    let mut good = true;
    for bad in
        [0, 0x0700_0000, map::IMAGE_VA, stack, map::WINDOWS_VA, map::NUCLEUS_VA, u64::MAX & !(PAGE - 1)]
    {
        let pipe = Pipe::new()?;
        sleeper(pipe.write, first | 1)?;
        good &= flip(pipe.read, bad) == COPY;
        good &= flip(pipe.read, bad | 1) == COPY && answer(0) == COPY && attack::read(first) == MARK;
        pipe.close(&[]);
    }
    Ok(good)
}

/// The pages of the sleeper are freed meanwhile; some of what may be the same memory has another use.
fn freed() -> Result<bool, Errno> {
    let pipe = Pipe::new()?;
    let (_own, first) = pages(1);
    attack::store(first, MARK);
    let page = fresh()?;
    sleeper(pipe.read, page | 1)?;
    gone()?;
    let written = flip(pipe.write, first | 1);
    let good = written == COPY && answer(0) == COPY && attack::read(first) == MARK;
    pipe.close(&[]);
    Ok(good)
}

/// Writer and reader name the same page, and then pages that overlap.
fn both_sides() -> Result<bool, Errno> {
    let (_own, first) = pages(3);
    attack::store(first, MARK);
    let pipe = Pipe::new()?;
    sleeper(pipe.read, first | 1)?;
    let mut good = flip(pipe.write, first | 1) == COPY && answer(0) == COPY && attack::read(first) == MARK;
    sleeper(pipe.read, (first + PAGE) | 2)?;
    good &= flip(pipe.write, first | 2) == 1 && answer(0) == 1;
    good &= attack::read(first) == 0 && attack::read(first + PAGE) == MARK;
    pipe.close(&[]);
    Ok(good)
}

/// A program whose portals go with it.
pub fn spied() -> i64 {
    i64::from(spied_on() != Ok(true))
}

/// An accomplice of the writer has an open window over the page, and one of the reader, too.
fn spied_on() -> Result<bool, Errno> {
    let (writers, readers) = (Accomplice::new()?, Accomplice::new()?);
    let pipe = Pipe::new()?;
    let (_own, first) = pages(2);
    let (from, to) = (first, first + PAGE);
    attack::store(from, MARK);
    let mut good = ask(&writers.name, "o", from)? == Ok(0) && ask(&readers.name, "o", to)? == Ok(0);
    good &= ask(&writers.name, "look", 0)? == Ok(MARK as i64);
    sleeper(pipe.write, from | 1)?;
    good &= flip(pipe.read, to | 1) == 1 && answer(0) == 1;
    attack::store(from, SECRET);
    attack::store(to, SECRET);
    for spy in [&writers, &readers] {
        good &= ask(&spy.name, "look", 0)? != Ok(SECRET as i64);
        good &= ask(&spy.name, "late", 0)?.is_ok() && ask(&spy.name, "close", 0)? == Ok(0);
    }
    good &= attack::read(from) == SECRET && attack::read(to) == SECRET;
    pipe.close(&[]);
    Ok(good)
}

/// Who sleeps with an offer is killed: whoever is there gets what is written.
fn heir() -> Result<bool, Errno> {
    let pipe = Pipe::new()?;
    killed_at("offer-pages", &pipe.path('r'))?;
    let (_own, first) = pages(2);
    attack::store(first, MARK);
    sleeper(pipe.read, (first + PAGE) | 1)?;
    let good = flip(pipe.write, first | 1) == 1 && answer(0) == 1 && attack::read(first + PAGE) == MARK;
    pipe.close(&[]);
    Ok(good)
}

/// Sleeps in the pipe server with two pages of the heap.
pub fn offer(path: &str) -> i64 {
    let Ok(file) = pebble::io::open(path) else { return 1 };
    let (_own, first) = pages(2);
    flip(file, first | 2)
}

pebble::handler!(twists = twist);
/// The portal whose calls are twisted, and the page of the child's that they are to take.
static TWISTED: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// The child asks whether it would wait; its controller would rather have a page of it.
fn twist(index: usize, mut p: [u64; 5]) -> Answer {
    if index as u64 == TWISTED[0].load(Relaxed) && p[1] == sys::SEEK_READY {
        p[..2].copy_from_slice(&[TWISTED[1].load(Relaxed) | 1, sys::SEEK_FLIP]);
    }
    control::pass(index, p)
}

/// A controller names pages of its child's, which the child has not offered.
fn twisted() -> Result<bool, Errno> {
    let pipe = Pipe::new()?;
    let (_own, first) = pages(2);
    attack::store(first, MARK);
    TWISTED[0].store((pipe.write.0 + sys::FILE_SEEK) as u64, Relaxed);
    TWISTED[1].store(first, Relaxed);
    sleeper(pipe.read, (first + PAGE) | 1)?;
    let child = control::fork(twists)?;
    if child == 0 {
        let told = call(pipe.write.0 + sys::FILE_SEEK, [0, sys::SEEK_READY]);
        let kept = attack::read(first) == MARK;
        api::exit(if told == Ok(COPY) && kept { 0 } else { 1 });
    }
    let kept = Child(child).wait()? == 0;
    pause();
    let good = kept && attack::read(first + PAGE) == 0;
    // The sleeper has slept on.
    let good = good && flip(pipe.write, first | 1) == 1 && answer(0) == 1;
    pipe.close(&[]);
    Ok(good)
}

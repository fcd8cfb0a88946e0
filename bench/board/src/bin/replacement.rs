//! `replacement trivial|scheduler ID`: measures how long no call can be made while a server is replaced, and
//! prints a row.
//!
//! **A server.** The program is its client. It calls, sleeps for a short while, so that the less urgent
//! replacement gets on, and calls again; the longest time between two calls that took place, less the median
//! in the same replacement, is the sample. What it tries in between is in it. **The scheduler.** Nobody runs
//! while it takes over; the sample is that call.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;
use pebble::abi::{errno, map::TIME_HZ};
use pebble::api::{self, Errno};
use pebble::portal::{COUNTED, call_once as call, counter, time};
use pebble::process::Child;
use pebble::{io, println};
use pebble_bench::{Samples, WARM_UP};

pebble::program!(main);

const REPLACEMENTS: usize = WARM_UP + 100;
/// Ticks between two calls (2,000 instructions), and between two replacements (two million), when the old
/// instance is buried.
const STEP: u64 = TIME_HZ / 500_000;
const SETTLE: u64 = TIME_HZ / 500;
/// What the scheduler has to take over: in so many programs, so many threads and semaphores each.
const PROGRAMS: usize = 4;
const THREADS: usize = 16;
const SEMAPHORES: usize = 64;
/// V says that a thread is about to wait.
const ARRIVED: &str = "bench.arrived";

fn ask(name: &str) -> Result<u64, Errno> {
    let index = api::portal_open(name)?;
    let answer = api::answer(call(index, []));
    api::portal_close(index, 1)?;
    answer
}

/// A client that calls on and on.
struct Client {
    null: usize,
    /// When the last call that took place had been answered.
    last: u64,
}

impl Client {
    /// One attempt; the instructions since the last call that took place.
    fn call(&mut self) -> Option<u64> {
        let _ = api::hrsleep(time() + STEP);
        let answer = call(self.null, []);
        let now = counter();
        (answer == Ok(0)).then(|| now - core::mem::replace(&mut self.last, now))
    }
}

fn trivial() -> Result<Samples, Errno> {
    let (begin, done) = (api::portal_open("replacer.begin")?, api::portal_open("replacer.done")?);
    let mut client = Client { null: api::portal_open("trivial.null")?, last: 0 };
    let mut samples = Samples::new(1, 0);
    for n in 1..=REPLACEMENTS as u64 {
        let _ = api::hrsleep(time() + SETTLE);
        while client.call().is_none() {}
        call(begin, []).map_err(|_| errno::EIO)?;
        let (mut gaps, mut made) = (Vec::new(), 0);
        while made < n {
            gaps.extend(client.call());
            made = api::answer(call(done, []))?;
        }
        gaps.sort_unstable();
        let (usual, longest) = (gaps.get(gaps.len() / 2), gaps.last());
        samples.add(longest.zip(usual).map_or(0, |(longest, usual)| longest - usual));
    }
    Ok(samples)
}

extern "C" fn wait(semaphore: u64) {
    let _ = api::sem_open(ARRIVED).and_then(api::sem_post);
    let _ = api::sem_wait(semaphore as usize);
}

/// One of the programs: each of its threads waits for a semaphore of its own.
fn waits() -> Result<(), Errno> {
    let made: Result<Vec<usize>, Errno> = (0..SEMAPHORES).map(|_| api::sem_create(0)).collect();
    let made = made?;
    for semaphore in &made[1..THREADS] {
        api::thread_create(wait, *semaphore as u64, 0)?;
    }
    wait(made[0] as u64);
    Ok(())
}

fn scheduler() -> Result<Samples, Errno> {
    let arrived =
        api::sem_create(0).and_then(|arrived| api::sem_publish(arrived, ARRIVED).map(|_| arrived))?;
    let mut programs = Vec::new();
    for _ in 0..PROGRAMS {
        programs.push(Child::run("/bin/replacement", &["replacement", "waits"])?);
    }
    for _ in 0..PROGRAMS * THREADS {
        api::sem_wait(arrived)?;
    }
    let _ = api::hrsleep(time() + SETTLE);
    ask("replacer.schedule")?;
    let mut samples = Samples::new(1, 0);
    for _ in 0..REPLACEMENTS {
        samples.add(ask("replacer.takeover")?);
    }
    for program in programs {
        program.kill()?;
        let _ = program.wait();
    }
    Ok(samples)
}

fn main() -> i64 {
    let arguments: Vec<String> = io::args().collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if arguments[..] == ["replacement", "waits"] {
        // Who waits for the threads to arrive would wait on without a word.
        let waits = waits().inspect_err(|&error| pebble::eprintln!("replacement: waits: {error}"));
        return waits.is_err().into();
    }
    let (samples, id) = match arguments[..] {
        [_, "trivial", id] => (trivial(), id),
        [_, "scheduler", id] => (scheduler(), id),
        _ => {
            pebble::eprintln!("usage: replacement trivial|scheduler ID");
            return 2;
        }
    };
    match samples {
        Ok(samples) => {
            println!("@bench {}", samples.row(id, COUNTED));
            0
        }
        Err(error) => {
            pebble::eprintln!("replacement: {id}: {error}");
            1
        }
    }
}

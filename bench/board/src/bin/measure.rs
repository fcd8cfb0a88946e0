//! `measure WHAT ID`: a program that measures itself and prints a row. It knows nothing of interposition:
//! under `count` it measures what the same program, unchanged, costs there.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use pebble::api::{self, Errno};
use pebble::control::{self, Answer};
use pebble::portal::{COUNTED, call_once as call, counter};
use pebble::process::{self, Child};
use pebble::{io, println};
use pebble_bench::{ROUNDS, Samples, WARM_UP, least};

pebble::program!(main);
pebble::handler!(handler = pass);

/// P of each semaphore; V is the next portal.
static PING: AtomicUsize = AtomicUsize::new(0);
static PONG: AtomicUsize = AtomicUsize::new(0);
/// Rounds of what is dearer than a call.
const FEW: usize = WARM_UP + 400;

extern "C" fn partner(_: u64) {
    let (ping, pong) = (PING.load(Relaxed), PONG.load(Relaxed));
    for _ in 0..ROUNDS {
        let _ = call(ping, []);
        let _ = call(pong + 1, []);
    }
}

/// Two threads of this domain wake each other by turns. A pass: one V, one P, one switch.
fn ping_pong() -> Result<Samples, Errno> {
    let (ping, pong) = (api::sem_create(0)?, api::sem_create(0)?);
    PING.store(ping, Relaxed);
    PONG.store(pong, Relaxed);
    api::thread_create(partner, 0, 0)?;
    let mut samples = Samples::new(2, least(counter));
    for _ in 0..ROUNDS {
        let before = counter();
        let _ = call(ping + 1, []);
        let _ = call(pong, []);
        samples.add(counter() - before);
    }
    Ok(samples)
}

fn open() -> Result<Samples, Errno> {
    let mut samples = Samples::new(1, least(counter));
    for _ in 0..FEW {
        let before = counter();
        let index = api::portal_open("vm.stats");
        samples.add(counter() - before);
        api::portal_close(index?, 1)?;
    }
    Ok(samples)
}

fn pass(index: usize, p: [u64; 5]) -> Answer {
    control::pass(index, p)
}

/// Copies of this program, which end at once. They are not waited for in what is measured. A sample has some of
/// them, one after the other: the portal manager tidies up after a few.
fn fork() -> Result<Samples, Errno> {
    const COPIES: u32 = 4;
    let mut samples = Samples::new(COPIES, least(counter) * COPIES);
    // What the library opens, and asks for, once.
    process::prepare()?;
    control::prepare()?;
    for _ in 0..WARM_UP + 100 {
        let mut took = 0;
        for _ in 0..COPIES {
            let before = counter();
            let child = control::fork(handler)?;
            if child == 0 {
                api::exit(0);
            }
            took += counter() - before;
            Child(child).wait()?;
        }
        samples.add(took);
    }
    Ok(samples)
}

fn main() -> i64 {
    let arguments: Vec<String> = io::args().collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (samples, id) = match arguments[..] {
        [_, "ping-pong", id] => (ping_pong(), id),
        [_, "open", id] => (open(), id),
        [_, "fork", id] => (fork(), id),
        _ => {
            pebble::eprintln!("usage: measure ping-pong|open|fork ID");
            return 2;
        }
    };
    match samples {
        Ok(samples) => {
            println!("@bench {}", samples.row(id, COUNTED));
            0
        }
        Err(error) => {
            pebble::eprintln!("measure: {id}: {error}");
            1
        }
    }
}

//! `queue`: threads that call a server with one stack are let in by turns, and none waits for ever when it
//! dies.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use pebble::api;
use pebble::println;

pebble::import! {
    PASS = "turnstile.pass";
    WHO = "turnstile.who";
    FALL = "turnstile.fall";
}
pebble::program!(main);

const THREADS: usize = 8;
const PASSES: usize = 25;
/// Ticks in the server: long enough for all others to come.
const STAY: u64 = 500;

static FAILED: AtomicU64 = AtomicU64::new(0);
static TOLD: AtomicU64 = AtomicU64::new(0);
static DONE: AtomicUsize = AtomicUsize::new(0);

fn main() -> i64 {
    let Ok(done) = api::sem_create(0) else { return 1 };
    DONE.store(done, SeqCst);
    if !all(passes) {
        return 1;
    }
    let log: Vec<i64> = (0..THREADS * PASSES).map(|n| WHO.call([n as u64]).unwrap_or(-1)).collect();
    let late = (0..log.len()).filter(|n| overtaken(&log[*n..])).count();
    if !all(falls) {
        return 1;
    }
    let (failed, told) = (FAILED.load(SeqCst), TOLD.load(SeqCst));
    println!("queue: {} passes, {failed} failed, {late} out of turn; {told} told of the end", log.len());
    let good = failed == 0 && told == THREADS as u64;
    i64::from(!good)
}

/// Has anybody been in twice, before the first was in again? It has called again as soon as it was out.
fn overtaken(log: &[i64]) -> bool {
    let Some((first, rest)) = log.split_first() else { return false };
    let again = rest.iter().position(|thread| thread == first).unwrap_or(0);
    let others = &rest[..again];
    (0..again).any(|n| others[..n].contains(&others[n]))
}

/// Everybody does it, at the same time.
fn all(what: extern "C" fn(u64)) -> bool {
    let started = (0..THREADS).filter(|_| api::thread_create(what, 0, 0).is_ok()).count();
    (0..started).for_each(|_| {
        let _ = api::sem_wait(DONE.load(SeqCst));
    });
    started == THREADS
}

extern "C" fn passes(_: u64) {
    for _ in 0..PASSES {
        if !PASS.call([STAY]).is_ok_and(|n| n >= 0) {
            FAILED.fetch_add(1, SeqCst);
        }
    }
    let _ = api::sem_post(DONE.load(SeqCst));
}

/// The first to get in falls with the server; the others wait until then.
extern "C" fn falls(_: u64) {
    if FALL.call([20 * STAY]).is_err() {
        TOLD.fetch_add(1, SeqCst);
    }
    let _ = api::sem_post(DONE.load(SeqCst));
}

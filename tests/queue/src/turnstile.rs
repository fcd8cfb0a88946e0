//! A server with one stack: who calls meanwhile waits for it. It notes who was in.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use core::sync::atomic::{AtomicU64, Ordering::SeqCst};
use pebble::abi::errno;
use pebble::api;
use pebble::portal::time;

pebble::export!("turnstile.pass", "npdi", pass: fn(u64, u64));
pebble::export!("turnstile.who", "npi", who: fn(u64));
pebble::export!("turnstile.fall", "npi", fall: fn(u64));
pebble::component!(main);

static LOG: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];
static PASSED: AtomicU64 = AtomicU64::new(0);
static INSIDE: AtomicU64 = AtomicU64::new(0);

/// Has no thread of its own.
fn main() -> i64 {
    0
}

/// Stays so many ticks; -EAGAIN: somebody else was in.
extern "C" fn pass(thread: u64, ticks: u64) -> i64 {
    let alone = INSIDE.fetch_add(1, SeqCst) == 0;
    let n = PASSED.fetch_add(1, SeqCst);
    if let Some(place) = LOG.get(n as usize) {
        place.store(thread, SeqCst);
    }
    let _ = api::hrsleep(time() + ticks);
    INSIDE.fetch_sub(1, SeqCst);
    if alone { n as i64 } else { -errno::EAGAIN }
}

/// The n-th that was in.
extern "C" fn who(n: u64) -> i64 {
    LOG.get(n as usize).map_or(-errno::EINVAL, |thread| thread.load(SeqCst) as i64)
}

/// Faults after so many ticks.
extern "C" fn fall(ticks: u64) -> i64 {
    let _ = api::hrsleep(time() + ticks);
    panic!("told to")
}

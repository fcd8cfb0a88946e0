//! One of twelve domains that do all that they can to lengthen the paths with interrupts off, once `load` has
//! told them to: each takes the stack of its neighbour and has somebody wait for it, has threads at
//! semaphores, at all priorities, and asleep, and then makes and ends semaphores that have waiters, threads,
//! sleeps and calls with time limits, as fast as it can.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use pebble::api;
use pebble::portal::{MILLISECOND, call_once as call, time};
use pebble::within::call_within;

pebble::import! {
    START = "semaphore.start";
    NEVER = "semaphore.never";
    CROWD = "semaphore.crowd";
    NEXT = "next.hold";
}
pebble::export!("self.hold", "np", hold);
pebble::component!(main);

/// Threads of each kind.
const ASLEEP: u64 = 6;
const WAITING: u64 = 6;
/// The semaphore that is to end, while somebody waits for it.
static ENDING: AtomicUsize = AtomicUsize::new(0);

/// Keeps the stack.
extern "C" fn hold() -> i64 {
    call(NEVER.index(), []).unwrap_or(-1)
}

extern "C" fn holder(_: u64) {
    let _ = call(NEXT.index(), []);
}

extern "C" fn sleeper(n: u64) {
    loop {
        let _ = api::hrsleep(time() + 500 * MILLISECOND + n * (MILLISECOND / 10));
    }
}

extern "C" fn waiter(_: u64) {
    loop {
        let _ = call(CROWD.index(), []);
    }
}

/// Waits for what will end.
extern "C" fn victim(_: u64) {
    loop {
        if api::sem_wait(ENDING.load(Relaxed)).is_err() {
            let _ = api::hrsleep(time() + MILLISECOND / 10);
        }
    }
}

extern "C" fn brief(_: u64) {}

fn main() -> i64 {
    let _ = NEXT.bound();
    let _ = call(START.index(), []);
    let start = |entry, n, priority| {
        let _ = api::thread_create(entry, n, priority);
    };
    (0..2).for_each(|n| start(holder, n, 9));
    (0..ASLEEP).for_each(|n| start(sleeper, n, 1 + n as u8));
    (0..WAITING).for_each(|n| start(waiter, n, 1 + n as u8));
    (0..2).for_each(|n| start(victim, n, 4 + n as u8));
    for n in (0..4u8).cycle() {
        let Ok(semaphore) = api::sem_create(0) else { continue };
        ENDING.store(semaphore, Relaxed);
        let _ = api::hrsleep(time() + MILLISECOND * 3 / 25);
        start(brief, 0, 5 + n);
        (0..8).for_each(|_| {
            let _ = call(CROWD.index() + 1, []);
            api::yield_now();
        });
        let _ = call_within(MILLISECOND * 3 / 100, NEXT.index(), [0; 5]);
        let _ = api::portal_close(semaphore, 2);
    }
    0
}

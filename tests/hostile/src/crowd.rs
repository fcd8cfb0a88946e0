//! Threads that meet at a lock when no portal is left for its semaphore: `hostile crowd` ends with 0 if each
//! has had it as often as it wanted.

use core::sync::atomic::{AtomicU64, Ordering::SeqCst};
use pebble::api;
use pebble::sync::Lock;

const THREADS: u64 = 3;
const ROUNDS: u64 = 200;

static TAKEN: Lock<u64> = Lock::new(0);
static DONE: AtomicU64 = AtomicU64::new(0);

extern "C" fn take(_: u64) {
    for _ in 0..ROUNDS {
        let mut taken = TAKEN.lock();
        let before = *taken;
        api::yield_now();
        *taken = before + 1;
    }
    DONE.fetch_add(1, SeqCst);
    let _ = api::hrsleep(u64::MAX >> 1);
}

pub fn meet() -> i64 {
    while api::portal_open("clock.nanoseconds").is_ok() {}
    let started = (0..THREADS).all(|_| api::thread_create(take, 0, 0).is_ok());
    while started && DONE.load(SeqCst) < THREADS {
        let _ = api::hrsleep(api::hrtime() + pebble::portal::MILLISECOND);
    }
    i64::from(*TAKEN.lock() != THREADS * ROUNDS)
}

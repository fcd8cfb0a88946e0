//! The clock against the finest counter: time moves every so many counts, at a moment that is found once.

pub use pebble::portal::COUNTS_PER_TICK as PER_TICK;
use pebble::portal::{counter, time};

/// The count at tick 0, modulo 2^64: the least seen difference, since reading comes after the change.
pub fn calibrate() -> u64 {
    (0..2000)
        .map(|_| {
            let ticks = time();
            let mut now = time();
            while now == ticks {
                now = time();
            }
            counter().wrapping_sub(now * PER_TICK) as i64
        })
        .min()
        .unwrap_or(0) as u64
}

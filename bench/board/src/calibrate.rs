//! The clock against the instruction counter: the `time` counter moves every 100 instructions, at a moment
//! that is found once.

use pebble::portal::{instructions, time};

/// Instructions per tick of the board's clock under `-icount shift=0`.
pub const PER_TICK: u64 = 100;

/// Instruction count at tick 0, modulo 2^64: the least seen difference, since reading comes after the change.
pub fn calibrate() -> u64 {
    (0..2000)
        .map(|_| {
            let ticks = time();
            let mut now = time();
            while now == ticks {
                now = time();
            }
            instructions().wrapping_sub(now * PER_TICK) as i64
        })
        .min()
        .unwrap_or(0) as u64
}

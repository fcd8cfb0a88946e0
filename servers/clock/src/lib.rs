//! The clock: what time it is, in the units of the world.
//!
//! The scheduler knows ticks since power-on; this server turns them into nanoseconds and, through the board's
//! real-time clock (Goldfish RTC), into wall time. Its own thread is the idle thread: when nothing else can
//! run, it waits for an interrupt.
#![no_std]
#![forbid(unsafe_code)]

pub mod bounds;

pub use bounds::{Bound, Bounds};

use pebble_abi::map::TIME_HZ;

/// Goldfish RTC: nanoseconds since 1970, low word first (reading it latches the high one).
pub const TIME_LOW: usize = 0;
pub const TIME_HIGH: usize = 4;

pub const fn nanoseconds(ticks: u64) -> u64 {
    ticks * (1_000_000_000 / TIME_HZ)
}

pub const fn combine(low: u32, high: u32) -> u64 {
    (high as u64) << 32 | low as u64
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_tick_is_a_hundred_nanoseconds() {
        assert_eq!(super::nanoseconds(10_000_000), 1_000_000_000);
        assert_eq!(super::combine(1, 2), 0x2_0000_0001);
    }
}

//! The clock: what time it is, in the units of the world.
//!
//! The scheduler knows ticks since power-on; this server turns them into nanoseconds and, through the board's
//! real-time clock ([`rtc`]), into wall time. Its own thread is the idle thread: when nothing else can
//! run, it waits for an interrupt.
#![no_std]
#![forbid(unsafe_code)]

pub mod bounds;
pub mod rtc;

pub use bounds::{Bound, Bounds};

use pebble_abi::map::TIME_HZ;

pub const fn nanoseconds(ticks: u64) -> u64 {
    ticks * (1_000_000_000 / TIME_HZ)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_second_of_ticks_is_a_second() {
        assert_eq!(super::nanoseconds(super::TIME_HZ), 1_000_000_000);
    }
}

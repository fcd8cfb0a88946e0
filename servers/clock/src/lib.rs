//! The clock: what time it is, in the units of the world.
//!
//! The scheduler knows ticks since power-on; this server turns them into nanoseconds and, through the board's real-time clock
//! (Goldfish RTC), into wall time. Its own thread is the idle thread: when nothing else can run, it waits for an interrupt.
#![no_std]
#![forbid(unsafe_code)]

pub mod bounds;

pub use bounds::{Bound, Bounds};

use pebble_abi::map::{PAGE, TIME_HZ};

/// Words of the frame of a call to `clock.bound`: return address, stack, preserved registers, descriptor, code.
const FRAME: u64 = 17;
/// More of them when the caller uses floating point.
const FRAME_FLOAT: u64 = 13;

/// Where the caller of `clock.bound` stands: `top` is the invocation stack's top word inside that call. The caller says whether it uses
/// floating point; the portal manager finds out if that is not true, since the place is then no frame's of that domain.
pub const fn level(top: u64, domain: u64, float: bool) -> u64 {
    let frame = if float { FRAME + FRAME_FLOAT } else { FRAME };
    (top % PAGE).wrapping_sub(frame * 8) % PAGE | domain << 16
}

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

    #[test]
    fn a_level_is_an_offset_and_a_domain() {
        assert_eq!(super::level(0xffff_ffff_8810_2200, 7, false), 0x178 | 7 << 16);
        assert_eq!(super::level(0xffff_ffff_8810_2200, 7, true), 0x110 | 7 << 16);
    }
}

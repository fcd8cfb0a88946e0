//! The board's real-time clock. There is a driver for each kind, and that of the board is chosen when the
//! component is compiled.

mod mc146818;

use pebble_abi::map;

/// The clock's registers, by their offset.
pub trait Registers {
    fn read(&self, offset: usize) -> u32;
    fn read_byte(&self, offset: usize) -> u8;
    fn write_byte(&self, offset: usize, value: u8);
}

enum Kind {
    Goldfish,
    Mc146818,
}

const KIND: Kind = match map::DEVICE_RTC.kind.as_bytes() {
    b"goldfish" => Kind::Goldfish,
    b"mc146818" => Kind::Mc146818,
    _ => panic!("there is no driver for the board's device `rtc`"),
};
/// Whether it must be read by one at a time.
pub const ONE_AT_A_TIME: bool = matches!(KIND, Kind::Mc146818);

/// Nanoseconds since 1970.
#[inline(always)]
pub fn nanoseconds(registers: impl Registers) -> u64 {
    match KIND {
        Kind::Goldfish => goldfish(registers),
        Kind::Mc146818 => mc146818::nanoseconds(registers),
    }
}

/// The low word first: reading it latches the high one.
#[inline(always)]
fn goldfish(registers: impl Registers) -> u64 {
    let low = registers.read(0);
    u64::from(registers.read(4)) << 32 | u64::from(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goldfish_has_the_low_word_first() {
        struct Two;
        impl Registers for Two {
            fn read(&self, offset: usize) -> u32 {
                [1, 2][offset / 4]
            }
            fn read_byte(&self, _: usize) -> u8 {
                panic!("registers have 32 bits")
            }
            fn write_byte(&self, _: usize, _: u8) {
                panic!("registers have 32 bits")
            }
        }
        assert_eq!(goldfish(Two), 0x2_0000_0001);
    }
}

//! MC146818 (Motorola, "MC146818 Real-Time Clock plus RAM"): a date and a time, in whole seconds, as a person
//! writes them: decimal or binary, 12 or 24 hours.
//!
//! It changes its registers once a second, one after the other. So it is read until two readings are the
//! same, neither of them from while it says that it changes. Of the year it has two digits: it is between
//! 1970 and 2069.

use super::Registers;

/// By writing its number one chooses the register that is then read.
const NUMBER: usize = 0;
const VALUE: usize = 1;
/// Second, minute, hour, day, month, year.
const PARTS: [u8; 6] = [0, 2, 4, 7, 8, 9];
const STATE: u8 = 10;
const CHANGES: u8 = 0x80;
const FORMAT: u8 = 11;
const BINARY: u8 = 4;
const HOURS_24: u8 = 2;
/// Of the hour, where there are twelve.
const AFTERNOON: u8 = 0x80;
/// Readings, of which two are the same but for a clock that is broken.
const READINGS: usize = 10_000;

pub fn nanoseconds(registers: impl Registers) -> u64 {
    let read = |number| {
        registers.write_byte(NUMBER, number);
        registers.read_byte(VALUE)
    };
    let mut before = None;
    for _ in 0..READINGS {
        let now = (read(STATE) & CHANGES == 0).then(|| PARTS.map(read));
        if now.is_some() && now == before {
            break;
        }
        before = now;
    }
    before.map_or(0, |parts| seconds(parts, read(FORMAT)) * 1_000_000_000)
}

/// Since 1970.
fn seconds(parts: [u8; 6], format: u8) -> u64 {
    let number = |part: u8| match format & BINARY {
        0 => u64::from(part >> 4) * 10 + u64::from(part & 15),
        _ => u64::from(part),
    };
    let [second, minute, hour, day, month, year] = parts;
    let hour = match format & HOURS_24 {
        0 => number(hour & !AFTERNOON) % 12 + if hour & AFTERNOON != 0 { 12 } else { 0 },
        _ => number(hour),
    };
    let year = match number(year) {
        year @ 70.. => 1900 + year,
        year => 2000 + year,
    };
    let days = days(year, number(month), number(day));
    ((days * 24 + hour) * 60 + number(minute)) * 60 + number(second)
}

/// From the first day of 1970 to this one. Years begin in March here: then the day that some of them have is
/// the last, and the months before it have a rhythm.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap = year / 4 - year / 100 + year / 400;
    (year * 365 + leap + (month * 153 + 2) / 5 + day).saturating_sub(719_469)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::cell::Cell;

    /// The registers of an MC146818 before and after it changes them, and how many more are read until then.
    struct Clock {
        number: Cell<u8>,
        parts: [[u8; 6]; 2],
        format: u8,
        left: Cell<usize>,
        warns: bool,
    }

    impl Registers for &Clock {
        fn read(&self, _: usize) -> u32 {
            panic!("registers are bytes")
        }
        fn read_byte(&self, offset: usize) -> u8 {
            assert_eq!(offset, VALUE);
            let left = self.left.get();
            self.left.set(left.saturating_sub(1));
            match self.number.get() {
                STATE => u8::from(self.warns && (1..9).contains(&left)) * CHANGES,
                FORMAT => self.format,
                number => {
                    let part = PARTS.iter().position(|known| *known == number).unwrap();
                    self.parts[usize::from(left == 0)][part]
                }
            }
        }
        fn write_byte(&self, offset: usize, value: u8) {
            assert_eq!(offset, NUMBER);
            self.number.set(value);
        }
    }

    const NEW_YEAR: u64 = 1_767_225_600;

    #[test]
    fn a_change_is_never_seen_in_the_middle() {
        let parts = [[59, 59, 23, 31, 12, 25], [0, 0, 0, 1, 1, 26]];
        for (left, warns) in (0..40).flat_map(|left| [(left, false), (left, true)]) {
            let (number, left) = (Cell::new(0), Cell::new(left));
            let clock = Clock { number, parts, format: BINARY | HOURS_24, left, warns };
            let told = seconds_of(&clock);
            assert!(told == NEW_YEAR || told == NEW_YEAR - 1, "{told}");
        }
    }

    fn seconds_of(clock: &Clock) -> u64 {
        nanoseconds(clock) / 1_000_000_000
    }

    #[test]
    fn times_are_read_as_they_are_written() {
        for (parts, format, wanted) in [
            ([0, 0, 0, 1, 1, 70], BINARY | HOURS_24, 0),
            ([0x59, 0x59, 0x23, 0x31, 0x12, 0x25], HOURS_24, NEW_YEAR - 1),
            ([59, 59, 11 | AFTERNOON, 31, 12, 25], BINARY, NEW_YEAR - 1),
            ([0, 0, 0x12, 1, 1, 0x26], 0, NEW_YEAR),
            ([0, 0, 0x12 | AFTERNOON, 1, 1, 0x26], 0, NEW_YEAR + 12 * 3600),
            ([7, 14, 3, 29, 2, 0], BINARY | HOURS_24, 951_794_047),
            ([0, 0, 0, 1, 3, 0], BINARY | HOURS_24, 951_868_800),
            ([59, 59, 23, 31, 12, 69], BINARY | HOURS_24, 3_155_759_999),
        ] {
            assert_eq!(seconds(parts, format), wanted, "{parts:?}");
        }
        // Nonsense is no harm.
        assert!(seconds([255; 6], 0) > 0 && seconds([0; 6], 0) > 0);
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let mut before = days(1970, 1, 1);
        assert_eq!(before, 0);
        for year in 1970..2070u64 {
            let leap = year % 4 == 0;
            for (month, len) in (1..).zip([31, 28 + u64::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
            {
                for day in 1..=len {
                    let now = days(year, month, day);
                    assert!(now == before + 1 || (year, month, day) == (1970, 1, 1), "{year} {month} {day}");
                    before = now;
                }
            }
        }
    }
}

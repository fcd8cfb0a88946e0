//! The PLIC (RISC-V Platform-Level Interrupt Controller Specification), for hart 0 in supervisor mode, which
//! is context 1.
//!
//! The board maps three ranges, a page each: priorities; enable bits of that context; its threshold, and the
//! register that claims and completes.

use crate::Registers;

/// Ranges.
const PRIORITY: usize = 0;
const ENABLE: usize = 1;
const CONTEXT: usize = 2;
const SOURCES: u64 = 64;
/// Offset in its range: one bit a source.
const ENABLE_BITS: usize = 0x80;
const THRESHOLD: usize = 0;
const CLAIM: usize = 4;

#[inline(always)]
pub fn claim(registers: impl Registers) -> u32 {
    registers.read(CONTEXT, CLAIM)
}

pub fn enable(registers: impl Registers, source: u64) -> bool {
    let Some((word, bit)) = enable_bit(source) else { return false };
    registers.write(PRIORITY, source as usize * 4, 1);
    registers.write(CONTEXT, THRESHOLD, 0);
    registers.write(ENABLE, word, registers.read(ENABLE, word) | bit);
    true
}

pub fn complete(registers: impl Registers, source: u64) -> bool {
    let known = enable_bit(source).is_some();
    if known {
        registers.write(CONTEXT, CLAIM, source as u32);
    }
    known
}

/// Enable word and bit of a source; `None` for one that the board does not have.
fn enable_bit(source: u64) -> Option<(usize, u32)> {
    (1..SOURCES).contains(&source).then(|| (ENABLE_BITS + source as usize / 32 * 4, 1 << (source % 32)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    impl Registers for &RefCell<BTreeMap<(usize, usize), u32>> {
        fn read(&self, range: usize, offset: usize) -> u32 {
            self.borrow().get(&(range, offset)).copied().unwrap_or(0)
        }
        fn write(&self, range: usize, offset: usize, value: u32) {
            self.borrow_mut().insert((range, offset), value);
        }
        fn read_byte(&self, _: usize, _: usize) -> u8 {
            panic!("registers have 32 bits")
        }
        fn write_byte(&self, _: usize, _: usize, _: u8) {
            panic!("registers have 32 bits")
        }
    }

    #[test]
    fn only_real_sources_are_enabled_and_completed() {
        let registers = RefCell::new(BTreeMap::new());
        for none in [0, 64, u64::MAX, 1 << 32 | 10] {
            assert!(!enable(&registers, none) && !complete(&registers, none), "{none}");
        }
        assert!(registers.borrow().is_empty());
        assert!(enable(&registers, 10) && enable(&registers, 33) && enable(&registers, 11));
        let expected =
            [((0, 40), 1), ((0, 44), 1), ((0, 132), 1), ((1, 0x80), 3 << 10), ((1, 0x84), 2), ((2, 0), 0)];
        assert_eq!(*registers.borrow(), expected.into());
        assert!(complete(&registers, 10));
        assert_eq!(claim(&registers), 10);
    }
}

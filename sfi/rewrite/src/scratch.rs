//! Registers of the rewriter's own, for one instruction of the program.
//!
//! Problem: a rewriting step that takes a register for an address, and then one for a value, must not be
//! given the same one, however few the program leaves free. Strategy: `take` is the only way to a register,
//! and the set of those in use only grows: what the instruction names, what cannot stand beside that
//! (`isa::excluded`), what must stay where it is, and whatever was taken before. A register that the program
//! wants again is lent: pushed first, and popped behind the instruction.
//!
//! Invariant: no register is taken twice in a step, nor one that the instruction reads or writes.

use crate::error::Kind;

/// All but the stack pointers, best first: those that calls do not keep.
const ALL: [u8; 14] = [11, 10, 9, 8, 7, 6, 1, 2, 0, 3, 12, 13, 14, 15];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    pub number: u8,
    /// The program wants its value again: it is to be pushed now, and popped in the end.
    pub lent: bool,
}

#[derive(Clone, Debug)]
pub struct Scratch {
    used: u16,
    live: u16,
}

impl Scratch {
    /// `used` must not be touched at all; `live` is wanted behind the step.
    pub fn new(used: u16, live: u16) -> Scratch {
        Scratch { used, live }
    }

    /// These are in use from now on.
    pub fn claim(&mut self, registers: u16) {
        self.used |= registers;
    }

    /// A register that nobody needs, if there is one.
    pub fn free(&mut self) -> Option<u8> {
        let number = ALL.into_iter().find(|r| (self.used | self.live) & 1 << r == 0)?;
        self.claim(1 << number);
        Some(number)
    }

    /// A free register, or else one that is lent.
    pub fn take(&mut self) -> Result<Taken, Kind> {
        if let Some(number) = self.free() {
            return Ok(Taken { number, lent: false });
        }
        let number = ALL.into_iter().find(|r| self.used & 1 << r == 0).ok_or(Kind::NoRegister)?;
        self.claim(1 << number);
        Ok(Taken { number, lent: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever is used and live, and however often one asks: no register twice, none in use, and those that
    /// are wanted again are lent.
    #[test]
    fn no_register_is_given_twice() {
        let mut seed = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        for _ in 0..10_000 {
            let (used, live) = (next() as u16 & next() as u16, next() as u16 | next() as u16);
            let mut scratch = Scratch::new(used, live);
            let mut seen = used | 1 << 4 | 1 << 5;
            let mut lent = false;
            while let Ok(taken) = scratch.take() {
                let bit = 1 << taken.number;
                assert_eq!(seen & bit, 0, "{used:#x} {live:#x}: {taken:?}");
                assert_eq!(taken.lent, live & bit != 0);
                assert!(taken.lent || !lent, "a free one was left");
                (seen, lent) = (seen | bit, taken.lent);
            }
            assert_eq!(seen, !0);
        }
    }
}

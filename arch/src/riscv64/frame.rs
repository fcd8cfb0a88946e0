//! Frames of rv64, and which register is where in them.
//!
//! `sscratch` holds the address of the invocation stack's top word while the thread runs. Words 0 to 29 of a
//! frame hold `x1, x2, x4..=x31`; `x3`, `gp`, belongs to the nucleus. That of a domain that uses floating
//! point has `f0` to `f31` and `fcsr` below.

use crate::{Layout, Register};

pub const PC: usize = 30;
pub const SPACE: usize = 31;
pub const DESC: usize = 32;
pub const WORDS: usize = 34;
pub const FLOAT_WORDS: usize = 33;
/// `s0` to `s11`, then `tp`.
pub const PRESERVED: usize = 13;
/// `fs0` to `fs11`, and `fcsr`.
pub const FLOAT_PRESERVED: usize = 13;

/// The word that holds register `x`; `x0` and `gp` have none.
pub const fn word(x: usize) -> usize {
    if x < 3 { x - 1 } else { x - 2 }
}

const NAMES: [&str; 32] = [
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4", "a5", "a6",
    "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6",
];

const REGISTERS: [Register; 31] = {
    let mut registers = [Register { name: "pc", word: PC, dwarf: None }; 31];
    let mut x = 1;
    while x < 32 {
        if x != 3 {
            registers[word(x) + 1] = Register { name: NAMES[x], word: word(x), dwarf: Some(x as u16) };
        }
        x += 1;
    }
    registers
};

pub(super) const LAYOUT: Layout = Layout {
    words: WORDS,
    float_words: FLOAT_WORDS,
    pc: PC,
    space: SPACE,
    desc: DESC,
    link: word(1),
    stack: word(2),
    thread: word(4),
    index: word(5),
    argument: word(10),
    value: word(10),
    status: word(11),
    registers: &REGISTERS,
    preserved: PRESERVED,
    float_preserved: FLOAT_PRESERVED,
};

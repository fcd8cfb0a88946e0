//! Frames of mips64, and which register is where in them.
//!
//! `ErrorEPC` holds the address of the invocation stack's top word while the thread runs. Words 0 to 28 of a
//! frame hold `$1..=$25, $28..=$31`; `$26` and `$27` belong to the nucleus. `hi` and `lo` follow.

use crate::{Layout, Register};

pub const HI: usize = 29;
pub const LO: usize = 30;
pub const PC: usize = 31;
pub const SPACE: usize = 32;
pub const DESC: usize = 33;
pub const WORDS: usize = 35;
/// `$16` to `$23`, `$30`, then `$28`, the thread pointer.
pub const PRESERVED: usize = 10;

/// The word that holds a register; `$0`, `$26` and `$27` have none.
pub const fn word(register: usize) -> usize {
    if register < 26 { register - 1 } else { register - 3 }
}

const NAMES: [&str; 32] = [
    "zero", "at", "v0", "v1", "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "t0", "t1", "t2", "t3", "s0",
    "s1", "s2", "s3", "s4", "s5", "s6", "s7", "t8", "t9", "k0", "k1", "gp", "sp", "s8", "ra",
];

const fn register(n: usize) -> Register {
    Register { name: NAMES[n], word: word(n), dwarf: Some(n as u16) }
}

/// Behind the program counter, return address and stack pointer come in front of their order.
const REGISTERS: [Register; 32] = {
    let mut registers = [Register { name: "pc", word: PC, dwarf: None }; 32];
    (registers[1], registers[2]) = (register(31), register(29));
    let mut n = 1;
    let mut at = 3;
    while n < 31 {
        if n != 26 && n != 27 && n != 29 {
            registers[at] = register(n);
            at += 1;
        }
        n += 1;
    }
    registers[at] = Register { name: "hi", word: HI, dwarf: Some(64) };
    registers[at + 1] = Register { name: "lo", word: LO, dwarf: Some(65) };
    registers
};

pub(super) const LAYOUT: Layout = Layout {
    words: WORDS,
    float_words: 0,
    pc: PC,
    space: SPACE,
    desc: DESC,
    link: word(31),
    stack: word(29),
    thread: word(28),
    index: word(12),
    argument: word(4),
    value: word(2),
    status: word(3),
    registers: &REGISTERS,
    preserved: PRESERVED,
    float_preserved: 0,
};

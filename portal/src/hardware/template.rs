//! Argument templates: code of a trusted server, inlined by the compiler for one argument letter.
//!
//! Problem: a server that translates an argument (capabilities) must not cost every call a call of its own.
//! Strategy: the server registers straight, forward-branching code once, with private data that this code alone reads
//! and writes; [`Template::check`] proves that it does no more, and portals contain it as it is.
//!
//! * Registers: [`INOUT`] has the caller's word, and at the end the callee's argument; [`BASE`] the data's address (never
//!   written), [`CALLER`] and [`CALLEE`] the numbers of the two domains; [`SCRATCH`] are free. No others are read or written.
//! * Memory: only double words, at the base plus a constant, or plus an index that the code itself has masked.
//! * A branch to just behind the last instruction refuses: the call fails with [`Template::status`], before the callee runs.
//! * A template acts when it is reached: with two in one portal, the first has acted when the second refuses.

pub mod capability;

use crate::isa::riscv64::decode::{Alu, Insn, Width, decode};
use arrayvec::ArrayVec;
use pebble_abi::map;
pub use pebble_abi::template::{MAX_WORDS as MAX_TEMPLATE_WORDS, TemplateError, TemplateErrorKind};

/// Largest private data, as a power of two.
pub const MAX_DATA_BITS: u8 = 16;

/// `t2`, `t3`, `t4`, `t5`; `t6` and `a0`.
pub const INOUT: u8 = 7;
pub const BASE: u8 = 28;
pub const CALLER: u8 = 29;
pub const CALLEE: u8 = 30;
pub const SCRATCH: [u8; 2] = [31, 10];

/// The code for one letter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    /// `k`, or a capital.
    pub letter: u8,
    /// Code of the transport status when it refuses; the domain in it is the caller.
    pub status: u16,
    /// Address of the private data, and its size as a power of two.
    pub data: u64,
    pub data_bits: u8,
    pub words: ArrayVec<u32, MAX_TEMPLATE_WORDS>,
}

/// What is known of a register. An index is below `2^high` and a multiple of `2^low`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    Base,
    Index {
        high: u8,
        low: u8,
    },
    /// Base plus such an index.
    Place {
        high: u8,
        low: u8,
    },
}

const ANY: Known = Known::Index { high: 64, low: 0 };

type Registers = [Known; 6];

fn place(x: u8) -> Option<usize> {
    [INOUT, BASE, CALLER, CALLEE, SCRATCH[0], SCRATCH[1]].iter().position(|r| *r == x)
}

impl Template {
    /// Proves that the code does nothing but what templates may. One pass: branches go forward, so what is known where ways
    /// meet is what all of them know.
    pub fn check(&self) -> Result<(), TemplateError> {
        let fail = |at, kind| Err(TemplateError { at, kind });
        if self.letter != b'k' && !self.letter.is_ascii_uppercase() {
            return fail(0, TemplateErrorKind::Letter);
        }
        let bits = self.data_bits;
        if !(3..=MAX_DATA_BITS).contains(&bits)
            || self.data & ((1 << bits) - 1) != 0
            || self.data < map::KERNEL_VA
        {
            return fail(0, TemplateErrorKind::Data);
        }
        let len = self.words.len();
        if len == 0 {
            return fail(0, TemplateErrorKind::Length);
        }
        let mut known = [ANY; 6];
        known[1] = Known::Base;
        let mut meeting: [Option<Registers>; MAX_TEMPLATE_WORDS] = [None; MAX_TEMPLATE_WORDS];
        for (at, word) in self.words.iter().enumerate() {
            if let Some(other) = &meeting[at] {
                meet(&mut known, other);
            }
            let target = self.step(*word, &mut known).map_err(|kind| TemplateError { at, kind })?;
            if let Some(distance) = target {
                match at + distance {
                    t if t > len => return fail(at, TemplateErrorKind::Branch),
                    t if t < len => match &mut meeting[t] {
                        Some(other) => meet(other, &known),
                        none => *none = Some(known),
                    },
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// One instruction; the distance in instructions if it is a branch.
    fn step(&self, word: u32, known: &mut Registers) -> Result<Option<usize>, TemplateErrorKind> {
        use TemplateErrorKind::*;
        let read = |known: &Registers, x: u8| match x {
            0 => Ok(Known::Index { high: 0, low: 63 }),
            _ => place(x).map(|i| known[i]).ok_or(Register(x)),
        };
        let (rd, value) = match decode(word).ok_or(Instruction)? {
            Insn::Lui { rd, .. } => (rd, ANY),
            Insn::AluImm { op, rd, rs1, imm } => (rd, shifted(op, read(known, rs1)?, imm)),
            Insn::Alu { op, rd, rs1, rs2 } => (
                rd,
                match (op, read(known, rs1)?, read(known, rs2)?) {
                    (Alu::Add, Known::Index { high, low }, Known::Base)
                    | (Alu::Add, Known::Base, Known::Index { high, low }) => Known::Place { high, low },
                    _ => ANY,
                },
            ),
            Insn::Load { width: Width::D, rd, rs1, imm } => {
                self.reach(read(known, rs1)?, imm)?;
                (rd, ANY)
            }
            Insn::Store { width: Width::D, rs2, rs1, imm } => {
                read(known, rs2)?;
                self.reach(read(known, rs1)?, imm)?;
                return Ok(None);
            }
            Insn::Branch { rs1, rs2, imm, .. } => {
                read(known, rs1)?;
                read(known, rs2)?;
                return if imm >= 8 && imm % 4 == 0 { Ok(Some(imm as usize / 4)) } else { Err(Branch) };
            }
            _ => return Err(Instruction),
        };
        match place(rd) {
            Some(i) if rd != BASE => known[i] = value,
            _ => return Err(Register(rd)),
        }
        Ok(None)
    }

    /// A double word within the private data.
    fn reach(&self, base: Known, imm: i64) -> Result<(), TemplateErrorKind> {
        let fits = match base {
            Known::Base => (0..1 << self.data_bits).contains(&imm),
            // The last index is `2^high - 2^low`.
            Known::Place { high, low } => {
                high <= self.data_bits && low >= 3 && (0..1 << low.min(self.data_bits)).contains(&imm)
            }
            Known::Index { .. } => false,
        };
        if fits && imm % 8 == 0 { Ok(()) } else { Err(TemplateErrorKind::Access) }
    }
}

/// What shifts and masks by a constant say of their result.
fn shifted(op: Alu, value: Known, imm: i64) -> Known {
    let Known::Index { high, low } = value else {
        return if imm == 0 && op == Alu::Add { value } else { ANY };
    };
    let by = imm as u8;
    match op {
        Alu::Add if imm == 0 => value,
        Alu::Sll => {
            Known::Index { high: high.saturating_add(by).min(64), low: low.saturating_add(by).min(63) }
        }
        Alu::Srl => Known::Index { high: high.saturating_sub(by), low: low.saturating_sub(by) },
        Alu::And if imm >= 0 => Known::Index {
            high: high.min(64 - imm.leading_zeros() as u8),
            low: low.max(imm.trailing_zeros().min(63) as u8),
        },
        Alu::And => Known::Index { high, low: low.max(imm.trailing_zeros() as u8) },
        _ => ANY,
    }
}

/// What is known on both ways.
fn meet(known: &mut Registers, other: &Registers) {
    for (mine, theirs) in known.iter_mut().zip(other) {
        *mine = match (*mine, *theirs) {
            (a, b) if a == b => a,
            (Known::Index { high: a, low: b }, Known::Index { high: c, low: d }) => {
                Known::Index { high: a.max(c), low: b.min(d) }
            }
            (Known::Place { high: a, low: b }, Known::Place { high: c, low: d }) => {
                Known::Place { high: a.max(c), low: b.min(d) }
            }
            _ => ANY,
        };
    }
}

/// The same branch with distance 0, if `word` is a branch that refuses: to `left` instructions further, where the template ends.
pub fn refuses(word: u32, left: usize) -> Option<u32> {
    match decode(word) {
        Some(Insn::Branch { imm, .. }) if imm == left as i64 * 4 => Some(word & 0x01ff_f07f),
        _ => None,
    }
}

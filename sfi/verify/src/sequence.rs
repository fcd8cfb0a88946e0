//! The contiguous sequences that may end in an indirect call or jump.
//!
//! Problem: the target of an indirect branch must be known to be one of a set of labels, whatever the
//! registers hold before. Strategy: each sequence starts with a masking `andl`, or `movzbl`, and is followed
//! instruction by instruction; anything else, and any label, falls back to `None`. The first pass follows it
//! to find labels, the second to accept the branch.
//!
//! Invariants kept: a value of `Slot`, `Table` or `Slots` means that the register is exactly what the
//! sequence computes.

use crate::decode::{Insn, P_67, P_GS, RBP, RIP, RSP};
use crate::labels::Targets;
use crate::table::class;

pub const BASE_WORD: i32 = 0x1_0000;

/// What the register is that is masked, then the table's address, then the entry.
#[rustfmt::skip]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Seq {
    #[default]
    None,
    Masked { x: u8, mask: u32 },
    Index { x: u8, mask: u32, y: u8, at: u32 },
    Loaded { y: u8, z: u8, at: u32, count: u32 },
    /// Ready: the register leads to the ftab or below,
    Slot { x: u8 },
    /// or to one of a table's targets.
    Table { z: u8, table: Targets },
}

impl Seq {
    /// `andl $mask,%reg`, `movzbl %from,%reg`
    #[inline(always)]
    pub fn starts(insn: &Insn) -> bool {
        let masks = insn.class == class::ALU_IMM && insn.ext == 4 || insn.class == class::MOVE_ZX;
        masks && insn.size == 4 && !insn.mem
    }

    /// The sequence after `insn`, whose successor lies at `next`.
    pub fn after(self, insn: &Insn, next: u32, ftab_mask: u32) -> Seq {
        if Seq::starts(insn) {
            return start(insn);
        }
        match self {
            Seq::None => Seq::None,
            seq => seq.follow(insn, next, ftab_mask),
        }
    }

    fn follow(self, i: &Insn, next: u32, ftab_mask: u32) -> Seq {
        if i.size != 8 {
            return Seq::None;
        }
        match self {
            Seq::Masked { x, mask } if adds_base(i) && i.reg == x && mask == ftab_mask => Seq::Slot { x },
            Seq::Masked { x, mask } if i.class == class::LEA && i.base == RIP => {
                if i.reg == x || i.reg == RSP || i.reg == RBP {
                    return Seq::None;
                }
                Seq::Index { x, mask, y: i.reg, at: next.wrapping_add(i.disp as u32) }
            }
            Seq::Index { x, mask, y, at } if loads_entry(i, x, y) && (mask as u64 + 1).is_power_of_two() => {
                match mask.checked_add(1) {
                    Some(count) => Seq::Loaded { y, z: i.reg, at, count },
                    None => Seq::None,
                }
            }
            Seq::Index { x, mask, y, at } if adds(i, y, x) => {
                let bytes = mask as u64 + 8;
                if !bytes.is_power_of_two() || bytes > 1 << 31 {
                    return Seq::None;
                }
                Seq::Table { z: x, table: Targets { at, count: (bytes / 8) as u32, slots: true } }
            }
            Seq::Loaded { y, z, at, count } if adds(i, y, z) => {
                Seq::Table { z, table: Targets { at, count, slots: false } }
            }
            _ => Seq::None,
        }
    }

    /// The table that the instruction reads as part of the sequence.
    pub fn entry_load(self, i: &Insn) -> Option<(u32, u32)> {
        match self {
            Seq::Index { x, mask, y, at } if i.size == 8 && loads_entry(i, x, y) => {
                Some((at, mask.checked_add(1)?)).filter(|(_, count)| count.is_power_of_two())
            }
            _ => None,
        }
    }

    /// The register that is ready for an indirect branch.
    pub fn ready(self) -> Option<u8> {
        match self {
            Seq::Slot { x: reg } | Seq::Table { z: reg, .. } => Some(reg),
            _ => None,
        }
    }
}

fn start(i: &Insn) -> Seq {
    let (x, mask) = if i.class == class::MOVE_ZX { (i.reg, 255) } else { (i.rm, i.imm as u32) };
    if x == RSP || x == RBP { Seq::None } else { Seq::Masked { x, mask } }
}

/// `addq %gs:0x10000,%reg`
pub fn adds_base(i: &Insn) -> bool {
    i.class == class::ALU && i.op == 0x03 && i.size == 8 && i.gs_absolute() && i.disp == BASE_WORD
}

/// `addq %from,%to`
fn adds(i: &Insn, from: u8, to: u8) -> bool {
    let (source, target) = if i.op == 0x03 { (i.rm, i.reg) } else { (i.reg, i.rm) };
    i.class == class::ALU && matches!(i.op, 0x01 | 0x03) && !i.mem && source == from && target == to
}

/// `movslq (%y,%x,4),%z`
fn loads_entry(i: &Insn, x: u8, y: u8) -> bool {
    let address = i.mem && i.base == y && i.index == x && i.scale == 2 && i.disp == 0;
    let movslq = i.class == class::MOVE_SX && i.prefix & (P_GS | P_67) == 0;
    movslq && address && i.reg != y && i.reg != RSP && i.reg != RBP
}

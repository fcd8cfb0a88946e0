//! Operations of templates that take mips64 more than an instruction.

use super::*;
use crate::hardware::emit::Templates;
use crate::hardware::template::{Condition, MAX_OPERATIONS, Register, mips64};
use arrayvec::ArrayVec;

impl Templates for Mips64 {
    fn register(register: Register) -> Reg {
        mips64::register(register)
    }
    fn and_any(e: &mut Emitter<Self>, rd: Reg, a: Reg, number: i16) {
        if number >= 0 {
            return e.put(andi(rd, a, number as u32));
        }
        e.put(daddiu(T1, ZERO, number.into()));
        e.put(and(rd, a, T1));
    }
    fn pages(e: &mut Emitter<Self>, rd: Reg, number: i16) {
        let value = i32::from(number) << PAGE_BITS;
        e.put(lui(rd, value as u32 >> 16));
        e.put(ori(rd, rd, value as u32 & 0xffff));
    }
    fn compare(e: &mut Emitter<Self>, condition: Condition, a: Reg, b: Reg) -> u32 {
        if matches!(condition, Condition::Less | Condition::Greater) {
            e.put(slt(T1, a, b));
        }
        match condition {
            Condition::Equal => beq(a, b, 0),
            Condition::Unequal => bne(a, b, 0),
            Condition::Less => bne(T1, ZERO, 0),
            Condition::Greater => beq(T1, ZERO, 0),
        }
    }

    /// Each with the operation before which it leads.
    type Skips = ArrayVec<(Label, usize), MAX_OPERATIONS>;
    fn skip(e: &mut Emitter<Self>, skips: &mut Self::Skips, branch: u32, at: usize, count: usize) {
        let branch = e.open_alone(branch);
        skips.push((branch, at + 1 + count));
    }
    fn land(e: &mut Emitter<Self>, skips: &mut Self::Skips, at: usize) {
        skips.retain(|(branch, to)| {
            if *to == at {
                e.join(*branch);
            }
            *to != at
        });
    }
}

//! Operations of templates, of which each is one instruction of rv64.

use super::*;
use crate::hardware::emit::Templates;
use crate::hardware::template::{Condition, Register, riscv64};

impl Templates for Riscv64 {
    fn register(register: Register) -> Reg {
        riscv64::register(register)
    }
    fn and_any(e: &mut Emitter<Self>, rd: Reg, a: Reg, number: i16) {
        e.put(andi(rd, a, number.into()));
    }
    fn pages(e: &mut Emitter<Self>, rd: Reg, number: i16) {
        e.put(lui(rd, i32::from(number) as u32));
    }
    fn compare(_e: &mut Emitter<Self>, condition: Condition, a: Reg, b: Reg) -> u32 {
        match condition {
            Condition::Equal => beq(a, b, 0),
            Condition::Unequal => bne(a, b, 0),
            Condition::Less => blt(a, b, 0),
            Condition::Greater => bge(a, b, 0),
        }
    }

    /// All distances are known.
    type Skips = ();
    fn skip(e: &mut Emitter<Self>, _skips: &mut (), branch: u32, _at: usize, count: usize) {
        e.put(Self::leads(branch, (count as i32 + 1) * 4));
    }
    fn land(_e: &mut Emitter<Self>, _skips: &mut (), _at: usize) {}
}

//! Templates, inlined: an instruction for each operation.

use super::*;
use crate::hardware::template::riscv64::register;
use crate::hardware::template::{Condition, Operation, Register};

impl Emitter<'_> {
    pub(super) fn translate(&mut self, from: u8, letter: u8) {
        let templates = self.c.templates;
        let Some(template) = templates.iter().find(|t| t.letter == letter) else { return };
        let of = register;
        self.put(addi(of(Register::Word), A0 + from, 0));
        if self.base.replace(template.data) != Some(template.data) {
            self.constant(of(Register::Base), template.data);
        }
        self.constant(of(Register::Caller), self.c.caller.asid.into());
        self.constant(of(Register::Callee), self.c.callee.asid.into());
        for operation in &template.operations {
            match *operation {
                Operation::Load { to, at, offset } => self.put(ld(of(to), of(at), offset.into())),
                Operation::Store { from, at, offset } => self.put(sd(of(from), of(at), offset.into())),
                Operation::Add { to, a, b } => self.put(add(of(to), of(a), of(b))),
                Operation::Subtract { to, a, b } => self.put(sub(of(to), of(a), of(b))),
                Operation::AddNumber { to, a, number } => self.put(addi(of(to), of(a), number.into())),
                Operation::AndNumber { to, a, number } => self.put(andi(of(to), of(a), number.into())),
                Operation::Pages { to, number } => self.put(lui(of(to), number as i32 as u32)),
                Operation::ShiftLeft { to, a, by } => self.put(slli(of(to), of(a), by.into())),
                Operation::ShiftRight { to, a, by } => self.put(srli(of(to), of(a), by.into())),
                Operation::Skip { a, condition, b, count } => {
                    self.put(branch(condition, of(a), of(b), (i32::from(count) + 1) * 4));
                }
                Operation::Refuse { a, condition, b } => {
                    self.refuse(branch(condition, of(a), of(b), 0), template.status.into());
                }
            }
        }
        self.put(addi(A0 + from, of(Register::Word), 0));
    }
}

fn branch(condition: Condition, a: Reg, b: Reg, offset: i32) -> u32 {
    match condition {
        Condition::Equal => beq(a, b, offset),
        Condition::Unequal => bne(a, b, offset),
        Condition::Less => blt(a, b, offset),
        Condition::Greater => bge(a, b, offset),
    }
}

//! Templates, inlined: an instruction or two for each operation.

use super::*;
use crate::hardware::template::mips64::register;
use crate::hardware::template::{Condition, MAX_OPERATIONS, Operation, Register};

impl Emitter<'_> {
    pub(super) fn translate(&mut self, from: u8, letter: u8) {
        let templates = self.c.templates;
        let Some(template) = templates.iter().find(|t| t.letter == letter) else { return };
        let of = register;
        self.put(copy(of(Register::Word), A0 + from));
        if self.base.replace(template.data) != Some(template.data) {
            self.constant(of(Register::Base), template.data);
        }
        self.constant(of(Register::Caller), self.c.caller.asid.into());
        self.constant(of(Register::Callee), self.c.callee.asid.into());
        // Where skips lead: before which operation.
        let mut skips: ArrayVec<(Label, usize), MAX_OPERATIONS> = ArrayVec::new();
        for (at, operation) in template.operations.iter().enumerate() {
            self.land(&mut skips, at);
            match *operation {
                Operation::Load { to, at, offset } => self.put(ld(of(to), of(at), offset.into())),
                Operation::Store { from, at, offset } => self.put(sd(of(from), of(at), offset.into())),
                Operation::Add { to, a, b } => self.put(daddu(of(to), of(a), of(b))),
                Operation::Subtract { to, a, b } => self.put(dsubu(of(to), of(a), of(b))),
                Operation::AddNumber { to, a, number } => self.put(daddiu(of(to), of(a), number.into())),
                Operation::AndNumber { to, a, number: number @ 0.. } => {
                    self.put(andi(of(to), of(a), number as u32));
                }
                Operation::AndNumber { to, a, number } => {
                    self.put(daddiu(T1, ZERO, number.into()));
                    self.put(and(of(to), of(a), T1));
                }
                Operation::Pages { to, number } => {
                    let value = i32::from(number) << PAGE_BITS;
                    self.put(lui(of(to), value as u32 >> 16));
                    self.put(ori(of(to), of(to), value as u32 & 0xffff));
                }
                Operation::ShiftLeft { to, a, by } => self.put(dsll(of(to), of(a), by.into())),
                Operation::ShiftRight { to, a, by } => self.put(dsrl(of(to), of(a), by.into())),
                Operation::Skip { a, condition, b, count } => {
                    let branch = self.compare(condition, of(a), of(b));
                    let branch = self.open_alone(branch);
                    skips.push((branch, at + 1 + usize::from(count)));
                }
                Operation::Refuse { a, condition, b } => {
                    let branch = self.compare(condition, of(a), of(b));
                    self.refuse(branch, template.status.into());
                    self.put(nop());
                }
            }
        }
        self.land(&mut skips, template.operations.len());
        self.put(copy(A0 + from, of(Register::Word)));
    }

    /// Skips to before this operation lead here.
    fn land(&mut self, skips: &mut ArrayVec<(Label, usize), MAX_OPERATIONS>, at: usize) {
        skips.retain(|(branch, to)| {
            if *to == at {
                self.join(*branch);
            }
            *to != at
        });
    }

    /// The branch that is taken if it is so.
    fn compare(&mut self, condition: Condition, a: Reg, b: Reg) -> u32 {
        match condition {
            Condition::Equal => beq(a, b, 0),
            Condition::Unequal => bne(a, b, 0),
            Condition::Less => {
                self.put(slt(T1, a, b));
                bne(T1, ZERO, 0)
            }
            Condition::Greater => {
                self.put(slt(T1, a, b));
                beq(T1, ZERO, 0)
            }
        }
    }
}

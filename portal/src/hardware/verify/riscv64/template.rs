//! Templates in a portal: exactly the registered operations, which were proven to do no more than they may,
//! with what they are promised in their registers.

use super::*;
use crate::hardware::template::riscv64::register;
use crate::hardware::template::{Condition, Operation, Register, Template};
use crate::isa::riscv64::decode::{Cond, Width};

impl<'a> Verifier<'a, Riscv64> {
    /// The next template, if it begins here.
    pub(super) fn begins(&self, word: u32, s: &State) -> Option<&'a Template> {
        let (from, template) = *self.templates.get(s.translated)?;
        let promised = s.get(register(Register::Word)) == own(reg::A0 + usize::from(from))
            && self.is(s.get(register(Register::Base)), template.data)
            && self.is(s.get(register(Register::Caller)), Hole::Caller.symbol())
            && self.is(s.get(register(Register::Callee)), Hole::Callee.symbol());
        let same = meant(decode(word)?, *template.operations.first()?).is_some();
        (promised && same && !self.returning && s.refusing == 0).then_some(template)
    }

    /// Reads it; returns the offset behind it.
    #[inline(never)]
    pub(super) fn template(
        &mut self,
        at: usize,
        template: &Template,
        s: &mut State,
        ways: &mut Ways,
    ) -> Result<usize, Refusal> {
        for (i, operation) in template.operations.iter().enumerate() {
            let at = at + i * 4;
            let fail = |reason| Refusal { at, reason };
            let word = *self.words.get(at / 4).ok_or(fail(Reason::Endless))?;
            let meant = decode(word).and_then(|insn| meant(insn, *operation));
            if let Some(distance) = meant.ok_or(fail(Reason::Template))? {
                self.refuse(at, s, at + distance, template.status, ways)
                    .map_err(|r| r.unwrap_or(fail(Reason::Branch)))?;
            }
        }
        for written in [Register::Caller, Register::Callee, Register::A, Register::B] {
            s.set(register(written), UNKNOWN);
        }
        s.set(register(Register::Word), Value(Kind::Translated, s.translated as i32));
        s.translated += 1;
        Ok(at + template.operations.len() * 4)
    }
}

/// Whether the instruction does what the operation says; and the distance to the way out, if that is a
/// refusal.
fn meant(insn: Insn, operation: Operation) -> Option<Option<usize>> {
    let x = register;
    let plain = match operation {
        Operation::Load { to, at, offset } => {
            Insn::Load { width: Width::D, rd: x(to), rs1: x(at), imm: offset.into() }
        }
        Operation::Store { from, at, offset } => {
            Insn::Store { width: Width::D, rs2: x(from), rs1: x(at), imm: offset.into() }
        }
        Operation::Add { to, a, b } => Insn::Alu { op: Alu::Add, rd: x(to), rs1: x(a), rs2: x(b) },
        Operation::Subtract { to, a, b } => Insn::Alu { op: Alu::Sub, rd: x(to), rs1: x(a), rs2: x(b) },
        Operation::AddNumber { to, a, number } => number_by(Alu::Add, to, a, number.into()),
        Operation::AndNumber { to, a, number } => number_by(Alu::And, to, a, number.into()),
        Operation::ShiftLeft { to, a, by } => number_by(Alu::Sll, to, a, by.into()),
        Operation::ShiftRight { to, a, by } => number_by(Alu::Srl, to, a, by.into()),
        Operation::Pages { to, number } => Insn::Lui { rd: x(to), imm: i64::from(number) << 12 },
        Operation::Skip { a, condition, b, count } => {
            let imm = (i64::from(count) + 1) * 4;
            Insn::Branch { cond: comparison(condition), rs1: x(a), rs2: x(b), imm }
        }
        Operation::Refuse { a, condition, b } => {
            let Insn::Branch { cond, rs1, rs2, imm } = insn else { return None };
            let same = (cond, rs1, rs2) == (comparison(condition), x(a), x(b));
            return (same && imm > 0 && imm % 4 == 0).then_some(Some(imm as usize));
        }
    };
    (insn == plain).then_some(None)
}

fn number_by(op: Alu, to: Register, a: Register, imm: i64) -> Insn {
    Insn::AluImm { op, rd: register(to), rs1: register(a), imm }
}

const fn comparison(condition: Condition) -> Cond {
    match condition {
        Condition::Equal => Cond::Eq,
        Condition::Unequal => Cond::Ne,
        Condition::Less => Cond::Lt,
        Condition::Greater => Cond::Ge,
    }
}

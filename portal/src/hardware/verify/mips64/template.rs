//! Templates in a portal: exactly the registered operations, which were proven to do no more than they may,
//! with what they are promised in their registers.

use super::*;
use crate::hardware::template::mips64::register;
use crate::hardware::template::{Condition, Operation, Register, Template};
use arrayvec::ArrayVec;

/// What an operation is: some instructions, and a branch with what stands behind it, if it leads away.
struct Meant {
    plain: ArrayVec<Insn, 2>,
    branch: Option<(decode::Cond, u8, u8)>,
}

impl<'a> Verifier<'a, Mips64> {
    /// The next template, if it begins here.
    pub(super) fn begins(&self, word: u32, s: &State) -> Option<&'a Template> {
        let (from, template) = *self.templates.get(s.translated)?;
        let promised = s.get(register(Register::Word)) == own(reg::ALL.argument + usize::from(from))
            && self.is(s.get(register(Register::Base)), template.data)
            && self.is(s.get(register(Register::Caller)), Hole::Caller.symbol())
            && self.is(s.get(register(Register::Callee)), Hole::Callee.symbol());
        let first = meant(*template.operations.first()?);
        let same = match (first.plain.first(), first.branch, decode(word)?) {
            (Some(plain), _, insn) => insn == *plain,
            (None, Some((cond, rs, rt)), Insn::Branch { cond: c, rs: a, rt: b, .. }) => {
                (cond, rs, rt) == (c, a, b)
            }
            _ => false,
        };
        (promised && same && !self.returning && s.refusing == 0).then_some(template)
    }

    /// Reads it; returns the offset behind it.
    #[inline(never)]
    pub(super) fn template(
        &mut self,
        mut at: usize,
        template: &Template,
        s: &mut State,
        ways: &mut Ways,
    ) -> Result<usize, Refusal> {
        for (i, operation) in template.operations.iter().enumerate() {
            let Meant { plain, branch } = meant(*operation);
            for insn in plain {
                if self.at(at)? != insn {
                    return Err(Refusal { at, reason: Reason::Template });
                }
                at += 4;
            }
            if let Some(wanted) = branch {
                self.leads_away(at, (template, i), wanted, s, ways)?;
                at += 8;
            }
        }
        for written in [Register::Caller, Register::Callee, Register::A, Register::B] {
            s.set(register(written), UNKNOWN);
        }
        s.set(reg::T1, UNKNOWN);
        s.set(register(Register::Word), Value(Kind::Translated, s.translated as i32));
        s.translated += 1;
        Ok(at)
    }

    fn at(&self, at: usize) -> Result<Insn, Refusal> {
        let word = self.words.get(at / 4).ok_or(Refusal { at, reason: Reason::Endless })?;
        decode(*word).ok_or(Refusal { at, reason: Reason::NotAllowed })
    }

    /// The branch at this offset is the operation's, with nothing in its shadow.
    fn leads_away(
        &mut self,
        at: usize,
        (template, i): (&Template, usize),
        wanted: (decode::Cond, u8, u8),
        s: &State,
        ways: &mut Ways,
    ) -> Result<(), Refusal> {
        let fail = |reason| Refusal { at, reason };
        let Insn::Branch { cond, rs, rt, imm } = self.at(at)? else { return Err(fail(Reason::Template)) };
        if (cond, rs, rt) != wanted || self.at(at + 4)? != Insn::Nop {
            return Err(fail(Reason::Template));
        }
        if let Operation::Skip { count, .. } = template.operations[i] {
            let skipped = template.operations.iter().skip(i + 1).take(count.into());
            let distance = 8 + skipped.map(|operation| length(*operation)).sum::<usize>();
            return if imm == distance as i64 { Ok(()) } else { Err(fail(Reason::Template)) };
        }
        let target =
            usize::try_from(imm).ok().filter(|distance| *distance >= 8).map(|distance| at + distance);
        let target = target.ok_or(fail(Reason::Branch))?;
        self.refuse(at, s, target, template.status, ways).map_err(|r| r.unwrap_or(fail(Reason::Branch)))
    }
}

/// In bytes.
fn length(operation: Operation) -> usize {
    let Meant { plain, branch } = meant(operation);
    plain.len() * 4 + if branch.is_some() { 8 } else { 0 }
}

fn meant(operation: Operation) -> Meant {
    let x = register;
    let one = |insn: Insn| Meant { plain: ArrayVec::from_iter([insn]), branch: None };
    match operation {
        Operation::Load { to, at, offset } => {
            one(Insn::Load { width: Width::D, rt: x(to), base: x(at), imm: offset.into() })
        }
        Operation::Store { from, at, offset } => {
            one(Insn::Store { width: Width::D, rt: x(from), base: x(at), imm: offset.into() })
        }
        Operation::Add { to, a, b } => one(three(Alu::Daddu, to, a, b)),
        Operation::Subtract { to, a, b } => one(three(Alu::Dsubu, to, a, b)),
        Operation::AddNumber { to, a, number } => {
            one(Insn::AluImm { op: Alu::Daddu, rt: x(to), rs: x(a), imm: number.into() })
        }
        Operation::AndNumber { to, a, number: number @ 0.. } => {
            one(Insn::AluImm { op: Alu::And, rt: x(to), rs: x(a), imm: number.into() })
        }
        Operation::AndNumber { to, a, number } => two(
            Insn::AluImm { op: Alu::Daddu, rt: reg::T1, rs: 0, imm: number.into() },
            Insn::Alu { op: Alu::And, rd: x(to), rs: x(a), rt: reg::T1 },
        ),
        Operation::Pages { to, number } => {
            let value = i64::from(number) * map::PAGE as i64;
            two(
                Insn::Lui { rt: x(to), imm: value & !0xffff },
                Insn::AluImm { op: Alu::Or, rt: x(to), rs: x(to), imm: value & 0xffff },
            )
        }
        Operation::ShiftLeft { to, a, by } => one(Insn::Shift { op: Shift::Dsll, rd: x(to), rt: x(a), by }),
        Operation::ShiftRight { to, a, by } => one(Insn::Shift { op: Shift::Dsrl, rd: x(to), rt: x(a), by }),
        Operation::Skip { a, condition, b, .. } | Operation::Refuse { a, condition, b } => {
            compared(a, condition, b)
        }
    }
}

fn two(first: Insn, second: Insn) -> Meant {
    Meant { plain: ArrayVec::from([first, second]), branch: None }
}

fn three(op: Alu, to: Register, a: Register, b: Register) -> Insn {
    Insn::Alu { op, rd: register(to), rs: register(a), rt: register(b) }
}

fn compared(a: Register, condition: Condition, b: Register) -> Meant {
    let less =
        || ArrayVec::from_iter([Insn::Alu { op: Alu::Slt, rd: reg::T1, rs: register(a), rt: register(b) }]);
    let (plain, branch) = match condition {
        Condition::Equal => (ArrayVec::new(), (decode::Cond::Eq, register(a), register(b))),
        Condition::Unequal => (ArrayVec::new(), (decode::Cond::Ne, register(a), register(b))),
        Condition::Less => (less(), (decode::Cond::Ne, reg::T1, 0)),
        Condition::Greater => (less(), (decode::Cond::Eq, reg::T1, 0)),
    };
    Meant { plain, branch: Some(branch) }
}

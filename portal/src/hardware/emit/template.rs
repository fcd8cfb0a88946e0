//! Templates, inlined: an instruction or a few for each operation.
//!
//! Problem: a server's operations become instructions, and a skip over operations a branch over instructions.
//! Strategy: one instruction for each operation, where processors have it. They say themselves how they make
//! the others ([`Templates`]), and so it is they who complete skips.
//!
//! * Operations keep their order, and nothing else comes between them.

use super::*;
use crate::hardware::template::{Condition, Operation, Register};

/// What a processor has of its own in templates.
pub(super) trait Templates: Instructions {
    fn register(register: Register) -> Reg;
    /// Any number that an operation can name, negative too.
    fn and_any(e: &mut Emitter<Self>, rd: Reg, a: Reg, number: i16);
    /// So many pages.
    fn pages(e: &mut Emitter<Self>, rd: Reg, number: i16);
    /// The branch that is taken if it is so.
    fn compare(e: &mut Emitter<Self>, condition: Condition, a: Reg, b: Reg) -> u32;

    /// Skips that lead further than to here.
    type Skips: Default;
    /// The branch leads over so many operations behind operation `at`.
    fn skip(e: &mut Emitter<Self>, skips: &mut Self::Skips, branch: u32, at: usize, count: usize);
    /// Skips to before operation `at` lead here.
    fn land(e: &mut Emitter<Self>, skips: &mut Self::Skips, at: usize);
}

impl<A: Templates> Emitter<'_, A> {
    pub(super) fn translate(&mut self, from: u8, letter: u8) {
        let templates = self.c.templates;
        let Some(template) = templates.iter().find(|t| t.letter == letter) else { return };
        let of = A::register;
        self.put(A::copy(of(Register::Word), A::ARGUMENT + from));
        if self.base.replace(template.data) != Some(template.data) {
            self.constant(of(Register::Base), template.data);
        }
        self.hole(of(Register::Caller), Hole::Caller);
        self.hole(of(Register::Callee), Hole::Callee);
        let mut skips = A::Skips::default();
        for (at, operation) in template.operations.iter().enumerate() {
            A::land(self, &mut skips, at);
            match *operation {
                Operation::Load { to, at, offset } => self.put(A::load(of(to), of(at), offset.into())),
                Operation::Store { from, at, offset } => self.put(A::store(of(from), of(at), offset.into())),
                Operation::Add { to, a, b } => self.put(A::add(of(to), of(a), of(b))),
                Operation::Subtract { to, a, b } => self.put(A::subtract(of(to), of(a), of(b))),
                Operation::AddNumber { to, a, number } => {
                    self.put(A::add_number(of(to), of(a), number.into()));
                }
                Operation::AndNumber { to, a, number } => A::and_any(self, of(to), of(a), number),
                Operation::Pages { to, number } => A::pages(self, of(to), number),
                Operation::ShiftLeft { to, a, by } => self.put(A::shift_left(of(to), of(a), by.into())),
                Operation::ShiftRight { to, a, by } => self.put(A::shift_right(of(to), of(a), by.into())),
                Operation::Skip { a, condition, b, count } => {
                    let branch = A::compare(self, condition, of(a), of(b));
                    A::skip(self, &mut skips, branch, at, count.into());
                }
                Operation::Refuse { a, condition, b } => {
                    let branch = A::compare(self, condition, of(a), of(b));
                    self.refuse(branch, template.status.into());
                    self.shadow();
                }
            }
        }
        A::land(self, &mut skips, template.operations.len());
        self.put(A::copy(A::ARGUMENT + from, of(Register::Word)));
    }
}

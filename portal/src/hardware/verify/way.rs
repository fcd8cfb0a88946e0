//! Ways that branch off: what a branch tests, what going on behind it teaches, and where it leads.
//!
//! In the call leg a branch leads to a slow way behind the leg's exit, to which nothing else leads but
//! branches of the same kind. Each is read at once with a copy of the state; the way out of a refused call,
//! to which many branches lead, is read once, with nothing known but what every one of them guarantees. One
//! kind alone skips code of the leg itself ([`Verifier::unless_borrowed`]). In the return leg, where `g` has
//! to choose, a branch skips code, and all that follows is read for both ways: later, with what is known
//! there.

use super::leg::Verifier;
use super::machine::Machine;
use super::state::{State, Words, done};
use super::value::*;
use super::window::fact;
use super::{Reason, Refusal};
use crate::hardware::Shape;
use crate::hardware::hole::Hole;
use arrayvec::ArrayVec;
use pebble_abi::{status, sys};

/// When a branch is taken, by its two registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cond {
    Eq,
    Ne,
    Lt,
    Ge,
    Ltu,
    Geu,
}

/// What not taking a branch says of the tested register and of the rest, and what taking it says.
#[derive(Clone, Copy)]
pub(super) struct Test {
    pub(super) value: Value,
    pub(super) known: u64,
    pub(super) taken: u64,
    /// It leads back to the caller, with this status code; 0: it does not.
    pub(super) refuses: u16,
    /// It leads on by this table entry; 0: by none.
    pub(super) leads: usize,
}

impl Test {
    pub(super) const fn new(value: Value) -> Self {
        Test { value, known: 0, taken: 0, refuses: 0, leads: 0 }
    }

    pub(super) const fn refusing(value: Value, code: u64) -> Self {
        Test { refuses: code as u16, ..Test::new(value) }
    }
}

/// A branch: the register that it tests, what it teaches.
struct Branch {
    target: usize,
    x: u8,
    value: Value,
    done: u16,
    /// Taking it says that the register is 0.
    else_zero: bool,
    test: Test,
}

/// Ways that branched off the call leg: first offset, offset behind.
#[derive(Default)]
pub(super) struct Ways(ArrayVec<(usize, usize), MAX_WAYS>);

/// No room (or no late call), no stack or slot, and one refusal for each status.
const MAX_WAYS: usize = 5;
/// Branches on the way to an instruction, all taken: semaphore, then room or stack; the choices of two `g`.
pub(super) const MAX_DEPTH: usize = 2;
pub(super) const MAX_CHOICES: usize = 10;

impl Ways {
    /// The offset behind the ways that follow one another from `at`, if they are all.
    pub(super) fn behind(&mut self, mut at: usize) -> Result<usize, Refusal> {
        let fail = |at| Err(Refusal { at, reason: Reason::Unreachable });
        while !self.0.is_empty() {
            let Some(next) = self.0.iter().position(|(start, _)| *start == at) else { return fail(at) };
            at = self.0.swap_remove(next).1;
        }
        Ok(at)
    }

    fn add(&mut self, start: usize, end: usize) -> Result<(), Reason> {
        match self.0.iter().find(|way| way.0 == start) {
            Some(way) if way.1 == end => Ok(()),
            Some(_) => Err(Reason::Branch),
            None => self.0.try_push((start, end)).map_err(|_| Reason::Branch),
        }
    }
}

impl<M: Machine> Verifier<'_, M> {
    /// A branch: reads the way that it leads to, and leaves what not taking it says. Returns where to go on.
    #[inline(never)]
    pub(super) fn fork(
        &mut self,
        at: usize,
        word: u32,
        s: &mut State,
        depth: usize,
        ways: &mut Ways,
    ) -> Result<usize, Refusal> {
        let fail = |reason| Refusal { at, reason };
        let Some((cond, (rs1, rs2), target)) = M::branch(word, at) else {
            return Err(fail(Reason::Branch));
        };
        if self.returning && (cond, rs1, rs2) == (Cond::Eq, 0, 0) && !self.windows.is_empty() {
            M::shadow(self, at, s)?;
            return Ok(target);
        }
        if depth < MAX_DEPTH && rs2 == 0 && self.unless_borrowed(at, (cond, rs1, target), s, ways)? {
            return Ok(target);
        }
        let b = self.branch(s, cond, (rs1, rs2), target).ok_or(fail(Reason::Branch))?;
        if b.test.refuses != 0 {
            self.refuse(at, s, target, b.test.refuses, ways)
                .map_err(|r| r.unwrap_or(fail(Reason::Branch)))?;
        } else {
            if depth >= if self.returning { MAX_CHOICES } else { MAX_DEPTH } {
                return Err(fail(Reason::Branch));
            }
            let mut taken = *s;
            taken.known |= b.test.taken;
            taken.leads = b.test.leads as i32;
            if b.else_zero {
                taken.clear(b.x);
            }
            M::shadow(self, at, &mut taken)?;
            if self.returning {
                let choice = (b.target, depth + 1, taken);
                self.room.choices.try_push(choice).map_err(|_| fail(Reason::Branch))?;
            } else {
                let end = self.leg(b.target, &mut taken, depth + 1)?;
                ways.add(b.target, end).map_err(fail)?;
            }
        }
        s.set(b.x, b.value);
        s.done |= b.done;
        s.known |= b.test.known;
        if b.test.known == fact::STACK {
            M::found_stack(s);
        }
        Ok(at + 4)
    }

    /// The few tests that portal code makes.
    fn branch(&self, s: &State, cond: Cond, (rs1, rs2): (u8, u8), target: usize) -> Option<Branch> {
        let (a, b) = (s.get(rs1), s.get(rs2));
        let test = Test::new(a);
        let known =
            |x, value, done| Some(Branch { target, x, value, done, else_zero: cond == Cond::Eq, test });
        let raises = |x, value, done| {
            let test = Test { leads: sys::EXCEPTION, ..test };
            Some(Branch { target, x, value, done, else_zero: cond == Cond::Eq, test })
        };
        let other =
            |test: Test| Some(Branch { target, x: rs1, value: test.value, done: 0, else_zero: false, test });
        if self.returning {
            return match (cond, a, b) {
                (Cond::Ne, Value(Kind::Status, 0), ZERO) => {
                    other(Test { known: fact::CALM, taken: fact::BLAMED, ..test })
                }
                // A window before has blamed the callee.
                (Cond::Ne, Value(Kind::Pool, _), ZERO) if usize::from(rs1) == M::REGISTERS.status => {
                    other(test)
                }
                (_, _, ZERO) => other(self.window_branch(s, cond, a)?),
                _ => None,
            };
        }
        match (cond, a, b) {
            (_, Value(Kind::Limit, _), ZERO) if cond == M::FULL && s.stored == Words::NONE => {
                raises(rs1, UNKNOWN, done::ROOM)
            }
            (Cond::Eq, Value(Kind::LastQuarter, _), ZERO)
                if self.c.caller.trusted && s.stored == Words::NONE =>
            {
                let test = Test::refusing(UNKNOWN, status::FULL);
                Some(Branch { target, x: rs1, value: UNKNOWN, done: done::ROOM, else_zero: false, test })
            }
            (_, Value(Kind::Late, _), ZERO)
                if cond == M::TIMELY && self.shape == Shape::Leave(status::TIMEOUT as u16) =>
            {
                let test = Test { leads: sys::EXCEPTION, ..Test::new(UNKNOWN) };
                Some(Branch { target, x: rs1, value: UNKNOWN, done: done::LATE, else_zero: false, test })
            }
            (Cond::Ltu, Value(Kind::HeadNext, _), _) if self.is(b, Hole::Queue.symbol()) => {
                let value = Value(Kind::DescNext, 0);
                other(Test { value, known: fact::STACK, leads: sys::NO_STACK, ..test })
            }
            (Cond::Ne, Value(Kind::NoStack, _), ZERO) => {
                other(Test { value: UNKNOWN, known: fact::STACK, leads: sys::NO_STACK, ..test })
            }
            (_, cause, ZERO) if self.shape == Shape::Interrupt && (cond, cause) == M::NO_INTERRUPT => {
                raises(rs1, cause, done::INTERRUPT)
            }
            (Cond::Ge, ZERO, Value(Kind::SemRead, _)) if matches!(self.shape, Shape::Wait(_)) => {
                known(rs2, Value(Kind::SemFree, -1), 0)
            }
            (Cond::Lt, Value(Kind::SemRead, _), ZERO) if matches!(self.shape, Shape::Signal(_)) => {
                known(rs1, Value(Kind::SemFree, 1), 0)
            }
            (_, _, ZERO) => other(self.window_branch(s, cond, a)?),
            _ => None,
        }
    }

    /// A branch to the way out with this status code, which is read when it is first met. `None` in the
    /// error: it may not be taken here.
    pub(super) fn refuse(
        &mut self,
        at: usize,
        s: &State,
        target: usize,
        code: u16,
        ways: &mut Ways,
    ) -> Result<(), Option<Refusal>> {
        let (kept, own) = (M::REGISTERS.kept(), M::REGISTERS.code);
        let mut there = None;
        let s = if M::SHADOW {
            let there = there.insert(*s);
            M::shadow(self, at, there).map_err(Some)?;
            there
        } else {
            s
        };
        if self.returning
            || s.refusing != 0
            || !self.untouched(s)
            || s.touched() & kept != 0
            || s.regs.get(own) != Value(Kind::Code, 0)
        {
            return Err(None);
        }
        if let Some(way) = self.refusals.iter().find(|way| way.0 == target) {
            return if way.1 == code { Ok(()) } else { Err(None) };
        }
        let mut out = *s;
        for x in (1..32).filter(|x| (kept | 1 << own) >> x & 1 == 0) {
            out.set(x, UNKNOWN);
        }
        out.refusing = code;
        let end = self.leg(target, &mut out, MAX_DEPTH).map_err(Some)?;
        let _ = self.refusals.try_push((target, code));
        ways.add(target, end).map_err(|_| None)
    }
}

//! The translation buffer has no entry for a window any more: looked for, and overwritten if it is there.
//!
//! Between the look and the write nothing else is done, so this is one sequence of instructions: it begins
//! with `tlbp`, which is nowhere else, and nothing leads into it, as it holds what is allowed nowhere else.
//! What it writes is an entry for an address that no window has, and that no user mode reaches. Which address
//! space the processor is in afterwards is not known.

use super::super::slot::{all, at as of_word};
use super::super::window::{fact, is_long};
use super::*;
use crate::hardware::ir::Lent;
use crate::spec::WindowKind;

const X: u8 = reg::T2;
const SEQUENCE: [Insn; 11] = [
    Insn::Tlbp,
    Insn::Ehb,
    Insn::Mfc0 { rt: X, from: c0::INDEX },
    // Nothing is there.
    Insn::Branch { cond: decode::Cond::Ltz, rs: X, rt: 0, imm: 8 * 4 },
    Insn::Alu { op: Alu::Nor, rd: X, rs: X, rt: 0 },
    Insn::Shift { op: Shift::Dsll, rd: X, rt: X, by: 13 },
    Insn::Dmtc0 { rt: X, to: c0::ENTRY_HI },
    Insn::Dmtc0 { rt: 0, to: c0::ENTRY_LO0 },
    Insn::Dmtc0 { rt: 0, to: c0::ENTRY_LO1 },
    Insn::Ehb,
    Insn::Tlbwi,
];
pub(super) const LENGTH: usize = SEQUENCE.len();

/// How deep it is behind a branch that is taken for what nobody has touched: nothing branches there.
const THROUGH: usize = usize::MAX;

impl V<'_> {
    /// The domain whose translations this leg makes forgotten.
    pub(super) fn flushing(&self) -> u64 {
        if self.returning { Hole::Callee.symbol() } else { Hole::Caller.symbol() }
    }

    /// Which windows are forgotten when this one is, or (`None`) all of the domain: those that are gone from
    /// its tables.
    pub(super) fn flushed(&self, s: &State, window: Option<i32>) -> u64 {
        let mut did = 0;
        for n in 0..self.windows.len() as i32 {
            let lent = self.windows[n as usize];
            let cleared = s.knows(fact::of(n, all(lent, fact::CLEARED)));
            let nothing = s.knows(fact::of(n, fact::NOTHING | of_word(fact::CLEARED, 0)));
            if (cleared || nothing) && window.is_none_or(|w| w == n && !is_long(lent)) {
                did |= fact::of(n, fact::FLUSHED);
            }
        }
        did
    }

    /// The sequence is here, and looks for what `EntryHi` names. What is not touched is not looked for.
    pub(super) fn forget(&self, at: usize, s: &mut State, depth: usize) -> Result<(), Reason> {
        let words = self.words.get(at / 4..at / 4 + LENGTH).ok_or(Reason::NotAllowed)?;
        if !words.iter().zip(SEQUENCE).all(|(word, insn)| decode(*word) == Some(insn)) {
            return Err(Reason::NotAllowed);
        }
        settled(s)?;
        let Value(Kind::Probe, n) = s.mode else { return Err(Reason::AddressSpace) };
        let asks = self.returning && self.window(n).is_some_and(shown);
        if asks != (depth == THROUGH) {
            return Err(Reason::Window);
        }
        s.known |= self.flushed(s, Some(n));
        s.mode = UNKNOWN;
        s.set(X, UNKNOWN);
        Ok(())
    }

    /// A branch over what forgets a window's page, taken if nobody has touched it: the translation buffer
    /// never had it. What is behind the branch is done on both ways.
    pub(super) fn unless_untouched(
        &mut self,
        (at, depth): (usize, usize),
        x: u8,
        distance: i64,
        s: &mut State,
        ways: &mut Ways,
    ) -> Result<usize, Refusal> {
        let fail = Refusal { at, reason: Reason::Branch };
        let Value(Kind::Given, n) = s.get(x) else { return Err(fail) };
        if depth == THROUGH || distance < 12 || !self.window(n).is_some_and(shown) {
            return Err(fail);
        }
        Mips64::shadow(self, at, s)?;
        s.mode = UNKNOWN;
        let (target, mut through) = (at + distance as usize, *s);
        let left = Mips64::straight(self, at + 8, target, &mut through, THROUGH, ways)?.is_some();
        through.done = through.done & !done::PENDING | s.done & done::PENDING;
        let forgets = through.known & !s.known;
        let flushed = fact::of(n, fact::FLUSHED);
        if left || forgets != flushed || !through.differs_in_registers_alone(s) {
            return Err(fail);
        }
        for x in 1..32 {
            if through.get(x) != s.get(x) {
                s.set(x, UNKNOWN);
            }
        }
        s.known |= forgets;
        Ok(target)
    }
}

/// Whether it is a page that says if it was touched.
fn shown(lent: Lent) -> bool {
    !is_long(lent) && !matches!(lent.window, WindowKind::Get | WindowKind::Tear)
}

//! Windows: what the verifier knows of addresses, page table entries and their parts.
//!
//! The number in a [`Value`] of these kinds is the window's. An address becomes that of a table entry only
//! once the tests have shown that the word lies where such a window may lie, and that the level above is a
//! table; an entry is fit to be shown only once it was tested for rights and marks. The tests are branches to
//! the way out, so what they teach holds from there on ([`fact`]). What is borrowed is lent on by the thread
//! that has it alone: a branch over the instructions that look after that is taken for what is not borrowed,
//! and both ways come to the same ([`Verifier::unless_borrowed`]). Slots and what is stored where:
//! [`super::slot`].

use super::leg::Verifier;
use super::machine::Machine;
use super::slot::at;
use super::state::State;
use super::value::*;
use super::way::{Cond, MAX_DEPTH, Test, Ways};
use super::{Reason, Refusal};
use crate::hardware::ir::Lent;
use crate::spec::WindowKind;
use pebble_abi::{map, status};

/// What is known, as bits of [`State::known`]: those of a window, shifted by [`fact::of`], and those of
/// slots.
pub(super) mod fact {
    pub const RANGE: u64 = 1;
    /// Exact start of a buffer; above the image's start.
    pub const START: u64 = 1 << 1;
    pub const POINTER: u64 = 1 << 2;
    /// Tested for rights and marks; of a buffer, the last entry.
    pub const LENDABLE: u64 = 1 << 3;
    /// The entry behind a buffer's last is empty.
    pub const END: u64 = 1 << 4;
    /// The goal of `g` is empty, or a slot that waits.
    pub const EMPTY: u64 = 1 << 5;
    /// Shown in the slot: entry, twin.
    pub const SHOWN: u64 = 3 << 6;
    /// The caller's entry and twin are cleared; at the return, those in the slot.
    pub const CLEARED: u64 = 3 << 8;
    pub const FLUSHED: u64 = 1 << 10;
    /// The descriptor says that a call holds the slot; at the return, that none does.
    pub const HELD: u64 = 1 << 11;
    /// At the return: the slot's descriptor leads to the queue's head; it is the head.
    pub const LINKED: u64 = 1 << 12;
    pub const GIVEN: u64 = 1 << 13;
    /// `g`: the callee has given what it must; it has not; it has given nothing; it keeps something else.
    pub const GOOD: u64 = 1 << 14;
    pub const BAD: u64 = 1 << 15;
    pub const NOTHING: u64 = 1 << 16;
    pub const KEPT: u64 = 1 << 17;
    /// Entry, twin are in the caller's place.
    pub const MOVED: u64 = 3 << 18;
    /// Not what the first window tears.
    pub const APART: u64 = 1 << 47;

    pub const fn of(window: i32, facts: u64) -> u64 {
        facts << (window * 20)
    }

    /// A first, a second free slot is there: of pages, shifted by two for buffers.
    pub const FIRST: u64 = 1 << 40;
    pub const SECOND: u64 = 1 << 41;
    /// The leaf, the level-1 entry is one that the caller has borrowed; the running thread holds the slot of
    /// a page, of a buffer.
    pub const fn borrowed(of: i32) -> u64 {
        1 << (48 + of)
    }
    pub const fn held(of: i32) -> u64 {
        1 << (52 + of)
    }
    /// There is a free stack.
    pub const STACK: u64 = 1 << 44;
    /// The status is 0; it is not.
    pub const CALM: u64 = 1 << 45;
    pub const BLAMED: u64 = 1 << 46;
}

/// The address of what moves with a window: of a page, its leaf; of a buffer, the entry of its table.
pub(super) fn moves(lent: Lent) -> Kind {
    if is_long(lent) { Kind::TableWord } else { Kind::Leaf }
}

pub(super) const fn is_long(lent: Lent) -> bool {
    lent.pages > 1
}

/// Whether a window's level-1 entry is meant, and a buffer's slot; not its leaf, and a page's slot.
pub(super) const fn is_upper(n: i32) -> bool {
    n >> 1 == 1
}

/// A window, and its leaf (0) or its level-1 entry (1).
pub(super) const fn at_level(n: i32, level: i32) -> i32 {
    n & 1 | level << 1
}

impl<M: Machine> Verifier<'_, M> {
    pub(super) fn window(&self, n: i32) -> Option<Lent> {
        self.windows.get(n as usize).copied()
    }

    pub(super) fn located(&self, s: &State, n: i32) -> bool {
        let Some(lent) = self.window(n) else { return false };
        let start = is_long(lent) || matches!(lent.window, WindowKind::Open | WindowKind::Tear);
        s.knows(fact::of(n, fact::RANGE | if start { fact::START } else { 0 }))
    }

    /// Two windows of one kind that tear: they must not tear the same.
    pub(super) fn tears_twice(&self) -> bool {
        match self.windows.as_slice() {
            [a, b] => {
                a.window == WindowKind::Tear && b.window == WindowKind::Tear && is_long(*a) == is_long(*b)
            }
            _ => false,
        }
    }

    pub(super) fn gets(&self, n: i32) -> bool {
        self.window(n).is_some_and(|lent| lent.window == WindowKind::Get)
    }

    pub(super) fn windows_long(&self, n: i32) -> bool {
        self.window(n).is_some_and(is_long)
    }

    /// What lies behind an address of these kinds.
    #[inline(never)]
    pub(super) fn window_load(&self, s: &State, base: Value, imm: i64) -> Option<Value> {
        let Value(kind, n) = base;
        if matches!(kind, Kind::Slot | Kind::SlotEntry) {
            return self.slot_load(s, base, imm);
        }
        if kind == Kind::HolderBase {
            let first = if is_upper(n) { map::WINDOW_BUFFER_DESC } else { map::WINDOW_PAGE_DESC } as i64;
            // Only slots hold what is borrowed, and they have descriptors.
            let there = imm == first + map::WINDOW_HOLDER as i64 && s.knows(fact::borrowed(n));
            return there.then_some(Value(Kind::Holder, n));
        }
        let lent = self.window(n)?;
        let (long, reads) = (is_long(lent), lent.window == WindowKind::Read);
        let untouched = !s.knows(fact::of(n, at(fact::CLEARED, imm)));
        // Two windows may name one place: the second looks when the first has moved in.
        let settled = |m| {
            [fact::MOVED & !(fact::MOVED << 1), fact::NOTHING, fact::KEPT]
                .iter()
                .any(|f| s.knows(fact::of(m, *f)))
        };
        let turn = (0..n).all(|m| self.window(m).is_some_and(|l| l.window != WindowKind::Get) || settled(m));
        let kind = match (kind, imm) {
            (_, 0) if self.returning && turn && kind == moves(lent) => Kind::Place,
            _ if self.returning && matches!(kind, Kind::TableWord | Kind::Leaf) => return None,
            (Kind::TableWord, 0) if untouched && !(long && reads) => Kind::Pointer,
            // Read-only, the twin is what is lent.
            (Kind::TableWord, 8) if untouched && long => {
                if reads {
                    Kind::Pointer
                } else {
                    Kind::Twin
                }
            }
            (Kind::Leaf, 0) if untouched => Kind::Entry,
            (Kind::Table | Kind::TableEnd, _) if long => {
                let at = imm + if kind == Kind::TableEnd { 2047 } else { 0 };
                match at - i64::from(lent.pages) * 8 {
                    -8 => Kind::Last,
                    0 if lent.pages < 512 => Kind::Behind,
                    _ => return None,
                }
            }
            _ => return None,
        };
        Some(Value(kind, n))
    }

    /// What going on behind a branch teaches, and what taking it: `None` for branches that no window makes.
    #[inline(never)]
    pub(super) fn window_branch(&self, s: &State, cond: Cond, value: Value) -> Option<Test> {
        let Value(kind, n) = value;
        if matches!(kind, Kind::SlotHead | Kind::SlotNext) {
            return self.slot_branch(cond, value);
        }
        if matches!(kind, Kind::Stranger | Kind::OtherThread) && cond == Cond::Ne && !self.returning {
            let known = if kind == Kind::Stranger { fact::borrowed(n) } else { fact::held(n) };
            return Some(Test { known, ..Test::refusing(value, status::WINDOW) });
        }
        let lent = self.window(n)?;
        let own_page = !is_long(lent) && matches!(lent.window, WindowKind::Open | WindowKind::Tear);
        let get = lent.window == WindowKind::Get;
        let refuses =
            |facts| Some(Test { known: fact::of(n, facts), ..Test::refusing(value, status::WINDOW) });
        let owned = !lent.is_borrowed();
        let splits = |known: u64, taken: u64| {
            Some(Test { known: fact::of(n, known), taken: fact::of(n, taken), ..Test::new(value) })
        };
        if self.returning {
            return match (kind, cond) {
                (Kind::BadPointer, Cond::Ne) => splits(fact::POINTER, fact::BAD),
                (Kind::Bad, Cond::Eq) => splits(fact::BAD, fact::GOOD),
                (Kind::Low, Cond::Eq) if lent.pages == 512 => splits(fact::BAD, fact::GOOD),
                (Kind::Rest, Cond::Ne) if s.knows(fact::of(n, fact::BAD)) => {
                    splits(fact::NOTHING, fact::KEPT)
                }
                _ => None,
            };
        }
        match (kind, cond) {
            (Kind::Far, Cond::Ne) => refuses(fact::RANGE),
            (Kind::Beyond, Cond::Ne) if !own_page => refuses(fact::RANGE),
            (Kind::Beyond, Cond::Ge) | (Kind::Within, Cond::Eq) if own_page => refuses(fact::RANGE),
            (Kind::Crooked, Cond::Ne) | (Kind::AboveImage, Cond::Eq) => refuses(fact::START),
            (Kind::FlagsTest, Cond::Ne) if owned => refuses(fact::POINTER),
            (Kind::Low, Cond::Ne) if owned || is_long(lent) => refuses(fact::LENDABLE),
            (Kind::Apart, Cond::Eq) => {
                Some(Test { known: fact::APART, ..Test::refusing(value, status::WINDOW) })
            }
            (Kind::Behind, Cond::Ne) => refuses(fact::END),
            (Kind::Occupied, Cond::Ne) if get => refuses(fact::EMPTY),
            _ => None,
        }
    }

    /// A branch over what is done for something borrowed alone: reads that, and leaves what both ways have in
    /// common. The branch is taken for what is fit to be lent by any thread; whoever comes through must have
    /// found that it is borrowed, and by the running thread.
    #[inline(never)]
    pub(super) fn unless_borrowed(
        &mut self,
        at: usize,
        (cond, x, target): (Cond, u8, usize),
        s: &mut State,
        ways: &mut Ways,
    ) -> Result<bool, Refusal> {
        let Value(kind, n) = s.get(x);
        let (level, fact) = match kind {
            Kind::FlagsTest => (1, fact::POINTER),
            Kind::Low => (0, fact::LENDABLE),
            _ => return Ok(false),
        };
        let skips = cond == Cond::Eq && !self.returning;
        if !skips || !self.window(n).is_some_and(|lent| lent.is_borrowed() && (level == 1 || !is_long(lent)))
        {
            return Ok(false);
        }
        let mut through = *s;
        M::shadow(self, at, s)?;
        let left = M::straight(self, at + 4, target, &mut through, MAX_DEPTH, ways)?.is_some();
        let this = at_level(n, level);
        let found = through.knows(fact::borrowed(this) | fact::held(this));
        if left || !found || !through.differs_in_registers_alone(s) {
            return Err(Refusal { at, reason: Reason::Branch });
        }
        for x in 1..32 {
            if through.get(x) != s.get(x) {
                s.set(x, UNKNOWN);
            }
        }
        s.known |= fact::of(n, fact);
        Ok(true)
    }

    /// Whether the tests have shown all that must be true of what is lent.
    pub(super) fn tested(&self, s: &State, n: i32) -> bool {
        let Some(lent) = self.window(n) else { return false };
        let end = if is_long(lent) && lent.pages < 512 { fact::END } else { 0 };
        let apart = if self.tears_twice() { fact::APART } else { 0 };
        s.knows(fact::of(n, fact::POINTER | fact::LENDABLE | end) | apart)
    }
}

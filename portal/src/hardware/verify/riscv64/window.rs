//! Windows: what the verifier knows of addresses, page table entries and their parts.
//!
//! The number in a [`Value`] of these kinds is the window's. An address becomes that of a table entry only
//! once the tests have shown that the word lies where such a window may lie, and that the level above is a
//! table; an entry is fit to be shown only once it was tested for rights and marks. The tests are branches to
//! the way out, so what they teach holds from there on ([`fact`]). What is borrowed is lent on by the thread
//! that has it alone: a branch over the instructions that look after that is taken for what is not borrowed,
//! and both ways come to the same ([`Verifier::unless_borrowed`]). Slots and what is stored where:
//! [`super::slot`].

use super::slot::at;
use super::way::{MAX_DEPTH, Test};
use super::*;
use crate::hardware::ir::Lent;
use crate::spec::Window;
use pebble_abi::status;

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

/// What a slot holds for which a `g` call waits.
pub(super) const WAITS: i64 = paging::WAITS as i64;

const MARKS: i64 = paging::MARKS as i64;
const BORROWED: i64 = paging::BORROWED as i64;

const fn is_long(lent: Lent) -> bool {
    lent.pages > 1
}

/// The word shifted by the first must be the second: the region in which such a window lies.
const fn region(lent: Lent) -> (i64, i64) {
    match (is_long(lent), lent.window) {
        (false, Window::Get) => (21, 0x1b00_0000 >> 21),
        _ => (26, 0x1c00_0000 >> 26),
    }
}

/// Bits of an entry that the test looks at, and what they must be. Of `w` and `r`, of what is not borrowed.
const fn rights(lent: Lent) -> (i64, i64) {
    let reads = (paging::V | paging::R | paging::U) as i64;
    let writes = reads | paging::W as i64;
    match (is_long(lent), lent.window) {
        (true, Window::Read) => (reads, reads),
        (true, _) => (writes, writes),
        (false, Window::Read) => (reads | BORROWED, reads),
        // What is open to it, it may open to others.
        (false, Window::Write | Window::Open) => (writes | BORROWED, writes),
        (false, _) => (writes | MARKS, writes),
    }
}

/// Flags of the entry of the level above: none but V, and the mark of what is open where that may be lent.
const fn pointer_mask(lent: Lent) -> i64 {
    match lent.window {
        Window::Open if !is_long(lent) => 0x3ff,
        Window::Open | Window::Write | Window::Read => 0x3ff & !(paging::OPEN as i64),
        _ => 0x3ff,
    }
}

/// Whether a window's level-1 entry is meant, and a buffer's slot; not its leaf, and a page's slot.
const fn is_upper(n: i32) -> bool {
    n >> 1 == 1
}

/// A window, and its leaf (0) or its level-1 entry (1).
const fn at_level(n: i32, level: i32) -> i32 {
    n & 1 | level << 1
}

/// What is left of an entry before it is marked, and its mark.
const fn marking(lent: Lent) -> (i64, i64) {
    let gone = match (is_long(lent), lent.window) {
        (true, _) => paging::MARKS,
        (false, Window::Read) => paging::MARKS | paging::X | paging::W,
        _ => paging::MARKS | paging::X,
    };
    let mark = if let Window::Open = lent.window { paging::OPEN } else { paging::BORROWED };
    (!(gone as i64), mark as i64)
}

impl Verifier<'_> {
    fn window(&self, n: i32) -> Option<Lent> {
        self.windows.get(n as usize).copied()
    }

    /// A computation with a constant that the other rules do not know.
    #[inline(never)]
    pub(super) fn window_imm(&self, s: &State, op: Alu, value: Value, imm: i64) -> Value {
        let Value(kind, n) = value;
        if self.windows.is_empty() {
            return UNKNOWN;
        }
        if kind == Kind::Own {
            let at = self.windows.iter().position(|l| reg::A0 as i32 + i32::from(l.from) == n);
            return at.map_or(UNKNOWN, |w| Value(part(self.windows[w], op, imm), w as i32));
        }
        if kind == Kind::Moved {
            return self.moved_imm(op, value, imm);
        }
        let Some(lent) = self.window(n & 1) else { return UNKNOWN };
        if lent.is_borrowed()
            && let Some(value) = borrowed_imm(lent, op, value, imm)
        {
            return value;
        }
        let knows = |facts| s.knows(fact::of(n, facts));
        let ((_, base), (mask, wanted), (rest, mark)) = (region(lent), rights(lent), marking(lent));
        let long = is_long(lent);
        let next = match (kind, op, imm) {
            (Kind::Region, Alu::Add, _) if imm == -base => Kind::Beyond,
            (Kind::TableIndex, Alu::Sll, 3) => Kind::TableOffset,
            (Kind::Region, Alu::Sll, 3) if region(lent).0 == 21 => Kind::TableOffset,
            // Of a goal, or of the address of its entry, the bit that tells slots from places.
            (Kind::Leaf, Alu::Srl, 9) if !long => Kind::Sides,
            (Kind::TableWord, Alu::Srl, 5) if long => Kind::Sides,
            (Kind::Sides, Alu::And, WAITS) => Kind::Side,
            (Kind::Side, Alu::Add, _) if imm == -WAITS && !long => Kind::OtherSide,
            (Kind::Given, Alu::And, _) if imm == !WAITS => Kind::Rest,
            (Kind::Page, Alu::And, 511) => Kind::LeafIndex,
            (Kind::LeafIndex, Alu::Sll, 3) => Kind::LeafOffset,
            (Kind::InPageHigh, Alu::Srl, 52) => Kind::InPage,
            (Kind::Pointer, Alu::And, _) if imm == pointer_mask(lent) => Kind::Flags,
            (Kind::Given, Alu::And, 0x3ff) if long => Kind::Flags,
            (Kind::Flags, Alu::Add, -1) => Kind::FlagsTest,
            (Kind::Pointer, Alu::Srl, 10) => Kind::Number,
            (Kind::Given, Alu::Srl, 10) if long => Kind::Number,
            (Kind::Number, Alu::Sll, 44) => Kind::NumberHigh,
            (Kind::NumberHigh, Alu::Sra, 32) if knows(fact::POINTER) => Kind::Table,
            (Kind::Table, Alu::Add, 2047) if long => Kind::TableEnd,
            (Kind::Entry, Alu::And, _) if imm == mask && !long => Kind::Bits,
            (Kind::Given, Alu::And, _) if imm == mask && !long => Kind::Bits,
            (Kind::Last, Alu::And, _) if imm == mask => Kind::Bits,
            (Kind::Bits, Alu::Add, _) if imm == -wanted => Kind::Low,
            (Kind::Entry | Kind::Pointer | Kind::Twin, Alu::And, _) if imm == rest => match kind {
                Kind::Entry => Kind::Bare,
                Kind::Pointer => Kind::BarePointer,
                _ => Kind::BareTwin,
            },
            (Kind::Difference, Alu::Srl, _) if imm == if long { 22 } else { 12 } => Kind::Apart,
            (Kind::Bare, Alu::Or, _) if imm == mark => Kind::Lent,
            (Kind::BarePointer, Alu::Or, _) if imm == mark => Kind::LentPointer,
            (Kind::BareTwin, Alu::Or, _) if imm == mark => Kind::LentTwin,
            _ => return UNKNOWN,
        };
        Value(next, n)
    }

    fn located(&self, s: &State, n: i32) -> bool {
        let Some(lent) = self.window(n) else { return false };
        let start = is_long(lent) || matches!(lent.window, Window::Open | Window::Tear);
        s.knows(fact::of(n, fact::RANGE | if start { fact::START } else { 0 }))
    }

    /// A computation with two registers.
    #[inline(never)]
    pub(super) fn window_alu(&self, s: &State, op: Alu, a: Value, b: Value) -> Value {
        let (Value(kind, n), Value(other, m)) = (a, b);
        if op == Alu::Xor && self.tears_twice() {
            let word = |w: usize| own(reg::A0 + usize::from(self.windows[w].from));
            return if (a, b) == (word(0), word(1)) { Value(Kind::Difference, 1) } else { UNKNOWN };
        }
        let next = match (op, kind, other) {
            (Alu::Add, Kind::TableOffset, _) if self.located(s, n) && self.is(b, self.c.caller.l1) => {
                Kind::TableWord
            }
            (Alu::Add, Kind::LeafOffset, Kind::Table) if n == m => Kind::Leaf,
            (Alu::Add, Kind::HolderOffset, Kind::Control) => Kind::HolderBase,
            (Alu::Xor, Kind::Holder, Kind::Top) => Kind::OtherTop,
            (Alu::Add, Kind::InPage, Kind::SlotAddress) if self.slot_of(n) == Some(m) => Kind::Address,
            (Alu::Add, Kind::Entry, Kind::OtherSide) | (Alu::Xor, Kind::Pointer, Kind::Side)
                if n == m && self.gets(n) =>
            {
                Kind::Occupied
            }
            (Alu::Add, Kind::Place, Kind::OtherSide) | (Alu::Xor, Kind::Place, Kind::Side) if n == m => {
                Kind::Unfit
            }
            (Alu::Or, Kind::Low, Kind::Unfit) if n == m && !self.windows_long(n) => Kind::Bad,
            (Alu::Or, Kind::FlagsTest, Kind::Unfit) if n == m => Kind::BadPointer,
            (Alu::Or, Kind::Low, Kind::Behind) if n == m => Kind::Bad,
            _ => return UNKNOWN,
        };
        Value(next, n)
    }

    /// Two windows of one kind that tear: they must not tear the same.
    fn tears_twice(&self) -> bool {
        match self.windows.as_slice() {
            [a, b] => a.window == Window::Tear && b.window == Window::Tear && is_long(*a) == is_long(*b),
            _ => false,
        }
    }

    fn gets(&self, n: i32) -> bool {
        self.window(n).is_some_and(|lent| lent.window == Window::Get)
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
        let (long, reads) = (is_long(lent), lent.window == Window::Read);
        let untouched = !s.knows(fact::of(n, at(fact::CLEARED, imm)));
        // Two windows may name one place: the second looks when the first has moved in.
        let settled = |m| {
            [fact::MOVED & !(fact::MOVED << 1), fact::NOTHING, fact::KEPT]
                .iter()
                .any(|f| s.knows(fact::of(m, *f)))
        };
        let turn = (0..n).all(|m| self.window(m).is_some_and(|l| l.window != Window::Get) || settled(m));
        let kind = match (kind, imm) {
            (Kind::TableWord | Kind::Leaf, 0) if self.returning && turn => Kind::Place,
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
        let own_page = !is_long(lent) && matches!(lent.window, Window::Open | Window::Tear);
        let get = lent.window == Window::Get;
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
            (Kind::Beyond, Cond::Ge) if own_page => refuses(fact::RANGE),
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
        let left = self.straight(at + 4, target, &mut through, MAX_DEPTH, ways)?.is_some();
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

/// What a shift makes of the word of a window.
fn part(lent: Lent, op: Alu, imm: i64) -> Kind {
    let own_page = !is_long(lent) && matches!(lent.window, Window::Open | Window::Tear);
    let shown_page = !is_long(lent) && lent.window != Window::Get;
    match (op, imm) {
        (Alu::Srl, 30) if shown_page && !own_page => Kind::Far,
        (Alu::Srl, 16) if own_page => Kind::AboveImage,
        (Alu::Srl, _) if imm == region(lent).0 && (own_page || !shown_page) => Kind::Region,
        (Alu::Srl, 18) if !is_long(lent) && lent.window == Window::Get => Kind::Sides,
        (Alu::Srl, 23) if is_long(lent) && lent.window == Window::Get => Kind::Sides,
        (Alu::Sll, 42) if is_long(lent) => Kind::Crooked,
        (Alu::Srl, 21) => Kind::TableIndex,
        (Alu::Srl, 12) if !is_long(lent) => Kind::Page,
        (Alu::Srl, 22) if lent.is_borrowed() => Kind::BufferPlace,
        (Alu::Sll, 52) if shown_page => Kind::InPageHigh,
        _ => Kind::Unknown,
    }
}

/// The computations for something borrowed: is it, and which descriptor tells by whom.
fn borrowed_imm(lent: Lent, op: Alu, Value(kind, n): Value, imm: i64) -> Option<Value> {
    let (mask, wanted) = rights(lent);
    let value = match (kind, op, imm) {
        (Kind::Pointer, Alu::And, 0x3ff) => Value(Kind::Marked, at_level(n, 1)),
        (Kind::Entry, Alu::And, _) if imm == mask | MARKS && !is_long(lent) => {
            Value(Kind::Marked, at_level(n, 0))
        }
        (Kind::Marked, Alu::Add, _) => {
            let wanted = if is_upper(n) { paging::V as i64 } else { wanted };
            (imm == -(wanted | BORROWED)).then_some(Value(Kind::Stranger, n))?
        }
        (Kind::Page, Alu::And, 127) => Value(Kind::HolderIndex, at_level(n, 0)),
        (Kind::BufferPlace, Alu::And, 7) => Value(Kind::HolderIndex, at_level(n, 1)),
        (Kind::HolderIndex, Alu::Sll, 5) => Value(Kind::HolderOffset, n),
        (Kind::OtherTop, Alu::Srl, 12) => Value(Kind::OtherThread, n),
        _ => return None,
    };
    Some(value)
}

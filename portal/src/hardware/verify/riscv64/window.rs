//! rv64: which computations make addresses of table entries, and what is lent of an entry, out of the
//! caller's word ([`super::super::window`]).

use super::super::slot::{all, at};
use super::super::window::{at_level, fact, is_long, is_upper};
use super::*;
use crate::hardware::ir::Lent;
use crate::spec::WindowKind;

/// What a slot holds for which a `g` call waits.
const WAITS: i64 = paging::WAITS as i64;

const MARKS: i64 = paging::MARKS as i64;
const BORROWED: i64 = paging::BORROWED as i64;

/// The word shifted by the first must be the second: the region in which such a window lies.
const fn region(lent: Lent) -> (i64, i64) {
    match (is_long(lent), lent.window) {
        (false, WindowKind::Get) => (21, 0x1b00_0000 >> 21),
        _ => (26, 0x1c00_0000 >> 26),
    }
}

/// Bits of an entry that the test looks at, and what they must be. Of `w` and `r`, of what is not borrowed.
const fn rights(lent: Lent) -> (i64, i64) {
    let reads = (paging::V | paging::R | paging::U) as i64;
    let writes = reads | paging::W as i64;
    match (is_long(lent), lent.window) {
        (true, WindowKind::Read) => (reads, reads),
        (true, _) => (writes, writes),
        (false, WindowKind::Read) => (reads | BORROWED, reads),
        // What is open to it, it may open to others.
        (false, WindowKind::Write | WindowKind::Open) => (writes | BORROWED, writes),
        (false, _) => (writes | MARKS, writes),
    }
}

/// Flags of the entry of the level above: none but V, and the mark of what is open where that may be lent.
const fn pointer_mask(lent: Lent) -> i64 {
    match lent.window {
        WindowKind::Open if !is_long(lent) => 0x3ff,
        WindowKind::Open | WindowKind::Write | WindowKind::Read => 0x3ff & !(paging::OPEN as i64),
        _ => 0x3ff,
    }
}

/// What is left of an entry before it is marked, and its mark.
const fn marking(lent: Lent) -> (i64, i64) {
    let gone = match (is_long(lent), lent.window) {
        (true, _) => paging::MARKS,
        (false, WindowKind::Read) => paging::MARKS | paging::X | paging::W,
        _ => paging::MARKS | paging::X,
    };
    let mark = if let WindowKind::Open = lent.window { paging::OPEN } else { paging::BORROWED };
    (!(gone as i64), mark as i64)
}

impl V<'_> {
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
            // One more, or fewer, pages moved.
            let by = Value(Kind::MovedBy, n & 15 | (imm as i32) << 4);
            return if op == Alu::Add { by } else { UNKNOWN };
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

    /// A computation with two registers.
    #[inline(never)]
    pub(super) fn window_alu(&self, s: &State, op: Alu, a: Value, b: Value) -> Value {
        let (Value(kind, n), Value(other, m)) = (a, b);
        if op == Alu::Xor && self.tears_twice() {
            let word = |w: usize| own(reg::A0 + usize::from(self.windows[w].from));
            return if (a, b) == (word(0), word(1)) { Value(Kind::Difference, 1) } else { UNKNOWN };
        }
        let next = match (op, kind, other) {
            (Alu::Add, Kind::TableOffset, _) if self.located(s, n) && self.is(b, Hole::Table.symbol()) => {
                Kind::TableWord
            }
            (Alu::Add, Kind::LeafOffset, Kind::Table) if n == m => Kind::Leaf,
            (Alu::Add, Kind::HolderOffset, Kind::ControlPage) => Kind::HolderBase,
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

    /// `sfence.vma`: one address, or with `x0` all of the domain's.
    #[inline(never)]
    pub(super) fn fence(&self, s: &mut State, rs1: u8, asid: Value) -> Result<(), Reason> {
        let domain = if self.returning { Hole::Callee } else { Hole::Caller };
        if self.windows.is_empty() || !self.is(asid, domain.symbol()) {
            return Err(Reason::NotAllowed);
        }
        let mut did = 0;
        for n in 0..self.windows.len() as i32 {
            let lent = self.windows[n as usize];
            let long = lent.pages > 1;
            let page = match s.get(rs1) {
                value if self.returning => {
                    Some(value) == self.slot_of(n).map(|s| Value(Kind::SlotAddress, s))
                }
                value => value == own(reg::A0 + usize::from(lent.from)),
            };
            let cleared = s.knows(fact::of(n, all(lent, fact::CLEARED)));
            let nothing = s.knows(fact::of(n, fact::NOTHING | at(fact::CLEARED, 0)));
            if (cleared || nothing) && (if long { rs1 == 0 } else { rs1 != 0 && page }) {
                did |= fact::of(n, fact::FLUSHED);
            }
        }
        s.known |= did;
        if did == 0 { Err(Reason::NotAllowed) } else { Ok(()) }
    }
}

/// What a shift makes of the word of a window.
fn part(lent: Lent, op: Alu, imm: i64) -> Kind {
    let own_page = !is_long(lent) && matches!(lent.window, WindowKind::Open | WindowKind::Tear);
    let shown_page = !is_long(lent) && lent.window != WindowKind::Get;
    match (op, imm) {
        (Alu::Srl, 30) if shown_page && !own_page => Kind::Far,
        (Alu::Srl, 16) if own_page => Kind::AboveImage,
        (Alu::Srl, _) if imm == region(lent).0 && (own_page || !shown_page) => Kind::Region,
        (Alu::Srl, 18) if !is_long(lent) && lent.window == WindowKind::Get => Kind::Sides,
        (Alu::Srl, 23) if is_long(lent) && lent.window == WindowKind::Get => Kind::Sides,
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

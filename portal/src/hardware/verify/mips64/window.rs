//! mips64: which computations make addresses of table entries, and what is lent of an entry, out of the
//! caller's word ([`super::super::window`]).
//!
//! Tables are at addresses that end with zeros, and so are control pages and slots: an index is put into
//! them.

use super::super::window::{at_level, fact, is_long, is_upper};
use super::*;
use crate::hardware::ir::Lent;
use crate::spec::WindowKind;

const PAGE_BITS: u8 = map::PAGE.trailing_zeros() as u8;
const WAITS: i64 = paging::WAITS as i64;
const WAITS_AT: u8 = paging::WAITS.trailing_zeros() as u8;
const MARKS: i64 = paging::MARKS as i64;
const BORROWED: i64 = paging::BORROWED as i64;
const TABLE: i64 = paging::VALID as i64;
/// All flags and marks of an entry.
const FLAGS: i64 = map::PAGE as i64 - 1;
/// Where an index is in the address of a table's entry.
const INDEX: (u8, u8) = (3, 9);
const UNTOUCHED: (u8, u8) = (paging::UNTOUCHED.trailing_zeros() as u8, 1);
const WRITE: (u8, u8) = (paging::WRITE.trailing_zeros() as u8, 1);
/// Marks of a table's entry; with the bit below that says what is executed, of a leaf's.
const MARKED: (u8, u8) = (paging::MARKS.trailing_zeros() as u8, paging::MARKS.count_ones() as u8);
const MARKED_LEAF: (u8, u8) = (MARKED.0 - 1, MARKED.1 + 1);
const _: () = assert!(paging::EXECUTE == 1 << MARKED_LEAF.0 && paging::VALID == 1);
/// Descriptors in a control page: 32 bytes each, of pages and of buffers.
const DESCRIPTORS: [(u8, u8); 2] = [(5, 7), (5, 3)];
const _: () = assert!(map::WINDOW_DESC_BYTES == 32 && map::BUFFERS == 16);

/// The word shifted by the first must be the second: the region in which such a window lies.
const fn region(lent: Lent) -> (i64, i64) {
    match (is_long(lent), lent.window) {
        (false, WindowKind::Get) => (21, map::WINDOWS_VA as i64 >> 21),
        _ => (26, map::BUFFERS_VA as i64 >> 26),
    }
}

/// Bits of an entry that the test looks at, and what they must be. Of `w` and `r`, of what is not borrowed.
const fn rights(lent: Lent) -> (i64, i64) {
    let reads = (paging::VALID | paging::LEAF | paging::USER) as i64;
    let writes = reads | paging::WRITE as i64;
    match (is_long(lent), lent.window) {
        (true, WindowKind::Read) => (reads, reads),
        (true, _) => (writes, writes),
        (false, WindowKind::Read) => (reads | BORROWED, reads),
        // What is open to it, it may open to others.
        (false, WindowKind::Write | WindowKind::Open) => (writes | BORROWED, writes),
        (false, _) => (writes | MARKS, writes),
    }
}

/// Flags of the entry of the level above: none but that it is a table's, and the mark of what is open where
/// that may be lent.
const fn pointer_mask(lent: Lent) -> i64 {
    match lent.window {
        WindowKind::Open if !is_long(lent) => FLAGS,
        WindowKind::Open | WindowKind::Write | WindowKind::Read => FLAGS & !(paging::OPEN as i64),
        _ => FLAGS,
    }
}

const fn mark(lent: Lent) -> i64 {
    if let WindowKind::Open = lent.window { paging::OPEN as i64 } else { BORROWED }
}

impl V<'_> {
    /// The window whose word this is.
    fn word_of(&self, value: Value) -> Option<i32> {
        let of = |l: &Lent| value == own(reg::ALL.argument + usize::from(l.from));
        self.windows.iter().position(of).map(|n| n as i32)
    }

    /// A computation with a constant that the other rules do not know.
    #[inline(never)]
    pub(super) fn window_imm(&self, op: Alu, value: Value, imm: i64) -> Value {
        let Value(kind, n) = value;
        if self.windows.is_empty() {
            return UNKNOWN;
        }
        if kind == Kind::Moved {
            // One more, or fewer, pages moved.
            let by = Value(Kind::MovedBy, n & 15 | (imm as i32) << 4);
            return if op == Alu::Daddu { by } else { UNKNOWN };
        }
        let Some(lent) = self.window(n & 1) else { return UNKNOWN };
        if lent.is_borrowed()
            && let Some(value) = borrowed_imm(lent, op, value, imm)
        {
            return value;
        }
        let ((_, base), (mask, wanted)) = (region(lent), rights(lent));
        let long = is_long(lent);
        let next = match (op, kind) {
            (Alu::Xor, Kind::Region) if imm == base => Kind::Beyond,
            (Alu::Sltu, Kind::Region) if imm == base => Kind::Within,
            (Alu::And, Kind::Sides) if imm == WAITS => Kind::Side,
            (Alu::And, Kind::Pointer) if imm == pointer_mask(lent) => Kind::Flags,
            (Alu::And, Kind::Given) if imm == FLAGS && long => Kind::Flags,
            (Alu::Xor, Kind::Flags) if imm == TABLE => Kind::FlagsTest,
            (Alu::And, Kind::Entry | Kind::Given) if imm == mask && !long => Kind::Bits,
            (Alu::And, Kind::Last) if imm == mask => Kind::Bits,
            (Alu::Xor, Kind::Bits) if imm == wanted => Kind::Low,
            (Alu::Xor, Kind::HalfOccupied) if imm == WAITS => Kind::Occupied,
            (Alu::Xor, Kind::HalfUnfit) if imm == WAITS => Kind::Unfit,
            (Alu::Or, Kind::Bare) if imm == mark(lent) => Kind::Unseen,
            (Alu::Or, Kind::BarePointer) if imm == mark(lent) => Kind::LentPointer,
            (Alu::Or, Kind::BareTwin) if imm == mark(lent) => Kind::LentTwin,
            _ => return UNKNOWN,
        };
        Value(next, n)
    }

    /// A computation with two registers.
    #[inline(never)]
    pub(super) fn window_alu(&self, op: Alu, a: Value, b: Value) -> Value {
        let (Value(kind, n), Value(other, m)) = (a, b);
        if op == Alu::Xor && self.tears_twice() {
            let word = |w: usize| own(reg::ALL.argument + usize::from(self.windows[w].from));
            return if (a, b) == (word(0), word(1)) { Value(Kind::Difference, 1) } else { UNKNOWN };
        }
        let long = self.windows_long(n);
        let next = match (op, kind, other) {
            (Alu::Or, Kind::Pair, _) if self.is(b, self.flushing()) => Kind::Probe,
            (Alu::Xor, Kind::Holder, Kind::Top) if m == 0 => Kind::OtherTop,
            (Alu::Xor, Kind::Entry, Kind::Side) if n == m && self.gets(n) => Kind::HalfOccupied,
            (Alu::Xor, Kind::Pointer, Kind::Side) if n == m && self.gets(n) => Kind::Occupied,
            (Alu::Xor, Kind::Place, Kind::Side) if n == m && !long => Kind::HalfUnfit,
            (Alu::Xor, Kind::Place, Kind::Side) if n == m => Kind::Unfit,
            (Alu::Or, Kind::Low, Kind::Unfit) if n == m && !long => Kind::Bad,
            (Alu::Or, Kind::FlagsTest, Kind::Unfit) if n == m => Kind::BadPointer,
            (Alu::Or, Kind::Low, Kind::Behind) if n == m => Kind::Bad,
            _ => return UNKNOWN,
        };
        Value(next, n)
    }

    #[inline(never)]
    pub(super) fn window_shift(&self, op: Shift, value: Value, by: i64) -> Value {
        let Value(kind, n) = value;
        if let Some(w) = self.word_of(value) {
            return Value(part(self.windows[w as usize], op, by), w);
        }
        let Some(lent) = self.window(n & 1) else { return UNKNOWN };
        let long = is_long(lent);
        let next = match (op, kind, by) {
            // Of the address of a goal's entry, the bit that tells slots from places.
            (Shift::Dsrl, Kind::Leaf, 9) if !long => Kind::Sides,
            (Shift::Dsrl, Kind::TableWord, 5) if long => Kind::Sides,
            (Shift::Dsrl, Kind::Difference, 22) if long => Kind::Apart,
            (Shift::Dsrl, Kind::Difference, 12) if !long => Kind::Apart,
            (Shift::Dsrl, Kind::OtherTop, 12) => Kind::OtherThread,
            _ => return UNKNOWN,
        };
        Value(next, n)
    }

    /// Bits of one register in the place of another's.
    #[inline(never)]
    pub(super) fn window_ins(&self, s: &State, into: Value, from: Value, place: (u8, u8)) -> Value {
        let (Value(kind, n), Value(other, m)) = (into, from);
        if from == ZERO {
            return self.window_clear(s, into, place);
        }
        if into == from && place == UNTOUCHED && kind == Kind::Unseen {
            return Value(Kind::Lent, n);
        }
        if kind == Kind::SlotAddress && place == (0, PAGE_BITS) {
            let word = self.word_of(from).filter(|w| self.slot_of(*w) == Some(n));
            return word.map_or(UNKNOWN, |w| Value(Kind::Address, w));
        }
        let long = self.windows_long(m);
        match (kind, other, place) {
            (Kind::Pool, Kind::TableIndex | Kind::Region, INDEX)
                if self.located(s, m) && self.is(into, Hole::Table.symbol()) && self.indexes(other, m) =>
            {
                Value(Kind::TableWord, m)
            }
            (Kind::Table, Kind::Page, INDEX) if n == m && !long => Value(Kind::Leaf, n),
            (Kind::ControlPage, Kind::Page, _) if place == DESCRIPTORS[0] && self.borrows(m) => {
                Value(Kind::HolderBase, at_level(m, 0))
            }
            (Kind::ControlPage, Kind::BufferPlace, _) if place == DESCRIPTORS[1] => {
                Value(Kind::HolderBase, at_level(m, 1))
            }
            _ => UNKNOWN,
        }
    }

    fn borrows(&self, n: i32) -> bool {
        self.window(n).is_some_and(|lent| lent.is_borrowed())
    }

    /// Whether this part of a window's word is the index in a table of level 1.
    fn indexes(&self, kind: Kind, n: i32) -> bool {
        kind == Kind::TableIndex || self.window(n).is_some_and(|lent| region(lent).0 == 21)
    }

    fn window_clear(&self, s: &State, into: Value, place: (u8, u8)) -> Value {
        let Value(kind, n) = into;
        if place == (0, PAGE_BITS + 1) {
            let slot = |n| self.window_of(n).map(|(w, _)| w).filter(|_| self.returning);
            // The caller's own address is forgotten by the call leg alone.
            let of = match kind {
                Kind::SlotAddress => slot(n),
                _ => self.word_of(into).filter(|_| !self.returning),
            };
            return of.map_or(UNKNOWN, |w| Value(Kind::Pair, w));
        }
        let Some(lent) = self.window(n & 1) else { return UNKNOWN };
        let table = || s.knows(fact::of(n, fact::POINTER));
        let reads = lent.window == WindowKind::Read;
        let next = match (kind, place) {
            (Kind::Pointer, (0, PAGE_BITS)) if table() => Kind::Table,
            (Kind::Given, (0, PAGE_BITS)) if table() && is_long(lent) => Kind::Table,
            (Kind::Given, (WAITS_AT, 1)) => Kind::Rest,
            (Kind::Pointer, MARKED) if is_long(lent) => Kind::BarePointer,
            (Kind::Twin, MARKED) => Kind::BareTwin,
            (Kind::Entry, MARKED_LEAF) if reads => Kind::Stripped,
            (Kind::Entry, MARKED_LEAF) => Kind::Bare,
            (Kind::Stripped, WRITE) => Kind::Bare,
            _ => return UNKNOWN,
        };
        Value(next, n)
    }

    /// The callee's name takes the place of a status that is none.
    pub(super) fn blame(&self, name: Value, status: Value) -> Value {
        let blames = Hole::Blamed.symbol() + pebble_abi::status::WINDOW;
        match status.0 {
            Kind::Status | Kind::Blamed if self.is(name, blames) && self.returning => Value(Kind::Blamed, 0),
            _ => UNKNOWN,
        }
    }
}

/// What a shift makes of the word of a window.
fn part(lent: Lent, op: Shift, by: i64) -> Kind {
    let own_page = !is_long(lent) && matches!(lent.window, WindowKind::Open | WindowKind::Tear);
    let shown_page = !is_long(lent) && lent.window != WindowKind::Get;
    match (op, by) {
        (Shift::Dsrl, 30) if shown_page && !own_page => Kind::Far,
        (Shift::Dsrl, 16) if own_page => Kind::AboveImage,
        (Shift::Dsrl, _) if by == region(lent).0 && (own_page || !shown_page) => Kind::Region,
        (Shift::Dsrl, 18) if !is_long(lent) && lent.window == WindowKind::Get => Kind::Sides,
        (Shift::Dsrl, 23) if is_long(lent) && lent.window == WindowKind::Get => Kind::Sides,
        (Shift::Dsll, 42) if is_long(lent) => Kind::Crooked,
        (Shift::Dsrl, 21) => Kind::TableIndex,
        (Shift::Dsrl, 12) if !is_long(lent) => Kind::Page,
        (Shift::Dsrl, 22) if lent.is_borrowed() => Kind::BufferPlace,
        _ => Kind::Unknown,
    }
}

/// The computations for something borrowed: is it, and which descriptor tells by whom.
fn borrowed_imm(lent: Lent, op: Alu, Value(kind, n): Value, imm: i64) -> Option<Value> {
    let (mask, wanted) = rights(lent);
    match (op, kind) {
        (Alu::And, Kind::Pointer) if imm == FLAGS => Some(Value(Kind::Marked, at_level(n, 1))),
        (Alu::And, Kind::Entry) if imm == mask | MARKS && !is_long(lent) => {
            Some(Value(Kind::Marked, at_level(n, 0)))
        }
        (Alu::Xor, Kind::Marked) => {
            let wanted = if is_upper(n) { TABLE } else { wanted };
            (imm == wanted | BORROWED).then_some(Value(Kind::Stranger, n))
        }
        _ => None,
    }
}

//! Slots: taken from the callee's queue, filled, emptied, flushed, given back.
//!
//! The n-th slot that is taken from a queue belongs to the n-th window of its kind, so a slot's number says
//! all: queue times two, plus n. The queue's head is read anew after each change; a descriptor that leads to
//! an old head is not given back.

use super::Reason;
use super::leg::Verifier;
use super::machine::Machine;
use super::state::State;
use super::value::*;
use super::way::{Cond, Test};
use super::window::{fact, moves};
use crate::hardware::hole::Hole;
use crate::hardware::ir::Lent;
use crate::spec::WindowKind;
use pebble_abi::map::{self, WINDOW_APART, WINDOW_BUFFERS, WINDOW_MOVED, WINDOW_PAGES};
use pebble_abi::{status, sys};

const HOLDER: i64 = map::WINDOW_HOLDER as i64;

/// Which of two words: a page table entry, and behind it a twin's.
const WORD: u64 = 1 | 1 << 2 | 1 << 4 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 12 | 1 << 14 | 1 << 16 | 1 << 18;

/// The part of a two-bit fact that is about the word at this offset.
pub(super) fn at(facts: u64, imm: i64) -> u64 {
    if imm == 0 { facts & WORD } else { facts & !WORD }
}

/// Both words, if the window has both.
pub(super) fn all(lent: Lent, facts: u64) -> u64 {
    if lent.pages > 1 { facts } else { at(facts, 0) }
}

impl<M: Machine> Verifier<'_, M> {
    pub(super) fn slot_of(&self, n: i32) -> Option<i32> {
        let long = |l: &&Lent| l.pages > 1;
        let lent = self.windows.get(n as usize)?;
        let before = self.windows.iter().take(n as usize).filter(|l| long(l) == (lent.pages > 1)).count();
        Some(i32::from(lent.pages > 1) * 2 + before as i32)
    }

    pub(super) fn window_of(&self, slot: i32) -> Option<(i32, Lent)> {
        let n = (0..self.windows.len() as i32).find(|n| self.slot_of(*n) == Some(slot))?;
        Some((n, self.windows[n as usize]))
    }

    /// The queue at this address of the callee's control page.
    fn queue_at(&self, address: u64) -> Option<usize> {
        let apart = self.windows.iter().any(|lent| lent.apart);
        let control = Hole::CalleeWindows.symbol() + if apart { WINDOW_APART } else { 0 };
        let queue = [WINDOW_PAGES, WINDOW_BUFFERS].iter().position(|q| control + q == address)?;
        (!self.windows.is_empty()).then_some(queue)
    }

    /// Whose count of moved pages is at this address: the callee's, the caller's.
    fn count_at(&self, address: u64) -> Option<usize> {
        let side = [Hole::CalleeWindows.symbol(), self.c.caller_windows()];
        let at = side.iter().position(|control| control + WINDOW_MOVED == address)?;
        let moves = |l: &Lent| matches!(l.window, WindowKind::Tear | WindowKind::Get);
        self.windows.iter().any(moves).then_some(at)
    }

    /// Words of the control pages.
    #[inline(never)]
    pub(super) fn control_load(&self, s: &State, address: u64) -> Option<Value> {
        if let Some(side) = self.count_at(address) {
            return Some(Value(Kind::Moved, side as i32 | i32::from(s.moves[side]) << 1));
        }
        if address == Hole::Root.symbol() + map::ROOT_WINDOWS && !self.windows.is_empty() {
            return (!self.returning).then_some(Value(Kind::ControlPage, 0));
        }
        let queue = self.queue_at(address)?;
        if self.returning {
            return Some(Value(Kind::SlotHead, queue as i32 | i32::from(s.given[queue]) << 1));
        }
        let taken = i32::from(s.taken[queue]);
        let there = s.known >> (2 * queue) & (fact::FIRST | fact::SECOND);
        if there.count_ones() as i32 > taken {
            return Some(Value(Kind::Slot, queue as i32 * 2 + taken));
        }
        (there == 0).then_some(Value(Kind::SlotHead, queue as i32))
    }

    #[inline(never)]
    pub(super) fn control_store(&self, s: &mut State, address: u64, value: Value) -> Result<(), Reason> {
        let Value(kind, n) = value;
        if kind == Kind::MovedBy {
            // Side, number of the change, and by how much.
            let (side, change, by) = (n as usize & 1, n >> 1 & 7, n >> 4);
            if self.count_at(address) != Some(side) || change != i32::from(s.moves[side]) || change == 7 {
                return Err(Reason::Store);
            }
            s.moves[side] += 1;
            s.moved[side] += by;
            return Ok(());
        }
        let queue = self.queue_at(address).ok_or(Reason::Store)?;
        match kind {
            Kind::SlotNext if !self.returning && n == queue as i32 * 2 + i32::from(s.taken[queue]) => {
                s.taken[queue] += 1;
                Ok(())
            }
            Kind::Slot if self.returning && n / 2 == queue as i32 => {
                let (w, lent) = self.window_of(n).ok_or(Reason::Window)?;
                let empty = if lent.window == WindowKind::Get && !s.knows(fact::of(w, fact::GOOD)) {
                    fact::NOTHING | at(fact::CLEARED, 0)
                } else {
                    all(lent, fact::CLEARED)
                };
                if !s.knows(fact::of(w, empty | fact::LINKED)) || s.knows(fact::of(w, fact::GIVEN)) {
                    return Err(Reason::Window);
                }
                s.given[queue] += 1;
                // Others that led to the old head must be led to the new one.
                s.known &= !(fact::of(0, fact::LINKED) | fact::of(1, fact::LINKED));
                s.known |= fact::of(w, fact::GIVEN);
                Ok(())
            }
            _ => Err(Reason::Store),
        }
    }

    pub(super) fn slot_load(&self, s: &State, base: Value, imm: i64) -> Option<Value> {
        let Value(kind, slot) = base;
        let kind = match (kind, imm) {
            (Kind::Slot, 0) if !self.returning => Kind::SlotNext,
            (Kind::Slot, 8) => Kind::SlotAddress,
            (Kind::Slot, 16) => Kind::SlotEntry,
            (Kind::SlotEntry, 0 | 8) if self.returning => {
                let (w, lent) = self.window_of(slot)?;
                let there = !s.knows(fact::of(w, at(fact::CLEARED, imm)));
                let kind = if imm == 0 { Kind::Given } else { Kind::GivenTwin };
                let good = imm == 0 || lent.window == WindowKind::Get && lent.pages > 1;
                return (there && good).then_some(Value(kind, w));
            }
            _ => return None,
        };
        Some(Value(kind, slot))
    }

    pub(super) fn slot_branch(&self, cond: Cond, value: Value) -> Option<Test> {
        let Value(kind, n) = value;
        if cond != Cond::Eq || self.returning {
            return None;
        }
        let (queue, fact) = match kind {
            Kind::SlotHead => (n, fact::FIRST),
            _ => (n / 2, fact::SECOND),
        };
        // What opens the second window reads the queue again.
        let first = kind == Kind::SlotHead && self.slot_of(0) == Some(n * 2);
        let value = if first { Value(Kind::Slot, n * 2) } else { UNKNOWN };
        let test = Test { known: fact << (2 * queue), ..Test::new(value) };
        // Where a window outlives its call nobody may ever give a slot back.
        Some(match self.windows.iter().any(|lent| lent.apart) {
            true => Test { refuses: status::WINDOW as u16, ..test },
            false => Test { leads: sys::NO_STACK, ..test },
        })
    }

    /// Stores to page table entries and descriptors.
    #[inline(never)]
    pub(super) fn window_store(
        &self,
        s: &mut State,
        base: Value,
        imm: i64,
        value: Value,
    ) -> Result<(), Reason> {
        let Value(kind, n) = base;
        let (w, lent) = match kind {
            Kind::Slot | Kind::SlotEntry => self.window_of(n),
            _ => self.windows.get(n as usize).map(|lent| (n, *lent)),
        }
        .ok_or(Reason::Store)?;
        let get = lent.window == WindowKind::Get;
        let taken = || n % 2 < i32::from(s.taken[n as usize / 2]);
        let did = match (kind, imm) {
            _ if imm == 8 && lent.pages == 1 => None,
            (Kind::SlotEntry, 0 | 8) if !self.returning => {
                let waits = get && imm == 0 && value == Value(Kind::Const, M::WAITS as i32);
                let fits = taken() && (waits || self.tested(s, w) && shows(lent, imm, value, w));
                fits.then_some(at(fact::SHOWN, imm))
            }
            (Kind::SlotEntry, 0 | 8) => {
                let nothing = imm == 0 && s.knows(fact::of(w, fact::NOTHING));
                let once = !s.knows(fact::of(w, at(fact::CLEARED, imm)));
                let fits = value == ZERO && once && (!get || nothing || s.knows(fact::of(w, fact::GOOD)));
                fits.then_some(at(fact::CLEARED, imm))
            }
            // What is torn is in the slot before it is gone from here.
            (_, 0 | 8) if kind == moves(lent) && !self.returning => {
                let shown = s.knows(fact::of(w, all(lent, fact::SHOWN)));
                (lent.window == WindowKind::Tear && value == ZERO && shown).then_some(at(fact::CLEARED, imm))
            }
            (_, 0 | 8) if kind == moves(lent) => {
                let given = Value(if imm == 0 { Kind::Given } else { Kind::GivenTwin }, w);
                let fits = get && value == given && s.knows(fact::of(w, fact::GOOD));
                fits.then_some(at(fact::MOVED, imm))
            }
            (Kind::Slot, HOLDER) if lent.holds() => {
                let fits = if self.returning { value == ZERO } else { value == base && taken() };
                fits.then_some(fact::HELD)
            }
            (Kind::Slot, 0) if self.returning => {
                let queue = n / 2;
                let head = queue | i32::from(s.given[queue as usize]) << 1;
                (value == Value(Kind::SlotHead, head)).then_some(fact::LINKED)
            }
            (Kind::Slot, HOLDER) if lent.is_borrowed() && !self.returning => {
                (value == Value(Kind::Top, 0) && taken()).then_some(fact::HELD)
            }
            _ => None,
        };
        s.known |= fact::of(w, did.ok_or(Reason::Store)?);
        Ok(())
    }

    /// Every window is open as its letter says, where the callee is entered.
    pub(super) fn windows_open(&self, s: &State) -> Result<(), Reason> {
        let (mut by, mut taken) = (0, [0, 0]);
        for n in 0..self.windows.len() as i32 {
            let lent = self.windows[n as usize];
            let must = match lent.window {
                WindowKind::Get => fact::EMPTY | fact::HELD | at(fact::SHOWN, 0),
                WindowKind::Tear => all(lent, fact::SHOWN | fact::CLEARED) | fact::FLUSHED,
                _ if lent.holds() || lent.is_borrowed() => all(lent, fact::SHOWN) | fact::HELD,
                _ => all(lent, fact::SHOWN),
            };
            taken[usize::from(lent.pages > 1)] += 1;
            by += if lent.window == WindowKind::Tear { charge(lent) } else { 0 };
            if !s.knows(fact::of(n, must)) {
                return Err(Reason::Window);
            }
        }
        self.check_moved(s, by)?;
        if s.taken == taken { Ok(()) } else { Err(Reason::Window) }
    }

    /// Every window is closed as its letter says, where the caller is entered again.
    pub(super) fn windows_closed(&self, s: &State) -> Result<(), Reason> {
        let mut by = 0;
        let mut bad = false;
        for n in 0..self.windows.len() as i32 {
            let lent = self.windows[n as usize];
            let knows = |facts| s.knows(fact::of(n, facts));
            let back = fact::FLUSHED | fact::GIVEN;
            let closed = match lent.window {
                WindowKind::Tear => true,
                WindowKind::Open if !lent.stub => true,
                WindowKind::Open => knows(all(lent, fact::CLEARED) | fact::HELD | back),
                WindowKind::Write | WindowKind::Read => knows(all(lent, fact::CLEARED) | back),
                WindowKind::Get => {
                    let good = knows(fact::GOOD);
                    bad |= !good;
                    by -= if good { charge(lent) } else { 0 };
                    let settled = if good {
                        knows(all(lent, fact::CLEARED | fact::MOVED) | back)
                    } else {
                        knows(fact::NOTHING | at(fact::CLEARED, 0) | back) || knows(fact::KEPT)
                    };
                    settled && knows(fact::HELD)
                }
            };
            if !closed {
                return Err(Reason::Window);
            }
        }
        self.check_moved(s, by)?;
        let status = s.regs.get(M::REGISTERS.status);
        let blames = Hole::Blamed.symbol() + status::WINDOW;
        // The callee is blamed where it has not given, unless somebody is to blame already.
        let fits = match status {
            Value(Kind::Status, 0) => !bad || s.knows(fact::BLAMED),
            Value(Kind::Blamed, _) => bad,
            _ => bad && s.knows(fact::CALM) && self.is(status, blames),
        };
        if fits { Ok(()) } else { Err(Reason::Register(M::REGISTERS.status as u8)) }
    }

    /// `by` pages have moved to the callee, in the books of both.
    fn check_moved(&self, s: &State, by: i32) -> Result<(), Reason> {
        let expected = if self.c.alone { [0, 0] } else { [by, -by] };
        if s.moved == expected { Ok(()) } else { Err(Reason::Window) }
    }
}

/// What is in a slot's words.
fn shows(lent: Lent, imm: i64, value: Value, w: i32) -> bool {
    let kind = match (lent.pages > 1, lent.window, imm) {
        (_, WindowKind::Get, _) => return false,
        (false, WindowKind::Tear, _) => Kind::Entry,
        (false, ..) => Kind::Lent,
        (true, WindowKind::Tear, 0) => Kind::Pointer,
        (true, WindowKind::Tear, _) => Kind::Twin,
        (true, WindowKind::Read, _) | (true, _, 0) => Kind::LentPointer,
        (true, ..) => Kind::LentTwin,
    };
    value == Value(kind, w)
}

/// A buffer moves with its two page tables.
fn charge(lent: Lent) -> i32 {
    if lent.pages > 1 { i32::from(lent.pages) + 2 } else { 1 }
}

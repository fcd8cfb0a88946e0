//! Windows: page table entries found, checked, shown in a slot, and taken back.
//!
//! Problem: a page is lent by code that must not trust its address, and in as few instructions as can be.
//! Strategy: the caller's level-1 table, and the window control pages of both domains, are constants. Between
//! check and opening, [`Windows::FOUND`] hold, of the first and of the second window, the entry to be shown;
//! or, where the caller's entry itself changes or a buffer's two are needed, its address. Then
//! [`Windows::CONTROL`] is the callee's control page, [`Windows::SLOT`] its first descriptor. In the return
//! leg [`Windows::DESC`] is the descriptor. `T2` to `T4` are scratch, in the return leg `INDEX` and `T6` too.
//!
//! What the caller has borrowed itself it may lend on for as long as it has it, and the thread that has
//! brought it is the only one of which that is known: its calls end in order. So the slot's descriptor names
//! that thread, and another's call is refused ([`Windows::check_holder`]). A page of the caller's own costs
//! one branch over all that.
//!
//! Every check branches to the way out for its status, which is made behind the leg.

use super::*;
use crate::hardware::ir::Lent;
use crate::spec::WindowKind;
use pebble_abi::map::{WINDOW_APART, WINDOW_BUFFERS, WINDOW_MOVED, WINDOW_PAGES};
use pebble_abi::{map, status};

const DESC_VA: i32 = 8;
const DESC_ENTRY: i32 = 16;
pub(super) const DESC_HOLDER: i32 = map::WINDOW_HOLDER as i32;
/// Of a read-only twin's table entry, behind the buffer's.
const TWIN: i32 = 8;
/// Slots of single pages, rounded up to a power of two: what bits of an address tell them apart.
const PAGE_SLOTS: u32 = 128;
/// Bits that tell places of single pages (set) from slots, and slots of buffers (set) from places: of an
/// address, and of the address of its entry.
const SIDES: [(u32, u32); 2] = [(20, 11), (25, 7)];

// Address ranges that one shift and one comparison tell.
const _: () = assert!(map::WINDOWS_VA.is_multiple_of(PAGE_SLOTS as u64 * map::PAGE));
const _: () = assert!(map::BUFFERS_VA == 7 << 26 && map::STACKS_VA == 8 << 26 && map::USER_END == 1 << 30);
const _: () = assert!(map::BUFFERS == 16 && map::BUFFER_STRIDE == 1 << 22);
const _: () = assert!(map::IMAGE_VA == 1 << 16 && map::WINDOWS_VA.is_multiple_of(1 << 21));
const BUFFERS: i32 = (map::BUFFERS_VA >> 26) as i32;

pub(super) const STRIDE_BITS: u32 = map::BUFFER_STRIDE.trailing_zeros();
pub(super) const PAGE_BITS: u32 = map::PAGE.trailing_zeros();

/// What a processor has of its own in windows. Flags are bits of a page table entry.
pub(super) trait Windows: Instructions {
    /// What becomes of the first and of the second window, until they are opened.
    const FOUND: [Reg; 2];
    /// The callee's control page, and the slot.
    const CONTROL: Reg;
    const SLOT: Reg;
    /// In the return leg: the descriptor.
    const DESC: Reg;
    /// Where the address of an entry is, and what `g` finds there.
    const PLACE: Reg;
    const GOAL: Reg;
    /// What [`Op::CheckSlots`] has found is still in [`Windows::SLOT`] behind a template.
    const SLOT_STAYS: bool;

    const MARKS: i32;
    /// Neither the domain's own nor open to it: a window that ends with its call, or foreign.
    const BORROWED: i32;
    const OPEN: i32;
    /// All flags and marks of a table entry; what they are of a table.
    const POINTER: i32;
    const TABLE: i32;
    /// Those that tell a table where the marks may be any.
    const TABLE_FLAGS: i32;
    /// A leaf that user mode may read; that it may write.
    const READABLE: i32;
    const WRITABLE: i32;

    /// The address of the level-1 entry for this address. `T2` and `T3` are scratch.
    fn find_table(e: &mut Emitter<Self>, at: Reg, from: Reg);
    /// Where the level-1 entry is to be read, if the leaf's address shall be in `at`.
    fn table_for(at: Reg) -> Reg;
    /// The address of the leaf's entry for this address, of the level-1 entry.
    fn find_leaf(e: &mut Emitter<Self>, at: Reg, table: Reg, from: Reg);
    /// Direct address of the table or page that an entry names.
    fn follow(e: &mut Emitter<Self>, rd: Reg, entry: Reg);
    /// Brings the last entries of a buffer's table into reach: returns what was added.
    fn table_end(e: &mut Emitter<Self>, lent: Lent, table: Reg) -> i32;
    /// Refuses the call unless this is below the number.
    fn refuse_unless_below(e: &mut Emitter<Self>, reg: Reg, number: i32);
    /// Refuses the call unless the running thread holds the slot at this address, which is looked up as a
    /// buffer's or, right after [`Windows::find_leaf`], as a page's.
    fn check_holder(e: &mut Emitter<Self>, from: Reg, slots: Slots);
    /// The entry becomes 0 if it is what the goal of a `g` call must hold: nothing, in a place; in a slot,
    /// that another such call waits. `bit` of `address` tells which; `side` is scratch.
    fn unlike_goal(e: &mut Emitter<Self>, long: bool, entry: Reg, address: Reg, bit: u32, side: Reg);

    /// A page's leaf, as it is lent; a buffer's entry, in `T3`.
    fn mark_page(e: &mut Emitter<Self>, found: Reg, window: WindowKind);
    fn mark_buffer(e: &mut Emitter<Self>, window: WindowKind);
    /// `from` becomes the same byte of the page at `T2`.
    fn within_page(e: &mut Emitter<Self>, from: Reg);

    /// The caller has no translation of what is torn away, a page at `from` or a buffer.
    fn forget_torn(e: &mut Emitter<Self>, lent: Lent, from: Reg);
    /// The branch that is taken if nobody has touched the page whose entry's address is in `T2`; if that can
    /// be told.
    fn branch_untouched(e: &mut Emitter<Self>) -> Option<Label>;
    /// The callee has no translation of the window any more; or the next window sees to that (`fence` is not
    /// set).
    fn forget_lent(e: &mut Emitter<Self>, lent: Lent, fence: bool);
    /// Sets the status to [`BLAMES`], unless there is an error already.
    fn blame(e: &mut Emitter<Self>);
    /// The branch that is taken if what is in `T3` is neither nothing nor [`Arch::WAITS`].
    fn branch_unlike_waits(e: &mut Emitter<Self>) -> Label;
}

/// Slots of pages or of buffers, as addresses name them.
#[derive(Clone, Copy)]
pub(super) struct Slots {
    pub long: bool,
    /// How many, rounded up to a power of two.
    pub count: u32,
    /// Where the holder of the first is.
    pub holder: i32,
}

const PAGES: Slots =
    Slots { long: false, count: PAGE_SLOTS, holder: map::WINDOW_PAGE_DESC as i32 + DESC_HOLDER };
const LONG: Slots = Slots {
    long: true,
    count: map::BUFFERS as u32 / 2,
    holder: map::WINDOW_BUFFER_DESC as i32 + DESC_HOLDER,
};

const fn queue(long: bool, apart: bool) -> i32 {
    let queue = if long { WINDOW_BUFFERS } else { WINDOW_PAGES };
    (if apart { queue + WINDOW_APART } else { queue }) as i32
}

/// The callee has not given what it must.
pub(super) const BLAMES: u64 = Hole::Blamed.symbol() + status::WINDOW;

/// What the entry in the slot is marked as.
pub(super) const fn mark<A: Windows>(window: WindowKind) -> i32 {
    match window {
        WindowKind::Open => A::OPEN,
        _ => A::BORROWED,
    }
}

impl<A: Windows + Stacks> Emitter<'_, A> {
    pub(super) fn check_window(&mut self, lent: Lent, keep: u8) {
        let (from, found) = (A::ARGUMENT + lent.from, A::FOUND[usize::from(lent.n)]);
        self.check_range(lent, from);
        if let Some(other) = self.torn_before(lent) {
            self.put(A::xor(A::T2, A::ARGUMENT + other, from));
            self.put(A::shift_right(A::T2, A::T2, if lent.is_long() { STRIDE_BITS } else { PAGE_BITS }));
            self.refuse_if_zero(A::T2);
        }
        if lent.is_long() {
            let at = if lent.window == WindowKind::Get { A::PLACE } else { found };
            A::find_table(self, at, from);
            return self.check_buffer(lent, (at, from), keep);
        }
        A::find_table(self, A::PLACE, from);
        let at = if lent.window == WindowKind::Tear { found } else { A::PLACE };
        let table = A::table_for(at);
        self.put(A::load(table, A::PLACE, 0));
        self.check_table(lent, table, from);
        A::find_leaf(self, at, table, from);
        match lent.window {
            WindowKind::Write | WindowKind::Read => {
                self.put(A::load(found, at, 0));
                let rights = if lent.window == WindowKind::Write { A::WRITABLE } else { A::READABLE };
                self.check_borrowed(found, rights, rights, (from, PAGES));
            }
            WindowKind::Open => {
                self.put(A::load(found, at, 0));
                self.demand(found, A::BORROWED | A::WRITABLE, A::WRITABLE);
            }
            WindowKind::Tear => {
                self.put(A::load(A::T2, at, 0));
                self.demand(A::T2, A::MARKS | A::WRITABLE, A::WRITABLE);
            }
            WindowKind::Get => return self.check_goal(lent, (at, from), keep),
        }
        if lent.window != WindowKind::Tear {
            A::mark_page(self, found, lent.window);
        }
    }

    /// `at`: address of the buffer's entry in the caller's level-1 table; `from`: the word with its address.
    fn check_buffer(&mut self, lent: Lent, (at, from): (Reg, Reg), keep: u8) {
        if lent.window == WindowKind::Get {
            return self.check_goal(lent, (at, from), keep);
        }
        let reads = lent.window == WindowKind::Read;
        self.put(A::load(A::T3, at, if reads { TWIN } else { 0 }));
        self.check_table(lent, A::T3, from);
        A::follow(self, A::T3, A::T3);
        let base = A::table_end(self, lent, A::T3);
        let rights = if reads { A::READABLE } else { A::WRITABLE };
        self.put(A::load(A::T2, A::T3, (i32::from(lent.pages) - 1) * 8 - base));
        self.demand(A::T2, rights, rights);
        if lent.pages < 512 {
            self.put(A::load(A::T2, A::T3, i32::from(lent.pages) * 8 - base));
            self.refuse_unless_zero(A::T2);
        }
    }

    /// Where `g` is to put pages: `at` is the address of the entry, which is kept.
    fn check_goal(&mut self, lent: Lent, (at, from): (Reg, Reg), keep: u8) {
        self.put(A::load(A::GOAL, at, 0));
        let bit = SIDES[usize::from(lent.is_long())].0;
        A::unlike_goal(self, lent.is_long(), A::GOAL, from, bit, A::T4);
        self.refuse_unless_zero(A::GOAL);
        self.save(at, keep);
    }

    pub(super) fn refuse_if_zero(&mut self, reg: Reg) {
        self.refuse(A::branch_equal(reg, A::ZERO), status::WINDOW);
    }

    pub(super) fn refuse_unless_zero(&mut self, reg: Reg) {
        self.refuse(A::branch_unequal(reg, A::ZERO), status::WINDOW);
    }

    /// Refuses an entry whose bits in `mask` are not `wanted`.
    fn demand(&mut self, entry: Reg, mask: i32, wanted: i32) {
        self.put(A::and_number(A::T4, entry, mask));
        self.put(A::unlike_number(A::T4, A::T4, wanted));
        self.refuse_unless_zero(A::T4);
    }

    /// The level-1 entry names a table, whose pages are the caller's to lend so.
    fn check_table(&mut self, lent: Lent, entry: Reg, from: Reg) {
        match lent.window {
            WindowKind::Write | WindowKind::Read => {
                self.check_borrowed(entry, A::TABLE_FLAGS, A::TABLE, (from, LONG))
            }
            WindowKind::Open if lent.is_long() => self.demand(entry, A::POINTER & !A::OPEN, A::TABLE),
            _ => self.demand(entry, A::POINTER, A::TABLE),
        }
    }

    /// Refuses an entry whose bits in `flags` are not `wanted`, that is foreign, or that another thread has
    /// borrowed. `place`: register of the address, what it is looked up as.
    fn check_borrowed(&mut self, entry: Reg, flags: i32, wanted: i32, (from, slots): (Reg, Slots)) {
        self.put(A::and_number(A::T4, entry, flags | A::BORROWED));
        self.put(A::unlike_number(A::T4, A::T4, wanted));
        let own = self.open(A::branch_equal(A::T4, A::ZERO));
        self.demand(entry, flags | A::MARKS, wanted | A::BORROWED);
        A::check_holder(self, from, slots);
        self.join(own);
    }

    /// The word of a first window that tears away, if this one might tear the same.
    fn torn_before(&mut self, lent: Lent) -> Option<u8> {
        let tears = |l: Lent| l.window == WindowKind::Tear && l.is_long() == lent.is_long();
        let first = self.first.replace(lent);
        first.filter(|first| tears(*first) && tears(lent)).map(|first| first.from)
    }

    /// Where such a window may lie.
    fn check_range(&mut self, lent: Lent, from: Reg) {
        match lent.window {
            _ if lent.is_long() => {
                self.put(A::shift_right(A::T2, from, 26));
                self.put(A::unlike_number(A::T2, A::T2, BUFFERS));
                self.refuse_unless_zero(A::T2);
                self.put(A::shift_left(A::T2, from, 64 - STRIDE_BITS));
                self.refuse_unless_zero(A::T2);
            }
            WindowKind::Write | WindowKind::Read => {
                self.put(A::shift_right(A::T2, from, map::USER_END.trailing_zeros()));
                self.refuse_unless_zero(A::T2);
            }
            WindowKind::Open | WindowKind::Tear => {
                self.put(A::shift_right(A::T2, from, map::IMAGE_VA.trailing_zeros()));
                self.refuse_if_zero(A::T2);
                self.put(A::shift_right(A::T2, from, 26));
                A::refuse_unless_below(self, A::T2, BUFFERS);
            }
            WindowKind::Get => {
                self.put(A::shift_right(A::T2, from, 21));
                self.put(A::unlike_number(A::T2, A::T2, (map::WINDOWS_VA >> 21) as i32));
                self.refuse_unless_zero(A::T2);
            }
        }
    }

    pub(super) fn check_slots(&mut self, first: bool, second: Option<bool>, apart: bool) {
        // Calls that end give slots back; where windows outlive their calls there may never be one.
        let unless = |e: &mut Self, slot| match apart {
            true => e.refuse_if_zero(slot),
            false => e.wait(slot),
        };
        self.hole(A::CONTROL, Hole::CalleeWindows);
        self.put(A::load(A::SLOT, A::CONTROL, queue(first, apart)));
        unless(self, A::SLOT);
        if let Some(second) = second {
            // The next in the same queue, or the first of the other.
            if second == first {
                self.shadow();
                self.put(A::load(A::T4, A::SLOT, 0));
            } else {
                self.put(A::load(A::T4, A::CONTROL, queue(second, apart)));
            }
            unless(self, A::T4);
        }
    }

    pub(super) fn open_window(&mut self, lent: Lent, word: u8, found: bool, fence: bool) {
        let from = A::ARGUMENT + lent.from;
        if !found && lent.n == 0 {
            self.hole(A::CONTROL, Hole::CalleeWindows);
        }
        if !found && (lent.n > 0 || !A::SLOT_STAYS) {
            self.put(A::load(A::SLOT, A::CONTROL, queue(lent.is_long(), lent.apart)));
        }
        self.put(A::load(A::T2, A::SLOT, 0));
        self.put(A::store(A::T2, A::CONTROL, queue(lent.is_long(), lent.apart)));
        if lent.holds() {
            self.put(A::store(A::SLOT, A::SLOT, DESC_HOLDER));
        } else if lent.is_borrowed() {
            self.put(A::store(A::TOP, A::SLOT, DESC_HOLDER));
        }
        self.put(A::load(A::T2, A::SLOT, DESC_ENTRY));
        if lent.window == WindowKind::Get {
            if !core::mem::replace(&mut self.awaited, true) {
                self.put(A::add_number(A::T3, A::ZERO, A::WAITS as i32));
            }
            self.put(A::store(A::T3, A::T2, 0));
        } else {
            self.show(lent, fence);
        }
        if lent.is_long() || lent.window == WindowKind::Get {
            self.put(A::load(from, A::SLOT, DESC_VA));
        } else {
            self.put(A::load(A::T2, A::SLOT, DESC_VA));
            A::within_page(self, from);
        }
        match lent.window {
            WindowKind::Open if lent.frame_words() == 0 => {}
            WindowKind::Tear => self.moved(lent, 1),
            _ => self.save(A::SLOT, word),
        }
    }

    /// Into the slot's entry, at `T2`.
    fn show(&mut self, lent: Lent, fence: bool) {
        let found = A::FOUND[usize::from(lent.n)];
        let words: &[i32] = if lent.is_long() { &[0, TWIN] } else { &[0] };
        match lent.window {
            WindowKind::Tear => {
                for at in words {
                    self.put(A::load(A::T3, found, *at));
                    self.put(A::store(A::T3, A::T2, *at));
                }
                for at in words {
                    self.put(A::store(A::ZERO, found, *at));
                }
                if fence {
                    A::forget_torn(self, lent, A::ARGUMENT + lent.from);
                }
            }
            _ if !lent.is_long() => self.put(A::store(found, A::T2, 0)),
            WindowKind::Read => {
                self.marked(lent, TWIN);
                self.put(A::store(A::T3, A::T2, 0));
                self.put(A::store(A::T3, A::T2, TWIN));
            }
            _ => {
                for at in words {
                    self.marked(lent, *at);
                    self.put(A::store(A::T3, A::T2, *at));
                }
            }
        }
    }

    /// A buffer's entry, as it is lent.
    fn marked(&mut self, lent: Lent, at: i32) {
        self.put(A::load(A::T3, A::FOUND[usize::from(lent.n)], at));
        A::mark_buffer(self, lent.window);
    }

    /// Pages have moved, to the callee (1) or from it (-1).
    fn moved(&mut self, lent: Lent, direction: i32) {
        let returning = self.ret_at.is_some();
        if returning {
            self.hole(A::T4, Hole::CalleeWindows);
        }
        let callee = if returning { A::T4 } else { A::CONTROL };
        for (control, sign) in [(callee, direction), (A::T4, -direction)] {
            if sign == -direction && (returning || !self.ready) {
                self.pool_load(A::T4, self.c.caller_windows());
            }
            self.put(A::load(A::T2, control, WINDOW_MOVED as i32));
            self.put(A::add_number(A::T2, A::T2, sign * lent.charge()));
            self.put(A::store(A::T2, control, WINDOW_MOVED as i32));
        }
        self.ready = !returning;
    }

    pub(super) fn close_window(&mut self, lent: Lent, word: u8, fence: bool) {
        self.load(A::DESC, word);
        let mut untouched = None;
        let kept = match lent.window {
            WindowKind::Get => Some(self.get(lent, word + 1)),
            _ => {
                if lent.holds() {
                    self.put(A::store(A::ZERO, A::DESC, DESC_HOLDER));
                }
                self.put(A::load(A::T2, A::DESC, DESC_ENTRY));
                if fence && !lent.is_long() {
                    untouched = A::branch_untouched(self);
                }
                self.put(A::store(A::ZERO, A::T2, 0));
                if lent.is_long() {
                    self.put(A::store(A::ZERO, A::T2, TWIN));
                }
                None
            }
        };
        // A window closed just before has left constants, unless its end needs the registers.
        self.ready &= kept.is_none();
        A::forget_lent(self, lent, fence);
        if let Some(branch) = untouched {
            self.join(branch);
        }
        if !self.ready {
            self.hole(A::T4, Hole::CalleeWindows);
        }
        self.ready = kept.is_none();
        self.put(A::load(A::T2, A::T4, queue(lent.is_long(), lent.apart)));
        self.put(A::store(A::T2, A::DESC, 0));
        self.put(A::store(A::DESC, A::T4, queue(lent.is_long(), lent.apart)));
        if let Some(branch) = kept {
            self.join(branch);
        }
    }

    /// The callee's address of the window whose descriptor is at hand, into `T2`.
    pub(super) fn lent_address(&mut self) {
        self.put(A::load(A::T2, A::DESC, DESC_VA));
    }

    /// Moves what the callee has put into the slot to where the caller wants it; `T6` is the slot's entry.
    /// Returns the branch that is taken if something else is there: then the callee keeps it, and the slot.
    fn get(&mut self, lent: Lent, keep: u8) -> Label {
        let (entry, look) = (A::T6, A::INDEX);
        self.put(A::store(A::ZERO, A::DESC, DESC_HOLDER));
        self.put(A::load(entry, A::DESC, DESC_ENTRY));
        self.put(A::load(A::T3, entry, 0));
        self.load(A::T2, keep);
        self.put(A::load(A::T4, A::T2, 0));
        let bit = SIDES[usize::from(lent.is_long())].1;
        A::unlike_goal(self, lent.is_long(), A::T4, A::T2, bit, look);
        let (mask, wanted) =
            if lent.is_long() { (A::POINTER, A::TABLE) } else { (A::MARKS | A::WRITABLE, A::WRITABLE) };
        self.put(A::and_number(look, A::T3, mask));
        self.put(A::unlike_number(look, look, wanted));
        self.put(A::or(look, look, A::T4));
        let mut bad = None;
        if lent.is_long() {
            bad = Some(self.open_alone(A::branch_unequal(look, A::ZERO)));
            A::follow(self, look, A::T3);
            let base = A::table_end(self, lent, look);
            self.put(A::load(A::T4, look, (i32::from(lent.pages) - 1) * 8 - base));
            self.put(A::and_number(A::T4, A::T4, A::WRITABLE));
            self.put(A::unlike_number(A::T4, A::T4, A::WRITABLE));
            if lent.pages < 512 {
                self.put(A::load(look, look, i32::from(lent.pages) * 8 - base));
                self.put(A::or(A::T4, A::T4, look));
            }
        }
        let good = self.open_alone(A::branch_equal(if lent.is_long() { A::T4 } else { look }, A::ZERO));
        if let Some(branch) = bad {
            self.join(branch);
        }
        // An error that came before names who is to blame better.
        A::blame(self);
        let kept = A::branch_unlike_waits(self);
        let nothing = self.open_with(A::branch_equal(A::ZERO, A::ZERO), A::store(A::ZERO, entry, 0));
        self.join(good);
        self.put(A::store(A::T3, A::T2, 0));
        self.put(A::store(A::ZERO, entry, 0));
        if lent.is_long() {
            self.put(A::load(A::T3, entry, TWIN));
            self.put(A::store(A::T3, A::T2, TWIN));
            self.put(A::store(A::ZERO, entry, TWIN));
        }
        self.moved(lent, -1);
        self.join(nothing);
        kept
    }
}

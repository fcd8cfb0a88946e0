//! Windows: page table entries found, checked, shown in a slot, and taken back.
//!
//! The entry of a table is the table's direct address, with flags below. Caller's level-1 table, and the
//! window control pages of both domains, are constants. Between check and opening, `a6` (first window) and
//! `a7` (second) hold the entry to be shown, or, where the caller's entry itself changes or a buffer's two
//! are needed, its address; `T1` the callee's control page, `v1` its first descriptor; `T2` to `T4` are
//! scratch. In the return leg `T1` is the descriptor, and `t0` and `T6` are scratch too.
//!
//! What is shown in a slot is marked as untouched, and the refill handler takes the mark away. So a window
//! that nobody has touched is closed without the TLB; of one that was, the entry is looked for
//! ([`Emitter::forget`]). Buffers, whose leaves are their owner's, have no such mark: closing one forgets the
//! whole domain.
//!
//! What the caller has borrowed itself it may lend on for as long as it has it, and the thread that has
//! brought it is the only one of which that is known: its calls end in order. So the slot's descriptor names
//! that thread, and another's call is refused ([`Emitter::check_holder`]). A page of the caller's own costs
//! one branch over all that.
//!
//! Every check branches to the way out that [`Emitter::refusal`] makes behind the leg.

use super::*;
use crate::hardware::ir::Lent;
use crate::spec::Window;
use pebble_abi::map::{WINDOW_APART, WINDOW_BUFFERS, WINDOW_MOVED, WINDOW_PAGES};

/// What becomes of the first and of the second window, until they are opened.
const FOUND: [Reg; 2] = [A6, A7];
const CONTROL: Reg = T1;
const SLOT: Reg = V1;
/// In the return leg: the descriptor, and the slot's entry.
const DESC: Reg = T1;
const ENTRY: Reg = T6;

const MARKS: u32 = paging::MARKS as u32;
const MARKS_AT: u32 = MARKS.trailing_zeros();
/// Neither the domain's own nor open to it: a window that ends with its call, or foreign.
const BORROWED: u32 = paging::BORROWED as u32;
/// A table.
const TABLE: u32 = paging::VALID as u32;
/// A leaf that user mode may read; that it may write.
const READABLE: u32 = (paging::VALID | paging::LEAF | paging::USER) as u32;
const WRITABLE: u32 = READABLE | paging::WRITE as u32;
/// All flags and marks of a table entry.
const POINTER: u32 = map::PAGE as u32 - 1;
/// A bit that all valid entries have.
const UNTOUCHED: u32 = paging::UNTOUCHED.trailing_zeros();
/// What may be executed is the bit below the marks.
const EXECUTE_AT: u32 = paging::EXECUTE.trailing_zeros();
const _: () = assert!(paging::VALID == 1 && EXECUTE_AT + 1 == MARKS_AT);
const DESC_VA: i32 = 8;
const DESC_ENTRY: i32 = 16;
const DESC_HOLDER: i32 = map::WINDOW_HOLDER as i32;
/// Of a read-only twin's table entry, behind the buffer's.
const TWIN: i32 = 8;
/// Slots of single pages, rounded up to a power of two: what bits of an address tell them apart.
const PAGE_SLOTS: u32 = 128;
const WAITS: u32 = paging::WAITS as u32;
const WAITS_AT: u32 = WAITS.trailing_zeros();
/// Bits that tell places of single pages (set) from slots, and slots of buffers (set) from places: of an
/// address, and of the address of its entry.
const SIDES: [(u32, u32); 2] = [(20, 11), (25, 7)];
/// Entries of a table, and in which bits of an entry's address they are.
const TABLE_BITS: u32 = 9;
const TABLE_AT: u32 = 3;

// Address ranges that one shift and one comparison tell.
const _: () = assert!(map::WINDOWS_VA.is_multiple_of(PAGE_SLOTS as u64 * map::PAGE));
const _: () = assert!(map::BUFFERS_VA == 7 << 26 && map::STACKS_VA == 8 << 26 && map::USER_END == 1 << 30);
const _: () = assert!(map::BUFFERS == 16 && map::BUFFER_STRIDE == 1 << 22);
const _: () = assert!(map::IMAGE_VA == 1 << 16 && map::WINDOWS_VA.is_multiple_of(1 << 21));
const BUFFERS: u32 = (map::BUFFERS_VA >> 26) as u32;

const fn queue(long: bool, apart: bool) -> i32 {
    let queue = if long { WINDOW_BUFFERS } else { WINDOW_PAGES };
    (if apart { queue + WINDOW_APART } else { queue }) as i32
}

/// What the entry in the slot is marked as.
const fn mark(window: Window) -> u32 {
    match window {
        Window::Open => paging::OPEN as u32,
        _ => paging::BORROWED as u32,
    }
}

impl Emitter<'_> {
    /// The branch refuses the call with this code.
    pub(super) fn refuse(&mut self, branch: u32, code: u64) {
        let branch = self.open(branch);
        let fits = self.refusals.add(branch, code as u16);
        self.a.demand(fits);
    }

    fn refuse_if_zero(&mut self, reg: Reg) {
        self.refuse(beq(reg, ZERO, 0), status::WINDOW);
    }

    fn refuse_unless_zero(&mut self, reg: Reg) {
        self.refuse(bne(reg, ZERO, 0), status::WINDOW);
    }

    /// Refuses an entry whose bits in `mask` are not `wanted`.
    fn demand(&mut self, entry: Reg, mask: u32, wanted: u32) {
        self.put(andi(T4, entry, mask));
        self.put(xori(T4, T4, wanted));
        self.refuse_unless_zero(T4);
    }

    /// Of a table's address or entry: the address of its entry for this address, `T2` is scratch.
    fn slot(&mut self, table: Reg, address: Reg, level: u32) {
        self.put(dsrl(T2, address, PAGE_BITS + TABLE_BITS * level));
        self.put(dins(table, T2, TABLE_AT, TABLE_BITS));
    }

    /// Of a table entry: the table's direct address.
    fn follow(&mut self, entry: Reg) {
        self.put(dins(entry, ZERO, 0, PAGE_BITS));
    }

    pub(super) fn check_window(&mut self, lent: Lent, keep: u8) {
        let (from, found) = (A0 + lent.from, FOUND[usize::from(lent.n)]);
        self.check_range(lent, from);
        if let Some(other) = self.torn_before(lent) {
            let bits = if lent.is_long() { map::BUFFER_STRIDE.trailing_zeros() } else { PAGE_BITS };
            self.put(xor(T2, A0 + other, from));
            self.put(dsrl(T2, T2, bits));
            self.refuse_if_zero(T2);
        }
        if lent.is_long() {
            let at = if lent.window == Window::Get { T3 } else { found };
            self.constant(at, self.c.caller.l1);
            self.slot(at, from, 1);
            return self.check_buffer(lent, (at, from), keep);
        }
        self.constant(T3, self.c.caller.l1);
        self.slot(T3, from, 1);
        let at = if lent.window == Window::Tear { found } else { T3 };
        self.put(ld(at, T3, 0));
        self.check_table(lent, at, from);
        self.follow(at);
        self.slot(at, from, 0);
        match lent.window {
            Window::Write | Window::Read => {
                self.put(ld(found, T3, 0));
                let rights = if lent.window == Window::Write { WRITABLE } else { READABLE };
                self.check_borrowed(found, rights, rights, (from, false));
            }
            Window::Open => {
                self.put(ld(found, T3, 0));
                self.demand(found, BORROWED | WRITABLE, WRITABLE);
            }
            Window::Tear => {
                self.put(ld(T2, found, 0));
                self.demand(T2, MARKS | WRITABLE, WRITABLE);
            }
            Window::Get => {
                self.put(ld(T2, T3, 0));
                self.unlike_goal(lent, T2, from, SIDES[0].0, T4);
                self.refuse_unless_zero(T2);
                self.save(T3, keep);
            }
        }
        if matches!(lent.window, Window::Write | Window::Read | Window::Open) {
            self.put(dins(found, ZERO, EXECUTE_AT, 3));
            if lent.window == Window::Read {
                self.put(dins(found, ZERO, paging::WRITE.trailing_zeros(), 1));
            }
            self.put(ori(found, found, mark(lent.window)));
            self.put(dins(found, found, UNTOUCHED, 1));
        }
    }

    /// The level-1 entry names a table, whose pages are the caller's to lend so.
    fn check_table(&mut self, lent: Lent, entry: Reg, from: Reg) {
        match lent.window {
            Window::Write | Window::Read => {
                self.check_borrowed(entry, POINTER & !MARKS, TABLE, (from, true));
            }
            Window::Open if lent.is_long() => self.demand(entry, POINTER & !(paging::OPEN as u32), TABLE),
            _ => self.demand(entry, POINTER, TABLE),
        }
    }

    /// Refuses an entry whose bits in `flags` are not `wanted`, that is foreign, or that another thread has
    /// borrowed. `place`: register of the address, whether it is looked up as a buffer's.
    fn check_borrowed(&mut self, entry: Reg, flags: u32, wanted: u32, place: (Reg, bool)) {
        self.put(andi(T4, entry, flags | BORROWED));
        self.put(xori(T4, T4, wanted));
        let own = self.open(beq(T4, ZERO, 0));
        self.demand(entry, flags | MARKS, wanted | BORROWED);
        self.check_holder(place);
        self.join(own);
    }

    /// Refuses the call unless the running thread holds the slot at this address. Of a page, `T2` has the part
    /// that is needed.
    fn check_holder(&mut self, (from, buffer): (Reg, bool)) {
        let (slots, first) = if buffer {
            (map::BUFFERS as u32 / 2, map::WINDOW_BUFFER_DESC)
        } else {
            (PAGE_SLOTS, map::WINDOW_PAGE_DESC)
        };
        if buffer {
            self.put(dsrl(T2, from, map::BUFFER_STRIDE.trailing_zeros()));
        }
        self.constant(T4, paging::root_va(self.c.caller.space));
        self.put(ld(T4, T4, map::ROOT_WINDOWS as i32));
        self.put(dins(T4, T2, map::WINDOW_DESC_BYTES.trailing_zeros(), slots.trailing_zeros()));
        self.put(ld(T2, T4, first as i32 + DESC_HOLDER));
        self.put(xor(T2, T2, K1));
        self.put(dsrl(T2, T2, PAGE_BITS));
        self.refuse_unless_zero(T2);
    }

    /// The word of a first window that tears away, if this one might tear the same.
    fn torn_before(&mut self, lent: Lent) -> Option<u8> {
        let tears = |l: Lent| l.window == Window::Tear && l.is_long() == lent.is_long();
        let first = self.first.replace(lent);
        first.filter(|first| tears(*first) && tears(lent)).map(|first| first.from)
    }

    /// Where such a window may lie.
    fn check_range(&mut self, lent: Lent, from: Reg) {
        match lent.window {
            _ if lent.is_long() => {
                self.put(dsrl(T2, from, 26));
                self.put(xori(T2, T2, BUFFERS));
                self.refuse_unless_zero(T2);
                self.put(dsll(T2, from, 64 - map::BUFFER_STRIDE.trailing_zeros()));
                self.refuse_unless_zero(T2);
            }
            Window::Write | Window::Read => {
                self.put(dsrl(T2, from, map::USER_END.trailing_zeros()));
                self.refuse_unless_zero(T2);
            }
            Window::Open | Window::Tear => {
                self.put(dsrl(T2, from, map::IMAGE_VA.trailing_zeros()));
                self.refuse_if_zero(T2);
                self.put(dsrl(T2, from, 26));
                self.put(sltiu(T2, T2, BUFFERS as i32));
                self.refuse_if_zero(T2);
            }
            Window::Get => {
                self.put(dsrl(T2, from, 21));
                self.put(xori(T2, T2, (map::WINDOWS_VA >> 21) as u32));
                self.refuse_unless_zero(T2);
            }
        }
    }

    /// The entry becomes 0 if it is what the goal of a `g` call must hold: nothing, in a place; in a slot,
    /// that another such call waits. `bit` of `address` tells which; `side` is scratch.
    fn unlike_goal(&mut self, lent: Lent, entry: Reg, address: Reg, bit: u32, side: Reg) {
        self.put(dsrl(side, address, bit - WAITS_AT));
        self.put(andi(side, side, WAITS));
        self.put(xor(entry, entry, side));
        if !lent.is_long() {
            self.put(xori(entry, entry, WAITS));
        }
    }

    /// `at`: address of the buffer's entry in the caller's level-1 table; `from`: the word with its address.
    fn check_buffer(&mut self, lent: Lent, (at, from): (Reg, Reg), keep: u8) {
        if lent.window == Window::Get {
            self.put(ld(T2, at, 0));
            self.unlike_goal(lent, T2, from, SIDES[1].0, T4);
            self.refuse_unless_zero(T2);
            return self.save(at, keep);
        }
        let reads = lent.window == Window::Read;
        self.put(ld(T3, at, if reads { TWIN } else { 0 }));
        self.check_table(lent, T3, from);
        self.follow(T3);
        let rights = if reads { READABLE } else { WRITABLE };
        self.put(ld(T2, T3, (i32::from(lent.pages) - 1) * 8));
        self.demand(T2, rights, rights);
        if lent.pages < 512 {
            self.put(ld(T2, T3, i32::from(lent.pages) * 8));
            self.refuse_unless_zero(T2);
        }
    }

    pub(super) fn check_slots(&mut self, first: bool, second: Option<bool>, apart: bool) {
        // Calls that end give slots back; where windows outlive their calls there may never be one.
        let unless = |e: &mut Self, slot| match apart {
            true => e.refuse_if_zero(slot),
            false => e.wait(slot),
        };
        self.constant(CONTROL, self.c.callee.windows);
        self.put(ld(SLOT, CONTROL, queue(first, apart)));
        unless(self, SLOT);
        if let Some(second) = second {
            // The next in the same queue, or the first of the other.
            if second == first {
                self.put(nop());
                self.put(ld(T4, SLOT, 0));
            } else {
                self.put(ld(T4, CONTROL, queue(second, apart)));
            }
            unless(self, T4);
        }
    }

    pub(super) fn open_window(&mut self, lent: Lent, word: u8, found: bool, fence: bool) {
        let from = A0 + lent.from;
        // Of the first, the slot is where the check has left it.
        if !found && lent.n == 0 {
            self.constant(CONTROL, self.c.callee.windows);
        } else if !found {
            self.put(ld(SLOT, CONTROL, queue(lent.is_long(), lent.apart)));
        }
        self.put(ld(T2, SLOT, 0));
        self.put(sd(T2, CONTROL, queue(lent.is_long(), lent.apart)));
        if lent.holds() {
            self.put(sd(SLOT, SLOT, DESC_HOLDER));
        } else if lent.is_borrowed() {
            self.put(sd(K1, SLOT, DESC_HOLDER));
        }
        self.put(ld(T2, SLOT, DESC_ENTRY));
        if lent.window == Window::Get {
            if !core::mem::replace(&mut self.awaited, true) {
                self.put(daddiu(T3, ZERO, WAITS as i32));
            }
            self.put(sd(T3, T2, 0));
        } else {
            self.show(lent, fence);
        }
        if lent.is_long() || lent.window == Window::Get {
            self.put(ld(from, SLOT, DESC_VA));
        } else {
            self.put(ld(T2, SLOT, DESC_VA));
            self.put(dins(T2, from, 0, PAGE_BITS));
            self.put(copy(from, T2));
        }
        match lent.window {
            Window::Open if lent.frame_words() == 0 => {}
            Window::Tear => self.moved(lent, 1),
            _ => self.save(SLOT, word),
        }
    }

    /// Into the slot's entry, at `T2`.
    fn show(&mut self, lent: Lent, fence: bool) {
        let (from, found) = (A0 + lent.from, FOUND[usize::from(lent.n)]);
        let words: &[i32] = if lent.is_long() { &[0, TWIN] } else { &[0] };
        match lent.window {
            Window::Tear => {
                for at in words {
                    self.put(ld(T3, found, *at));
                    self.put(sd(T3, T2, *at));
                }
                for at in words {
                    self.put(sd(ZERO, found, *at));
                }
                let caller = self.c.caller.asid;
                match lent.is_long() {
                    _ if !fence => {}
                    true => self.forget_all(caller),
                    false => {
                        self.put(copy(T2, from));
                        self.forget(caller);
                    }
                }
            }
            _ if !lent.is_long() => self.put(sd(found, T2, 0)),
            Window::Read => {
                self.marked(lent, TWIN);
                self.put(sd(T3, T2, 0));
                self.put(sd(T3, T2, TWIN));
            }
            _ => {
                for at in words {
                    self.marked(lent, *at);
                    self.put(sd(T3, T2, *at));
                }
            }
        }
    }

    /// A buffer's entry, as it is lent.
    fn marked(&mut self, lent: Lent, at: i32) {
        self.put(ld(T3, FOUND[usize::from(lent.n)], at));
        self.put(dins(T3, ZERO, MARKS_AT, MARKS.count_ones()));
        self.put(ori(T3, T3, mark(lent.window)));
    }

    /// The TLB has no entry for the address in `T2`, of this domain, any more. An entry is of two pages; what
    /// takes its place is of an address that nobody uses, another for each entry. The address space is left
    /// undefined.
    fn forget(&mut self, asid: u16) {
        self.put(dins(T2, ZERO, 0, PAGE_BITS + 1));
        self.put(ori(T2, T2, asid.into()));
        self.put(dmtc0(T2, c0::ENTRY_HI));
        self.put(ehb());
        self.put(tlbp());
        self.put(ehb());
        self.put(mfc0(T2, c0::INDEX));
        let none = self.open(bltz(T2, 0));
        self.put(nor(T2, T2, ZERO));
        self.put(dsll(T2, T2, PAGE_BITS + 1));
        self.put(dmtc0(T2, c0::ENTRY_HI));
        self.put(dmtc0(ZERO, c0::ENTRY_LO0));
        self.put(dmtc0(ZERO, c0::ENTRY_LO1));
        self.put(ehb());
        self.put(tlbwi());
        self.join(none);
    }

    /// The TLB has no entry of this domain any more. The call's return address tells where `k0` was.
    fn forget_all(&mut self, asid: u16) {
        self.put(copy(T3, K1));
        self.call_nucleus(regs::FLUSH, daddiu(T4, ZERO, asid.into()));
        let start = i32::from(self.ret_at.unwrap_or_default());
        self.put(daddiu(K0, T5, start - self.a.here() as i32 * 4));
        self.put(copy(K1, T3));
        self.ready = false;
    }

    /// Pages have moved, to the callee (1) or from it (-1).
    fn moved(&mut self, lent: Lent, direction: i32) {
        let returning = self.ret_at.is_some();
        if returning {
            self.constant(T4, self.c.callee.windows);
        }
        let callee = if returning { T4 } else { CONTROL };
        for (control, sign) in [(callee, direction), (T4, -direction)] {
            if sign == -direction && (returning || !self.ready) {
                self.constant(T4, self.c.caller.windows);
            }
            self.put(ld(T2, control, WINDOW_MOVED as i32));
            self.put(daddiu(T2, T2, sign * lent.charge()));
            self.put(sd(T2, control, WINDOW_MOVED as i32));
        }
        self.ready = !returning;
    }

    pub(super) fn close_window(&mut self, lent: Lent, word: u8, fence: bool) {
        self.load(DESC, word);
        let mut untouched = None;
        let kept = match lent.window {
            Window::Get => self.get(lent, word + 1),
            _ => {
                if lent.holds() {
                    self.put(sd(ZERO, DESC, DESC_HOLDER));
                }
                self.put(ld(T2, DESC, DESC_ENTRY));
                if lent.is_long() {
                    self.put(sd(ZERO, T2, 0));
                    self.put(sd(ZERO, T2, TWIN));
                } else {
                    // Another window's end makes all forgotten: then nothing is looked for.
                    if fence {
                        self.put(ld(T3, T2, 0));
                        untouched = Some(self.open(bltz(T3, 0)));
                    }
                    self.put(sd(ZERO, T2, 0));
                }
                None
            }
        };
        let callee = self.c.callee.asid;
        if lent.is_long() && fence {
            self.forget_all(callee);
        } else if fence {
            self.put(ld(T2, DESC, DESC_VA));
            self.forget(callee);
        }
        if let Some(branch) = untouched {
            self.join(branch);
        }
        // A window closed just before has left the constant.
        if !self.ready || kept.is_some() {
            self.constant(T4, self.c.callee.windows);
        }
        self.ready = kept.is_none();
        self.put(ld(T2, T4, queue(lent.is_long(), lent.apart)));
        self.put(sd(T2, DESC, 0));
        self.put(sd(DESC, T4, queue(lent.is_long(), lent.apart)));
        if let Some(branch) = kept {
            self.join(branch);
        }
    }

    /// Moves what the callee has put into the slot to where the caller wants it.
    /// Returns the branch that is taken if something else is there: then the callee keeps it, and the slot.
    fn get(&mut self, lent: Lent, keep: u8) -> Option<Label> {
        self.put(sd(ZERO, DESC, DESC_HOLDER));
        self.put(ld(ENTRY, DESC, DESC_ENTRY));
        self.put(ld(T3, ENTRY, 0));
        self.load(T2, keep);
        self.put(ld(T4, T2, 0));
        self.unlike_goal(lent, T4, T2, SIDES[usize::from(lent.is_long())].1, T0);
        let (mask, wanted) = if lent.is_long() { (POINTER, TABLE) } else { (MARKS | WRITABLE, WRITABLE) };
        self.put(andi(T0, T3, mask));
        self.put(xori(T0, T0, wanted));
        self.put(or(T0, T0, T4));
        let mut bad = None;
        if lent.is_long() {
            bad = Some(self.open_alone(bne(T0, ZERO, 0)));
            self.put(copy(T0, T3));
            self.follow(T0);
            self.put(ld(T4, T0, (i32::from(lent.pages) - 1) * 8));
            self.put(andi(T4, T4, WRITABLE));
            self.put(xori(T4, T4, WRITABLE));
            if lent.pages < 512 {
                self.put(ld(T0, T0, i32::from(lent.pages) * 8));
                self.put(or(T4, T4, T0));
            }
        }
        let good = self.open_alone(beq(if lent.is_long() { T4 } else { T0 }, ZERO, 0));
        if let Some(branch) = bad {
            self.join(branch);
        }
        // An error that came before names who is to blame better.
        self.constant(T4, status::WINDOW | u64::from(self.c.callee.asid) << 16);
        self.put(movz(V1, T4, V1));
        self.put(dins(T3, ZERO, WAITS_AT, 1));
        let kept = self.open_alone(bne(T3, ZERO, 0));
        let nothing = self.open(beq(ZERO, ZERO, 0));
        self.put(sd(ZERO, ENTRY, 0));
        self.join(good);
        self.put(sd(T3, T2, 0));
        self.put(sd(ZERO, ENTRY, 0));
        if lent.is_long() {
            self.put(ld(T3, ENTRY, TWIN));
            self.put(sd(T3, T2, TWIN));
            self.put(sd(ZERO, ENTRY, TWIN));
        }
        self.moved(lent, -1);
        self.join(nothing);
        Some(kept)
    }

    /// Back to the caller at once: nothing was taken, nothing pushed.
    pub(super) fn refusal(&mut self, code: u16) {
        self.put(dmtc0(RA, c0::EPC));
        self.constant(V1, u64::from(code) | u64::from(self.c.caller.asid) << 16);
        self.put(daddiu(V0, ZERO, -1));
        self.hide(Hidden::temporaries(2), true);
        self.leave();
    }
}

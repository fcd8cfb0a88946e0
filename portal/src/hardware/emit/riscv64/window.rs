//! Windows: page table entries found, checked, shown in a slot, and taken back.
//!
//! Two shifts make of a page table entry the direct address of the page that it names (`map::direct`).
//! Caller's level-1 table, and the window control pages of both domains, are constants that one `lui`
//! reaches. Between check and opening, `a6` (first window) and `a7` (second) hold the entry to be shown, or,
//! where the caller's entry itself changes or a buffer's two are needed, its address; `t5` the callee's
//! control page, `t6` its first descriptor; `t2`-`t4` are scratch, in the return leg also `t0`.
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
const CONTROL: Reg = T5;
const SLOT: Reg = T6;

const MARKS: i32 = paging::MARKS as i32;
/// Neither the domain's own nor open to it: a window that ends with its call, or foreign.
const BORROWED: i32 = paging::BORROWED as i32;
/// A leaf that user mode may write; that it may read.
const WRITABLE: i32 = (paging::V | paging::R | paging::W | paging::U) as i32;
const READABLE: i32 = (paging::V | paging::R | paging::U) as i32;
/// All flags and marks of a table entry.
const POINTER: i32 = 0x3ff;
const DESC_VA: i32 = 8;
const DESC_ENTRY: i32 = 16;
const DESC_HOLDER: i32 = map::WINDOW_HOLDER as i32;
/// Of a read-only twin's table entry, behind the buffer's.
const TWIN: i32 = 8;
/// Slots of single pages, rounded up to a power of two: what bits of an address tell them apart.
const PAGE_SLOTS: i32 = 128;
const WAITS: i32 = paging::WAITS as i32;
/// Bits that tell places of single pages (set) from slots, and slots of buffers (set) from places: of an
/// address, and of the address of its entry.
const SIDES: [(u32, u32); 2] = [(20, 11), (25, 7)];

// Address ranges that one shift and one comparison tell.
const _: () = assert!(map::WINDOWS_VA.is_multiple_of(PAGE_SLOTS as u64 * map::PAGE));
const _: () = assert!(map::BUFFERS_VA == 7 << 26 && map::STACKS_VA == 8 << 26 && map::USER_END == 1 << 30);
const _: () = assert!(map::BUFFERS == 16 && map::BUFFER_STRIDE == 1 << 22);
const _: () = assert!(map::IMAGE_VA == 1 << 16 && map::WINDOWS_VA.is_multiple_of(1 << 21));

const fn queue(long: bool, apart: bool) -> i32 {
    let queue = if long { WINDOW_BUFFERS } else { WINDOW_PAGES };
    (if apart { queue + WINDOW_APART } else { queue }) as i32
}

/// What the entry in the slot is marked as.
const fn mark(window: Window) -> i32 {
    match window {
        Window::Open => paging::OPEN as i32,
        _ => paging::BORROWED as i32,
    }
}

/// Bits that an entry loses before it is marked.
const fn stripped(lent: Lent) -> i32 {
    match lent.window {
        _ if lent.is_long() => MARKS,
        Window::Read => MARKS | (paging::X | paging::W) as i32,
        _ => MARKS | paging::X as i32,
    }
}

impl Emitter<'_> {
    /// The branch refuses the call with this code.
    pub(super) fn refuse(&mut self, branch: u32, code: u64) {
        let branch = self.open(branch);
        let fits = self.refusals.add(branch, code as u16);
        self.a.demand(fits);
    }

    fn refuse_window(&mut self, branch: u32) {
        self.refuse(branch, status::WINDOW);
    }

    fn refuse_unless_zero(&mut self, reg: Reg) {
        self.refuse_window(bne(reg, ZERO, 0));
    }

    /// Refuses an entry whose bits in `mask` are not `wanted`.
    fn demand(&mut self, entry: Reg, mask: i32, wanted: i32) {
        self.put(andi(T4, entry, mask));
        self.put(addi(T4, T4, -wanted));
        self.refuse_unless_zero(T4);
    }

    /// Direct address of the table or page that an entry names.
    fn follow(&mut self, rd: Reg, entry: Reg) {
        self.put(srli(rd, entry, 10));
        self.put(slli(rd, rd, 44));
        self.put(srai(rd, rd, 32));
    }

    pub(super) fn check_window(&mut self, lent: Lent, keep: u8) {
        let (from, found) = (A0 + lent.from, FOUND[usize::from(lent.n)]);
        self.check_range(lent, from);
        if let Some(other) = self.torn_before(lent) {
            self.put(xor(T2, A0 + other, from));
            self.put(srli(T2, T2, if lent.is_long() { map::BUFFER_STRIDE.trailing_zeros() } else { 12 }));
            self.refuse_window(beq(T2, ZERO, 0));
        }
        self.put(srli(T2, from, 21));
        self.put(slli(T2, T2, 3));
        self.constant(T3, self.c.caller.l1);
        let at = if lent.is_long() && lent.window != Window::Get { found } else { T2 };
        self.put(add(at, T2, T3));
        if lent.is_long() {
            return self.check_buffer(lent, (at, from), keep);
        }
        self.put(ld(T3, T2, 0));
        self.check_table(lent, from);
        self.follow(T3, T3);
        self.put(srli(T2, from, 12));
        self.put(andi(T2, T2, 511));
        self.put(slli(T2, T2, 3));
        let at = if lent.window == Window::Tear { found } else { T2 };
        self.put(add(at, T2, T3));
        match lent.window {
            Window::Write | Window::Read => {
                self.put(ld(found, T2, 0));
                let rights = if lent.window == Window::Write { WRITABLE } else { READABLE };
                self.check_borrowed(found, rights, rights, (from, false));
            }
            Window::Open => {
                self.put(ld(found, T2, 0));
                self.demand(found, BORROWED | WRITABLE, WRITABLE);
            }
            Window::Tear => {
                self.put(ld(T2, found, 0));
                self.demand(T2, MARKS | WRITABLE, WRITABLE);
            }
            Window::Get => {
                self.put(ld(T3, T2, 0));
                self.unlike_goal(lent, T3, from, SIDES[0].0, T4);
                self.refuse_unless_zero(T3);
                self.save(T2, keep);
            }
        }
        if matches!(lent.window, Window::Write | Window::Read | Window::Open) {
            self.put(andi(found, found, !stripped(lent)));
            self.put(ori(found, found, mark(lent.window)));
        }
    }

    /// The level-1 entry, in `t3`, names a table, whose pages are the caller's to lend so.
    fn check_table(&mut self, lent: Lent, from: Reg) {
        match lent.window {
            Window::Write | Window::Read => self.check_borrowed(T3, 0xff, paging::V as i32, (from, true)),
            Window::Open if lent.is_long() => {
                self.demand(T3, POINTER & !(paging::OPEN as i32), paging::V as i32)
            }
            _ => self.demand(T3, POINTER, paging::V as i32),
        }
    }

    /// Refuses an entry whose bits in `flags` are not `wanted`, that is foreign, or that another thread has
    /// borrowed. `place`: register of the address, whether it is looked up as a buffer's.
    fn check_borrowed(&mut self, entry: Reg, flags: i32, wanted: i32, place: (Reg, bool)) {
        self.put(andi(T4, entry, flags | BORROWED));
        self.put(addi(T4, T4, -wanted));
        let own = self.open(beq(T4, ZERO, 0));
        self.demand(entry, flags | MARKS, wanted | BORROWED);
        self.check_holder(place);
        self.join(own);
    }

    /// Refuses the call unless the running thread holds the slot at this address.
    fn check_holder(&mut self, (from, buffer): (Reg, bool)) {
        let (shift, slots, first) = if buffer {
            (map::BUFFER_STRIDE.trailing_zeros(), map::BUFFERS as i32 / 2, map::WINDOW_BUFFER_DESC)
        } else {
            (map::PAGE.trailing_zeros(), PAGE_SLOTS, map::WINDOW_PAGE_DESC)
        };
        self.put(srli(T2, from, shift));
        self.put(andi(T2, T2, slots - 1));
        self.put(slli(T2, T2, map::WINDOW_DESC_BYTES.trailing_zeros()));
        self.constant(T4, paging::root_va(self.c.caller.space));
        self.put(ld(T4, T4, map::ROOT_WINDOWS as i32));
        self.put(add(T2, T2, T4));
        self.put(ld(T2, T2, first as i32 + DESC_HOLDER));
        self.put(xor(T2, T2, T1));
        self.put(srli(T2, T2, map::PAGE.trailing_zeros()));
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
                self.put(srli(T2, from, 26));
                self.put(addi(T2, T2, -((map::BUFFERS_VA >> 26) as i32)));
                self.refuse_unless_zero(T2);
                self.put(slli(T2, from, 64 - map::BUFFER_STRIDE.trailing_zeros()));
                self.refuse_unless_zero(T2);
            }
            Window::Write | Window::Read => {
                self.put(srli(T2, from, map::USER_END.trailing_zeros()));
                self.refuse_unless_zero(T2);
            }
            Window::Open | Window::Tear => {
                self.put(srli(T2, from, map::IMAGE_VA.trailing_zeros()));
                self.refuse_window(beq(T2, ZERO, 0));
                self.put(srli(T2, from, 26));
                self.put(addi(T2, T2, -((map::BUFFERS_VA >> 26) as i32)));
                self.refuse_window(bge(T2, ZERO, 0));
            }
            Window::Get => {
                self.put(srli(T2, from, 21));
                self.put(addi(T2, T2, -((map::WINDOWS_VA >> 21) as i32)));
                self.refuse_unless_zero(T2);
            }
        }
    }

    /// The entry becomes 0 if it is what the goal of a `g` call must hold: nothing, in a place; in a slot,
    /// that another such call waits. `bit` of `address` tells which; `side` is scratch.
    fn unlike_goal(&mut self, lent: Lent, entry: Reg, address: Reg, bit: u32, side: Reg) {
        self.put(srli(side, address, bit - WAITS.trailing_zeros()));
        self.put(andi(side, side, WAITS));
        if lent.is_long() {
            self.put(xor(entry, entry, side));
        } else {
            self.put(addi(side, side, -WAITS));
            self.put(add(entry, entry, side));
        }
    }

    /// `at`: address of the buffer's entry in the caller's level-1 table; `from`: the word with its address.
    fn check_buffer(&mut self, lent: Lent, (at, from): (Reg, Reg), keep: u8) {
        if lent.window == Window::Get {
            self.put(ld(T3, at, 0));
            self.unlike_goal(lent, T3, from, SIDES[1].0, T4);
            self.refuse_unless_zero(T3);
            return self.save(at, keep);
        }
        let reads = lent.window == Window::Read;
        self.put(ld(T3, at, if reads { TWIN } else { 0 }));
        self.check_table(lent, from);
        self.follow(T3, T3);
        let base = self.table_end(lent, T3);
        let rights = if reads { READABLE } else { WRITABLE };
        self.put(ld(T2, T3, (i32::from(lent.pages) - 1) * 8 - base));
        self.demand(T2, rights, rights);
        if lent.pages < 512 {
            self.put(ld(T2, T3, i32::from(lent.pages) * 8 - base));
            self.refuse_unless_zero(T2);
        }
    }

    /// Brings the last entries of a buffer's table into reach: returns what was added.
    fn table_end(&mut self, lent: Lent, table: Reg) -> i32 {
        if lent.pages < 256 {
            return 0;
        }
        self.put(addi(table, table, 2047));
        2047
    }

    pub(super) fn check_slots(&mut self, first: bool, second: Option<bool>, apart: bool) {
        // Calls that end give slots back; where windows outlive their calls there may never be one.
        let unless = |e: &mut Self, slot| match apart {
            true => e.refuse_window(beq(slot, ZERO, 0)),
            false => e.wait(slot),
        };
        self.constant(CONTROL, self.c.callee.windows);
        self.put(ld(SLOT, CONTROL, queue(first, apart)));
        unless(self, SLOT);
        if let Some(second) = second {
            // The next in the same queue, or the first of the other.
            self.put(if second == first { ld(T4, SLOT, 0) } else { ld(T4, CONTROL, queue(second, apart)) });
            unless(self, T4);
        }
    }

    pub(super) fn open_window(&mut self, lent: Lent, word: u8, found: bool, fence: bool) {
        let from = A0 + lent.from;
        if !found {
            if lent.n == 0 {
                self.constant(CONTROL, self.c.callee.windows);
            }
            self.put(ld(SLOT, CONTROL, queue(lent.is_long(), lent.apart)));
        }
        self.put(ld(T2, SLOT, 0));
        self.put(sd(T2, CONTROL, queue(lent.is_long(), lent.apart)));
        if lent.holds() {
            self.put(sd(SLOT, SLOT, DESC_HOLDER));
        } else if lent.is_borrowed() {
            self.put(sd(T1, SLOT, DESC_HOLDER));
        }
        self.put(ld(T2, SLOT, DESC_ENTRY));
        if lent.window == Window::Get {
            if !core::mem::replace(&mut self.awaited, true) {
                self.put(addi(T3, ZERO, WAITS));
            }
            self.put(sd(T3, T2, 0));
        } else {
            self.show(lent, fence);
        }
        if lent.is_long() || lent.window == Window::Get {
            self.put(ld(from, SLOT, DESC_VA));
        } else {
            self.put(ld(T2, SLOT, DESC_VA));
            self.put(slli(from, from, 52));
            self.put(srli(from, from, 52));
            self.put(add(from, from, T2));
        }
        match lent.window {
            Window::Open if lent.frame_words() == 0 => {}
            Window::Tear => self.moved(lent, 1),
            _ => self.save(SLOT, word),
        }
    }

    /// Into the slot's entry, at `t2`.
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
                if fence {
                    self.constant(T3, self.c.caller.asid.into());
                    self.put(sfence_vma(if lent.is_long() { ZERO } else { from }, T3));
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
        self.put(andi(T3, T3, !stripped(lent)));
        self.put(ori(T3, T3, mark(lent.window)));
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
            self.put(addi(T2, T2, sign * lent.charge()));
            self.put(sd(T2, control, WINDOW_MOVED as i32));
        }
        self.ready = !returning;
    }

    pub(super) fn close_window(&mut self, lent: Lent, word: u8, fence: bool) {
        self.load(T5, word);
        let kept = match lent.window {
            Window::Get => self.get(lent, word + 1),
            _ => {
                if lent.holds() {
                    self.put(sd(ZERO, T5, DESC_HOLDER));
                }
                self.put(ld(T2, T5, DESC_ENTRY));
                self.put(sd(ZERO, T2, 0));
                if lent.is_long() {
                    self.put(sd(ZERO, T2, TWIN));
                }
                None
            }
        };
        // A window closed just before has left both constants.
        let ready = core::mem::replace(&mut self.ready, kept.is_none()) && kept.is_none();
        if !ready {
            self.constant(T3, self.c.callee.asid.into());
        }
        if lent.is_long() && fence {
            self.put(sfence_vma(ZERO, T3));
        } else if fence {
            self.put(ld(T2, T5, DESC_VA));
            self.put(sfence_vma(T2, T3));
        }
        if !ready {
            self.constant(T4, self.c.callee.windows);
        }
        self.put(ld(T2, T4, queue(lent.is_long(), lent.apart)));
        self.put(sd(T2, T5, 0));
        self.put(sd(T5, T4, queue(lent.is_long(), lent.apart)));
        if let Some(branch) = kept {
            self.join(branch);
        }
    }

    /// Moves what the callee has put into the slot to where the caller wants it; `t5` is the descriptor.
    /// Returns the branch that is taken if something else is there: then the callee keeps it, and the slot.
    fn get(&mut self, lent: Lent, keep: u8) -> Option<Label> {
        self.put(sd(ZERO, T5, DESC_HOLDER));
        self.put(ld(T6, T5, DESC_ENTRY));
        self.put(ld(T3, T6, 0));
        self.load(T2, keep);
        self.put(ld(T4, T2, 0));
        self.unlike_goal(lent, T4, T2, SIDES[usize::from(lent.is_long())].1, T0);
        let (mask, wanted) =
            if lent.is_long() { (POINTER, paging::V as i32) } else { (MARKS | WRITABLE, WRITABLE) };
        self.put(andi(T0, T3, mask));
        self.put(addi(T0, T0, -wanted));
        self.put(or(T0, T0, T4));
        let mut bad = None;
        if lent.is_long() {
            bad = Some(self.open(bne(T0, ZERO, 0)));
            self.follow(T0, T3);
            let base = self.table_end(lent, T0);
            self.put(ld(T4, T0, (i32::from(lent.pages) - 1) * 8 - base));
            self.put(andi(T4, T4, WRITABLE));
            self.put(addi(T4, T4, -WRITABLE));
            if lent.pages < 512 {
                self.put(ld(T0, T0, i32::from(lent.pages) * 8 - base));
                self.put(or(T4, T4, T0));
            }
        }
        let good = self.open(beq(if lent.is_long() { T4 } else { T0 }, ZERO, 0));
        if let Some(branch) = bad {
            self.join(branch);
        }
        // An error that came before names who is to blame better.
        let status = status::WINDOW | u64::from(self.c.callee.asid) << 16;
        let blamed = self.open(bne(A1, ZERO, 0));
        self.constant(A1, status);
        self.join(blamed);
        self.put(andi(T0, T3, !WAITS));
        let kept = self.open(bne(T0, ZERO, 0));
        self.put(sd(ZERO, T6, 0));
        let nothing = self.open(beq(ZERO, ZERO, 0));
        self.join(good);
        self.put(sd(T3, T2, 0));
        self.put(sd(ZERO, T6, 0));
        if lent.is_long() {
            self.put(ld(T3, T6, TWIN));
            self.put(sd(T3, T2, TWIN));
            self.put(sd(ZERO, T6, TWIN));
        }
        self.moved(lent, -1);
        self.join(nothing);
        Some(kept)
    }

    /// Back to the caller at once: nothing was taken, nothing pushed.
    pub(super) fn refusal(&mut self, code: u16) {
        self.put(csrrw(ZERO, csr::SEPC, RA));
        self.constant(A1, u64::from(code) | u64::from(self.c.caller.asid) << 16);
        self.put(addi(A0, ZERO, -1));
        self.scrub(registers(Hidden::temporaries(2)));
        self.put(sret());
    }
}

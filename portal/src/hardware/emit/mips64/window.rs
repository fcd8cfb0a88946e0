//! Windows on mips64.
//!
//! The entry of a table is the table's direct address, with flags below. Where an entry is becomes the
//! address of the next, so that one register is enough.
//!
//! What is shown in a slot is marked as untouched, and the refill handler takes the mark away. So a window
//! that nobody has touched is closed without the TLB; of one that was, the entry is looked for
//! ([`Emitter::forget`]). Buffers, whose leaves are their owner's, have no such mark: closing one forgets the
//! whole domain.

use super::*;
use crate::hardware::emit::window::{BLAMES, STRIDE_BITS, Slots, Windows, mark};
use crate::hardware::hole::Hole;
use crate::hardware::ir::Lent;
use crate::spec::WindowKind;

const MARKS_AT: u32 = paging::MARKS.trailing_zeros();
/// A bit that all valid entries have.
const UNTOUCHED: u32 = paging::UNTOUCHED.trailing_zeros();
/// What may be executed is the bit below the marks.
const EXECUTE_AT: u32 = paging::EXECUTE.trailing_zeros();
const _: () = assert!(paging::VALID == 1 && EXECUTE_AT + 1 == MARKS_AT);
const WAITS: u32 = paging::WAITS as u32;
const WAITS_AT: u32 = WAITS.trailing_zeros();
/// Entries of a table, and in which bits of an entry's address they are.
const TABLE_BITS: u32 = 9;
const TABLE_AT: u32 = 3;

impl Windows for Mips64 {
    const FOUND: [Reg; 2] = [A6, A7];
    const CONTROL: Reg = T1;
    const SLOT: Reg = V1;
    const DESC: Reg = T1;
    const PLACE: Reg = T3;
    const GOAL: Reg = T2;
    const SLOT_STAYS: bool = true;

    const MARKS: i32 = paging::MARKS as i32;
    const BORROWED: i32 = paging::BORROWED as i32;
    const OPEN: i32 = paging::OPEN as i32;
    const POINTER: i32 = map::PAGE as i32 - 1;
    const TABLE: i32 = paging::VALID as i32;
    const TABLE_FLAGS: i32 = Self::POINTER & !Self::MARKS;
    const READABLE: i32 = (paging::VALID | paging::LEAF | paging::USER) as i32;
    const WRITABLE: i32 = Self::READABLE | paging::WRITE as i32;

    fn find_table(e: &mut Emitter<Self>, at: Reg, from: Reg) {
        e.hole(at, Hole::Table);
        e.slot(at, from, 1);
    }
    fn table_for(at: Reg) -> Reg {
        at
    }
    fn find_leaf(e: &mut Emitter<Self>, at: Reg, table: Reg, from: Reg) {
        Self::follow(e, at, table);
        e.slot(at, from, 0);
    }
    fn follow(e: &mut Emitter<Self>, rd: Reg, entry: Reg) {
        if rd != entry {
            e.put(copy(rd, entry));
        }
        e.put(dins(rd, ZERO, 0, PAGE_BITS));
    }
    fn table_end(_e: &mut Emitter<Self>, _lent: Lent, _table: Reg) -> i32 {
        0
    }
    fn refuse_unless_below(e: &mut Emitter<Self>, reg: Reg, number: i32) {
        e.put(sltiu(reg, reg, number));
        e.refuse_if_zero(reg);
    }
    /// Of a page, `T2` has the part that is needed.
    fn check_holder(e: &mut Emitter<Self>, from: Reg, slots: Slots) {
        if slots.long {
            e.put(dsrl(T2, from, STRIDE_BITS));
        }
        e.hole(T4, Hole::Root);
        e.put(ld(T4, T4, map::ROOT_WINDOWS as i32));
        e.put(dins(T4, T2, map::WINDOW_DESC_BYTES.trailing_zeros(), slots.count.trailing_zeros()));
        e.put(ld(T2, T4, slots.holder));
        e.put(xor(T2, T2, K1));
        e.put(dsrl(T2, T2, PAGE_BITS));
        e.refuse_unless_zero(T2);
    }
    fn unlike_goal(e: &mut Emitter<Self>, long: bool, entry: Reg, address: Reg, bit: u32, side: Reg) {
        e.put(dsrl(side, address, bit - WAITS_AT));
        e.put(andi(side, side, WAITS));
        e.put(xor(entry, entry, side));
        if !long {
            e.put(xori(entry, entry, WAITS));
        }
    }

    fn mark_page(e: &mut Emitter<Self>, found: Reg, window: WindowKind) {
        e.put(dins(found, ZERO, EXECUTE_AT, 3));
        if window == WindowKind::Read {
            e.put(dins(found, ZERO, paging::WRITE.trailing_zeros(), 1));
        }
        e.put(ori(found, found, mark::<Self>(window) as u32));
        e.put(dins(found, found, UNTOUCHED, 1));
    }
    fn mark_buffer(e: &mut Emitter<Self>, window: WindowKind) {
        e.put(dins(T3, ZERO, MARKS_AT, paging::MARKS.count_ones()));
        e.put(ori(T3, T3, mark::<Self>(window) as u32));
    }
    fn within_page(e: &mut Emitter<Self>, from: Reg) {
        e.put(dins(T2, from, 0, PAGE_BITS));
        e.put(copy(from, T2));
    }

    fn forget_torn(e: &mut Emitter<Self>, lent: Lent, from: Reg) {
        if lent.is_long() {
            return e.forget_all(Hole::Caller);
        }
        e.put(copy(T2, from));
        e.forget(Hole::Caller);
    }
    fn branch_untouched(e: &mut Emitter<Self>) -> Option<Label> {
        e.put(ld(T3, T2, 0));
        Some(e.open(bltz(T3, 0)))
    }
    fn forget_lent(e: &mut Emitter<Self>, lent: Lent, fence: bool) {
        if lent.is_long() && fence {
            e.forget_all(Hole::Callee);
        } else if fence {
            e.lent_address();
            e.forget(Hole::Callee);
        }
    }
    fn blame(e: &mut Emitter<Self>) {
        e.pool_load(T4, BLAMES);
        e.put(movz(V1, T4, V1));
    }
    fn branch_unlike_waits(e: &mut Emitter<Self>) -> Label {
        e.put(dins(T3, ZERO, WAITS_AT, 1));
        e.open_alone(bne(T3, ZERO, 0))
    }
}

impl Emitter<'_, Mips64> {
    /// Of a table's address or entry: the address of its entry for this address, `T2` is scratch.
    fn slot(&mut self, table: Reg, address: Reg, level: u32) {
        self.put(dsrl(T2, address, PAGE_BITS + TABLE_BITS * level));
        self.put(dins(table, T2, TABLE_AT, TABLE_BITS));
    }

    /// The TLB has no entry for the address in `T2`, of this domain, any more. An entry is of two pages; what
    /// takes its place is of an address that nobody uses, another for each entry. The address space is left
    /// undefined.
    fn forget(&mut self, domain: Hole) {
        self.put(dins(T2, ZERO, 0, PAGE_BITS + 1));
        self.hole(T3, domain);
        self.put(or(T2, T2, T3));
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
    fn forget_all(&mut self, domain: Hole) {
        self.put(copy(T3, K1));
        self.call_nucleus(regs::FLUSH, |e| e.hole(T4, domain));
        let start = i32::from(self.ret_at.unwrap_or_default());
        self.put(daddiu(K0, T5, start - self.a.here() as i32 * 4));
        self.put(copy(K1, T3));
        self.ready = false;
    }
}

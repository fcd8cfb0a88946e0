//! Windows on rv64.
//!
//! Two shifts make of a page table entry the direct address of the page that it names (`map::direct`).
//! Addresses of entries are made in `t2`, tables are in `t3`.

use super::*;
use crate::hardware::emit::window::{BLAMES, PAGE_BITS, STRIDE_BITS, Slots, Windows, mark};
use crate::hardware::hole::Hole;
use crate::hardware::ir::Lent;
use crate::spec::WindowKind;

const WAITS: i32 = paging::WAITS as i32;

/// Bits that an entry loses before it is marked.
const fn stripped(window: WindowKind) -> i32 {
    let also = if matches!(window, WindowKind::Read) { paging::X | paging::W } else { paging::X };
    Riscv64::MARKS | also as i32
}

impl Windows for Riscv64 {
    const FOUND: [Reg; 2] = [A6, A7];
    const CONTROL: Reg = T5;
    const SLOT: Reg = T6;
    const DESC: Reg = T5;
    const PLACE: Reg = T2;
    const GOAL: Reg = T3;
    const SLOT_STAYS: bool = false;

    const MARKS: i32 = paging::MARKS as i32;
    const BORROWED: i32 = paging::BORROWED as i32;
    const OPEN: i32 = paging::OPEN as i32;
    const POINTER: i32 = 0x3ff;
    const TABLE: i32 = paging::V as i32;
    const TABLE_FLAGS: i32 = 0xff;
    const READABLE: i32 = (paging::V | paging::R | paging::U) as i32;
    const WRITABLE: i32 = (paging::V | paging::R | paging::W | paging::U) as i32;

    fn find_table(e: &mut Emitter<Self>, at: Reg, from: Reg) {
        e.put(srli(T2, from, 21));
        e.put(slli(T2, T2, 3));
        e.hole(T3, Hole::Table);
        e.put(add(at, T2, T3));
    }
    fn table_for(_at: Reg) -> Reg {
        T3
    }
    fn find_leaf(e: &mut Emitter<Self>, at: Reg, table: Reg, from: Reg) {
        Self::follow(e, table, table);
        e.put(srli(T2, from, 12));
        e.put(andi(T2, T2, 511));
        e.put(slli(T2, T2, 3));
        e.put(add(at, T2, table));
    }
    fn follow(e: &mut Emitter<Self>, rd: Reg, entry: Reg) {
        e.put(srli(rd, entry, 10));
        e.put(slli(rd, rd, 44));
        e.put(srai(rd, rd, 32));
    }
    fn table_end(e: &mut Emitter<Self>, lent: Lent, table: Reg) -> i32 {
        if lent.pages < 256 {
            return 0;
        }
        e.put(addi(table, table, 2047));
        2047
    }
    fn refuse_unless_below(e: &mut Emitter<Self>, reg: Reg, number: i32) {
        e.put(addi(reg, reg, -number));
        e.refuse(bge(reg, ZERO, 0), status::WINDOW);
    }
    fn check_holder(e: &mut Emitter<Self>, from: Reg, slots: Slots) {
        e.put(srli(T2, from, if slots.long { STRIDE_BITS } else { PAGE_BITS }));
        e.put(andi(T2, T2, slots.count as i32 - 1));
        e.put(slli(T2, T2, map::WINDOW_DESC_BYTES.trailing_zeros()));
        e.hole(T4, Hole::Root);
        e.put(ld(T4, T4, map::ROOT_WINDOWS as i32));
        e.put(add(T2, T2, T4));
        e.put(ld(T2, T2, slots.holder));
        e.put(xor(T2, T2, T1));
        e.put(srli(T2, T2, PAGE_BITS));
        e.refuse_unless_zero(T2);
    }
    fn unlike_goal(e: &mut Emitter<Self>, long: bool, entry: Reg, address: Reg, bit: u32, side: Reg) {
        e.put(srli(side, address, bit - WAITS.trailing_zeros()));
        e.put(andi(side, side, WAITS));
        if long {
            e.put(xor(entry, entry, side));
        } else {
            e.put(addi(side, side, -WAITS));
            e.put(add(entry, entry, side));
        }
    }

    fn mark_page(e: &mut Emitter<Self>, found: Reg, window: WindowKind) {
        e.put(andi(found, found, !stripped(window)));
        e.put(ori(found, found, mark::<Self>(window)));
    }
    fn mark_buffer(e: &mut Emitter<Self>, window: WindowKind) {
        e.put(andi(T3, T3, !Self::MARKS));
        e.put(ori(T3, T3, mark::<Self>(window)));
    }
    fn within_page(e: &mut Emitter<Self>, from: Reg) {
        e.put(slli(from, from, 64 - PAGE_BITS));
        e.put(srli(from, from, 64 - PAGE_BITS));
        e.put(add(from, from, T2));
    }

    fn forget_torn(e: &mut Emitter<Self>, lent: Lent, from: Reg) {
        e.hole(T3, Hole::Caller);
        e.put(sfence_vma(if lent.is_long() { ZERO } else { from }, T3));
    }
    fn branch_untouched(_e: &mut Emitter<Self>) -> Option<Label> {
        None
    }
    /// `t3` is one of the constants that a window leaves to the next.
    fn forget_lent(e: &mut Emitter<Self>, lent: Lent, fence: bool) {
        if !e.ready {
            e.hole(T3, Hole::Callee);
        }
        if lent.is_long() && fence {
            e.put(sfence_vma(ZERO, T3));
        } else if fence {
            e.lent_address();
            e.put(sfence_vma(T2, T3));
        }
    }
    fn blame(e: &mut Emitter<Self>) {
        let blamed = e.open(bne(A1, ZERO, 0));
        e.pool_load(A1, BLAMES);
        e.join(blamed);
    }
    fn branch_unlike_waits(e: &mut Emitter<Self>) -> Label {
        e.put(andi(T0, T3, !WAITS));
        e.open(bne(T0, ZERO, 0))
    }
}

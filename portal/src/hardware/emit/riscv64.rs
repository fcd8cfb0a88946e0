//! rv64 emitter: instructions, and the steps that are its own.
//!
//! While portal code runs, `gp` is the address of the leg's first instruction, `t1` the top of the invocation
//! stack, as `sscratch` says it too, `t0` still the caller's index, `t2` to `t6` scratch.

use super::steps::Steps;
use super::{Emitter, Instructions, Reg, float_words, offset};
use crate::asm::Label;
use crate::hardware::ir::{Hidden, Shape};
use crate::isa::riscv64::encode::*;
use pebble_abi::{map, status, sys, thread};
use pebble_arch::riscv64::{frame, paging};
use pebble_arch::{Arch, Riscv64};

mod stack;
mod template;
mod window;

/// Interrupts that domains take: timer and external.
const SIE: i32 = 0x220;
/// The `FS` field of `sstatus` is bits 13 and 14.
const FS_LUI: u32 = 6;

// What `Op::Room` tells by two bits.
const _: () = assert!(thread::INVOCATION_RESERVE == 3 << 10 && map::PAGE == 4 << 10);
// What `Op::Bounce` shifts out of `satp` leaves no bit of the page number.
const _: () = assert!(map::RAM_PA + map::RAM_BYTES <= 1 << 40);

/// Registers of [`Op::SavePreserved`] and [`Op::Switch`], in frame order.
const PRESERVED: [Reg; frame::PRESERVED] = [8, 9, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, TP];
/// Float registers of [`Op::SaveFloat`], in frame order, behind `fcsr`.
const FLOAT_PRESERVED: [Reg; 12] = [8, 9, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27];

/// Bytes of [`Op::Raise`]: behind it begins what only a thread's end comes to.
const RAISED: i32 = 8;

/// As bits.
const fn registers(hidden: Hidden) -> u32 {
    const TEMPORARIES: u32 = 7 << T0 | 15 << T3;
    let mut set = 1 << GP;
    if hidden.preserved {
        set |= 1 << TP | 3 << 8 | 0x3ff << 18;
    }
    if let Some(from) = hidden.temporaries {
        set |= TEMPORARIES | 0xff << (A0 + from) & 0xff << A0;
    }
    set
}

impl Instructions for Riscv64 {
    const ZERO: Reg = ZERO;
    const LINK: Reg = RA;
    const STACK: Reg = SP;
    const CODE: Reg = GP;
    const TOP: Reg = T1;
    const INDEX: Reg = T0;
    const ARGUMENT: Reg = A0;
    const VALUE: Reg = A0;
    const STATUS: Reg = A1;
    const T1: Reg = T1;
    const T2: Reg = T2;
    const T3: Reg = T3;
    const T4: Reg = T4;
    const T5: Reg = T5;
    const T6: Reg = T6;
    const REACH: usize = 2048;
    const SHADOW: Option<u32> = None;

    fn leads(branch: u32, distance: i32) -> u32 {
        branch | beq(ZERO, ZERO, distance) & !0x7f
    }
    fn displaced(word: u32, by: usize) -> u32 {
        word | (by as u32) << 20
    }

    fn load(rd: Reg, base: Reg, offset: i32) -> u32 {
        ld(rd, base, offset)
    }
    fn store(from: Reg, base: Reg, offset: i32) -> u32 {
        sd(from, base, offset)
    }
    fn copy(rd: Reg, from: Reg) -> u32 {
        addi(rd, from, 0)
    }
    fn add_number(rd: Reg, a: Reg, number: i32) -> u32 {
        addi(rd, a, number)
    }
    fn and_number(rd: Reg, a: Reg, number: i32) -> u32 {
        andi(rd, a, number)
    }
    fn unlike_number(rd: Reg, a: Reg, number: i32) -> u32 {
        addi(rd, a, -number)
    }
    fn shift_left(rd: Reg, a: Reg, by: u32) -> u32 {
        slli(rd, a, by)
    }
    fn shift_right(rd: Reg, a: Reg, by: u32) -> u32 {
        srli(rd, a, by)
    }
    fn add(rd: Reg, a: Reg, b: Reg) -> u32 {
        add(rd, a, b)
    }
    fn subtract(rd: Reg, a: Reg, b: Reg) -> u32 {
        sub(rd, a, b)
    }
    fn or(rd: Reg, a: Reg, b: Reg) -> u32 {
        or(rd, a, b)
    }
    fn xor(rd: Reg, a: Reg, b: Reg) -> u32 {
        xor(rd, a, b)
    }
    fn branch_equal(a: Reg, b: Reg) -> u32 {
        beq(a, b, 0)
    }
    fn branch_unequal(a: Reg, b: Reg) -> u32 {
        bne(a, b, 0)
    }
    fn branch_negative(a: Reg) -> u32 {
        blt(a, ZERO, 0)
    }
    fn branch_not_positive(a: Reg) -> u32 {
        bge(ZERO, a, 0)
    }

    /// `lui` part of an address in the last 2 GiB or the first; the rest fits the offset of a load.
    fn high(e: &mut Emitter<Self>, rd: Reg, address: u64) -> i32 {
        let low = (address as i32) << 20 >> 20;
        e.put(lui(rd, ((address as i64 - low as i64) >> 12) as u32));
        low
    }

    fn constant(e: &mut Emitter<Self>, rd: Reg, value: u64) {
        let signed = value as i64;
        if (-2048..2048).contains(&signed) {
            e.put(addi(rd, ZERO, signed as i32));
            return;
        }
        let upper = signed + 0x800 == (signed + 0x800) as i32 as i64;
        // One load where two instructions would be needed.
        if !upper || value & 0xfff != 0 {
            return e.pool_load(rd, value);
        }
        e.high(rd, value);
    }
}

impl Steps for Riscv64 {
    const NUCLEUS: u32 = 1 << GP;
    const PRESERVED: &'static [Reg] = &PRESERVED;
    const COUNTING: [Reg; 2] = [T1, T2];
    const INTERRUPTED: &'static [Reg] = &[T2, A0];

    fn top(e: &mut Emitter<Self>) {
        e.put(csrrs(T1, csr::SSCRATCH, ZERO));
    }
    fn room(e: &mut Emitter<Self>, reserve: bool) {
        if reserve {
            // Both upper bits of the offset in the page: the last quarter.
            e.put(slli(T2, T1, 52));
            e.put(srli(T2, T2, 62));
            e.put(addi(T2, T2, -3));
            e.refuse(beq(T2, ZERO, 0), status::FULL);
            return;
        }
        e.put(slli(T2, T1, 63 - thread::INVOCATION_LIMIT.trailing_zeros()));
        e.raises = Some((e.open(blt(T2, ZERO, 0)), 1 << T1 | 1 << T2));
    }
    fn save_float(e: &mut Emitter<Self>, word: u8) {
        e.put(csrrs(T2, csr::FCSR, ZERO));
        e.save(T2, word);
        for (i, reg) in FLOAT_PRESERVED.into_iter().enumerate() {
            e.put(fsd(reg, T1, offset(word + 1 + i as u8)));
        }
    }
    fn load_float(e: &mut Emitter<Self>, word: u8) {
        for (i, reg) in FLOAT_PRESERVED.into_iter().enumerate() {
            e.put(fld(reg, T1, offset(word + 1 + i as u8) - e.bias));
        }
        e.load(T2, word);
        e.put(csrrw(ZERO, csr::FCSR, T2));
    }
    fn float_off(e: &mut Emitter<Self>) {
        e.put(lui(T2, FS_LUI));
        e.put(csrrc(ZERO, csr::SSTATUS, T2));
    }
    fn float_on(e: &mut Emitter<Self>) {
        e.put(lui(T2, FS_LUI));
        e.put(csrrs(ZERO, csr::SSTATUS, T2));
    }
    fn float_scrub(e: &mut Emitter<Self>, preserved: bool) {
        if preserved {
            e.put(csrrw(ZERO, csr::FCSR, ZERO));
        }
        for x in (0..32).filter(|x| preserved || !FLOAT_PRESERVED.contains(x)) {
            e.put(fmv_d_x(x, ZERO));
        }
    }
    /// `t1` goes through `sscratch`, since no register is free but `gp`.
    fn save_all(e: &mut Emitter<Self>, float: bool) {
        let base = float_words::<Self>(float);
        e.put(csrrw(T1, csr::SSCRATCH, T1));
        for x in (1..32).filter(|x| *x != GP && *x != T1) {
            e.save(x, base + frame::word(x as usize) as u8);
        }
        let rest =
            [(csr::SSCRATCH, frame::word(T1 as usize)), (csr::SEPC, frame::PC), (csr::SATP, frame::SPACE)];
        for (csr, word) in rest {
            e.put(csrrs(T2, csr, ZERO));
            e.save(T2, base + word as u8);
        }
        if float {
            for f in 0..32 {
                e.put(fsd(f, T1, offset(f)));
            }
            e.put(csrrs(T2, csr::FCSR, ZERO));
            e.save(T2, 32);
        }
    }
    fn load_all(e: &mut Emitter<Self>, float: bool) {
        let base = float_words::<Self>(float);
        if float {
            e.load(T2, 32);
            e.put(csrrw(ZERO, csr::FCSR, T2));
            for f in 0..32 {
                e.put(fld(f, T1, offset(f) - e.bias));
            }
        }
        for x in (1..32).filter(|x| *x != GP && *x != T1) {
            e.load(x, base + frame::word(x as usize) as u8);
        }
        e.load(T1, base + frame::word(T1 as usize) as u8);
    }
    fn load_trapped(e: &mut Emitter<Self>, float: bool) {
        let base = float_words::<Self>(float);
        e.load(T2, base + frame::PC as u8);
        e.put(csrrw(ZERO, csr::SEPC, T2));
        e.load(T2, base + frame::SPACE as u8);
        e.put(csrrw(ZERO, csr::SATP, T2));
    }
    fn check_stack(e: &mut Emitter<Self>) {
        e.find_stack();
        e.wait_unless_found();
    }
    fn take_stack(e: &mut Emitter<Self>, word: u8, checked: bool) {
        e.find_stack();
        if !checked {
            e.wait_unless_found();
        }
        e.put(sd(T4, T2, 0));
        e.put(ld(SP, T3, 8));
        e.save(T3, word);
    }
    fn mask(e: &mut Emitter<Self>) {
        e.put(csrrw(ZERO, csr::SIE, ZERO));
    }
    fn unmask(e: &mut Emitter<Self>) {
        e.put(addi(T2, ZERO, SIE));
        e.put(csrrw(ZERO, csr::SIE, T2));
    }
    fn interrupted(e: &mut Emitter<Self>, float: bool) {
        e.put(csrrs(A0, csr::SCAUSE, ZERO));
        e.no_interrupt = Some((e.open(bge(A0, ZERO, 0)), float));
    }
    fn save_cause(e: &mut Emitter<Self>, word: u8) {
        e.put(csrrs(T2, csr::SCAUSE, ZERO));
        e.save(T2, word);
    }
    fn lacking(e: &mut Emitter<Self>) {
        e.put(csrrs(A0, csr::STVAL, ZERO));
        Self::running(e, A1);
    }
    fn load_gate(e: &mut Emitter<Self>) {
        e.put(lui(RA, (map::GATE_VA >> 12) as u32));
    }
    fn result_top(e: &mut Emitter<Self>) {
        e.put(csrrs(A0, csr::SSCRATCH, ZERO));
    }
    fn set_timer(e: &mut Emitter<Self>) {
        e.put(csrrw(ZERO, csr::STIMECMP, A1));
    }
    fn flush(e: &mut Emitter<Self>) {
        e.put(sfence_vma(ZERO, A1));
    }
    fn idle(e: &mut Emitter<Self>) {
        e.put(wfi());
    }
    /// Old thread's registers into its block, new one's out of its block, then its return code.
    fn switch(e: &mut Emitter<Self>) {
        e.put(csrrs(T1, csr::SSCRATCH, ZERO));
        e.put(srli(T2, T1, 12));
        e.put(slli(T2, T2, 12));
        e.put(sd(T1, T2, thread::SAVED_TOP as i32));
        let slots = || PRESERVED.into_iter().zip((thread::SAVED_REGS as i32..).step_by(8));
        for (reg, at) in slots() {
            e.put(sd(reg, T2, at));
        }
        e.put(andi(T2, A0, map::MAX_THREADS as i32 - 1));
        e.put(slli(T2, T2, 12));
        e.high(T3, map::THREADS_VA);
        e.put(add(T2, T2, T3));
        e.put(ld(T1, T2, thread::SAVED_TOP as i32));
        for (reg, at) in slots() {
            e.put(ld(reg, T2, at));
        }
        e.put(addi(A0, A1, 0));
        e.put(ld(GP, T1, 0));
        e.put(jalr(ZERO, GP, 0));
    }
    fn dispatch(e: &mut Emitter<Self>) {
        e.put(csrrs(T1, csr::SSCRATCH, ZERO));
        e.put(ld(GP, T1, 0));
        e.put(jalr(ZERO, GP, 0));
    }
    fn end_thread(e: &mut Emitter<Self>) {
        e.put(Self::ends_thread());
        e.put(jalr(ZERO, GP, RAISED));
    }
    fn bounce(e: &mut Emitter<Self>, code: u16) {
        e.put(csrrs(T1, csr::SSCRATCH, ZERO));
        e.put(ld(GP, T1, 0));
        if u64::from(code) == status::TIMEOUT {
            // The late call's bit to the sign.
            e.put(slli(GP, GP, Self::LATE.leading_zeros()));
            e.raises = Some((e.open(bge(GP, ZERO, 0)), 1 << T1));
            e.put(ld(GP, T1, 0));
        }
        e.put(csrrs(A1, csr::SATP, ZERO));
        // The domain's number to bit 16; of the page number, nothing is left.
        e.put(slli(A1, A1, 4));
        e.put(srli(A1, A1, 32));
        e.put(ori(A1, A1, i32::from(code & 0x7ff)));
        e.put(addi(A0, ZERO, -1));
        e.put(jalr(ZERO, GP, 4));
    }

    fn raise(e: &mut Emitter<Self>) {
        e.put(ld(GP, ZERO, sys::EXCEPTION as i32 * 8));
        e.put(jalr(ZERO, GP, 0));
    }
    fn leave(e: &mut Emitter<Self>) {
        e.put(sret());
    }
    fn hide(e: &mut Emitter<Self>, hidden: Hidden, _returning: bool) {
        e.scrub(registers(hidden));
    }
    fn set_pc(from: Reg) -> u32 {
        csrrw(ZERO, csr::SEPC, from)
    }
    fn set_top() -> u32 {
        csrrw(ZERO, csr::SSCRATCH, T1)
    }
    fn enter(e: &mut Emitter<Self>) {
        e.put(csrrw(ZERO, csr::SATP, T3));
    }
    fn trap(e: &mut Emitter<Self>) {
        e.put(csrrs(A0, csr::SCAUSE, ZERO));
        e.put(csrrs(A1, csr::STVAL, ZERO));
        e.put(csrrs(A2, csr::SEPC, ZERO));
    }
    fn running(e: &mut Emitter<Self>, rd: Reg) {
        e.put(csrrs(rd, csr::SATP, ZERO));
        e.put(slli(rd, rd, 4));
        e.put(srli(rd, rd, 48));
    }
    fn thread_id(e: &mut Emitter<Self>, rd: Reg, top: Reg) {
        e.put(srli(rd, top, 12));
        e.put(andi(rd, rd, map::MAX_THREADS as i32 - 1));
    }
    fn second_quarter(e: &mut Emitter<Self>, reg: Reg) {
        e.put(slli(reg, reg, 32));
        e.put(srli(reg, reg, 48));
    }
    fn time(e: &mut Emitter<Self>, to: Reg) {
        e.put(csrrs(to, csr::TIME, ZERO));
    }
    fn ends_thread() -> u32 {
        ld(GP, ZERO, sys::THREAD_END as i32 * 8)
    }
    fn frame_word(reg: Reg) -> usize {
        frame::word(reg.into())
    }
    fn restored(e: &mut Emitter<Self>) {
        e.put(csrrw(T1, csr::SSCRATCH, T1));
    }
}

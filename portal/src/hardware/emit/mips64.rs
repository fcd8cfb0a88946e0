//! mips64 emitter (`docs/src/mips.md`): instructions, and the steps that are its own.
//!
//! While portal code runs, `k0` is the address of the leg's first instruction, `k1` the top of the invocation
//! stack, as `ErrorEPC` says it too, `t0` still the caller's index; `T1` to `T6` are scratch.
//!
//! The instruction behind a branch is executed on both ways: where it is what comes next anyway, it does no
//! harm on the other, which overwrites, scrubs or restores what it has changed.
//!
//! There is no floating point, so what a domain that uses it would keep is nothing.

use super::steps::Steps;
use super::{Emitter, Instructions, Reg};
use crate::asm::Label;
use crate::hardware::MAX_WORDS;
use crate::hardware::ir::{Hidden, Shape};
use crate::isa::mips64::encode::*;
use pebble_abi::{map, status, sys, thread};
use pebble_arch::mips64::{frame, paging, regs};
use pebble_arch::{Arch, Mips64};

mod stack;
mod template;
mod time;
mod window;

use time::TIMED;

// What `Op::Room` tells by a bit, and by two.
const _: () = assert!(thread::INVOCATION_LIMIT.is_power_of_two() && map::PAGE == 4 << 10);
const RESERVE: u32 = thread::INVOCATION_RESERVE as u32;
const _: () = assert!(RESERVE == 3 << 10);

/// Bits of domains' and threads' numbers.
const ASID_BITS: u32 = map::MAX_DOMAINS.trailing_zeros();
const THREAD_BITS: u32 = map::MAX_THREADS.trailing_zeros();
const PAGE_BITS: u32 = map::PAGE.trailing_zeros();
// `Op::Switch` puts the thread's number into this address.
const _: () = assert!(map::THREADS_VA.is_multiple_of(map::PAGE << THREAD_BITS));

/// What calls of the nucleus use.
const CALLED: u32 = 1 << T4 | 1 << T5 | 1 << T6;

/// Of `Cause`: the kind of exception, which is 0 of interrupts.
const KIND: u32 = 0x7c;

/// Registers of [`Op::SavePreserved`] and [`Op::Switch`], in frame order.
const PRESERVED: [Reg; frame::PRESERVED] = [16, 17, 18, 19, 20, 21, 22, 23, FP, GP];
/// Registers of a trap's frame.
const ALL: [Reg; 29] = {
    let mut all = [0; 29];
    let mut x = 1;
    while x < 32 {
        if x != K0 && x != K1 {
            all[frame::word(x as usize)] = x;
        }
        x += 1;
    }
    all
};

/// Bytes of [`Op::Raise`]: behind it begins what only a thread's end comes to.
const RAISED: i32 = 20;

/// As bits; `returning`: to who has called, with results instead of arguments.
const fn registers(hidden: Hidden, returning: bool) -> u32 {
    const TEMPORARIES: u32 = 0xf << T0 | 3 << T4 | 1 << T6;
    const ARGUMENTS: u32 = 0xff << A0;
    let mut set = 1 << K0 | 1 << K1;
    if hidden.preserved {
        set |= 0xff << 16 | 1 << FP | 1 << GP;
    }
    if let Some(from) = hidden.temporaries {
        // The first two results have registers of their own.
        let others = if returning { 3 << A0 } else { 3 << V0 };
        set |= TEMPORARIES | others | 0xff << (A0 + from) & ARGUMENTS;
    }
    set
}

// Distances to the pool and to the return leg are in the lower half of an instruction, and positive.
const _: () = assert!(MAX_WORDS * 4 < Mips64::REACH);

impl Instructions for Mips64 {
    const ZERO: Reg = ZERO;
    const LINK: Reg = RA;
    const STACK: Reg = SP;
    const CODE: Reg = K0;
    const TOP: Reg = K1;
    const INDEX: Reg = T0;
    const ARGUMENT: Reg = A0;
    const VALUE: Reg = V0;
    const STATUS: Reg = V1;
    const T1: Reg = T1;
    const T2: Reg = T2;
    const T3: Reg = T3;
    const T4: Reg = T4;
    const T5: Reg = T5;
    const T6: Reg = T6;
    const REACH: usize = 0x8000;
    const SHADOW: Option<u32> = Some(0);

    fn leads(branch: u32, distance: i32) -> u32 {
        branch & !0xffff | beq(ZERO, ZERO, distance) & 0xffff
    }
    fn displaced(word: u32, by: usize) -> u32 {
        word | by as u32
    }

    fn load(rd: Reg, base: Reg, offset: i32) -> u32 {
        ld(rd, base, offset)
    }
    fn store(from: Reg, base: Reg, offset: i32) -> u32 {
        sd(from, base, offset)
    }
    fn copy(rd: Reg, from: Reg) -> u32 {
        copy(rd, from)
    }
    fn add_number(rd: Reg, a: Reg, number: i32) -> u32 {
        daddiu(rd, a, number)
    }
    fn and_number(rd: Reg, a: Reg, number: i32) -> u32 {
        andi(rd, a, number as u32)
    }
    fn unlike_number(rd: Reg, a: Reg, number: i32) -> u32 {
        xori(rd, a, number as u32)
    }
    fn shift_left(rd: Reg, a: Reg, by: u32) -> u32 {
        dsll(rd, a, by)
    }
    fn shift_right(rd: Reg, a: Reg, by: u32) -> u32 {
        dsrl(rd, a, by)
    }
    fn add(rd: Reg, a: Reg, b: Reg) -> u32 {
        daddu(rd, a, b)
    }
    fn subtract(rd: Reg, a: Reg, b: Reg) -> u32 {
        dsubu(rd, a, b)
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
        bltz(a, 0)
    }
    fn branch_not_positive(a: Reg) -> u32 {
        blez(a, 0)
    }

    /// `lui` part of an address in the last 2 GiB or the first; the rest fits the offset of a load.
    fn high(e: &mut Emitter<Self>, rd: Reg, address: u64) -> i32 {
        let low = i32::from(address as i16);
        e.put(lui(rd, (address as u32).wrapping_sub(low as u32) >> 16));
        low
    }

    fn constant(e: &mut Emitter<Self>, rd: Reg, value: u64) {
        let (signed, low) = (value as i64, value as u32 & 0xffff);
        match () {
            _ if value == 0 => e.put(copy(rd, ZERO)),
            _ if (-0x8000..0x8000).contains(&signed) => e.put(daddiu(rd, ZERO, signed as i32)),
            _ if value <= 0xffff => e.put(ori(rd, ZERO, low)),
            // One load where two instructions would be needed.
            _ if signed != i64::from(signed as i32) || low != 0 => e.pool_load(rd, value),
            _ => e.put(lui(rd, value as u32 >> 16)),
        }
    }
}

impl Steps for Mips64 {
    const NUCLEUS: u32 = 1 << K0 | 1 << K1;
    const PRESERVED: &'static [Reg] = &PRESERVED;
    const COUNTING: [Reg; 2] = [T2, T3];
    const INTERRUPTED: &'static [Reg] = &[T2, T3, A0, SP];

    /// It is in `k1`.
    fn top(_e: &mut Emitter<Self>) {}
    fn room(e: &mut Emitter<Self>, reserve: bool) {
        if reserve {
            // Both upper bits of the offset in the page: the last quarter.
            e.put(andi(T2, K1, RESERVE));
            e.put(xori(T2, T2, RESERVE));
            e.refuse(beq(T2, ZERO, 0), status::FULL);
            return;
        }
        e.put(andi(T2, K1, thread::INVOCATION_LIMIT as u32));
        // Counters and semaphores leave their number.
        let counts = e.c.counted || matches!(e.shape, Shape::Wait(_) | Shape::Signal(_));
        e.raises = Some((e.open(bne(T2, ZERO, 0)), 1 << T2 | u32::from(counts) << T3));
    }
    fn save_all(e: &mut Emitter<Self>, _float: bool) {
        for reg in ALL {
            e.save(reg, frame::word(reg.into()) as u8);
        }
        e.put(mfhi(T2));
        e.save(T2, frame::HI as u8);
        e.put(mflo(T2));
        e.save(T2, frame::LO as u8);
        e.put(dmfc0(T2, c0::EPC));
        e.save(T2, frame::PC as u8);
        e.put(dmfc0(T2, c0::DESAVE));
        Self::running(e, T3);
        e.put(or(T2, T2, T3));
        e.save(T2, frame::SPACE as u8);
    }
    fn load_all(e: &mut Emitter<Self>, _float: bool) {
        e.load(T2, frame::HI as u8);
        e.put(mthi(T2));
        e.load(T2, frame::LO as u8);
        e.put(mtlo(T2));
        for reg in ALL {
            e.load(reg, frame::word(reg.into()) as u8);
        }
    }
    fn load_trapped(e: &mut Emitter<Self>, _float: bool) {
        e.load(T2, frame::PC as u8);
        e.put(dmtc0(T2, c0::EPC));
        e.load(T3, frame::SPACE as u8);
        Self::enter(e);
    }
    fn check_stack(e: &mut Emitter<Self>) {
        e.find_stack();
        e.wait_unless_found();
        e.shadow();
    }
    fn take_stack(e: &mut Emitter<Self>, word: u8, checked: bool) {
        e.find_stack();
        if !checked {
            e.wait_unless_found();
        }
        e.save(T3, word);
        e.put(sd(T4, T2, 0));
        e.put(ld(SP, T3, 8));
    }
    fn mask(e: &mut Emitter<Self>) {
        e.put(di());
    }
    fn unmask(e: &mut Emitter<Self>) {
        e.put(ei());
    }
    fn interrupted(e: &mut Emitter<Self>, float: bool) {
        e.put(mfc0(A0, c0::CAUSE));
        e.put(andi(T2, A0, KIND));
        e.no_interrupt = Some((e.open(bne(T2, ZERO, 0)), float));
    }
    fn save_cause(e: &mut Emitter<Self>, word: u8) {
        e.put(mfc0(T2, c0::CAUSE));
        e.save(T2, word);
    }
    fn lacking(e: &mut Emitter<Self>) {
        e.put(dmfc0(A0, c0::DEPC));
        e.put(dmtc0(ZERO, c0::DEPC));
        Self::running(e, A1);
    }
    fn load_gate(e: &mut Emitter<Self>) {
        e.put(ori(RA, ZERO, map::GATE_VA as u32));
    }
    fn result_top(e: &mut Emitter<Self>) {
        e.put(copy(V0, K1));
    }
    fn set_timer(e: &mut Emitter<Self>) {
        e.set_timer();
    }
    fn flush(e: &mut Emitter<Self>) {
        e.call_nucleus(regs::FLUSH, |e| e.put(copy(T4, A1)));
        e.scrub(CALLED);
    }
    fn idle(e: &mut Emitter<Self>) {
        e.call_nucleus(regs::IDLE, |e| e.put(nop()));
        e.scrub(CALLED);
    }
    /// Old thread's registers into its block, new one's out of its block, then its return code.
    fn switch(e: &mut Emitter<Self>) {
        e.put(copy(T2, K1));
        e.put(dins(T2, ZERO, 0, PAGE_BITS));
        e.put(sd(K1, T2, thread::SAVED_TOP as i32));
        let slots = || PRESERVED.into_iter().zip((thread::SAVED_REGS as i32..).step_by(8));
        for (reg, at) in slots() {
            e.put(sd(reg, T2, at));
        }
        e.high(T2, map::THREADS_VA);
        e.put(dins(T2, V0, PAGE_BITS, THREAD_BITS));
        e.put(ld(K1, T2, thread::SAVED_TOP as i32));
        for (reg, at) in slots() {
            e.put(ld(reg, T2, at));
        }
        e.put(ld(K0, K1, 0));
        e.put(jr(K0));
        e.put(copy(V0, V1));
    }
    fn dispatch(e: &mut Emitter<Self>) {
        e.put(ld(K0, K1, 0));
        e.put(jr(K0));
        e.put(nop());
    }
    fn end_thread(e: &mut Emitter<Self>) {
        e.look_up(sys::THREAD_END);
        e.put(daddiu(T2, K0, RAISED));
        e.put(jr(T2));
        e.put(nop());
    }
    fn bounce(e: &mut Emitter<Self>, code: u16) {
        e.put(ld(K0, K1, 0));
        if u64::from(code) == status::TIMEOUT {
            // The late call's bit to the sign.
            e.put(dsll(T2, K0, Self::LATE.leading_zeros()));
            e.raises = Some((e.open_alone(bgez(T2, 0)), 1 << T2));
        }
        // The domain's number from bit 16 on.
        e.put(ori(V1, ZERO, code.into()));
        e.put(dmfc0(T2, c0::ENTRY_HI));
        e.put(dins(V1, T2, 16, ASID_BITS));
        e.put(daddiu(T2, K0, 4));
        e.put(jr(T2));
        e.put(daddiu(V0, ZERO, -1));
    }

    fn raise(e: &mut Emitter<Self>) {
        e.go_on(sys::EXCEPTION);
    }
    fn leave(e: &mut Emitter<Self>) {
        e.put(ehb());
        e.put(eret());
    }
    fn hide(e: &mut Emitter<Self>, hidden: Hidden, returning: bool) {
        e.scrub(registers(hidden, returning));
        if hidden.temporaries.is_some() {
            e.put(mthi(ZERO));
            e.put(mtlo(ZERO));
        }
    }
    fn set_pc(from: Reg) -> u32 {
        dmtc0(from, c0::EPC)
    }
    fn set_top() -> u32 {
        dmtc0(K1, c0::ERROR_EPC)
    }
    fn enter(e: &mut Emitter<Self>) {
        e.put(dmtc0(T3, c0::ENTRY_HI));
        e.put(dins(T3, ZERO, 0, ASID_BITS));
        e.put(dmtc0(T3, c0::DESAVE));
    }
    fn trap(e: &mut Emitter<Self>) {
        e.put(mfc0(A0, c0::CAUSE));
        e.put(dmfc0(A1, c0::BAD_VADDR));
        e.put(dmfc0(A2, c0::EPC));
    }
    fn running(e: &mut Emitter<Self>, rd: Reg) {
        e.put(dmfc0(rd, c0::ENTRY_HI));
        e.put(andi(rd, rd, map::MAX_DOMAINS as u32 - 1));
    }
    fn thread_id(e: &mut Emitter<Self>, rd: Reg, top: Reg) {
        e.put(dext(rd, top, PAGE_BITS, THREAD_BITS));
    }
    fn second_quarter(e: &mut Emitter<Self>, reg: Reg) {
        e.put(dext(reg, reg, 16, 16));
    }
    fn time(e: &mut Emitter<Self>, to: Reg) {
        e.time(to);
        if matches!(e.shape, Shape::Short(_)) {
            e.scrub(TIMED);
        }
    }
    fn ends_thread() -> u32 {
        dmfc0(K0, c0::DESAVE)
    }
    fn frame_word(reg: Reg) -> usize {
        frame::word(reg.into())
    }
    fn restored(_e: &mut Emitter<Self>) {}
}

impl Emitter<'_, Mips64> {
    /// The portal code that the running domain's table has at this index, into `k0`.
    fn look_up(&mut self, index: usize) {
        let (page, word) = (index / map::TABLE_ENTRIES_PER_PAGE, index % map::TABLE_ENTRIES_PER_PAGE);
        self.put(dmfc0(K0, c0::DESAVE));
        self.put(ld(K0, K0, paging::ROOT_PORTALS as i32 + page as i32 * 8));
        self.put(ld(K0, K0, word as i32 * 8));
    }

    /// Goes on there.
    fn go_on(&mut self, index: usize) {
        self.look_up(index);
        self.put(jr(K0));
        self.put(nop());
    }

    /// `last`: one instruction, done before the nucleus is there. `k0`, `k1` and [`CALLED`] are no longer what they were.
    fn call_nucleus(&mut self, place: u64, last: impl FnOnce(&mut Self)) {
        let low = self.high(T6, place);
        self.put(daddiu(T6, T6, low));
        self.put(jalr(T5, T6));
        last(self);
    }
}

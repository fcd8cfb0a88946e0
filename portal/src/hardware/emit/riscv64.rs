//! rv64 emitter.
//!
//! Layout of a portal: call code, constant pool (8-byte aligned), return code. While portal code runs, `gp`
//! is the address of the leg's first instruction (so the pool is one load away), `t1` the top of the
//! invocation stack, `t0` still the caller's index, `t2`-`t4` scratch. The last two pool words are the
//! caller's address space and the frame's description ([`frame_word`]), at -16 and -8 from the return code.
//! The return code's second instruction is its error entry.
//!
//! Slow ways out (no room, no stack) lie behind the leg's `sret`; every branch is forward.

use crate::asm::{Asm, Label, Pool, Ways};
use crate::hardware::ir::{self, Connection, Hidden, Op, Shape};
use crate::hardware::{Code, CompileError, MAX_WORDS};
use crate::isa::riscv64::encode::*;
use crate::spec::{Arg, Spec};
use arrayvec::ArrayVec;
use pebble_abi::{map, status, sys, thread};
use pebble_arch::riscv64::{frame, paging};
use pebble_arch::{Arch, Riscv64};

mod stack;
mod template;
mod window;

/// Interrupts that domains take: timer and external.
pub const SIE: i32 = 0x220;
/// The `FS` field of `sstatus` is bits 13 and 14.
const FS_LUI: u32 = 6;

/// The word before the return code: frame words, caller, callee, index, 16 bits each.
pub const fn frame_word(words: u8, c: &Connection) -> u64 {
    words as u64 | (c.caller.asid as u64) << 16 | (c.callee.asid as u64) << 32 | (c.index as u64) << 48
}

// What `Op::Room` tells by two bits.
const _: () = assert!(thread::INVOCATION_RESERVE == 3 << 10 && map::PAGE == 4 << 10);
// What `Op::Bounce` shifts out of `satp` leaves no bit of the page number.
const _: () = assert!(map::RAM_PA + map::RAM_BYTES <= 1 << 40);

const fn offset(word: u8) -> i32 {
    (word as i32 + 1) * 8
}

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

struct Emitter<'a> {
    a: Asm<'a, u32, MAX_WORDS>,
    c: &'a Connection<'a>,
    shape: Shape,
    /// Where the pool is, in bytes, and the return leg; instructions of the call leg, words of the frame.
    pool_at: u16,
    ret_at: Option<u16>,
    call_words: u16,
    frame_words: u8,
    /// Constants of the call leg; that of the return leg, once there is one.
    pool: Pool<8, 12>,
    own: Option<Label>,
    /// Where the call leg computes the return code's address.
    push: Option<Label>,
    /// Where it branches to the domain's exception entry, with these registers to be cleared before; to the
    /// common code that waits for a stack or slot, after a trap's save or not.
    raises: Option<(Label, u32)>,
    waits: ArrayVec<Label, 3>,
    after_save: bool,
    /// Where it branches back to the caller, with which status code.
    refusals: Ways<32>,
    /// The window that was checked last.
    first: Option<ir::Lent>,
    /// Registers hold what the next window needs too; the template's base this address.
    ready: bool,
    base: Option<u64>,
    /// A register holds what a slot does for which `g` waits.
    awaited: bool,
    /// Where an interrupt's entry finds that there was none.
    no_interrupt: Option<(Label, bool)>,
    /// Bytes from the bottom of the frame to `t1`.
    bias: i32,
}

impl Emitter<'_> {
    #[inline]
    fn put(&mut self, word: u32) {
        self.a.put(word);
    }

    /// The instruction, to be completed when it is known where it leads.
    #[inline]
    fn open(&mut self, word: u32) -> Label {
        let label = self.a.label();
        self.put(word);
        label
    }

    fn patch(&mut self, at: Label, bits: u32) {
        if let Some(word) = self.a.from(at).first_mut() {
            *word |= bits;
        }
    }

    /// The branch leads here.
    fn join(&mut self, branch: Label) {
        self.patch(branch, beq(ZERO, ZERO, self.a.distance(branch) * 4) & !0x7f);
    }

    fn put_double(&mut self, value: u64) {
        self.put(value as u32);
        self.put((value >> 32) as u32);
    }

    /// The return leg has one word of its own, before the description.
    fn pool_load(&mut self, rd: Reg, value: u64) {
        if let Some(own) = self.own {
            if let Some(word) = self.a.from(own).first_chunk_mut() {
                *word = [value as u32, (value >> 32) as u32];
            }
            self.put(ld(rd, GP, -16));
            return;
        }
        let load = self.open(ld(rd, GP, 0));
        let fits = self.pool.keep(value, load);
        self.a.demand(fits);
    }

    /// `lui` part of an address in the last 2 GiB or the first; the rest fits the offset of a load.
    fn high(&mut self, rd: Reg, address: u64) -> i32 {
        let low = (address as i32) << 20 >> 20;
        self.put(lui(rd, ((address as i64 - low as i64) >> 12) as u32));
        low
    }

    fn constant(&mut self, rd: Reg, value: u64) {
        let signed = value as i64;
        if (-2048..2048).contains(&signed) {
            self.put(addi(rd, ZERO, signed as i32));
            return;
        }
        let upper = signed + 0x800 == (signed + 0x800) as i32 as i64;
        // One load where two instructions would be needed; the return leg's pool has room for the address
        // space alone.
        if !upper || (value & 0xfff != 0 && self.ret_at.is_none()) {
            return self.pool_load(rd, value);
        }
        let low = self.high(rd, value);
        if low != 0 {
            self.put(addi(rd, rd, low));
        }
    }

    fn scrub(&mut self, set: u32) {
        // Each portal has two or three of these.
        let mut left = set & !1;
        while left != 0 {
            self.put(addi(left.trailing_zeros() as Reg, ZERO, 0));
            left &= left - 1;
        }
    }

    fn save(&mut self, reg: Reg, word: u8) {
        self.put(sd(reg, T1, offset(word)));
    }

    fn load(&mut self, reg: Reg, word: u8) {
        self.put(ld(reg, T1, offset(word) - self.bias));
    }

    fn op(&mut self, op: Op) {
        match op {
            Op::Count(word) => self.count(word),
            Op::TryWait(word) => self.try_semaphore(word, true),
            Op::TrySignal(word) => self.try_semaphore(word, false),
            Op::Top => self.put(csrrs(T1, csr::SSCRATCH, ZERO)),
            Op::Room { reserve: false } => {
                self.put(slli(T2, T1, 63 - thread::INVOCATION_LIMIT.trailing_zeros()));
                self.raises = Some((self.open(blt(T2, ZERO, 0)), 1 << T1 | 1 << T2));
            }
            Op::Room { reserve: true } => {
                // Both upper bits of the offset in the page: the last quarter.
                self.put(slli(T2, T1, 52));
                self.put(srli(T2, T2, 62));
                self.put(addi(T2, T2, -3));
                self.refuse(beq(T2, ZERO, 0), status::FULL);
            }
            Op::SaveReturn(word) => self.save(RA, word),
            Op::SaveStack(word) => self.save(SP, word),
            Op::SavePreserved(word) => {
                for (i, reg) in PRESERVED.into_iter().enumerate() {
                    self.save(reg, word + i as u8);
                }
            }
            Op::SaveFloat(word) => {
                self.put(csrrs(T2, csr::FCSR, ZERO));
                self.save(T2, word);
                for (i, reg) in FLOAT_PRESERVED.into_iter().enumerate() {
                    self.put(fsd(reg, T1, offset(word + 1 + i as u8)));
                }
            }
            Op::SaveAll { float } => self.save_all(float),
            Op::CheckStack(queue) => {
                self.find_stack(queue);
                self.wait_unless_found();
            }
            Op::CheckWindow { lent, keep } => self.check_window(lent, keep),
            Op::CheckSlots { first, second, apart } => self.check_slots(first, second, apart),
            Op::OpenWindow { lent, word, found, fence } => self.open_window(lent, word, found, fence),
            Op::CloseWindow { lent, word, fence } => self.close_window(lent, word, fence),
            Op::Translate { from, letter } => self.translate(from, letter),
            Op::TakeStack { queue, word, after_save, checked } => {
                let low = self.find_stack(queue);
                if !checked {
                    self.after_save = after_save;
                    self.wait_unless_found();
                }
                self.put(sd(T4, T2, low));
                self.put(ld(SP, T3, 8));
                self.save(T3, word);
            }
            Op::FixedStack(top) => self.constant(SP, top),
            Op::Push(words) => {
                self.frame_words = words;
                self.push = Some(self.open(addi(T2, GP, 0)));
                self.put(sd(T2, T1, words as i32 * 8));
                self.put(addi(T1, T1, words as i32 * 8));
                self.put(csrrw(ZERO, csr::SSCRATCH, T1));
            }
            Op::Mask => self.put(csrrw(ZERO, csr::SIE, ZERO)),
            Op::Unmask => {
                self.put(addi(T2, ZERO, SIE));
                self.put(csrrw(ZERO, csr::SIE, T2));
            }
            Op::Space(satp) => {
                self.pool_load(T3, satp);
                self.put(csrrw(ZERO, csr::SATP, T3));
            }
            Op::Entry(entry) => {
                self.constant(T3, entry);
                self.put(csrrw(ZERO, csr::SEPC, T3));
            }
            Op::FloatOff => {
                self.put(lui(T2, FS_LUI));
                self.put(csrrc(ZERO, csr::SSTATUS, T2));
            }
            Op::FloatOn => {
                self.put(lui(T2, FS_LUI));
                self.put(csrrs(ZERO, csr::SSTATUS, T2));
            }
            Op::FloatScrub { preserved } => {
                if preserved {
                    self.put(csrrw(ZERO, csr::FCSR, ZERO));
                }
                for x in (0..32).filter(|x| preserved || !FLOAT_PRESERVED.contains(x)) {
                    self.put(fmv_d_x(x, ZERO));
                }
            }
            Op::Move { to, from } => self.put(addi(A0 + to, A0 + from, 0)),
            Op::Supply { to, arg, value } => self.supply(A0 + to, arg, value),
            Op::Interrupted { float } => self.interrupted(float),
            Op::Cause => self.cause(),
            Op::SaveCause(word) => {
                self.put(csrrs(T2, csr::SCAUSE, ZERO));
                self.save(T2, word);
            }
            Op::Lacking => {
                self.put(csrrs(A0, csr::STVAL, ZERO));
                self.running(A1);
            }
            Op::Gate => self.put(lui(RA, (map::GATE_VA >> 12) as u32)),
            Op::Scrub(hidden) => self.scrub(registers(hidden)),
            Op::Leave => self.put(sret()),
            Op::Return => {
                self.end_call_leg(true);
                self.bias = i32::from(self.frame_words) * 8;
                match self.shape {
                    // Its second instruction is the first once more.
                    Shape::ThreadEnd => self.put(ld(GP, ZERO, sys::THREAD_END as i32 * 8)),
                    _ => self.put(addi(A1, if self.c.keeps_status { A1 } else { ZERO }, 0)),
                }
            }
            Op::LoadReturn(word) => {
                self.load(RA, word);
                self.put(csrrw(ZERO, csr::SEPC, RA));
            }
            Op::LoadStack(word) => self.load(SP, word),
            Op::LoadPreserved(word) => {
                for (i, reg) in PRESERVED.into_iter().enumerate() {
                    self.load(reg, word + i as u8);
                }
            }
            Op::LoadFloat(word) => {
                for (i, reg) in FLOAT_PRESERVED.into_iter().enumerate() {
                    self.put(fld(reg, T1, offset(word + 1 + i as u8) - self.bias));
                }
                self.load(T2, word);
                self.put(csrrw(ZERO, csr::FCSR, T2));
            }
            Op::GiveStack { queue, word } => self.give_stack(queue, word),
            Op::Pop(words) => {
                self.bias = 0;
                self.put(addi(T1, T1, -(words as i32) * 8));
                self.put(csrrw(ZERO, csr::SSCRATCH, T1));
            }
            Op::LoadTrapped { float } => {
                let base = float_words(float);
                self.load(T2, base + frame::PC as u8);
                self.put(csrrw(ZERO, csr::SEPC, T2));
                self.load(T2, base + frame::SPACE as u8);
                self.put(csrrw(ZERO, csr::SATP, T2));
            }
            Op::LoadAll { float } => self.load_all(float),
            Op::ResultTop => self.put(csrrs(A0, csr::SSCRATCH, ZERO)),
            Op::ResultThread => self.thread_id(A0, A0),
            Op::SetTimer => self.put(csrrw(ZERO, csr::STIMECMP, A1)),
            Op::Flush => self.put(sfence_vma(ZERO, A1)),
            Op::Idle => self.put(wfi()),
            Op::Stacks(what) => self.stacks(what),
            Op::Resume => {
                self.put(csrrw(ZERO, csr::SEPC, RA));
                self.put(addi(GP, ZERO, 0));
                self.put(sret());
            }
            Op::Switch => self.switch(),
            Op::Dispatch => {
                self.put(csrrs(T1, csr::SSCRATCH, ZERO));
                self.put(ld(GP, T1, 0));
                self.put(jalr(ZERO, GP, 0));
            }
            Op::Raise => self.raise(),
            Op::EndThread => {
                self.put(ld(GP, ZERO, sys::THREAD_END as i32 * 8));
                self.put(jalr(ZERO, GP, RAISED));
            }
            Op::Bounce(code) => self.bounce(code),
        }
    }

    fn count(&mut self, word: u64) {
        let low = self.high(T1, word);
        self.put(ld(T2, T1, low));
        self.put(addi(T2, T2, 1));
        self.put(sd(T2, T1, low));
    }

    fn try_semaphore(&mut self, word: u64, wait: bool) {
        let low = self.high(T1, word);
        self.put(ld(T2, T1, low));
        let none = self.open(if wait { bge(ZERO, T2, 0) } else { blt(T2, ZERO, 0) });
        self.put(addi(T2, T2, if wait { -1 } else { 1 }));
        self.put(sd(T2, T1, low));
        self.put(addi(A0, ZERO, 0));
        self.put(addi(A1, ZERO, 0));
        self.put(addi(T1, ZERO, 0));
        self.put(addi(T2, ZERO, 0));
        self.op(Op::Resume);
        self.join(none);
    }

    /// `t1` goes through `sscratch`, since no register is free but `gp`.
    fn save_all(&mut self, float: bool) {
        let base = float_words(float);
        self.put(csrrw(T1, csr::SSCRATCH, T1));
        for x in (1..32).filter(|x| *x != GP && *x != T1) {
            self.save(x, base + frame::word(x as usize) as u8);
        }
        let rest =
            [(csr::SSCRATCH, frame::word(T1 as usize)), (csr::SEPC, frame::PC), (csr::SATP, frame::SPACE)];
        for (csr, word) in rest {
            self.put(csrrs(T2, csr, ZERO));
            self.save(T2, base + word as u8);
        }
        if float {
            for f in 0..32 {
                self.put(fsd(f, T1, offset(f)));
            }
            self.put(csrrs(T2, csr::FCSR, ZERO));
            self.save(T2, 32);
        }
    }

    fn load_all(&mut self, float: bool) {
        let base = float_words(float);
        if float {
            self.load(T2, 32);
            self.put(csrrw(ZERO, csr::FCSR, T2));
            for f in 0..32 {
                self.put(fld(f, T1, offset(f) - self.bias));
            }
        }
        for x in (1..32).filter(|x| *x != GP && *x != T1) {
            self.load(x, base + frame::word(x as usize) as u8);
        }
        self.load(T1, base + frame::word(T1 as usize) as u8);
    }

    fn thread_id(&mut self, rd: Reg, top: Reg) {
        self.put(srli(rd, top, 12));
        self.put(andi(rd, rd, map::MAX_THREADS as i32 - 1));
    }

    fn supply(&mut self, to: Reg, arg: Arg, value: u64) {
        match arg {
            Arg::Thread => self.thread_id(to, T1),
            Arg::Origin => {
                // Return code of that frame, the word before it, its second quarter.
                self.put(ld(to, T1, -(value as i32)));
                self.put(ld(to, to, -8));
                self.put(slli(to, to, 32));
                self.put(srli(to, to, 48));
            }
            Arg::Time => self.put(csrrs(to, csr::TIME, ZERO)),
            _ => self.constant(to, value),
        }
    }

    fn interrupted(&mut self, float: bool) {
        self.put(csrrs(A0, csr::SCAUSE, ZERO));
        self.no_interrupt = Some((self.open(bge(A0, ZERO, 0)), float));
    }

    fn cause(&mut self) {
        self.put(csrrs(A0, csr::SCAUSE, ZERO));
        self.put(csrrs(A1, csr::STVAL, ZERO));
        self.put(csrrs(A2, csr::SEPC, ZERO));
        self.running(A2 + 1);
        self.thread_id(A2 + 2, T1);
        self.put(addi(A2 + 3, T0, 0));
    }

    /// The number of the domain that runs.
    fn running(&mut self, x: u8) {
        self.put(csrrs(x, csr::SATP, ZERO));
        self.put(slli(x, x, 4));
        self.put(srli(x, x, 48));
    }

    /// Old thread's registers into its block, new one's out of its block, then its return code.
    fn switch(&mut self) {
        self.put(csrrs(T1, csr::SSCRATCH, ZERO));
        self.put(srli(T2, T1, 12));
        self.put(slli(T2, T2, 12));
        self.put(sd(T1, T2, thread::SAVED_TOP as i32));
        let slots = || PRESERVED.into_iter().zip((thread::SAVED_REGS as i32..).step_by(8));
        for (reg, at) in slots() {
            self.put(sd(reg, T2, at));
        }
        self.put(andi(T2, A0, map::MAX_THREADS as i32 - 1));
        self.put(slli(T2, T2, 12));
        self.high(T3, map::THREADS_VA);
        self.put(add(T2, T2, T3));
        self.put(ld(T1, T2, thread::SAVED_TOP as i32));
        for (reg, at) in slots() {
            self.put(ld(reg, T2, at));
        }
        self.put(addi(A0, A1, 0));
        self.put(ld(GP, T1, 0));
        self.put(jalr(ZERO, GP, 0));
    }

    fn raise(&mut self) {
        self.put(ld(GP, ZERO, sys::EXCEPTION as i32 * 8));
        self.put(jalr(ZERO, GP, 0));
    }

    fn bounce(&mut self, code: u16) {
        self.put(csrrs(T1, csr::SSCRATCH, ZERO));
        self.put(ld(GP, T1, 0));
        if u64::from(code) == status::TIMEOUT {
            // The late call's bit to the sign.
            self.put(slli(GP, GP, Riscv64::LATE.leading_zeros()));
            self.raises = Some((self.open(bge(GP, ZERO, 0)), 1 << T1));
            self.put(ld(GP, T1, 0));
        }
        self.put(csrrs(A1, csr::SATP, ZERO));
        // The domain's number to bit 16; of the page number, nothing is left.
        self.put(slli(A1, A1, 4));
        self.put(srli(A1, A1, 32));
        self.put(ori(A1, A1, i32::from(code & 0x7ff)));
        self.put(addi(A0, ZERO, -1));
        self.put(jalr(ZERO, GP, 4));
    }

    /// Slow ways out and the pool: all that depends on where the call leg ends.
    fn end_call_leg(&mut self, returns: bool) {
        if let Some((branch, dirty)) = self.raises {
            self.join(branch);
            self.scrub(dirty);
            self.raise();
        }
        self.ready = false;
        self.join_waits();
        self.join_refusals();
        if let Some((branch, float)) = self.no_interrupt {
            self.join(branch);
            self.restore(&[T2, A0], float);
            self.raise();
        }
        self.call_words = self.a.here() as u16;
        if self.a.here() % 2 == 1 {
            self.put(0);
        }
        let pool_at = self.a.here() * 4;
        for (load, offset) in self.pool.uses() {
            if let Some(word) = self.a.from(load).first_mut() {
                *word |= ((pool_at + offset) as u32) << 20;
            }
        }
        for i in 0..self.pool.values().len() {
            self.put_double(self.pool.values()[i]);
        }
        self.pool_at = pool_at as u16;
        if returns {
            self.own = Some(self.a.label());
            self.put_double(0);
            self.put_double(frame_word(self.frame_words, self.c));
            let ret_at = self.a.here() * 4;
            self.ret_at = Some(ret_at as u16);
            if let Some(at) = self.push {
                self.patch(at, (ret_at as u32) << 20);
            }
        }
        // Both legs reach the pool, and the call leg the return leg, by an offset.
        let reached = self.a.here() * 4 < 2048;
        self.a.demand(reached);
    }

    /// Undoes a trap's save, which has pushed nothing yet, for the registers that have changed since.
    fn restore(&mut self, regs: &[Reg], float: bool) {
        for reg in regs {
            self.load(*reg, float_words(float) + frame::word(usize::from(*reg)) as u8);
        }
        self.put(csrrw(T1, csr::SSCRATCH, T1));
    }

    /// One way out for every status.
    fn join_refusals(&mut self) {
        loop {
            let Emitter { refusals, a, .. } = self;
            let join = |branch| {
                let distance = a.distance(branch) * 4;
                if let Some(word) = a.from(branch).first_mut() {
                    *word |= beq(ZERO, ZERO, distance) & !0x7f;
                }
            };
            let Some(code) = refusals.take(join) else { return };
            self.refusal(code);
        }
    }
}

/// Words of a trap's frame before the general registers.
const fn float_words(float: bool) -> u8 {
    if float { frame::FLOAT_WORDS as u8 } else { 0 }
}

/// Compiles into `code`, whatever it held.
pub fn emit(spec: &Spec, shape: Shape, c: &Connection, code: &mut Code) -> Result<(), CompileError> {
    let mut e = Emitter {
        a: Asm::new(&mut code.words),
        c,
        shape,
        pool_at: 0,
        ret_at: None,
        call_words: 0,
        frame_words: 0,
        pool: Pool::default(),
        own: None,
        push: None,
        raises: None,
        waits: ArrayVec::new(),
        after_save: false,
        refusals: Ways::default(),
        first: None,
        ready: false,
        awaited: false,
        base: None,
        no_interrupt: None,
        bias: 0,
    };
    ir::steps(spec, shape, c, &Riscv64::LAYOUT, &mut |op| e.op(op));
    if e.ret_at.is_none() {
        e.end_call_leg(false);
    }
    let full = e.a.is_full();
    (code.call_words, code.pool_at, code.ret_at, code.frame_words) =
        (e.call_words, e.pool_at, e.ret_at, e.frame_words);
    if full { Err(CompileError::TooLong) } else { Ok(()) }
}

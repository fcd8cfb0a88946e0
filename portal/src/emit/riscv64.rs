//! rv64 emitter.
//!
//! Layout of a portal: call code, constant pool (8-byte aligned), return code. While portal code runs, `gp` is the address
//! of the leg's first instruction (so the pool is one load away), `t1` the top of the invocation stack, `t0` still the
//! caller's index, `t2`-`t4` scratch. The last two pool words are the caller's address space and the frame's description
//! ([`frame_word`]), at -16 and -8 from the return code. The return code's second instruction is its error entry.
//!
//! Slow ways out (no room, no stack) lie behind the leg's `sret`; every branch is forward.

use crate::ir::{self, Connection, Lowered, Op, Short};
use crate::isa::riscv64::encode::*;
use crate::spec::Arg;
use crate::{Code, CompileError};
use arrayvec::ArrayVec;
use pebble_abi::{map, sys, thread};

/// Interrupts that domains take: timer and external.
pub const SIE: i32 = 0x220;
/// The `FS` field of `sstatus` is bits 13 and 14.
const FS_LUI: u32 = 6;

/// The word before the return code: frame words, caller, callee, index, 16 bits each.
pub const fn frame_word(words: u8, c: &Connection) -> u64 {
    words as u64 | (c.caller.asid as u64) << 16 | (c.callee.asid as u64) << 32 | (c.index as u64) << 48
}

const fn offset(word: u8) -> i32 {
    (word as i32 + 1) * 8
}

/// Registers of [`Op::SavePreserved`] and [`Op::Switch`], in frame order.
pub fn preserved() -> impl Iterator<Item = Reg> {
    [8, 9].into_iter().chain(18..28).chain([TP])
}

#[derive(Clone, Copy)]
enum Fix {
    /// Load of a pool word: instruction, pool slot.
    Pool(usize, usize),
    /// `addi` of the distance from the call code to the return code.
    Return(usize),
    /// Branch to a slow way out.
    Slow(usize, Slow),
}

#[derive(Clone, Copy, PartialEq)]
enum Slow {
    /// To the domain's exception entry.
    Raise,
    /// To the common code that waits for a stack; `restore`: after a trap's save.
    NoStack { at: u64, restore: bool, base: i32 },
}

#[derive(Default)]
struct Emitter {
    code: ArrayVec<u32, { crate::MAX_WORDS }>,
    pool: ArrayVec<u64, 8>,
    fixes: ArrayVec<Fix, 16>,
    /// Frame word 0 from `t1`, in words, while the frame is on top (return leg): 0 on the call leg.
    bias: i32,
    full: bool,
}

impl Emitter {
    fn put(&mut self, word: u32) {
        self.full |= self.code.try_push(word).is_err();
    }

    fn pool_load(&mut self, rd: Reg, value: u64) {
        let slot = self.pool.iter().position(|v| *v == value).unwrap_or_else(|| {
            self.full |= self.pool.try_push(value).is_err();
            self.pool.len().saturating_sub(1)
        });
        self.fix(Fix::Pool(self.code.len(), slot));
        self.put(ld(rd, GP, 0));
    }

    fn fix(&mut self, fix: Fix) {
        self.full |= self.fixes.try_push(fix).is_err();
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
        } else if signed + 0x800 == (signed + 0x800) as i32 as i64 {
            let low = self.high(rd, value);
            if low != 0 {
                self.put(addi(rd, rd, low));
            }
        } else {
            self.pool_load(rd, value);
        }
    }

    fn scrub(&mut self, set: u32) {
        for x in (1..32).filter(|x| set >> x & 1 == 1) {
            self.put(addi(x, ZERO, 0));
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
            Op::Room => {
                self.put(slli(T2, T1, 63 - thread::INVOCATION_LIMIT.trailing_zeros()));
                self.fix(Fix::Slow(self.code.len(), Slow::Raise));
                self.put(blt(T2, ZERO, 0));
            }
            Op::SaveReturn(word) => self.save(RA, word),
            Op::SaveStack(word) => self.save(SP, word),
            Op::SavePreserved(word) => {
                for (i, reg) in preserved().enumerate() {
                    self.save(reg, word + i as u8);
                }
            }
            Op::SaveFloat(word) => {
                self.put(csrrs(T2, csr::FCSR, ZERO));
                self.save(T2, word);
                for (i, reg) in [8, 9].into_iter().chain(18..28).enumerate() {
                    self.put(fsd(reg, T1, offset(word + 1 + i as u8)));
                }
            }
            Op::SaveAll { float } => self.save_all(float),
            Op::TakeStack { queue, word, no_stack, after_save } => {
                let low = self.high(T2, queue);
                self.put(ld(T3, T2, low));
                let base = if word as usize > thread::TRAP_WORDS { thread::TRAP_FLOAT_WORDS as i32 * 8 } else { 0 };
                self.fix(Fix::Slow(self.code.len(), Slow::NoStack { at: no_stack, restore: after_save, base }));
                self.put(beq(T3, ZERO, 0));
                self.put(ld(T4, T3, 0));
                self.put(sd(T4, T2, low));
                self.put(ld(SP, T3, 8));
                self.save(T3, word);
            }
            Op::FixedStack(top) => self.constant(SP, top),
            Op::Push(words) => {
                self.fix(Fix::Return(self.code.len()));
                self.put(addi(T2, GP, 0));
                self.put(sd(T2, T1, words as i32 * 8));
                self.put(addi(T1, T1, words as i32 * 8));
                self.put(csrrw(ZERO, csr::SSCRATCH, T1));
            }
            Op::Mask => self.put(csrrw(ZERO, csr::SIE, ZERO)),
            Op::Unmask => {
                self.put(addi(T2, ZERO, SIE));
                self.put(csrrw(ZERO, csr::SIE, T2));
            }
            Op::Enter { satp, entry } => {
                self.pool_load(T3, satp);
                self.put(csrrw(ZERO, csr::SATP, T3));
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
            Op::FloatScrub(set) => {
                if set == ir::regs::FLOAT_ALL {
                    self.put(csrrw(ZERO, csr::FCSR, ZERO));
                }
                for x in (0..32).filter(|x| set >> x & 1 == 1) {
                    self.put(fmv_d_x(x, ZERO));
                }
            }
            Op::Move { to, from } => self.put(addi(A0 + to, A0 + from, 0)),
            Op::Supply { to, arg, value } => self.supply(A0 + to, arg, value),
            Op::Cause { all } => self.cause(all),
            Op::Gate => self.put(lui(RA, (map::GATE_VA >> 12) as u32)),
            Op::Scrub(set) => self.scrub(set),
            Op::Leave => self.put(sret()),
            Op::Good => self.put(addi(A1, ZERO, 0)),
            Op::LoadReturn(word) => {
                self.load(RA, word);
                self.put(csrrw(ZERO, csr::SEPC, RA));
            }
            Op::LoadStack(word) => self.load(SP, word),
            Op::LoadPreserved(word) => {
                for (i, reg) in preserved().enumerate() {
                    self.load(reg, word + i as u8);
                }
            }
            Op::LoadFloat(word) => {
                for (i, reg) in [8, 9].into_iter().chain(18..28).enumerate() {
                    self.put(fld(reg, T1, offset(word + 1 + i as u8) - self.bias));
                }
                self.load(T2, word);
                self.put(csrrw(ZERO, csr::FCSR, T2));
            }
            Op::GiveStack { queue, word } => self.give_stack(queue, word),
            Op::Back { satp } => {
                self.pool_load(T2, satp);
                self.put(csrrw(ZERO, csr::SATP, T2));
            }
            Op::Pop(words) => {
                self.put(addi(T1, T1, -(words as i32) * 8));
                self.put(csrrw(ZERO, csr::SSCRATCH, T1));
            }
            Op::LoadAll { float, words, unmask, queue } => self.load_all(float, words, unmask, queue),
            Op::Result { value, status } => {
                self.constant(A0, value as u64);
                self.constant(A1, status);
            }
            Op::Short(short) => self.short(short),
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
            Op::Bounce => self.bounce(),
        }
    }

    fn count(&mut self, word: u64) {
        let low = self.high(T1, word);
        self.put(ld(T2, T1, low));
        self.put(addi(T2, T2, 1));
        self.put(sd(T2, T1, low));
        self.scrub(1 << T1 | 1 << T2);
    }

    fn try_semaphore(&mut self, word: u64, wait: bool) {
        let low = self.high(T1, word);
        self.put(ld(T2, T1, low));
        // Over the nine instructions of the fast way.
        self.put(if wait { bge(ZERO, T2, 40) } else { blt(T2, ZERO, 40) });
        self.put(addi(T2, T2, if wait { -1 } else { 1 }));
        self.put(sd(T2, T1, low));
        self.put(addi(A0, ZERO, 0));
        self.put(addi(A1, ZERO, 0));
        self.put(addi(T1, ZERO, 0));
        self.put(addi(T2, ZERO, 0));
        self.op(Op::Resume);
    }

    /// `t1` goes through `sscratch`, since no register is free but `gp`.
    fn save_all(&mut self, float: bool) {
        let base = if float { thread::TRAP_FLOAT_WORDS as u8 } else { 0 };
        self.put(csrrw(T1, csr::SSCRATCH, T1));
        for x in (1..32).filter(|x| *x != GP && *x != T1) {
            self.save(x, base + thread::trap_word(x as usize) as u8);
        }
        let rest = [(csr::SSCRATCH, thread::trap_word(T1 as usize)), (csr::SEPC, thread::TRAP_SEPC), (csr::SATP, thread::TRAP_SATP)];
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

    fn load_all(&mut self, float: bool, words: u8, unmask: bool, queue: Option<u64>) {
        let base = if float { thread::TRAP_FLOAT_WORDS as u8 } else { 0 };
        self.load(T2, base + thread::TRAP_SEPC as u8);
        self.put(csrrw(ZERO, csr::SEPC, T2));
        self.load(T2, base + thread::TRAP_SATP as u8);
        self.put(csrrw(ZERO, csr::SATP, T2));
        if unmask {
            self.op(Op::Unmask);
        }
        if let Some(queue) = queue {
            self.give_stack(queue, base + thread::TRAP_DESC as u8);
        }
        self.put(addi(T2, T1, -(words as i32) * 8));
        self.put(csrrw(ZERO, csr::SSCRATCH, T2));
        if float {
            self.op(Op::FloatOn);
            self.load(T2, 32);
            self.put(csrrw(ZERO, csr::FCSR, T2));
            for f in 0..32 {
                self.put(fld(f, T1, offset(f) - self.bias));
            }
        }
        for x in (1..32).filter(|x| *x != GP && *x != T1) {
            self.load(x, base + thread::trap_word(x as usize) as u8);
        }
        self.load(T1, base + thread::trap_word(T1 as usize) as u8);
        self.put(addi(GP, ZERO, 0));
        self.put(sret());
    }

    fn give_stack(&mut self, queue: u64, word: u8) {
        self.load(T3, word);
        let low = self.high(T2, queue);
        self.put(ld(T4, T2, low));
        self.put(sd(T4, T3, 0));
        self.put(sd(T3, T2, low));
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

    fn cause(&mut self, all: bool) {
        self.put(csrrs(A0, csr::SCAUSE, ZERO));
        if all {
            self.put(csrrs(A1, csr::STVAL, ZERO));
            self.put(csrrs(A2, csr::SEPC, ZERO));
            self.put(csrrs(A2 + 1, csr::SATP, ZERO));
            self.put(slli(A2 + 1, A2 + 1, 4));
            self.put(srli(A2 + 1, A2 + 1, 48));
            self.thread_id(A2 + 2, T1);
            self.put(addi(A2 + 3, T0, 0));
        }
    }

    fn short(&mut self, short: Short) {
        match short {
            Short::Constant { .. } => {}
            Short::ThreadId => {
                self.put(csrrs(A0, csr::SSCRATCH, ZERO));
                self.thread_id(A0, A0);
            }
            Short::Top => self.put(csrrs(A0, csr::SSCRATCH, ZERO)),
            Short::Time => self.put(csrrs(A0, csr::TIME, ZERO)),
            Short::SetTimer => {
                self.put(csrrw(ZERO, csr::STIMECMP, A1));
                self.put(addi(A0, ZERO, 0));
            }
            Short::Flush => {
                self.put(sfence_vma(ZERO, A1));
                self.put(addi(A0, ZERO, 0));
            }
            Short::Idle => {
                self.put(wfi());
                self.put(addi(A0, ZERO, 0));
            }
        }
        self.put(addi(A1, ZERO, 0));
    }

    /// Old thread's registers into its block, new one's out of its block, then its return code.
    fn switch(&mut self) {
        self.put(csrrs(T1, csr::SSCRATCH, ZERO));
        self.put(srli(T2, T1, 12));
        self.put(slli(T2, T2, 12));
        self.put(sd(T1, T2, thread::SAVED_TOP as i32));
        let slots = || preserved().zip((thread::SAVED_REGS as i32..).step_by(8));
        for (reg, at) in slots() {
            self.put(sd(reg, T2, at));
        }
        self.put(andi(T2, A1, map::MAX_THREADS as i32 - 1));
        self.put(slli(T2, T2, 12));
        self.high(T3, map::THREADS_VA);
        self.put(add(T2, T2, T3));
        self.put(ld(T1, T2, thread::SAVED_TOP as i32));
        for (reg, at) in slots() {
            self.put(ld(reg, T2, at));
        }
        self.put(addi(A0, A2, 0));
        self.put(ld(GP, T1, 0));
        self.put(jalr(ZERO, GP, 0));
    }

    fn raise(&mut self) {
        self.put(ld(GP, ZERO, sys::EXCEPTION as i32 * 8));
        self.put(jalr(ZERO, GP, 0));
    }

    fn bounce(&mut self) {
        self.put(csrrs(T1, csr::SSCRATCH, ZERO));
        self.put(ld(GP, T1, 0));
        self.put(csrrs(A1, csr::SATP, ZERO));
        self.put(slli(A1, A1, 4));
        self.put(srli(A1, A1, 48));
        self.put(slli(A1, A1, 16));
        self.put(ori(A1, A1, ir::BOUNCE_CODE as i32));
        self.put(addi(A0, ZERO, -1));
        self.put(jalr(ZERO, GP, 4));
    }

    fn slow_ways(&mut self) {
        let pending: ArrayVec<Fix, 16> = self.fixes.clone();
        let mut done: ArrayVec<(Slow, usize), 4> = ArrayVec::new();
        for (at, slow) in pending.iter().filter_map(|f| if let Fix::Slow(at, s) = f { Some((*at, *s)) } else { None }) {
            let known = done.iter().find(|(s, _)| *s == slow).map(|(_, target)| *target);
            let target = known.unwrap_or(self.code.len());
            if known.is_none() {
                self.full |= done.try_push((slow, target)).is_err();
                match slow {
                    Slow::Raise => self.raise(),
                    Slow::NoStack { at, restore, base } => self.no_stack(at, restore, base),
                }
            }
            let distance = (target - at) as i32 * 4;
            let Some(word) = self.code.get_mut(at) else { continue };
            *word |= beq(ZERO, ZERO, distance) & !0x7f | 0x63;
        }
    }

    fn no_stack(&mut self, at: u64, restore: bool, base: i32) {
        if restore {
            for reg in [T2, T3] {
                self.put(ld(reg, T1, base + offset(thread::trap_word(reg as usize) as u8)));
            }
            self.put(csrrw(T1, csr::SSCRATCH, T1));
        }
        let low = self.high(GP, at);
        self.put(addi(GP, GP, low));
        self.put(jalr(ZERO, GP, 0));
    }
}

/// Steps to code. `lowered` comes from [`ir::lower`] with the same connection.
pub fn emit(lowered: &Lowered, c: &Connection) -> Result<Code, CompileError> {
    let mut e = Emitter::default();
    for op in &lowered.call {
        e.op(*op);
    }
    e.slow_ways();
    let call_words = e.code.len();
    if call_words % 2 == 1 {
        e.put(0);
    }
    let pool_at = e.code.len() * 4;
    let mut ret_fixes = ArrayVec::<(usize, i32), 4>::new();
    let mut ret = ArrayVec::<u32, 160>::new();
    if !lowered.ret.is_empty() {
        let mut r = Emitter { bias: lowered.words as i32 * 8, ..Emitter::default() };
        for op in &lowered.ret {
            r.op(*op);
        }
        e.full |= r.full || r.pool.len() > 1;
        ret_fixes.extend(r.fixes.iter().filter_map(|f| if let Fix::Pool(at, _) = f { Some((*at, -16)) } else { None }));
        e.full |= ret.try_extend_from_slice(&r.code).is_err() || e.pool.len() > 6;
        if !e.full {
            e.pool.push(r.pool.first().copied().unwrap_or(0));
            e.pool.push(frame_word(lowered.words, c));
        }
    }
    if e.full {
        return Err(CompileError::TooLong);
    }
    let ret_at = pool_at + e.pool.len() * 8;
    for fix in e.fixes.clone() {
        match fix {
            Fix::Pool(at, slot) => e.code[at] |= ((pool_at + slot * 8) as u32) << 20,
            Fix::Return(at) => e.code[at] |= (ret_at as u32) << 20,
            Fix::Slow(..) => {}
        }
    }
    for value in e.pool.clone() {
        e.put(value as u32);
        e.put((value >> 32) as u32);
    }
    for (at, imm) in ret_fixes {
        ret[at] |= (imm as u32) << 20;
    }
    for word in &ret {
        e.put(*word);
    }
    if e.full || ret_at >= 2048 {
        return Err(CompileError::TooLong);
    }
    Ok(Code {
        words: e.code,
        call_words: call_words as u16,
        pool_at: pool_at as u16,
        ret_at: (!ret.is_empty()).then_some(ret_at as u16),
        frame_words: lowered.words,
    })
}

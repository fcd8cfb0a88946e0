//! mips64 emitter (`docs/src/mips.md`).
//!
//! Layout of a portal: call code, constant pool (8-byte aligned), return code. While portal code runs, `k0`
//! is the address of the leg's first instruction (so the pool is one load away), `k1` the top of the
//! invocation stack, as `ErrorEPC` says it too, `t0` still the caller's index; `T1` to `T6` are scratch. The
//! last two pool words are the caller's address space and the frame's description ([`frame_word`]), at -16
//! and -8 from the return code. The return code's second instruction is its error entry.
//!
//! Slow ways out (no room, no stack) lie behind the leg's `eret`; every branch is forward. The instruction
//! behind a branch is executed on both ways: where it is what comes next anyway, it does no harm on the
//! other, which overwrites, scrubs or restores what it has changed.
//!
//! There is no floating point, so what a domain that uses it would keep is nothing.

use crate::asm::{Asm, Label, Pool, Ways};
use crate::hardware::ir::{self, Connection, Hidden, Op, Shape};
use crate::hardware::{Code, CompileError, MAX_WORDS};
use crate::isa::mips64::encode::*;
use crate::spec::{Arg, Spec};
use arrayvec::ArrayVec;
use pebble_abi::{map, status, sys, thread};
use pebble_arch::mips64::{frame, paging, regs};
use pebble_arch::{Arch, Mips64};

mod stack;
mod template;
mod time;
mod window;

use time::TIMED;

/// The word before the return code: frame words, caller, callee, index, 16 bits each.
const fn frame_word(words: u8, c: &Connection) -> u64 {
    words as u64 | (c.caller.asid as u64) << 16 | (c.callee.asid as u64) << 32 | (c.index as u64) << 48
}

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

const fn offset(word: u8) -> i32 {
    (word as i32 + 1) * 8
}

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
    pool: Pool<16, 32>,
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
    no_interrupt: Option<Label>,
    /// Bytes from the bottom of the frame to `k1`.
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

    /// A branch, with nothing behind it that could be done on both ways.
    fn open_alone(&mut self, word: u32) -> Label {
        let label = self.open(word);
        self.put(nop());
        label
    }

    fn patch(&mut self, at: Label, bits: u32) {
        if let Some(word) = self.a.from(at).first_mut() {
            *word |= bits & 0xffff;
        }
    }

    /// The branch leads here.
    fn join(&mut self, branch: Label) {
        join(&mut self.a, branch);
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
            self.put(ld(rd, K0, -16));
            return;
        }
        let load = self.open(ld(rd, K0, 0));
        let fits = self.pool.keep(value, load);
        self.a.demand(fits);
    }

    /// `lui` part of an address in the last 2 GiB or the first; the rest fits the offset of a load.
    fn high(&mut self, rd: Reg, address: u64) -> i32 {
        let low = i32::from(address as i16);
        self.put(lui(rd, (address as u32).wrapping_sub(low as u32) >> 16));
        low
    }

    fn constant(&mut self, rd: Reg, value: u64) {
        let (signed, low) = (value as i64, value as u32 & 0xffff);
        match () {
            _ if value == 0 => self.put(copy(rd, ZERO)),
            _ if (-0x8000..0x8000).contains(&signed) => self.put(daddiu(rd, ZERO, signed as i32)),
            _ if value <= 0xffff => self.put(ori(rd, ZERO, low)),
            // One load where two instructions would be needed; the return leg's pool has room for the address
            // space alone.
            _ if signed != i64::from(signed as i32) || low != 0 && self.ret_at.is_none() => {
                self.pool_load(rd, value);
            }
            _ => {
                self.put(lui(rd, value as u32 >> 16));
                if low != 0 {
                    self.put(ori(rd, rd, low));
                }
            }
        }
    }

    fn scrub(&mut self, set: u32) {
        // Each portal has two or three of these.
        let mut left = set & !1;
        while left != 0 {
            self.put(copy(left.trailing_zeros() as Reg, ZERO));
            left &= left - 1;
        }
    }

    fn hide(&mut self, hidden: Hidden, returning: bool) {
        self.scrub(registers(hidden, returning));
        if hidden.temporaries.is_some() {
            self.put(mthi(ZERO));
            self.put(mtlo(ZERO));
        }
    }

    fn save(&mut self, reg: Reg, word: u8) {
        self.put(sd(reg, K1, offset(word)));
    }

    fn load(&mut self, reg: Reg, word: u8) {
        self.put(ld(reg, K1, offset(word) - self.bias));
    }

    fn leave(&mut self) {
        self.put(ehb());
        self.put(eret());
    }

    /// Into the address space that `t3` names.
    fn enter(&mut self) {
        self.put(dmtc0(T3, c0::ENTRY_HI));
        self.put(dins(T3, ZERO, 0, ASID_BITS));
        self.put(dmtc0(T3, c0::DESAVE));
    }

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

    fn raise(&mut self) {
        self.go_on(sys::EXCEPTION);
    }

    /// Where a short-circuit portal's results are, which are arguments elsewhere.
    fn word(&self, to: u8) -> Reg {
        if matches!(self.shape, Shape::Short(_)) { V0 + to } else { A0 + to }
    }

    fn op(&mut self, op: Op) {
        match op {
            Op::Count(word) => self.count(word),
            Op::TryWait(word) => self.try_semaphore(word, true),
            Op::TrySignal(word) => self.try_semaphore(word, false),
            // It is in `k1`.
            Op::Top => {}
            Op::Room { reserve: false } => {
                self.put(andi(T2, K1, thread::INVOCATION_LIMIT as u32));
                // Counters and semaphores leave their number.
                let counts =
                    self.c.counter.is_some() || matches!(self.shape, Shape::Wait(_) | Shape::Signal(_));
                self.raises = Some((self.open(bne(T2, ZERO, 0)), 1 << T2 | u32::from(counts) << T3));
            }
            Op::Room { reserve: true } => {
                // Both upper bits of the offset in the page: the last quarter.
                self.put(andi(T2, K1, RESERVE));
                self.put(xori(T2, T2, RESERVE));
                self.refuse(beq(T2, ZERO, 0), status::FULL);
            }
            Op::SaveReturn(word) => self.save(RA, word),
            Op::SaveStack(word) => self.save(SP, word),
            Op::SavePreserved(word) => {
                for (i, reg) in PRESERVED.into_iter().enumerate() {
                    self.save(reg, word + i as u8);
                }
            }
            Op::SaveAll { .. } => self.save_all(),
            Op::CheckStack(queue) => {
                self.find_stack(queue);
                self.wait_unless_found();
                self.put(nop());
            }
            Op::CheckWindow { lent, keep } => self.check_window(lent, keep),
            Op::CheckSlots { first, second, apart } => self.check_slots(first, second, apart),
            Op::OpenWindow { lent, word, found, fence } => self.open_window(lent, word, found, fence),
            Op::CloseWindow { lent, word, fence } => self.close_window(lent, word, fence),
            Op::Translate { from, letter } => self.translate(from, letter),
            Op::TakeStack { queue, word, after_save, checked } => {
                let at = self.find_stack(queue);
                if !checked {
                    self.after_save = after_save;
                    self.wait_unless_found();
                }
                self.save(T3, word);
                self.put(sd(T4, T2, at));
                self.put(ld(SP, T3, 8));
            }
            Op::FixedStack(top) => self.constant(SP, top),
            Op::Push(words) => {
                self.frame_words = words;
                self.push = Some(self.open(daddiu(T2, K0, 0)));
                self.put(sd(T2, K1, i32::from(words) * 8));
                self.put(daddiu(K1, K1, i32::from(words) * 8));
                self.put(dmtc0(K1, c0::ERROR_EPC));
            }
            Op::Mask => self.put(di()),
            Op::Unmask => self.put(ei()),
            Op::Space(space) => {
                self.pool_load(T3, space);
                self.enter();
            }
            Op::Entry(entry) => {
                self.constant(T3, entry);
                self.put(dmtc0(T3, c0::EPC));
            }
            Op::FloatOff | Op::FloatOn | Op::FloatScrub { .. } | Op::SaveFloat(_) | Op::LoadFloat(_) => {}
            Op::Move { to, from } => self.put(copy(A0 + to, A0 + from)),
            Op::Supply { to, arg, value } => self.supply(self.word(to), arg, value),
            Op::Interrupted { .. } => {
                self.put(mfc0(A0, c0::CAUSE));
                self.put(andi(T2, A0, KIND));
                self.no_interrupt = Some(self.open(bne(T2, ZERO, 0)));
            }
            Op::Cause => self.cause(),
            Op::SaveCause(word) => {
                self.put(mfc0(T2, c0::CAUSE));
                self.save(T2, word);
            }
            Op::Lacking => {
                self.put(dmfc0(A0, c0::DEPC));
                self.put(dmtc0(ZERO, c0::DEPC));
                self.running(A1);
            }
            Op::Gate => self.put(ori(RA, ZERO, map::GATE_VA as u32)),
            Op::Scrub(hidden) => self.hide(hidden, self.ret_at.is_some()),
            Op::Leave => self.leave(),
            Op::Return => {
                self.end_call_leg(true);
                self.bias = i32::from(self.frame_words) * 8;
                match self.shape {
                    // Its second instruction is the first once more.
                    Shape::ThreadEnd => self.put(dmfc0(K0, c0::DESAVE)),
                    _ => self.put(copy(V1, if self.c.keeps_status { V1 } else { ZERO })),
                }
            }
            Op::LoadReturn(word) => {
                self.load(RA, word);
                self.put(dmtc0(RA, c0::EPC));
            }
            Op::LoadStack(word) => self.load(SP, word),
            Op::LoadPreserved(word) => {
                for (i, reg) in PRESERVED.into_iter().enumerate() {
                    self.load(reg, word + i as u8);
                }
            }
            Op::GiveStack { queue, word } => self.give_stack(queue, word),
            Op::Pop(words) => {
                self.bias = 0;
                self.put(daddiu(K1, K1, -i32::from(words) * 8));
                self.put(dmtc0(K1, c0::ERROR_EPC));
            }
            Op::LoadTrapped { .. } => {
                self.load(T2, frame::PC as u8);
                self.put(dmtc0(T2, c0::EPC));
                self.load(T3, frame::SPACE as u8);
                self.enter();
            }
            Op::LoadAll { .. } => self.load_all(),
            Op::ResultTop => self.put(copy(V0, K1)),
            Op::ResultThread => self.thread_id(V0, V0),
            Op::SetTimer => self.set_timer(),
            Op::Flush => {
                self.call_nucleus(regs::FLUSH, copy(T4, A1));
                self.scrub(CALLED);
            }
            Op::Idle => {
                self.call_nucleus(regs::IDLE, nop());
                self.scrub(CALLED);
            }
            Op::Stacks(what) => self.stacks(what),
            Op::Resume => {
                self.put(dmtc0(RA, c0::EPC));
                self.scrub(1 << K0 | 1 << K1);
                self.leave();
            }
            Op::Switch => self.switch(),
            Op::Dispatch => {
                self.put(ld(K0, K1, 0));
                self.put(jr(K0));
                self.put(nop());
            }
            Op::Raise => self.raise(),
            Op::EndThread => {
                self.look_up(sys::THREAD_END);
                self.put(daddiu(T2, K0, RAISED));
                self.put(jr(T2));
                self.put(nop());
            }
            Op::Bounce(code) => self.bounce(code),
        }
    }

    fn count(&mut self, word: u64) {
        let low = self.high(T2, word);
        self.put(ld(T3, T2, low));
        self.put(daddiu(T3, T3, 1));
        self.put(sd(T3, T2, low));
    }

    fn try_semaphore(&mut self, word: u64, wait: bool) {
        let low = self.high(T2, word);
        self.put(ld(T3, T2, low));
        let none = self.open(if wait { blez(T3, 0) } else { bltz(T3, 0) });
        self.put(daddiu(T3, T3, if wait { -1 } else { 1 }));
        self.put(sd(T3, T2, low));
        self.scrub(1 << V0 | 1 << V1 | 1 << T2 | 1 << T3);
        self.op(Op::Resume);
        self.join(none);
    }

    fn save_all(&mut self) {
        for reg in ALL {
            self.save(reg, frame::word(reg.into()) as u8);
        }
        self.put(mfhi(T2));
        self.save(T2, frame::HI as u8);
        self.put(mflo(T2));
        self.save(T2, frame::LO as u8);
        self.put(dmfc0(T2, c0::EPC));
        self.save(T2, frame::PC as u8);
        self.put(dmfc0(T2, c0::DESAVE));
        self.running(T3);
        self.put(or(T2, T2, T3));
        self.save(T2, frame::SPACE as u8);
    }

    fn load_all(&mut self) {
        self.load(T2, frame::HI as u8);
        self.put(mthi(T2));
        self.load(T2, frame::LO as u8);
        self.put(mtlo(T2));
        for reg in ALL {
            self.load(reg, frame::word(reg.into()) as u8);
        }
    }

    fn thread_id(&mut self, rd: Reg, top: Reg) {
        self.put(dext(rd, top, PAGE_BITS, THREAD_BITS));
    }

    fn supply(&mut self, to: Reg, arg: Arg, value: u64) {
        match arg {
            Arg::Thread => self.thread_id(to, K1),
            Arg::Origin => {
                // Return code of that frame, the word before it, its second quarter.
                self.put(ld(to, K1, -(value as i32)));
                self.put(ld(to, to, -8));
                self.put(dext(to, to, 16, 16));
            }
            Arg::Time => {
                self.time(to);
                if matches!(self.shape, Shape::Short(_)) {
                    self.scrub(TIMED);
                }
            }
            _ => self.constant(to, value),
        }
    }

    fn cause(&mut self) {
        self.put(mfc0(A0, c0::CAUSE));
        self.put(dmfc0(A1, c0::BAD_VADDR));
        self.put(dmfc0(A2, c0::EPC));
        self.running(A2 + 1);
        self.thread_id(A2 + 2, K1);
        self.put(copy(A2 + 3, T0));
    }

    /// The number of the domain that runs.
    fn running(&mut self, x: Reg) {
        self.put(dmfc0(x, c0::ENTRY_HI));
        self.put(andi(x, x, map::MAX_DOMAINS as u32 - 1));
    }

    /// Old thread's registers into its block, new one's out of its block, then its return code.
    fn switch(&mut self) {
        self.put(copy(T2, K1));
        self.put(dins(T2, ZERO, 0, PAGE_BITS));
        self.put(sd(K1, T2, thread::SAVED_TOP as i32));
        let slots = || PRESERVED.into_iter().zip((thread::SAVED_REGS as i32..).step_by(8));
        for (reg, at) in slots() {
            self.put(sd(reg, T2, at));
        }
        self.high(T2, map::THREADS_VA);
        self.put(dins(T2, V0, PAGE_BITS, THREAD_BITS));
        self.put(ld(K1, T2, thread::SAVED_TOP as i32));
        for (reg, at) in slots() {
            self.put(ld(reg, T2, at));
        }
        self.put(ld(K0, K1, 0));
        self.put(jr(K0));
        self.put(copy(V0, V1));
    }

    fn bounce(&mut self, code: u16) {
        self.put(ld(K0, K1, 0));
        if u64::from(code) == status::TIMEOUT {
            // The late call's bit to the sign.
            self.put(dsll(T2, K0, Mips64::LATE.leading_zeros()));
            self.raises = Some((self.open_alone(bgez(T2, 0)), 1 << T2));
        }
        // The domain's number from bit 16 on.
        self.put(ori(V1, ZERO, code.into()));
        self.put(dmfc0(T2, c0::ENTRY_HI));
        self.put(dins(V1, T2, 16, ASID_BITS));
        self.put(daddiu(T2, K0, 4));
        self.put(jr(T2));
        self.put(daddiu(V0, ZERO, -1));
    }

    /// `last`: done before the nucleus is there. `k0`, `k1` and [`CALLED`] are no longer what they were.
    fn call_nucleus(&mut self, place: u64, last: u32) {
        let low = self.high(T6, place);
        self.put(daddiu(T6, T6, low));
        self.put(jalr(T5, T6));
        self.put(last);
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
        if let Some(branch) = self.no_interrupt {
            self.join(branch);
            self.restore(&[T2, T3, A0, SP]);
            self.raise();
        }
        self.call_words = self.a.here() as u16;
        if self.a.here() % 2 == 1 {
            self.put(nop());
        }
        let pool_at = self.a.here() * 4;
        for (load, offset) in self.pool.uses() {
            if let Some(word) = self.a.from(load).first_mut() {
                *word |= (pool_at + offset) as u32;
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
                self.patch(at, ret_at as u32);
            }
        }
    }

    /// Undoes a trap's save, which has pushed nothing yet, for the registers that have changed since.
    fn restore(&mut self, regs: &[Reg]) {
        for reg in regs {
            self.load(*reg, frame::word(usize::from(*reg)) as u8);
        }
    }

    /// One way out for every status.
    fn join_refusals(&mut self) {
        loop {
            let Emitter { refusals, a, .. } = self;
            let Some(code) = refusals.take(|branch| join(a, branch)) else { return };
            self.refusal(code);
        }
    }
}

/// The branch leads here. Its distance is the lower half.
fn join<const N: usize>(a: &mut Asm<u32, N>, branch: Label) {
    let distance = a.distance(branch) * 4;
    if let Some(word) = a.from(branch).first_mut() {
        *word = *word & !0xffff | beq(ZERO, ZERO, distance) & 0xffff;
    }
}

// Distances to the pool and to the return leg are in the lower half of an instruction, and positive.
const _: () = assert!(MAX_WORDS * 4 < 0x8000);

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
    ir::steps(spec, shape, c, &Mips64::LAYOUT, &mut |op| e.op(op));
    if e.ret_at.is_none() {
        e.end_call_leg(false);
    }
    let full = e.a.is_full();
    (code.call_words, code.pool_at, code.ret_at, code.frame_words) =
        (e.call_words, e.pool_at, e.ret_at, e.frame_words);
    if full { Err(CompileError::TooLong) } else { Ok(()) }
}

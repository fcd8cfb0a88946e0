//! rv64 portal verifier: one pass over each leg with a small lattice.
//!
//! A [`Value`] says where the content of a register comes from; every instruction maps values to values, and
//! what has no rule becomes `Unknown`, which no exit, store or control register accepts. Offsets in the
//! invocation stack count from its top before the portal pushes, in both legs, so the return leg reads the
//! values that the call leg stored.
//!
//! * No joins: what a branch leads to lies behind the exit that falling through comes to, and nothing else
//!   leads there. So it is read at once, with a copy of the state, and what it did is forgotten. But for one
//!   kind of branch, which skips tests: what they leave in registers is forgotten, and nothing else may have
//!   changed.
//! * Frame words are written once, by the call leg, and stay what they are once the frame is pushed.
//! * The scheduler's steps with stack queues are read word by word, in [`stacks`].
//! * What exits demand is in [`exit`].

mod exit;
mod slot;
mod stacks;
mod state;
mod template;
mod value;
mod way;
mod window;

use super::{Reason, Refusal};
use crate::hardware::ir::{Lent, lent};
use crate::hardware::template::Template;
use crate::hardware::{Connection, Shape, Short};
use crate::isa::riscv64::decode::{
    Alu, Cond, CsrOp, Insn, adds, branches, clears, decode, loads_double, loads_upper, stores_double,
    writes_csr,
};
use crate::spec::Spec;
use crate::spec::{MAX_TEMPLATES, MAX_WINDOWS, Window};
use arrayvec::ArrayVec;
use pebble_abi::{map, sys, thread};
use pebble_arch::riscv64::{frame, paging};
use state::{State, Words, done};
use value::*;
use way::{MAX_CHOICES, Ways};
use window::fact;

/// `sie` with timer and external interrupts.
const SIE_ON: Value = Value(Kind::Const, 0x220);
/// The `FS` field of `sstatus`.
const FS: Value = Value(Kind::Const, 0x6000);
/// Largest frame: a trap in a domain with floating point.
const MAX_FRAME: usize = frame::WORDS + frame::FLOAT_WORDS;
const MAX_POOL: usize = 10;

/// What the frame looks like once the call leg has left.
#[derive(Clone, Copy)]
struct Pushed {
    words: usize,
    ret_at: usize,
}

struct Verifier<'a> {
    words: &'a [u32],
    spec: &'a Spec,
    shape: Shape,
    c: &'a Connection<'a>,
    /// A call that pushes its own frame; one that saves everything.
    is_call: bool,
    is_trap: bool,
    /// The leg being read is the return leg.
    returning: bool,
    semaphore: Option<u64>,
    counter: Option<u64>,
    queue: Option<u64>,
    /// Frame words may be written.
    pushing: bool,
    pushed: Option<Pushed>,
    /// First and last offset loaded from the pool.
    pool: Option<(usize, usize)>,
    windows: ArrayVec<Lent, MAX_WINDOWS>,
    /// With the caller's word that each takes.
    templates: ArrayVec<(u8, &'a Template), MAX_TEMPLATES>,
    /// Ways out of a refused call that were read: first offset, status code.
    refusals: ArrayVec<(usize, u16), 4>,
    room: &'a mut Room,
}

/// What the verifier keeps beside its stack.
pub(super) struct Room {
    /// Read where [`State::stored`] has the word: what another portal has left says nothing.
    frame: Values<MAX_FRAME>,
    /// Ways of the return leg that were chosen against, and are still to be read: first offset, choices so
    /// far, what is known there.
    choices: ArrayVec<(usize, usize, State), MAX_CHOICES>,
}

impl Room {
    pub(super) const fn new() -> Self {
        Room { frame: Values::UNKNOWN, choices: ArrayVec::new_const() }
    }
}

pub(super) fn verify(
    words: &[u32],
    spec: &Spec,
    shape: Shape,
    c: &Connection,
    room: &mut Room,
) -> Result<(), Refusal> {
    room.choices.clear();
    if let Shape::Short(Short::Stacks(what)) = shape {
        return stacks::check(words, what);
    }
    let queue = (!c.callee.exclusive).then(|| map::stack_queue_va(c.callee.asid));
    let is_call = matches!(shape, Shape::Call | Shape::Wait(_) | Shape::Signal(_));
    let is_trap = matches!(shape, Shape::Interrupt | Shape::Exception | Shape::NoStack);
    let mut v = Verifier {
        words,
        spec,
        shape,
        c,
        is_call,
        is_trap,
        returning: false,
        semaphore: match shape {
            Shape::Wait(id) | Shape::Signal(id) => Some(map::semaphore_va(usize::from(id))),
            _ => None,
        },
        counter: c.counter.filter(|_| is_call).map(|id| map::counter_va(usize::from(id))),
        queue,
        pushing: is_call || is_trap,
        pushed: None,
        pool: None,
        windows: ArrayVec::new(),
        templates: ArrayVec::new(),
        refusals: ArrayVec::new(),
        room,
    };
    if is_call {
        v.lendable().map_err(|reason| Refusal { at: 0, reason })?;
    }
    let mut call_end = v.leg(0, &mut State::new(Kind::Own, 0, c.caller.float), 0)?;
    if shape == Shape::ThreadExit {
        // Whoever names the entry comes no further; a thread's end comes in behind.
        if call_end != exit::RAISED as usize {
            return Err(Refusal { at: 0, reason: Reason::Jump });
        }
        // It ends in whatever domain it likes.
        call_end = v.leg(call_end, &mut State::new(Kind::Own, 0, true), 0)?;
    }
    let pool_at = (call_end + 7) & !7;
    let thread_end = shape == Shape::ThreadEnd;
    if thread_end {
        v.pushed = Some(Pushed { words: 0, ret_at: pool_at + 16 });
    }
    let Some(Pushed { words: frame, ret_at }) = v.pushed else {
        return v.check_pool(pool_at, words.len() * 4);
    };
    v.check_pool(pool_at, ret_at)?;
    v.check_description(ret_at, frame)?;
    v.pool = None;
    v.pushing = false;
    // The thread end is entered like a return leg, by threads of all domains, but leads on.
    v.returning = !thread_end;
    let origin = if thread_end { Kind::Own } else { Kind::Theirs };
    let mut start = State::new(origin, ret_at, !v.is_trap && c.callee.float);
    if v.returning {
        // After a switch `sscratch` still belongs to the old thread; `t1` is right.
        start.sscratch = UNKNOWN;
        start.set(reg::T1 as u8, Value(Kind::Top, frame as i32 * 8));
        start.stored = Words::below(frame);
    }
    if thread_end {
        // Its error entry is as good as its first instruction.
        if words.get(ret_at / 4) != words.get(ret_at / 4 + 1) {
            return Err(Refusal { at: ret_at, reason: Reason::FirstOfReturn });
        }
        let mut again = start;
        v.leg(ret_at + 4, &mut again, 0)?;
    }
    let first = if thread_end { ret_at } else { v.after_status(ret_at, &mut start)? };
    let end = v.leg(first, &mut start, 0)?;
    // One after the other and not one within the other: the portal manager's stacks are short.
    while let Some((at, depth, mut chosen)) = v.room.choices.pop() {
        if v.leg(at, &mut chosen, depth)? != end {
            return Err(Refusal { at, reason: Reason::Branch });
        }
    }
    if end != words.len() * 4 {
        return Err(Refusal { at: end, reason: Reason::Unreachable });
    }
    v.check_pool(pool_at, ret_at)
}

impl Verifier<'_> {
    /// What the specification asks for can be had in this connection.
    fn lendable(&mut self) -> Result<(), Reason> {
        self.windows = lent(self.spec, self.c);
        for (from, letter) in self.spec.templates() {
            let template = self.c.templates.iter().find(|t| t.letter == letter).ok_or(Reason::Template)?;
            template.check().map_err(|_| Reason::Template)?;
            self.templates.push((from, template));
        }
        let plain = self.windows.is_empty() && self.templates.is_empty();
        let moves = |l: &Lent| matches!(l.window, Window::Tear | Window::Get);
        let (caller, callee) = (&self.c.caller, &self.c.callee);
        let lends = caller.l1 != 0 && callee.windows != 0 && !callee.exclusive;
        let books = caller.windows != 0 || !self.windows.iter().any(moves);
        if plain || self.shape == Shape::Call && (self.windows.is_empty() || lends && books) {
            Ok(())
        } else {
            Err(Reason::Window)
        }
    }

    /// Reads the code from offset `at` to the exit that straight execution comes to, and the ways that branch
    /// off it, which must lie behind that exit without a gap. Returns the offset behind the last.
    fn leg(&mut self, at: usize, s: &mut State, depth: usize) -> Result<usize, Refusal> {
        let mut ways = Ways::default();
        let exit = self.straight(at, usize::MAX, s, depth, &mut ways)?;
        ways.behind(exit.ok_or(Refusal { at, reason: Reason::Endless })?)
    }

    /// Reads the code from offset `at` to the exit that straight execution comes to, whose end it returns, or
    /// to `end`.
    fn straight(
        &mut self,
        mut at: usize,
        end: usize,
        s: &mut State,
        depth: usize,
        ways: &mut Ways,
    ) -> Result<Option<usize>, Refusal> {
        let words = self.words.get(..end / 4).unwrap_or(self.words);
        while let Some(&word) = words.get(at / 4) {
            let fail = |reason| Refusal { at, reason };
            if s.translated < self.templates.len()
                && let Some(template) = self.begins(word, s)
            {
                at = self.template(at, template, s, ways)?;
                continue;
            }
            if let Some(rd) = clears(word) {
                s.clear(rd);
            } else if let Some((rd, base, imm)) = loads_double(word) {
                let Some(value) = self.load(s, s.get(base), imm) else { return Err(fail(Reason::Load)) };
                s.set(rd, value);
            } else if let Some((source, base, imm)) = stores_double(word) {
                self.store(s, s.get(base), imm, s.get(source)).map_err(fail)?;
            } else if let Some((rd, source, imm)) = adds(word) {
                let value = match add_imm(s.get(source), imm) {
                    UNKNOWN => self.window_imm(s, Alu::Add, s.get(source), imm),
                    value => value,
                };
                s.set(rd, value);
            } else if let Some((number, source)) = writes_csr(word) {
                self.write_csr(s, number, s.get(source)).map_err(fail)?;
            } else if let Some((rd, upper)) = loads_upper(word) {
                s.set(rd, Value(Kind::Const, upper as i32));
            } else if branches(word) {
                at = self.fork(at, word, s, depth, ways)?;
                continue;
            } else if self.step(word, s).map_err(fail)? {
                return Ok(Some(at + 4));
            }
            at += 4;
        }
        if at == end { Ok(None) } else { Err(Refusal { at, reason: Reason::Endless }) }
    }

    /// One of the rarer instructions; true if the leg is left here.
    #[inline(never)]
    fn step(&mut self, word: u32, s: &mut State) -> Result<bool, Reason> {
        match decode(word).ok_or(Reason::NotAllowed)? {
            Insn::AluImm { op, rd, rs1, imm } => {
                let value = match alu_imm(op, s.get(rs1), imm) {
                    UNKNOWN => self.window_imm(s, op, s.get(rs1), imm),
                    value => value,
                };
                s.set(rd, value);
            }
            Insn::Csr { op: CsrOp::S, rd, csr, rs1: 0 } => {
                let value = self.read_csr(s, csr)?;
                s.set(rd, value);
            }
            Insn::Csr { op: CsrOp::W, rd, csr: csr::SSCRATCH, rs1 } if rd == rs1 => {
                let new = s.get(rs1);
                s.set(rd, s.sscratch);
                s.sscratch = new;
            }
            Insn::Csr { op, rd: 0, csr: csr::SSTATUS, rs1 } if s.get(rs1) == FS => s.float = op == CsrOp::S,
            Insn::Alu { op: op @ (Alu::Add | Alu::Or | Alu::Xor), rd, rs1, rs2 } => {
                let (a, b) = (s.get(rs1), s.get(rs2));
                let value = if op == Alu::Add { add(a, b) } else { UNKNOWN };
                s.set(rd, if value == UNKNOWN { self.window_alu(s, op, a, b) } else { value });
            }
            Insn::Fsd { fs2, rs1, imm } => self.save_float(s, fs2, s.get(rs1), imm)?,
            Insn::Fld { fd, rs1, imm } => self.restore_float(s, fd, s.get(rs1), imm)?,
            Insn::FmvDX { fd, rs1: 0 } if s.float => {
                s.float_zero |= 1 << fd;
                s.float_restored &= !(1 << fd);
            }
            Insn::Sret => {
                self.leave(s)?;
                return Ok(true);
            }
            Insn::Jalr { rd: 0, rs1, imm } => {
                self.jump(s, s.get(rs1), imm)?;
                return Ok(true);
            }
            Insn::Wfi if self.shape == Shape::Short(Short::Idle) => s.done |= done::EFFECT,
            Insn::SfenceVma { rs1: 0, rs2 }
                if self.shape == Shape::Short(Short::Flush) && s.get(rs2) == own(reg::A1) =>
            {
                s.done |= done::EFFECT;
            }
            Insn::SfenceVma { rs1, rs2 } if !self.windows.is_empty() => self.fence(s, rs1, s.get(rs2))?,
            _ => return Err(Reason::NotAllowed),
        }
        Ok(false)
    }

    /// What a double word at `base + imm` holds, if it may be read.
    #[inline(always)]
    fn load(&mut self, s: &State, base: Value, imm: i64) -> Option<Value> {
        let Value(kind, n) = base;
        if kind != Kind::Top {
            return self.load_elsewhere(s, base, imm);
        }
        let offset = i64::from(n) + imm;
        if offset == 0 {
            return Some(Value(Kind::ReturnCode, 0));
        }
        self.kept(s, frame_word(offset)?)
    }

    /// What this frame word holds, if the call leg has written it.
    #[inline(always)]
    fn kept(&self, s: &State, word: usize) -> Option<Value> {
        s.stored.has(word).then(|| self.room.frame.get(word))
    }

    /// Whatever lies outside the frame.
    #[inline(never)]
    fn load_elsewhere(&mut self, s: &State, base: Value, imm: i64) -> Option<Value> {
        let Value(kind, n) = base;
        let offset = i64::from(n) + imm;
        match kind {
            Kind::Code => {
                let at = usize::try_from(offset).ok().filter(|at| at % 8 == 0)?;
                let (first, last) = self.pool.unwrap_or((at, at));
                self.pool = Some((first.min(at), last.max(at)));
                Some(Value(Kind::Pool, at as i32))
            }
            Kind::Const => self.load_shared(s, offset as u64),
            Kind::Head if !self.returning && imm == 0 => Some(Value(Kind::HeadNext, 0)),
            Kind::Desc if !self.returning => match imm {
                0 => Some(Value(Kind::DescNext, 0)),
                8 => Some(Value(Kind::DescStack, 0)),
                _ => None,
            },
            Kind::NextBlock if imm == thread::SAVED_TOP as i64 => Some(Value(Kind::NextTop, 0)),
            Kind::NextBlock => {
                let x = *reg::IN_BLOCK.get(block_word(imm)?)?;
                Some(Value(Kind::NextRegister, i32::from(x)))
            }
            Kind::ReturnCode if n == 0 && imm == -8 => Some(Value(Kind::Description, 0)),
            Kind::NextTop if imm == 0 => Some(Value(Kind::ReturnCode, 1)),
            _ => self.window_load(s, base, imm),
        }
    }

    /// Words at fixed addresses, each read before it is changed.
    fn load_shared(&self, s: &State, address: u64) -> Option<Value> {
        let (kind, changed) = if Some(address) == self.queue {
            let there = !self.returning && s.knows(fact::STACK);
            (if there { Kind::Desc } else { Kind::Head }, done::TAKEN | done::GIVEN)
        } else if Some(address) == self.semaphore {
            (Kind::SemRead, done::SEMAPHORE)
        } else if Some(address) == self.counter {
            (Kind::CountRead, done::COUNTED)
        } else if address.is_multiple_of(8) && address < map::TABLE_BYTES && s.space == csr_value(csr::SATP) {
            return Some(Value(Kind::TableEntry, (address / 8) as i32));
        } else {
            return self.control_load(s, address);
        };
        (s.done & changed == 0).then_some(Value(kind, 0))
    }

    /// A store of `value` at `base + imm`, if it may be made.
    #[inline(always)]
    fn store(&mut self, s: &mut State, base: Value, imm: i64, value: Value) -> Result<(), Reason> {
        let Value(kind, n) = base;
        match kind {
            Kind::Top => self.store_frame(s, i64::from(n) + imm, value),
            _ => self.store_elsewhere(s, base, imm, value),
        }
    }

    #[inline(never)]
    fn store_elsewhere(&self, s: &mut State, base: Value, imm: i64, value: Value) -> Result<(), Reason> {
        let Value(kind, n) = base;
        let offset = i64::from(n) + imm;
        let did = match kind {
            Kind::SlotEntry | Kind::Slot | Kind::Leaf | Kind::TableWord => {
                return self.window_store(s, base, imm, value);
            }
            Kind::Const if matches!(value.0, Kind::SlotNext | Kind::Slot | Kind::MovedBy) => {
                return self.control_store(s, offset as u64, value);
            }
            Kind::Const => self.store_shared(offset as u64, value),
            Kind::Desc if self.returning && imm == 0 && value.0 == Kind::Head => Some(done::LINKED),
            Kind::Block if self.shape == Shape::Switch => return store_block(s, imm, value),
            _ => None,
        };
        match did {
            Some(what) if s.done & what == 0 => {
                s.done |= what;
                Ok(())
            }
            _ => Err(Reason::Store),
        }
    }

    fn store_shared(&self, address: u64, value: Value) -> Option<u16> {
        match value.0 {
            Kind::DescNext if Some(address) == self.queue => Some(done::TAKEN),
            Kind::Desc if Some(address) == self.queue && self.returning => Some(done::GIVEN),
            Kind::SemNext if Some(address) == self.semaphore => Some(done::SEMAPHORE),
            Kind::CountNext if Some(address) == self.counter => Some(done::COUNTED),
            _ => None,
        }
    }

    /// Frame words are written by the call leg, once each.
    #[inline(always)]
    fn store_frame(&mut self, s: &mut State, offset: i64, value: Value) -> Result<(), Reason> {
        let word = frame_word(offset).filter(|word| !s.stored.has(*word)).ok_or(Reason::Store)?;
        if !self.pushing {
            return Err(Reason::Store);
        }
        self.room.frame.set(word, value);
        s.stored.add(word);
        Ok(())
    }

    fn save_float(&mut self, s: &mut State, f: u8, base: Value, imm: i64) -> Result<(), Reason> {
        let untouched = (s.float_zero | s.float_restored) >> f & 1 == 0;
        match base {
            Value(Kind::Top, n) if s.float && untouched => {
                self.store_frame(s, i64::from(n) + imm, Value(Kind::Float, i32::from(f)))
            }
            _ => Err(Reason::Float),
        }
    }

    fn restore_float(&mut self, s: &mut State, f: u8, base: Value, imm: i64) -> Result<(), Reason> {
        if !s.float || self.load(s, base, imm) != Some(Value(Kind::Float, i32::from(f))) {
            return Err(Reason::Float);
        }
        s.float_restored |= 1 << f;
        s.float_zero &= !(1 << f);
        Ok(())
    }

    fn read_csr(&self, s: &State, number: u16) -> Result<Value, Reason> {
        Ok(match number {
            csr::SSCRATCH => s.sscratch,
            csr::SEPC => s.sepc,
            csr::SATP => s.space,
            csr::FCSR if s.float => s.fcsr,
            csr::STVAL if s.did(done::TOLD) => UNKNOWN,
            csr::SCAUSE | csr::STVAL | csr::TIME => csr_value(number),
            _ => return Err(Reason::ControlRegister),
        })
    }

    fn write_csr(&self, s: &mut State, number: u16, value: Value) -> Result<(), Reason> {
        match number {
            csr::SSCRATCH => s.sscratch = value,
            csr::SATP => {
                let ours = if self.is_trap {
                    value == csr_value(csr::SATP)
                } else {
                    self.is(value, self.c.caller.space)
                };
                if !(if self.returning { ours } else { self.is(value, self.c.callee.space) }) {
                    return Err(Reason::AddressSpace);
                }
                s.space = value;
            }
            csr::SEPC => s.sepc = value,
            csr::SIE if value == ZERO || value == SIE_ON => s.sie = Some(value),
            csr::SIE => return Err(Reason::Interrupts),
            csr::FCSR if s.float && (value == ZERO || value == csr_value(csr::FCSR)) => s.fcsr = value,
            csr::STIMECMP if self.shape == Shape::Short(Short::SetTimer) && value == own(reg::A1) => {
                s.done |= done::EFFECT;
            }
            csr::STVAL if s.leads == sys::NO_STACK as i32 && self.is(value, self.c.callee.asid.into()) => {
                s.done |= done::TOLD;
            }
            _ => return Err(Reason::ControlRegister),
        }
        Ok(())
    }

    /// Whether `value` is this constant, from the code or from the pool.
    fn is(&self, value: Value, expected: u64) -> bool {
        match value {
            Value(Kind::Const, n) => i64::from(n) as u64 == expected,
            Value(Kind::Pool, at) => self.double_word(at as usize) == Some(expected),
            _ => false,
        }
    }

    fn double_word(&self, at: usize) -> Option<u64> {
        let low = *self.words.get(at / 4)?;
        let high = *self.words.get(at / 4 + 1)?;
        Some(u64::from(low) | u64::from(high) << 32)
    }

    /// The pool lies between the legs, and what was loaded from it lies in it.
    fn check_pool(&self, start: usize, end: usize) -> Result<(), Refusal> {
        let sized = start <= end
            && end <= self.words.len() * 4
            && (end - start).is_multiple_of(8)
            && end - start <= MAX_POOL * 8;
        let inside = self.pool.is_none_or(|(first, last)| start <= first && last < end);
        if sized && inside { Ok(()) } else { Err(Refusal { at: start, reason: Reason::Pool }) }
    }

    /// The word before the return code: frame words, caller, callee, index, 16 bits each.
    fn check_description(&self, ret_at: usize, frame: usize) -> Result<(), Refusal> {
        let c = self.c;
        let ids = u64::from(c.caller.asid) << 16 | u64::from(c.callee.asid) << 32 | u64::from(c.index) << 48;
        let at = ret_at.wrapping_sub(8);
        if self.double_word(at) == Some(ids | frame as u64) {
            Ok(())
        } else {
            Err(Refusal { at, reason: Reason::Description })
        }
    }

    /// Code with an error entry at its second instruction: the first clears the status, or, in a portal that
    /// keeps that of its callee, does nothing.
    fn after_status(&self, at: usize, s: &mut State) -> Result<usize, Refusal> {
        let word = self.words.get(at / 4).copied().unwrap_or_default();
        let a1 = reg::A1 as u8;
        let right =
            if self.c.keeps_status { adds(word) == Some((a1, a1, 0)) } else { clears(word) == Some(a1) };
        if !right {
            return Err(Refusal { at, reason: Reason::FirstOfReturn });
        }
        s.set(reg::A1 as u8, Value(Kind::Status, 0));
        Ok(at + 4)
    }
}

/// Index of the frame word at this offset from the top before the push.
#[inline(always)]
fn frame_word(offset: i64) -> Option<usize> {
    let bytes = (offset as usize).wrapping_sub(8);
    (bytes.is_multiple_of(8) && bytes < MAX_FRAME * 8).then_some(bytes / 8)
}

/// Index of the preserved register kept at this offset of a thread block.
fn block_word(offset: i64) -> Option<usize> {
    let word = usize::try_from(offset - thread::SAVED_REGS as i64).ok()?;
    (word % 8 == 0 && word / 8 < reg::IN_BLOCK.len()).then_some(word / 8)
}

/// The switch keeps the old thread's top and preserved registers in its block.
fn store_block(s: &mut State, offset: i64, value: Value) -> Result<(), Reason> {
    let (bit, expected) = if offset == thread::SAVED_TOP as i64 {
        (0, Value(Kind::Top, 0))
    } else {
        let word = block_word(offset).ok_or(Reason::Store)?;
        (word + 1, own(usize::from(reg::IN_BLOCK[word])))
    };
    if value != expected {
        return Err(Reason::SavedThread);
    }
    s.block |= 1 << bit;
    Ok(())
}

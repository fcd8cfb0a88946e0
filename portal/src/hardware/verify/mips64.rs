//! What mips64 instructions mean, and mips64's registers.
//!
//! * What stands in a delay slot is executed before the branch is taken, whichever way it goes. So it is read
//!   first; it may be a plain instruction that leaves alone what the branch tests, and nothing else.
//! * What is written to coprocessor 0 is there behind an `ehb`, and not before ([`done::PENDING`]): nothing
//!   is left, and nothing read back, in between.
//! * A domain is two registers: `EntryHi` has its number, [`State::mode`], and `DESAVE` the root of its page
//!   tables, [`State::space`]. They change together, that one first.
//! * A constant from the pool that has 32 bits is as good as one that is computed: most of them are
//!   addresses.
//! * `hi` and `lo` are beside: bits 0 and 1 of what is known of them.

mod forget;
mod template;
mod value;
mod whole;
mod window;

use super::leg::Verifier;
use super::machine::{Machine, Registers};
use super::state::{State, done};
use super::value::*;
use super::way::{Cond, Ways};
use super::{Reason, Refusal};
use crate::hardware::hole::Hole;
use crate::hardware::{Shape, Short};
use crate::isa::mips64::decode::{self, Alu, C0, Insn, Shift, Width, c0, decode};
use pebble_abi::{map, sys};
use pebble_arch::Mips64;
use pebble_arch::mips64::{frame, paging, regs};
use value::{control, reg};

type V<'a> = Verifier<'a, Mips64>;

/// Bytes of the domain's exception: a look-up and a jump.
const RAISED: i32 = 20;
/// `hi` and `lo`.
const BOTH: u32 = 3;

impl Machine for Mips64 {
    const REGISTERS: Registers = reg::ALL;
    const SPACE: Value = control::SPACE;
    const PC: Value = control::of(c0::EPC);
    const CAUSE: Value = control::of(c0::CAUSE);
    const FAULT: Value = control::of(c0::BAD_VADDR);
    const TIME: Value = Value(Kind::Time, 0);
    const LACKING: Value = control::of(c0::DEPC);
    const MODE: Value = Self::SPACE;
    const POOL: usize = 26;
    const RAISED: usize = RAISED as usize;
    const SHADOW: bool = true;
    const WAITS_CLEAR: bool = true;
    const FULL: Cond = Cond::Ne;
    const TIMELY: Cond = Cond::Ge;
    const NO_INTERRUPT: (Cond, Value) = (Cond::Ne, Value(Kind::TrapCode, 0));

    fn straight(
        v: &mut V,
        mut at: usize,
        end: usize,
        s: &mut State,
        depth: usize,
        ways: &mut Ways,
    ) -> Result<Option<usize>, Refusal> {
        let words = v.words.get(..end / 4).unwrap_or(v.words);
        while let Some(&word) = words.get(at / 4) {
            let fail = |reason| Refusal { at, reason };
            if s.translated < v.templates.len()
                && let Some(template) = v.begins(word, s)
            {
                at = v.template(at, template, s, ways)?;
                continue;
            }
            let insn = decode(word).ok_or(fail(Reason::NotAllowed))?;
            match insn {
                Insn::Tlbp => {
                    v.forget(at, s, depth).map_err(fail)?;
                    at += forget::LENGTH * 4;
                    continue;
                }
                Insn::Branch { cond: decode::Cond::Ltz, rs, imm, .. } if v.returning => {
                    at = v.unless_untouched((at, depth), rs, imm, s, ways)?;
                    continue;
                }
                // What is behind it is read next, which is executed on this way too.
                Insn::Branch { .. } => {
                    at = v.fork(at, word, s, depth, ways)?;
                    continue;
                }
                Insn::Jr { rs } => {
                    let to = s.get(rs);
                    Self::shadow(v, at, s)?;
                    settled(s).and_then(|()| v.leap(s, to)).map_err(fail)?;
                    return Ok(Some(at + 8));
                }
                // What stands behind it finds where the call comes back. The architecture leaves open what
                // happens if that is the register of where it goes.
                Insn::Jalr { rd, rs } if rd != rs => {
                    let to = s.get(rs);
                    s.set(rd, Value(Kind::Code, at as i32 + 8));
                    Self::shadow(v, at, s)?;
                    v.call_nucleus(s, at, rd, to).map_err(fail)?;
                    at += 8;
                    continue;
                }
                Insn::Eret => {
                    settled(s).and_then(|()| v.leave(s)).map_err(fail)?;
                    return Ok(Some(at + 4));
                }
                _ => v.step(insn, s).map_err(fail)?,
            }
            at += 4;
        }
        if at == end { Ok(None) } else { Err(Refusal { at, reason: Reason::Endless }) }
    }

    fn branch(word: u32, at: usize) -> Option<(Cond, (u8, u8), usize)> {
        let Some(Insn::Branch { cond, rs, rt, imm }) = decode(word) else { return None };
        let (cond, registers) = match cond {
            decode::Cond::Eq => (Cond::Eq, (rs, rt)),
            decode::Cond::Ne => (Cond::Ne, (rs, rt)),
            decode::Cond::Ltz => (Cond::Lt, (rs, 0)),
            decode::Cond::Gez => (Cond::Ge, (rs, 0)),
            decode::Cond::Lez => (Cond::Ge, (0, rs)),
            decode::Cond::Gtz => (Cond::Lt, (0, rs)),
        };
        (imm >= 8).then(|| (cond, registers, at + imm as usize))
    }

    /// A plain instruction, which leaves neither way nor processor as they were not.
    fn shadow(v: &mut V, at: usize, s: &mut State) -> Result<(), Refusal> {
        let fail = |reason| Refusal { at: at + 4, reason };
        let word = *v.words.get(at / 4 + 1).ok_or(fail(Reason::Endless))?;
        let insn = decode(word).ok_or(fail(Reason::NotAllowed))?;
        let plain = matches!(
            insn,
            Insn::Nop
                | Insn::Lui { .. }
                | Insn::AluImm { .. }
                | Insn::Alu { .. }
                | Insn::Shift { .. }
                | Insn::Ext { .. }
                | Insn::Ins { .. }
                | Insn::Load { .. }
                | Insn::Store { .. }
        );
        if plain { v.step(insn, s).map_err(fail) } else { Err(fail(Reason::Delayed)) }
    }

    fn clears(word: u32) -> Option<u8> {
        match decode(word) {
            Some(Insn::Alu { op: Alu::Or, rd, rs: 0, rt: 0 }) => Some(rd),
            _ => None,
        }
    }

    fn keeps(word: u32, x: u8) -> bool {
        decode(word) == Some(Insn::Alu { op: Alu::Or, rd: x, rs: x, rt: 0 })
    }

    fn word_by_word(words: &[u32], short: Short) -> Option<Result<(), Refusal>> {
        whole::check(words, short)
    }

    /// The running domain's portal table by way of its root, and the time.
    fn load(_: &V, _: &State, base: Value, imm: i64) -> Option<Value> {
        let Value(kind, n) = base;
        match kind {
            Kind::Control if base == control::of(c0::DESAVE) => {
                let page = imm.checked_sub(paging::ROOT_PORTALS as i64).filter(|at| (0..64).contains(at))?;
                (page % 8 == 0).then_some(Value(Kind::TablePage, page as i32 / 8))
            }
            Kind::Const if (i64::from(n) + imm) as u64 == map::KDATA_VA + map::TIME_OFF => {
                Some(Value(Kind::TimeBefore, 0))
            }
            Kind::TablePage if (0..4096).contains(&imm) && imm % 8 == 0 => {
                Some(Value(Kind::TableEntry, n * 512 + imm as i32 / 8))
            }
            _ => None,
        }
    }

    /// The head that was read is a stack, and what is behind it the next.
    fn found_stack(s: &mut State) {
        for x in 1..32 {
            match s.get(x) {
                Value(Kind::Head, 0) => s.set(x, Value(Kind::Desc, 0)),
                Value(Kind::HeadNext, 0) => s.set(x, Value(Kind::DescNext, 0)),
                _ => {}
            }
        }
    }

    fn untouched(_: &V, s: &State) -> bool {
        s.beside_zero | s.beside_restored == 0 && s.mode == Self::MODE
    }

    fn spared(_: &V, s: &State) -> bool {
        let hidden = if s.refusing != 0 { BOTH } else { 0 };
        s.beside_zero == hidden && s.beside_restored == 0 && s.mode == Self::MODE
    }

    fn entered(v: &V, s: &State) -> bool {
        let cleared = v.shape != Shape::NoStack || s.did(done::EFFECT);
        s.beside_zero == BOTH && s.mode == s.space && cleared
    }

    fn returned(_: &V, s: &State) -> bool {
        s.beside_zero == BOTH && s.mode == s.space
    }

    fn resumed(_: &V, s: &State) -> bool {
        s.beside_restored == BOTH && s.mode == s.space
    }

    fn trapped(v: &V, s: &State, _: usize) -> bool {
        let holds = |word, value| v.kept(s, word) == Some(value);
        let general = (1..32).filter(|x| reg::NUCLEUS >> x & 1 == 0);
        general.map(|x| holds(frame::word(x), own(x))).fold(true, |a, b| a & b)
            && holds(frame::HI, Value(Kind::Beside, 0))
            && holds(frame::LO, Value(Kind::Beside, 1))
    }
}

/// Nothing that was written to coprocessor 0 is on its way.
fn settled(s: &State) -> Result<(), Reason> {
    if s.did(done::PENDING) { Err(Reason::Hazard) } else { Ok(()) }
}

impl V<'_> {
    /// `jr`: to the beginning of other code, or to where it is entered behind that.
    fn leap(&self, s: &State, to: Value) -> Result<(), Reason> {
        match to {
            Value(Kind::Inside, offset) => self.jump(s, s.get(reg::CODE), offset.into()),
            _ => self.jump(s, to, 0),
        }
    }

    /// `jalr`: to one of two places in the nucleus, which come back; with what they destroy.
    fn call_nucleus(&self, s: &mut State, at: usize, back: u8, to: Value) -> Result<(), Reason> {
        let flushes = self.is(to, regs::FLUSH);
        let flushed = match self.shape {
            Shape::Short(Short::Flush) if flushes && s.get(reg::T4) == own(5) => 0,
            Shape::Short(Short::Idle) if self.is(to, regs::IDLE) => 0,
            _ if flushes && !self.windows.is_empty() && self.is(s.get(reg::T4), self.flushing()) => {
                self.flushed(s, None)
            }
            _ => return Err(Reason::Jump),
        };
        let comes_back = back == reg::T5 && s.get(back) == Value(Kind::Code, at as i32 + 8);
        if !comes_back || self.windows.is_empty() && !self.untouched(s) {
            return Err(Reason::Jump);
        }
        for x in [reg::T4, reg::T6, reg::CODE, reg::TOP] {
            s.set(x, UNKNOWN);
        }
        // It is left as it was found, and what was written to it may not have been there yet.
        if !self.windows.is_empty() {
            s.mode = UNKNOWN;
        }
        s.known |= flushed;
        s.done |= if self.windows.is_empty() { done::EFFECT } else { 0 };
        Ok(())
    }

    /// What does not leave the leg.
    #[inline(never)]
    fn step(&mut self, insn: Insn, s: &mut State) -> Result<(), Reason> {
        match insn {
            Insn::Nop => {}
            Insn::Alu { op: Alu::Or, rd, rs: 0, rt: 0 } => s.clear(rd),
            Insn::Alu { op: Alu::Or, rd, rs, rt: 0 } => {
                s.set(rd, s.get(rs));
                // What was kept of the top is not used beside it.
                if rd == reg::TOP {
                    s.set(rs, UNKNOWN);
                }
            }
            Insn::Lui { rt, imm } => s.set(rt, Value(Kind::Const, imm as i32)),
            Insn::AluImm { op, rt, rs, imm } => {
                let value = value::alu_imm(self, op, s.get(rs), imm);
                s.set(rt, value);
            }
            Insn::Alu { op, rd, rs, rt } => {
                let value = match op {
                    Alu::Movz if rd == rt && usize::from(rd) == reg::ALL.status => {
                        self.blame(s.get(rs), s.get(rt))
                    }
                    Alu::Movz | Alu::Movn => UNKNOWN,
                    _ => value::alu(self, op, s.get(rs), s.get(rt)),
                };
                s.set(rd, value);
            }
            Insn::Shift { op, rd, rt, by } => {
                let value = value::shift(self, op, s.get(rt), by.into());
                s.set(rd, value);
            }
            Insn::Ext { rt, rs, pos, size } => {
                let value = value::ext(s.get(rs), pos, size);
                s.set(rt, value);
            }
            Insn::Ins { rt, rs, pos, size } => {
                let value = value::ins(self, s, s.get(rt), s.get(rs), (pos, size));
                s.set(rt, value);
            }
            Insn::Load { width: Width::D, rt, base, imm } => {
                let value = self.load(s, s.get(base), imm).ok_or(Reason::Load)?;
                s.set(rt, self.short(value));
            }
            Insn::Store { width: Width::D, rt, base, imm } => match (s.get(base), s.get(rt)) {
                (to, value @ Value(Kind::TimeNow, _)) => keep_time(s, to, imm, value)?,
                (to, value) => {
                    let before = s.done;
                    self.store(s, to, imm, value)?;
                    // What is left of counting is nobody's.
                    if (s.done ^ before) & done::COUNTED != 0 {
                        s.set(base, UNKNOWN);
                    }
                }
            },
            Insn::Mfc0 { rt, from } => s.set(rt, self.read_c0(s, from, false)?),
            Insn::Dmfc0 { rt, from } => s.set(rt, self.read_c0(s, from, true)?),
            Insn::Dmtc0 { rt, to } => {
                self.write_c0(s, to, s.get(rt))?;
                s.done |= done::PENDING;
            }
            Insn::Di { rt: 0 } | Insn::Ei { rt: 0 } => {
                s.interrupts = Some(matches!(insn, Insn::Ei { .. }));
                s.done |= done::PENDING;
            }
            Insn::Ehb => s.done &= !done::PENDING,
            Insn::Mfhi { rd } => self.read_beside(s, rd, 0)?,
            Insn::Mflo { rd } => self.read_beside(s, rd, 1)?,
            Insn::Mthi { rs } => write_beside(s, s.get(rs), 0)?,
            Insn::Mtlo { rs } => write_beside(s, s.get(rs), 1)?,
            _ => return Err(Reason::NotAllowed),
        }
        Ok(())
    }

    fn read_beside(&self, s: &mut State, rd: u8, n: i32) -> Result<(), Reason> {
        if self.returning || (s.beside_zero | s.beside_restored) >> n & 1 == 1 {
            return Err(Reason::Beside);
        }
        s.set(rd, Value(Kind::Beside, n));
        Ok(())
    }

    /// `wide`: all 64 bits, which addresses need.
    fn read_c0(&self, s: &State, from: C0, wide: bool) -> Result<Value, Reason> {
        // What was written is read from where it came.
        let first = |now: Value, at_first: Value| if now == at_first { Ok(now) } else { Err(Reason::Hazard) };
        match (from, wide) {
            (c0::ERROR_EPC, true) => first(s.top, Value(Kind::Top, 0)),
            (c0::EPC, true) => first(s.pc, Mips64::PC),
            (c0::DESAVE, true) => first(s.space, control::SPACE).map(|_| control::of(c0::DESAVE)),
            (c0::ENTRY_HI, true) => first(s.mode, control::SPACE).map(|_| control::of(c0::ENTRY_HI)),
            (c0::BAD_VADDR, true) | (c0::CAUSE | c0::COUNT, false) => Ok(control::of(from)),
            (c0::DEPC, true) if self.shape == Shape::NoStack && !s.did(done::EFFECT) => Ok(Mips64::LACKING),
            _ => Err(Reason::ControlRegister),
        }
    }

    fn write_c0(&self, s: &mut State, to: C0, value: Value) -> Result<(), Reason> {
        match to {
            c0::ERROR_EPC => s.top = value,
            c0::EPC => s.pc = value,
            c0::ENTRY_HI if value.0 == Kind::Probe || self.may_enter(value) => s.mode = value,
            c0::DESAVE if value != UNKNOWN && self.may_enter(s.mode) && value == value::root(s.mode) => {
                s.space = s.mode;
            }
            c0::ENTRY_HI | c0::DESAVE => return Err(Reason::AddressSpace),
            c0::DEPC if s.leads == sys::NO_STACK as i32 && self.is(value, Hole::Callee.symbol()) => {
                s.done |= done::TOLD;
            }
            c0::DEPC if self.shape == Shape::NoStack && value == ZERO => s.done |= done::EFFECT,
            _ => return Err(Reason::ControlRegister),
        }
        Ok(())
    }

    /// The address space into which this leg leads.
    fn may_enter(&self, value: Value) -> bool {
        match (self.returning, self.is_trap) {
            (false, _) => self.is(value, Hole::CalleeSpace.symbol()),
            (true, true) => value == control::SPACE,
            (true, false) => self.is(value, Hole::CallerSpace.symbol()),
        }
    }

    /// A constant of 32 bits is that, wherever it came from.
    fn short(&self, value: Value) -> Value {
        let Value(Kind::Pool, at) = value else { return value };
        let word = self.double_word(at as usize).and_then(|word| i32::try_from(word as i64).ok());
        word.map_or(value, |n| Value(Kind::Const, n))
    }
}

/// The time is kept; who reads it from now on reads it anew.
fn keep_time(s: &mut State, base: Value, imm: i64, value: Value) -> Result<(), Reason> {
    let Value(Kind::Const, n) = base else { return Err(Reason::Store) };
    if (i64::from(n) + imm) as u64 != map::KDATA_VA + map::TIME_OFF {
        return Err(Reason::Store);
    }
    for x in 1..32 {
        match s.get(x) {
            now if now == value => s.set(x, Mips64::TIME),
            Value(Kind::TimeBefore | Kind::Elapsed | Kind::TimeNow, _) => s.set(x, UNKNOWN),
            count if count == control::of(c0::COUNT) => s.set(x, UNKNOWN),
            _ => {}
        }
    }
    Ok(())
}

fn write_beside(s: &mut State, value: Value, n: i32) -> Result<(), Reason> {
    let (zero, restored) = match value {
        ZERO => (1, 0),
        Value(Kind::Beside, of) if of == n => (0, 1),
        _ => return Err(Reason::Beside),
    };
    s.beside_zero = s.beside_zero & !(1 << n) | zero << n;
    s.beside_restored = s.beside_restored & !(1 << n) | restored << n;
    Ok(())
}

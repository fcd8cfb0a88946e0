//! What mips64 instructions mean, and mips64's registers.
//!
//! * What stands in a delay slot is executed before the branch is taken, whichever way it goes. So it is read
//!   first; it may be a plain instruction that leaves alone what the branch tests, and nothing else.
//! * What is written to coprocessor 0 is there behind an `ehb`, and not before ([`done::PENDING`]): nothing is
//!   left, and nothing read back, in between.
//! * A domain is two registers: `EntryHi` has its number, [`State::mode`], and `DESAVE` the root of its page
//!   tables, [`State::space`]. They change together, that one first.
//! * `hi` and `lo` are beside: bits 0 and 1 of what is known of them.

mod stacks;
mod template;
mod value;
mod window;

use super::leg::Verifier;
use super::machine::{Machine, Registers};
use super::state::{State, done};
use super::value::*;
use super::way::{Cond, Ways};
use super::{Reason, Refusal};
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
    const RAISED: usize = RAISED as usize;
    const SHADOW: bool = true;
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
                Insn::Jalr { rd, rs } => {
                    let to = s.get(rs);
                    Self::shadow(v, at, s)?;
                    settled(s).and_then(|()| v.call_nucleus(s, rd, to)).map_err(fail)?;
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
        (imm >= 12).then(|| (cond, registers, at + imm as usize))
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
        stacks::check(words, short)
    }

    fn root(space: u64) -> u64 {
        paging::root_va(space)
    }

    /// The running domain's portal table by way of its root, and the time.
    fn load(_: &V, _: &State, base: Value, imm: i64) -> Option<Value> {
        let Value(kind, n) = base;
        match kind {
            Kind::Control if base == control::of(c0::DESAVE) => {
                let page = imm.checked_sub(paging::ROOT_PORTALS as i64).filter(|at| (0..64).contains(at))?;
                (page % 8 == 0).then_some(Value(Kind::TablePage, page as i32 / 8))
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

    fn spared(v: &V, s: &State) -> bool {
        let hidden = if s.refusing != 0 { BOTH } else { 0 };
        s.beside_zero == hidden && s.beside_restored == 0 && s.mode == Self::MODE
    }

    fn entered(v: &V, s: &State) -> bool {
        let cleared = v.shape != Shape::NoStack || s.did(done::EFFECT);
        s.beside_zero == BOTH && s.mode == s.space && cleared
    }

    fn returned(v: &V, s: &State) -> bool {
        s.beside_zero == BOTH && s.mode == s.space
    }

    fn resumed(v: &V, s: &State) -> bool {
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
        let (base, imm) = match to {
            Value(Kind::Behind, 4) => (Value(Kind::ReturnCode, 0), 4),
            Value(Kind::Behind, RAISED) => (Value(Kind::TableEntry, sys::THREAD_END as i32), RAISED.into()),
            other => (other, 0),
        };
        self.jump(s, base, imm)
    }

    /// `jalr`: to one of two places in the nucleus, which come back; with what they destroy.
    fn call_nucleus(&self, s: &mut State, back: u8, to: Value) -> Result<(), Reason> {
        let destroyed = match self.shape {
            Shape::Short(Short::Flush) if self.is(to, regs::FLUSH) && s.get(24) == own(5) => 1,
            Shape::Short(Short::Idle) if self.is(to, regs::IDLE) => 24,
            _ => return Err(Reason::Jump),
        };
        if back != 25 || !self.untouched(s) {
            return Err(Reason::Jump);
        }
        for x in [destroyed, 25, 26, 27] {
            s.set(x, UNKNOWN);
        }
        s.done |= done::EFFECT;
        Ok(())
    }

    /// What does not leave the leg.
    #[inline(never)]
    fn step(&mut self, insn: Insn, s: &mut State) -> Result<(), Reason> {
        match insn {
            Insn::Nop => {}
            Insn::Alu { op: Alu::Or, rd, rs: 0, rt: 0 } => s.clear(rd),
            Insn::Alu { op: Alu::Or, rd, rs, rt: 0 } => s.set(rd, s.get(rs)),
            Insn::Lui { rt, imm } => s.set(rt, Value(Kind::Const, imm as i32)),
            Insn::AluImm { op, rt, rs, imm } => {
                let value = value::alu_imm(self, s, op, s.get(rs), imm);
                s.set(rt, value);
            }
            Insn::Alu { op, rd, rs, rt } => {
                let value = value::alu(self, s, op, s.get(rs), s.get(rt));
                s.set(rd, value);
            }
            Insn::Shift { op, rd, rt, by } => {
                let value = value::shift(self, s, op, s.get(rt), by.into());
                s.set(rd, value);
            }
            Insn::Ext { rt, rs, pos, size } => {
                let value = value::ext(self, s, s.get(rs), pos, size);
                s.set(rt, value);
            }
            Insn::Ins { rt, rs, pos, size } => {
                let value = value::ins(self, s, s.get(rt), s.get(rs), (pos, size));
                s.set(rt, value);
            }
            Insn::Load { width: Width::D, rt, base, imm } => {
                let value = self.load(s, s.get(base), imm).ok_or(Reason::Load)?;
                s.set(rt, value);
            }
            Insn::Store { width: Width::D, rt, base, imm } => self.store(s, s.get(base), imm, s.get(rt))?,
            Insn::Mfc0 { rt, from } | Insn::Dmfc0 { rt, from } => {
                let value = self.read_c0(s, from, matches!(insn, Insn::Dmfc0 { .. }))?;
                s.set(rt, value);
            }
            Insn::Mtc0 { rt, to } | Insn::Dmtc0 { rt, to } => {
                self.write_c0(s, to, s.get(rt), matches!(insn, Insn::Dmtc0 { .. }))?;
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
            Insn::Tlbp => self.probe(s)?,
            Insn::Tlbwi => self.forget(s)?,
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
            (c0::EPC, true) => first(s.pc, Self::PC),
            (c0::DESAVE, true) => first(s.space, control::SPACE).map(|_| control::of(c0::DESAVE)),
            (c0::ENTRY_HI, _) => first(s.mode, control::SPACE).map(|_| control::of(c0::ENTRY_HI)),
            (c0::BAD_VADDR, true) | (c0::CAUSE | c0::COUNT, false) => Ok(control::of(from)),
            (c0::INDEX, false) => settled(s).map(|()| self.probed(s)),
            _ => Err(Reason::ControlRegister),
        }
    }

    fn write_c0(&self, s: &mut State, to: C0, value: Value, wide: bool) -> Result<(), Reason> {
        match (to, wide) {
            (c0::ERROR_EPC, true) => s.top = value,
            (c0::EPC, true) => s.pc = value,
            (c0::ENTRY_HI, true) => s.mode = self.named(s, value)?,
            (c0::DESAVE, true) => {
                if value != value::root(s.mode) {
                    return Err(Reason::AddressSpace);
                }
                s.space = s.mode;
            }
            _ => return Err(Reason::ControlRegister),
        }
        Ok(())
    }
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

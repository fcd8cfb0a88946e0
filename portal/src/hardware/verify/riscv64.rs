//! What rv64 instructions mean, and rv64's registers.

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
use crate::hardware::hole::Hole;
use crate::hardware::{Shape, Short};
use crate::isa::riscv64::decode::{
    self, Alu, CsrOp, Insn, adds, branches, clears, decode, loads_double, loads_upper, stores_double,
    writes_csr,
};
use crate::spec::State as Kept;
use pebble_abi::{map, sys};
use pebble_arch::Riscv64;
use pebble_arch::riscv64::{frame, paging};
use value::{add, add_number, alu_imm, csr, csr_value, reg};

type V<'a> = Verifier<'a, Riscv64>;

/// `sie` with timer and external interrupts.
const SIE_ON: Value = Value(Kind::Const, 0x220);
/// The `FS` field of `sstatus`.
const FS: Value = Value(Kind::Const, 0x6000);

impl Machine for Riscv64 {
    const REGISTERS: Registers = reg::ALL;
    const SPACE: Value = csr_value(csr::SATP);
    const PC: Value = csr_value(csr::SEPC);
    const CAUSE: Value = csr_value(csr::SCAUSE);
    const FAULT: Value = csr_value(csr::STVAL);
    const TIME: Value = csr_value(csr::TIME);
    const LACKING: Value = Self::FAULT;
    const MODE: Value = csr_value(csr::FCSR);
    const POOL: usize = 26;
    const RAISED: usize = 8;
    const SHADOW: bool = false;
    const WAITS_CLEAR: bool = false;
    const FULL: Cond = Cond::Lt;
    const TIMELY: Cond = Cond::Ge;
    const NO_INTERRUPT: (Cond, Value) = (Cond::Ge, Self::CAUSE);

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
            if let Some(rd) = clears(word) {
                s.clear(rd);
            } else if let Some((rd, base, imm)) = loads_double(word) {
                let Some(value) = v.load(s, s.get(base), imm) else { return Err(fail(Reason::Load)) };
                s.set(rd, value);
            } else if let Some((source, base, imm)) = stores_double(word) {
                v.store(s, s.get(base), imm, s.get(source)).map_err(fail)?;
            } else if let Some((rd, source, imm)) = adds(word) {
                let value = match add_number(s.get(source), imm) {
                    UNKNOWN => v.window_imm(s, Alu::Add, s.get(source), imm),
                    value => value,
                };
                s.set(rd, value);
            } else if let Some((number, source)) = writes_csr(word) {
                v.write_csr(s, number, s.get(source)).map_err(fail)?;
            } else if let Some((rd, upper)) = loads_upper(word) {
                s.set(rd, Value(Kind::Const, upper as i32));
            } else if branches(word) {
                at = v.fork(at, word, s, depth, ways)?;
                continue;
            } else if v.step(word, s).map_err(fail)? {
                return Ok(Some(at + 4));
            }
            at += 4;
        }
        if at == end { Ok(None) } else { Err(Refusal { at, reason: Reason::Endless }) }
    }

    fn branch(word: u32, at: usize) -> Option<(Cond, (u8, u8), usize)> {
        let Some(Insn::Branch { cond, rs1, rs2, imm }) = decode(word) else { return None };
        let cond = match cond {
            decode::Cond::Eq => Cond::Eq,
            decode::Cond::Ne => Cond::Ne,
            decode::Cond::Lt => Cond::Lt,
            decode::Cond::Ge => Cond::Ge,
            decode::Cond::Ltu => Cond::Ltu,
            decode::Cond::Geu => Cond::Geu,
        };
        (imm >= 8 && imm % 4 == 0).then(|| (cond, (rs1, rs2), at + imm as usize))
    }

    #[inline(always)]
    fn shadow(_: &mut V, _: usize, _: &mut State) -> Result<(), Refusal> {
        Ok(())
    }

    fn clears(word: u32) -> Option<u8> {
        clears(word)
    }

    fn keeps(word: u32, x: u8) -> bool {
        adds(word) == Some((x, x, 0))
    }

    fn word_by_word(words: &[u32], short: Short) -> Option<Result<(), Refusal>> {
        let Short::Stacks(what) = short else { return None };
        Some(stacks::check(words, what))
    }

    /// The portal table lies at the same address in every domain.
    fn load(_: &V, s: &State, base: Value, imm: i64) -> Option<Value> {
        let Value(Kind::Const, n) = base else { return None };
        let address = (i64::from(n) + imm) as u64;
        let inside = address.is_multiple_of(8) && address < map::TABLE_BYTES && s.space == Self::SPACE;
        inside.then_some(Value(Kind::TableEntry, (address / 8) as i32))
    }

    /// The head that was read is a stack.
    fn found_stack(s: &mut State) {
        if s.get(reg::T3) == Value(Kind::Head, 0) {
            s.set(reg::T3, Value(Kind::Desc, 0));
        }
    }

    fn untouched(v: &V, s: &State) -> bool {
        float_untouched(v, s, v.c.caller.float)
    }

    fn spared(v: &V, s: &State) -> bool {
        float_untouched(v, s, v.c.caller.float)
    }

    fn entered(v: &V, s: &State) -> bool {
        let c = v.c;
        let on = c.callee.float && (v.is_call || v.shape == Shape::Tail);
        if !on {
            !s.on
        } else if c.caller.float && v.spec.state == Kept::Minimal {
            float_untouched(v, s, true)
        } else {
            s.on && s.beside_zero == !0 && s.mode == ZERO
        }
    }

    fn returned(v: &V, s: &State) -> bool {
        let c = v.c;
        if !c.caller.float {
            !s.on
        } else if c.callee.float && !v.hides() {
            float_untouched(v, s, true)
        } else {
            let preserved = reg::FLOAT_PRESERVED;
            s.on && s.mode == Self::MODE && s.beside_restored == preserved && s.beside_zero == !preserved
        }
    }

    fn resumed(v: &V, s: &State) -> bool {
        let float = v.c.caller.float;
        s.on == float && (!float || s.beside_restored == !0 && s.mode == Self::MODE)
    }

    fn trapped(v: &V, s: &State, base: usize) -> bool {
        let holds = |word, value| v.kept(s, word) == Some(value);
        let mut fits = true;
        for x in (1..32).filter(|x| *x != reg::GP) {
            fits &= holds(base + frame::word(x), own(x));
        }
        for f in 0..base.min(32) {
            fits &= holds(f, Value(Kind::Beside, f as i32));
        }
        if base > 0 {
            fits &= holds(32, Self::MODE);
        }
        fits
    }
}

fn float_untouched(v: &V, s: &State, on: bool) -> bool {
    let mode = if v.returning { UNKNOWN } else { Riscv64::MODE };
    s.on == on && s.beside_zero | s.beside_restored == 0 && s.mode == mode
}

impl V<'_> {
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
                s.set(rd, s.top);
                s.top = new;
            }
            Insn::Csr { op, rd: 0, csr: csr::SSTATUS, rs1 } if s.get(rs1) == FS => s.on = op == CsrOp::S,
            Insn::Alu { op: op @ (Alu::Add | Alu::Or | Alu::Xor), rd, rs1, rs2 } => {
                let (a, b) = (s.get(rs1), s.get(rs2));
                let value = if op == Alu::Add { add(a, b) } else { UNKNOWN };
                s.set(rd, if value == UNKNOWN { self.window_alu(s, op, a, b) } else { value });
            }
            Insn::Fsd { fs2, rs1, imm } => self.save_float(s, fs2, s.get(rs1), imm)?,
            Insn::Fld { fd, rs1, imm } => self.restore_float(s, fd, s.get(rs1), imm)?,
            Insn::FmvDX { fd, rs1: 0 } if s.on => {
                s.beside_zero |= 1 << fd;
                s.beside_restored &= !(1 << fd);
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
                if self.shape == Shape::Short(Short::Flush) && s.get(rs2) == own(reg::A0 + 1) =>
            {
                s.done |= done::EFFECT;
            }
            Insn::SfenceVma { rs1, rs2 } if !self.windows.is_empty() => self.fence(s, rs1, s.get(rs2))?,
            _ => return Err(Reason::NotAllowed),
        }
        Ok(false)
    }

    fn save_float(&mut self, s: &mut State, f: u8, base: Value, imm: i64) -> Result<(), Reason> {
        let untouched = (s.beside_zero | s.beside_restored) >> f & 1 == 0;
        match base {
            Value(Kind::Top, n) if s.on && untouched => {
                self.store_frame(s, i64::from(n) + imm, Value(Kind::Beside, i32::from(f)))
            }
            _ => Err(Reason::Float),
        }
    }

    fn restore_float(&mut self, s: &mut State, f: u8, base: Value, imm: i64) -> Result<(), Reason> {
        if !s.on || self.load(s, base, imm) != Some(Value(Kind::Beside, i32::from(f))) {
            return Err(Reason::Float);
        }
        s.beside_restored |= 1 << f;
        s.beside_zero &= !(1 << f);
        Ok(())
    }

    fn read_csr(&self, s: &State, number: u16) -> Result<Value, Reason> {
        Ok(match number {
            csr::SSCRATCH => s.top,
            csr::SEPC => s.pc,
            csr::SATP => s.space,
            csr::FCSR if s.on => s.mode,
            csr::STVAL if s.did(done::TOLD) => UNKNOWN,
            csr::SCAUSE | csr::STVAL | csr::TIME => csr_value(number),
            _ => return Err(Reason::ControlRegister),
        })
    }

    fn write_csr(&self, s: &mut State, number: u16, value: Value) -> Result<(), Reason> {
        match number {
            csr::SSCRATCH => s.top = value,
            csr::SATP => {
                let ours = if self.is_trap {
                    value == csr_value(csr::SATP)
                } else {
                    self.is(value, Hole::CallerSpace.symbol())
                };
                if !(if self.returning { ours } else { self.is(value, Hole::CalleeSpace.symbol()) }) {
                    return Err(Reason::AddressSpace);
                }
                s.space = value;
            }
            csr::SEPC => s.pc = value,
            csr::SIE if value == ZERO || value == SIE_ON => s.interrupts = Some(value == SIE_ON),
            csr::SIE => return Err(Reason::Interrupts),
            csr::FCSR if s.on && (value == ZERO || value == csr_value(csr::FCSR)) => s.mode = value,
            csr::STIMECMP if self.shape == Shape::Short(Short::SetTimer) && value == own(reg::A0 + 1) => {
                s.done |= done::EFFECT;
            }
            csr::STVAL if s.leads == sys::NO_STACK as i32 && self.is(value, Hole::Callee.symbol()) => {
                s.done |= done::TOLD;
            }
            _ => return Err(Reason::ControlRegister),
        }
        Ok(())
    }
}

//! One instruction: whether it is allowed in a state, and the state after it.
//!
//! Problem: the effect of some hundred instructions on depth, delta, slots and facts. Strategy: the table's
//! attributes give what is written and accessed for all of them alike; only the classes that make facts, move
//! the stacks or branch have code of their own.
//!
//! Invariants kept: a register that an instruction may write loses its facts unless a rule here says
//! otherwise; `rsp` is never named; `rbp` changes only in `data_stack_pointer` and by `pop`.

use crate::decode::{Insn, NONE, P_GS, RBP, RIP, RSP, WINDOW};
use crate::labels::Targets;
use crate::sequence::{BASE_WORD, Seq, adds_base};
use crate::state::{BASE, FACTS, Pending, State, ZX};
use crate::table::{LD, ST, class};
use crate::{Level, Module, Rule, memory};

/// Where the code goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Next,
    /// To the label, or on.
    Branch(u32),
    Jump(u32),
    /// To the function entry, and back.
    Call(u32),
    /// To one of a table's targets.
    Table(Targets),
    /// Out of the function.
    Leave,
    Trap,
}

/// Checks and executes `insn` at `at`.
#[inline(always)]
pub fn step(
    module: &Module<'_>,
    ftab_mask: u32,
    state: &mut State,
    insn: &Insn,
    at: u32,
) -> Result<Flow, Rule> {
    let next = at.wrapping_add(insn.len as u32);
    if insn.names_rsp() {
        return Err(Rule::StackPointer);
    }
    let pending = state.pending;
    if pending != Pending::Nothing {
        state.pending = Pending::Nothing;
        if pending == Pending::AddBase {
            return add_base(state, insn);
        }
        if !memory::touches(insn) {
            return Err(Rule::Untouched);
        }
    }
    if insn.mem && insn.has(LD | ST) && insn.class != class::INDIRECT {
        memory::check(module, state, insn, next)?;
    }
    let seq = state.seq;
    if !matches!(seq, Seq::None) || Seq::starts(insn) {
        state.seq = seq.after(insn, next, ftab_mask);
    }
    let regs = insn.written();
    if regs & 1 << RBP != 0 {
        data_stack_pointer(state, insn)?;
        return Ok(Flow::Next);
    }
    match insn.class {
        class::MOVE if insn.size == 8 => {
            move64(state, insn, regs);
            Ok(Flow::Next)
        }
        class::LEA if insn.size == 8 => {
            lea64(module, state, insn, next);
            Ok(Flow::Next)
        }
        class::ALU | class::ALU_IMM | class::INC_DEC if insn.size == 8 => {
            add64(state, insn, regs);
            Ok(Flow::Next)
        }
        class::PUSH => state.push(insn.rm).map(|()| Flow::Next),
        class::POP => state.pop(insn.rm).map(|()| Flow::Next),
        class::STRING => string(module, state, insn).map(|()| Flow::Next),
        class::BRANCH => Ok(Flow::Branch(next.wrapping_add(insn.imm as u32))),
        class::JUMP => Ok(Flow::Jump(next.wrapping_add(insn.imm as u32))),
        class::CALL => {
            state.known &= !FACTS;
            Ok(Flow::Call(next.wrapping_add(insn.imm as u32)))
        }
        class::INDIRECT => indirect(module, state, insn, seq),
        class::RETURN => leave(state).map(|()| Flow::Leave),
        class::TRAP => Ok(Flow::Trap),
        other => {
            state.x87 |= other == class::X87;
            state.fp_control |= other == class::FP_CONTROL;
            state.write(regs, insn.zero_extends());
            Ok(Flow::Next)
        }
    }
}

/// Whether the first byte is one of `brief`'s.
#[inline(always)]
pub fn is_brief(w: &[u8; WINDOW]) -> bool {
    matches!(w[0], 0x50..=0x5f | 0x70..=0x7f | 0xc3 | 0xe8 | 0xe9 | 0xeb)
}

/// The short instructions of which every function is full: direct branches and calls, `push`, `pop`, `ret`.
/// Their lengths and what `step` would say of them, in a calm state; `None` for all others.
#[inline(always)]
pub fn brief(state: &mut State, w: &[u8; WINDOW], at: u32) -> Option<Result<(u32, Flow), Rule>> {
    let long =
        |from: usize| w.get(from..).and_then(|rest| rest.first_chunk()).map_or(0, |b| u32::from_le_bytes(*b));
    let far = |len: u32, distance: u32| at.wrapping_add(len).wrapping_add(distance);
    let near = w[1] as i8 as u32;
    let (op, high) = if w[0] == 0x41 { (w[1], 8) } else { (w[0], 0) };
    let reg = op & 7 | high;
    let len = 1 + (high >> 3) as u32;
    Some(match (op, high) {
        (0x70..=0x7f, 0) => Ok((2, Flow::Branch(far(2, near)))),
        (0x0f, 0) if w[1] & 0xf0 == 0x80 => Ok((6, Flow::Branch(far(6, long(2))))),
        (0xeb, 0) => Ok((2, Flow::Jump(far(2, near)))),
        (0xe9, 0) => Ok((5, Flow::Jump(far(5, long(1))))),
        (0xe8, 0) => {
            state.known &= !FACTS;
            Ok((5, Flow::Call(far(5, long(1)))))
        }
        (0x50..=0x57, _) if reg != RSP => state.push(reg).map(|()| (len, Flow::Next)),
        (0x58..=0x5f, _) if reg != RSP => state.pop(reg).map(|()| (len, Flow::Next)),
        (0xc3, 0) => leave(state).map(|()| (1, Flow::Leave)),
        _ => return None,
    })
}

/// Both stacks are as they were at entry.
pub fn leave(state: &State) -> Result<(), Rule> {
    match (state.dynamic, state.depth(), state.delta) {
        (true, ..) => Err(Rule::Dynamic),
        (_, 0, 0) => Ok(()),
        (_, 0, _) => Err(Rule::Delta),
        _ => Err(Rule::Depth),
    }
}

/// The second half of making `rbp` dynamic.
fn add_base(state: &mut State, insn: &Insn) -> Result<Flow, Rule> {
    if !adds_base(insn) || insn.reg != RBP {
        return Err(Rule::DataStackPointer);
    }
    state.dynamic = true;
    Ok(Flow::Next)
}

/// Instructions that write `rbp`, but for `pop`.
fn data_stack_pointer(state: &mut State, insn: &Insn) -> Result<(), Rule> {
    match insn.class {
        class::ALU_IMM if insn.size == 8 && insn.ext == 0 => state.move_delta(insn.imm),
        class::ALU_IMM if insn.size == 8 && insn.ext == 5 => state.move_delta(-insn.imm),
        class::LEA if insn.size == 8 && insn.base == RBP && insn.index == NONE => {
            state.move_delta(insn.disp as i64)
        }
        class::MOVE | class::MOVE_IMM if insn.size == 4 && !state.dynamic && state.pushed_rbp.is_some() => {
            state.pending = Pending::AddBase;
            Ok(())
        }
        _ => Err(Rule::DataStackPointer),
    }
}

fn move64(state: &mut State, insn: &Insn, regs: u16) {
    if !insn.mem {
        let (from, to) = if insn.op == 0x8b { (insn.rm, insn.reg) } else { (insn.reg, insn.rm) };
        state.copy(from, to, 0);
        return;
    }
    state.write(regs, false);
    if insn.op == 0x8b && insn.gs_absolute() && insn.disp == BASE_WORD {
        state.learn(BASE, insn.reg);
    }
}

fn lea64(module: &Module<'_>, state: &mut State, insn: &Insn, next: u32) {
    let distance = insn.disp.unsigned_abs() as u64;
    if insn.base == RIP {
        let target = next.wrapping_add(insn.disp as u32);
        state.write(1 << insn.reg, false);
        if (module.text_at..module.data.end).contains(&target) {
            state.set_segment(insn.reg, 0);
        }
    } else if insn.base != NONE && insn.index == NONE {
        // a distance of 0 moves all facts, as `movq` does
        state.copy(insn.base, insn.reg, distance);
    } else {
        let confined = insn.base != NONE && memory::base_and_index(state, insn);
        state.write(1 << insn.reg, false);
        if confined {
            state.set_segment(insn.reg, distance);
        }
    }
}

/// 64-bit arithmetic: adding the segment's base, and small constants to a pointer.
fn add64(state: &mut State, insn: &Insn, regs: u16) {
    let by = match (insn.class, insn.ext) {
        (class::ALU, _) => {
            let pointer = adds_base(insn) && state.knows(ZX, insn.reg);
            state.write(regs, false);
            if pointer {
                state.set_segment(insn.reg, 0);
            }
            return;
        }
        (class::INC_DEC, _) => 1,
        (_, 0 | 5) => insn.imm.unsigned_abs(),
        _ => {
            state.write(regs, false);
            return;
        }
    };
    let reg = insn.rm;
    let slack = if insn.mem { None } else { state.segment(reg) };
    state.write(regs, false);
    if let Some(slack) = slack {
        state.set_segment(reg, slack as u64 + by);
    }
}

/// Walks up from `rdi` (and `rsi`) to the guard zone at most.
fn string(module: &Module<'_>, state: &mut State, insn: &Insn) -> Result<(), Rule> {
    const RSI: u8 = 6;
    const RDI: u8 = 7;
    let full = module.level == Level::Full;
    let (si, di, store) = match insn.op & !1 {
        0xa4 => (true, true, true),
        0xa6 => (true, true, false),
        0xaa => (false, true, true),
        0xac => (true, false, false),
        _ => (false, true, false),
    };
    let di_free = !di || !store && !full || state.segment(RDI).is_some();
    let si_free = !si || !full || state.segment(RSI).is_some();
    if !(di_free && si_free) {
        return Err(Rule::String);
    }
    // rax is lost even where only `lods` writes it
    state.write(1 | 1 << 1 | 1 << RSI | 1 << RDI, false);
    Ok(())
}

/// `call` and `jmp` through a register or the portal table.
fn indirect(module: &Module<'_>, state: &mut State, insn: &Insn, seq: Seq) -> Result<Flow, Rule> {
    const PORTALS: u32 = 0x1_0100;
    let call = insn.ext == 2;
    if insn.mem {
        let offset = (insn.disp as u32).wrapping_sub(PORTALS);
        let import = insn.gs_absolute() && offset.is_multiple_of(8) && offset / 8 < module.imports;
        if !import || insn.prefix & P_GS == 0 {
            return Err(if insn.prefix & P_GS != 0 { Rule::Import } else { Rule::Indirect });
        }
    } else if seq.ready() != Some(insn.rm) {
        return Err(Rule::Indirect);
    } else if !call {
        if let Seq::Table { table, .. } = seq {
            return Ok(Flow::Table(table));
        }
    } else if !matches!(seq, Seq::Slot { .. }) {
        return Err(Rule::Indirect);
    }
    if call {
        state.known &= !FACTS;
        return Ok(Flow::Next);
    }
    leave(state)?;
    Ok(Flow::Leave)
}

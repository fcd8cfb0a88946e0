//! One instruction that goes on to the next: whether it may stand here, and what is known behind it.

use crate::Rule;
use crate::op::{Access, Op, RBP, RSP, number};
use crate::state::{PRESERVED, Rbp, SLACK_MOST, State, Value, Word};
use iced_x86::{Code, Instruction, Mnemonic, OpKind, Register};
use pebble_sfi_verify::{Level, Module};

/// The farthest that an operand may lead out of the segment: the guard zone is twice as large.
const REACH: u64 = 2 << 30;
/// The most that `rbp` goes down.
const DOWN_MOST: i64 = -(1 << 30);
const PAGE: i32 = 4096;
const MOST_WORDS: usize = 15;
const CONTEXT_BASE: i64 = 0x1_0000;
const CONTEXT_STACK: i64 = 0x1_0008;

/// An instruction without a branch at segment offset `at`.
pub fn step(module: &Module<'_>, state: &mut State, op: &Op, at: u32) -> Result<(), Rule> {
    settled(state, op)?;
    op.accesses.iter().try_for_each(|access| confined(module, state, op, access, at))?;
    match op.insn.code() {
        Code::Push_r64 | Code::Push_rm64 | Code::Pop_r64 | Code::Pop_rm64 => return stack(state, op),
        _ if op.names_rsp => return Err(Rule::StackPointer),
        _ => {}
    }
    if op.written >> RBP & 1 != 0 {
        return data_stack(state, &op.insn);
    }
    let result = result(module, state, &op.insn, at);
    for access in &op.accesses {
        narrow(state, access);
    }
    for register in (0..16).filter(|i| op.written >> i & 1 != 0) {
        state.values[register] = if op.zeroed >> register & 1 != 0 { Value::Short } else { Value::Any };
        state.kept &= !(1 << register);
    }
    if let Some((register, value)) = result {
        state.values[register] = value;
    }
    Ok(())
}

/// What holds of any instruction: confined code may have it, and it does not leave half done what the last
/// one has begun.
pub fn settled(state: &mut State, op: &Op) -> Result<(), Rule> {
    if op.banned {
        return Err(Rule::Forbidden);
    }
    if std::mem::take(&mut state.touch) && !op.accesses.iter().any(touches) {
        return Err(Rule::Untouched);
    }
    if state.rbp == Rbp::Half
        && !(op.insn.code() == Code::Add_r64_rm64 && is(&op.insn, RBP) && adds_base(&op.insn))
    {
        return Err(Rule::DataStackPointer);
    }
    Ok(())
}

fn touches(access: &Access) -> bool {
    let plain =
        access.base == Register::RBP && access.index == Register::None && access.disp == 0 && !access.short;
    plain && access.certain && !matches!(access.segment, Register::GS | Register::FS)
}

/// The ways of the contract to confine an access.
fn confined(module: &Module<'_>, state: &State, op: &Op, access: &Access, at: u32) -> Result<(), Rule> {
    let (base, index) = (access.base, access.index);
    match access.segment {
        Register::FS => return Err(Rule::Segment),
        Register::GS if access.short && !op.insn.is_string_instruction() => return Ok(()),
        Register::GS => {
            let word = matches!(access.disp, CONTEXT_BASE | CONTEXT_STACK) && !access.rip && access.size <= 8;
            let alone = base == Register::None && index == Register::None;
            return if word && alone && !access.write { Ok(()) } else { Err(Rule::Segment) };
        }
        _ => {}
    }
    if !access.write && module.level == Level::Write {
        return Ok(());
    }
    let refused = Err(if access.write { Rule::Store } else { Rule::Load });
    let bits = matches!(op.insn.mnemonic(), Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc);
    if access.short || bits && op.insn.op_kind(1) == OpKind::Register {
        return refused;
    }
    let value = |register| number(register).map_or(Value::Any, |i| state.values[i]);
    let inside = if access.rip {
        in_image(module, at as i64 + access.disp, access.write)
    } else if base == Register::RBP {
        index == Register::None && state.rbp != Rbp::Half
    } else if index == Register::None && base.is_gpr64() {
        value(base).slack().is_some_and(|slack| slack as u64 + access.disp.unsigned_abs() <= REACH)
    } else if base.is_gpr64() && index.is_gpr64() && index != Register::RBP {
        match (value(base), value(index)) {
            (Value::Base, other) | (other, Value::Base) if access.scale == 1 && other.is_short() => true,
            (Value::Address(from), Value::Masked(mask)) if !access.write => {
                let last = from as i64 + access.disp + mask as i64 * access.scale + access.size as i64;
                in_image(module, from as i64 + access.disp, false) && in_image(module, last - 1, false)
            }
            _ => false,
        }
    } else {
        false
    };
    if inside { Ok(()) } else { refused }
}

fn in_image(module: &Module<'_>, at: i64, write: bool) -> bool {
    let from = if write { module.data.start } else { module.text_at };
    (from as i64..module.data.end as i64).contains(&at)
}

/// Had it been farther out, it would have faulted.
fn narrow(state: &mut State, access: &Access) {
    let plain = !access.short && !matches!(access.segment, Register::GS | Register::FS);
    if !access.certain || !plain || access.index != Register::None || access.rip {
        return;
    }
    if let Some(Value::Inside(slack)) = number(access.base).map(|i| &mut state.values[i]) {
        *slack = (*slack).min((access.disp.unsigned_abs() + 64).min(u32::MAX as u64) as u32);
    }
}

fn stack(state: &mut State, op: &Op) -> Result<(), Rule> {
    let register = match op.insn.op_kind(0) {
        OpKind::Register => number(op.insn.op0_register()).filter(|i| *i != RSP).ok_or(Rule::StackPointer)?,
        _ => return Err(Rule::StackPointer),
    };
    if matches!(op.insn.mnemonic(), Mnemonic::Push) {
        let word = match state.rbp {
            Rbp::At(delta) if register == RBP => Word::Rbp(delta),
            _ if state.kept >> register & 1 != 0 => Word::Saved(register),
            _ => Word::Other,
        };
        state.words.push(word);
        return if state.words.len() > MOST_WORDS { Err(Rule::Depth) } else { Ok(()) };
    }
    let word = state.words.pop().ok_or(Rule::Depth)?;
    match word {
        Word::Rbp(delta) if register == RBP => state.rbp = Rbp::At(delta),
        _ if register == RBP => return Err(Rule::DataStackPointer),
        _ => {}
    }
    state.values[register] = Value::Any;
    state.kept &= !(1 << register);
    if word == Word::Saved(register) {
        state.kept |= 1 << register & PRESERVED;
    }
    Ok(())
}

/// `rbp` changes.
fn data_stack(state: &mut State, insn: &Instruction) -> Result<(), Rule> {
    if state.rbp == Rbp::Half {
        state.rbp = Rbp::Dynamic; // the addition, as it was asked for
        return Ok(());
    }
    let Rbp::At(old) = state.rbp else { return Err(Rule::DataStackPointer) };
    let pushed = state.words.iter().any(|w| matches!(w, Word::Rbp(_)));
    if insn.mnemonic() == Mnemonic::Mov
        && insn.op_kind(0) == OpKind::Register
        && insn.op0_register() == Register::EBP
    {
        state.rbp = Rbp::Half;
        return if pushed { Ok(()) } else { Err(Rule::DataStackPointer) };
    }
    let by = match constant(insn) {
        Some((RBP, RBP, by)) => by,
        _ => return Err(Rule::DataStackPointer),
    };
    let new = old as i64 + by;
    if !(DOWN_MOST..=0).contains(&new) {
        return Err(Rule::Delta);
    }
    let new = new as i32;
    state.touch = new < old && new < -PAGE;
    state.rbp = Rbp::At(new);
    Ok(())
}

/// `target = source + constant` in 64 bits.
fn constant(insn: &Instruction) -> Option<(usize, usize, i64)> {
    let first =
        (insn.op_kind(0) == OpKind::Register).then(|| insn.op0_register()).filter(|r| r.is_gpr64())?;
    let target = number(first)?;
    match insn.code() {
        Code::Add_rm64_imm8 | Code::Add_rm64_imm32 | Code::Add_RAX_imm32 => {
            Some((target, target, insn.immediate(1) as i64))
        }
        Code::Sub_rm64_imm8 | Code::Sub_rm64_imm32 | Code::Sub_RAX_imm32 => {
            Some((target, target, -(insn.immediate(1) as i64)))
        }
        Code::Inc_rm64 => Some((target, target, 1)),
        Code::Dec_rm64 => Some((target, target, -1)),
        Code::Lea_r64_m if insn.memory_index() == Register::None && insn.memory_base().is_gpr64() => {
            Some((target, number(insn.memory_base())?, insn.memory_displacement64() as i64))
        }
        _ => None,
    }
}

fn is(insn: &Instruction, register: usize) -> bool {
    insn.op_kind(0) == OpKind::Register && number(insn.op0_register()) == Some(register)
}

/// The second operand is the segment's base, in the context page.
fn adds_base(insn: &Instruction) -> bool {
    insn.op_kind(1) == OpKind::Memory
        && insn.memory_segment() == Register::GS
        && insn.memory_base() == Register::None
        && insn.memory_index() == Register::None
        && insn.memory_displacement64() as i64 == CONTEXT_BASE
}

/// What is known of the result of an instruction.
fn result(module: &Module<'_>, state: &State, insn: &Instruction, at: u32) -> Option<(usize, Value)> {
    if insn.op_count() == 0 || insn.op_kind(0) != OpKind::Register {
        return None;
    }
    let target = number(insn.op0_register())?;
    let of = |register: Register| {
        number(register).map(|i| if i == RBP { Value::Inside(0) } else { state.values[i] })
    };
    let second = (insn.op_count() > 1 && insn.op_kind(1) == OpKind::Register)
        .then(|| of(insn.op1_register()))
        .flatten();
    let old = state.values[target];
    let mask =
        insn.op_count() > 1 && insn.op_kind(1) != OpKind::Register && insn.op_kind(1) != OpKind::Memory;
    let value = match insn.code() {
        Code::Mov_r64_rm64 | Code::Mov_rm64_r64 if second.is_some() => second?,
        Code::Mov_r64_rm64 if adds_base(insn) => Value::Base,
        Code::Mov_r32_rm32 | Code::Mov_rm32_r32 => match second {
            Some(Value::Masked(mask)) => Value::Masked(mask),
            _ => Value::Short,
        },
        Code::And_rm32_imm8 | Code::And_rm32_imm32 | Code::And_EAX_imm32 if mask => {
            Value::Masked(insn.immediate(1) as u32 & if let Value::Masked(old) = old { old } else { !0 })
        }
        Code::Movzx_r32_rm8 => Value::Masked(0xff),
        Code::Movzx_r32_rm16 => Value::Masked(0xffff),
        Code::Add_r64_rm64 if adds_base(insn) => plus_base(module, old)?,
        Code::Add_r64_rm64 | Code::Add_rm64_r64 => plus(module, old, second?)?,
        Code::Movsxd_r64_rm32 if insn.op_kind(1) == OpKind::Memory => entry(state, insn)?,
        Code::Lea_r64_m if insn.is_ip_rel_memory_operand() => {
            let to = at as i64 + insn.memory_displacement64() as i64;
            in_image(module, to, false).then_some(Value::Address(to as u32))?
        }
        Code::Lea_r64_m if insn.memory_index().is_gpr64() && insn.memory_index_scale() == 1 => {
            let (base, index) = (of(insn.memory_base())?, of(insn.memory_index())?);
            let far = (insn.memory_displacement64() as i64).unsigned_abs();
            let pair = base == Value::Base && index.is_short() || index == Value::Base && base.is_short();
            Value::Inside(u32::try_from(far).ok().filter(|far| pair && *far <= SLACK_MOST)?)
        }
        _ => {
            let (_, from, by) = constant(insn)?;
            let slack = if from == RBP { 0 } else { state.values[from].slack()? };
            let slack = slack as u64 + by.unsigned_abs();
            Value::Inside(u32::try_from(slack).ok().filter(|slack| *slack <= SLACK_MOST)?)
        }
    };
    let short_address = insn.memory_base().is_gpr32() || insn.memory_index().is_gpr32();
    (!(short_address && insn.mnemonic() == Mnemonic::Lea)).then_some((target, value))
}

/// A number of 32 bits, and the segment's base.
fn plus_base(module: &Module<'_>, old: Value) -> Option<Value> {
    let slots = module.text_at.wrapping_add(module.ftab_size).wrapping_sub(8);
    match old {
        Value::Masked(mask) if mask & !slots == 0 => Some(Value::Slot),
        Value::Short | Value::Masked(_) => Some(Value::Inside(0)),
        _ => None,
    }
}

/// A sum of two registers.
fn plus(module: &Module<'_>, a: Value, b: Value) -> Option<Value> {
    match (a, b) {
        (Value::Base, other) | (other, Value::Base) => plus_base(module, other).filter(|_| other.is_short()),
        (Value::Entry(table, mask), Value::Address(at)) | (Value::Address(at), Value::Entry(table, mask))
            if table == at =>
        {
            Some(Value::Jump(table, mask))
        }
        (Value::Address(at), Value::Masked(mask)) | (Value::Masked(mask), Value::Address(at)) => {
            Some(Value::Spot(at, mask))
        }
        _ => None,
    }
}

/// `movslq (table,index,4)`.
fn entry(state: &State, insn: &Instruction) -> Option<Value> {
    let (base, index) = (number(insn.memory_base())?, number(insn.memory_index())?);
    let plain = insn.memory_displacement64() == 0 && insn.memory_index_scale() == 4;
    let here = !matches!(insn.memory_segment(), Register::GS | Register::FS) && insn.memory_base().is_gpr64();
    match (state.values[base], state.values[index]) {
        (Value::Address(table), Value::Masked(mask)) if plain && here => Some(Value::Entry(table, mask)),
        _ => None,
    }
}

//! The worklist: from slots and exports over every branch until nothing new is known anywhere.

use crate::op::{Cache, Op};
use crate::state::{State, Value};
use crate::step::{settled, step};
use crate::{Findings, Refusal, Rule};
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};
use pebble_sfi_verify::Module;

/// Judges a module.
pub fn check(module: &Module<'_>, cache: &mut Cache) -> Result<Findings, Refusal> {
    if !is_laid_out(module) {
        return Err(Refusal { at: module.text_at, rule: Rule::Layout });
    }
    let size = module.text.len();
    let mut walk = Walk {
        module,
        states: (0..size).map(|_| None).collect(),
        leaders: vec![NOBODY; size],
        lengths: vec![0; size],
        work: vec![],
        findings: Findings::default(),
    };
    let slots = (0..module.ftab_size / 8).map(|i| module.text_at + 8 * i);
    for root in slots.chain(module.exports.iter().copied()) {
        walk.arrive(root as i64, &State::entry()).map_err(|rule| Refusal { at: root, rule })?;
    }
    while let Some(leader) = walk.work.pop() {
        walk.block(leader as usize, cache)?;
    }
    walk.disjoint()?;
    Ok(walk.findings)
}

/// The parts follow one another, and the mask of the ftab leads into it or below it.
fn is_laid_out(module: &Module<'_>) -> bool {
    let end = |at: u32, bytes: &[u8]| at as u64 + bytes.len() as u64;
    let text = end(module.text_at, module.text);
    let rodata = end(module.rodata_at, module.rodata);
    module.ftab_size.is_power_of_two()
        && module.ftab_size >= 64
        && module.text_at == module.ftab_size.max(0x2_0000)
        && module.text.len() >= module.ftab_size as usize
        && (module.rodata.is_empty() || text <= module.rodata_at as u64 && rodata <= module.data.start as u64)
        && text <= module.data.start as u64
        && module.data.start <= module.data.end
        && module.data.end <= 0x8000_0000
}

const NOBODY: u32 = !0;

struct Walk<'a> {
    module: &'a Module<'a>,
    /// What is known where blocks begin, by offset in the text.
    states: Vec<Option<Box<State>>>,
    /// Which block an instruction has been reached in.
    leaders: Vec<u32>,
    /// Lengths of the instructions that are reached.
    lengths: Vec<u8>,
    work: Vec<u32>,
    findings: Findings,
}

impl Walk<'_> {
    fn offset(&self, address: i64) -> Result<usize, Rule> {
        let at = address - self.module.text_at as i64;
        usize::try_from(at).ok().filter(|at| *at < self.module.text.len()).ok_or(Rule::Target)
    }

    /// A way leads to this address.
    fn arrive(&mut self, address: i64, state: &State) -> Result<(), Rule> {
        let at = self.offset(address)?;
        let state = state.across()?;
        match &mut self.states[at] {
            Some(known) => {
                if known.join(&state)? {
                    self.work.push(at as u32);
                }
            }
            none => {
                *none = Some(Box::new(state));
                self.work.push(at as u32);
                // a block that came by here ends here now, and has to bring its state
                let through = self.leaders[at];
                if through != NOBODY {
                    self.work.push(through);
                }
            }
        }
        Ok(())
    }

    /// Goes on from a place until the code branches or meets another block.
    fn block(&mut self, leader: usize, cache: &mut Cache) -> Result<(), Refusal> {
        let mut state = *self.states[leader].clone().expect("work has a state");
        let mut at = leader;
        loop {
            let address = self.module.text_at + at as u32;
            let refuse = |rule| Refusal { at: address, rule };
            let Some(rest) = self.module.text.get(at..).filter(|rest| !rest.is_empty()) else {
                return Err(refuse(Rule::FallsOff));
            };
            if at != leader {
                if self.states[at].is_some() {
                    return self.arrive(address as i64, &state).map_err(refuse);
                }
                self.leaders[at] = leader as u32;
            }
            let op = cache.op(rest).ok_or(refuse(Rule::Undefined))?;
            if self.lengths[at] == 0 {
                self.lengths[at] = op.insn.len() as u8;
                self.findings.instructions += 1;
            }
            self.findings.x87 |= op.x87;
            self.findings.fp_control |= op.fp_control;
            self.findings.timer |= op.timer;
            if !self.instruction(&mut state, &op, address).map_err(refuse)? {
                return Ok(());
            }
            at += op.insn.len();
        }
    }

    /// Whether the code goes on behind it.
    fn instruction(&mut self, state: &mut State, op: &Op, at: u32) -> Result<bool, Rule> {
        if op.flow == FlowControl::Next {
            return step(self.module, state, op, at).map(|()| true);
        }
        let insn = &op.insn;
        let target = at as i64 + insn.near_branch64() as i64;
        settled(state, op)?;
        if op.names_rsp {
            return Err(Rule::StackPointer);
        }
        if op.p66 && op.flow != FlowControl::Exception {
            return Err(Rule::Undefined);
        }
        match op.flow {
            FlowControl::Exception => Ok(false),
            FlowControl::Interrupt if insn.mnemonic() == Mnemonic::Int3 => Ok(false),
            FlowControl::UnconditionalBranch => self.arrive(target, state).map(|()| false),
            FlowControl::ConditionalBranch => {
                for register in (0..16).filter(|i| op.written >> i & 1 != 0) {
                    state.values[register] = Value::Any;
                    state.kept &= !(1 << register);
                }
                self.arrive(target, state).map(|()| true)
            }
            FlowControl::Return => self.leave(state).map(|()| false),
            FlowControl::Call => {
                self.arrive(target, &State::entry())?;
                state.forget();
                Ok(true)
            }
            FlowControl::IndirectCall => {
                if insn.op_kind(0) == OpKind::Memory {
                    self.import(insn)?;
                } else if value(state, insn) != Value::Slot {
                    return Err(Rule::Indirect);
                }
                state.forget();
                Ok(true)
            }
            FlowControl::IndirectBranch => self.jump(state, insn).map(|()| false),
            _ => Err(Rule::Forbidden),
        }
    }

    /// The function ends: what it has changed, the caller may find changed.
    fn leave(&mut self, state: &State) -> Result<(), Rule> {
        self.findings.changes |= crate::state::PRESERVED & !state.kept;
        state.leave()
    }

    fn import(&self, insn: &Instruction) -> Result<(), Rule> {
        let plain = insn.memory_segment() == Register::GS
            && insn.memory_base() == Register::None
            && insn.memory_index() == Register::None;
        let at = insn.memory_displacement64().wrapping_sub(0x1_0100);
        if plain && at.is_multiple_of(8) && at / 8 < self.module.imports as u64 {
            Ok(())
        } else {
            Err(Rule::Import)
        }
    }

    fn jump(&mut self, state: &State, insn: &Instruction) -> Result<(), Rule> {
        if insn.op_kind(0) == OpKind::Memory {
            self.import(insn)?;
            return self.leave(state);
        }
        let mut unknown = state.clone();
        unknown.forget();
        match value(state, insn) {
            Value::Slot => self.leave(state),
            Value::Spot(from, mask) => {
                if mask % 8 != 0 || self.offset(from as i64 + mask as i64 + 7).is_err() {
                    return Err(Rule::Table);
                }
                numbers(mask).try_for_each(|slot| self.arrive(from as i64 + slot as i64, &unknown))
            }
            Value::Jump(table, mask) => {
                let from = (table as usize).checked_sub(self.module.rodata_at as usize).ok_or(Rule::Table)?;
                let entries = self.module.rodata.get(from..).ok_or(Rule::Table)?;
                let entries = entries.get(..4 * (mask as usize + 1)).ok_or(Rule::Table)?;
                let distance = |i: u32| {
                    let at = 4 * i as usize;
                    i32::from_le_bytes([entries[at], entries[at + 1], entries[at + 2], entries[at + 3]])
                };
                let mut targets: Vec<_> = numbers(mask).map(distance).collect();
                targets.sort_unstable();
                targets.dedup();
                targets.iter().try_for_each(|to| self.arrive(table as i64 + *to as i64, &unknown))
            }
            _ => Err(Rule::Indirect),
        }
    }

    /// No byte belongs to two instructions.
    fn disjoint(&self) -> Result<(), Refusal> {
        let mut end = 0;
        for (at, length) in self.lengths.iter().enumerate().filter(|(_, length)| **length != 0) {
            if at < end {
                return Err(Refusal { at: self.module.text_at + at as u32, rule: Rule::Overlap });
            }
            end = at + *length as usize;
        }
        Ok(())
    }
}

fn value(state: &State, insn: &Instruction) -> Value {
    crate::op::number(insn.op0_register()).map_or(Value::Any, |i| state.values[i])
}

/// All numbers without a bit that is not in the mask.
fn numbers(mask: u32) -> impl Iterator<Item = u32> {
    std::iter::successors(Some(0), move |n: &u32| (*n != mask).then(|| (n | !mask).wrapping_add(1) & mask))
}

//! Loads on the critical path of a loop: those whose address comes, directly or by arithmetic, from another
//! load.
//!
//! A segment-relative load adds two cycles to such a chain; elsewhere the processor hides them.

use crate::isa::{self, Access};
use crate::operand::{Mem, Operand, RBP, RSP};
use crate::parse::Insn;

/// Displacements that lead from a mapped byte to no address outside the segment: less than the null guard,
/// and less than what lies above the last data stack. So the displacement may be added after the rest is cut
/// to 32 bits.
const NEAR: std::ops::Range<i64> = -0x1_0000..0x1_0000;

/// A load through one pointer register. (A sum of two would take an instruction of its own, and saves less
/// than it costs.)
pub fn pointer_load(insn: &Insn) -> Option<&Mem> {
    let (_, m) = isa::memory(insn)?;
    let general = m.base_gpr().is_some() && m.index.is_none();
    let near = m.number().is_some_and(|d| NEAR.contains(&d));
    let pointer = general && near && m.segment.is_none() && m.regs() & (1 << RSP | 1 << RBP) == 0;
    let load = isa::access(insn) == Access::Load && isa::access_is_certain(insn) && !isa::is_string_op(insn);
    let value = !matches!(isa::stem(insn), "call" | "jmp" | "push" | "pop");
    (pointer && load && value && insn.prefixes.is_empty() && m.suffix.is_empty()).then_some(m)
}

/// The general register that an instruction leaves its result in.
fn result(insn: &Insn) -> Option<u8> {
    if insn.op.starts_with("cmp") || insn.op.starts_with("test") {
        return None;
    }
    insn.args.last().and_then(Operand::gpr).map(|g| g.num)
}

/// What comes from loads after an instruction, given what did before it.
fn after(insn: &Insn, before: u16) -> u16 {
    let Some(to) = result(insn) else { return before & !isa::effects(insn).defs };
    let from = isa::memory(insn).map_or(0, |(_, m)| m.regs());
    let source = isa::effects(insn).uses | from;
    // What was spilled, or lies at a fixed place, seldom changes in the loop.
    let stack = 1 << RSP | 1 << RBP;
    let loads = isa::access(insn) == Access::Load && from & !stack != 0 && from & stack == 0;
    let kept = before & !isa::effects(insn).defs & !(1 << to);
    if loads || source & before != 0 { kept | 1 << to } else { kept }
}

/// Those of an innermost loop's loads that are chained. `successors` gives where an instruction leads.
pub fn loads(body: &[(usize, &Insn)], successors: impl Fn(usize) -> Vec<usize>) -> Vec<usize> {
    let place = |i: usize| body.binary_search_by_key(&i, |(k, _)| *k).ok();
    let next: Vec<Vec<usize>> =
        body.iter().map(|(i, _)| successors(*i).into_iter().filter_map(place).collect()).collect();
    let mut derived = vec![0u16; body.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for (k, (_, insn)) in body.iter().enumerate() {
            let out = after(insn, derived[k]);
            for n in &next[k] {
                changed |= out & !derived[*n] != 0;
                derived[*n] |= out;
            }
        }
    }
    let chained = |k: usize, insn: &Insn| pointer_load(insn).is_some_and(|m| m.regs() & derived[k] != 0);
    body.iter().enumerate().filter(|(k, (_, insn))| chained(*k, insn)).map(|(_, (i, _))| *i).collect()
}

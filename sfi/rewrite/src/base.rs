//! Loops that chase pointers keep the segment base in a register that nobody uses there.
//!
//! A segment-relative load with 32-bit address adds about half a nanosecond to a chain of dependent loads; a zero-extending
//! copy into another register and a load relative to the base add nothing. So an innermost loop without calls, entered
//! only from above, in which loads feed addresses, gets the base before it, and its labels get records that say so.

use crate::flow::{Flow, Liveness};
use crate::isa::{self, Access};
use crate::operand::{Mem, Operand, RBP, RSP};
use crate::parse::{Body, Insn, Program};
use crate::stack::Layout;
use std::collections::{HashMap, HashSet};

#[derive(Debug, Default)]
pub struct Bases {
    /// The base register at each instruction of such a loop.
    pub register: HashMap<usize, u8>,
    /// After which instruction which register is loaded with the base.
    pub load_after: HashMap<usize, u8>,
    /// Loads that use it.
    pub loads: HashSet<usize>,
}

/// Registers that may hold the base, best first: none that a call keeps, none that instructions use silently.
const CANDIDATES: [u8; 8] = [11, 10, 9, 8, 7, 6, 2, 0];

/// A plain load through one pointer register into a general register.
fn pointer_load(insn: &Insn) -> Option<(&Mem, u8)> {
    let (_, m) = isa::memory(insn)?;
    let to = insn.args.last().and_then(Operand::gpr)?;
    let base = m.base_gpr()?;
    let plain = insn.op.starts_with("mov") && insn.args.len() == 2 && isa::access(insn) == Access::Load;
    let pointer = m.index.is_none() && m.segment.is_none() && base != RSP && base != RBP;
    (plain && pointer && insn.prefixes.is_empty()).then_some((m, to.num))
}

struct Loop {
    first: usize,
    last: usize,
}

pub fn find(
    program: &Program,
    flow: &Flow,
    layout: &Layout,
    live: &Liveness,
    targets: &HashMap<usize, Vec<usize>>,
) -> Bases {
    let mut out = Bases::default();
    let mut previous: Vec<Option<usize>> = vec![None; program.items.len()];
    for i in 0..program.items.len() {
        if let (Body::Insn(_), Some(n)) = (&program.items[i].body, flow.next[i]) {
            previous[n] = Some(i);
        }
    }
    let mut loops: Vec<Loop> = targets
        .iter()
        .flat_map(|(t, sources)| sources.iter().filter(|s| **s >= *t).map(|s| Loop { first: *t, last: *s }))
        .filter(|l| program.items[l.first].section == program.items[l.last].section)
        .collect();
    loops.sort_by_key(|l| (l.last - l.first, l.first));
    let mut done: Vec<(usize, usize)> = Vec::new();
    for l in loops {
        if done.iter().any(|(a, b)| l.first <= *b && *a <= l.last) {
            continue;
        }
        done.push((l.first, l.last));
        let _ = consider(program, flow, layout, live, targets, &previous, &l, &mut out);
    }
    out
}

#[allow(clippy::too_many_arguments)]
fn consider(
    program: &Program,
    flow: &Flow,
    layout: &Layout,
    live: &Liveness,
    targets: &HashMap<usize, Vec<usize>>,
    previous: &[Option<usize>],
    l: &Loop,
    out: &mut Bases,
) -> Option<()> {
    let section = program.items[l.first].section;
    let before = previous[l.first]?;
    let body: Vec<(usize, &Insn)> = (l.first..=l.last)
        .filter(|i| program.items[*i].section == section)
        .filter_map(|i| match &program.items[i].body {
            Body::Insn(insn) => Some((i, insn)),
            _ => None,
        })
        .collect();
    let Body::Insn(above) = &program.items[before].body else { return None };
    let enters = layout.states[before].is_some()
        && !isa::ends_block(above)
        && !layout.noreturn.contains(&before)
        && !flow.crosses_entry(program, before)
        && isa::stem(above) != "call";
    if !enters {
        return None;
    }
    let (mut busy, mut addresses, mut loaded) = (0u16, 0u16, 0u16);
    for (i, insn) in &body {
        if layout.states[*i].is_none()
            || layout.owner[*i] != layout.owner[before]
            || isa::stem(insn) == "call"
            || matches!(insn.args.first(), Some(Operand::Star(_)))
            || flow.crosses_entry(program, *i) && *i != l.last
            || isa::is_string_op(insn)
        {
            return None;
        }
        if targets.get(i).is_some_and(|s| s.iter().any(|s| *s < l.first || *s > l.last)) {
            return None;
        }
        let e = isa::effects(insn);
        let named = insn.args.iter().filter_map(Operand::gpr).fold(0, |m, g| m | 1u16 << g.num);
        busy |= live.regs[*i] | e.uses | e.defs | named;
        if isa::stem(insn) != "lea"
            && let Some((_, m)) = isa::memory(insn)
        {
            addresses |= m.regs();
        }
        if let Some((_, to)) = pointer_load(insn) {
            loaded |= 1 << to;
        }
    }
    let chained = loaded & addresses;
    let loads: Vec<usize> = body
        .iter()
        .filter(|(_, insn)| pointer_load(insn).is_some_and(|(m, to)| chained & (1 << to | m.regs()) != 0))
        .map(|(i, _)| *i)
        .collect();
    let register = CANDIDATES.into_iter().find(|r| busy & 1 << r == 0)?;
    if loads.is_empty() {
        return None;
    }
    out.loads.extend(loads);
    out.load_after.insert(before, register);
    out.register.extend(body.iter().map(|(i, _)| (*i, register)));
    Some(())
}

//! Which labels need a record in `.pbl.facts`, and the records.
//!
//! A label needs one where the verifier's single pass could not know its state: after an instruction that
//! does not fall through, with no branch to it from an earlier place, in a state that is not a function's
//! entry. And where the code after it relies on facts of registers.

use crate::flow::Flow;
use crate::isa;
use crate::operand::RBX;
use crate::parse::{Body, Program};
use crate::stack::Layout;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;

/// Facts of registers at a label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LabelFacts {
    pub in_segment: u16,
    pub zero_extended: u16,
    pub base: u16,
}

/// Sources of each branch target: target instruction to the jumps that lead to it.
pub fn branch_targets(
    program: &Program,
    flow: &Flow,
    table: &HashMap<usize, Vec<String>>,
) -> HashMap<usize, Vec<usize>> {
    let mut out: HashMap<usize, Vec<usize>> = HashMap::new();
    for (i, item) in program.items.iter().enumerate() {
        let Body::Insn(insn) = &item.body else { continue };
        let mut add = |name: &str| {
            if let Some(t) = flow.at_label(name) {
                out.entry(t).or_default().push(i);
            }
        };
        if let Some(targets) = table.get(&i) {
            targets.iter().for_each(|t| add(t));
        } else if isa::stem(insn) != "call"
            && let Some(t) = isa::direct_target(insn)
            && flow.is_local_label(t)
        {
            add(t);
        }
    }
    out
}

/// Does the instruction before this one in its section run into it?
fn falls_into(program: &Program, flow: &Flow, layout: &Layout, prev: Option<usize>) -> bool {
    let Some(p) = prev else { return false };
    let Body::Insn(insn) = &program.items[p].body else { return false };
    layout.states[p].is_some()
        && !isa::ends_block(insn)
        && !layout.noreturn.contains(&p)
        && !flow.crosses_entry(program, p)
}

/// Instructions whose label needs a record for its stack state.
pub fn needed(
    program: &Program,
    flow: &Flow,
    layout: &Layout,
    targets: &HashMap<usize, Vec<usize>>,
) -> BTreeSet<usize> {
    let mut previous: HashMap<usize, usize> = HashMap::new();
    let mut out = BTreeSet::new();
    for (i, item) in program.items.iter().enumerate() {
        if !matches!(item.body, Body::Insn(_)) {
            continue;
        }
        let prev = previous.insert(item.section, i);
        let (Some(sources), Some(state)) = (targets.get(&i), &layout.states[i]) else { continue };
        let forward = sources.iter().any(|s| *s < i && program.items[*s].section == item.section);
        let plain = state.saves.is_empty() && layout.functions[layout.owner[i]].delta(state) == 0;
        if !falls_into(program, flow, layout, prev) && !forward && !plain {
            out.insert(i);
        }
    }
    out
}

/// The code of a preserved register in a record's slot nibbles.
fn nibble(reg: u8) -> u32 {
    if reg == RBX { 1 } else { u32::from(reg) - 10 }
}

/// One record as directives. `borrowed` is a register that is pushed here for the rewriter's own use.
pub fn record(label: &str, layout: &Layout, i: usize, borrowed: Option<u8>, facts: LabelFacts) -> String {
    let state = layout.states[i].as_ref().expect("records are for reached code");
    let extra = borrowed.map(|r| if state.untouched(r) { nibble(r) } else { 0 });
    let words: Vec<u32> = state.saves.iter().map(|(_, r)| nibble(*r)).chain(extra).collect();
    let mut slots = (words.len() as u32) << 28;
    for (k, word) in words.iter().enumerate().take(7) {
        slots |= word << (4 * k);
    }
    let delta = layout.functions[layout.owner[i]].delta(state);
    let mut out = String::new();
    let _ = writeln!(out, "\t.long\t{label}, {slots:#x}, {delta}");
    let _ = write!(out, "\t.short\t{}, {}, {}, 0", facts.in_segment, facts.zero_extended, facts.base);
    out
}

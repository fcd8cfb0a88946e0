//! The ways into and out of loops that keep the segment base in a register.
//!
//! A borrowed register is pushed and popped on the way: behind the instruction that runs into or out of the
//! loop, before a jump, and for a conditional branch in a detour of its own, which stands where no code runs
//! on.

use super::Emitter;
use crate::base::Register;
use crate::confine::{BASE, Scope};
use crate::isa;
use crate::operand;
use crate::parse::Insn;

impl Emitter<'_> {
    /// What an unconditional jump or a return does on its way into or out of a loop with a base register.
    pub(super) fn cross(&self, i: usize, scope: &mut Scope) {
        if let Some(r) = self.bases.leave_by.get(&i) {
            scope.line(format!("popq\t{}", operand::r64(*r)));
        }
        if let Some(r) = self.bases.enter_by.get(&i) {
            scope.lines.extend(enter(*r));
        }
    }

    /// A conditional branch that pushes or pops on its way only.
    pub(super) fn has_detour(&self, i: usize) -> bool {
        self.bases.leave_by.contains_key(&i) || self.bases.enter_by.get(&i).is_some_and(|r| r.borrowed)
    }

    pub(super) fn detour(&mut self, i: usize, insn: &Insn) {
        let Some(target) = isa::direct_target(insn).filter(|_| isa::is_jcc(&insn.op) && self.has_detour(i))
        else {
            return;
        };
        let mut text = format!("{}:\n", detour_label(i));
        if let Some(r) = self.bases.leave_by.get(&i) {
            text.push_str(&format!("\tpopq\t{}\n", operand::r64(*r)));
        }
        if let Some(r) = self.bases.enter_by.get(&i) {
            text.push_str(&format!("{}\n", enter(*r).join("\n")));
        }
        text.push_str(&format!("\tjmp\t{}", self.branch_name(target)));
        self.detours.push((self.program.items[i].section, i, text));
    }

    /// Where no code runs on: a place for the detours of this section.
    pub(super) fn detours(&mut self, section: usize) {
        let (here, others) = std::mem::take(&mut self.detours).into_iter().partition(|(s, ..)| *s == section);
        self.detours = others;
        let here: Vec<(usize, usize, String)> = here;
        for (_, branch, text) in here {
            self.unwind_before(branch);
            self.push(text);
        }
    }
}

pub(super) fn detour_label(i: usize) -> String {
    format!(".Lpbl_x{i}")
}

/// The way into a loop with a base register.
pub(super) fn enter(r: Register) -> Vec<String> {
    let name = operand::r64(r.number);
    let push = r.borrowed.then(|| format!("\tpushq\t{name}"));
    push.into_iter().chain([format!("\tmovq\t{BASE}, {name}")]).collect()
}

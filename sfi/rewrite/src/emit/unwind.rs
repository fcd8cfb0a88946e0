//! Call frame information: how a debugger gets from any instruction to its function's caller.
//!
//! Problem: the compiler's speaks of one stack, and the code has two. Strategy: the analysis knows before
//! every instruction of the program what is on the return stack and where the data stack pointer is; in
//! between, the few instructions that change either are followed in the text as it is printed. The canonical
//! frame address is where the return stack pointer will be after the return.
//!
//! The section is not loaded, and nobody but debuggers believes it.

use super::Emitter;
use crate::operand::{self, RBP, RBX};
use std::fmt::Write;

/// First in every file: the section.
pub const SECTION: &str = "\t.cfi_sections .debug_frame\n";

const PRESERVED: [u8; 5] = [RBX, 12, 13, 14, 15];

/// The state of the stacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stacks {
    /// The return stack behind the return address: which register each word is the caller's value of (of the
    /// data stack pointer: our own).
    pushed: Vec<Option<u8>>,
    /// The data stack pointer, relative to what it was at entry; unless it has been pushed.
    delta: i64,
}

/// What has been told so far of the code that is being printed.
#[derive(Debug, Default)]
pub struct Unwind {
    open: bool,
    told: Stacks,
    now: Stacks,
}

impl Unwind {
    /// Prints lines, and behind each what it changes.
    pub fn copy(&mut self, text: &str, out: &mut String) {
        for line in text.split('\n') {
            out.push_str(line);
            out.push('\n');
            if self.open && self.now.follow(line) {
                self.write_changes(out);
            }
        }
    }

    /// Code follows, in this state.
    fn set(&mut self, stacks: Stacks, out: &mut String) {
        if !self.open {
            out.push_str("\t.cfi_startproc\n");
            (self.open, self.told) = (true, Stacks::default());
        }
        self.now = stacks;
        self.write_changes(out);
    }

    /// A directive comes, perhaps one that leads to another section.
    pub fn directive(&mut self, text: &str, out: &mut String) {
        const LEAVES: [&str; 8] =
            [".text", ".data", ".bss", ".section", ".pushsection", ".popsection", ".previous", ".subsection"];
        if text.split_whitespace().next().is_some_and(|word| LEAVES.contains(&word)) {
            self.end(out);
        }
    }

    pub fn end(&mut self, out: &mut String) {
        if std::mem::take(&mut self.open) {
            out.push_str("\t.cfi_endproc\n");
        }
    }

    /// What has changed since the last time, as directives.
    fn write_changes(&mut self, out: &mut String) {
        let (old, new) = (&self.told, &self.now);
        if old.pushed.len() != new.pushed.len() {
            let _ = writeln!(out, "\t.cfi_def_cfa_offset {}", 8 * new.pushed.len() + 8);
        }
        for r in PRESERVED {
            let name = operand::r64(r);
            match new.place(r) {
                same if same == old.place(r) => {}
                Some(at) => drop(writeln!(out, "\t.cfi_offset {name}, -{at}")),
                None => drop(writeln!(out, "\t.cfi_same_value {name}")),
            }
        }
        if (old.place(RBP), old.delta) != (new.place(RBP), new.delta) {
            out.push_str(&new.data_stack());
        }
        self.told = self.now.clone();
    }
}

impl Stacks {
    /// How far below the canonical frame address the word is that holds the caller's value of a register.
    fn place(&self, register: u8) -> Option<usize> {
        self.pushed.iter().position(|word| *word == Some(register)).map(|k| 16 + 8 * k)
    }

    /// Whether the instruction on this line changes it.
    fn follow(&mut self, line: &str) -> bool {
        let moved = || line.strip_prefix("\tleaq\t")?.strip_suffix("(%rbp), %rbp")?.parse::<i64>().ok();
        if let Some(what) = line.strip_prefix("\tpushq\t") {
            self.pushed.push((what == "%rbp").then_some(RBP));
        } else if line.starts_with("\tpopq\t") {
            self.pushed.pop();
        } else if let Some(by) = moved() {
            self.delta += by;
        } else {
            return false;
        }
        true
    }

    /// The caller's data stack pointer, as a directive.
    fn data_stack(&self) -> String {
        // DW_CFA_val_expression of rbp, with the canonical frame address on its stack.
        let expression = match self.place(RBP) {
            // DW_OP_const1u, DW_OP_minus, DW_OP_deref
            Some(at) => vec![0x08, at as u8, 0x1c, 0x06],
            None if self.delta == 0 => return "\t.cfi_same_value %rbp\n".into(),
            // DW_OP_breg6
            None => [vec![0x76], signed(-self.delta)].concat(),
        };
        let bytes: Vec<String> = expression.iter().map(u8::to_string).collect();
        format!("\t.cfi_escape 0x16, 6, {}, {}\n", expression.len(), bytes.join(", "))
    }
}

/// SLEB128.
fn signed(mut value: i64) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let byte = (value & 0x7f) as u8;
        value >>= 7;
        let last = value == if byte & 0x40 == 0 { 0 } else { -1 };
        out.push(if last { byte } else { byte | 0x80 });
        if last {
            return out;
        }
    }
}

impl Emitter<'_> {
    /// What the analysis knows before an instruction of the program.
    pub(super) fn unwind_before(&mut self, i: usize) {
        self.unwind_with(i, &[]);
    }

    /// The same, with registers pushed besides.
    pub(super) fn unwind_with(&mut self, i: usize, lent: &[u8]) {
        let Some(state) = &self.layout.states[i] else { return };
        if !self.program.sections[self.program.items[i].section].exec {
            return;
        }
        let borrowed = self.bases.register.get(&i).filter(|r| r.borrowed).map(|r| r.number);
        let borrowed = borrowed.iter().chain(lent);
        let borrowed = borrowed.map(|r| Some(*r).filter(|r| state.untouched(*r)));
        let pushed = state.saves.iter().map(|(_, r)| Some(*r)).chain(borrowed).collect();
        let delta = self.layout.functions[self.layout.owner[i]].delta(state);
        self.unwind.set(Stacks { pushed, delta }, &mut self.out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_dwarf_has_them() {
        for (value, bytes) in [(2, vec![2]), (-2, vec![0x7e]), (127, vec![0xff, 0]), (-129, vec![0xff, 0x7e])]
        {
            assert_eq!(signed(value), bytes, "{value}");
        }
    }
}

//! Calls, jumps out of a function, and jumps through tables, in the sequences of the contract.

use super::Emitter;
use crate::confine::{BASE, SLOT, Scope};
use crate::error::Kind;
use crate::isa::{self, Access};
use crate::operand::{self, Operand, R11};
use crate::parse::Insn;
use crate::tables::Jump;

/// The bits of a function's address that are kept: they lead to a slot, or to where nothing is executable.
const MASK: &str = "$__pbl_ftab_mask";

const RETURNS_TWICE: [&str; 5] = ["setjmp", "_setjmp", "__setjmp", "sigsetjmp", "__sigsetjmp"];

/// Registers for a jump through a table, best first.
const DEAD: [u8; 14] = [11, 10, 9, 8, 7, 6, 1, 2, 0, 3, 12, 13, 14, 15];

impl Emitter<'_> {
    /// Calls and jumps that are not through tables.
    pub(super) fn transfer(&self, insn: &Insn, scope: &mut Scope) -> Result<(), Kind> {
        let stem = isa::stem(insn);
        let call = stem == "call";
        let direct = isa::direct_target(insn).or_else(|| isa::got_target(insn));
        let moved = call && scope.function.dynamic && !scope.state.bare();
        let mut target = String::new();
        match direct {
            Some(t) if !self.weak.contains(t) => {
                if t.starts_with('.') && call && !self.functions.contains(t) {
                    return Err(Kind::Unsupported { what: insn.to_string(), hint: "calls go to functions" });
                }
                target = self.branch_name(t);
            }
            Some(t) => scope.line(format!("movq\t{t}@GOTPCREL(%rip), %r11")),
            None => {
                let Some(Operand::Star(o)) = insn.args.first() else {
                    return Err(Kind::Syntax(insn.to_string()));
                };
                match &**o {
                    Operand::Gpr(g) if g.num == R11 => {}
                    Operand::Gpr(g) => scope.line(format!("movl\t{}, %r11d", operand::r32(g.num))),
                    Operand::Mem(m) => {
                        // At a call, r11 is nobody's.
                        scope.busy &= !(1 << R11) | m.regs();
                        let (m, region) = scope.translate(m, insn)?;
                        let m = self.confined(m, region, Access::Load);
                        scope.line(format!("movl\t{m}, %r11d"));
                    }
                    _ => return Err(Kind::Syntax(insn.to_string())),
                }
            }
        }
        if moved {
            scope.line("pushq\t%rbp");
            scope.line(format!("movl\t{SLOT}(%rbp), %ebp"));
            scope.line(format!("addq\t{BASE}, %rbp"));
        }
        if target.is_empty() {
            scope.line(format!("andl\t{MASK}, %r11d"));
            scope.line(format!("addq\t{BASE}, %r11"));
            scope.line(format!("{stem}\t*%r11"));
        } else {
            scope.line(format!("{stem}\t{target}"));
        }
        if moved {
            let twice = direct.is_some_and(|t| RETURNS_TWICE.contains(&t));
            if twice {
                scope.line("movq\t%rbp, %r11");
            }
            scope.line("popq\t%rbp");
            if twice {
                // What has been allocated since is not the program's any more.
                scope.line(format!("movq\t%r11, {SLOT}(%rbp)"));
            }
        }
        Ok(())
    }

    /// A table of offsets in the read-only data, from the middle of the code.
    fn table_beside(&self, name: &str, labels: &[String], scope: &mut Scope) {
        let mut text = format!("\t.pushsection\t.rodata,\"a\",@progbits\n\t.balign\t4\n{name}:");
        for k in 0..labels.len().next_power_of_two() {
            text.push_str(&format!("\n\t.long\t{}-{name}", labels.get(k).unwrap_or(&labels[0])));
        }
        text.push_str("\n\t.popsection");
        scope.lines.push(text);
    }

    /// The address that an entry leads to, in place of its number: (register for the table, register of the number).
    fn table_entry(&self, table: &str, entries: usize, (y, number): (u8, u8), scope: &mut Scope) {
        let (y, wide, narrow) = (operand::r64(y), operand::r64(number), operand::r32(number));
        scope.line(format!("andl\t${}, {narrow}", entries - 1));
        scope.line(format!("leaq\t{table}(%rip), {y}"));
        scope.line(format!("movslq\t({y},{wide},4), {wide}"));
        scope.line(format!("addq\t{y}, {wide}"));
    }

    /// Jumps through tables.
    pub(super) fn table_jump(
        &self,
        i: usize,
        insn: &Insn,
        jump: &Jump,
        scope: &mut Scope,
    ) -> Result<(), Kind> {
        let Some(Operand::Star(o)) = insn.args.first() else { return Err(Kind::JumpTable(insn.to_string())) };
        // Nothing comes after the jump but what its targets want: also the registers of its operand are free.
        let wanted = self.live.regs[i] | self.bases.kept.get(&i).copied().unwrap_or(0);
        let dead = |taken: u16| DEAD.into_iter().find(|r| (wanted | taken) & 1 << r == 0);
        let full = || Kind::Unsupported {
            what: insn.to_string(),
            hint: "all registers are live at this jump; compile the function with fewer variables live, or without computed goto",
        };
        let number = match jump {
            Jump::Switch { .. } => o.gpr().map(|g| g.num).ok_or_else(|| Kind::JumpTable(insn.to_string()))?,
            Jump::Labels { index, .. } if wanted & 1 << index == 0 => *index,
            Jump::Labels { index, .. } => dead(1 << index).ok_or_else(full)?,
            Jump::Computed => dead(0).ok_or_else(full)?,
        };
        let (wide, narrow) = (operand::r64(number), operand::r32(number));
        let other = dead(1 << number);
        let entries = match jump {
            Jump::Switch { table, base } => {
                // Without a free register, the compiler's own: it holds the same address.
                let y = other.unwrap_or(*base);
                let entries = self.tables.relative[table].len().next_power_of_two();
                self.table_entry(table, entries, (y, number), scope);
                None
            }
            Jump::Labels { table, index, base } => {
                let labels = &self.tables.absolute[table];
                let same = self.converted.contains(table);
                let y = other.or(same.then_some(*base)).ok_or_else(full)?;
                if number != *index {
                    scope.line(format!("movl\t{}, {narrow}", operand::r32(*index)));
                }
                let name = if same { table.clone() } else { format!(".Lpbl_jt{i}") };
                let entries = labels.len().next_power_of_two();
                self.table_entry(&name, entries, (y, number), scope);
                (!same).then_some((name, labels))
            }
            Jump::Computed => {
                match &**o {
                    Operand::Gpr(g) if g.num == number => {}
                    Operand::Gpr(g) => scope.line(format!("movl\t{}, {narrow}", operand::r32(g.num))),
                    Operand::Mem(m) => {
                        let (m, region) = scope.translate(m, insn)?;
                        let m = self.confined(m, region, Access::Load);
                        scope.line(format!("movl\t{m}, {narrow}"));
                    }
                    _ => return Err(Kind::JumpTable(insn.to_string())),
                }
                if !scope.borrowed.is_empty() {
                    return Err(full());
                }
                let (name, labels) = &self.label_tables[&self.layout.owner[i]];
                let y = operand::r64(other.ok_or_else(full)?);
                scope.line(format!("andl\t${}, {narrow}", 8 * labels.len().next_power_of_two() - 8));
                scope.line(format!("leaq\t{name}(%rip), {y}"));
                scope.line(format!("addq\t{y}, {wide}"));
                None
            }
        };
        if let Some((name, labels)) = entries {
            self.table_beside(&name, labels, scope);
        }
        scope.line(format!("jmp\t*{wide}"));
        Ok(())
    }
}

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
            scope.line("popq\t%rbp");
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

    /// Jumps through tables.
    pub(super) fn table_jump(
        &self,
        i: usize,
        insn: &Insn,
        jump: &Jump,
        scope: &mut Scope,
    ) -> Result<(), Kind> {
        let Some(Operand::Star(o)) = insn.args.first() else { return Err(Kind::JumpTable(insn.to_string())) };
        let number = match (jump, &**o) {
            (Jump::Switch { .. }, Operand::Gpr(g)) => g.num,
            (Jump::Labels { index, .. }, _) if self.live.regs[i] & 1 << index == 0 => *index,
            _ => scope.scratch(),
        };
        let (wide, narrow) = (operand::r64(number), operand::r32(number));
        match jump {
            Jump::Switch { table, base } => {
                // Without a free register, the compiler's own: it holds the same address.
                let y = operand::r64(scope.free().unwrap_or(*base));
                let entries = self.tables.relative[table].len().next_power_of_two();
                scope.line(format!("andl\t${}, {narrow}", entries - 1));
                scope.line(format!("leaq\t{table}(%rip), {y}"));
                scope.line(format!("movslq\t({y},{wide},4), {wide}"));
                scope.line(format!("addq\t{y}, {wide}"));
            }
            Jump::Labels { table, index, base } => {
                let same = self.converted.contains(table);
                let y = if same { scope.free().unwrap_or(*base) } else { scope.scratch() };
                let y = operand::r64(y);
                let entries = self.tables.absolute[table].len().next_power_of_two();
                let name = if same { table.clone() } else { format!(".Lpbl_jt{i}") };
                if number != *index {
                    scope.line(format!("movl\t{}, {narrow}", operand::r32(*index)));
                }
                scope.line(format!("andl\t${}, {narrow}", entries - 1));
                scope.line(format!("leaq\t{name}(%rip), {y}"));
                scope.line(format!("movslq\t({y},{wide},4), {wide}"));
                scope.line(format!("addq\t{y}, {wide}"));
                if !same {
                    let labels = &self.tables.absolute[table];
                    self.table_beside(&name, labels, scope);
                }
            }
            Jump::Computed => {
                match &**o {
                    Operand::Gpr(g) => scope.line(format!("movl\t{}, {narrow}", operand::r32(g.num))),
                    Operand::Mem(m) => {
                        let (m, region) = scope.translate(m, insn)?;
                        let m = self.confined(m, region, Access::Load);
                        scope.line(format!("movl\t{m}, {narrow}"));
                    }
                    _ => return Err(Kind::JumpTable(insn.to_string())),
                }
                let (name, labels) = &self.label_tables[&self.layout.owner[i]];
                let y = operand::r64(scope.scratch());
                scope.line(format!("andl\t${}, {narrow}", 8 * labels.len().next_power_of_two() - 8));
                scope.line(format!("leaq\t{name}(%rip), {y}"));
                scope.line(format!("addq\t{y}, {wide}"));
            }
        }
        if !scope.borrowed.is_empty() {
            return Err(Kind::Unsupported {
                what: insn.to_string(),
                hint: "no register is free at this jump",
            });
        }
        scope.line(format!("jmp\t*{wide}"));
        Ok(())
    }
}

//! Calls, jumps out of a function, and jumps through tables, in the sequences of the contract.

use super::Emitter;
use crate::confine::{BASE, SLOT, Scope};
use crate::error::Kind;
use crate::isa::{self, Access};
use crate::operand::{self, Operand, R11, Width};
use crate::parse::{Body, Insn};
use crate::tables::Jump;
use std::collections::HashSet;

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

    /// What is done right before an instruction, from it upwards: up to where other ways arrive or leave.
    fn before(&self, i: usize) -> impl Iterator<Item = (usize, &Insn)> {
        let section = self.program.items[i].section;
        let up = (0..i).rev().map(|j| (j, &self.program.items[j]));
        let near =
            up.take_while(move |(_, item)| item.section == section && !matches!(item.body, Body::Label(_)));
        let insns = near.filter_map(|(j, item)| match &item.body {
            Body::Insn(insn) => Some((j, insn)),
            _ => None,
        });
        insns.take_while(|(_, insn)| {
            !isa::ends_block(insn) && !isa::is_jcc(&insn.op) && isa::stem(insn) != "call"
        })
    }

    /// The compiler's register for the address of a table, and the table, if it is still there at the jump: the sequence loads it again.
    fn address<'j>(&self, i: usize, jump: &'j Jump) -> Option<(u8, &'j str)> {
        let (register, table) = match jump {
            Jump::Switch { base, table } => ((*base)?, table),
            Jump::Labels { base, table, .. } if self.converted.contains(table) => (*base, table),
            _ => return None,
        };
        let kept = self.bases.kept.get(&i).copied().unwrap_or(0);
        let there = matches!(jump, Jump::Labels { .. }) || self.unwritten_since_load(i, register);
        (there && kept & 1 << register == 0).then_some((register, table))
    }

    /// Has nothing written a register since the compiler loaded the entry for a jump?
    fn unwritten_since_load(&self, i: usize, register: u8) -> bool {
        for (j, insn) in self.before(i) {
            if self.tables.loads.contains_key(&j) {
                return true;
            }
            if !self.tables.sums.contains(&j) && isa::may_write(insn) & 1 << register != 0 {
                return false;
            }
        }
        false
    }

    /// The compiler's own loads of tables' addresses right before jumps.
    pub(super) fn idle_addresses(&self) -> HashSet<usize> {
        let load = |(i, jump): (&usize, &Jump)| {
            let (register, table) = self.address(*i, jump)?;
            let gone = |j: &usize| self.tables.sums.contains(j) || self.tables.loads.contains_key(j);
            let mut above = self.before(*i).filter(|(j, _)| !gone(j));
            let (j, insn) = above.find(|(_, insn)| isa::touched(insn) & 1 << register != 0)?;
            let same =
                insn.op == "leaq" && isa::memory(insn).is_some_and(|(_, m)| m.is_rip() && m.disp == table);
            same.then_some(j)
        };
        self.tables.jumps.iter().filter_map(load).collect()
    }

    /// Has the number of a table's entry just been masked?
    fn masked(&self, i: usize, number: u8, entries: usize) -> bool {
        let mut above = self.before(i).filter(|(j, _)| !self.idle.contains(j));
        above.next().is_some_and(|(j, insn)| {
            let mask = insn.args.first().and_then(Operand::imm).and_then(|k| usize::try_from(k).ok());
            let to =
                insn.args.get(1).and_then(Operand::gpr).filter(|g| g.num == number && g.width == Width::B32);
            let fits = mask.is_some_and(|k| k < entries && (k + 1).is_power_of_two());
            insn.op == "andl" && to.is_some() && fits && !self.bases.enter_after.contains_key(&j)
        })
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

    /// The address that an entry leads to: registers for the table and the address, and that of the entry's number.
    fn table_entry(
        &self,
        i: usize,
        table: &str,
        entries: usize,
        (y, to, number): (u8, u8, u8),
        scope: &mut Scope,
    ) {
        let (y, wide, narrow) = (operand::r64(y), operand::r64(to), operand::r32(to));
        if to == number && self.masked(i, number, entries) {
            // The compiler's mask starts the sequence.
        } else if entries == 256 {
            scope.line(format!("movzbl\t{}, {narrow}", operand::r8(number)));
        } else {
            if to != number {
                scope.line(format!("movl\t{}, {narrow}", operand::r32(number)));
            }
            scope.line(format!("andl\t${}, {narrow}", entries - 1));
        }
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
        let own = self.address(i, jump).map(|(register, _)| register).filter(|r| *r != number);
        let entries = match jump {
            Jump::Switch { table, .. } => {
                let y = own.or(other).ok_or_else(full)?;
                let entries = self.tables.relative[table].len().next_power_of_two();
                self.table_entry(i, table, entries, (y, number, number), scope);
                None
            }
            Jump::Labels { table, index, .. } => {
                let labels = &self.tables.absolute[table];
                let same = self.converted.contains(table);
                let y = own.or(other).ok_or_else(full)?;
                let name = if same { table.clone() } else { format!(".Lpbl_jt{i}") };
                let entries = labels.len().next_power_of_two();
                self.table_entry(i, &name, entries, (y, number, *index), scope);
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

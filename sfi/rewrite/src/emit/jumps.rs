//! Calls, jumps out of a function, and jumps through tables, in the sequences of the contract.

use super::Emitter;
use crate::confine::{BASE, SLOT, Scope};
use crate::error::Kind;
use crate::isa::{self, Access};
use crate::operand::{self, Operand, R11, Width};
use crate::parse::{Body, Insn};
use crate::scratch::{Scratch, Taken};
use crate::tables::Jump;
use std::collections::{HashMap, HashSet};

/// The bits of a function's address that are kept: they lead to a slot, or to where nothing is executable.
const MASK: &str = "$__pbl_ftab_mask";

const RETURNS_TWICE: [&str; 5] = ["setjmp", "_setjmp", "__setjmp", "sigsetjmp", "__sigsetjmp"];

/// The registers of a jump's sequence: of the entry's number and of the table's address. Where none is free,
/// some are lent for it: pushed before it, and popped on the way to each target.
pub(super) struct Chosen {
    number: u8,
    table: u8,
    lent: Vec<u8>,
}

/// What a jump has pushed, whose table and ways it uses, and where those lead.
#[derive(Clone)]
pub(super) struct Lent {
    registers: Vec<u8>,
    by: usize,
    labels: Vec<String>,
}

/// A jump's own table, and a way to a target of it.
fn own_table(i: usize) -> String {
    format!(".Lpbl_jt{i}")
}
fn way(i: usize, k: usize) -> String {
    format!(".Lpbl_w{i}_{k}")
}

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
                        let (m, region) = scope.translate(m, insn)?;
                        let m = self.confined(m, region, Access::Load);
                        // At a call, r11 is nobody's.
                        scope.line(format!("movl\t{m}, %r11d"));
                        scope.give_back();
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

    /// The compiler's register for the address of a table, and the table, if it is still there at the jump:
    /// the sequence loads it again.
    fn address<'j>(&self, i: usize, jump: &'j Jump) -> Option<(u8, &'j str)> {
        let (register, table) = match jump {
            Jump::Switch { base, table } => ((*base)?, table),
            Jump::Labels { base, table, .. } if self.converted.contains(table) => (*base, table),
            _ => return None,
        };
        let kept = self.bases.kept.get(&i).copied().unwrap_or(0);
        (kept & 1 << register == 0).then_some((register, table))
    }

    /// The registers of a jump's sequence.
    pub(super) fn choose(&self, i: usize, insn: &Insn, jump: &Jump) -> Option<Chosen> {
        let Some(Operand::Star(o)) = insn.args.first() else { return None };
        // Nothing comes after the jump but what its targets want: also the registers of its operand are free.
        let kept = self.bases.kept.get(&i).copied().unwrap_or(0);
        let wanted = self.live.regs[i] | kept;
        let mut registers = Scratch::new(kept, wanted);
        // What the compiler has loaded for this jump alone nobody reads again, though it may look so: `ret`
        // may return it.
        let loaded = |(j, _)| self.tables.loads.contains_key(&j);
        let alone = matches!(jump, Jump::Switch { .. }) && self.before(i).any(loaded);
        let index = match jump {
            Jump::Switch { .. } => Some(o.gpr()?.num),
            Jump::Labels { index, .. } => Some(*index),
            Jump::Computed => None,
        };
        registers.claim(index.map_or(0, |r| 1 << r));
        let number = match index {
            Some(number) if wanted & 1 << number == 0 || alone => Taken { number, lent: false },
            _ => registers.take().ok()?,
        };
        let own = self.address(i, jump).map(|(register, _)| register).filter(|r| *r != number.number);
        // What is lent goes by a table of the jump's own.
        let own = own.filter(|r| !number.lent || wanted & 1 << r == 0);
        let table = match own {
            Some(number) => Taken { number, lent: false },
            None => registers.take().ok()?,
        };
        let lent = [number, table].iter().filter(|taken| taken.lent).map(|taken| taken.number).collect();
        let (number, table) = (number.number, table.number);
        Some(Chosen { number, table, lent })
    }

    /// The jumps that push registers. Those that push the same, on the way to the same, share tables and
    /// ways: those of the first.
    pub(super) fn lending(&self) -> HashMap<usize, Lent> {
        let mut jumps: Vec<(&usize, &Jump)> = self.tables.jumps.iter().collect();
        jumps.sort_by_key(|(i, _)| **i);
        let mut first = HashMap::new();
        let mut out = HashMap::new();
        for (i, jump) in jumps {
            let Body::Insn(insn) = &self.program.items[*i].body else { continue };
            let registers = self.choose(*i, insn, jump).map_or(Vec::new(), |chosen| chosen.lent);
            if registers.is_empty() || self.layout.states[*i].is_none() {
                continue;
            }
            let table = match jump {
                Jump::Switch { table, .. } | Jump::Labels { table, .. } => table.as_str(),
                Jump::Computed => "",
            };
            let by = *first.entry((self.layout.owner[*i], table, registers.clone())).or_insert(*i);
            let mut labels = Vec::new();
            for l in &self.tables.targets[i] {
                if !labels.contains(l) {
                    labels.push(l.clone());
                }
            }
            out.insert(*i, Lent { registers, by, labels });
        }
        out
    }

    /// Is it a jump to the slots of its function's labels?
    pub(super) fn by_slots(&self, i: usize) -> bool {
        matches!(self.tables.jumps.get(&i), Some(Jump::Computed)) && !self.lent.contains_key(&i)
    }

    /// Behind a jump that has pushed registers: the ways to its targets, which pop them.
    pub(super) fn ways(&mut self, i: usize) {
        let Some(Lent { registers, labels, .. }) = self.lent.get(&i).filter(|l| l.by == i).cloned() else {
            return;
        };
        if matches!(self.tables.jumps[&i], Jump::Computed) {
            let ways: Vec<String> = (0..labels.len()).map(|k| way(i, k)).collect();
            self.slot_table(&own_table(i), &ways, |_| None);
        }
        for (k, label) in labels.iter().enumerate() {
            self.unwind_with(i, &registers);
            self.push(format!("{}:", way(i, k)));
            for r in registers.iter().rev() {
                self.push(format!("\tpopq\t{}", operand::r64(*r)));
            }
            self.push(format!("\tjmp\t{label}"));
        }
    }

    /// The compiler's own loads of tables' addresses right before jumps.
    pub(super) fn idle_addresses(&self) -> HashSet<usize> {
        let load = |(i, jump): (&usize, &Jump)| {
            let (register, table) = self.address(*i, jump)?;
            if self.lent.contains_key(i) {
                return None;
            }
            let gone = |j: &usize| {
                matches!(self.tables.sums.get(j), Some(None)) || self.tables.loads.contains_key(j)
            };
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

    /// The address that an entry leads to: registers for the table and the address, and that of the entry's
    /// number.
    fn table_entry(
        &self,
        i: usize,
        table: &str,
        entries: usize,
        (y, to, number): (u8, u8, u8),
        scope: &mut Scope,
    ) {
        let (y, wide, narrow) = (operand::r64(y), operand::r64(to), operand::r32(to));
        if to == number && !self.lent.contains_key(&i) && self.masked(i, number, entries) {
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
        let full = || Kind::Unsupported {
            what: insn.to_string(),
            hint: "all registers are live at this jump; compile the function with fewer variables live, or \
                without computed goto",
        };
        let Chosen { number, table: y, lent } = self.choose(i, insn, jump).ok_or_else(full)?;
        let (wide, narrow) = (operand::r64(number), operand::r32(number));
        for r in &lent {
            scope.line(format!("pushq\t{}", operand::r64(*r)));
        }
        scope.scratch.claim(1 << number | 1 << y);
        let ways = self.lent.get(&i);
        // The table's entries, or those of a table of the jump's own, on the ways.
        let entries = |labels: &[String]| -> Vec<String> {
            let place = |l: &String| ways.and_then(|w| w.labels.iter().position(|w| w == l));
            labels.iter().map(|l| place(l).map_or_else(|| l.clone(), |k| way(i, k))).collect()
        };
        let by = ways.map_or(i, |w| w.by);
        let own = match jump {
            Jump::Switch { table, .. } => {
                let labels = &self.tables.relative[table];
                let name = if ways.is_none() { table.clone() } else { own_table(by) };
                let index = o.gpr().map_or(number, |g| g.num);
                self.table_entry(i, &name, labels.len().next_power_of_two(), (y, number, index), scope);
                ways.is_some().then(|| (name, entries(labels)))
            }
            Jump::Labels { table, index, .. } => {
                let labels = &self.tables.absolute[table];
                let same = self.converted.contains(table) && ways.is_none();
                let name = if same { table.clone() } else { own_table(by) };
                self.table_entry(i, &name, labels.len().next_power_of_two(), (y, number, *index), scope);
                (!same).then(|| (name, entries(labels)))
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
                scope.give_back();
                let (name, labels) = &self.label_tables[&self.layout.owner[i]];
                let name = if ways.is_none() { name.clone() } else { own_table(by) };
                let y = operand::r64(y);
                scope.line(format!("andl\t${}, {narrow}", 8 * labels.len().next_power_of_two() - 8));
                scope.line(format!("leaq\t{name}(%rip), {y}"));
                scope.line(format!("addq\t{y}, {wide}"));
                None
            }
        };
        if let Some((name, labels)) = own.filter(|_| by == i) {
            self.table_beside(&name, &labels, scope);
        }
        scope.line(format!("jmp\t*{wide}"));
        Ok(())
    }
}

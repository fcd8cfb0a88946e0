//! Loops that chase pointers keep the segment base in a register, where that is asked for.
//!
//! Unless the segment is at zero, a segment-relative load takes one or two cycles longer than a plain one; a
//! zero-extending copy into another register (which the processor only renames) and a load relative to the
//! base take none, or one. So a loop without calls, in which loads feed addresses, gets the base on every way
//! into it, and its labels get records that say so. The base's register is one that nobody needs there, or
//! one that the loop does not name: it is pushed on the way in and popped on every way out.
//!
//! What the verifier checks: the base arrives at every label of the loop; the copy is zero-extended; so
//! `disp(%base,%copy)` is in the segment or its guard zone.

use crate::chain;
use crate::flow::{Flow, Liveness};
use crate::isa;
use crate::operand::{Mem, Operand, RBX, Width};
use crate::parse::{Body, Insn, Program};
use crate::stack::Layout;
use crate::tables::Tables;
use std::collections::{HashMap, HashSet};

/// How a load reaches its operand: through a zero-extended copy of the pointer, made here or by an earlier
/// load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    pub base: u8,
    pub copy: u8,
    pub fresh: bool,
}

/// The register of a loop, and whether it is borrowed: pushed meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register {
    pub number: u8,
    pub borrowed: bool,
}

#[derive(Debug, Default)]
pub struct Bases {
    /// The base register at each instruction of such a loop.
    pub register: HashMap<usize, Register>,
    /// After which instruction the way leads into a loop, and which branches do.
    pub enter_after: HashMap<usize, Register>,
    pub enter_by: HashMap<usize, Register>,
    /// After which instruction a borrowed register is given back, and which branches lead out of its loop.
    pub leave_after: HashMap<usize, u8>,
    pub leave_by: HashMap<usize, u8>,
    /// Loads that use it.
    pub loads: HashMap<usize, Load>,
    /// Registers that are taken at an instruction, by the base and by copies.
    pub kept: HashMap<usize, u16>,
}

/// Registers that may hold the base or a copy, best first.
const CANDIDATES: [u8; 14] = [11, 10, 9, 8, 7, 6, 2, 1, 0, RBX, 12, 13, 14, 15];

/// A range of instructions with a branch from its end to its start.
struct Loop {
    first: usize,
    last: usize,
}

pub struct Finder<'a> {
    program: &'a Program,
    flow: &'a Flow,
    layout: &'a Layout,
    live: &'a Liveness,
    tables: &'a Tables,
    targets: &'a HashMap<usize, Vec<usize>>,
    /// Loads share copies.
    merge: bool,
    previous: Vec<Option<usize>>,
    out: Bases,
}

fn pick(from: &[u8], busy: u16) -> Option<u8> {
    from.iter().copied().find(|r| busy & 1 << r == 0)
}

impl<'a> Finder<'a> {
    pub fn new(
        program: &'a Program,
        flow: &'a Flow,
        layout: &'a Layout,
        live: &'a Liveness,
        tables: &'a Tables,
        targets: &'a HashMap<usize, Vec<usize>>,
        merge: bool,
    ) -> Finder<'a> {
        let mut previous: Vec<Option<usize>> = vec![None; program.items.len()];
        for i in 0..program.items.len() {
            if let (Body::Insn(_), Some(n)) = (&program.items[i].body, flow.next[i]) {
                previous[n] = Some(i);
            }
        }
        Finder { program, flow, layout, live, tables, targets, merge, previous, out: Bases::default() }
    }

    pub fn run(mut self) -> Bases {
        let loops = self.loops();
        let chained = self.chained(&loops);
        // The largest that will do: so the base is loaded seldom.
        let mut done: Vec<(usize, usize)> = Vec::new();
        for l in loops.iter().rev() {
            if done.iter().any(|(a, b)| l.first <= *b && *a <= l.last) {
                continue;
            }
            if self.consider(l, &chained).is_some() {
                done.push((l.first, l.last));
            }
        }
        self.out
    }

    /// All loops, the smallest first: each goes as far as branches from below lead into it.
    fn loops(&self) -> Vec<Loop> {
        let mut back: Vec<(usize, usize)> = Vec::new();
        for (t, sources) in self.targets {
            let section = self.program.items[*t].section;
            let last = sources.iter().filter(|s| *s >= t && self.program.items[**s].section == section).max();
            back.extend(last.map(|s| (*t, *s)));
        }
        back.sort_unstable();
        let mut loops = Vec::new();
        for (k, (first, last)) in back.iter().enumerate() {
            let section = self.program.items[*first].section;
            let mut end = *last;
            for (t, s) in &back[k + 1..] {
                if *t > end {
                    break;
                }
                if self.program.items[*t].section == section {
                    end = end.max(*s);
                }
            }
            loops.push(Loop { first: *first, last: end });
        }
        loops.sort_by_key(|l| (l.last - l.first, l.first));
        loops
    }

    /// The chained loads of innermost loops.
    fn chained(&self, loops: &[Loop]) -> HashSet<usize> {
        let mut seen: Vec<(usize, usize)> = Vec::new();
        let mut out = HashSet::new();
        for l in loops {
            if seen.iter().all(|(a, b)| l.first > *b || *a > l.last) {
                seen.push((l.first, l.last));
                let leads = |i| self.flow.successors(self.program, i, &self.tables.targets);
                out.extend(chain::loads(&self.body(l), leads));
            }
        }
        out
    }

    fn body(&self, l: &Loop) -> Vec<(usize, &'a Insn)> {
        let section = self.program.items[l.first].section;
        let program = self.program;
        (l.first..=l.last)
            .filter(|i| program.items[*i].section == section)
            .filter_map(|i| match &program.items[i].body {
                Body::Insn(insn) => Some((i, insn)),
                _ => None,
            })
            .collect()
    }

    /// Where the base must be loaded: after the instruction before the loop, before branches into it.
    fn entries(&self, l: &Loop, body: &[(usize, &Insn)]) -> Option<(Option<usize>, Vec<usize>)> {
        let mut after = None;
        if let Some(p) = self.previous[l.first]
            && let Body::Insn(above) = &self.program.items[p].body
            && self.layout.states[p].is_some()
            && !isa::ends_block(above)
            && !self.layout.noreturn.contains(&p)
            && !self.flow.crosses_entry(self.program, p)
        {
            after = Some(p);
        }
        let inside = |i: usize| body.binary_search_by_key(&i, |(k, _)| *k).is_ok();
        let mut before = Vec::new();
        for (i, _) in body {
            for s in self.targets.get(i).into_iter().flatten().filter(|s| !inside(**s)) {
                let direct = !self.tables.jumps.contains_key(s) && self.layout.states[*s].is_some();
                let ours = self.layout.owner[*s] == self.layout.owner[l.first];
                if !direct || !ours || self.out.register.contains_key(s) {
                    return None;
                }
                before.push(*s);
            }
        }
        (after.is_some() || !before.is_empty()).then_some((after, before))
    }

    fn consider(&mut self, l: &Loop, chained: &HashSet<usize>) -> Option<()> {
        let body = self.body(l);
        let loads: Vec<usize> = body.iter().map(|(i, _)| *i).filter(|i| chained.contains(i)).collect();
        if loads.is_empty() {
            return None;
        }
        let owner = self.layout.owner[l.first];
        let saves = &self.layout.states[l.first].as_ref()?.saves;
        let (mut busy, mut named) = (0u16, 0u16);
        for (i, insn) in &body {
            let stays = self.layout.states[*i].as_ref().is_some_and(|s| s.saves == *saves)
                && !self.out.enter_by.contains_key(i)
                && self.layout.owner[*i] == owner
                && isa::stem(insn) != "call"
                // Neither base nor copies may take what few registers such an instruction can have.
                && (isa::excluded(insn) == 0 || isa::memory(insn).is_none())
                && !matches!(insn.args.first(), Some(Operand::Star(_)))
                && (*i == l.last || !self.flow.crosses_entry(self.program, *i));
            if !stays {
                return None;
            }
            named |= isa::touched(insn);
            busy |= self.live.regs[*i] | isa::touched(insn);
        }
        let (after, before) = self.entries(l, &body)?;
        for s in &before {
            let Body::Insn(insn) = &self.program.items[*s].body else { return None };
            busy |= self.live.regs[*s] | isa::touched(insn);
        }
        let free = pick(&CANDIDATES, busy).map(|number| Register { number, borrowed: false });
        let room = saves.len() < 7;
        let lent =
            || pick(&CANDIDATES, named).filter(|_| room).map(|number| Register { number, borrowed: true });
        let register = free.or_else(lent)?;
        if let Some(p) = after {
            self.out.enter_after.insert(p, register);
        }
        self.out.enter_by.extend(before.iter().map(|s| (*s, register)));
        for (i, insn) in &body {
            self.out.register.insert(*i, register);
            *self.out.kept.entry(*i).or_default() |= 1 << register.number;
            if register.borrowed {
                self.leave(*i, insn, l, register.number);
            }
        }
        for (k, (i, _)) in body.iter().enumerate() {
            if chained.contains(i) && !self.out.loads.contains_key(i) {
                self.copy(&body[k..], register.number, chained);
            }
        }
        Some(())
    }

    /// Notes where a borrowed register is given back.
    fn leave(&mut self, i: usize, insn: &Insn, l: &Loop, register: u8) {
        let target = isa::direct_target(insn).filter(|t| self.flow.is_local_label(t));
        let section = self.program.items[l.first].section;
        let inside = |t: usize| (l.first..=l.last).contains(&t) && self.program.items[t].section == section;
        let stays = target.and_then(|t| self.flow.at_label(t)).is_some_and(inside);
        let branch = isa::is_jcc(&insn.op) || matches!(isa::stem(insn), "jmp" | "ret");
        if branch && !stays {
            self.out.leave_by.insert(i, register);
        }
        if i == l.last && !isa::ends_block(insn) {
            self.out.leave_after.insert(i, register);
        }
    }

    /// Chooses a copy for the first instruction's load, good for as many of those that follow as a register
    /// is free for.
    fn copy(&mut self, rest: &[(usize, &Insn)], base: u8, chained: &HashSet<usize>) {
        let (i, insn) = rest[0];
        let Some(pointer) = chain::pointer_load(insn).map(Mem::regs) else { return };
        let mut busy = 0u16;
        let mut best: Option<(u8, usize)> = None;
        let mut users = vec![];
        for (k, (j, insn)) in rest.iter().enumerate() {
            if k > 0 && (!self.merge || self.targets.contains_key(j) || self.out.loads.contains_key(j)) {
                break;
            }
            let uses = chained.contains(j) && chain::pointer_load(insn).is_some_and(|m| m.regs() == pointer);
            // The last user may overwrite the copy with what it loads.
            let kept = self.out.kept.get(j).copied().unwrap_or(0);
            if uses && let Some(r) = self.overwritten(insn, busy | kept | pointer) {
                best = Some((r, users.len() + 1));
            }
            busy |= isa::touched(insn) | kept;
            if uses {
                users.push(*j);
                if let Some(r) = pick(&CANDIDATES, busy | self.live.regs[*j]) {
                    best = Some((r, users.len()));
                }
            }
            busy |= self.live.regs[*j];
            if isa::may_write(insn) & pointer != 0 || isa::ends_block(insn) {
                break;
            }
        }
        let Some((copy, count)) = best else { return };
        for (n, j) in users[..count].iter().enumerate() {
            self.out.loads.insert(*j, Load { base, copy, fresh: n == 0 });
        }
        for (j, _) in rest.iter().take_while(|(j, _)| *j < users[count - 1] || *j == i) {
            *self.out.kept.entry(*j).or_default() |= 1 << copy;
        }
    }

    /// A register that the load defines and that is free until then.
    fn overwritten(&self, insn: &Insn, busy: u16) -> Option<u8> {
        let to = insn.args.last().and_then(Operand::gpr)?;
        let whole = insn.op.starts_with("mov") && matches!(to.width, Width::B32 | Width::B64);
        (whole && busy & 1 << to.num == 0).then_some(to.num)
    }
}

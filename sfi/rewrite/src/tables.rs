//! Finds what each indirect jump may reach: switch tables, constant tables of labels, other computed gotos.
//!
//! A forward pass over constants (`lea table(%rip)`, copies, the load of an entry, the sum) tells which table feeds
//! which jump. The sequence that the verifier knows is put at the jump itself; the load and the sum before it go away
//! and leave the index in the register.

use crate::flow::Flow;
use crate::isa;
use crate::operand::{AddrReg, Mem, Operand};
use crate::parse::{Body, Insn, Program};
use std::collections::{HashMap, HashSet};

/// What a jump through a table becomes.
#[derive(Debug, Clone)]
pub enum Jump {
    /// `jmp *%reg` where the register holds the index by now; the table is padded in place.
    /// `base` is the register that the compiler keeps the table's address in.
    Switch { table: String, base: u8 },
    /// `jmp *(base,index,8)` with a constant table of labels.
    /// `base` is the register that the compiler keeps the table's address in.
    Labels { table: String, index: u8, base: u8 },
    /// Any label of the function whose address is taken.
    Computed,
}

#[derive(Debug, Default)]
pub struct Tables {
    /// Switch tables: entries by table label.
    pub relative: HashMap<String, Vec<String>>,
    /// Tables of label addresses.
    pub absolute: HashMap<String, Vec<String>>,
    /// Indirect jumps and what they are.
    pub jumps: HashMap<usize, Jump>,
    /// Targets of each indirect jump.
    pub targets: HashMap<usize, Vec<String>>,
    /// Loads of entries: the index register and the destination. They become moves.
    pub loads: HashMap<usize, (u8, u8)>,
    /// Sums that go away.
    pub sums: HashSet<usize>,
    /// Last item of each switch table, where padding goes.
    pub last_entry: HashMap<usize, String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Val {
    Unknown,
    Table(String),
    Entry(String, usize),
    Target(String, usize, usize),
}

fn collect(program: &Program, flow: &Flow, out: &mut Tables) {
    let mut current: Vec<(usize, String)> = Vec::new();
    for (i, item) in program.items.iter().enumerate() {
        match &item.body {
            Body::Label(l) => current.push((item.section, l.clone())),
            Body::Insn(_) => current.clear(),
            Body::Directive(d) => {
                let (word, rest) = d.split_once(char::is_whitespace).unwrap_or((d, ""));
                let Some((section, label)) = current.last().cloned() else { continue };
                match word {
                    ".long" | ".4byte" if section == item.section => {
                        for e in rest.split(',') {
                            match e.trim().split_once('-') {
                                Some((t, b)) if b.trim() == label && flow.is_local_label(t.trim()) => {
                                    out.relative.entry(label.clone()).or_default().push(t.trim().into());
                                    out.last_entry.retain(|_, l| *l != label);
                                    out.last_entry.insert(i, label.clone());
                                }
                                _ => current.clear(),
                            }
                        }
                    }
                    ".quad" | ".8byte" if section == item.section => {
                        for e in rest.split(',') {
                            let t = e.trim();
                            let is_code = flow
                                .labels
                                .get(t)
                                .is_some_and(|l| program.sections[program.items[*l].section].exec);
                            if is_code && flow.is_local_label(t) {
                                out.absolute.entry(label.clone()).or_default().push(t.into());
                            } else {
                                out.absolute.remove(&label);
                                current.clear();
                                break;
                            }
                        }
                    }
                    ".byte" | ".zero" | ".ascii" | ".asciz" | ".string" | ".short" | ".value" => {
                        current.clear()
                    }
                    _ => {}
                }
            }
        }
    }
}

fn step(insn: &Insn, at: usize, regs: &mut [Val; 16], tables: &Tables) {
    let read =
        |o: &Operand, regs: &[Val; 16]| o.gpr().map_or(Val::Unknown, |g| regs[usize::from(g.num)].clone());
    let mut set = None;
    match (isa::stem(insn), insn.args.as_slice()) {
        ("lea", [Operand::Mem(m), Operand::Gpr(d)]) if m.is_rip() => {
            set = Some((d.num, Val::Table(m.disp.clone())));
        }
        ("mov", [Operand::Gpr(s), Operand::Gpr(d)]) => set = Some((d.num, regs[usize::from(s.num)].clone())),
        (
            "movslq",
            [
                Operand::Mem(Mem {
                    base: Some(AddrReg::Gpr(b)), index: Some(AddrReg::Gpr(_)), scale: 4, ..
                }),
                Operand::Gpr(d),
            ],
        ) => {
            if let Val::Table(t) = &regs[usize::from(b.num)]
                && tables.relative.contains_key(t)
            {
                set = Some((d.num, Val::Entry(t.clone(), at)));
            }
        }
        ("add", [s, Operand::Gpr(d)]) => {
            if let (Val::Table(a), Val::Entry(b, l)) = (read(s, regs), regs[usize::from(d.num)].clone())
                && a == b
            {
                set = Some((d.num, Val::Target(a, l, at)));
            }
        }
        ("call", _) => {
            for r in 0..16 {
                if isa::CALLER_SAVED & 1 << r != 0 {
                    regs[r] = Val::Unknown;
                }
            }
            return;
        }
        _ => {}
    }
    if let Some((r, v)) = set {
        regs[usize::from(r)] = v;
        return;
    }
    let dirty = isa::may_write(insn);
    for r in 0..16 {
        if dirty & 1 << r != 0 {
            regs[r] = Val::Unknown;
        }
    }
}

pub fn find(program: &Program, flow: &Flow) -> Tables {
    let mut tables = Tables::default();
    collect(program, flow, &mut tables);
    let n = program.items.len();
    let mut taken: HashSet<String> = HashSet::new();
    for t in tables.absolute.values().flatten() {
        taken.insert(t.clone());
    }
    for item in &program.items {
        if let Body::Insn(insn) = &item.body
            && let Some((_, m)) = isa::memory(insn)
            && isa::stem(insn) == "lea"
            && m.is_rip()
            && flow.is_local_label(&m.disp)
            && flow.labels.get(&m.disp).is_some_and(|l| program.sections[program.items[*l].section].exec)
        {
            taken.insert(m.disp.clone());
        }
    }
    // Whose labels: the function that stands before a label in its section.
    let mut owner = vec![0usize; n];
    let mut current: HashMap<usize, usize> = HashMap::new();
    for i in 0..n {
        let section = program.items[i].section;
        if let Body::Label(l) = &program.items[i].body
            && flow.functions.contains(l)
        {
            current.insert(section, i);
        }
        owner[i] = current.get(&section).copied().unwrap_or(0);
    }
    let taken_in = |i: usize| -> Vec<String> {
        let mut v: Vec<String> =
            taken.iter().filter(|t| owner[flow.labels[*t]] == owner[i]).cloned().collect();
        v.sort();
        v
    };
    const NOTHING: [Val; 16] = [const { Val::Unknown }; 16];
    let mut input: Vec<Option<[Val; 16]>> = vec![None; n];
    // Twice: tables found in the first round give edges for the second.
    for _ in 0..2 {
        let mut work: Vec<usize> = flow.entries.iter().filter_map(|e| flow.next[*e]).collect();
        for w in &work {
            input[*w] = Some(NOTHING);
        }
        while let Some(i) = work.pop() {
            let Body::Insn(insn) = &program.items[i].body else { continue };
            let mut regs = input[i].clone().unwrap_or(NOTHING);
            if isa::stem(insn) == "jmp"
                && let Some(Operand::Star(o)) = insn.args.first()
                && isa::got_target(insn).is_none()
            {
                let found = match &**o {
                    Operand::Gpr(g) => match &regs[usize::from(g.num)] {
                        Val::Target(t, l, s) => {
                            Some((Jump::Switch { table: t.clone(), base: 0 }, Some((*l, *s))))
                        }
                        _ => None,
                    },
                    Operand::Mem(Mem {
                        base: Some(AddrReg::Gpr(b)),
                        index: Some(AddrReg::Gpr(x)),
                        scale: 8,
                        disp,
                        ..
                    }) if disp.is_empty() => match &regs[usize::from(b.num)] {
                        Val::Table(t) if tables.absolute.contains_key(t) => {
                            Some((Jump::Labels { table: t.clone(), index: x.num, base: b.num }, None))
                        }
                        _ => None,
                    },
                    _ => None,
                };
                match found {
                    Some((Jump::Switch { table, mut base }, Some((load, sum)))) => {
                        if let Body::Insn(l) = &program.items[load].body
                            && let Some((_, m)) = isa::memory(l)
                            && let (Some(x), Some(d)) = (m.index_gpr(), l.args[1].gpr())
                        {
                            tables.loads.insert(load, (x, d.num));
                            base = m.base_gpr().unwrap_or(d.num);
                        }
                        tables.sums.insert(sum);
                        tables.targets.insert(i, tables.relative[&table].clone());
                        tables.jumps.insert(i, Jump::Switch { table, base });
                    }
                    Some((jump, _)) => {
                        if let Jump::Labels { table, .. } = &jump {
                            tables.targets.insert(i, tables.absolute[table].clone());
                        }
                        tables.jumps.insert(i, jump);
                    }
                    None => {
                        let labels = taken_in(i);
                        if labels.is_empty() {
                            tables.jumps.remove(&i);
                            tables.targets.remove(&i);
                        } else {
                            tables.targets.insert(i, labels);
                            tables.jumps.insert(i, Jump::Computed);
                        }
                    }
                }
            }
            step(insn, i, &mut regs, &tables);
            for s in flow.successors(program, i, &tables.targets) {
                match &mut input[s] {
                    None => {
                        input[s] = Some(regs.clone());
                        work.push(s);
                    }
                    Some(old) => {
                        let mut changed = false;
                        for r in 0..16 {
                            if old[r] != regs[r] && old[r] != Val::Unknown {
                                old[r] = Val::Unknown;
                                changed = true;
                            }
                        }
                        if changed {
                            work.push(s);
                        }
                    }
                }
            }
        }
    }
    tables
}

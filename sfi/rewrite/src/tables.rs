//! Finds what each indirect jump may reach: switch tables, constant tables of labels, other computed gotos.
//!
//! A forward pass over constants (`lea table(%rip)`, copies, the load of an entry, the sum) tells which table
//! feeds which jump. The sequence that the verifier knows is put at the jump itself; the load and the sum
//! before it go away and leave the index in the register.

use crate::flow::Flow;
use crate::isa;
use crate::operand::{AddrReg, Mem, Operand, RAX};
use crate::parse::{Body, Insn, Program};
use crate::symbols::{self, names};
use std::collections::{BTreeSet, HashMap, HashSet};

/// What a jump through a table becomes.
#[derive(Debug, Clone)]
pub enum Jump {
    /// `jmp *%reg` where the register holds the index by now; the table is padded in place.
    /// `base` is the register that the compiler keeps the table's address in, if it is there at the jump.
    Switch { table: String, base: Option<u8> },
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
    /// Sums of the table's address and the entry. They go away, or become moves where the sum is not in the
    /// entry's register.
    pub sums: HashMap<usize, Option<(u8, u8)>>,
    /// Last item of each switch table, where padding goes.
    pub last_entry: HashMap<usize, String>,
    /// Labels of code that data name, wherever: a computed goto may lead there.
    pub named: HashSet<String>,
    /// Tables of labels that are not only jumped through.
    pub data: HashSet<String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Val {
    Unknown,
    Table(String),
    /// An entry of the table, by these loads; what it leads to, by these sums.
    Entry(String, BTreeSet<usize>),
    Target(String, BTreeSet<usize>, BTreeSet<usize>),
}

impl Val {
    /// What holds where both ways meet.
    fn meet(&self, other: &Val) -> Val {
        match (self, other) {
            (a, b) if a == b => a.clone(),
            (Val::Entry(a, x), Val::Entry(b, y)) if a == b => Val::Entry(a.clone(), x | y),
            (Val::Target(a, x, s), Val::Target(b, y, t)) if a == b => Val::Target(a.clone(), x | y, s | t),
            _ => Val::Unknown,
        }
    }
}

fn collect(program: &Program, flow: &Flow, out: &mut Tables) {
    let code = |t: &str| {
        let at = flow.labels.get(t).filter(|_| flow.is_local_label(t));
        at.is_some_and(|l| program.sections[program.items[*l].section].exec)
    };
    let mut current: Option<(usize, String)> = None;
    for (i, item) in program.items.iter().enumerate() {
        let section = &program.sections[item.section];
        match &item.body {
            Body::Label(l) => current = Some((item.section, l.clone())),
            Body::Insn(_) => current = None,
            Body::Directive(d) if symbols::is_data(d) || d.starts_with(".zero") || d.starts_with(".skip") => {
                let (word, rest) = d.split_once(char::is_whitespace).unwrap_or((d, ""));
                let owner = current.clone().filter(|(section, _)| *section == item.section);
                let own = owner.as_ref().map_or("", |(_, label)| label);
                for e in rest.split(',').map(str::trim) {
                    let entry =
                        e.split_once('-').filter(|(t, b)| b.trim() == own && flow.is_local_label(t.trim()));
                    if let (".long" | ".4byte", Some((t, _))) = (word, entry) {
                        out.relative.entry(own.into()).or_default().push(t.trim().into());
                        out.last_entry.retain(|_, l| *l != own);
                        out.last_entry.insert(i, own.into());
                        continue;
                    }
                    if section.allocated() {
                        out.named.extend(names(e).filter(|t| code(t)).map(String::from));
                        out.data.extend(names(e).filter(|t| flow.labels.contains_key(*t)).map(String::from));
                    }
                    let label = matches!(word, ".quad" | ".8byte") && code(e) && !section.writable();
                    if label && current.is_some() && !own.is_empty() {
                        out.absolute.entry(own.into()).or_default().push(e.into());
                    } else {
                        out.absolute.remove(own);
                        current = None;
                    }
                }
            }
            _ => {}
        }
    }
}

/// Tables whose address the instruction does something else with than to copy it or to jump.
fn used(insn: &Insn, flow: &Flow, regs: &[Val; 16]) -> Vec<String> {
    let leaves = isa::direct_target(insn).is_some_and(|t| !flow.is_local_label(t));
    let through = isa::memory(insn).map_or(0, |(_, m)| m.regs());
    let uses = match isa::stem(insn) {
        // Of what they write they read nothing, be it a part of a register.
        "mov" if insn.args.last().is_some_and(|o| o.gpr().is_some()) => through,
        op if op.starts_with("set") => through,
        "jmp" if isa::direct_target(insn).is_none() => 0,
        "ret" => 1 << RAX,
        // In rax there is no more than a count.
        "call" => (isa::ARGUMENTS | isa::effects(insn).uses) & !(1 << RAX),
        _ if leaves => isa::ARGUMENTS,
        _ => isa::effects(insn).uses,
    };
    let table = |r: usize| match &regs[r] {
        Val::Table(t) if uses & 1 << r != 0 => Some(t.clone()),
        _ => None,
    };
    (0..16).filter_map(table).collect()
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
                set = Some((d.num, Val::Entry(t.clone(), BTreeSet::from([at]))));
            }
        }
        ("add", [s, Operand::Gpr(d)]) => {
            let (one, other) = (read(s, regs), regs[usize::from(d.num)].clone());
            if let (Val::Table(a), Val::Entry(b, l)) | (Val::Entry(b, l), Val::Table(a)) = (one, other)
                && a == b
            {
                set = Some((d.num, Val::Target(a, l, BTreeSet::from([at]))));
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
    let mut taken = tables.named.clone();
    for item in &program.items {
        if let Body::Insn(insn) = &item.body
            && let Some((_, m)) = isa::memory(insn)
            && m.is_rip()
        {
            let address = isa::stem(insn) == "lea" && flow.is_local_label(&m.disp);
            let exec = |l: &usize| program.sections[program.items[*l].section].exec;
            if address && flow.labels.get(&m.disp).is_some_and(exec) {
                taken.insert(m.disp.clone());
            } else if !address {
                tables.data.extend(names(&m.disp).map(String::from));
            }
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
    // Which loads and sums feed a jump.
    let mut through: HashMap<usize, (BTreeSet<usize>, BTreeSet<usize>)> = HashMap::new();
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
                        Val::Target(t, loads, sums) => Some(Jump::Switch {
                            table: t.clone(),
                            base: table_register(program, loads, t, &regs),
                        })
                        .inspect(|_| {
                            through.insert(i, (loads.clone(), sums.clone()));
                        }),
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
                            Some(Jump::Labels { table: t.clone(), index: x.num, base: b.num })
                        }
                        _ => None,
                    },
                    _ => None,
                };
                match found {
                    Some(jump) => {
                        let targets = match &jump {
                            Jump::Switch { table, .. } => &tables.relative[table],
                            Jump::Labels { table, .. } => &tables.absolute[table],
                            Jump::Computed => &Vec::new(),
                        };
                        tables.targets.insert(i, targets.clone());
                        tables.jumps.insert(i, jump);
                    }
                    None => {
                        through.remove(&i);
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
            tables.data.extend(used(insn, flow, &regs));
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
                            let met = old[r].meet(&regs[r]);
                            if let (Val::Table(a), Val::Table(b)) = (&old[r], &regs[r])
                                && a != b
                            {
                                tables.data.extend([a.clone(), b.clone()]);
                            }
                            changed |= met != old[r];
                            old[r] = met;
                        }
                        if changed {
                            work.push(s);
                        }
                    }
                }
            }
        }
    }
    for (loads, sums) in through.values() {
        for sum in sums {
            let Body::Insn(add) = &program.items[*sum].body else { continue };
            let of = |o: &Operand| o.gpr().map(|g| g.num);
            let entry = |r: &(u8, u8)| {
                input[*sum].as_ref().is_some_and(|regs| matches!(regs[usize::from(r.0)], Val::Entry(..)))
            };
            let moved = of(&add.args[0]).zip(of(&add.args[1])).filter(entry);
            tables.sums.insert(*sum, moved);
        }
        for load in loads {
            if let Body::Insn(l) = &program.items[*load].body
                && let Some((_, m)) = isa::memory(l)
                && let (Some(x), Some(d)) = (m.index_gpr(), l.args[1].gpr())
            {
                tables.loads.insert(*load, (x, d.num));
            }
        }
    }
    tables
}

/// The register that the entry was loaded by, if it still holds the table's address.
fn table_register(program: &Program, loads: &BTreeSet<usize>, table: &str, regs: &[Val; 16]) -> Option<u8> {
    let Body::Insn(load) = &program.items[*loads.first()?].body else { return None };
    let base = isa::memory(load).and_then(|(_, m)| m.base_gpr())?;
    (regs[usize::from(base)] == Val::Table(table.into())).then_some(base)
}

//! The control-flow graph of a whole file: for each instruction item, where it can go, and who is an entry.
//!
//! It is not cut into functions: gcc moves cold parts to other sections, and a part belongs to whoever
//! reaches it.

use crate::isa;
use crate::operand::{Operand, R10, R11, RAX, RDX};
use crate::parse::{Body, Insn, Program};
use crate::stack::{Function, Layout};
use crate::symbols;
use std::collections::{HashMap, HashSet};

#[derive(Debug)]
pub struct Flow {
    /// For each item: index of the next instruction item in its section, over labels and directives.
    pub next: Vec<Option<usize>>,
    /// Label name to its item.
    pub labels: HashMap<String, usize>,
    /// Names of functions defined here.
    pub functions: HashSet<String>,
    /// Items that are function entry labels.
    pub entries: Vec<usize>,
}

impl Flow {
    pub fn build(program: &Program) -> Flow {
        let n = program.items.len();
        let mut labels = HashMap::new();
        let mut functions = HashSet::new();
        for (i, item) in program.items.iter().enumerate() {
            match &item.body {
                Body::Label(name) => {
                    labels.insert(name.clone(), i);
                }
                body @ Body::Directive(_) => {
                    functions.extend(symbols::function(body).filter(|name| !name.ends_with(".cold")));
                }
                Body::Insn(_) => {}
            }
        }
        functions.retain(|f| labels.contains_key(f));
        let entries = (0..n)
            .filter(|i| matches!(&program.items[*i].body, Body::Label(l) if functions.contains(l)))
            .collect();
        let mut next = vec![None; n];
        let mut following: HashMap<usize, usize> = HashMap::new();
        for i in (0..n).rev() {
            let item = &program.items[i];
            next[i] = following.get(&item.section).copied();
            if matches!(item.body, Body::Insn(_)) {
                following.insert(item.section, i);
            }
        }
        Flow { next, labels, functions, entries }
    }

    /// The first instruction at a label.
    pub fn at_label(&self, name: &str) -> Option<usize> {
        self.labels.get(name).and_then(|i| self.next[*i])
    }

    pub fn is_local_label(&self, name: &str) -> bool {
        self.labels.contains_key(name) && !self.functions.contains(name)
    }

    /// Does a function entry label stand between this item and the next instruction?
    pub fn crosses_entry(&self, program: &Program, from: usize) -> bool {
        let Some(to) = self.next[from] else { return true };
        let section = program.items[from].section;
        program.items[from + 1..to].iter().any(|it| {
            it.section == section && matches!(&it.body, Body::Label(l) if self.functions.contains(l))
        })
    }

    /// Successors by direct branch and fall-through; `table` gives those of indirect jumps.
    pub fn successors(&self, program: &Program, i: usize, table: &HashMap<usize, Vec<String>>) -> Vec<usize> {
        let Body::Insn(insn) = &program.items[i].body else { return Vec::new() };
        let mut out = Vec::new();
        if let Some(targets) = table.get(&i) {
            out.extend(targets.iter().filter_map(|t| self.at_label(t)));
        } else if isa::stem(insn) != "call"
            && let Some(t) = isa::direct_target(insn)
            && self.is_local_label(t)
        {
            out.extend(self.at_label(t));
        }
        if !isa::ends_block(insn) && !self.crosses_entry(program, i) {
            out.extend(self.next[i]);
        }
        out
    }
}

/// Live registers and flags after each instruction.
#[derive(Debug)]
pub struct Liveness {
    pub regs: Vec<u16>,
    pub flags: Vec<bool>,
}

/// Number of vector arguments, and the chain of gcc's nested functions: set for the calls that want them;
/// elsewhere they are nobody's.
const SELDOM: u16 = 1 << RAX | 1 << R10;

/// Which of those have been written, on some way, since the last call.
fn set_since_call(program: &Program, succ: &[Vec<usize>]) -> Vec<u16> {
    let mut set = vec![0u16; program.items.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for (i, item) in program.items.iter().enumerate() {
            let Body::Insn(insn) = &item.body else { continue };
            let out = match isa::stem(insn) {
                "call" => 0,
                _ => set[i] | isa::may_write(insn) & SELDOM,
            };
            for s in &succ[i] {
                changed |= out & !set[*s] != 0;
                set[*s] |= out;
            }
        }
    }
    set
}

/// What a function keeps that saves more registers than the usual convention asks for (`preserve_most` and
/// the like): those, and what it never touches. `r11` is nobody's in all conventions.
fn kept(program: &Program, layout: &Layout) -> Vec<u16> {
    let mut written = vec![1 << R11; layout.functions.len()];
    for (i, item) in program.items.iter().enumerate() {
        if let (Body::Insn(insn), Some(_)) = (&item.body, &layout.states[i]) {
            written[layout.owner[i]] |= match isa::stem(insn) {
                "call" => isa::CALLER_SAVED,
                _ => isa::may_write(insn),
            };
        }
    }
    let more = |saved: u16| saved & isa::CALLER_SAVED & !(1 << RAX) != 0;
    let kept = |(written, f): (&u16, &Function)| if more(f.saved) { !written | f.saved } else { 0 };
    written.iter().zip(&layout.functions).map(kept).collect()
}

fn transfer(insn: &Insn, arguments: u16, kept: u16, local: bool, out: u16, flags: bool) -> (u16, bool) {
    match isa::stem(insn) {
        // What is read behind a call and was not written there is a result, or the callee is one that keeps
        // it.
        "call" => {
            let e = isa::effects(insn);
            return ((out & !(1 << R11)) | arguments | e.uses, false);
        }
        "ret" => return (isa::CALLEE_SAVED | 1 << RAX | 1 << RDX | kept, false),
        "ud2" | "hlt" => return (0, false),
        _ => {}
    }
    let e = isa::effects(insn);
    let mut regs = (out & !e.defs) | e.uses;
    let mut live_flags = (flags && !e.kills_flags) || e.reads_flags;
    // A jump out of the function is a call and a return.
    if !local && (isa::stem(insn) == "jmp" || isa::is_jcc(&insn.op)) {
        regs |= isa::ARGUMENTS | isa::CALLEE_SAVED | kept;
        live_flags |= isa::is_jcc(&insn.op);
    }
    (regs, live_flags)
}

impl Liveness {
    pub fn compute(
        program: &Program,
        flow: &Flow,
        table: &HashMap<usize, Vec<String>>,
        layout: &Layout,
    ) -> Liveness {
        let n = program.items.len();
        let succ: Vec<Vec<usize>> = (0..n).map(|i| flow.successors(program, i, table)).collect();
        let (set, kept) = (set_since_call(program, &succ), kept(program, layout));
        let mut regs_in = vec![0u16; n];
        let mut flags_in = vec![false; n];
        let mut live = Liveness { regs: vec![0; n], flags: vec![false; n] };
        let mut changed = true;
        while changed {
            changed = false;
            for i in (0..n).rev() {
                let Body::Insn(insn) = &program.items[i].body else { continue };
                let out = succ[i].iter().fold(0, |m, s| m | regs_in[*s]);
                let flags = succ[i].iter().any(|s| flags_in[*s]);
                let target = isa::direct_target(insn);
                let local = table.contains_key(&i)
                    || target.is_some_and(|t| flow.is_local_label(t))
                    || !matches!(insn.args.first(), Some(Operand::Star(_) | Operand::Mem(_)));
                // A function of this file shows what it reads.
                let own = target.and_then(|t| flow.functions.get(t)).and_then(|t| flow.at_label(t));
                let arguments = isa::ARGUMENTS & !SELDOM | SELDOM & (set[i] | own.map_or(0, |t| regs_in[t]));
                let kept = kept.get(layout.owner[i]).copied().unwrap_or(0);
                let (r, f) = transfer(insn, arguments, kept, local, out, flags);
                live.regs[i] = out;
                live.flags[i] = flags;
                if r != regs_in[i] || f != flags_in[i] {
                    regs_in[i] = r;
                    flags_in[i] = f;
                    changed = true;
                }
            }
        }
        live
    }
}

//! Prints the confined program: every item in its place, what each instruction has become, slots and records
//! at the end.

mod access;
mod detour;
mod frame;
mod insn;
mod jumps;
mod unwind;

use crate::base::{Bases, Finder};
use crate::error::{Error, Kind};
use crate::flow::{Flow, Liveness};
use crate::isa;
use crate::operand;
use crate::parse::{Body, Program};
use crate::records::{self, LabelFacts};
use crate::stack::Layout;
use crate::symbols;
use crate::tables::{Jump, Tables};
use crate::{Level, Options};
use detour::enter;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

pub struct Emitter<'a> {
    program: &'a Program,
    flow: &'a Flow,
    tables: &'a Tables,
    layout: &'a Layout,
    live: &'a Liveness,
    options: &'a Options,
    file: &'a str,
    functions: HashSet<String>,
    weak: HashSet<String>,
    /// Label tables of functions with computed gotos: name and labels.
    label_tables: HashMap<usize, (String, Vec<String>)>,
    /// Labels that are reached through a slot.
    slots: HashMap<String, String>,
    /// Tables of labels that become tables of offsets, under the same name.
    converted: BTreeSet<String>,
    bases: Bases,
    /// Instructions whose result nobody needs.
    idle: HashSet<usize>,
    /// Jumps through tables that push registers.
    lent: HashMap<usize, jumps::Lent>,
    /// Code that conditional branches make a detour through, by section, and the branch.
    detours: Vec<(usize, usize, String)>,
    unwind: unwind::Unwind,
    out: String,
}

impl<'a> Emitter<'a> {
    pub fn new(
        program: &'a Program,
        flow: &'a Flow,
        tables: &'a Tables,
        layout: &'a Layout,
        live: &'a Liveness,
        options: &'a Options,
        file: &'a str,
    ) -> Emitter<'a> {
        let functions = symbols::function_names(program, flow);
        let weak = symbols::weak_undefined(program, flow);
        let mut e = Emitter {
            program,
            flow,
            tables,
            layout,
            live,
            options,
            file,
            functions,
            weak,
            label_tables: HashMap::new(),
            slots: HashMap::new(),
            converted: BTreeSet::new(),
            bases: Bases::default(),
            idle: HashSet::new(),
            lent: HashMap::new(),
            detours: Vec::new(),
            unwind: unwind::Unwind::default(),
            out: String::from(unwind::SECTION),
        };
        let mut computed: Vec<usize> =
            tables.jumps.iter().filter(|(_, j)| matches!(j, Jump::Computed)).map(|(i, _)| *i).collect();
        computed.sort_unstable();
        for i in computed {
            let owner = layout.owner[i];
            if layout.states[i].is_none() || e.label_tables.contains_key(&owner) {
                continue;
            }
            let name = format!(".Lpbl_lt{owner}");
            let labels = tables.targets[&i].clone();
            for (k, l) in labels.iter().enumerate() {
                e.slots.insert(l.clone(), format!("{name}_{k}"));
            }
            e.label_tables.insert(owner, (name, labels));
        }
        // Where the program reads labels out of a table itself, it has to stay.
        for (i, jump) in &tables.jumps {
            if let Jump::Labels { table, .. } = jump
                && layout.states[*i].is_some()
                && !e.label_tables.contains_key(&layout.owner[*i])
                && !tables.data.contains(table)
            {
                e.converted.insert(table.clone());
            }
        }
        e
    }

    fn error(&self, i: usize, kind: Kind) -> Error {
        Error::new(self.file, self.program.items[i].line, kind)
    }

    fn push(&mut self, text: impl AsRef<str>) {
        self.unwind.copy(text.as_ref(), &mut self.out);
    }

    pub fn run(mut self) -> Result<String, Error> {
        let targets = records::branch_targets(self.program, self.flow, &self.tables.targets);
        if self.options.base && self.options.level == Level::Full {
            let (program, flow, tables) = (self.program, self.flow, self.tables);
            let merge = self.options.merge;
            self.bases = Finder::new(program, flow, self.layout, self.live, tables, &targets, merge).run();
        }
        self.lent = self.lending();
        self.idle = self.idle_addresses();
        let mut needed = records::needed(self.program, self.flow, self.layout, &targets);
        if !self.bases.register.is_empty() {
            needed.extend(self.bases.register.keys().filter(|i| targets.contains_key(i)));
        }
        let mut record_labels: BTreeMap<usize, String> = BTreeMap::new();
        let mut tables_done: HashSet<usize> = HashSet::new();
        let mut in_converted = false;
        // Where in the text the last record's label is.
        let mut recorded = 0;
        for i in 0..self.program.items.len() {
            let item = &self.program.items[i];
            match &item.body {
                Body::Label(name) if self.converted.contains(name) => in_converted = true,
                Body::Directive(d) if in_converted && (d.starts_with(".quad") || d.starts_with(".8byte")) => {
                }
                Body::Label(name) => {
                    in_converted = false;
                    let name =
                        if self.flow.functions.contains(name) { symbols::code(name) } else { name.clone() };
                    self.push(format!("{name}:"));
                }
                Body::Directive(d) if symbols::is_data(d) && self.program.sections[item.section].exec => {
                    return Err(self.error(i, Kind::Data(d.clone())));
                }
                Body::Directive(d) => {
                    self.unwind.directive(d, &mut self.out);
                    self.directive(i, d);
                }
                Body::Insn(insn) => {
                    let Some(state) = &self.layout.states[i] else {
                        // Nobody gets here.
                        if let Some((at, name)) = symbols::untyped(self.program, self.flow, i) {
                            return Err(self.error(at, Kind::Untyped(name.into())));
                        }
                        let first = i == 0 || !matches!(self.program.items[i - 1].body, Body::Insn(_));
                        if first {
                            self.push("\tud2");
                        }
                        continue;
                    };
                    // An address has one record, though instructions that became nothing lie there, too.
                    let silent = |l: &str| {
                        l.ends_with(':') || l.trim().starts_with(".loc") || l.trim().starts_with(".cfi")
                    };
                    let same = self.out[recorded..].lines().all(silent);
                    if needed.contains(&i) && !(same && recorded != 0) {
                        let label = format!(".Lpbl_f{i}");
                        recorded = self.out.len();
                        self.push(format!("{label}:"));
                        record_labels.insert(i, label);
                    }
                    self.unwind_before(i);
                    let lines = self.insn(i, insn, state).map_err(|k| self.error(i, k))?;
                    for l in lines {
                        self.push(l);
                    }
                    if let Some(r) = self.bases.leave_after.get(&i) {
                        self.push(format!("\tpopq\t{}", operand::r64(*r)));
                    }
                    if let Some(r) = self.bases.enter_after.get(&i) {
                        self.push(enter(*r).join("\n"));
                    }
                    let runs_out = !isa::ends_block(insn) && self.flow.crosses_entry(self.program, i);
                    let stops = self.layout.noreturn.contains(&i) || runs_out;
                    if stops {
                        self.push("\tud2");
                    }
                    self.detour(i, insn);
                    self.ways(i);
                    if stops || isa::ends_block(insn) {
                        self.detours(item.section);
                    }
                    if self.by_slots(i) && tables_done.insert(self.layout.owner[i]) {
                        let (name, labels) = self.label_tables[&self.layout.owner[i]].clone();
                        self.slot_table(&name, &labels, |k| Some(format!("{name}_{k}")));
                    }
                }
            }
        }
        self.unwind.end(&mut self.out);
        self.addresses(&tables_done);
        for table in self.converted.clone() {
            let labels = &self.tables.absolute[&table];
            let mut text = format!("\t.section\t.rodata,\"a\",@progbits\n\t.balign\t4\n{table}:");
            for k in 0..labels.len().next_power_of_two() {
                text.push_str(&format!("\n\t.long\t{}-{table}", labels.get(k).unwrap_or(&labels[0])));
            }
            self.push(text);
        }
        self.ftab();
        for (i, label) in record_labels {
            let section = &self.program.sections[self.program.items[i].section];
            self.push(symbols::facts_section(section, &label));
            let register = self.bases.register.get(&i);
            let base = register.map_or(0, |r| 1 << r.number);
            let facts = LabelFacts { base, ..LabelFacts::default() };
            let borrowed = register.filter(|r| r.borrowed).map(|r| r.number);
            self.push(records::record(&label, self.layout, i, borrowed, facts));
        }
        Ok(self.out)
    }

    fn directive(&mut self, i: usize, text: &str) {
        let flow = self.flow;
        if let Some(mut line) = symbols::directive(text, &self.functions, &|n| flow.labels.contains_key(n)) {
            let section = &self.program.sections[self.program.items[i].section];
            if !self.slots.is_empty() && symbols::is_data(text) && section.allocated() {
                line = self.slotted(&line);
            }
            self.push(line);
        }
        if let Some(table) = self.tables.last_entry.get(&i) {
            let entries = &self.tables.relative[table];
            let first = entries[0].clone();
            for _ in entries.len()..entries.len().next_power_of_two() {
                self.push(format!("\t.long\t{first}-{table}"));
            }
        }
    }

    /// Labels in data are those of their slots, and so are distances between them.
    fn slotted(&self, line: &str) -> String {
        let (head, rest) = line.trim().split_once(char::is_whitespace).unwrap_or((line, ""));
        let slot = |name: &str| self.slots.get(name.trim());
        let value = |v: &str| match (slot(v), v.split_once('-').map(|(a, b)| (slot(a), slot(b)))) {
            (Some(address), _) => Some(address.clone()),
            (_, Some((Some(a), Some(b)))) => Some(format!("{a}-{b}")),
            _ => None,
        };
        let values: Vec<String> = rest.split(',').map(|v| value(v).unwrap_or_else(|| v.into())).collect();
        format!("\t{head}\t{}", values.join(","))
    }

    /// Slots that lead to labels; `named` names them.
    fn slot_table(&mut self, name: &str, labels: &[String], named: impl Fn(usize) -> Option<String>) {
        let slots = labels.len().next_power_of_two();
        self.push(format!("\t.balign\t{}, 0xcc", slots * 8));
        self.push(format!("{name}:"));
        for (k, l) in labels.iter().enumerate() {
            let name = named(k).map(|name| format!("{name}:\n")).unwrap_or_default();
            self.push(format!("{name}\tjmp\t{l}\n\t.balign\t8, 0xcc"));
        }
        for _ in labels.len()..slots {
            self.push("\tud2\n\t.balign\t8, 0xcc");
        }
    }

    /// Where all jumps of a function go by tables of their own, its labels' slots are no more than their
    /// addresses.
    fn addresses(&mut self, done: &HashSet<usize>) {
        let tables = self.label_tables.iter().filter(|(owner, _)| !done.contains(owner));
        let mut tables: Vec<(usize, (String, Vec<String>))> = tables.map(|(o, t)| (*o, t.clone())).collect();
        tables.sort();
        for (_, (name, labels)) in tables {
            let slots = labels.len().next_power_of_two();
            self.push(format!("\t.text\n\t.balign\t{}, 0xcc\n{name}:", slots * 8));
            for k in 0..labels.len() {
                self.push(format!("{name}_{k}:\n\tud2\n\t.balign\t8, 0xcc"));
            }
        }
    }

    fn ftab(&mut self) {
        let mut done = HashSet::new();
        for entry in self.flow.entries.clone() {
            let Body::Label(name) = &self.program.items[entry].body else { continue };
            if !done.insert(name.clone()) {
                continue;
            }
            let section = &self.program.sections[self.program.items[entry].section];
            self.push(symbols::slot_section(name, section));
            self.push(format!(
                "\t.balign\t8, 0xcc\n\t.type\t{name},@function\n{name}:\n\tjmp\t{}",
                symbols::code(name)
            ));
            self.push(format!("\t.balign\t8, 0xcc\n\t.size\t{name}, 8"));
        }
    }

    /// What a direct branch names.
    fn branch_name(&self, target: &str) -> String {
        if self.flow.is_local_label(target) { target.into() } else { symbols::code(target) }
    }
}

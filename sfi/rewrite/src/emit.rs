//! Prints the confined program: every item in its place, what each instruction has become, slots and records at the end.

mod jumps;

use crate::base::{self, Bases};
use crate::confine::{self, BASE, Region, SLOT, Scope};
use crate::error::{Error, Kind};
use crate::flow::{Flow, Liveness};
use crate::isa::{self, Access};
use crate::operand::{self, Gpr, Mem, Operand, R11, RBP, RCX, RDI, RSI, RSP, Width};
use crate::parse::{Body, Insn, Program};
use crate::records::{self, LabelFacts};
use crate::stack::{Action, Frame, Layout, Place, State};
use crate::symbols;
use crate::tables::{Jump, Tables};
use crate::{Level, Options};
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
            out: String::new(),
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
        // Where other computed gotos read labels out of a table, it has to stay.
        for (i, jump) in &tables.jumps {
            if let Jump::Labels { table, .. } = jump
                && layout.states[*i].is_some()
                && !e.label_tables.contains_key(&layout.owner[*i])
            {
                e.converted.insert(table.clone());
            }
        }
        e
    }

    fn error(&self, i: usize, kind: Kind) -> Error {
        Error { file: self.file.into(), line: self.program.items[i].line, kind }
    }

    fn push(&mut self, text: impl AsRef<str>) {
        self.out.push_str(text.as_ref());
        self.out.push('\n');
    }

    pub fn run(mut self) -> Result<String, Error> {
        let targets = records::branch_targets(self.program, self.flow, &self.tables.targets);
        let mut needed = records::needed(self.program, self.flow, self.layout, &targets);
        if self.options.base && self.options.level == Level::Full {
            self.bases = base::find(self.program, self.flow, self.layout, self.live, &targets);
            needed.extend(self.bases.register.keys().filter(|i| targets.contains_key(i)));
        }
        let mut record_labels: BTreeMap<usize, String> = BTreeMap::new();
        let mut tables_done: HashSet<usize> = HashSet::new();
        let mut in_converted = false;
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
                Body::Directive(d) => self.directive(i, d),
                Body::Insn(insn) => {
                    let Some(state) = &self.layout.states[i] else {
                        // Nobody gets here.
                        let first = i == 0 || !matches!(self.program.items[i - 1].body, Body::Insn(_));
                        if first {
                            self.push("\tud2");
                        }
                        continue;
                    };
                    if needed.contains(&i) {
                        let label = format!(".Lpbl_f{i}");
                        self.push(format!("{label}:"));
                        record_labels.insert(i, label);
                    }
                    let lines = self.insn(i, insn, state).map_err(|k| self.error(i, k))?;
                    for l in lines {
                        self.push(l);
                    }
                    if let Some(r) = self.bases.load_after.get(&i) {
                        self.push(format!("\tmovq\t{BASE}, {}", operand::r64(*r)));
                    }
                    let runs_out = !isa::ends_block(insn) && self.flow.crosses_entry(self.program, i);
                    if self.layout.noreturn.contains(&i) || runs_out {
                        self.push("\tud2");
                    }
                    if matches!(self.tables.jumps.get(&i), Some(Jump::Computed))
                        && tables_done.insert(self.layout.owner[i])
                    {
                        self.label_table(self.layout.owner[i]);
                    }
                }
            }
        }
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
            let base = self.bases.register.get(&i).map_or(0, |r| 1 << r);
            let facts = LabelFacts { base, ..LabelFacts::default() };
            self.push(records::record(&label, self.layout, i, facts));
        }
        Ok(self.out)
    }

    fn directive(&mut self, i: usize, text: &str) {
        let flow = self.flow;
        if let Some(mut line) = symbols::directive(text, &self.functions, &|n| flow.labels.contains_key(n)) {
            if !self.slots.is_empty() && (text.starts_with(".quad") || text.starts_with(".8byte")) {
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

    /// Labels in data are those of their slots.
    fn slotted(&self, line: &str) -> String {
        let (head, rest) = line.trim().split_once(char::is_whitespace).unwrap_or((line, ""));
        let values: Vec<&str> =
            rest.split(',').map(|v| self.slots.get(v.trim()).map_or(v.trim(), String::as_str)).collect();
        format!("\t{head}\t{}", values.join(", "))
    }

    fn label_table(&mut self, owner: usize) {
        let (name, labels) = self.label_tables[&owner].clone();
        let slots = labels.len().next_power_of_two();
        self.push(format!("\t.balign\t{}, 0xcc", slots * 8));
        self.push(format!("{name}:"));
        for (k, l) in labels.iter().enumerate() {
            self.push(format!("{name}_{k}:\n\tjmp\t{l}\n\t.balign\t8, 0xcc"));
        }
        for _ in labels.len()..slots {
            self.push("\tud2\n\t.balign\t8, 0xcc");
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

    fn insn(&self, i: usize, insn: &Insn, state: &State) -> Result<Vec<String>, Kind> {
        if isa::forbidden(insn) {
            return Err(Kind::Forbidden(insn.to_string()));
        }
        let function = &self.layout.functions[self.layout.owner[i]];
        let e = isa::effects(insn);
        let named = insn.args.iter().filter_map(Operand::gpr).fold(0, |m, g| m | 1u16 << g.num);
        let mut scope = Scope {
            state,
            function,
            busy: self.live.regs[i] | e.uses | e.defs | named,
            flags_busy: e.reads_flags || (self.live.flags[i] && !e.kills_flags),
            lines: Vec::new(),
            borrowed: Vec::new(),
        };
        let base = self.bases.register.get(&i).copied();
        scope.busy |= base.map_or(0, |r| 1 << r);
        let action = &self.layout.actions[i];
        if let Some(jump) = self.tables.jumps.get(&i) {
            self.table_jump(i, insn, jump, &mut scope)?;
            return Ok(scope.lines);
        }
        if self.tables.sums.contains(&i) {
            return Ok(scope.lines);
        }
        if let Some((x, d)) = self.tables.loads.get(&i) {
            // A table may be addressed from before its start.
            let bias = isa::memory(insn).and_then(|(_, m)| m.number()).unwrap_or(0) / 4;
            if bias != 0 {
                scope.line(format!("leal\t{bias}({}), {}", operand::r64(*x), operand::r32(*d)));
            } else if x != d {
                scope.line(format!("movl\t{}, {}", operand::r32(*x), operand::r32(*d)));
            }
            return Ok(scope.lines);
        }
        match isa::stem(insn) {
            "call" | "jmp" => {
                self.transfer(insn, &mut scope)?;
                return Ok(scope.lines);
            }
            "ret" => {
                scope.line("retq");
                return Ok(scope.lines);
            }
            // Compilers and libraries stop with it; so does `ud2`, with a better signal.
            "hlt" => {
                scope.line("ud2");
                return Ok(scope.lines);
            }
            op if isa::is_jcc(op) => {
                let t = isa::direct_target(insn).ok_or_else(|| Kind::Syntax(insn.to_string()))?;
                scope.line(format!("{op}\t{}", self.branch_name(t)));
                return Ok(scope.lines);
            }
            _ => {}
        }
        match action {
            Action::None => match base {
                Some(r) if self.bases.loads.contains(&i) => self.load_by_base(insn, r, &mut scope)?,
                _ => self.plain(insn, &mut scope)?,
            },
            Action::Reload | Action::Virtual => {}
            Action::Save(r) => scope.line(format!("pushq\t{}", operand::r64(*r))),
            Action::Restore(r) => scope.line(format!("popq\t{}", operand::r64(*r))),
            Action::Push | Action::Skip | Action::Pop | Action::Move | Action::MoveDynamic => {
                self.stack_move(i, insn, action, &mut scope)?;
            }
        }
        scope.give_back();
        Ok(scope.lines)
    }

    /// The state after a stack instruction, as the analysis computed it for the next one.
    fn after(&self, insn: &Insn, state: &State, action: &Action) -> State {
        let mut t = state.clone();
        let shift = match (isa::stem(insn), state.sp) {
            (_, Place::Dynamic) if *action != Action::Move => return t,
            ("push", Place::At(o)) => Place::At(o - 8),
            ("pop", Place::At(o)) => Place::At(o + 8),
            ("leave", _) => match state.fp {
                Frame::At(c) => Place::At(c + 8),
                Frame::Entry => Place::Dynamic,
            },
            ("add", Place::At(o)) => insn.args[0].imm().map_or(Place::Dynamic, |d| Place::At(o + d)),
            ("sub", Place::At(o)) => insn.args[0].imm().map_or(Place::Dynamic, |d| Place::At(o - d)),
            ("mov", _) => match state.fp {
                Frame::At(c) if insn.args[0].is_reg(RBP) => Place::At(c),
                _ => Place::Dynamic,
            },
            ("lea", _) => {
                let m = isa::memory(insn).map(|(_, m)| m.clone()).unwrap_or_default();
                match (m.base_gpr(), m.index_gpr(), m.number(), state.sp, state.fp) {
                    (Some(RSP), None, Some(d), Place::At(o), _) => Place::At(o + d),
                    (Some(RBP), None, Some(d), _, Frame::At(c)) => Place::At(c + d),
                    _ => Place::Dynamic,
                }
            }
            _ => Place::Dynamic,
        };
        t.sp = shift;
        if let Place::At(o) = shift {
            t.saves.retain(|(x, _)| *x >= o);
            if isa::stem(insn) == "leave" || t.fp_saved.is_some_and(|x| x < o) {
                t.fp_saved = None;
            }
        }
        t
    }

    fn stack_move(&self, i: usize, insn: &Insn, action: &Action, scope: &mut Scope) -> Result<(), Kind> {
        let state = scope.state;
        let function = scope.function;
        let after = self.after(insn, state, action);
        let (before_delta, after_delta) = (function.delta(state), function.delta(&after));
        let move_rbp = |scope: &mut Scope| {
            if before_delta != after_delta {
                scope.line(format!("leaq\t{}(%rbp), %rbp", after_delta - before_delta));
            }
        };
        match action {
            Action::Push if state.sp == Place::Dynamic => {
                let value = self.value(insn, scope)?;
                let r = scope.scratch_beside(insn);
                let (wide, narrow) = (operand::r64(r), operand::r32(r));
                scope.line(format!("movq\t{SLOT}(%rbp), {wide}"));
                scope.line(format!("leaq\t-8({wide}), {wide}"));
                scope.line(format!("movq\t{wide}, {SLOT}(%rbp)"));
                scope.line(format!("movq\t{value}, %gs:({narrow})"));
            }
            Action::Pop if state.sp == Place::Dynamic => {
                let r = scope.scratch_beside(insn);
                let (wide, narrow) = (operand::r64(r), operand::r32(r));
                scope.line(format!("movq\t{SLOT}(%rbp), {wide}"));
                scope.line(format!("movq\t%gs:({narrow}), {}", insn.args[0]));
                scope.line(format!("leaq\t8({wide}), {wide}"));
                scope.line(format!("movq\t{wide}, {SLOT}(%rbp)"));
            }
            Action::Push => {
                let value = self.value(insn, scope)?;
                move_rbp(scope);
                let Place::At(o) = after.sp else { return Err(Kind::StackRegister(insn.to_string())) };
                scope.line(format!("movq\t{value}, {}", Mem::based(o - 8 - after_delta, RBP)));
            }
            Action::Pop => {
                let Place::At(o) = state.sp else { return Err(Kind::StackRegister(insn.to_string())) };
                let slot = scope.frame_mem(o);
                match &insn.args[0] {
                    Operand::Gpr(g) => scope.line(format!("movq\t{slot}, {g}")),
                    _ => {
                        return Err(Kind::Unsupported {
                            what: insn.to_string(),
                            hint: "pop into a register",
                        });
                    }
                }
                move_rbp(scope);
            }
            Action::Skip => {
                move_rbp(scope);
                if after_delta < -4096 {
                    scope.line("movb\t$0, (%rbp)");
                }
            }
            Action::Move => {
                move_rbp(scope);
                if after_delta < before_delta && after_delta < -4096 {
                    scope.line("movb\t$0, (%rbp)");
                }
                for (_, r) in state.saves[after.saves.len()..].iter().rev() {
                    scope.line(format!("popq\t{}", operand::r64(*r)));
                }
            }
            Action::MoveDynamic => self.move_dynamic(insn, scope)?,
            _ => {}
        }
        if function.dynamic && *action != Action::MoveDynamic && state.sp != Place::Dynamic
            || *action == Action::Move && function.dynamic
        {
            if let Place::At(o) = after.sp
                && !after.bare()
            {
                scope.busy |= self.live.regs[i];
                let r = scope.scratch_beside(insn);
                scope.line(format!("leaq\t{}(%rbp), {}", o - 8, operand::r64(r)));
                scope.line(format!("movq\t{}, {SLOT}(%rbp)", operand::r64(r)));
            }
        }
        Ok(())
    }

    /// The operand of a push, as something a `movq` can store.
    fn value(&self, insn: &Insn, scope: &mut Scope) -> Result<String, Kind> {
        match &insn.args[0] {
            Operand::Mem(m) => {
                let (m, region) = scope.translate(m, insn)?;
                let m = self.confined(m, region, Access::Load);
                let r = scope.scratch_beside(insn);
                scope.line(format!("movq\t{m}, {}", operand::r64(r)));
                Ok(operand::r64(r))
            }
            Operand::Gpr(g) if g.num == RSP || g.num == RBP => {
                let r = scope.scratch_beside(insn);
                self.stack_value(g.num, r, insn, scope)?;
                Ok(operand::r64(r))
            }
            other => Ok(other.to_string()),
        }
    }

    /// The compiler's `rsp` or frame pointer as a value.
    fn stack_value(&self, which: u8, to: u8, insn: &Insn, scope: &mut Scope) -> Result<(), Kind> {
        let place = match (which, scope.state.sp, scope.state.fp) {
            (RSP, Place::At(o), _) => Some(o),
            (RSP, Place::Dynamic, _) => None,
            (_, _, Frame::At(c)) => Some(c),
            _ => return Err(Kind::StackRegister(insn.to_string())),
        };
        match place {
            Some(x) => {
                let m = scope.frame_mem(x);
                scope.line(format!("leaq\t{m}, {}", operand::r64(to)));
            }
            None => scope.line(format!("movq\t{SLOT}(%rbp), {}", operand::r64(to))),
        }
        Ok(())
    }

    fn move_dynamic(&self, insn: &Insn, scope: &mut Scope) -> Result<(), Kind> {
        let slot = format!("{SLOT}(%rbp)");
        match (isa::stem(insn), insn.args.as_slice()) {
            ("mov", [Operand::Gpr(g), _]) => scope.line(format!("movq\t{g}, {slot}")),
            ("mov", [Operand::Mem(m), _]) => {
                let (m, region) = scope.translate(m, insn)?;
                let m = self.confined(m, region, Access::Load);
                let r = scope.scratch_beside(insn);
                scope.line(format!("movq\t{m}, {}", operand::r64(r)));
                scope.line(format!("movq\t{}, {slot}", operand::r64(r)));
            }
            ("lea", [Operand::Mem(m), _]) => {
                let r = scope.scratch_beside(insn);
                let (m, _) = scope.translate(m, insn)?;
                scope.line(format!("leaq\t{m}, {}", operand::r64(r)));
                scope.line(format!("movq\t{}, {slot}", operand::r64(r)));
            }
            ("add" | "sub" | "and", [source, _]) => {
                let r = scope.scratch_beside(insn);
                self.stack_value(RSP, r, insn, scope)?;
                let source = match source {
                    Operand::Mem(m) => {
                        let (m, region) = scope.translate(m, insn)?;
                        self.confined(m, region, Access::Load).to_string()
                    }
                    other => other.to_string(),
                };
                scope.line(format!("{}\t{source}, {}", insn.op, operand::r64(r)));
                scope.line(format!("movq\t{}, {slot}", operand::r64(r)));
            }
            _ => return Err(Kind::StackRegister(insn.to_string())),
        }
        Ok(())
    }

    fn loads(&self) -> bool {
        self.options.level != Level::Write
    }

    fn confined(&self, m: Mem, region: Region, access: Access) -> String {
        if region == Region::Pointer && confine::must_confine(access, self.loads()) {
            return m.confined().to_string();
        }
        m.to_string()
    }

    /// A load relative to the base register: the pointer is zero-extended into the destination, or into a free register.
    fn load_by_base(&self, insn: &Insn, base: u8, scope: &mut Scope) -> Result<(), Kind> {
        let (Some((_, m)), Some(to)) = (isa::memory(insn), insn.args.last().and_then(Operand::gpr)) else {
            return self.plain(insn, scope);
        };
        let Some(pointer) = m.base_gpr() else { return self.plain(insn, scope) };
        let wide = matches!(to.width, Width::B32 | Width::B64);
        let Some(copy) = (if wide && to.num != pointer { Some(to.num) } else { scope.free() }) else {
            return self.plain(insn, scope);
        };
        scope.line(format!("movl\t{}, {}", operand::r32(pointer), operand::r32(copy)));
        scope.line(format!("{}\t{}({},{}), {to}", insn.op, m.disp, operand::r64(base), operand::r64(copy)));
        Ok(())
    }

    /// An instruction that does not move the stack.
    fn plain(&self, insn: &Insn, scope: &mut Scope) -> Result<(), Kind> {
        if isa::is_string_op(insn) {
            return self.string(insn, scope);
        }
        let mut out = insn.clone();
        // `rsp` and the frame pointer as values.
        for k in 0..out.args.len() {
            if let Operand::Gpr(g @ Gpr { num: RSP | RBP, .. }) = out.args[k] {
                if g.width != Width::B64 && g.width != Width::B32 {
                    return Err(Kind::StackRegister(insn.to_string()));
                }
                if isa::stem(insn) == "mov"
                    && k == 0
                    && let Some(d) = out.args[1].gpr()
                    && g.width == Width::B64
                {
                    return self.stack_value(g.num, d.num, insn, scope);
                }
                let r = scope.scratch_beside(insn);
                self.stack_value(g.num, r, insn, scope)?;
                out.args[k] = Operand::Gpr(Gpr { num: r, width: g.width });
            }
        }
        if let Some((at, m)) = isa::memory(insn) {
            let access = isa::access(insn);
            if m.segment.as_deref() == Some("%fs")
                && m.disp.trim() == "0"
                && m.base.is_none()
                && m.index.is_none()
            {
                let d = match (isa::stem(insn), out.args.get(1).and_then(Operand::gpr)) {
                    ("mov", Some(d)) => return scope.thread_pointer(insn, d.num),
                    (_, Some(_)) => scope.scratch_beside(insn),
                    _ => return Err(Kind::Forbidden(insn.to_string())),
                };
                scope.thread_pointer(insn, d)?;
                out.args[at] = Operand::Gpr(Gpr { num: d, width: Width::B64 });
                scope.line(out.to_string());
                return Ok(());
            }
            if insn.op.starts_with("movabs") {
                return Err(Kind::Unsupported {
                    what: insn.to_string(),
                    hint: "compile with -mcmodel=small",
                });
            }
            let (m, region) = scope.translate(m, insn)?;
            let absolute = m.base.is_none() && m.index.is_none() && region == Region::Pointer;
            if absolute && confine::must_confine(access, self.loads()) {
                out.prefixes.push("addr32".into());
            }
            if self.options.level == Level::Check
                && region == Region::Pointer
                && access != Access::None
                && isa::access_is_certain(insn)
            {
                self.check(&m, scope);
            }
            let text = self.confined(m.clone(), region, access);
            out.args[at] = Operand::Other(text);
            // Label addresses are those of their slots.
            if isa::stem(insn) == "lea"
                && m.is_rip()
                && let Some(slot) = self.slots.get(&m.disp)
            {
                out.args[at] = Operand::Other(format!("{slot}(%rip)"));
            }
        }
        scope.line(out.to_string());
        Ok(())
    }

    /// Segment matching: traps where the pointer's upper half is not the segment's. Live flags are not touched.
    fn check(&self, m: &Mem, scope: &mut Scope) {
        if !scope.flags_busy {
            let r = if m.regs() & 1 << RCX == 0 { RCX } else { R11 };
            let wide = operand::r64(r);
            scope.line(format!("pushq\t{wide}"));
            scope.line(format!("leaq\t{m}, {wide}"));
            scope.line(format!("subq\t{BASE}, {wide}"));
            scope.line(format!("shrq\t$32, {wide}"));
            scope.line("je\t1f\n\tud2\n1:");
            scope.line(format!("popq\t{wide}"));
            return;
        }
        let taken = m.regs() | 1 << RCX;
        let r = (8..12).rev().find(|r| taken & 1 << r == 0).expect("an address has two registers at most");
        let (wide, narrow) = (operand::r64(r), operand::r32(r));
        scope.line(format!("pushq\t{wide}"));
        scope.line("pushq\t%rcx");
        scope.line(format!("leaq\t{m}, %rcx"));
        scope.line("bswapq\t%rcx");
        scope.line(format!("movq\t{BASE}, {wide}"));
        scope.line(format!("bswapq\t{wide}"));
        scope.line(format!("notl\t{narrow}"));
        scope.line(format!("leal\t1(%rcx,{wide}), %ecx"));
        scope.line("jecxz\t1f\n\tud2\n1:");
        scope.line("popq\t%rcx");
        scope.line(format!("popq\t{wide}"));
    }

    fn string(&self, insn: &Insn, scope: &mut Scope) -> Result<(), Kind> {
        let (source, dest, writes) = isa::string_shape(&insn.op);
        if dest && (writes || self.loads()) {
            scope.sandbox(RDI, insn);
        }
        if source && self.loads() {
            scope.sandbox(RSI, insn);
        }
        let prefixes: Vec<&str> = insn.prefixes.iter().map(String::as_str).collect();
        let op = if insn.op.len() == 4 { return Err(Kind::Syntax(insn.to_string())) } else { &insn.op };
        scope.line(format!("{} {op}", prefixes.join(" ")).trim());
        Ok(())
    }
}

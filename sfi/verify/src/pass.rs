//! The second pass: the state from instruction to instruction, and its meets at labels.
//!
//! Problem: a state must hold on every way to an instruction, but the code is read once. Strategy: a label's state is met from the
//! fall-through and all branches from earlier addresses (or given by a record); once the pass has come by, it is
//! fixed, and branches from later addresses must arrive with no less.
//!
//! Invariants kept: whatever may arrive at a label (branch, table, call, slot, export) has been compared with its word; no
//! fact survives at a label but those of its record, and those are demanded of every arrival.

use crate::decode::{Insn, decode_into};
use crate::labels::{Labels, Tables, entries, find, offset, slots};
use crate::state::{Facts, LABEL_SLACK, PRESERVED, Pending, State, Word, saved};
use crate::step::{Flow, step};
use crate::table::class;
use crate::{Module, Refusal, Rule, Summary};

pub const RECORD: usize = 20;

/// One record of the facts section.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    pub address: u32,
    pub word: Word,
    pub facts: Facts,
}

pub fn record(module: &Module<'_>, index: u32) -> Option<Record> {
    let from = (index as usize).checked_mul(RECORD)?;
    let b = module.facts.get(from..)?.first_chunk::<RECORD>()?;
    let u32_at = |i: usize| u32::from_le_bytes([b[i], b[i + 1], b[i + 2], b[i + 3]]);
    let u16_at = |i: usize| u16::from_le_bytes([b[i], b[i + 1]]);
    let (slots, delta) = (u32_at(4), u32_at(8) as i32);
    let depth = slots >> 28;
    let nibbles_ok = (0..7).all(|i| {
        let kind = slots >> (4 * i) & 15;
        kind <= 5 && (kind == 0 || i < depth)
    });
    let facts = Facts { seg: u16_at(12), zx: u16_at(14), base: u16_at(16) };
    let stacks = (facts.seg | facts.zx | facts.base) & 0x30 != 0;
    if !nibbles_ok || !(-(1 << 30) + 1..=0).contains(&delta) || stacks || u16_at(18) != 0 {
        return None;
    }
    Some(Record { address: u32_at(0), word: Word::of(slots, delta), facts })
}

/// Distances and sizes that everything else relies on.
pub fn layout(module: &Module<'_>) -> Result<u32, Rule> {
    let size = module.ftab_size;
    let text_end = module.text_at as u64 + module.text.len() as u64;
    let rodata_end = module.rodata_at as u64 + module.rodata.len() as u64;
    let ftab = size.is_power_of_two()
        && size >= 64
        && module.text_at == size.max(0x2_0000)
        && size as usize <= module.text.len();
    let rodata = module.rodata.is_empty() || module.rodata_at as u64 >= text_end;
    let data = module.data.start as u64 >= text_end.max(rodata_end) && module.data.end >= module.data.start;
    let image = module.data.end <= 0x8000_0000 && module.imports <= (0x1_0000 - 0x100) / 8;
    let facts = module.facts.len() % RECORD == 0;
    if ftab && rodata && data && image && facts { Ok(module.text_at + size - 8) } else { Err(Rule::Layout) }
}

struct Pass<'m, 's> {
    module: &'m Module<'m>,
    labels: Labels<&'s mut [u64]>,
    tables: Tables<(Word, u16)>,
    /// Preserved registers that some return, jump or label was not reached with.
    changes: u16,
}

pub fn verify(module: &Module<'_>, scratch: &mut [u64]) -> Result<Summary, Refusal> {
    let refuse = |rule| Refusal { at: module.text_at, rule };
    let ftab_mask = layout(module).map_err(refuse)?;
    let mut labels = Labels::of_mut(scratch, module.text.len()).ok_or(refuse(Rule::Layout))?;
    let (instructions, count) = find(module, ftab_mask, &mut labels)?;
    let mut pass = Pass { module, labels, tables: Tables::new(module), changes: 0 };
    pass.records()?;
    pass.entries()?;
    let state = pass.run(ftab_mask)?;
    Ok(Summary {
        changes: pass.changes,
        x87: state.x87,
        fp_control: state.fp_control,
        instructions,
        labels: count as u32,
    })
}

impl Pass<'_, '_> {
    /// Checks the facts section and fixes the labels that it names.
    fn records(&mut self) -> Result<(), Refusal> {
        let mut last = 0;
        for index in 0..(self.module.facts.len() / RECORD) as u32 {
            let at = index * RECORD as u32;
            let record = record(self.module, index).ok_or(Refusal { at, rule: Rule::Record })?;
            let refusal = Refusal { at: record.address, rule: Rule::Record };
            let offset = offset(self.module, record.address).ok_or(refusal)?;
            if record.address <= last || !self.labels.is_start(offset) {
                return Err(refusal);
            }
            last = record.address;
            if let Some(rank) = self.labels.rank(offset) {
                self.labels.set_word(rank, Word::record(index));
            }
        }
        Ok(())
    }

    /// Slots of the ftab and exports are called from outside.
    fn entries(&mut self) -> Result<(), Refusal> {
        for slot in (0..self.module.ftab_size).step_by(8) {
            let at = self.module.text_at + slot;
            self.call(slot as usize, 0).map_err(|rule| Refusal { at, rule })?;
        }
        for export in self.module.exports {
            let refuse = |rule| Refusal { at: *export, rule };
            let to = offset(self.module, *export).ok_or(refuse(Rule::Callee))?;
            self.call(to, 0).map_err(refuse)?;
        }
        Ok(())
    }

    fn run(&mut self, ftab_mask: u32) -> Result<State, Refusal> {
        let module = self.module;
        let text = module.text;
        let mut state = State::new(Word::entry(), Facts::default());
        let mut insn = Insn::default();
        let mut live = false;
        let mut next_record = 0;
        let mut record_at = self.record_offset(next_record);
        let mut label_at = self.labels.next(0).unwrap_or(usize::MAX);
        let mut at = 0;
        while at < text.len() {
            let here = module.text_at + at as u32;
            let refuse = |rule| Refusal { at: here, rule };
            if at > label_at || at > record_at {
                return Err(refuse(Rule::Instruction)); // the first pass saw other instructions
            }
            if at == label_at || at == record_at {
                let index = (at == record_at).then_some(next_record);
                self.meet(at, &mut state, live, index).map_err(refuse)?;
                live = true;
                if at == record_at {
                    next_record += 1;
                    record_at = self.record_offset(next_record);
                }
                if at == label_at {
                    label_at = self.labels.next(at + 1).unwrap_or(usize::MAX);
                }
            }
            decode_into(text, at, &mut insn).map_err(refuse)?;
            if !live {
                // no way leads here, not even from outside: padding, or a function that nobody calls
                if matches!(insn.class, class::NOP | class::TRAP) {
                    at += insn.len as usize;
                    continue;
                }
                state.reset(Word::entry(), Facts::default());
                live = true;
            }
            let flow = step(module, ftab_mask, &mut state, &insn, here).map_err(refuse)?;
            if flow != Flow::Next {
                live = self.follow(flow, at, &state).map_err(refuse)?;
            }
            at += insn.len as usize;
        }
        let missed = label_at.min(record_at);
        if missed != usize::MAX {
            return Err(Refusal { at: module.text_at + missed as u32, rule: Rule::Instruction });
        }
        if live {
            return Err(Refusal { at: module.text_at + at as u32, rule: Rule::FallsOff });
        }
        Ok(state)
    }

    fn record_offset(&self, index: u32) -> usize {
        record(self.module, index).and_then(|r| offset(self.module, r.address)).unwrap_or(usize::MAX)
    }

    /// Arrives at a label or record by falling through (if `live`), and takes its state.
    fn meet(&mut self, at: usize, state: &mut State, live: bool, index: Option<u32>) -> Result<(), Rule> {
        if live && state.pending == Pending::AddBase {
            return Err(Rule::Dynamic);
        }
        let rank = self.labels.rank(at);
        if live {
            let facts = state.facts;
            match (rank, index) {
                (Some(rank), _) => self.forward(rank, state, facts)?,
                (None, Some(index)) => self.fixed(index, state, facts)?,
                _ => {}
            }
        } else {
            state.pending = Pending::Nothing;
        }
        if let Some(index) = index {
            let record = record(self.module, index).ok_or(Rule::Record)?;
            state.reset(record.word, record.facts);
        } else if let Some(rank) = rank {
            let mut word = self.labels.word(rank);
            if !word.is_set() {
                word = Word::entry();
                self.labels.set_word(rank, word);
            }
            state.reset(word, Facts::default());
        }
        Ok(())
    }

    /// Where the flow leads, the state must agree. Tells whether it also goes on behind the instruction.
    fn follow(&mut self, flow: Flow, at: usize, state: &State) -> Result<bool, Rule> {
        match flow {
            Flow::Next => Ok(true),
            Flow::Trap => Ok(false),
            Flow::Branch(to) => {
                self.arrive(to, at, state, state.facts)?;
                Ok(true)
            }
            Flow::Jump(to) => {
                self.arrive(to, at, state, state.facts)?;
                Ok(false)
            }
            Flow::Call(to) => {
                self.call(offset(self.module, to).ok_or(Rule::Target)?, at)?;
                Ok(true)
            }
            Flow::Leave => {
                self.changes |= PRESERVED & !state.intact;
                Ok(false)
            }
            Flow::Table { at: table, count } => {
                if self.tables.fresh(table, count, (state.word(), state.intact))? {
                    let module = self.module;
                    entries(module, table, count, |to| self.arrive_at(to, at, state, Facts::default()))?;
                }
                Ok(false)
            }
            Flow::Slots { at: table, count } => {
                if self.tables.fresh(table, count, (state.word(), state.intact))? {
                    let module = self.module;
                    slots(module, table, count, |to| self.arrive_at(to, at, state, Facts::default()))?;
                }
                Ok(false)
            }
        }
    }

    fn arrive(&mut self, to: u32, from: usize, state: &State, facts: Facts) -> Result<(), Rule> {
        let to = offset(self.module, to).ok_or(Rule::Target)?;
        self.arrive_at(to, from, state, facts)
    }

    #[inline]
    fn arrive_at(&mut self, to: usize, from: usize, state: &State, facts: Facts) -> Result<(), Rule> {
        let rank = self.labels.rank(to).ok_or(Rule::Target)?;
        if to > from {
            return self.forward(rank, state, facts);
        }
        let word = self.labels.word(rank);
        if let Some(index) = word.fixed() {
            return self.fixed(index, state, facts);
        }
        if state.dynamic {
            return Err(Rule::Dynamic);
        }
        self.lost(word.slots(), state);
        if word.is_set() && word.admits(state.word()) { Ok(()) } else { Err(Rule::Label) }
    }

    /// Arrives at a label that the pass has not come to yet.
    #[inline]
    fn forward(&mut self, rank: usize, state: &State, facts: Facts) -> Result<(), Rule> {
        if state.dynamic {
            return Err(Rule::Dynamic);
        }
        let word = self.labels.word(rank);
        if let Some(index) = word.fixed() {
            return self.fixed(index, state, facts);
        }
        let mut met = state.word();
        if word.is_set() {
            met = word.meet(met).ok_or(Rule::Label)?;
            // saved no more on all ways: some way that came before may have changed it
            self.changes |= saved(word.slots()) & !saved(met.slots());
        }
        self.labels.set_word(rank, met);
        self.lost(met.slots(), state);
        Ok(())
    }

    /// Arrives where a record rules.
    fn fixed(&mut self, index: u32, state: &State, facts: Facts) -> Result<(), Rule> {
        if state.dynamic {
            return Err(Rule::Dynamic);
        }
        let record = record(self.module, index).ok_or(Rule::Record)?;
        if !record.word.admits(state.word()) {
            return Err(Rule::Label);
        }
        self.lost(record.word.slots(), state);
        let near = |reg: u8| state.slack[reg as usize & 15] <= LABEL_SLACK;
        let seg = record.facts.seg;
        let short = (0..16u8).any(|reg| seg >> reg & 1 != 0 && !near(reg));
        let missing = seg & !facts.seg | record.facts.zx & !facts.zx | record.facts.base & !facts.base;
        if short || missing != 0 { Err(Rule::Facts) } else { Ok(()) }
    }

    /// At a label a preserved register is intact unless it is saved there: whoever arrives otherwise has lost it.
    fn lost(&mut self, slots: u32, state: &State) {
        let missing = PRESERVED & !state.intact;
        if missing != 0 {
            self.changes |= missing & !saved(slots);
        }
    }

    /// Calls the code at `to`: it must assume what holds at every entry, and no more.
    fn call(&mut self, to: usize, from: usize) -> Result<(), Rule> {
        let rank = self.labels.rank(to).ok_or(Rule::Target)?;
        let word = self.labels.word(rank);
        if let Some(index) = word.fixed() {
            let record = record(self.module, index).ok_or(Rule::Record)?;
            if record.facts != Facts::default() || !record.word.admits(Word::entry()) {
                return Err(Rule::Callee);
            }
        } else if word.is_set() {
            if !word.admits(Word::entry()) {
                return Err(Rule::Callee);
            }
        } else if to < from {
            return Err(Rule::Callee); // passed without a state: cannot be
        }
        let word = if word.is_set() { word } else { Word::entry() };
        self.labels.set_word(rank, word.called());
        Ok(())
    }
}

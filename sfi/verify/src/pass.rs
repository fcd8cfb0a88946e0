//! The pass over the code: the state from instruction to instruction, and its meets at labels.
//!
//! Problem: a state must hold on every way to an instruction, but the code is read once. Strategy: between
//! labels the way is one, and most of it `plain`. A label's state is met from the fall-through and all
//! branches from earlier addresses (or given by a record); once the pass has come by, it is fixed, and
//! branches from later addresses must arrive with no less.
//!
//! Invariants kept: whatever may arrive at a label (branch, table, call, slot, export) has been compared with
//! its word; no fact survives at a label but those of its record, and those are demanded of every arrival.

use crate::decode::{Insn, decode};
use crate::labels::{Labels, Tables, offset, targets};
use crate::plain::{ROUNDS, confines, plain_of};
use crate::state::{BASE, GROUPS, LABEL_SLACK, PRESERVED, Pending, SEG, State, Word, ZX};
use crate::step::{Flow, brief, is_brief, step};
use crate::table::{FLOAT, class};
use crate::{Level, Module, Refusal, Rule, Summary};

pub const RECORD: usize = 20;

/// What gaps are filled with.
const INT3: u8 = 0xcc;

/// One record of the facts section.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    pub address: u32,
    pub word: Word,
    pub facts: u64,
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
    let facts = (u16_at(12) as u64) << SEG | (u16_at(14) as u64) << ZX | (u16_at(16) as u64) << BASE;
    let stacks = facts & (0x30 * GROUPS);
    if !nibbles_ok || !(-(1 << 30) + 1..=0).contains(&delta) || stacks != 0 || u16_at(18) != 0 {
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
    let facts = module.facts.len().is_multiple_of(RECORD);
    if ftab && rodata && data && image && facts { Ok(module.text_at + size - 8) } else { Err(Rule::Layout) }
}

struct Pass<'m, 's> {
    module: &'m Module<'m>,
    labels: Labels<&'s mut [u64]>,
    tables: Tables<(Word, u16)>,
    /// Preserved registers that some return, jump or label was not reached with.
    changes: u16,
    /// Shapes of plain instructions, for what they have in common.
    seen: u64,
    float: bool,
    timer: Option<u32>,
}

/// Accepts or refuses a module. The scratch may hold anything before; `scratch_words` says how much is always
/// enough. After acceptance `site` needs what is left in it: keep its first `Summary::scratch_used` words, or
/// lose backtraces.
pub fn verify(module: &Module<'_>, scratch: &mut [u64]) -> Result<Summary, Refusal> {
    let ftab_mask = layout(module).map_err(|rule| Refusal { at: module.text_at, rule })?;
    let (labels, count) = Labels::read(scratch, module)?;
    let mut pass =
        Pass { module, labels, tables: Tables::new(module), changes: 0, seen: 0, float: false, timer: None };
    pass.records()?;
    pass.entries()?;
    let (state, instructions) = pass.run(ftab_mask)?;
    Ok(Summary {
        changes: pass.changes,
        x87: state.x87,
        fp_control: state.fp_control,
        float: pass.float || pass.seen & ROUNDS != 0,
        timer: pass.timer,
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
            if record.address <= last {
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

    /// From the begin of the text to its end; gives the last state and the number of instructions.
    fn run(&mut self, ftab_mask: u32) -> Result<(State, u32), Refusal> {
        let module = self.module;
        let text = module.text;
        let mut state = State::new(Word::entry(), 0);
        let mut insn = Insn::default();
        let confined = confines(module.level == Level::Full);
        let (mut live, mut count, mut at) = (false, 0, 0);
        let mut next_record = 0;
        let mut record_at = self.record_offset(next_record);
        let mut label_at = self.labels.next(0).unwrap_or(usize::MAX);
        while at < text.len() {
            let stop = label_at.min(record_at);
            if live && state.calm() {
                while at < stop {
                    let Some(window) = text.get(at..).and_then(|rest| rest.first_chunk()) else { break };
                    if is_brief(window) {
                        break;
                    }
                    let len = plain_of(window, &mut state.known, confined, &mut self.seen);
                    if len == 0 {
                        break;
                    }
                    at += len;
                    count += 1;
                }
            }
            while !live && at < stop && text.get(at) == Some(&INT3) {
                at += 1;
                count += 1;
            }
            if at > stop || at == text.len() {
                break;
            }
            let here = module.text_at + at as u32;
            let refuse = |rule| Refusal { at: here, rule };
            if at == stop {
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
                continue;
            }
            count += 1;
            let window = text.get(at..).and_then(|rest| rest.first_chunk());
            let brief =
                window.filter(|_| live && state.calm()).and_then(|window| brief(&mut state, window, here));
            let (len, flow) = match brief {
                Some(done) => done.map_err(refuse)?,
                None => {
                    decode(text, at, &mut insn).map_err(refuse)?;
                    self.float |= insn.attr & FLOAT != 0;
                    if insn.class == class::TIMER {
                        self.timer.get_or_insert(here);
                    }
                    if !live {
                        // no way leads here, not even from outside: padding, or a function that nobody calls
                        if matches!(insn.class, class::NOP | class::TRAP) {
                            at += insn.len as usize;
                            continue;
                        }
                        state.reset(Word::entry(), 0);
                        live = true;
                    }
                    (insn.len as u32, step(module, ftab_mask, &mut state, &insn, here).map_err(refuse)?)
                }
            };
            if flow != Flow::Next {
                live = self.follow(flow, at, &state).map_err(refuse)?;
            }
            at += len as usize;
        }
        // a label or record that no instruction has begun at
        let missed = if label_at < record_at { (label_at, Rule::Hint) } else { (record_at, Rule::Record) };
        let (last, rule) = if missed.0 < at { missed } else { (at, Rule::FallsOff) };
        if last < at || live {
            Err(Refusal { at: module.text_at + last as u32, rule })
        } else {
            Ok((state, count))
        }
    }

    fn record_offset(&self, index: u32) -> usize {
        record(self.module, index).and_then(|r| offset(self.module, r.address)).unwrap_or(usize::MAX)
    }

    /// Arrives at a label or record by falling through (if `live`), and takes its state.
    fn meet(&mut self, at: usize, state: &mut State, live: bool, index: Option<u32>) -> Result<(), Rule> {
        if live && (state.dynamic || state.pending == Pending::AddBase) {
            return Err(Rule::Dynamic);
        }
        let rank = self.labels.rank(at);
        if live {
            let facts = state.known;
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
            state.reset(word, 0);
        }
        Ok(())
    }

    /// Where the flow leads, the state must agree. Tells whether it also goes on behind the instruction.
    fn follow(&mut self, flow: Flow, at: usize, state: &State) -> Result<bool, Rule> {
        match flow {
            Flow::Next => Ok(true),
            Flow::Trap => Ok(false),
            Flow::Branch(to) | Flow::Jump(to) => {
                let to = offset(self.module, to).ok_or(Rule::Target)?;
                self.arrive_at(to, at, state, state.known)?;
                Ok(matches!(flow, Flow::Branch(_)))
            }
            Flow::Call(to) => {
                self.call(offset(self.module, to).ok_or(Rule::Target)?, at)?;
                Ok(true)
            }
            Flow::Leave => {
                self.changes |= PRESERVED & !state.intact();
                Ok(false)
            }
            // Here rather than at each target: what has been read lately is not read again.
            Flow::Table(_) if state.dynamic => Err(Rule::Dynamic),
            Flow::Table(table) => {
                if self.tables.fresh(table, (state.word(), state.intact()))? {
                    let module = self.module;
                    targets(module, table, |to| self.arrive_at(to, at, state, 0))?;
                }
                Ok(false)
            }
        }
    }

    #[inline]
    fn arrive_at(&mut self, to: usize, from: usize, state: &State, facts: u64) -> Result<(), Rule> {
        let rank = self.labels.rank(to).ok_or(Rule::Target)?;
        if state.dynamic {
            return Err(Rule::Dynamic);
        }
        if to > from {
            return self.forward(rank, state, facts);
        }
        let word = self.labels.word(rank);
        if let Some(index) = word.fixed() {
            return self.fixed(index, state, facts);
        }
        self.lost(word.slots(), state);
        if word.is_set() && word.admits(state.word()) { Ok(()) } else { Err(Rule::Label) }
    }

    /// Arrives at a label that the pass has not come to yet.
    #[inline]
    fn forward(&mut self, rank: usize, state: &State, facts: u64) -> Result<(), Rule> {
        let word = self.labels.word(rank);
        if let Some(index) = word.fixed() {
            return self.fixed(index, state, facts);
        }
        let mut met = state.word();
        if word.is_set() {
            met = word.meet(met).ok_or(Rule::Label)?;
            // saved no more on all ways: some way that came before may have changed it
            self.changes |= state.saved_in(word.slots()) & !state.saved_in(met.slots());
        }
        self.labels.set_word(rank, met);
        self.lost(met.slots(), state);
        Ok(())
    }

    /// Arrives where a record rules.
    fn fixed(&mut self, index: u32, state: &State, facts: u64) -> Result<(), Rule> {
        let record = record(self.module, index).ok_or(Rule::Record)?;
        if !record.word.admits(state.word()) {
            return Err(Rule::Label);
        }
        self.lost(record.word.slots(), state);
        let near = |reg: u8| state.slack[reg as usize & 15] <= LABEL_SLACK;
        let far = (0..16u8).any(|reg| record.facts >> (SEG + reg as u32) & 1 != 0 && !near(reg));
        if far || record.facts & !facts != 0 { Err(Rule::Facts) } else { Ok(()) }
    }

    /// At a label a preserved register is intact unless it is saved there: whoever arrives otherwise has lost
    /// it.
    fn lost(&mut self, slots: u32, state: &State) {
        let missing = PRESERVED & !state.intact();
        if missing != 0 {
            self.changes |= missing & !state.saved_in(slots);
        }
    }

    /// Calls the code at `to`: it must assume what holds at every entry, and no more.
    fn call(&mut self, to: usize, from: usize) -> Result<(), Rule> {
        let rank = self.labels.rank(to).ok_or(Rule::Target)?;
        let word = self.labels.word(rank);
        if let Some(index) = word.fixed() {
            let record = record(self.module, index).ok_or(Rule::Record)?;
            if record.facts != 0 || !record.word.admits(Word::entry()) {
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

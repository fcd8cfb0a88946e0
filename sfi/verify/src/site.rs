//! What a return site knows, found again on demand.
//!
//! Problem: a walk of the return stack needs depth and `rbp` at any return site, but a table of them all
//! would be large. Strategy: the words of the labels stay in the scratch; from the label before the site a
//! few instructions are executed again.
//!
//! Invariants kept: the same decoder, step and records as in the accepting pass, so the answer is what it
//! accepted.

use crate::decode::{Insn, decode};
use crate::labels::{Labels, offset};
use crate::pass::{RECORD, layout, record};
use crate::state::{State, Word};
use crate::step::{Flow, step};
use crate::table::class;
use crate::{Module, Rule};

/// A return site: the function pushed `depth` words since its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// The nearest function entry at or before the site.
    pub entry: u32,
    pub depth: u8,
    /// How far `rbp` is from its value at the function's entry; none where it is dynamic.
    pub delta: Option<i32>,
    /// The word of the return stack that the code takes for a pushed `rbp`, and how far that was from the
    /// same.
    pub pushed: Option<(u8, i32)>,
    /// Nibble i: what the word pushed i-th holds, as in the facts section.
    pub slots: u32,
}

/// What the code around a return site knows: for walks of the return stack. The module must have been
/// accepted and `scratch` be as `verify` left it. `None` if no call ends at `address`.
pub fn find(module: &Module<'_>, scratch: &[u64], address: u32) -> Option<Site> {
    let ftab_mask = layout(module).ok()?;
    let labels = Labels::of(scratch, module.text.len())?;
    let site = offset(module, address.checked_sub(1)?)?;
    let from = labels.last(site)?;
    let state = replay(module, &labels, ftab_mask, from, address).ok()??;
    let delta = (!state.dynamic).then_some(state.delta);
    let entry = module.text_at + called(&labels, from)? as u32;
    let (depth, slots) = (state.depth() as u8, state.slots & 0x0fff_ffff);
    Some(Site { entry, depth, delta, pushed: state.pushed_rbp, slots })
}

/// The state before `address`, if the instruction there follows a call.
fn replay(
    module: &Module<'_>,
    labels: &Labels<&[u64]>,
    ftab_mask: u32,
    from: usize,
    address: u32,
) -> Result<Option<State>, Rule> {
    let word = labels.rank(from).map_or(Word::UNKNOWN, |rank| labels.word(rank));
    let mut next_record = first_record(module, module.text_at + from as u32);
    let word = if word.is_set() && word.fixed().is_none() { word } else { Word::entry() };
    let mut state = State::new(word, 0);
    let mut at = from;
    let (mut live, mut insn) = (true, Insn::default());
    loop {
        let here = module.text_at + at as u32;
        if let Some(record) = record(module, next_record).filter(|record| record.address == here) {
            state.reset(record.word, record.facts);
            next_record += 1;
            live = true;
        }
        decode(module.text, at, &mut insn)?;
        at += insn.len as usize;
        if !live && matches!(insn.class, class::NOP | class::TRAP) {
            continue;
        }
        if !live {
            state.reset(Word::entry(), 0);
        }
        let flow = step(module, ftab_mask, &mut state, &insn, here)?;
        let next = module.text_at + at as u32;
        if next >= address {
            let call = insn.class == class::CALL || insn.class == class::INDIRECT && insn.ext == 2;
            return Ok((next == address && call).then_some(state));
        }
        live = matches!(flow, Flow::Next | Flow::Branch(_) | Flow::Call(_));
    }
}

/// The index of the first record at or after an address.
fn first_record(module: &Module<'_>, address: u32) -> u32 {
    let (mut low, mut high) = (0, (module.facts.len() / RECORD) as u32);
    while low < high {
        let middle = low + (high - low) / 2;
        if record(module, middle).is_some_and(|record| record.address < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// The last label at or before `offset` that is called.
fn called(labels: &Labels<&[u64]>, mut offset: usize) -> Option<usize> {
    loop {
        let label = labels.last(offset)?;
        if labels.rank(label).is_some_and(|rank| labels.word(rank).is_called()) {
            return Some(label);
        }
        offset = label.checked_sub(1)?;
    }
}

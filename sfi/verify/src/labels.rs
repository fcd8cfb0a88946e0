//! Where branches may lead.
//!
//! Problem: facts must be dropped at labels, and a backward branch makes a label of code that has been
//! passed; but to read the code twice takes twice the time. Strategy: the module says where its labels are
//! (the section `.pbl.labels`). It is not believed: whatever a branch, table, call, slot or export leads to
//! must be among them, and the pass over the code finds each at an instruction. A label too many only loses
//! facts. They are kept in a bit map and numbered by counting bits, so that none is searched for.
//!
//! Invariants kept: the section is read once, and tables within a budget, so both are linear in the module's
//! size.

use crate::memory::in_rodata;
use crate::state::Word;
use crate::{Module, Refusal, Rule};

/// A bit map over the text, and a word for each label.
pub struct Labels<S> {
    pub marks: S,
    /// Number of labels before each block of 64 bytes.
    pub ranks: S,
    pub words: S,
}

pub const fn blocks(text_len: usize) -> usize {
    text_len / 64 + 1
}

impl<'s> Labels<&'s [u64]> {
    pub fn of(scratch: &'s [u64], text_len: usize) -> Option<Self> {
        let n = blocks(text_len);
        let (marks, rest) = scratch.split_at_checked(n)?;
        let (ranks, words) = rest.split_at_checked(n)?;
        Some(Labels { marks, ranks, words })
    }
}

impl<'s> Labels<&'s mut [u64]> {
    /// Reads the section: each byte is the distance from the last label, or from the begin of the text, to
    /// the next; 255 only leads on.
    pub fn read(scratch: &'s mut [u64], module: &Module<'_>) -> Result<(Self, usize), Refusal> {
        let no_room = Refusal { at: module.text_at, rule: Rule::Layout };
        let (marks, rest) = scratch.split_at_mut_checked(blocks(module.text.len())).ok_or(no_room)?;
        let (ranks, words) = rest.split_at_mut_checked(marks.len()).ok_or(no_room)?;
        if module.labels.is_empty() {
            return Err(Refusal { at: module.text_at, rule: Rule::Hint }); // the first slot is one
        }
        marks.fill(0);
        let mut at = 0;
        for distance in module.labels {
            at += *distance as usize;
            if at >= module.text.len() {
                return Err(Refusal { at: module.text_at.saturating_add(at as u32), rule: Rule::Hint });
            }
            if let Some(block) = marks.get_mut(at / 64) {
                *block |= ((*distance != 255) as u64) << (at % 64);
            }
        }
        let mut total = 0;
        for (marks, rank) in marks.iter().zip(ranks.iter_mut()) {
            *rank = total as u64;
            total += marks.count_ones() as usize;
        }
        words.get_mut(..total).ok_or(no_room)?.fill(0);
        Ok((Labels { marks, ranks, words }, total))
    }

    pub fn set_word(&mut self, rank: usize, word: Word) {
        if let Some(slot) = self.words.get_mut(rank) {
            *slot = word.0;
        }
    }
}

impl<S: core::ops::Deref<Target = [u64]>> Labels<S> {
    /// The number of a label.
    #[inline]
    pub fn rank(&self, offset: usize) -> Option<usize> {
        let block = *self.marks.get(offset / 64)?;
        let bit = 1u64 << (offset % 64);
        if block & bit == 0 {
            return None;
        }
        Some(*self.ranks.get(offset / 64)? as usize + (block & (bit - 1)).count_ones() as usize)
    }

    pub fn word(&self, rank: usize) -> Word {
        Word(self.words.get(rank).copied().unwrap_or(0))
    }

    /// The first label at or after `offset`.
    pub fn next(&self, offset: usize) -> Option<usize> {
        let mut block = offset / 64;
        let mut bits = self.marks.get(block)? & u64::MAX << (offset % 64);
        while bits == 0 {
            block += 1;
            bits = *self.marks.get(block)?;
        }
        Some(block * 64 + bits.trailing_zeros() as usize)
    }

    /// The last label at or before `offset`.
    pub fn last(&self, offset: usize) -> Option<usize> {
        let mut block = offset / 64;
        let mut bits = self.marks.get(block)? & u64::MAX >> (63 - offset % 64);
        while bits == 0 {
            block = block.checked_sub(1)?;
            bits = *self.marks.get(block)?;
        }
        Some(block * 64 + 63 - bits.leading_zeros() as usize)
    }
}

/// Where an indirect jump may lead: by distances in read-only data, or to slots of 8 bytes in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Targets {
    pub at: u32,
    pub count: u32,
    pub slots: bool,
}

/// Jump tables that were read lately, so that many jumps through one table cost little; and what reading may
/// still cost.
pub struct Tables<K> {
    lately: [Option<(Targets, K)>; 16],
    budget: usize,
}

impl<K: Copy + PartialEq> Tables<K> {
    pub fn new(module: &Module<'_>) -> Self {
        Tables { lately: [None; 16], budget: module.text.len() + module.rodata.len() }
    }

    /// Whether a table must be read, in this context. An error if too much has been read.
    pub fn fresh(&mut self, table: Targets, key: K) -> Result<bool, Rule> {
        let place = (table.at >> 2 ^ table.at >> 6) as usize % 16;
        if self.lately[place] == Some((table, key)) {
            return Ok(false);
        }
        self.budget = self.budget.checked_sub(table.count as usize).ok_or(Rule::Table)?;
        self.lately[place] = Some((table, key));
        Ok(true)
    }
}

/// The offset in the text of an address.
pub fn offset(module: &Module<'_>, address: u32) -> Option<usize> {
    let offset = address.checked_sub(module.text_at)? as usize;
    (offset < module.text.len()).then_some(offset)
}

/// Calls `visit` with the offset in the text of each target.
pub fn targets(
    module: &Module<'_>,
    table: Targets,
    mut visit: impl FnMut(usize) -> Result<(), Rule>,
) -> Result<(), Rule> {
    let Targets { at, count, slots } = table;
    if slots {
        let bytes = count.checked_mul(8).ok_or(Rule::Table)?;
        let first = offset(module, at).ok_or(Rule::Table)?;
        let inside = at % bytes == 0 && first + bytes as usize <= module.text.len();
        return if inside {
            (0..count as usize).try_for_each(|i| visit(first + 8 * i))
        } else {
            Err(Rule::Table)
        };
    }
    for entry in in_rodata(module, at, count).ok_or(Rule::Table)?.as_chunks::<4>().0 {
        visit(offset(module, at.wrapping_add(u32::from_le_bytes(*entry))).ok_or(Rule::Table)?)?;
    }
    Ok(())
}

//! The first pass: where instructions start, and where branches lead.
//!
//! Problem: facts must be dropped at labels, and a backward branch makes a label of code that has been passed. Strategy: one sweep
//! over the text decodes every instruction and marks its start and the targets of its branch, jump table or slot table in
//! two bit maps; then labels are numbered by counting bits, so that each has one word of scratch and none is searched for.
//!
//! Invariants kept: every label lies on an instruction; tables are read within a budget that is linear in the module's size.

use crate::decode::{Insn, decode, decode_into, skim};
use crate::memory::in_rodata;
use crate::sequence::Seq;
use crate::state::Word;
use crate::table::{IMM_MASK, IMM8, class, class_of};
use crate::{Module, Refusal, Rule};

/// Bit maps over the text, and a word for each label.
pub struct Labels<S> {
    pub starts: S,
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
        let (starts, rest) = scratch.split_at_checked(n)?;
        let (marks, rest) = rest.split_at_checked(n)?;
        let (ranks, words) = rest.split_at_checked(n)?;
        Some(Labels { starts, marks, ranks, words })
    }
}

impl<'s> Labels<&'s mut [u64]> {
    pub fn of_mut(scratch: &'s mut [u64], text_len: usize) -> Option<Self> {
        let n = blocks(text_len);
        let (starts, rest) = scratch.split_at_mut_checked(n)?;
        let (marks, rest) = rest.split_at_mut_checked(n)?;
        let (ranks, words) = rest.split_at_mut_checked(n)?;
        starts.fill(0);
        marks.fill(0);
        Some(Labels { starts, marks, ranks, words })
    }

    fn mark(&mut self, offset: usize) {
        if let Some(block) = self.marks.get_mut(offset / 64) {
            *block |= 1 << (offset % 64);
        }
    }

    pub fn set_word(&mut self, rank: usize, word: Word) {
        if let Some(slot) = self.words.get_mut(rank) {
            *slot = word.0;
        }
    }
}

impl<S: core::ops::Deref<Target = [u64]>> Labels<S> {
    pub fn is_start(&self, offset: usize) -> bool {
        self.starts.get(offset / 64).is_some_and(|block| block >> (offset % 64) & 1 != 0)
    }

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

/// Jump tables that were read lately, so that many jumps through one table cost little; and what reading may still cost.
pub struct Tables<K> {
    lately: [Option<(u32, u32, K)>; 16],
    budget: usize,
}

impl<K: Copy + PartialEq> Tables<K> {
    pub fn new(module: &Module<'_>) -> Self {
        Tables { lately: [None; 16], budget: module.text.len() + module.rodata.len() }
    }

    /// Whether a table must be read, in this context. An error if too much has been read.
    pub fn fresh(&mut self, at: u32, count: u32, key: K) -> Result<bool, Rule> {
        let place = (at >> 2 ^ at >> 6) as usize % 16;
        if self.lately[place] == Some((at, count, key)) {
            return Ok(false);
        }
        self.budget = self.budget.checked_sub(count as usize).ok_or(Rule::Table)?;
        self.lately[place] = Some((at, count, key));
        Ok(true)
    }
}

/// The offset in the text of an address.
pub fn offset(module: &Module<'_>, address: u32) -> Option<usize> {
    let offset = address.checked_sub(module.text_at)? as usize;
    (offset < module.text.len()).then_some(offset)
}

/// Calls `visit` with the offset in the text that each entry of a jump table leads to.
pub fn entries(
    module: &Module<'_>,
    at: u32,
    count: u32,
    mut visit: impl FnMut(usize) -> Result<(), Rule>,
) -> Result<(), Rule> {
    let bytes = in_rodata(module, at, count).ok_or(Rule::Table)?;
    for entry in bytes.chunks_exact(4) {
        let distance = entry.first_chunk::<4>().map_or(0, |b| u32::from_le_bytes(*b));
        visit(offset(module, at.wrapping_add(distance)).ok_or(Rule::Table)?)?;
    }
    Ok(())
}

/// The same for slots in the text.
pub fn slots(
    module: &Module<'_>,
    at: u32,
    count: u32,
    mut visit: impl FnMut(usize) -> Result<(), Rule>,
) -> Result<(), Rule> {
    let bytes = count.checked_mul(8).ok_or(Rule::Table)?;
    let first = offset(module, at).ok_or(Rule::Table)?;
    if at % bytes != 0 || first + bytes as usize > module.text.len() {
        return Err(Rule::Table);
    }
    (0..count as usize).try_for_each(|i| visit(first + 8 * i))
}

/// Follows the last instructions again: do they end in an indirect jump whose targets become labels?
#[cold]
fn mark_indirect(
    module: &Module<'_>,
    ftab_mask: u32,
    labels: &mut Labels<&mut [u64]>,
    tables: &mut Tables<()>,
    lately: &[usize; 5],
) -> Result<(), Rule> {
    let mut seq = Seq::None;
    let mut insn = Insn::default();
    for at in lately {
        if insn.class == class::INDIRECT {
            seq = Seq::None;
        }
        decode_into(module.text, *at, &mut insn)?;
        if insn.class != class::INDIRECT {
            seq = seq.after(&insn, (module.text_at + *at as u32).wrapping_add(insn.len as u32), ftab_mask);
        }
    }
    if insn.mem || insn.ext != 4 || seq.ready() != Some(insn.rm) {
        return Ok(()); // the second pass judges
    }
    let mark = |to: usize| {
        labels.mark(to);
        Ok(())
    };
    match seq {
        Seq::Table { at, count, .. } if tables.fresh(at, count, ())? => entries(module, at, count, mark),
        Seq::Slots { at, count, .. } if tables.fresh(at, count, ())? => slots(module, at, count, mark),
        _ => Ok(()),
    }
}

/// Fills the bit maps and numbers the labels; gives the number of instructions and of labels.
pub fn find(
    module: &Module<'_>,
    ftab_mask: u32,
    labels: &mut Labels<&mut [u64]>,
) -> Result<(u32, usize), Refusal> {
    let text = module.text;
    let mut tables = Tables::new(module);
    let mut lately = [0; 5];
    let (mut at, mut count) = (0, 0u32);
    while at < text.len() {
        let refuse = |rule| Refusal { at: module.text_at + at as u32, rule };
        let (len, attr) = skim(text, at);
        if attr == 0 || len == 0 {
            // the second pass would refuse it; so that it is refused for the right reason:
            return Err(refuse(decode(text, at).err().unwrap_or(Rule::Instruction)));
        }
        if let Some(block) = labels.starts.get_mut(at / 64) {
            *block |= 1 << (at % 64);
        }
        lately = [lately[1], lately[2], lately[3], lately[4], at];
        let class = class_of(attr);
        if matches!(class, class::BRANCH | class::JUMP | class::CALL) {
            // the distance is the instruction's end
            let bytes = if attr & IMM_MASK == IMM8 { 1 } else { 4 };
            let end = text.get(at..at + len).unwrap_or_default();
            let distance = match (bytes, end.last_chunk::<4>(), end.last()) {
                (1, _, Some(byte)) => *byte as i8 as i32,
                (_, Some(word), _) => i32::from_le_bytes(*word),
                _ => return Err(refuse(Rule::Truncated)),
            };
            let next = module.text_at + (at + len) as u32;
            let to = offset(module, next.wrapping_add(distance as u32));
            labels.mark(to.ok_or(refuse(Rule::Target))?);
        } else if class == class::INDIRECT {
            mark_indirect(module, ftab_mask, labels, &mut tables, &lately).map_err(refuse)?;
        }
        at += len;
        count += 1;
    }
    for to in (0..module.ftab_size as usize).step_by(8) {
        labels.mark(to);
    }
    for export in module.exports {
        let to = offset(module, *export).ok_or(Refusal { at: *export, rule: Rule::Callee })?;
        labels.mark(to);
    }
    Ok((count, number(module, labels)?))
}

fn number(module: &Module<'_>, labels: &mut Labels<&mut [u64]>) -> Result<usize, Refusal> {
    let mut total = 0;
    for (i, marks) in labels.marks.iter().enumerate() {
        let stray = marks & !labels.starts[i];
        if stray != 0 {
            let target = i * 64 + stray.trailing_zeros() as usize;
            return Err(astray(module, target));
        }
        labels.ranks[i] = total as u64;
        total += marks.count_ones() as usize;
    }
    match labels.words.get_mut(..total) {
        Some(words) => words.fill(0),
        None => return Err(Refusal { at: module.text_at, rule: Rule::Layout }),
    }
    Ok(total)
}

/// Blames the first direct branch into the middle of an instruction; without one a table, slot or export.
#[cold]
fn astray(module: &Module<'_>, target: usize) -> Refusal {
    let mut at = 0;
    while let Ok(insn) = decode(module.text, at) {
        let next = at as u32 + insn.len as u32;
        let direct = matches!(insn.class, class::BRANCH | class::JUMP | class::CALL);
        if direct && next.wrapping_add(insn.imm as u32) as usize == target {
            return Refusal { at: module.text_at + at as u32, rule: Rule::Target };
        }
        at = next as usize;
    }
    Refusal { at: module.text_at + target as u32, rule: Rule::Target }
}

//! Portals changed by hand: instructions put in and replaced, frames with more words.

use super::cases::Case;
use super::words::{Kind, Words};
use core::marker::PhantomData;
use pebble_portal::Processor;
use pebble_portal::hardware::verify;
use pebble_portal::isa::{mips64, riscv64};

/// Positions are in words.
pub struct Edit<W> {
    pub case: Case,
    pub words: Vec<u32>,
    pub call: usize,
    pub ret: usize,
    frame: i64,
    machine: PhantomData<W>,
}

impl<W: Words> Edit<W> {
    pub fn new(case: &Case) -> Self {
        let case = case.clone().on(W::PROCESSOR);
        let code = case.form();
        let ret = code.ret_at.map_or(code.words.len(), |at| usize::from(at) / 4);
        let words = code.words.to_vec();
        let frame = if ret > 1 && code.ret_at.is_some() { i64::from(words[ret - 2] as u16) } else { 0 };
        Edit { case, words, call: usize::from(code.call_words), ret, frame, machine: PhantomData }
    }

    pub fn named(name: &str) -> Self {
        Self::new(&super::cases::all().into_iter().find(|case| case.name == name).expect("a case"))
    }

    pub fn verdict(&self) -> Result<(), String> {
        let Case { spec, shape, connection, processor, .. } = &self.case;
        verify::form(&self.words, spec, *shape, connection, *processor).map_err(|e| e.to_string())
    }

    /// Where an instruction reads so, from this position on.
    pub fn find(&self, from: usize, text: &str) -> usize {
        let found = (from..self.words.len()).find(|i| W::text(self.words[*i]) == text);
        found.unwrap_or_else(|| panic!("no `{text}` behind {from} of {}", self.case.name))
    }

    /// The first instruction from this position on whose text begins so.
    pub fn first(&self, from: usize, text: &str) -> usize {
        let found = (from..self.words.len()).find(|i| W::text(self.words[*i]).starts_with(text));
        found.unwrap_or_else(|| panic!("no `{text}` behind {from} of {}", self.case.name))
    }

    /// Puts an even number of instructions before this one, which branches to it lead to from now on.
    pub fn insert(&mut self, at: usize, new: &[u32]) {
        assert!(new.len().is_multiple_of(2));
        let by = new.len();
        let moved = |x: usize| x + if x > at { by } else { 0 };
        let in_call = at < self.call;
        for i in 0..self.words.len() {
            let word = self.words[i];
            let there = if in_call { i < self.call } else { i >= self.ret };
            if let Some(Kind::Branch(distance)) = W::kind(word).filter(|_| there) {
                let from = i + if i >= at { by } else { 0 };
                let target = moved((i as i64 + distance / 4) as usize);
                self.words[i] = W::with_distance(word, (target as i64 - from as i64) * 4);
            } else if let Some(offset) = W::reaches(word).filter(|offset| there && *offset > 0) {
                self.words[i] = W::with_number(word, offset + by as i64 * 4);
            } else if let Some(back) = W::comes_back(word).filter(|_| there && at + 2 <= i) {
                self.words[i] = W::with_number(word, back - by as i64 * 4);
            }
        }
        let shifted = |word: &u32| {
            let offset = W::reaches(*word).filter(|offset| *offset > 0);
            offset.map_or(*word, |offset| W::with_number(*word, offset + by as i64 * 4))
        };
        self.words.splice(at..at, new.iter().map(shifted));
        if in_call {
            self.call += by;
            self.ret += by;
        }
    }

    /// Base and offset of a load or store; registers and number of a sum.
    fn parts(word: u32) -> Option<(u8, i64)> {
        match W::PROCESSOR {
            Processor::Mips64 => match mips64::decode::decode(word)? {
                mips64::decode::Insn::Load { base, imm, .. } => Some((base, imm)),
                mips64::decode::Insn::Store { base, imm, .. } => Some((base, imm)),
                mips64::decode::Insn::AluImm { op: mips64::decode::Alu::Daddu, rt, rs, imm } if rt == rs => {
                    Some((rs, imm))
                }
                _ => None,
            },
            _ => match riscv64::decode::decode(word)? {
                riscv64::decode::Insn::Load { rs1, imm, .. } => Some((rs1, imm)),
                riscv64::decode::Insn::Store { rs1, imm, .. } => Some((rs1, imm)),
                riscv64::decode::Insn::AluImm { op: riscv64::decode::Alu::Add, rd, rs1, imm }
                    if rd == rs1 =>
                {
                    Some((rs1, imm))
                }
                _ => None,
            },
        }
    }

    /// Makes the frame so many words longer, which nothing fills yet. Returns the offset of the first from
    /// the top before it is pushed.
    pub fn grow(&mut self, by: i64) -> i64 {
        let (old, more) = (self.frame * 8, by * 8);
        let leave = (0..self.call).find(|i| W::kind(self.words[*i]) == Some(Kind::Leave)).expect("an exit");
        for i in (0..leave).chain(self.ret..self.words.len()) {
            let word = self.words[i];
            let of_top = |(base, _): &(u8, i64)| usize::from(*base) == W::TOP;
            let Some((_, imm)) = Self::parts(word).filter(of_top) else { continue };
            let number = match i < self.call {
                true if imm == old => imm + more,
                false if imm < 0 => imm - more,
                _ => imm,
            };
            self.words[i] = W::with_number(word, number);
        }
        self.frame += by;
        self.words[self.ret - 2] += by as u32;
        old
    }

    /// The same word, from the return leg.
    pub fn kept(&self, offset: i64) -> i64 {
        offset - self.frame * 8
    }

    pub fn refused(&self, what: &str) {
        assert!(self.verdict().is_err(), "accepted: {what}\n{}", self.listing());
    }

    pub fn listing(&self) -> String {
        let line = |(i, word): (usize, &u32)| format!("{:4x}: {}\n", i * 4, W::text(*word));
        self.words.iter().enumerate().map(line).collect()
    }
}

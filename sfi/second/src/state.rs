//! What is known at a point of the code: values of registers, the data stack pointer, the return stack.

use crate::Rule;

/// How far outside the segment an address may be where two ways meet.
pub const SLACK_AT_JOIN: u32 = 64 << 10;
/// The most that is followed.
pub const SLACK_MOST: u32 = 1 << 30;

/// What a general register holds. Addresses are segment offsets; the register has the segment's base added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    Any,
    /// Below 4 GiB.
    Short,
    /// Below 4 GiB, and no bit but these.
    Masked(u32),
    Base,
    /// In the segment, or at most so far outside.
    Inside(u32),
    /// This address, in the image.
    Address(u32),
    /// A slot of the ftab, or below it.
    Slot,
    /// One of the slots of 8 bytes at this address in the text: their offsets have no bit but these.
    Spot(u32, u32),
    /// An entry of the table of 32-bit distances at this address, whose index has no bit but these.
    Entry(u32, u32),
    /// The same, plus the address of the table.
    Jump(u32, u32),
}

use Value::*;

impl Value {
    /// Whether the upper half is zero.
    pub fn is_short(self) -> bool {
        matches!(self, Short | Masked(_))
    }

    /// How far outside the segment, if that is bounded.
    pub fn slack(self) -> Option<u32> {
        match self {
            Inside(slack) => Some(slack),
            Base | Address(_) | Slot => Some(0),
            _ => None,
        }
    }

    /// What holds of either. Of two distances that differ the bound is taken, so that loops end.
    fn meet(self, other: Value) -> Value {
        match (self.slack(), other.slack()) {
            _ if self == other => self,
            (Some(a), Some(b)) if a.max(b) <= SLACK_AT_JOIN => Inside(SLACK_AT_JOIN),
            _ if self.is_short() && other.is_short() => Short,
            _ => Any,
        }
    }
}

/// Where `rbp` is, from its value at the function's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rbp {
    At(i32),
    /// `ebp` was loaded, the segment's base is to be added next.
    Half,
    /// Anywhere in the segment.
    Dynamic,
}

/// A word that the function has pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    Other,
    /// The entry value of a preserved register.
    Saved(usize),
    /// `rbp` with this delta.
    Rbp(i32),
}

pub const PRESERVED: u16 = 1 << 3 | 1 << 12 | 1 << 13 | 1 << 14 | 1 << 15;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    pub values: [Value; 16],
    pub rbp: Rbp,
    /// The next instruction has to touch `(%rbp)`.
    pub touch: bool,
    pub words: Vec<Word>,
    /// Preserved registers that hold what they held at entry.
    pub kept: u16,
}

impl State {
    pub fn entry() -> State {
        State { values: [Any; 16], rbp: Rbp::At(0), touch: false, words: vec![], kept: PRESERVED }
    }

    pub fn forget(&mut self) {
        self.values = [Any; 16];
    }

    /// What arrives at a branch's target: not where `rbp` is dynamic, and a pushed `rbp` is any word from
    /// there on.
    pub fn across(&self) -> Result<State, Rule> {
        if !matches!(self.rbp, Rbp::At(_)) {
            return Err(Rule::Dynamic);
        }
        let mut state = self.clone();
        for word in state.words.iter_mut().filter(|word| matches!(word, Word::Rbp(_))) {
            *word = Word::Other;
        }
        Ok(state)
    }

    /// `ret`, or a jump to a function.
    pub fn leave(&self) -> Result<(), Rule> {
        match self.rbp {
            _ if !self.words.is_empty() => Err(Rule::Depth),
            Rbp::At(0) => Ok(()),
            _ => Err(Rule::Delta),
        }
    }

    /// Takes in another way to the same place; says whether less is known now.
    pub fn join(&mut self, other: &State) -> Result<bool, Rule> {
        if self.words.len() != other.words.len() || self.rbp != other.rbp {
            return Err(Rule::Join);
        }
        let before = self.clone();
        for (value, other) in self.values.iter_mut().zip(&other.values) {
            *value = value.meet(*other);
        }
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            if word != other {
                *word = Word::Other;
            }
        }
        self.kept &= other.kept;
        self.touch |= other.touch;
        Ok(*self != before)
    }
}

//! What is known at one point of the code, and its form at a label.
//!
//! Problem: a state must be compared at every label in constant time and fit in the caller's scratch.
//! Strategy: what must agree at a label (depth, delta, saved slots) is one word; facts are bit masks over the
//! registers, and live only between labels unless a record of the facts section carries them.
//!
//! Invariants kept: a fact bit of `rsp` or `rbp` is never set; nibbles of `slots` at or above the depth are
//! 0.

use crate::Rule;
use crate::decode::RBP;
use crate::sequence::Seq;

/// rbx and r12 to r15, which functions preserve; `rbp` has its own rules.
pub const PRESERVED: u16 = 0xf008;
/// What is known of the registers: three facts, and of preserved ones whether they hold their values at
/// entry; bit n of a group is register n.
pub const ZX: u32 = 0;
pub const BASE: u32 = 16;
pub const SEG: u32 = 32;
pub const INTACT: u32 = 48;
pub const GROUPS: u64 = 0x0001_0001_0001_0001;
pub const FACTS: u64 = (1 << INTACT) - 1;
pub const MAX_DEPTH: u32 = 15;
/// How many pushed words are remembered.
const SLOTS: u32 = 7;
const MIN_DELTA: i64 = -(1 << 30) + 1;
/// What may stay untouched below `rbp`: with at most 4 MiB of return stack the sum is at most 2 GiB.
const UNTOUCHED: i64 = -4096;
pub const MAX_SLACK: u32 = 1 << 30;
pub const LABEL_SLACK: u32 = 1 << 16;

/// What the next instruction must be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pending {
    #[default]
    Nothing,
    /// a load or store at `(%rbp)`
    Touch,
    /// `addq %gs:0x10000,%rbp`
    AddBase,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// Saved slots in nibbles, depth in the highest: as in a record.
    pub slots: u32,
    /// The registers that they hold.
    pub saved: u16,
    pub delta: i32,
    pub dynamic: bool,
    pub pending: Pending,
    /// The word that a pushed `rbp` is in, and its delta.
    pub pushed_rbp: Option<(u8, i32)>,
    pub known: u64,
    pub slack: [u32; 16],
    pub seq: Seq,
    pub x87: bool,
    pub fp_control: bool,
}

/// Depth, delta and slots of a label in a scratch word. Zero: not known yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word(pub u64);

const SET: u64 = 1 << 63;
const FIXED: u64 = 1 << 62;
/// In the free bit of the first slot's nibble: calls arrive here.
const ENTRY: u64 = 8;

impl Word {
    pub const UNKNOWN: Word = Word(0);

    pub fn record(index: u32) -> Word {
        Word(SET | FIXED | (index as u64) << 32)
    }
    pub fn is_set(self) -> bool {
        self.0 & SET != 0
    }
    /// The record that rules here.
    pub fn fixed(self) -> Option<u32> {
        (self.0 & FIXED != 0).then_some(((self.0 & !(SET | FIXED)) >> 32) as u32)
    }
    pub fn called(self) -> Word {
        Word(self.0 | ENTRY)
    }
    pub fn is_called(self) -> bool {
        self.0 & ENTRY != 0
    }
    pub fn of(slots: u32, delta: i32) -> Word {
        Word(SET | slots as u64 | (delta.unsigned_abs() as u64) << 32)
    }
    pub fn entry() -> Word {
        Word::of(0, 0)
    }
    pub fn slots(self) -> u32 {
        (self.0 & !ENTRY) as u32
    }
    pub fn delta(self) -> i32 {
        -((self.0 >> 32) as i32 & 0x3fff_ffff)
    }
    /// The meet of two states at a label, if they agree where they must.
    pub fn meet(self, other: Word) -> Option<Word> {
        let (a, b) = (self.slots(), other.slots());
        if a >> 28 != b >> 28 || self.delta() != other.delta() {
            return None;
        }
        let x = a ^ b;
        let differ = (x | x >> 1 | x >> 2 | x >> 3) & 0x0111_1111;
        Some(Word(self.0 & !((differ * 15) as u64)))
    }
    /// Whether a state `other` may arrive at a label that is `self` for good.
    pub fn admits(self, other: Word) -> bool {
        self.meet(other).is_some_and(|met| met.slots() == self.slots())
    }
}

/// The nibble that stands for a preserved register.
pub fn kind_of(reg: u8) -> u32 {
    match reg {
        3 => 1,
        12..=15 => reg as u32 - 10,
        _ => 0,
    }
}

/// The registers whose values at entry are on the return stack: they may hold anything.
pub fn saved(slots: u32) -> u16 {
    const REGS: [u16; 8] = [0, 1 << 3, 1 << 12, 1 << 13, 1 << 14, 1 << 15, 0, 0];
    // all of them: nobody could predict how many there are
    (0..SLOTS).fold(0, |regs, word| regs | REGS[(slots >> (4 * word) & 7) as usize])
}

impl State {
    pub fn new(word: Word, facts: u64) -> State {
        let mut state = State { slack: [LABEL_SLACK; 16], ..State::default() };
        state.reset(word, facts);
        state
    }

    /// The same state object at a label.
    pub fn reset(&mut self, word: Word, facts: u64) {
        self.saved = self.saved_in(word.slots());
        self.slots = word.slots();
        self.delta = word.delta();
        self.dynamic = false;
        self.pushed_rbp = None;
        self.known = facts | ((PRESERVED & !self.saved) as u64) << INTACT;
        if facts >> SEG != 0 {
            self.slack = [LABEL_SLACK; 16];
        }
        self.seq = Seq::None;
    }

    /// As [`saved`], which takes long.
    pub fn saved_in(&self, slots: u32) -> u16 {
        if slots == self.slots { self.saved } else { saved(slots) }
    }

    /// No instruction but an ordinary one is waited for.
    pub fn calm(&self) -> bool {
        self.pending == Pending::Nothing && matches!(self.seq, Seq::None)
    }
    pub fn word(&self) -> Word {
        Word::of(self.slots, self.delta)
    }
    pub fn depth(&self) -> u32 {
        self.slots >> 28
    }
    pub fn intact(&self) -> u16 {
        (self.known >> INTACT) as u16
    }
    /// Whether this is known of the register.
    pub fn knows(&self, group: u32, reg: u8) -> bool {
        self.known >> (group | reg as u32 & 15) & 1 != 0
    }
    pub fn learn(&mut self, group: u32, reg: u8) {
        self.known |= 1 << (group | reg as u32 & 15);
    }

    /// Forgets what was known of the registers; those written by a 32-bit operation are zero-extended.
    #[inline(always)]
    pub fn write(&mut self, regs: u16, zero_extended: bool) {
        self.known &= !(regs as u64 * GROUPS);
        self.known |= if zero_extended { regs as u64 } else { 0 };
    }

    /// `to` is in segment, but for so much; an unbounded fact is none.
    pub fn set_segment(&mut self, to: u8, slack: u64) {
        if slack <= MAX_SLACK as u64 {
            self.learn(SEG, to);
            self.slack[(to & 15) as usize] = slack as u32;
        } else {
            self.known &= !(1 << (SEG | to as u32 & 15));
        }
    }

    /// In segment, but for this many bytes. The data stack pointer always is.
    pub fn segment(&self, reg: u8) -> Option<u32> {
        if reg == RBP {
            return Some(0);
        }
        self.knows(SEG, reg).then_some(self.slack[(reg & 15) as usize])
    }

    pub fn push(&mut self, reg: u8) -> Result<(), Rule> {
        let depth = self.depth();
        if depth == MAX_DEPTH {
            return Err(Rule::Depth);
        }
        if self.knows(INTACT, reg) && depth < SLOTS {
            self.slots |= kind_of(reg) << (4 * depth);
            self.saved |= 1 << reg & PRESERVED;
        }
        if reg == RBP && !self.dynamic {
            self.pushed_rbp = Some((depth as u8, self.delta));
        }
        self.slots += 1 << 28;
        Ok(())
    }

    pub fn pop(&mut self, reg: u8) -> Result<(), Rule> {
        if self.depth() == 0 {
            return Err(Rule::Depth);
        }
        self.slots -= 1 << 28;
        let depth = self.depth();
        let mut held = 0;
        if depth < SLOTS {
            held = self.slots >> (4 * depth) & 15;
            self.slots &= !(15 << (4 * depth));
            self.saved = saved(self.slots);
        }
        let pushed = self.pushed_rbp.take_if(|(word, _)| *word as u32 == depth);
        if reg == RBP {
            let (_, delta) = pushed.ok_or(Rule::DataStackPointer)?;
            self.delta = delta;
            self.dynamic = false;
            return Ok(());
        }
        self.write(1 << reg, false);
        if held != 0 && held == kind_of(reg) {
            self.learn(INTACT, reg);
        }
        Ok(())
    }

    /// `rbp` plus a constant.
    pub fn move_delta(&mut self, by: i64) -> Result<(), Rule> {
        if self.dynamic {
            return Err(Rule::DataStackPointer);
        }
        let delta = self.delta as i64 + by;
        if !(MIN_DELTA..=0).contains(&delta) {
            return Err(Rule::Delta);
        }
        if by < 0 && delta < UNTOUCHED {
            self.pending = Pending::Touch;
        }
        self.delta = delta as i32;
        Ok(())
    }

    /// Copies the facts of `from`: `movq`, or with a distance `leaq`.
    pub fn copy(&mut self, from: u8, to: u8, distance: u64) {
        let slack = self.segment(from).map(|slack| slack as u64 + distance);
        let groups = if distance != 0 || from == to { 0 } else { 1 << ZX | 1 << BASE };
        let copied = self.known >> from & groups;
        self.write(1 << to, false);
        self.known |= copied << to;
        if let Some(slack) = slack {
            self.set_segment(to, slack);
        }
    }
}

//! What is known at one point of the code: registers, control registers, frame words, deeds.

use super::leg::MAX_FRAME;
use super::machine::Machine;
use super::value::*;

/// Things done so far, as bits of [`State::done`].
pub(super) mod done {
    pub const ROOM: u16 = 1;
    pub const COUNTED: u16 = 2;
    pub const SEMAPHORE: u16 = 4;
    pub const TAKEN: u16 = 8;
    pub const LINKED: u16 = 16;
    pub const GIVEN: u16 = 32;
    /// The short-circuit portal's effect on the machine.
    pub const EFFECT: u16 = 64;
    /// Known to have been entered by an interrupt.
    pub const INTERRUPT: u16 = 128;
    /// Whoever waits finds the callee's number.
    pub const TOLD: u16 = 256;
    /// The top frame is known to be that of a late call.
    pub const LATE: u16 = 512;
    /// What was written to a control register may not be there yet.
    pub const PENDING: u16 = 1024;
}

/// A set of frame words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Words([u64; 2]);

const _: () = assert!(MAX_FRAME <= 128);

impl Words {
    pub(super) const NONE: Words = Words([0; 2]);

    pub(super) fn below(end: usize) -> Self {
        let all = (1u128 << end) - 1;
        Words([all as u64, (all >> 64) as u64])
    }

    #[inline(always)]
    pub(super) fn has(self, word: usize) -> bool {
        self.0[word / 64 % 2] >> (word % 64) & 1 == 1
    }

    /// Whether it was not there yet.
    #[inline(always)]
    pub(super) fn add(&mut self, word: usize) -> bool {
        let half = &mut self.0[word / 64 % 2];
        let before = *half;
        *half |= 1 << (word % 64);
        *half != before
    }
}

#[derive(Clone, Copy, PartialEq)]
pub(super) struct State {
    pub(super) regs: Values<32>,
    /// What the registers held at first.
    pub(super) origin: Kind,
    /// Which were set since (low half); which were cleared since (high half).
    pub(super) marks: u64,
    /// Top of the invocation stack; address space; where user mode goes on.
    pub(super) top: Value,
    pub(super) space: Value,
    pub(super) pc: Value,
    /// Whether interrupts were turned on, or off.
    pub(super) interrupts: Option<bool>,
    /// What is beside: a control register; whether the others are on; which were cleared; which were loaded
    /// with what was saved.
    pub(super) mode: Value,
    pub(super) on: bool,
    pub(super) beside_zero: u32,
    pub(super) beside_restored: u32,
    /// Frame words written.
    pub(super) stored: Words,
    /// Words of the thread block written by the switch.
    pub(super) block: u16,
    pub(super) done: u16,
    /// What tests and stores for windows have shown: `window::fact`.
    pub(super) known: u64,
    /// Slots taken from, given back to the callee's two queues.
    pub(super) taken: [u8; 2],
    pub(super) given: [u8; 2],
    /// Changes of the two counts of moved pages, and their sums.
    pub(super) moves: [u8; 2],
    pub(super) moved: [i32; 2],
    /// Templates run.
    pub(super) translated: usize,
    /// On the way out of a call that is refused with this code.
    pub(super) refusing: u16,
    /// On a slow way: the table entry by which it must go on.
    pub(super) leads: i32,
}

impl State {
    #[inline(always)]
    pub(super) fn new<M: Machine>(origin: Kind, code: usize, on: bool) -> Self {
        let mut regs = Values::numbered(origin);
        regs.set(0, ZERO);
        if M::REGISTERS.begins_with_top() {
            regs.set(M::REGISTERS.top, Value(Kind::Top, 0));
        }
        regs.set(M::REGISTERS.code, Value(Kind::Code, code as i32));
        // What the callee left in control registers is nobody's.
        let control = |value| if origin == Kind::Own { value } else { UNKNOWN };
        State {
            regs,
            origin,
            marks: SET * M::REGISTERS.nucleus as u64,
            top: Value(Kind::Top, 0),
            space: control(M::SPACE),
            pc: control(M::PC),
            interrupts: None,
            mode: control(M::MODE),
            on,
            beside_zero: 0,
            beside_restored: 0,
            stored: Words::default(),
            block: 0,
            done: 0,
            known: 0,
            taken: [0; 2],
            given: [0; 2],
            moves: [0; 2],
            moved: [0; 2],
            translated: 0,
            refusing: 0,
            leads: 0,
        }
    }

    #[inline(always)]
    pub(super) fn get(&self, x: u8) -> Value {
        self.regs.get(usize::from(x & 31))
    }

    #[inline(always)]
    pub(super) fn set(&mut self, x: u8, value: Value) {
        if x & 31 != 0 {
            self.regs.set(usize::from(x & 31), value);
        }
        self.marks = self.marks & !(CLEARED << (x & 31)) | SET << (x & 31);
    }

    #[inline(always)]
    pub(super) fn clear(&mut self, x: u8) {
        self.regs.set(usize::from(x & 31), ZERO);
        self.marks |= CLEARED << (x & 31);
    }

    pub(super) fn zero(&self) -> u32 {
        (self.marks >> 32) as u32
    }

    pub(super) fn touched(&self) -> u32 {
        self.marks as u32 | self.zero()
    }

    /// Whether this is the other state, but for registers and what tests have shown.
    pub(super) fn differs_in_registers_alone(&self, other: &State) -> bool {
        let State { regs, marks, known, .. } = *other;
        State { regs, marks, known, ..*self } == *other
    }

    pub(super) fn knows(&self, facts: u64) -> bool {
        self.known & facts == facts
    }

    pub(super) fn did(&self, what: u16) -> bool {
        self.done & what == what
    }
}

/// Marks of register 0 in [`State::marks`].
const SET: u64 = 1;
const CLEARED: u64 = 1 << 32;

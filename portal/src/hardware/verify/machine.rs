//! What the verifier asks of a processor: its registers, and what its instructions mean.

use super::Refusal;
use super::leg::Verifier;
use super::state::State;
use super::value::Value;
use super::way::{Cond, Ways};
use crate::hardware::Short;
use pebble_arch::Arch;

/// Numbers of registers, and sets of them as bits.
pub(super) struct Registers {
    pub link: usize,
    pub stack: usize,
    /// While portal code runs, the address of the leg.
    pub code: usize,
    /// The nucleus's, that one too: user mode finds nothing in them.
    pub nucleus: u32,
    /// Where return codes find the top of the invocation stack; all portal code, if it is one of the
    /// nucleus's.
    pub top: usize,
    /// The index of the portal that is invoked.
    pub index: usize,
    /// The callee's first argument; the caller's first word is in the next register.
    pub argument: usize,
    pub value: usize,
    pub status: usize,
    /// The first of the further results.
    pub results: usize,
    /// In which portal code computes; of a call whose callee has no stack; where there are windows or
    /// templates.
    pub scratch: u32,
    /// With which it jumps behind the beginning of other code.
    pub jump: u32,
    pub stack_scratch: u32,
    pub window_scratch: u32,
    pub temporary: u32,
    pub preserved: u32,
    /// The preserved ones in the order of a thread block.
    pub in_block: &'static [u8],
}

impl Registers {
    /// Value and status.
    pub(super) const fn outcome(&self) -> u32 {
        1 << self.value | 1 << self.status
    }

    pub(super) const fn begins_with_top(&self) -> bool {
        self.nucleus >> self.top & 1 == 1
    }

    /// What the convention keeps in a call.
    pub(super) const fn kept(&self) -> u32 {
        self.preserved | 1 << self.link | 1 << self.stack
    }
}

/// Everything is known when the portal manager is compiled: one processor's verifier has no trace of another.
///
/// What is *beside* are the registers that are neither general ones nor named in [`State`]: those of floating
/// point where there is any, and others that user mode reads and writes.
pub(super) trait Machine: Arch {
    const REGISTERS: Registers;
    /// Control registers at entry.
    const SPACE: Value;
    const PC: Value;
    const CAUSE: Value;
    const FAULT: Value;
    const TIME: Value;
    /// Where whoever waits for a stack finds whose.
    const LACKING: Value;
    /// Of the control register that is beside.
    const MODE: Value;
    /// Double words of the pool, at most.
    const POOL: usize;
    /// Bytes of the domain's exception, behind which begins what only a thread's end comes to.
    const RAISED: usize;
    /// Whoever waits has cleared all registers that it may have used.
    const WAITS_CLEAR: bool;
    /// Tests by which code branches where the stack is full; where a call is not late; where what was entered
    /// is no interrupt.
    const FULL: Cond;
    const TIMELY: Cond;
    const NO_INTERRUPT: (Cond, Value);

    /// Reads the code from offset `at` to the exit that straight execution comes to, whose end it returns, or
    /// to `end`.
    fn straight(
        v: &mut Verifier<Self>,
        at: usize,
        end: usize,
        s: &mut State,
        depth: usize,
        ways: &mut Ways,
    ) -> Result<Option<usize>, Refusal>;
    /// The branch at offset `at`: condition, its two registers, where it leads.
    fn branch(word: u32, at: usize) -> Option<(Cond, (u8, u8), usize)>;
    /// What is executed when the branch there is taken, before the code that it leads to; if there is such.
    const SHADOW: bool;
    fn shadow(v: &mut Verifier<Self>, at: usize, s: &mut State) -> Result<(), Refusal>;
    /// The register that the instruction clears; whether it copies this register to itself.
    fn clears(word: u32) -> Option<u8>;
    fn keeps(word: u32, x: u8) -> bool;

    /// The verdict about a portal that is one sequence of instructions and no other; `None`: this one is read
    /// like any other.
    fn word_by_word(words: &[u32], short: Short) -> Option<Result<(), Refusal>>;

    /// What portal code may read besides: the word at this address, behind this value.
    fn load(v: &Verifier<Self>, s: &State, base: Value, imm: i64) -> Option<Value>;
    /// The test for a stack was passed.
    fn found_stack(s: &mut State);

    /// What is beside is as the caller left it.
    fn untouched(v: &Verifier<Self>, s: &State) -> bool;
    /// It is as it must be where the caller goes on without a call; where the callee is entered; where its
    /// caller goes on; where what was trapped does.
    fn spared(v: &Verifier<Self>, s: &State) -> bool;
    fn entered(v: &Verifier<Self>, s: &State) -> bool;
    fn returned(v: &Verifier<Self>, s: &State) -> bool;
    fn resumed(v: &Verifier<Self>, s: &State) -> bool;
    /// The frame of a trap has every register in its place; floating-point registers have `base` words.
    fn trapped(v: &Verifier<Self>, s: &State, base: usize) -> bool;
}

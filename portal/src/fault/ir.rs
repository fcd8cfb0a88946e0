//! Intermediate representation: what a portal of a fault domain does, step by step.
//!
//! [`steps`] turns a [`Door`] and a [`Crossing`] into a straight sequence of [`Op`]s, which an emitter turns
//! into code as they come.

use crate::spec::{SpecErrorKind, Stack, State};
use crate::{Spec, SpecError};
use arrayvec::ArrayVec;

/// Bytes of a return stack, a power of two, and its alignment. The lowest page is its guard.
pub const STACK_BYTES: u32 = 1 << 22;

/// Length of the instruction that zeroes the status.
pub const STATUS_BYTES: u64 = 2;

/// Status of a portal that is called where none may be.
pub const REENTERED: u32 = 4;

/// From the current mark to the inside word, and what portals put there. The runtime has values of its own.
pub const INSIDE: i32 = 8;
pub const TAKEN: u32 = 1;

/// From the current mark to the number of calls out of domains that have not come back, and the most that
/// there may be: each of them may take a signal when one is to end.
pub const NESTED: i32 = 12;
pub const MOST_NESTED: u32 = 1024;

/// A thread's own stack is all but used up if it is less than this, a power of two, above
/// [`record::STACK_LIMIT`].
pub const STACK_ROOM: u64 = 1 << STACK_ROOM_SHIFT;
pub const STACK_ROOM_SHIFT: u8 = 16;

/// Controls of floating point as a process starts: all exceptions masked, rounding to the nearest.
pub const PLAIN_MXCSR: u32 = 0x1f80;
pub const PLAIN_CONTROL: u16 = 0x37f;

/// Most arguments: the registers of the System V convention.
pub const MAX_ARGS: usize = 6;

/// A specification across this wall. Unlike a hardware portal's, its caller passes up to six words, and every
/// letter is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Door {
    pub stack: Stack,
    pub state: State,
    /// Argument letters.
    pub args: ArrayVec<u8, MAX_ARGS>,
}

impl Door {
    /// The one parser decides; to it a window or a capability is a word.
    pub fn parse(text: &str) -> Result<Door, SpecError> {
        let mut plain = ArrayVec::<u8, 16>::new();
        let (mut words, mut args) = (0, ArrayVec::<u8, MAX_ARGS>::new());
        for (at, letter) in text.bytes().enumerate() {
            let word = at >= 2 && b"iwrotgk".contains(&letter);
            words += usize::from(word);
            if at >= 2 {
                let span = at..at + 1;
                args.try_push(letter)
                    .map_err(|_| SpecError { kind: SpecErrorKind::TooManyArguments, span: span.clone() })?;
                if letter == b'>' {
                    return Err(SpecError { kind: SpecErrorKind::BadResults, span });
                }
            }
            // The sixth word is one more than a hardware portal takes.
            let stands_for = match word {
                true if words == MAX_ARGS => b'=',
                true => b'i',
                false => letter,
            };
            let _ = plain.try_push(stands_for);
        }
        // Bytes of a character beyond ASCII stay together, since none of them is replaced.
        let spec = Spec::parse(core::str::from_utf8(&plain).unwrap_or("?"))?;
        Ok(Door { stack: spec.stack, state: spec.state, args })
    }

    /// Some argument needs the runtime before and after the call.
    pub fn lends(&self) -> bool {
        self.args.iter().any(|a| b"wrotgk".contains(a))
    }

    /// The caller supplies it.
    pub fn is_word(letter: u8) -> bool {
        b"iwrotgk".contains(&letter)
    }
}

/// Which way a portal leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the process into a fault domain.
    In,
    /// From a fault domain to a function of the process.
    Out,
    /// From one fault domain into another.
    Across,
}

/// Everything known when a portal is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    pub way: Way,
    /// Segment bases shifted right by 32.
    pub caller_slot: u32,
    pub callee_slot: u32,
    /// Entry point or function.
    pub entry: u64,
    /// Of the thread's current mark, relative to the thread pointer.
    pub current: i32,
    /// The runtime's ways in when the thread has no stack there, or the wrong `gs`.
    pub no_stack: u64,
    /// Before and after a call with windows or capabilities: function (description, argument words).
    pub lend: u64,
    pub give_back: u64,
    pub description: u64,
    /// Preserved registers that the callee's code may touch, as bits of register numbers.
    pub touched: u16,
    /// The callee's code may change rounding modes and masks of floating point.
    pub control: bool,
    /// It has x87 instructions: the register stack may not be empty after a call, and an exception may wait.
    pub x87: bool,
    /// The same of the caller, a domain, or the process where it must not be seen how it rounds: the callee
    /// finds [`PLAIN_MXCSR`] and [`PLAIN_CONTROL`], no register in use.
    pub caller_control: bool,
    pub caller_x87: bool,
    /// What goes into a domain in a register is an argument or a result, and nothing else: the others are
    /// zeroed, vectors too.
    pub hide: bool,
    /// Vector registers are 256 bits wide.
    pub wide: bool,
    /// In the caller's table of homes.
    pub link: u16,
    pub index: u16,
    pub constant: u64,
    pub caller: u32,
}

impl Crossing {
    /// The controls of floating point are kept, for the caller to find them again.
    pub fn keeps_controls(&self) -> bool {
        self.control && self.way != Way::Out || self.caller_control
    }
}

/// Preserved registers of the System V convention without `rbp`, by number.
pub const PRESERVED: [u8; 5] = [3, 12, 13, 14, 15];

/// One step of a portal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Takes the inside word, or refuses the call.
    Claim,
    /// Takes it back behind a function of the process.
    Reclaim,
    Release,
    /// The thread's current stack, which must be the callee's.
    Current,
    /// The stack under this call, from the stack pointer, with room on it.
    Own,
    /// The thread's home in the callee, by the caller's table.
    Linked(u16),
    /// A stack from the thread's part of the queue instead.
    TakeStack,
    /// These registers and the frame pointer onto the caller's stack.
    Keep(u16),
    /// The caller's place on its return stack becomes its top.
    Publish,
    KeepControl,
    PlainControl,
    /// Callee's argument `to` is the caller's word `from`.
    Move {
        to: u8,
        from: u8,
    },
    Supply {
        to: u8,
        letter: u8,
        value: u64,
    },
    Lend,
    /// Onto the callee's stacks.
    Enter,
    /// The process's stack has room for a function, or the domain faults.
    Room,
    /// The thread may make one more call out of a domain, or the caller faults; it is counted, and no longer.
    Depth,
    Nest,
    Unnest,
    /// Callee's instance into `gs`.
    Base,
    /// Onto the process's stack.
    Surface,
    Scrub {
        keep: u16,
    },
    ScrubVectors,
    /// No x87 register in use, no exception pending.
    EmptyX87,
    /// Nothing is left in x87 registers that are not in use: the sign of one can be told (`fxam`).
    ZeroX87,
    Call,
    /// The return leg: the status is zero. Its error entry is behind this step.
    Return,
    /// No call is outstanding on this stack.
    Clear,
    /// Back onto the caller's stack.
    Back,
    GiveStack,
    GiveBack,
    LoadControl,
    /// From the process's stack back to the domain's, whose `gs` it makes sure of.
    Dive,
    Unpublish,
    Regain,
    Restore(u16),
    Leave,
}

/// Argument registers by number: rdi rsi rdx rcx r8 r9.
pub const ARGS: [u8; MAX_ARGS] = [7, 6, 2, 1, 8, 9];

/// Registers that carry the arguments, as bits.
fn carries(door: &Door) -> u16 {
    ARGS[..door.args.len()].iter().map(|r| 1 << r).sum()
}

/// Specification and crossing to steps, each handed to `put`.
pub fn steps(door: &Door, c: &Crossing, put: &mut impl FnMut(Op)) {
    let full = door.state == State::Full;
    let scrubs = full || c.hide;
    let every: u16 = PRESERVED.iter().map(|r| 1 << r).sum();
    let kept = if scrubs { every } else { c.touched & every };
    let control = c.keeps_controls();
    let fresh = door.stack == Stack::New && c.way != Way::Out;
    match c.way {
        Way::In => {
            put(Op::Claim);
            put(Op::Current);
        }
        Way::Out => {
            put(Op::Own);
            put(Op::Depth);
            put(Op::Room);
        }
        Way::Across => {
            put(Op::Own);
            put(Op::Depth);
            put(Op::Linked(c.link));
        }
    }
    if fresh {
        put(Op::TakeStack);
    }
    if c.way == Way::Out {
        put(Op::Publish);
        put(Op::Nest);
        put(Op::Surface);
    } else {
        put(Op::Keep(kept));
    }
    if control {
        put(Op::KeepControl);
    }
    let zero = c.hide && c.x87 && c.way != Way::Out;
    if c.caller_x87 || zero {
        // First of all: an exception that waits would come with the next load of the controls.
        put(Op::EmptyX87);
    }
    if zero {
        put(Op::ZeroX87);
    }
    if c.caller_control {
        put(Op::PlainControl);
    }
    if c.way == Way::Across {
        put(Op::Publish);
        put(Op::Nest);
    }
    arguments(door, c, put);
    if door.lends() {
        put(Op::Lend);
    }
    if c.way != Way::Out {
        put(Op::Enter);
    }
    if c.way == Way::Across {
        put(Op::Base);
    }
    if scrubs && c.way != Way::Out {
        put(Op::ScrubVectors);
        put(Op::Scrub { keep: carries(door) });
    }
    if c.way == Way::Out {
        put(Op::Release);
    }
    put(Op::Call);
    put(Op::Return);
    if c.way == Way::Out {
        put(Op::Reclaim);
        if door.lends() {
            put(Op::GiveBack);
        }
        if c.hide && c.caller_x87 {
            put(Op::EmptyX87);
            put(Op::ZeroX87);
        }
        if control {
            put(Op::LoadControl);
        }
        put(Op::Dive);
        put(Op::Unpublish);
        put(Op::Unnest);
    } else {
        put(Op::Clear);
        put(Op::Back);
        if c.x87 {
            put(Op::EmptyX87);
        }
        if c.x87 && c.hide && c.caller_x87 && c.way == Way::Across {
            put(Op::ZeroX87);
        }
        if fresh {
            put(Op::GiveStack);
        }
        if door.lends() {
            put(Op::GiveBack);
        }
        if c.way == Way::Across {
            put(Op::Unpublish);
            put(Op::Unnest);
            put(Op::Regain);
        }
        if control {
            put(Op::LoadControl);
        }
        if c.way == Way::In {
            put(Op::Release);
        }
        put(Op::Restore(kept));
    }
    // A process keeps no secrets from itself.
    if full || (c.hide && c.way != Way::In) {
        put(Op::ScrubVectors);
        put(Op::Scrub { keep: 1 << 0 | 1 << 2 | every });
    }
    put(Op::Leave);
}

/// The caller's words lie at or before their places, so moving the last one first overwrites no source.
fn arguments(door: &Door, c: &Crossing, put: &mut impl FnMut(Op)) {
    let words = door.args.iter().filter(|a| Door::is_word(**a)).count() as u8;
    let mut from = words;
    for to in (0..door.args.len() as u8).rev().filter(|to| Door::is_word(door.args[*to as usize])) {
        from -= 1;
        if to != from {
            put(Op::Move { to, from });
        }
    }
    // The time takes the third argument's register on its way: it comes first.
    let supplied = || (0u8..).zip(&door.args).filter(|(_, a)| !Door::is_word(**a));
    let (first, rest) = (supplied().filter(|(_, a)| **a == b'h'), supplied().filter(|(_, a)| **a != b'h'));
    for (to, letter) in first.chain(rest) {
        let value = match letter {
            b'c' => c.constant,
            b'=' => u64::from(c.index),
            b'a' => u64::from(c.caller),
            _ => 0,
        };
        put(Op::Supply { to, letter: *letter, value });
    }
}

/// Across, from the stack pointer that [`Op::Publish`] has published to the portal's return address, in
/// bytes: two words of the record, the controls of floating point if they are kept, the preserved registers
/// and the frame pointer.
pub const fn published_to_return(control: bool) -> u64 {
    8 * (2 + control as u64 + PRESERVED.len() as u64 + 1)
}

/// Words that [`Op::Surface`] pushes; the last is the mark of the caller's stack.
pub const SURFACED: i32 = 2;

/// Most bytes of one portal.
pub const MAX_BYTES: usize = 1024;

/// One portal's code and the map of its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Code {
    pub bytes: ArrayVec<u8, MAX_BYTES>,
    /// Where the callee returns to: the status is zeroed there.
    pub site: u16,
    /// The constants.
    pub pool_at: u16,
    /// Words that are pushed, at the call, on the stack of the process or, across, of the caller: for
    /// debuggers.
    pub pushed: u16,
}

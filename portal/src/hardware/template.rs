//! Argument templates: code of a trusted server, inlined by the compiler for one argument letter.
//!
//! Problem: a server that translates an argument (capabilities) must not cost every call a call of its own.
//! Strategy: the server registers a few [`Operation`]s once, of no processor in particular, with private data
//! that this code alone reads and writes. [`Template::check`] proves that they do no more; emitters make
//! instructions of them, and verifiers hold every portal to exactly these.
//!
//! * Registers: [`Register::Word`] has the caller's word, and at the end the callee's argument; `Base` the
//!   data's address (never written), `Caller` and `Callee` the numbers of the two domains; `A` and `B` are
//!   free. There are no others.
//! * Memory: only double words, at the base plus a constant, or plus an index that the code itself has
//!   masked.
//! * Skips go forward. A refusal is the only other way out: the call fails with [`Template::status`], before
//!   the callee runs.
//! * A template acts when it is reached: with two in one portal, the first has acted when the second refuses.

pub mod capability;
pub mod mips64;
pub mod riscv64;

use arrayvec::ArrayVec;
use pebble_abi::map;
pub use pebble_abi::template::{
    Condition, MAX_WORDS as MAX_OPERATIONS, Operation, Register, TemplateError, TemplateErrorKind,
};

/// Largest private data, as a power of two.
pub const MAX_DATA_BITS: u8 = 16;

pub type Operations = ArrayVec<Operation, MAX_OPERATIONS>;

/// The code for one letter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    /// `k`, or a capital.
    pub letter: u8,
    /// Code of the transport status when it refuses; the domain in it is the caller.
    pub status: u16,
    /// Address of the private data, and its size as a power of two.
    pub data: u64,
    pub data_bits: u8,
    pub operations: Operations,
}

/// What is known of a register. An index is below `2^high` and a multiple of `2^low`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    Base,
    Index {
        high: u8,
        low: u8,
    },
    /// Base plus such an index.
    Place {
        high: u8,
        low: u8,
    },
}

const ANY: Known = Known::Index { high: 64, low: 0 };
const NOTHING: Known = Known::Index { high: 0, low: 63 };

/// By the registers' numbers.
type Registers = [Known; 7];

/// What words that have come from outside mean.
pub fn decode(words: &[u32]) -> Result<Operations, TemplateError> {
    if words.len() > MAX_OPERATIONS {
        return Err(TemplateError { at: MAX_OPERATIONS, kind: TemplateErrorKind::Length });
    }
    let operation = |(at, word): (usize, &u32)| {
        Operation::decode(*word).ok_or(TemplateError { at, kind: TemplateErrorKind::Operation })
    };
    words.iter().enumerate().map(operation).collect()
}

impl Template {
    /// Proves that the code does nothing but what templates may. One pass: skips go forward, so what is known
    /// where ways meet is what all of them know.
    pub fn check(&self) -> Result<(), TemplateError> {
        let fail = |at, kind| Err(TemplateError { at, kind });
        if self.letter != b'k' && !self.letter.is_ascii_uppercase() {
            return fail(0, TemplateErrorKind::Letter);
        }
        let bits = self.data_bits;
        if !(3..=MAX_DATA_BITS).contains(&bits)
            || self.data & ((1 << bits) - 1) != 0
            || self.data < map::KERNEL_VA
        {
            return fail(0, TemplateErrorKind::Data);
        }
        let len = self.operations.len();
        if len == 0 {
            return fail(0, TemplateErrorKind::Length);
        }
        let mut known = [ANY; 7];
        (known[Register::Zero as usize], known[Register::Base as usize]) = (NOTHING, Known::Base);
        let mut meeting: [Option<Registers>; MAX_OPERATIONS] = [None; MAX_OPERATIONS];
        for (at, operation) in self.operations.iter().enumerate() {
            if let Some(other) = &meeting[at] {
                meet(&mut known, other);
            }
            if let Operation::Skip { count, .. } = operation {
                match at + 1 + usize::from(*count) {
                    to if *count == 0 || to > len => return fail(at, TemplateErrorKind::Skip),
                    to if to < len => match &mut meeting[to] {
                        Some(other) => meet(other, &known),
                        none => *none = Some(known),
                    },
                    _ => {}
                }
            } else if let Err(kind) = self.step(*operation, &mut known) {
                return fail(at, kind);
            }
        }
        Ok(())
    }

    fn step(&self, operation: Operation, known: &mut Registers) -> Result<(), TemplateErrorKind> {
        let of = |register: Register| known[register as usize];
        let (to, value) = match operation {
            Operation::Load { to, at, offset } => {
                self.reach(of(at), offset)?;
                (to, ANY)
            }
            Operation::Store { at, offset, .. } => return self.reach(of(at), offset),
            Operation::Add { to, a, b } => (to, sum(of(a), of(b))),
            Operation::AddNumber { to, a, number } => (to, if number == 0 { of(a) } else { ANY }),
            Operation::AndNumber { to, a, number } => (to, masked(of(a), number)),
            Operation::ShiftLeft { to, a, by } => (to, shifted(of(a), |bits, most| (bits + by).min(most))),
            Operation::ShiftRight { to, a, by } => (to, shifted(of(a), |bits, _| bits.saturating_sub(by))),
            Operation::Subtract { to, .. } | Operation::Pages { to, .. } => (to, ANY),
            Operation::Skip { .. } | Operation::Refuse { .. } => return Ok(()),
        };
        if matches!(to, Register::Zero | Register::Base) {
            return Err(TemplateErrorKind::Written(to));
        }
        known[to as usize] = value;
        Ok(())
    }

    /// A double word within the private data.
    fn reach(&self, base: Known, offset: i16) -> Result<(), TemplateErrorKind> {
        let offset = i64::from(offset);
        let fits = match base {
            Known::Base => (0..1 << self.data_bits).contains(&offset),
            // The last index is `2^high - 2^low`.
            Known::Place { high, low } => {
                high <= self.data_bits && low >= 3 && (0..1 << low.min(self.data_bits)).contains(&offset)
            }
            Known::Index { .. } => false,
        };
        if fits && offset % 8 == 0 { Ok(()) } else { Err(TemplateErrorKind::Access) }
    }
}

fn sum(a: Known, b: Known) -> Known {
    match (a, b) {
        (Known::Index { high, low }, Known::Base) | (Known::Base, Known::Index { high, low }) => {
            Known::Place { high, low }
        }
        _ => ANY,
    }
}

/// What a mask of these bits (of a negative number: and all above) says of its result.
fn masked(value: Known, number: i16) -> Known {
    let Known::Index { high, low } = value else { return ANY };
    let low = low.max(number.trailing_zeros().min(63) as u8);
    let high = if number < 0 { high } else { high.min(16 - number.leading_zeros() as u8) };
    Known::Index { high, low }
}

/// An index whose lowest and highest bits have moved; `most` is how far each can.
fn shifted(value: Known, moved: impl Fn(u8, u8) -> u8) -> Known {
    match value {
        Known::Index { high, low } => Known::Index { high: moved(high, 64), low: moved(low, 63) },
        _ => ANY,
    }
}

/// What is known on both ways.
fn meet(known: &mut Registers, other: &Registers) {
    for (mine, theirs) in known.iter_mut().zip(other) {
        *mine = match (*mine, *theirs) {
            (a, b) if a == b => a,
            (Known::Index { high: a, low: b }, Known::Index { high: c, low: d }) => {
                Known::Index { high: a.max(c), low: b.min(d) }
            }
            (Known::Place { high: a, low: b }, Known::Place { high: c, low: d }) => {
                Known::Place { high: a.max(c), low: b.min(d) }
            }
            _ => ANY,
        };
    }
}

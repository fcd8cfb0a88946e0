//! How a component registers the template of an argument letter ([`crate::control::TEMPLATE`]), and what it
//! is told when that is refused.
//!
//! The texts are here since both ends have them: the portal compiler, which finds the mistake, and the
//! library of whoever made it.

mod operation;

use core::fmt;
pub use operation::{Condition, Operation, Register};

/// Most operations of a template.
pub const MAX_WORDS: usize = 32;
/// Operations that travel in one call, two a word.
pub const WORDS_PER_CALL: usize = 6;

/// Steps of a registration, in bits 16 and up of `p1`.
///
/// `p1`, bits 32 and up: the letter. What the caller began before is dropped.
pub const BEGIN: u64 = 0;
/// `p1`, bits 32 and up: how many operations; `p2` to `p4`: these, the first in the low half of `p2`.
pub const FILL: u64 = 1;
/// All of it takes effect, or nothing.
pub const COMMIT: u64 = 2;

/// What is wrong with a template, and at which operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TemplateError {
    pub at: usize,
    pub kind: TemplateErrorKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateErrorKind {
    Letter,
    Data,
    Length,
    /// A word that is none.
    Operation,
    /// It may not be written.
    Written(Register),
    Skip,
    Access,
}

use TemplateErrorKind::{Access, Data, Length, Letter, Skip, Written};

/// In the order of their numbers, from 1.
const KINDS: [TemplateErrorKind; 7] =
    [Letter, Data, Length, TemplateErrorKind::Operation, Written(Register::Zero), Skip, Access];

impl TemplateError {
    /// In one word, as the second result of [`COMMIT`]; never 0.
    pub fn word(self) -> u64 {
        let same = |k: &TemplateErrorKind| core::mem::discriminant(k) == core::mem::discriminant(&self.kind);
        let number = KINDS.iter().position(same).map_or(0, |n| n as u64 + 1);
        let register = if let Written(register) = self.kind { register as u64 } else { 0 };
        number | register << 8 | (self.at as u64) << 16
    }

    /// Out of that word; `None`: it tells of no mistake.
    pub fn from_word(word: u64) -> Option<Self> {
        let kind = *KINDS.get((word & 0xff).checked_sub(1)? as usize)?;
        let kind = match kind {
            Written(_) => Written(Register::numbered(word >> 8 & 0xff)?),
            other => other,
        };
        Some(TemplateError { at: (word >> 16) as usize, kind })
    }
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Letter => return write!(f, "the letter is neither 'k' nor from 'A' to 'Z'"),
            Data => {
                return write!(
                    f,
                    "the private data is not 8 bytes to 64 KiB, aligned to its size, in the supervisor's half"
                );
            }
            Length => return write!(f, "the code has no operation, or more than {MAX_WORDS}"),
            _ => write!(f, "operation {}: ", self.at)?,
        }
        match self.kind {
            Written(register) => write!(f, "register {} may not be written", register.name()),
            Skip => write!(f, "skips go forward, over one operation at least, and not beyond the last"),
            Access => write!(
                f,
                "loads and stores are double words at the base plus a constant, or plus an index that shifts \
                 have masked, within the private data"
            ),
            _ => write!(f, "this word is no operation, or its number is out of range"),
        }
    }
}

impl core::error::Error for TemplateError {}

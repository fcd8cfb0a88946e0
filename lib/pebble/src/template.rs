//! Code of one's own for an argument letter: every portal whose specification has the letter contains it.
//!
//! What templates may do: `docs/src/specification.md`. The private data, a page, is this component's to read
//! and write as well ([`data`]); portal code comes in between any two of its instructions.

use crate::api::{self, Errno};
use crate::portal::{call_wide, time};
use crate::region;
use core::fmt;
use pebble_abi::template::{BEGIN, COMMIT, FILL, MAX_WORDS, WORDS_PER_CALL};
pub use pebble_abi::template::{Condition, Operation, Register, TemplateError};
use pebble_abi::{control, errno, map, sys};

/// Why a template is not registered. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The code does what templates may not.
    Code(TemplateError),
    /// `EACCES`: the letter is another's, or nobody's; `EINVAL`, `ENOMEM`, ..: some portal that has the
    /// letter cannot have this code.
    Errno(Errno),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Code(error) => write!(f, "{error}"),
            Refused::Errno(errno::EACCES) => write!(
                f,
                "the system's manifest does not give this component the letter: templates = [..] in its \
                 [[component]] does"
            ),
            Refused::Errno(error) => error.fmt(f),
        }
    }
}

/// One step: what is to be done, with the letter or the number of operations, and up to six of these.
fn step(way: u64, word: u64, code: &[u32]) -> Result<(), Refused> {
    let at = |n: usize| u64::from(code.get(n).copied().unwrap_or(0));
    let pair = |n: usize| at(2 * n) | at(2 * n + 1) << 32;
    let what = control::TEMPLATE | way << 16 | word << 32;
    match call_wide(sys::SYS_CONTROL, [what, pair(0), pair(1), pair(2)]) {
        Ok((0.., _)) => Ok(()),
        Ok((error, [wrong, ..])) => {
            Err(TemplateError::from_word(wrong).map_or(Refused::Errno(Errno::of(error)), Refused::Code))
        }
        Err(_) => Err(Refused::Errno(errno::EIO)),
    }
}

fn send(letter: u8, code: &[u32]) -> Result<(), Refused> {
    step(BEGIN, letter.into(), &[])?;
    // What is too long is refused at the first operation too many.
    for words in code[..code.len().min(MAX_WORDS + 1)].chunks(WORDS_PER_CALL) {
        step(FILL, words.len() as u64, words)?;
    }
    step(COMMIT, 0, &[])
}

/// From now on portals with the letter contain this code, those too that are open. The registration stays
/// when the domain goes.
pub fn register(letter: u8, code: &[Operation]) -> Result<(), Refused> {
    let mut words = [0; MAX_WORDS + 1];
    let count = code.len().min(words.len());
    words.iter_mut().zip(code).for_each(|(word, operation)| *word = operation.encode());
    register_words(letter, &words[..count])
}

/// The same, of operations as they travel.
pub fn register_words(letter: u8, code: &[u32]) -> Result<(), Refused> {
    for _ in 0..PATIENCE {
        match send(letter, code) {
            // Some server is being replaced at this moment.
            Err(Refused::Errno(errno::EBUSY)) => drop(api::hrsleep(time() + map::TIME_HZ / 1000)),
            done => return done,
        }
    }
    Err(Refused::Errno(errno::EBUSY))
}

/// How often it is tried, with a millisecond in between.
const PATIENCE: usize = 1000;

/// The letter's private data, if it is this component's. Nobody else but portal code reads or writes it.
pub const fn data(letter: u8) -> region::Region {
    region::template_data(letter)
}

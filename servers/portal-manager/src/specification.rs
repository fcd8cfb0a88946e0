//! What is wrong with a specification: the compiler's answer, in the words of a call.
//!
//! **Problem.** A specification is parsed and compiled here, and written elsewhere: its maker has no use for
//! a bare `EINVAL`. **Strategy.** The error stays a number; the request keeps beside it which character is
//! wrong and why ([`Request::refused`](crate::manager::Request)), in one word, which goes back as a further
//! result.

use crate::manager::Manager;
use pebble_abi::call::MAX_RESULTS;
use pebble_abi::errno::{self, Errno};
use pebble_abi::link::unpack;
use pebble_abi::specification::{Reason, SpecificationError};
use pebble_abi::words::Asid;
use pebble_arch::Arch;
use pebble_portal::hardware::CompileError;
use pebble_portal::{Spec, SpecError};

/// A specification out of its words: eight letters; results in bits 32 and up of the second, letters 9 to 11
/// in bits 40 and up.
pub fn parse(first: u64, rest: u64) -> Result<Spec, SpecificationError> {
    let mut letters = [0; 16];
    let len = unpack(&[first, rest >> 40], &mut letters);
    let letters = &letters[..len];
    let text = core::str::from_utf8(letters).unwrap_or_else(|error| {
        // What is no text is wrong where the text ends, whatever stands before that.
        core::str::from_utf8(&letters[..error.valid_up_to()]).unwrap_or_default()
    });
    let mut spec = Spec::parse(text).map_err(|error| mistake(&error))?;
    if text.len() < len {
        return Err(SpecificationError {
            letter: Some(b'?'),
            ..SpecificationError::new(Reason::UnknownArgument, text.len())
        });
    }
    if spec.results == 0 {
        spec.results = (rest >> 32 & 7).min(MAX_RESULTS as u64) as u8;
    }
    Ok(spec)
}

/// What the parser says.
pub fn mistake(error: &SpecError) -> SpecificationError {
    let (reason, letter) = error.kind.reason();
    let letter = letter.map(|letter| if letter.is_ascii() { letter as u8 } else { b'?' });
    SpecificationError { letter, ..SpecificationError::new(reason, error.span.start) }
}

/// What the compiler says, where it is about the specification of this [text](crate::interfaces::text).
pub fn uncompiled(text: [u64; 2], error: CompileError) -> Option<SpecificationError> {
    match error {
        CompileError::NoTemplate { letter } => {
            let letters = text.map(u64::to_le_bytes);
            let at = letters.as_flattened().iter().position(|l| *l == letter).unwrap_or_default();
            Some(SpecificationError {
                letter: Some(letter),
                ..SpecificationError::new(Reason::NoTemplate, at)
            })
        }
        CompileError::TooLong => Some(SpecificationError::new(Reason::TooMuchCode, 0)),
        _ => None,
    }
}

impl<A: Arch> Manager<A> {
    /// The request ends here: the exporter's specification is wrong.
    pub fn refuse_specification(&mut self, exporter: u16, error: SpecificationError) -> Errno {
        self.request.refused = error.status(exporter);
        error.errno()
    }

    /// A specification that a request brings, of an interface of that domain.
    // Its frame is gone before anything is compiled.
    #[inline(never)]
    pub fn parse(&mut self, exporter: Asid, first: u64, rest: u64) -> Result<Spec, Errno> {
        parse(first, rest).map_err(|error| self.refuse_specification(exporter.number(), error))
    }

    /// The portal could not be compiled: what is wrong with the specification, if that is why.
    pub(crate) fn refuse_code(&mut self, exporter: u16, why: Option<SpecificationError>) -> Errno {
        match why {
            Some(error) => self.refuse_specification(exporter, error),
            None => errno::EINVAL,
        }
    }
}

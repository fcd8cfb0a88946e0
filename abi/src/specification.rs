//! What is wrong with a specification, as calls tell it to whoever wrote it or opens it.
//!
//! The portal manager finds the mistake, in another domain than its maker's. So the answer is an error
//! number, and beside it one word in the form of a transport status ([`status::SPECIFICATION`]): whose
//! specification it is, at which character, which character, and the reason. The texts are here since both
//! ends have them.

use crate::errno::{self, Errno};
use crate::status;
use core::fmt;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $c:literal, $text:literal;)*) => {
        /// Why a specification is refused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Reason {
            $($(#[$doc])* $name,)*
        }

        impl Reason {
            /// By number.
            const ALL: &[Reason] = &[$(Reason::$name),*];

            /// The rest of a sentence that may begin with a character of the specification.
            pub const fn text(self) -> &'static str {
                match self { $(Reason::$name => $text,)* }
            }
        }

        /// C name and text of each, by number.
        pub const TEXTS: &[(&str, &str)] = &[$(($c, $text)),*];
    };
}

reasons! {
    MissingStack = "MISSING_STACK", "missing stack letter: write 's' (shared) or 'n' (new) first";
    BadStack = "BAD_STACK", "is no stack letter: write 's' (shared) or 'n' (new)";
    MissingState = "MISSING_STATE", "missing state letter: write 'm', 'p' or 'f' second";
    BadState = "BAD_STATE", "is no state letter: write 'm', 'p' or 'f'";
    UnknownArgument = "UNKNOWN_ARGUMENT",
        "is no argument letter: use i c = a b d h, a window (w r o t g), k, or A to Z";
    BadPages = "BAD_PAGES", "takes a number of pages from 2 to 512, or none for one page";
    TooManyWindows = "TOO_MANY_WINDOWS", "more than 2 windows";
    TooManyTemplates = "TOO_MANY_TEMPLATES", "more than 2 template letters";
    TooManyArguments = "TOO_MANY_ARGUMENTS", "more than 6 arguments";
    TooManyWords = "TOO_MANY_WORDS", "more than 5 words from the caller";
    BadResults = "BAD_RESULTS", "'>' needs one digit from 1 to 6";
    TrailingText = "TRAILING_TEXT", "nothing may follow the number of results";
    /// Longer than a call passes it.
    TooLong = "TOO_LONG", "longer than a call can pass it: use fewer arguments";
    /// Found when a portal is compiled: nobody has registered the letter yet.
    NoTemplate = "NO_TEMPLATE", "has no template: start the server that registers it first";
    /// Found when a portal is compiled: its code would be longer than a portal may be.
    TooMuchCode = "TOO_MUCH_CODE", "the portal would need too much code: use fewer arguments";
}

/// What is wrong with a specification, and at which character of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpecificationError {
    pub reason: Reason,
    /// The character's index, from 0; behind the last one if one is missing.
    pub at: u8,
    /// The character, if the reason speaks of one; not every one has a letter of its own: `?`.
    pub letter: Option<u8>,
}

impl SpecificationError {
    /// Without a character.
    pub const fn new(reason: Reason, at: usize) -> Self {
        SpecificationError { reason, at: at as u8, letter: None }
    }

    /// In one word, as calls pass it; `exporter`: whose specification it is.
    pub const fn status(self, exporter: u16) -> u64 {
        let letter = if let Some(letter) = self.letter { letter as u64 } else { 0 };
        let what = (self.at as u64) << 32 | (self.reason as u64) << 40 | letter << 48;
        status::SPECIFICATION | (exporter as u64) << 16 | what
    }

    /// Out of that word, and whose specification it is; `None`: it tells of no mistake.
    pub fn from_status(word: u64) -> Option<(u16, Self)> {
        let reason = *Reason::ALL.get((word >> 40 & 0xff) as usize)?;
        let letter = Some((word >> 48) as u8).filter(|letter| *letter != 0);
        let error = SpecificationError { reason, at: (word >> 32) as u8, letter };
        (status::code(word) == status::SPECIFICATION).then_some((status::domain(word), error))
    }

    /// The error number beside it.
    pub const fn errno(self) -> Errno {
        if let Reason::NoTemplate = self.reason { errno::ENOPROTOOPT } else { errno::EINVAL }
    }
}

impl fmt::Display for SpecificationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: ", u32::from(self.at) + 1)?;
        if let Some(letter) = self.letter {
            write!(f, "'{}' ", char::from(letter))?;
        }
        f.write_str(self.reason.text())
    }
}

impl core::error::Error for SpecificationError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mistake_travels_in_a_word() {
        for reason in Reason::ALL {
            for (at, letter) in [(0, None), (2, Some(b'x')), (15, Some(b'?'))] {
                let error = SpecificationError { reason: *reason, at, letter };
                assert_eq!(SpecificationError::from_status(error.status(17)), Some((17, error)));
            }
        }
    }

    #[test]
    fn other_words_are_no_mistakes() {
        let unknown = status::SPECIFICATION | (Reason::ALL.len() as u64) << 40;
        for word in [0, unknown, status::dead(3), status::refused(b's', 17, 15), u64::MAX] {
            assert_eq!(SpecificationError::from_status(word), None, "{word:#x}");
        }
    }
}

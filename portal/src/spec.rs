//! The portal specification language: one string a portal.
//!
//! `stack state argument*` and, if the callee returns more than one word, `>n`. The parser reports the position
//! and what would have been right; nothing is ever half-accepted. Letters of windows and capabilities
//! (`w r o t g k`) are known to the language but not yet to the compiler: they are refused by name.

use arrayvec::ArrayVec;
use core::fmt;
use core::ops::Range;
use pebble_abi::call::{MAX_ARGS, MAX_CALLER_WORDS, MAX_RESULTS};

/// Whose stack the callee runs on (first character).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    /// `s`: the caller's.
    Shared,
    /// `n`: one from the callee's stack queue (the fixed one, if the callee is exclusive).
    New,
}

/// What the portal keeps for the caller (second character).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// `m`: nothing; the callee is trusted to keep the preserved registers.
    Minimal,
    /// `p`: the preserved registers, hidden from the callee.
    Partial,
    /// `f`: floating-point state too.
    Full,
}

/// One argument of the callee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arg {
    /// `i`: the caller's next word.
    Word,
    /// `c`: a constant compiled into the portal.
    Constant,
    /// `=`: the portal's index in the caller's table.
    Index,
    /// `a`: the caller's domain.
    Domain,
    /// `b`: the domain whose call the caller is serving; 0 if it serves none.
    Origin,
    /// `d`: the caller's thread.
    Thread,
    /// `h`: the time, in ticks.
    Time,
}

impl Arg {
    pub const fn letter(self) -> char {
        match self {
            Arg::Word => 'i',
            Arg::Constant => 'c',
            Arg::Index => '=',
            Arg::Domain => 'a',
            Arg::Origin => 'b',
            Arg::Thread => 'd',
            Arg::Time => 'h',
        }
    }
}

/// A parsed specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    pub stack: Stack,
    pub state: State,
    pub args: ArrayVec<Arg, MAX_ARGS>,
    /// Result words after the first (`a2..`).
    pub results: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpecErrorKind {
    MissingStack,
    BadStack(char),
    MissingState,
    BadState(char),
    UnknownArgument(char),
    NotYet(char),
    TooManyArguments,
    TooManyWords,
    BadResults,
    TrailingText,
}

/// What is wrong with a specification, and at which bytes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    pub kind: SpecErrorKind,
    pub span: Range<usize>,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use SpecErrorKind::*;
        write!(f, "column {}: ", self.span.start + 1)?;
        match self.kind {
            MissingStack => write!(f, "missing stack letter: write 's' (shared) or 'n' (new) first"),
            BadStack(c) => write!(f, "'{c}' is no stack letter: write 's' (shared) or 'n' (new)"),
            MissingState => write!(f, "missing state letter: write 'm', 'p' or 'f' second"),
            BadState(c) => write!(f, "'{c}' is no state letter: write 'm', 'p' or 'f'"),
            UnknownArgument(c) => write!(f, "'{c}' is no argument letter: use i c = a b d h"),
            NotYet(c) => write!(f, "argument letter '{c}' is not supported by this compiler yet"),
            TooManyArguments => write!(f, "more than {MAX_ARGS} arguments"),
            TooManyWords => write!(f, "more than {MAX_CALLER_WORDS} words from the caller"),
            BadResults => write!(f, "'>' needs one digit from 1 to {MAX_RESULTS}"),
            TrailingText => write!(f, "nothing may follow the number of results"),
        }
    }
}

impl core::error::Error for SpecError {}

impl Spec {
    pub fn parse(text: &str) -> Result<Spec, SpecError> {
        let mut chars = text.char_indices();
        let end = text.len()..text.len();
        let fail = |kind, span: Range<usize>| SpecError { kind, span };
        let at = |(i, c): (usize, char)| (c, i..i + c.len_utf8());

        let (c, span) = at(chars.next().ok_or(fail(SpecErrorKind::MissingStack, end.clone()))?);
        let stack = match c {
            's' => Stack::Shared,
            'n' => Stack::New,
            _ => return Err(fail(SpecErrorKind::BadStack(c), span)),
        };
        let (c, span) = at(chars.next().ok_or(fail(SpecErrorKind::MissingState, end.clone()))?);
        let state = match c {
            'm' => State::Minimal,
            'p' => State::Partial,
            'f' => State::Full,
            _ => return Err(fail(SpecErrorKind::BadState(c), span)),
        };
        let mut spec = Spec { stack, state, args: ArrayVec::new(), results: 0 };
        while let Some(next) = chars.next() {
            let (c, span) = at(next);
            if c == '>' {
                let (c, span) = at(chars.next().ok_or(fail(SpecErrorKind::BadResults, end.clone()))?);
                spec.results = match c.to_digit(10) {
                    Some(n) if (1..=MAX_RESULTS as u32).contains(&n) => n as u8,
                    _ => return Err(fail(SpecErrorKind::BadResults, span)),
                };
                return match chars.next() {
                    None => Ok(spec),
                    Some(next) => Err(fail(SpecErrorKind::TrailingText, at(next).1)),
                };
            }
            let arg = Self::argument(c).map_err(|kind| fail(kind, span.clone()))?;
            spec.args.try_push(arg).map_err(|_| fail(SpecErrorKind::TooManyArguments, span.clone()))?;
            if spec.caller_words() > MAX_CALLER_WORDS {
                return Err(fail(SpecErrorKind::TooManyWords, span));
            }
        }
        Ok(spec)
    }

    fn argument(letter: char) -> Result<Arg, SpecErrorKind> {
        Ok(match letter {
            'i' => Arg::Word,
            'c' => Arg::Constant,
            '=' => Arg::Index,
            'a' => Arg::Domain,
            'b' => Arg::Origin,
            'd' => Arg::Thread,
            'h' => Arg::Time,
            'w' | 'r' | 'o' | 't' | 'g' | 'k' => return Err(SpecErrorKind::NotYet(letter)),
            _ => return Err(SpecErrorKind::UnknownArgument(letter)),
        })
    }

    /// Words that the caller passes.
    pub fn caller_words(&self) -> usize {
        self.args.iter().filter(|a| **a == Arg::Word).count()
    }
}

impl Spec {
    /// Its text, character by character.
    pub fn letters(&self) -> impl Iterator<Item = u8> {
        let stack = if self.stack == Stack::Shared { b's' } else { b'n' };
        let state = match self.state {
            State::Minimal => b'm',
            State::Partial => b'p',
            State::Full => b'f',
        };
        let results = [b'>', b'0' + self.results];
        let results = results.into_iter().filter(|_| self.results > 0);
        [stack, state].into_iter().chain(self.args.iter().map(|a| a.letter() as u8)).chain(results)
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        self.letters().try_for_each(|letter| f.write_char(letter.into()))
    }
}

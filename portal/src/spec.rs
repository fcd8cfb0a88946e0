//! The portal specification language: one string a portal.
//!
//! `stack state argument*` and, if the callee returns more than one word, `>n`. The parser reports the
//! position and what would have been right; nothing is ever half-accepted. A window's letter may have a
//! number of pages behind it. `k` and the capitals stand for registered templates; whether there is one is
//! the compiler's question.

use arrayvec::ArrayVec;
use core::fmt;
use core::ops::Range;
use pebble_abi::call::{MAX_ARGS, MAX_CALLER_WORDS, MAX_RESULTS};
use pebble_abi::specification::Reason;

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

/// What becomes of the caller's pages in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowKind {
    /// `w`: the callee reads and writes them until it returns.
    Write,
    /// `r`: it reads them until it returns.
    Read,
    /// `o`: shared until either side ends it.
    Open,
    /// `t`: they move to the callee.
    Tear,
    /// `g`: at the return, pages of the callee move to the caller.
    Get,
}

impl WindowKind {
    pub const fn letter(self) -> char {
        match self {
            WindowKind::Write => 'w',
            WindowKind::Read => 'r',
            WindowKind::Open => 'o',
            WindowKind::Tear => 't',
            WindowKind::Get => 'g',
        }
    }
}

/// Most windows of one portal.
pub const MAX_WINDOWS: usize = 2;
/// Most template letters of one portal.
pub const MAX_TEMPLATES: usize = 2;
/// Most pages of a window: what one level-0 page table maps.
pub const MAX_PAGES: u16 = 512;

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
    /// `w r o t g`: the caller's next word is an address; pages from there on. More than one: a whole buffer.
    Window(WindowKind, u16),
    /// `k`, `A`..`Z`: the caller's next word, as the template registered for this letter translates it.
    Template(u8),
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
            Arg::Window(window, _) => window.letter(),
            Arg::Template(letter) => letter as char,
        }
    }

    /// Takes one of the caller's words.
    pub const fn is_word(self) -> bool {
        matches!(self, Arg::Word | Arg::Window(..) | Arg::Template(_))
    }

    /// Number of pages behind the letter: 0 where none is written.
    const fn written_pages(self) -> u16 {
        match self {
            Arg::Window(_, pages) if pages > 1 => pages,
            _ => 0,
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
    BadPages(char),
    TooManyWindows,
    TooManyTemplates,
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

impl SpecErrorKind {
    /// As everybody else knows it, and the character of which it speaks.
    pub const fn reason(self) -> (Reason, Option<char>) {
        match self {
            SpecErrorKind::MissingStack => (Reason::MissingStack, None),
            SpecErrorKind::BadStack(c) => (Reason::BadStack, Some(c)),
            SpecErrorKind::MissingState => (Reason::MissingState, None),
            SpecErrorKind::BadState(c) => (Reason::BadState, Some(c)),
            SpecErrorKind::UnknownArgument(c) => (Reason::UnknownArgument, Some(c)),
            SpecErrorKind::BadPages(c) => (Reason::BadPages, Some(c)),
            SpecErrorKind::TooManyWindows => (Reason::TooManyWindows, None),
            SpecErrorKind::TooManyTemplates => (Reason::TooManyTemplates, None),
            SpecErrorKind::TooManyArguments => (Reason::TooManyArguments, None),
            SpecErrorKind::TooManyWords => (Reason::TooManyWords, None),
            SpecErrorKind::BadResults => (Reason::BadResults, None),
            SpecErrorKind::TrailingText => (Reason::TrailingText, None),
        }
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: ", self.span.start + 1)?;
        let (reason, letter) = self.kind.reason();
        if let Some(letter) = letter {
            write!(f, "'{letter}' ")?;
        }
        f.write_str(reason.text())
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
            let too_many = match arg {
                _ if spec.caller_words() > MAX_CALLER_WORDS => Some(SpecErrorKind::TooManyWords),
                Arg::Window(..) if spec.windows().count() > MAX_WINDOWS => {
                    Some(SpecErrorKind::TooManyWindows)
                }
                Arg::Template(_) if spec.templates().count() > MAX_TEMPLATES => {
                    Some(SpecErrorKind::TooManyTemplates)
                }
                _ => None,
            };
            if let Some(kind) = too_many {
                return Err(fail(kind, span));
            }
            if let Some(Arg::Window(_, pages)) = spec.args.last_mut() {
                let digits = chars.as_str().bytes().take_while(u8::is_ascii_digit).count();
                if digits > 0 {
                    let number = &text[span.end..span.end + digits];
                    let good = |n: &u16| (2..=MAX_PAGES).contains(n) && !number.starts_with('0');
                    let number = number.parse().ok().filter(good);
                    *pages = number
                        .ok_or_else(|| fail(SpecErrorKind::BadPages(c), span.end..span.end + digits))?;
                    chars.nth(digits - 1);
                }
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
            'w' => Arg::Window(WindowKind::Write, 1),
            'r' => Arg::Window(WindowKind::Read, 1),
            'o' => Arg::Window(WindowKind::Open, 1),
            't' => Arg::Window(WindowKind::Tear, 1),
            'g' => Arg::Window(WindowKind::Get, 1),
            'k' | 'A'..='Z' => Arg::Template(letter as u8),
            _ => return Err(SpecErrorKind::UnknownArgument(letter)),
        })
    }

    /// Words that the caller passes.
    pub fn caller_words(&self) -> usize {
        self.args.iter().filter(|a| a.is_word()).count()
    }

    /// The arguments that take the caller's words, in order: the first takes word 1.
    pub fn words(&self) -> impl Iterator<Item = (u8, Arg)> {
        (1u8..).zip(self.args.iter().copied().filter(|a| a.is_word()))
    }

    /// Windows: caller's word, what becomes of the pages, how many.
    pub fn windows(&self) -> impl Iterator<Item = (u8, WindowKind, u16)> {
        self.words().filter_map(|(word, arg)| match arg {
            Arg::Window(window, pages) => Some((word, window, pages)),
            _ => None,
        })
    }

    /// Template letters, with the caller's word that each takes.
    pub fn templates(&self) -> impl Iterator<Item = (u8, u8)> {
        self.words().filter_map(|(word, arg)| match arg {
            Arg::Template(letter) => Some((word, letter)),
            _ => None,
        })
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
        let args = self.args.iter().flat_map(|a| {
            let pages = a.written_pages();
            let digit = move |unit: u16| (pages >= unit).then(|| b'0' + (pages / unit % 10) as u8);
            [Some(a.letter() as u8), digit(100), digit(10), if pages > 0 { digit(1) } else { None }]
        });
        [stack, state].into_iter().chain(args.flatten()).chain(results)
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        self.letters().try_for_each(|letter| f.write_char(letter.into()))
    }
}

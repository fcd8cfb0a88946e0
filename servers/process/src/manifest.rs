//! What a program's manifest says: how much of the machine it may have.
//!
//! Lines `KEY = NUMBER`, `#` begins a comment: the part of TOML that limits need. It stands in the ELF file's
//! section `.pebble.manifest`, or in a file beside the program's with `.toml` appended; the section wins. A
//! manifest can only take away: what is not named, or is more than any program has, is refused or stays as it
//! is for all.

use crate::{PAGE_LIMIT, PRIORITY, THREAD_LIMIT};
use core::fmt;
use pebble_abi::sys;

/// Most bytes of a manifest.
pub const LIMIT: usize = 4096;
/// Portals that any domain may have.
pub const PORTAL_LIMIT: u64 = 1024;

/// All of the processor, in percent.
pub const WHOLE: u64 = 100;

/// What a program may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub pages: u64,
    pub threads: u64,
    /// Besides those that every domain is born with.
    pub portals: u64,
    pub priority: Option<u64>,
    /// Percent of the processor.
    pub cpu: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            pages: PAGE_LIMIT,
            threads: THREAD_LIMIT,
            portals: PORTAL_LIMIT - sys::FIRST_FREE as u64,
            priority: None,
            cpu: WHOLE,
        }
    }
}

/// What is wrong with a manifest, and in which line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mistake {
    pub line: usize,
    pub what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    NoText,
    TooLong,
    NoPair,
    NoKey,
    Twice(&'static str),
    /// The key, and the numbers that it takes.
    Number(&'static str, u64, u64),
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "manifest, line {}: ", self.line)?;
        match self.what {
            What::NoText => write!(f, "no text"),
            What::TooLong => write!(f, "more than {LIMIT} bytes"),
            What::NoPair => write!(f, "not of the form 'key = number'"),
            What::NoKey => {
                write!(f, "no such key: use ")?;
                KEYS.iter()
                    .enumerate()
                    .try_for_each(|(n, (key, ..))| write!(f, "{}{key}", if n == 0 { "" } else { ", " }))
            }
            What::Twice(key) => write!(f, "{key} is there twice"),
            What::Number(key, least, most) => write!(f, "{key} is a number from {least} to {most}"),
        }
    }
}

type Key = (&'static str, u64, u64, fn(&mut Limits, u64));

/// Keys, the numbers that they take, what they set.
const KEYS: [Key; 5] = [
    ("pages", 1, PAGE_LIMIT, |limits, n| limits.pages = n),
    ("threads", 1, THREAD_LIMIT, |limits, n| limits.threads = n),
    ("portals", 0, PORTAL_LIMIT - sys::FIRST_FREE as u64, |limits, n| limits.portals = n),
    ("priority", 1, PRIORITY, |limits, n| limits.priority = Some(n)),
    ("cpu", 1, WHOLE, |limits, n| limits.cpu = n),
];

pub fn parse(bytes: &[u8]) -> Result<Limits, Mistake> {
    let mistake = |line, what| Mistake { line, what };
    if bytes.len() > LIMIT {
        return Err(mistake(1, What::TooLong));
    }
    // Sections may end in zeroes, as strings in C do; but nothing else is no manifest.
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
    if end == 0 && bytes.len() > 1 {
        return Err(mistake(1, What::NoText));
    }
    let text = core::str::from_utf8(&bytes[..end]).map_err(|error| {
        mistake(1 + bytes[..error.valid_up_to()].iter().filter(|b| **b == b'\n').count(), What::NoText)
    })?;
    let (mut limits, mut seen) = (Limits::default(), [false; KEYS.len()]);
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.split('#').next().unwrap_or_default().trim();
        if text.is_empty() {
            continue;
        }
        let (key, value) = text.split_once('=').ok_or(mistake(line, What::NoPair))?;
        let at = KEYS.iter().position(|(name, ..)| *name == key.trim()).ok_or(mistake(line, What::NoKey))?;
        let (name, least, most, set) = KEYS[at];
        if core::mem::replace(&mut seen[at], true) {
            return Err(mistake(line, What::Twice(name)));
        }
        let number = value.trim().parse().ok().filter(|n| (least..=most).contains(n));
        set(&mut limits, number.ok_or(mistake(line, What::Number(name, least, most)))?);
    }
    Ok(limits)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    #[test]
    fn limits_are_read() {
        let limits =
            parse(b"# small\npages = 100\n\n threads=2 # two\nportals = 5\npriority = 3\ncpu = 40\n\0\0")
                .unwrap();
        assert_eq!(limits, Limits { pages: 100, threads: 2, portals: 5, priority: Some(3), cpu: 40 });
        assert_eq!(parse(b""), Ok(Limits::default()));
    }

    #[test]
    fn mistakes_name_the_line() {
        for (text, says) in [
            (
                "pages = 1\npagse = 2",
                "manifest, line 2: no such key: use pages, threads, portals, priority, cpu",
            ),
            ("\npages", "manifest, line 2: not of the form 'key = number'"),
            ("pages = 0", "manifest, line 1: pages is a number from 1 to 4096"),
            ("pages = 4097", "manifest, line 1: pages is a number from 1 to 4096"),
            ("priority = 9", "manifest, line 1: priority is a number from 1 to 8"),
            ("threads = two", "manifest, line 1: threads is a number from 1 to 32"),
            ("threads = -1", "manifest, line 1: threads is a number from 1 to 32"),
            ("pages = 5\npages = 5", "manifest, line 2: pages is there twice"),
            ("\0\0\0\0", "manifest, line 1: no text"),
        ] {
            assert_eq!(parse(text.as_bytes()).unwrap_err().to_string(), says);
        }
        assert_eq!(parse(b"pages = 5\n\xff").unwrap_err(), Mistake { line: 2, what: What::NoText });
        assert_eq!(parse(&[b' '; LIMIT + 1]).unwrap_err().what, What::TooLong);
    }

    proptest! {
        #[test]
        fn nothing_is_more_than_any_program_has(bytes in prop::collection::vec(prop_oneof![
            any::<u8>(), Just(b'\n'), Just(b'='), prop::sample::select(b"pagesthrdolniy0123456789 ".to_vec())], 0..200)) {
            if let Ok(limits) = parse(&bytes) {
                let most = Limits::default();
                prop_assert!(limits.pages <= most.pages && limits.threads <= most.threads && limits.portals <= most.portals);
            }
        }
    }
}

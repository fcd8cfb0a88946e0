//! What a word is: the types of a description, and what letter, Rust and C make of them.

use pebble_portal::spec::Arg;
use std::fmt;

/// The type of an argument or of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any word.
    Word,
    Domain,
    Thread,
    Ticks,
    Address,
    /// An index in a portal table.
    Portal,
    /// An interface's name, in three words.
    Name,
    /// A path, in five.
    Path,
    /// So many words.
    Words(usize),
}

/// Types of one word: as a description names them, in Rust (`pebble::words`), in C.
const SINGLE: [(Kind, &str, &str, &str); 6] = [
    (Kind::Word, "word", "u64", "unsigned long"),
    (Kind::Domain, "domain", "Asid", "int"),
    (Kind::Thread, "thread", "ThreadId", "int"),
    (Kind::Ticks, "ticks", "Ticks", "unsigned long"),
    (Kind::Address, "address", "VirtAddr", "const void *"),
    (Kind::Portal, "portal", "PortalIndex", "int"),
];
/// What a description can name, for errors.
pub const ALL: &str = "word, domain, thread, ticks, address, portal, name, path, words[2] to words[5]";

impl Kind {
    pub fn parse(text: &str) -> Option<Kind> {
        let single = SINGLE.iter().find(|(_, name, ..)| *name == text).map(|(kind, ..)| *kind);
        let words =
            || text.strip_prefix("words[")?.strip_suffix(']')?.parse().ok().filter(|n| (2..=5).contains(n));
        match text {
            "name" => Some(Kind::Name),
            "path" => Some(Kind::Path),
            _ => single.or_else(|| words().map(Kind::Words)),
        }
    }

    /// How many words it has.
    pub fn words(self) -> usize {
        match self {
            Kind::Name => pebble_abi::link::NAMELEN / 8,
            Kind::Path => pebble_abi::link::PATHLEN / 8,
            Kind::Words(words) => words,
            _ => 1,
        }
    }

    /// The type of one of its words in Rust.
    pub fn rust(self) -> &'static str {
        SINGLE.iter().find(|(kind, ..)| *kind == self).map_or("u64", |(_, _, rust, _)| rust)
    }

    /// The same in C.
    pub fn c(self) -> &'static str {
        SINGLE.iter().find(|(kind, ..)| *kind == self).map_or("unsigned long", |(.., c)| c)
    }

    /// What else an argument with this letter would have to be.
    pub fn misfit(self, letter: Arg) -> Option<&'static str> {
        let (fits, wanted) = match letter {
            Arg::Domain | Arg::Origin => (self == Kind::Domain, "a domain"),
            Arg::Thread => (self == Kind::Thread, "a thread"),
            Arg::Time => (self == Kind::Ticks, "a time in ticks"),
            Arg::Index => (self == Kind::Portal, "a portal"),
            Arg::Window(..) => (self == Kind::Address, "an address"),
            Arg::Constant | Arg::Template(_) => (self.words() == 1, "one word"),
            Arg::Word => (true, ""),
        };
        (!fits).then_some(wanted)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Name => write!(f, "name"),
            Kind::Path => write!(f, "path"),
            Kind::Words(words) => write!(f, "words[{words}]"),
            single => {
                let known = SINGLE.iter().find(|(kind, ..)| kind == single);
                write!(f, "{}", known.map_or("word", |(_, name, ..)| name))
            }
        }
    }
}

//! What can be opened: an entry point of a domain, under a name, with a specification.
//!
//! Whoever opens it passes the name in words, and needs to know a few things of the specification: both are
//! found once, when the interface is made.

use alloc::string::String;
use core::num::NonZeroU16;
use core::ops::Deref;
use pebble_abi::link::pack;
use pebble_portal::Spec;
use pebble_portal::spec::{Arg, WindowKind};

pub struct Interface {
    /// Empty: a controller's handler, for stubs alone.
    pub name: Name,
    /// 0: withdrawn.
    pub asid: u16,
    pub entry: u64,
    pub spec: Spec,
    /// Of an interface without an owner: the role that it belongs to.
    pub role: Option<NonZeroU16>,
    /// The image's manifest answers for its letters: whoever may open it gives them.
    pub vouched: bool,
    /// The specification as calls pass it.
    pub(crate) text: [u64; 2],
    /// It has windows: whether pages move.
    pub(crate) moves: Option<bool>,
    /// It has letters of servers.
    pub(crate) lettered: bool,
}

/// A specification, and what is known of it.
#[derive(Clone, Copy)]
pub(crate) struct Written<'a> {
    pub spec: &'a Spec,
    pub text: [u64; 2],
    pub lettered: bool,
}

impl<'a> Written<'a> {
    pub fn of(spec: &'a Spec) -> Self {
        let lettered = spec.args.iter().any(|arg| matches!(arg, Arg::Template(_)));
        Written { spec, text: text(spec), lettered }
    }
}

impl Interface {
    /// A stranger's.
    pub fn new(name: &str, asid: u16, entry: u64, spec: Spec) -> Self {
        let mut moves = None;
        for arg in &spec.args {
            if let Arg::Window(window, _) = arg {
                let its = matches!(window, WindowKind::Tear | WindowKind::Get);
                moves = Some(its || moves == Some(true));
            }
        }
        let Written { text, lettered, .. } = Written::of(&spec);
        let name = name.into();
        Interface { name, asid, entry, spec, role: None, vouched: false, text, moves, lettered }
    }

    /// Its specification, as calls pass it.
    pub fn text(&self) -> [u64; 2] {
        self.text
    }

    /// All of its specification.
    pub(crate) fn letters(&self) -> impl Iterator<Item = u8> {
        let [mut first, mut rest] = self.text;
        core::iter::from_fn(move || {
            let letter = first as u8;
            (first, rest) = (first >> 8 | rest << 56, rest >> 8);
            (letter != 0).then_some(letter)
        })
    }

    pub(crate) fn written(&self) -> Written<'_> {
        Written { spec: &self.spec, text: self.text, lettered: self.lettered }
    }

    /// The image's.
    pub fn vouched(self) -> Self {
        Interface { vouched: true, ..self }
    }
}

/// A name, and the same as calls pass it.
#[derive(Default)]
pub struct Name {
    text: String,
    words: Option<[u64; 3]>,
}

impl Name {
    /// `words`: as calls pass it.
    pub(crate) fn is(&self, words: [u64; 3]) -> bool {
        // Word by word: `==` would compare bytes.
        self.words.is_some_and(|its| its.iter().zip(&words).all(|(a, b)| a == b))
    }

    pub fn words(&self) -> Option<[u64; 3]> {
        self.words
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Name { text: text.into(), words: pack(text) }
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        self.text == *other
    }
}

/// The text of a specification in two words; none is longer.
pub fn text(spec: &Spec) -> [u64; 2] {
    let mut words = [0; 2];
    for (n, letter) in spec.letters().take(16).enumerate() {
        words[n / 8] |= u64::from(letter) << (n % 8 * 8);
    }
    words
}

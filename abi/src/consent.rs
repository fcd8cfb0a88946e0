//! What the opener of a portal gives to its exporter.
//!
//! A specification is the exporter's, and some of its letters cost the opener something: its stacks, its
//! preserved registers, pages, capabilities. The exporter asks for these by writing them; the opener gives
//! them, by a set of letters in the call that opens, or the portal is refused. What any stranger may have is
//! in no set.

/// A set of specification letters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Letters(u64);

impl Letters {
    /// Nothing but what any stranger may have.
    pub const NONE: Letters = Letters(0);
    /// A stack of the exporter's own, registers that are saved and hidden, words, and what the portal
    /// supplies.
    const FREE: Letters = Letters::of("npficabdh");

    /// All letters of a text; what is none (`=`, `>`, numbers) costs nobody anything.
    pub const fn of(text: &str) -> Letters {
        let (bytes, mut set, mut n) = (text.as_bytes(), Letters::NONE, 0);
        while n < bytes.len() {
            set = set.with(bytes[n]);
            n += 1;
        }
        set
    }

    const fn bit(letter: u8) -> u64 {
        if letter.is_ascii_alphabetic() { 1 << (letter - b'A') } else { 0 }
    }

    /// One letter more.
    pub const fn with(self, letter: u8) -> Letters {
        Letters(self.0 | Letters::bit(letter))
    }

    /// As calls pass it.
    pub const fn word(self) -> u64 {
        self.0
    }

    /// `None`: no set. A register that was never written, with an address or an error in it, mostly is none.
    pub const fn from_word(word: u64) -> Option<Letters> {
        if word & !Letters::of(ALL).0 == 0 { Some(Letters(word)) } else { None }
    }

    /// The first of these letters that is not given.
    pub fn missing(self, letters: impl IntoIterator<Item = u8>) -> Option<u8> {
        letters.into_iter().find(|letter| Letters::bit(*letter) & !(self.0 | Letters::FREE.0) != 0)
    }
}

/// Letters that mean anything.
const ALL: &str = "snmpficabdhwrotgkABCDEFGHIJKLMNOPQRSTUVWXYZ";

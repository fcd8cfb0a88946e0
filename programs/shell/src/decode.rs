//! Bytes from a terminal as keys.
//!
//! Strategy: a state machine over single bytes. Control sequences (`ESC [ parameters final`, `ESC O final`,
//! `ESC letter`) are swallowed whole, known or not; a control character in the middle of one ends it and
//! counts for itself, so garbage never makes the keyboard go dead. A character arrives when its UTF-8 is
//! complete; bytes that are no UTF-8 vanish.

/// Parameters longer than this are no key of any terminal.
const LONGEST: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Printable.
    Char(char),
    Enter,
    Tab,
    Backspace,
    Delete,
    Left,
    Right,
    WordLeft,
    WordRight,
    Home,
    End,
    Up,
    Down,
    /// Cuts to the end of the line (Ctrl-K).
    KillEnd,
    /// Cuts to the start of the line (Ctrl-U).
    KillStart,
    /// Cuts the word to the left (Ctrl-W).
    KillWord,
    /// Puts back what was cut last (Ctrl-Y).
    Yank,
    /// Clears the screen (Ctrl-L).
    Clear,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D.
    EndOfInput,
}

#[derive(Default)]
enum State {
    #[default]
    Plain,
    /// After a CR, to which an LF may belong.
    AfterCr,
    Escape,
    /// `ESC O`
    Single,
    /// `ESC [`: the first parameter, the last, bytes so far.
    Sequence {
        first: u8,
        last: u8,
        len: usize,
    },
    /// In a UTF-8 character: bytes so far, how many there will be.
    Character {
        bytes: [u8; 4],
        len: usize,
        full: usize,
    },
}

#[derive(Default)]
pub struct Decoder {
    state: State,
}

impl Decoder {
    pub const fn new() -> Self {
        Decoder { state: State::Plain }
    }

    /// Takes a byte; returns the key that it completes.
    pub fn push(&mut self, byte: u8) -> Option<Key> {
        match core::mem::take(&mut self.state) {
            State::AfterCr if byte == b'\n' => None,
            State::Plain | State::AfterCr => self.plain(byte),
            State::Character { mut bytes, len, full } if byte & 0xc0 == 0x80 => {
                bytes[len] = byte;
                if len + 1 < full {
                    self.state = State::Character { bytes, len: len + 1, full };
                    return None;
                }
                let c = core::str::from_utf8(&bytes[..full]).ok()?.chars().next()?;
                (!c.is_control()).then_some(Key::Char(c))
            }
            State::Character { .. } => self.plain(byte),
            _ if !matches!(byte, b' '..=b'~') => self.plain(byte),
            State::Escape => match byte {
                b'[' => {
                    self.state = State::Sequence { first: 0, last: 0, len: 0 };
                    None
                }
                b'O' => {
                    self.state = State::Single;
                    None
                }
                b'b' => Some(Key::WordLeft),
                b'f' => Some(Key::WordRight),
                _ => None,
            },
            State::Single => named(byte, 0),
            State::Sequence { first, last, len } => match byte {
                b'@'..=b'~' => sequence(byte, first, last),
                _ if len == LONGEST => None,
                b'0'..=b'9' => {
                    let last = last.wrapping_mul(10).wrapping_add(byte - b'0');
                    self.state = State::Sequence { first, last, len: len + 1 };
                    None
                }
                _ => {
                    let first = if first == 0 { last } else { first };
                    self.state = State::Sequence { first, last: 0, len: len + 1 };
                    None
                }
            },
        }
    }

    fn plain(&mut self, byte: u8) -> Option<Key> {
        let control = |letter: u8| letter & 31;
        Some(match byte {
            b'\r' => {
                self.state = State::AfterCr;
                Key::Enter
            }
            b'\n' => Key::Enter,
            b'\t' => Key::Tab,
            8 | 127 => Key::Backspace,
            27 => {
                self.state = State::Escape;
                return None;
            }
            b if b == control(b'A') => Key::Home,
            b if b == control(b'B') => Key::Left,
            b if b == control(b'C') => Key::Interrupt,
            b if b == control(b'D') => Key::EndOfInput,
            b if b == control(b'E') => Key::End,
            b if b == control(b'F') => Key::Right,
            b if b == control(b'K') => Key::KillEnd,
            b if b == control(b'L') => Key::Clear,
            b if b == control(b'N') => Key::Down,
            b if b == control(b'P') => Key::Up,
            b if b == control(b'U') => Key::KillStart,
            b if b == control(b'W') => Key::KillWord,
            b if b == control(b'Y') => Key::Yank,
            b' '..=b'~' => Key::Char(char::from(byte)),
            0xc2..=0xf4 => {
                let full = match byte {
                    0xf0.. => 4,
                    0xe0..0xf0 => 3,
                    _ => 2,
                };
                self.state = State::Character { bytes: [byte, 0, 0, 0], len: 1, full };
                return None;
            }
            _ => return None,
        })
    }
}

/// `ESC [ first ; last final`. A modifier (Ctrl, Alt) makes an arrow go by words.
fn sequence(end: u8, first: u8, last: u8) -> Option<Key> {
    let number = if first == 0 { last } else { first };
    match end {
        b'~' => match number {
            1 | 7 => Some(Key::Home),
            3 => Some(Key::Delete),
            4 | 8 => Some(Key::End),
            _ => None,
        },
        _ => named(end, if first == 0 { 0 } else { last }),
    }
}

fn named(end: u8, modifier: u8) -> Option<Key> {
    Some(match (end, modifier) {
        (b'A', _) => Key::Up,
        (b'B', _) => Key::Down,
        (b'C', 0..3) => Key::Right,
        (b'D', 0..3) => Key::Left,
        (b'C', _) => Key::WordRight,
        (b'D', _) => Key::WordLeft,
        (b'H', _) => Key::Home,
        (b'F', _) => Key::End,
        _ => return None,
    })
}

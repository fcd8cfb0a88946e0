//! What a script's user sees of the console: all but the line by which a board tells its status.
//!
//! Problem: a board that cannot end the emulator with a status says it in the console's last line, and output
//! is passed on as it comes. Strategy: a line that begins like that one is held back until another byte comes.

use std::io::{self, Write};

/// How the line begins; see `lib/pebble/src/power.rs`.
pub(crate) const BEGINS: &str = "power: status ";

/// Passes on what is written, but for the status in the last line.
pub struct WithoutStatus<W> {
    to: W,
    /// The board has another way to tell its status: all is passed on.
    all: bool,
    /// What may be that line. Before it, a line has ended.
    held: Vec<u8>,
    fresh: bool,
}

impl<W: Write> WithoutStatus<W> {
    /// `told`: the board tells its status on the console.
    pub fn new(to: W, told: bool) -> Self {
        WithoutStatus { to, all: !told, held: Vec::new(), fresh: true }
    }
}

impl<W: Write> Write for WithoutStatus<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.all {
            return self.to.write(bytes);
        }
        let mut passed = Vec::with_capacity(bytes.len());
        for byte in bytes {
            if self.held.ends_with(b"\n") {
                passed.append(&mut self.held);
            }
            if !self.fresh {
                passed.push(*byte);
                self.fresh = *byte == b'\n';
                continue;
            }
            self.held.push(*byte);
            let known = self.held.len().min(BEGINS.len());
            if self.held[..known] != BEGINS.as_bytes()[..known] {
                passed.append(&mut self.held);
                self.fresh = *byte == b'\n';
            }
        }
        self.to.write_all(&passed)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the pieces are in which it comes.
    fn shown(text: &str, told: bool) -> String {
        let texts = (1..=text.len().max(1)).map(|length| {
            let mut out = Vec::new();
            let mut console = WithoutStatus::new(&mut out, told);
            text.as_bytes().chunks(length).for_each(|piece| console.write_all(piece).expect("a vector"));
            String::from_utf8(out).expect("text")
        });
        texts.reduce(|one, other| if one == other { one } else { panic!("{one:?}, {other:?}") }).expect("one")
    }

    #[test]
    fn the_status_alone_is_missing() {
        assert_eq!(shown("hi\npower: status 7\n", true), "hi\n");
        assert_eq!(shown("power: status 7\n", true), "");
        assert_eq!(shown("hi\npower: status 7\n", false), "hi\npower: status 7\n");
        assert_eq!(shown("power: status 7\nmore\n", true), "power: status 7\nmore\n");
        assert_eq!(shown("power: status 7\npower: status 8\n", true), "power: status 7\n");
        assert_eq!(shown("a power: status 7\n\npower: off\n", true), "a power: status 7\n\npower: off\n");
    }
}

//! The shell's script mode, seen from outside.
//!
//! The line `\x01script` turns prompt, echo and editing off; the shell answers `\x1eready\x1e` and from then on ends
//! the output of each command with `\x1e<status>\x1e`, both on a line end. The byte 0x1e is ASCII's record separator.

/// What the shell prints when it waits for a person.
pub const PROMPT: &str = "pebble> ";
/// Switches the shell into script mode.
pub const ENTER: &[u8] = b"\x01script\n";
/// Ends the system.
pub const LEAVE: &[u8] = b"exit\n";
pub const READY: &str = "\x1eready\x1e";

/// What one line of a script did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    pub output: String,
    pub status: i32,
}

/// What the console's pending bytes hold next.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    /// So many bytes of output, which may be passed on.
    Output(usize),
    /// A status after so many bytes of output, ending at the second position.
    Status { output: usize, end: usize, status: i32 },
}

const MARK: u8 = 0x1e;
/// Longest status marker: the two marks, ten digits and a sign, the line end.
const LONGEST: usize = 15;

/// Looks for the next marker. Bytes that may be the start of one are not output yet.
pub fn next_piece(bytes: &[u8]) -> Piece {
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|b| *b == MARK).map(|at| from + at) {
        match parse(&bytes[at..]) {
            Marker::Status(status, len) => return Piece::Status { output: at, end: at + len, status },
            Marker::Incomplete => return Piece::Output(at),
            Marker::No => from = at + 1,
        }
    }
    Piece::Output(bytes.len())
}

enum Marker {
    Status(i32, usize),
    Incomplete,
    No,
}

fn parse(bytes: &[u8]) -> Marker {
    let window = &bytes[1..bytes.len().min(LONGEST)];
    let Some(close) = window.iter().position(|b| *b == MARK) else {
        let digits = window.iter().all(|b| b.is_ascii_digit() || *b == b'-');
        return if digits && bytes.len() < LONGEST { Marker::Incomplete } else { Marker::No };
    };
    let status = std::str::from_utf8(&window[..close]).ok().and_then(|text| text.parse().ok());
    let Some(status) = status else { return Marker::No };
    match &bytes[close + 2..] {
        [b'\n', ..] => Marker::Status(status, close + 3),
        [b'\r', b'\n', ..] => Marker::Status(status, close + 4),
        [] | [b'\r'] => Marker::Incomplete,
        _ => Marker::No,
    }
}

/// The console ends lines with `\r\n`; files and pipes end them with `\n`.
#[derive(Default)]
pub struct Newlines {
    held: bool,
}

impl Newlines {
    /// Converts the next chunk; a `\r` at its end is kept back until what follows is known.
    pub fn convert(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len() + 1);
        for byte in bytes {
            if self.held && *byte != b'\n' {
                out.push(b'\r');
            }
            self.held = *byte == b'\r';
            if !self.held {
                out.push(*byte);
            }
        }
        out
    }

    /// What was kept back.
    pub fn finish(&mut self) -> &'static [u8] {
        if std::mem::take(&mut self.held) { b"\r" } else { b"" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_status_behind_output() {
        let piece = next_piece(b"hello\r\n\x1e-12\x1e\r\nrest");
        assert_eq!(piece, Piece::Status { output: 7, end: 14, status: -12 });
    }

    #[test]
    fn keeps_back_the_start_of_a_marker() {
        assert_eq!(next_piece(b"ab\x1e"), Piece::Output(2));
        assert_eq!(next_piece(b"ab\x1e1"), Piece::Output(2));
        assert_eq!(next_piece(b"ab\x1e1\x1e"), Piece::Output(2));
        assert_eq!(next_piece(b"ab\x1e1\x1e\r"), Piece::Output(2));
    }

    #[test]
    fn passes_on_what_only_looks_like_a_marker() {
        assert_eq!(next_piece(b"ab\x1ecd\x1e\n"), Piece::Output(7));
        assert_eq!(next_piece(b"\x1e123456789012345"), Piece::Output(16));
        let piece = next_piece(b"\x1e\x1e0\x1e\n");
        assert_eq!(piece, Piece::Status { output: 1, end: 5, status: 0 });
    }

    #[test]
    fn converts_line_ends_across_chunks() {
        let mut newlines = Newlines::default();
        let mut out = newlines.convert(b"a\r");
        out.extend(newlines.convert(b"\nb\rc\r\r\n\r"));
        out.extend(newlines.finish());
        assert_eq!(out, b"a\nb\rc\r\n\r");
    }
}

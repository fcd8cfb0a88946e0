//! The shell's script mode, seen from outside.
//!
//! The line `\x01script` turns prompt, echo and editing off; the shell answers `\x1eready\x1e` and from then
//! on ends the output of each command with `\x1e<status>\x1e`, both on a line end. The byte 0x1e is ASCII's
//! record separator.
//!
//! A shell that dies says nothing: `init` does, and starts another, which waits for a person again.

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
    /// The shell has died with this status, as so many bytes of output say at their end.
    Died { output: usize, status: i32 },
}

const MARK: u8 = 0x1e;
/// Longest status marker: the two marks, ten digits and a sign, the line end.
const LONGEST: usize = 15;

/// Looks for what comes next. Bytes that may be the start of a marker, or of the news that the shell has
/// died, are not output yet.
pub fn next_piece(bytes: &[u8]) -> Piece {
    let (told, died) = death(bytes);
    match (next_marker(&bytes[..told]), died) {
        // Who dies has not ended its line, and perhaps not its marker.
        (Piece::Output(_), Some((output, status))) => Piece::Died { output, status },
        (piece, _) => piece,
    }
}

fn next_marker(bytes: &[u8]) -> Piece {
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

/// What `init` says, before and behind the status.
const DIED: &[u8] = b"init: the shell died with status ";
const ANOTHER: &[u8] = b"; starting another\r\n";

/// Where init says so, or may be about to, or the end; where that ends, and the status.
fn death(bytes: &[u8]) -> (usize, Option<(usize, i32)>) {
    for (at, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == DIED[0]) {
        let Some(rest) = begins(&bytes[at..], DIED) else { continue };
        let digits = rest.iter().take(3).take_while(|b| b.is_ascii_digit()).count();
        let (status, rest) = rest.split_at(digits);
        let Some(rest) = begins(rest, ANOTHER) else { continue };
        let status = std::str::from_utf8(status).ok().and_then(|text| text.parse().ok());
        let end = bytes.len() - rest.len();
        let whole = end - at == DIED.len() + digits + ANOTHER.len();
        return (at, status.filter(|_| whole).map(|status| (end, status)));
    }
    (bytes.len(), None)
}

/// What follows `text`, of which the end may be missing.
fn begins<'a>(bytes: &'a [u8], text: &[u8]) -> Option<&'a [u8]> {
    let known = text.len().min(bytes.len());
    (bytes[..known] == text[..known]).then(|| &bytes[known..])
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
    fn finds_the_death_of_the_shell() {
        let told = b"abc init: the shell died with status 137; starting another\r\n";
        for end in 0..told.len() {
            assert_eq!(next_piece(&told[..end]), Piece::Output(end.min(4)), "{end}");
        }
        let piece = next_piece(&[&told[..], b"Pebble\r\npebble> "].concat());
        assert_eq!(piece, Piece::Died { output: told.len(), status: 137 });
        assert_eq!(next_piece(b"init: the shell died with status x"), Piece::Output(34));
        assert_eq!(
            next_piece(b"init: in it\r\n\x1e0\x1e\n"),
            Piece::Status { output: 13, end: 17, status: 0 }
        );
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

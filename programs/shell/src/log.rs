//! The console's log as text: who wrote what.
//!
//! The log is a stream of bytes with marks in it (`pebble_console::Log`): a writer's number; or a number that
//! is free again, and what its domain was called. A name so comes behind what its domain has written.

use alloc::string::String;
use alloc::vec::Vec;

const MARK: u8 = 0x1d;
const NAME: usize = 16;

struct Piece<'a> {
    writer: u8,
    /// Once its writer is gone.
    name: Option<&'a [u8]>,
    bytes: Vec<u8>,
}

/// Lines, each with its writer before it: those of all, or of the domain with this number or name. `living`
/// names those that are not gone.
pub fn show(log: &[u8], living: impl Fn(u8) -> String, wanted: Option<&str>) -> String {
    let mut text = String::new();
    for Piece { writer, name, bytes } in pieces(log) {
        let name =
            name.map_or_else(|| living(writer), |name| String::from_utf8_lossy(trimmed(name)).into_owned());
        if wanted.is_some_and(|wanted| wanted != name && wanted.parse() != Ok(writer)) {
            continue;
        }
        for line in String::from_utf8_lossy(&bytes).lines() {
            let shown = line.chars().filter(|c| !c.is_control() || *c == '\t');
            text.push_str(&alloc::format!("{writer:>3} {name}: "));
            text.extend(shown);
            text.push('\n');
        }
    }
    text
}

fn trimmed(name: &[u8]) -> &[u8] {
    &name[..name.iter().position(|byte| *byte == 0).unwrap_or(name.len())]
}

/// What each has written in one go. What stands before the first mark has lost its writer.
fn pieces(log: &[u8]) -> Vec<Piece<'_>> {
    let mut pieces: Vec<Piece> = Vec::new();
    for part in log.split(|byte| *byte == MARK).skip(1) {
        let Some((writer, bytes)) = number(part) else { continue };
        if writer == 0 {
            let Some((asid, name)) = number(bytes) else { continue };
            let theirs = |p: &&mut Piece| p.writer == asid && p.name.is_none();
            pieces.iter_mut().filter(theirs).for_each(|piece| piece.name = name.get(..NAME));
        } else if let Some(piece) = pieces.last_mut().filter(|p| p.writer == writer && p.name.is_none()) {
            piece.bytes.extend_from_slice(bytes);
        } else {
            pieces.push(Piece { writer, name: None, bytes: bytes.into() });
        }
    }
    pieces
}

/// A domain's number, and what follows it.
fn number(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let ([high, low], rest) = bytes.split_first_chunk()?;
    Some((high << 7 | low & 0x7f, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gone(asid: u8, name: &str) -> Vec<u8> {
        let mut bytes = alloc::vec![MARK, 0x80, 0x80, 0x80, 0x80 | asid];
        bytes.extend_from_slice(name.as_bytes());
        bytes.resize(5 + NAME, 0);
        bytes
    }

    #[test]
    fn each_line_has_the_writer_that_it_had() {
        let log = [
            &b"lost\n\x1d\x80\x8eone\ntw\x1d\x80\x8eo\n"[..],
            &gone(14, "first"),
            b"\x1d\x81\x8fbetween\n\x1d\x80\x8ethree",
            &gone(14, "second"),
            b"\x1d\x80\x8ealive",
        ]
        .concat();
        let living = |asid: u8| alloc::format!("living{asid}");
        let all = " 14 first: one\n 14 first: two\n143 living143: between\n 14 second: three\n 14 living14: \
            alive\n";
        assert_eq!(show(&log, living, None), all);
        assert_eq!(show(&log, living, Some("second")), " 14 second: three\n");
        assert_eq!(show(&log, living, Some("143")), "143 living143: between\n");
    }

    #[test]
    fn any_bytes_are_shown_without_harm() {
        for length in 0..40 {
            let log: Vec<u8> = (0..length).map(|n| [MARK, 0x80, 27, n][usize::from(n) * 7 % 4]).collect();
            let text = show(&log, |_| String::new(), None);
            assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
        }
    }
}

//! Files over the console: lines of base64, then a line `= BYTES CHECKSUM`, both numbers decimal; the
//! checksum is CRC-32 (IEEE). A console loses nothing, but whoever pastes may.

use alloc::vec::Vec;
use core::fmt;

/// What came over the console is not what was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferError {
    /// A character that is not base64, at this line and column (from 1).
    Character {
        line: usize,
        column: usize,
    },
    /// Characters that make no whole byte before this line ended.
    Partial {
        line: usize,
    },
    /// The last line is not `= BYTES CHECKSUM`.
    End {
        line: usize,
    },
    Length {
        told: u64,
        came: u64,
    },
    Checksum {
        told: u32,
        came: u32,
    },
    /// The input ended before the last line.
    Unfinished,
    TooLong,
}

impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            TransferError::Character { line, column } => {
                write!(f, "line {line}, column {column}: no base64 character")
            }
            TransferError::Partial { line } => write!(f, "line {line}: ends in the middle of a byte"),
            TransferError::End { line } => {
                write!(f, "line {line}: should be '= BYTES CHECKSUM', both decimal")
            }
            TransferError::Length { told, came } => write!(f, "{came} bytes came, {told} were sent"),
            TransferError::Checksum { told, came } => {
                write!(f, "the checksum is {came}, not {told}: a line was lost or changed")
            }
            TransferError::Unfinished => write!(f, "the input ended before the line '= BYTES CHECKSUM'"),
            TransferError::TooLong => write!(f, "more bytes than fit a file"),
        }
    }
}

/// Decodes line after line. After one that is wrong it still takes those up to the last, or they would go to
/// whoever reads next.
#[derive(Default)]
pub struct Receiver {
    bytes: Vec<u8>,
    line: usize,
    /// The first thing that was wrong.
    wrong: Option<TransferError>,
    ended: bool,
}

/// Most bytes of a file.
pub const MAX: usize = 8 << 20;

impl Receiver {
    /// Takes a line, without its end; true if it was the last.
    pub fn line(&mut self, text: &str) -> bool {
        self.line += 1;
        let text = text.trim();
        let end = text.strip_prefix('=');
        self.ended = end.is_some();
        if self.wrong.is_none() {
            let taken = match end {
                Some(end) => self.end(end),
                None => self.decode(text),
            };
            self.wrong = taken.err();
        }
        if self.wrong.is_some() {
            self.bytes = Vec::new();
        }
        self.ended
    }

    /// All bytes that were sent, or what was wrong first.
    pub fn finish(self) -> Result<Vec<u8>, TransferError> {
        match self.wrong {
            Some(error) => Err(error),
            None if self.ended => Ok(self.bytes),
            None => Err(TransferError::Unfinished),
        }
    }

    fn decode(&mut self, text: &str) -> Result<(), TransferError> {
        let line = self.line;
        let (mut bits, mut count) = (0u32, 0);
        for (at, c) in text.trim_end_matches('=').bytes().enumerate() {
            let value = sextet(c).ok_or(TransferError::Character { line, column: at + 1 })?;
            (bits, count) = (bits << 6 | value, count + 6);
            if count >= 8 {
                count -= 8;
                self.bytes.push((bits >> count) as u8);
            }
        }
        if count >= 6 {
            return Err(TransferError::Partial { line });
        }
        if self.bytes.len() > MAX { Err(TransferError::TooLong) } else { Ok(()) }
    }

    fn end(&mut self, text: &str) -> Result<(), TransferError> {
        let mut words = text.split_whitespace();
        let told = words.next().and_then(|w| w.parse().ok());
        let checksum = words.next().and_then(|w| w.parse().ok());
        let (Some(told), Some(checksum), None) = (told, checksum, words.next()) else {
            return Err(TransferError::End { line: self.line });
        };
        let came = self.bytes.len() as u64;
        if told != came {
            return Err(TransferError::Length { told, came });
        }
        let came = crc32(&self.bytes);
        if checksum != came { Err(TransferError::Checksum { told: checksum, came }) } else { Ok(()) }
    }
}

fn sextet(c: u8) -> Option<u32> {
    Some(u32::from(match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

/// CRC-32 as in zip files.
pub fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |c, _| if c & 1 == 1 { c >> 1 ^ 0xedb8_8320 } else { c >> 1 })
    })
}

/// The lines of a file, as [`Receiver`] takes them.
pub fn encode(bytes: &[u8], mut line: impl FnMut(&str)) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for chunk in bytes.chunks(54) {
        let mut text = alloc::string::String::new();
        for three in chunk.chunks(3) {
            let word = three.iter().fold(0u32, |w, b| w << 8 | u32::from(*b)) << (8 * (3 - three.len()));
            for n in 0..4 {
                let digit = DIGITS[(word >> (18 - 6 * n)) as usize & 63];
                text.push(if n <= three.len() { digit.into() } else { '=' });
            }
        }
        line(&text);
    }
    line(&alloc::format!("= {} {}", bytes.len(), crc32(bytes)));
}

//! The `newc` format of `cpio`: records of header, name and data, one after the other.
//!
//! A header is `070701` and 13 numbers of 8 hexadecimal digits. The name follows, zero-terminated, then the
//! data; each starts at a multiple of four bytes. The record named `TRAILER!!!` is the last. Invariant:
//! whatever the bytes are, reading stays inside of the archive and ends; the first thing wrong is reported
//! with its offset.

use crate::archive::{ArchiveError, Problem};

const HEADER: usize = 110;
const MAGIC: &[u8] = b"070701";
const MODE: usize = 1;
const LINKS: usize = 4;
const SIZE: usize = 6;
const NAME_SIZE: usize = 11;

const TYPE: u32 = 0o170_000;
const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;

pub struct Record<'a> {
    /// Where its header starts.
    pub offset: usize,
    pub path: &'a str,
    /// None: a directory.
    pub data: Option<&'a [u8]>,
}

/// The records up to the trailer.
pub struct Records<'a> {
    archive: &'a [u8],
    offset: usize,
    ended: bool,
}

impl<'a> Records<'a> {
    pub fn new(archive: &'a [u8]) -> Self {
        Records { archive, offset: 0, ended: false }
    }

    fn record(&mut self) -> Result<Option<Record<'a>>, ArchiveError> {
        let offset = self.offset;
        let error = |offset, problem| ArchiveError { offset, problem };
        let take = |from: usize, len: usize| {
            let end = from.checked_add(len);
            end.and_then(|end| self.archive.get(from..end)).ok_or(error(from, Problem::Truncated))
        };
        if take(offset, MAGIC.len())? != MAGIC {
            return Err(error(offset, Problem::Magic));
        }
        let header = take(offset, HEADER)?;
        let number = |field: usize| {
            let at = MAGIC.len() + field * 8;
            hexadecimal(&header[at..at + 8]).ok_or(error(offset + at, Problem::Number))
        };
        let (mode, links, size) = (number(MODE)?, number(LINKS)?, number(SIZE)? as usize);
        let name_at = offset + HEADER;
        let name = take(name_at, number(NAME_SIZE)? as usize)?;
        let path = match name.split_last() {
            Some((0, text)) if !text.contains(&0) => core::str::from_utf8(text).ok(),
            _ => None,
        };
        let path = path.ok_or(error(name_at, Problem::Name))?;
        if path == "TRAILER!!!" {
            return Ok(None);
        }
        let data_at = (name_at + name.len()).next_multiple_of(4);
        let data = take(data_at, size)?;
        self.offset = (data_at + size).next_multiple_of(4);
        let data = match mode & TYPE {
            REGULAR if links > 1 => return Err(error(offset, Problem::HardLink)),
            REGULAR => Some(data),
            DIRECTORY => None,
            _ => return Err(error(offset, Problem::Type)),
        };
        Ok(Some(Record { offset, path, data }))
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, ArchiveError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let record = self.record().transpose();
        self.ended = !matches!(record, Some(Ok(_)));
        record
    }
}

fn hexadecimal(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |value, digit| Some(value << 4 | char::from(*digit).to_digit(16)?))
}

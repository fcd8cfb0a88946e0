//! The `newc` format of `cpio`: records of header, name and data, one after the other.
//!
//! A header is `070701` and 13 numbers of 8 hexadecimal digits. The name follows, zero-terminated, then the
//! data; each starts at a multiple of four bytes. The record named `TRAILER!!!` is the last. Zeros between
//! records are passed over, as Linux does: by them data has pages of its own. Invariant: whatever the bytes
//! are, reading stays inside of the archive and ends; the first thing wrong is reported with its offset.

use crate::archive::{ArchiveError, Problem};

const HEADER: usize = 110;
/// What everything starts at a multiple of.
const WORD: usize = 4;
const PAGE: usize = pebble_abi::map::PAGE as usize;
const MAGIC: &[u8] = b"070701";
const MODE: usize = 1;
const LINKS: usize = 4;
const SIZE: usize = 6;
const NAME_SIZE: usize = 11;

const TYPE: u32 = 0o170_000;
const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;

const TRAILER: &str = "TRAILER!!!";

/// The numbers of a record's header that matter.
struct Header {
    mode: u32,
    links: u32,
    size: usize,
    name_size: usize,
}

impl Header {
    /// `bytes` start with a whole header, which lies at `offset`.
    fn parse(bytes: &[u8], offset: usize) -> Result<Self, ArchiveError> {
        let error = |at, problem| ArchiveError { offset: offset + at, problem };
        let number = |field: usize| {
            let at = MAGIC.len() + field * 8;
            hexadecimal(&bytes[at..at + 8]).ok_or(error(at, Problem::Number))
        };
        if !bytes.starts_with(MAGIC) {
            return Err(error(0, Problem::Magic));
        }
        let (size, name_size) = (number(SIZE)? as usize, number(NAME_SIZE)? as usize);
        Ok(Header { mode: number(MODE)?, links: number(LINKS)?, size, name_size })
    }
}

pub struct Record<'a> {
    /// Where its header starts.
    pub offset: usize,
    pub path: &'a str,
    /// None: a directory.
    pub data: Option<&'a [u8]>,
    /// It begins with a page of the archive, and what is left of its last page is zero.
    pub has_pages: bool,
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
        let offset = self.offset + zeros(self.archive.get(self.offset..).unwrap_or_default());
        let error = |offset, problem| ArchiveError { offset, problem };
        let take = |from: usize, len: usize| {
            let end = from.checked_add(len);
            end.and_then(|end| self.archive.get(from..end)).ok_or(error(from, Problem::Truncated))
        };
        if take(offset, MAGIC.len())? != MAGIC {
            return Err(error(offset, Problem::Magic));
        }
        let Header { mode, links, size, name_size } = Header::parse(take(offset, HEADER)?, offset)?;
        let name_at = offset + HEADER;
        let name = take(name_at, name_size)?;
        // Further zeros bring the data to where its writer wants it.
        let end = name.iter().position(|byte| *byte == 0);
        let text = end.map(|end| name.split_at(end)).filter(|(_, zeros)| zeros.iter().all(|zero| *zero == 0));
        let path = text.and_then(|(text, _)| core::str::from_utf8(text).ok());
        let path = path.ok_or(error(name_at, Problem::Name))?;
        if path == TRAILER {
            return Ok(None);
        }
        let data_at = (name_at + name.len()).next_multiple_of(WORD);
        let data = take(data_at, size)?;
        self.offset = (data_at + size).next_multiple_of(WORD);
        let rest = self.archive.get(data_at + size..(data_at + size).next_multiple_of(PAGE));
        let has_pages =
            data_at.is_multiple_of(PAGE) && rest.is_some_and(|rest| rest.iter().all(|byte| *byte == 0));
        let data = match mode & TYPE {
            REGULAR if links > 1 => return Err(error(offset, Problem::HardLink)),
            REGULAR => Some(data),
            DIRECTORY => None,
            _ => return Err(error(offset, Problem::Type)),
        };
        Ok(Some(Record { offset, path, data, has_pages }))
    }
}

/// Bytes of an archive that is followed by what does not belong to it. `start(n)` is its first `n` bytes, at
/// most `max`; only headers and names are read.
pub fn length<'a>(start: impl Fn(usize) -> &'a [u8], max: usize) -> Result<usize, ArchiveError> {
    let mut offset = 0;
    loop {
        let within = |end: usize| {
            let problem = ArchiveError { offset, problem: Problem::Truncated };
            if end <= max { Ok(start(end)) } else { Err(problem) }
        };
        let passed = zeros(start(max.min(offset + PAGE)).get(offset..).unwrap_or_default());
        if passed > 0 {
            offset += passed;
            continue;
        }
        let header = Header::parse(&within(offset + HEADER)?[offset..], offset)?;
        let name_end = offset + HEADER + header.name_size;
        if within(name_end)?[offset + HEADER..].strip_suffix(b"\0") == Some(TRAILER.as_bytes()) {
            return Ok(name_end);
        }
        offset = (name_end.next_multiple_of(WORD) + header.size).next_multiple_of(WORD);
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

/// Bytes of whole words, from the start on, that are zero.
fn zeros(bytes: &[u8]) -> usize {
    bytes.chunks_exact(WORD).take_while(|word| **word == [0; WORD]).count() * WORD
}

fn hexadecimal(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |value, digit| Some(value << 4 | char::from(*digit).to_digit(16)?))
}

//! Open files. See the head of the crate.
//!
//! Invariants:
//! * A control word names an entry by index and generation; entries are reused, generations are not, so the
//!   portals of a closed file answer `EBADF` even while another domain uses the entry.
//! * `place` never lies behind the end of the file.

use alloc::vec;
use alloc::vec::Vec;

use pebble_abi::call::IO_BYTES;
use pebble_abi::errno;
use pebble_abi::link::{PATHLEN, unpack};

use crate::archive::Archive;

/// Files open at once.
pub const FILES: usize = 512;
/// Of these, by one domain.
pub const FILES_PER_DOMAIN: usize = 64;

/// `whence` of a seek.
pub const SEEK_SET: u64 = 0;
pub const SEEK_CUR: u64 = 1;
pub const SEEK_END: u64 = 2;

#[derive(Clone, Copy)]
struct Open {
    generation: u32,
    /// 0: closed.
    asid: u16,
    node: u16,
    place: usize,
}

pub struct Files<'a> {
    archive: Archive<'a>,
    open: Vec<Open>,
}

impl<'a> Files<'a> {
    pub fn new(archive: Archive<'a>) -> Self {
        Files { archive, open: vec![Open { generation: 0, asid: 0, node: 0, place: 0 }; FILES] }
    }

    /// Opens the file or directory for domain `asid` and returns the control word.
    pub fn open(&mut self, asid: u16, path: [u64; 5]) -> Result<u64, i64> {
        let mut bytes = [0; PATHLEN];
        let len = unpack(&path, &mut bytes);
        let path = core::str::from_utf8(&bytes[..len]).map_err(|_| -errno::ENOENT)?;
        if path.is_empty() {
            return Err(-errno::ENOENT);
        }
        let node = self.archive.lookup(path)?;
        if asid == 0 || self.open.iter().filter(|open| open.asid == asid).count() >= FILES_PER_DOMAIN {
            return Err(-errno::EAGAIN);
        }
        let index = self.open.iter().position(|open| open.asid == 0).ok_or(-errno::EAGAIN)?;
        let generation = self.open[index].generation.wrapping_add(1);
        let node = u16::try_from(node).map_err(|_| -errno::ENOMEM)?;
        self.open[index] = Open { generation, asid, node, place: 0 };
        Ok(u64::from(generation) << 16 | index as u64)
    }

    /// The next bytes, up to `max` and 32 at most: their number, 0 at the end, and the bytes in words that
    /// are otherwise zero.
    pub fn read(&mut self, control: u64, max: u64) -> (i64, [u64; 4]) {
        let Some((open, bytes)) = self.file(control) else { return (-errno::EBADF, [0; 4]) };
        let rest = &bytes[open.place..];
        let rest = &rest[..rest.len().min(max.min(IO_BYTES as u64) as usize)];
        open.place += rest.len();
        (rest.len() as i64, words(rest))
    }

    /// The archive is read-only.
    pub fn write(&mut self, control: u64) -> i64 {
        if self.file(control).is_some() { -errno::EPERM } else { -errno::EBADF }
    }

    /// Moves to `offset` from the start, from here or from the end, and returns the new place; not before the
    /// start nor behind the end.
    pub fn seek(&mut self, control: u64, offset: u64, whence: u64) -> i64 {
        let Some((open, bytes)) = self.file(control) else { return -errno::EBADF };
        let from = match whence {
            SEEK_SET => 0,
            SEEK_CUR => open.place,
            SEEK_END => bytes.len(),
            _ => return -errno::EINVAL,
        };
        match (from as u64).checked_add_signed(offset as i64) {
            Some(place) if place <= bytes.len() as u64 => {
                open.place = place as usize;
                place as i64
            }
            _ => -errno::EINVAL,
        }
    }

    pub fn close(&mut self, control: u64) -> i64 {
        let Some((open, _)) = self.file(control) else { return -errno::EBADF };
        open.asid = 0;
        0
    }

    /// The domain is dead: closes what it had open.
    pub fn gone(&mut self, asid: u16) {
        for open in self.open.iter_mut().filter(|open| open.asid == asid) {
            open.asid = 0;
        }
    }

    /// Files open now.
    pub fn in_use(&self) -> usize {
        self.open.iter().filter(|open| open.asid != 0).count()
    }

    /// The open file that the control word names, and its bytes.
    fn file(&mut self, control: u64) -> Option<(&mut Open, &[u8])> {
        let open = self.open.get_mut((control & 0xffff) as usize)?;
        let named = open.asid != 0 && u64::from(open.generation) == control >> 16;
        let contents = self.archive.contents(usize::from(open.node))?;
        named.then_some((open, contents.bytes()))
    }
}

/// Up to 32 bytes as words.
fn words(bytes: &[u8]) -> [u64; 4] {
    let mut words = [0; 4];
    for (word, chunk) in words.iter_mut().zip(bytes.chunks(8)) {
        *word = match chunk.first_chunk() {
            Some(whole) => u64::from_le_bytes(*whole),
            None => chunk.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
        };
    }
    words
}

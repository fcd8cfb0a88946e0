//! Files as they were read, and the last ones again.
//!
//! Problem: most programs are started more than once, and reading a file through portals is a fifth of a start.
//! Strategy: of the last files what was read is kept, with the file server's number for those whose contents
//! never change. Their memory is used again for the next file, which then need not be zeroed. Invariant: what is
//! taken out here nobody else has, and a file that may change has no number.

use alloc::vec::Vec;
use core::ops::Deref;
use pebble::abi::errno;
use pebble::api::Errno;
use pebble::sync::Lock;

/// So many files are kept, of at most so many bytes in all.
const MOST: usize = 4;
const BYTES: usize = 256 << 10;

/// The last ones, the newest behind.
static KEPT: Lock<Vec<Kept>> = Lock::new(Vec::new());

#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    /// What lies behind is left of others.
    len: usize,
    /// The file server's number for it, if it never changes; or 0.
    fixed: u64,
    /// Where its pages are in the archive, as the file server says, if it has pages of its own there.
    shown: Option<u64>,
}

/// A file as it was read. It is kept when it is dropped.
pub struct Contents(Kept);

impl Contents {
    /// So many bytes, of whatever.
    pub fn new(len: usize) -> Result<Self, Errno> {
        let mut kept = KEPT.lock();
        let mut bytes = if kept.len() < MOST { Vec::new() } else { kept.remove(0).bytes };
        drop(kept);
        if bytes.len() < len {
            bytes.try_reserve_exact(len - bytes.len()).map_err(|_| errno::ENOMEM)?;
            bytes.resize(len, 0);
        }
        Ok(Contents(Kept { bytes, len, fixed: 0, shown: None }))
    }

    /// A file that is kept.
    pub fn known(fixed: u64) -> Option<Self> {
        let mut kept = KEPT.lock();
        let at = kept.iter().position(|file| file.fixed == fixed && fixed != 0)?;
        Some(Contents(kept.remove(at)))
    }

    /// Where it is read to.
    pub fn room(&mut self) -> &mut [u8] {
        &mut self.0.bytes[..self.0.len]
    }

    /// It has been read, has this number, and is shown there.
    pub fn name(&mut self, fixed: u64, shown: Option<u64>) {
        (self.0.fixed, self.0.shown) = (fixed, shown);
    }

    pub fn shown(&self) -> Option<u64> {
        self.0.shown
    }
}

impl Deref for Contents {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0.bytes[..self.0.len]
    }
}

impl Drop for Contents {
    fn drop(&mut self) {
        let file = core::mem::take(&mut self.0);
        if file.bytes.len() > BYTES {
            return;
        }
        let mut kept = KEPT.lock();
        let all = |kept: &[Kept]| kept.iter().map(|file| file.bytes.len()).sum::<usize>() + file.bytes.len();
        while kept.len() == MOST || all(&kept) > BYTES {
            kept.remove(0);
        }
        // There is room for all from the start.
        kept.push(file);
    }
}

/// Before anybody calls.
pub fn prepare() {
    KEPT.prepare();
    KEPT.lock().reserve_exact(MOST);
}

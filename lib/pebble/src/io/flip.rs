//! Pages that go through a pipe without being copied.
//!
//! Both sides call with whole pages, and they change places: the reader has what the writer wrote, and the
//! writer what was in the reader's pages before. Where only one side flips, what it reads or writes is copied as
//! ever, so neither need know of the other.

use pebble_abi::map::PAGE;
use pebble_abi::{errno, sys};

use super::File;
use crate::api::Errno;

const BYTES: usize = PAGE as usize;
/// More than go at once, as many as fit below an address.
const MOST: usize = BYTES - 1;

/// What flips: a page of memory, and nothing else in it.
#[derive(Clone)]
#[repr(C, align(4096))]
pub struct Page(pub [u8; BYTES]);

impl Page {
    pub const ZERO: Page = Page([0; BYTES]);

    /// The bytes of pages one behind the other.
    pub fn bytes(pages: &mut [Page]) -> &mut [u8] {
        let len = size_of_val(pages);
        // SAFETY: the pages are bytes, without any between them, and borrowed for as long.
        unsafe { core::slice::from_raw_parts_mut(pages.as_mut_ptr().cast(), len) }
    }
}

impl File {
    /// As [`read`](Self::read): so many bytes, 0 at the end. The other side gets the pages that were there.
    pub fn read_flip(&self, pages: &mut [Page]) -> Result<usize, Errno> {
        match self.flip(pages) {
            Err(errno::EAGAIN | errno::EINVAL) => self.read(Page::bytes(pages)),
            flipped => flipped,
        }
    }

    /// All of them, and then they hold something else.
    pub fn write_flip(&self, pages: &mut [Page]) -> Result<(), Errno> {
        let mut rest = pages;
        while !rest.is_empty() {
            match self.flip(rest) {
                Ok(flipped) => rest = &mut rest[flipped / BYTES..],
                Err(errno::EAGAIN | errno::EINVAL) => return self.write(Page::bytes(rest)),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn flip(&self, pages: &mut [Page]) -> Result<usize, Errno> {
        let (address, count) = (pages.as_mut_ptr() as u64, pages.len().min(MOST));
        let flipped = self.seek((address | count as u64) as i64, sys::SEEK_FLIP)? as usize;
        Ok(flipped.min(count) * BYTES)
    }
}

const _: () = assert!(size_of::<Page>() == BYTES && align_of::<Page>() == BYTES);

//! Files that are looked at where they lie.

use pebble_abi::{errno, sys};

use super::File;
use crate::api::Errno;
use crate::region;

impl File {
    /// All bytes of a file of the archive, without a copy: they never change. They stay when the file is
    /// closed. -EINVAL: no such file, or one of less than 16 KiB, which shares its pages with others.
    pub fn shown(&self) -> Result<&'static [u8], Errno> {
        let shown = self.seek(0, sys::SEEK_SHOW)?;
        region::shown(shown % sys::SHOWN_SIZE, (shown / sys::SHOWN_SIZE) as usize).ok_or(errno::EINVAL)
    }
}

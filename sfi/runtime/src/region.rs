//! Regions: memory of the process that can be lent to domains, or shared with them, without copying.
//!
//! A region is a file in memory, so that its pages can appear in a segment too. A shared one has the same
//! offset in every segment that maps it: pointers into it mean the same to all once the base is added.

use crate::error::{Error, system};
use crate::instance::{Instance, lock};
use crate::layout::*;
use crate::os;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

/// Begin of the part of the window area that belongs to shared regions.
const SHARED: u64 = WINDOWS + (WINDOWS_END - WINDOWS) / 2;

pub struct Pages {
    /// Never used again, unlike an address.
    pub number: u64,
    pub file: OwnedFd,
    pub at: u64,
    pub bytes: u64,
    /// Offset in segments; 0 while it is not shared.
    offset: Mutex<u64>,
}

/// Cheap to clone; the memory goes with the last clone, domains that have it mapped keep their view until
/// they are reset.
#[derive(Clone)]
pub struct Region {
    pages: Arc<Pages>,
}

static REGIONS: Mutex<BTreeMap<u64, Weak<Pages>>> = Mutex::new(BTreeMap::new());
static PLACES: Mutex<BTreeMap<u64, u64>> = Mutex::new(BTreeMap::new());
static NUMBERS: AtomicU64 = AtomicU64::new(1);

impl Region {
    pub fn new(bytes: usize) -> Result<Region, Error> {
        if bytes == 0 {
            return Err(Error::EmptyRegion);
        }
        let bytes = page_up(bytes.max(1) as u64);
        if bytes > WINDOWS_END - SHARED {
            return Err(Error::NoWindow);
        }
        let file = os::memory_file(c"pebble-sfi-region", bytes).map_err(system("making a region"))?;
        let at =
            os::anywhere(bytes, os::PROT_READ | os::PROT_WRITE, &file).map_err(system("mapping a region"))?;
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let pages = Arc::new(Pages { number, file, at, bytes, offset: Mutex::new(0) });
        lock(&REGIONS).insert(at, Arc::downgrade(&pages));
        Ok(Region { pages })
    }

    pub fn address(&self) -> u64 {
        self.pages.at
    }

    pub fn len(&self) -> usize {
        self.pages.bytes as usize
    }

    pub fn is_empty(&self) -> bool {
        self.pages.bytes == 0
    }

    /// Reads bytes; what domains write meanwhile may be in them or not.
    pub fn read(&self, at: usize, to: &mut [u8]) -> Result<(), Error> {
        let from = self.place(at, to.len())?;
        // SAFETY: inside the mapping, which lives as long as `self`; bytes that change meanwhile are still
        // bytes.
        unsafe { std::ptr::copy(from as *const u8, to.as_mut_ptr(), to.len()) };
        Ok(())
    }

    pub fn write(&self, at: usize, bytes: &[u8]) -> Result<(), Error> {
        let to = self.place(at, bytes.len())?;
        // SAFETY: as in `read`.
        unsafe { std::ptr::copy(bytes.as_ptr(), to as *mut u8, bytes.len()) };
        Ok(())
    }

    fn place(&self, at: usize, bytes: usize) -> Result<u64, Error> {
        let end = at.checked_add(bytes).filter(|end| *end <= self.len());
        end.map(|_| self.pages.at + at as u64).ok_or(Error::OutOfBounds)
    }

    /// Maps it into an instance, until that is reset; its address there is the same offset in every segment.
    pub fn share(&self, with: &Instance, writable: bool) -> Result<u64, Error> {
        let mut offset = lock(&self.pages.offset);
        if *offset == 0 {
            *offset = take_place(self.pages.bytes).ok_or(Error::NoWindow)?;
        }
        let prot = if writable { os::PROT_READ | os::PROT_WRITE } else { os::PROT_READ };
        let mut windows = lock(&with.shared.windows);
        os::shared(with.base() + *offset, self.pages.bytes, prot, &self.pages.file, 0)
            .map_err(system("sharing a region"))?;
        windows.keep(self.pages.clone());
        Ok(*offset)
    }
}

/// The lowest gap that is long enough, with an empty page behind.
fn take_place(bytes: u64) -> Option<u64> {
    let mut places = lock(&PLACES);
    let mut at = SHARED;
    for (begin, length) in places.iter() {
        if begin - at >= bytes + PAGE {
            break;
        }
        at = begin + length + PAGE;
    }
    (at + bytes <= WINDOWS_END).then(|| {
        places.insert(at, bytes);
        at
    })
}

impl Drop for Pages {
    fn drop(&mut self) {
        lock(&REGIONS).remove(&self.at);
        let offset = *lock(&self.offset);
        if offset != 0 {
            lock(&PLACES).remove(&offset);
        }
        os::unmap(self.at, self.bytes);
    }
}

/// The region that an address of the process lies in.
pub fn find(address: u64) -> Option<Arc<Pages>> {
    let regions = lock(&REGIONS);
    let pages = regions.range(..=address).next_back()?.1.upgrade()?;
    // Dropping the last reference takes the lock again.
    drop(regions);
    (address < pages.at + pages.bytes).then_some(pages)
}

/// Bytes of a text in a region, with its NUL; none if there is no NUL before the region's end.
pub fn text(address: u64) -> Option<u64> {
    let pages = find(address)?;
    let room = (pages.at + pages.bytes - address) as usize;
    // SAFETY: inside the region, which `pages` keeps; the search ends with it whatever other threads write.
    let found = unsafe { libc::memchr(address as *const _, 0, room) };
    (!found.is_null()).then(|| found as u64 - address + 1)
}

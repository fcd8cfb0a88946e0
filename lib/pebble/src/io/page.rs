//! Reads and writes of many bytes: a page a call, by a window.
//!
//! **Problem.** A window shows a whole page, and beside the bytes that are meant others may lie there. They are
//! nobody's business, and the server could change them. **Strategy.** Whole pages of the caller's bytes are
//! lent as they are; the heap begins a block of a page or more with a page for this. Other bytes go through
//! a page that has nothing else in it. **Invariants.** The server sees of the caller's memory what is read
//! or written, and what was in that page before: bytes that went to a server, or came from one.
//!
//! A file's portals for pages are made when there is [much](MUCH) to move, since making one costs as much as
//! moving some 2 KiB in registers. They are kept in a table with few places; files that find none go on in
//! registers.

use alloc::alloc::alloc_zeroed;
use core::alloc::Layout;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pebble_abi::map::PAGE;
use pebble_abi::{errno, status, sys};

use super::File;
use crate::api::{Errno, answer};
use crate::portal::{Broken, call};

/// For so many, a portal is made that is not there yet.
const MUCH: usize = 1024;
const BYTES: usize = PAGE as usize;
/// Of a page; a wrong one does not compile.
const LAYOUT: Layout = match Layout::from_size_align(BYTES, BYTES) {
    Ok(layout) => layout,
    Err(_) => panic!(),
};

/// Of each file its first portal, and from bits 16 and 32 on those for reading and writing pages: 0, or
/// [`NONE`]. 0: the place is free.
static KNOWN: [AtomicU64; 16] = [const { AtomicU64::new(0) }; 16];
/// The server has none: no portal of a file has this index.
const NONE: u64 = 1;

fn part(known: u64, which: u64) -> u64 {
    known >> (16 * which) & 0xffff
}

/// The place of the file in the table, and what it says.
fn known(file: &File) -> Option<(&'static AtomicU64, u64)> {
    let places = || KNOWN.iter().map(|place| (place, place.load(Ordering::Acquire)));
    let of = |first: u64| places().find(|(_, known)| part(*known, 0) == first);
    of(file.0 as u64).or_else(|| of(0))
}

/// The file's portal for pages that `whence` asks for.
fn portal(file: &File, whence: u64, len: usize) -> Option<usize> {
    let (place, known) = known(file)?;
    let which = 1 + whence - sys::SEEK_READ_PAGE;
    match part(known, which) {
        0 if len >= MUCH => make(file, whence, place, known, which),
        0 | NONE => None,
        portal => Some(portal as usize),
    }
}

#[cold]
fn make(file: &File, whence: u64, place: &AtomicU64, known: u64, which: u64) -> Option<usize> {
    let made = answer(call(file.0 + sys::FILE_SEEK, [0, whence])).ok();
    let now = known | file.0 as u64 | made.unwrap_or(NONE) << (16 * which);
    let kept = place.compare_exchange(known, now, Ordering::AcqRel, Ordering::Relaxed);
    match (made, kept) {
        // Another thread was quicker.
        (Some(portal), Err(_)) => {
            let _ = crate::api::portal_close(portal as usize, 1);
            None
        }
        (made, _) => made.map(|portal| portal as usize),
    }
}

/// The file is closed: its portals for pages go.
pub fn close(file: &File) {
    if let Some((place, known)) = known(file).filter(|(_, known)| *known != 0) {
        for portal in [1, 2].map(|which| part(known, which)).into_iter().filter(|portal| *portal > NONE) {
            let _ = crate::api::portal_close(portal as usize, 1);
        }
        place.store(0, Ordering::Release);
    }
}

/// The page through which bytes go, one thread at a time, once there was a need for it. It is the heap's.
static BETWEEN: AtomicU64 = AtomicU64::new(0);
static TAKEN: AtomicBool = AtomicBool::new(false);

/// How the next bytes go.
enum Way {
    /// The page there is the caller's bytes alone.
    Lent,
    /// So many through the page between.
    Between(usize),
}

fn way(address: u64, len: usize) -> Way {
    let head = (address.next_multiple_of(PAGE) - address) as usize;
    match head {
        0 if len >= BYTES => Way::Lent,
        // Up to the first whole page.
        1.. if len >= head + BYTES => Way::Between(head),
        _ => Way::Between(len.min(BYTES)),
    }
}

/// Runs `work` with the address of the page between. `None`: another thread has it, or there is no memory.
fn between<R>(work: impl FnOnce(u64) -> R) -> Option<R> {
    if TAKEN.swap(true, Ordering::Acquire) {
        return None;
    }
    let mut address = BETWEEN.load(Ordering::Relaxed);
    if address == 0 {
        // SAFETY: the size is not 0.
        address = unsafe { alloc_zeroed(LAYOUT) } as u64;
        BETWEEN.store(address, Ordering::Relaxed);
    }
    let result = (address != 0).then(|| work(address));
    TAKEN.store(false, Ordering::Release);
    result
}

/// One call; `None`: this memory may not be lent.
fn lend(portal: usize, address: u64, len: usize) -> Option<Result<usize, Errno>> {
    match call(portal, [address, len as u64]) {
        Err(Broken(broken)) if status::code(broken) == status::WINDOW => None,
        answered => Some(answer(answered).map(|count| count as usize)),
    }
}

/// As many as one call brings. `None`: not this way.
#[inline(never)]
pub fn read(file: &File, out: &mut [u8]) -> Option<Result<usize, Errno>> {
    let portal = portal(file, sys::SEEK_READ_PAGE, out.len())?;
    let address = out.as_mut_ptr() as u64;
    let len = match way(address, out.len()) {
        Way::Lent => match lend(portal, address, BYTES) {
            None => BYTES,
            read => return read.map(|read| read.map(|count| count.min(BYTES))),
        },
        Way::Between(len) => len,
    };
    between(|address| {
        lend(portal, address, len).map(|read| {
            let count = read?.min(len);
            let out = out[..count].as_mut_ptr();
            // SAFETY: the page is this thread's now, and the call that has filled it is over.
            unsafe { (address as *const u8).copy_to_nonoverlapping(out, count) };
            Ok(count)
        })
    })?
}

/// As many as one call takes. `None`: not this way.
#[inline(never)]
pub fn write(file: &File, rest: &[u8]) -> Option<Result<usize, Errno>> {
    let portal = portal(file, sys::SEEK_WRITE_PAGE, rest.len())?;
    let address = rest.as_ptr() as u64;
    let taken = |count: Result<usize, Errno>, len: usize| count.map(|count| count.min(len));
    let len = match way(address, rest.len()) {
        Way::Lent => match lend(portal, address, rest.len()) {
            None => BYTES,
            written => return written.map(|count| taken(count, BYTES)),
        },
        Way::Between(len) => len,
    };
    // What is left, where the server stops at the end of the page anyway.
    let left = if len == rest.len().min(BYTES) { rest.len() } else { len };
    between(|address| {
        let bytes = &rest[..len];
        // SAFETY: the page is this thread's now, and no call is under way.
        unsafe { bytes.as_ptr().copy_to_nonoverlapping(address as *mut u8, len) };
        lend(portal, address, left).map(|count| taken(count, len))
    })?
}

//! Reads and writes of many bytes: a page a call, by a window.
//!
//! **Problem.** A window shows a whole page, and beside the bytes that are meant others may lie there. They are
//! nobody's business, and the server could change them. **Strategy.** Whole pages of the caller's bytes are
//! lent as they are; the heap begins a block of a page or more with a page for this. Other bytes go through
//! a page that has nothing else in it. **Invariants.** The server sees of the caller's memory what is read
//! or written, and what was in that page before: bytes that went to a server, or came from one.
//!
//! Making a portal for pages costs as much as moving [`WORTH`] bytes in registers. So it is made when a file
//! has moved about as many, and no file costs more than twice what it must. These portals are in a table with
//! few places; files that find none go on in registers.

use alloc::alloc::alloc_zeroed;
use core::alloc::Layout;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pebble_abi::call::IO_BYTES;
use pebble_abi::map::PAGE;
use pebble_abi::{status, sys};

use super::File;
use crate::api::{Errno, answer};
use crate::portal::{Broken, call};

/// Bytes for which a portal is made. It takes 7,000 instructions, and a byte in registers 14.
const WORTH: usize = 512;
const BYTES: usize = PAGE as usize;
/// Of a page; a wrong one does not compile.
const LAYOUT: Layout = match Layout::from_size_align(BYTES, BYTES) {
    Ok(layout) => layout,
    Err(_) => panic!(),
};

/// Of each file its first portal; from bits 16 and 32 on those for reading and writing pages: 0, or [`NONE`];
/// from bit 48 on how often `IO_BYTES` have gone in registers. 0: the place is free. A word says all, so no order
/// of accesses matters.
static KNOWN: [AtomicU64; 16] = [const { AtomicU64::new(0) }; 16];
/// The server has none: no portal of a file has this index.
const NONE: u64 = 1;
const MOVED: u64 = 3;

fn part(known: u64, which: u64) -> u64 {
    known >> (16 * which) & 0xffff
}

/// The first place of that file, and what it says; 0: the first that is free.
fn place(first: usize) -> Option<(&'static AtomicU64, u64)> {
    let mut places = KNOWN.iter().map(|place| (place, place.load(Ordering::Relaxed)));
    places.find(|(_, known)| part(*known, 0) == first as u64)
}

/// The file's portal for pages that `whence` asks for. `None`: the next bytes go in registers; as many are
/// sure to be moved, if not more.
fn portal(file: &File, whence: u64, sure: usize) -> Option<usize> {
    let (place, known) = place(file.0).or_else(|| place(0))?;
    match part(known, 1 + whence - sys::SEEK_READ_PAGE) {
        0 => make_or_count(file, whence, sure, place, known),
        NONE => None,
        portal => Some(portal as usize),
    }
}

/// Makes the portal, if that is worth it by now.
#[cold]
#[inline(never)]
fn make_or_count(file: &File, whence: u64, sure: usize, place: &AtomicU64, known: u64) -> Option<usize> {
    let moved = part(known, MOVED) as usize * IO_BYTES + sure;
    let (made, now) = if moved < WORTH {
        let others = known & !(0xffff << (16 * MOVED));
        (None, others | (moved.div_ceil(IO_BYTES) as u64) << (16 * MOVED))
    } else {
        let made = answer(call(file.0 + sys::FILE_SEEK, [0, whence])).ok();
        (made, known | made.unwrap_or(NONE) << (16 * (1 + whence - sys::SEEK_READ_PAGE)))
    };
    let kept = place.compare_exchange(known, now | file.0 as u64, Ordering::Relaxed, Ordering::Relaxed);
    if kept.is_ok() {
        return made.map(|portal| portal as usize);
    }
    // Another thread was quicker.
    if let Some(portal) = made {
        let _ = crate::api::portal_close(portal as usize, 1);
    }
    None
}

/// The file is closed: its portals for pages go.
pub fn close(file: &File) {
    if let Some((place, known)) = place(file.0) {
        for portal in [1, 2].map(|which| part(known, which)).into_iter().filter(|portal| *portal > NONE) {
            let _ = crate::api::portal_close(portal as usize, 1);
        }
        place.store(0, Ordering::Relaxed);
    }
}

/// The page through which bytes go, one thread at a time, once there was a need for it. It is the heap's.
static BETWEEN: AtomicU64 = AtomicU64::new(0);
static TAKEN: AtomicBool = AtomicBool::new(false);

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

/// How many of the bytes there go through the page between; 0: the page there is the caller's bytes alone.
fn aside(address: u64, len: usize) -> usize {
    let head = (address.next_multiple_of(PAGE) - address) as usize;
    // As far as the first whole page.
    if len >= head + BYTES { head } else { len.min(BYTES) }
}

/// One call; `None`: this memory may not be lent.
fn lend(portal: usize, address: u64, len: usize) -> Option<Result<usize, Errno>> {
    // A page of a stack comes when it is touched.
    // SAFETY: the caller's bytes are there.
    unsafe { (address as *const u8).read_volatile() };
    match call(portal, [address, len as u64]) {
        Err(Broken(broken)) if status::code(broken) == status::WINDOW => None,
        answered => Some(answer(answered).map(|count| count as usize)),
    }
}

/// One call about the bytes at `address`. Where they go through the page between, `fill` is told how many to
/// put there before, `drain` how many to take from there afterwards. `None`: not this way.
fn pass(
    portal: usize,
    address: u64,
    len: usize,
    fill: impl FnOnce(u64, usize),
    drain: impl FnOnce(u64, usize),
) -> Option<Result<usize, Errno>> {
    let mut some = aside(address, len);
    if some == 0 {
        if let Some(done) = lend(portal, address, len) {
            return Some(done.map(|count| count.min(BYTES)));
        }
        some = BYTES;
    }
    // What is left, where the server stops at the end of the page anyway.
    let left = if some == len.min(BYTES) { len } else { some };
    between(|address| {
        fill(address, some);
        let done = lend(portal, address, left)?.map(|count| count.min(some));
        drain(address, done.unwrap_or(0));
        Some(done)
    })?
}

/// As many as one call brings, when so many are sure to be there. `None`: not this way.
#[inline(never)]
pub fn read(file: &File, out: &mut [u8], sure: usize) -> Option<Result<usize, Errno>> {
    let portal = portal(file, sys::SEEK_READ_PAGE, sure)?;
    let (address, len) = (out.as_mut_ptr() as u64, out.len());
    let drain = |page: u64, count: usize| {
        let out = out[..count].as_mut_ptr();
        // SAFETY: the page is this thread's now, and the call that has filled it is over.
        unsafe { (page as *const u8).copy_to_nonoverlapping(out, count) };
    };
    pass(portal, address, len, |_, _| {}, drain)
}

/// As many as one call takes. `None`: not this way.
#[inline(never)]
pub fn write(file: &File, rest: &[u8]) -> Option<Result<usize, Errno>> {
    let portal = portal(file, sys::SEEK_WRITE_PAGE, rest.len())?;
    let fill = |page: u64, count: usize| {
        let from = rest[..count].as_ptr();
        // SAFETY: the page is this thread's now, and no call is under way.
        unsafe { from.copy_to_nonoverlapping(page as *mut u8, count) };
    };
    pass(portal, rest.as_ptr() as u64, rest.len(), fill, |_, _| {})
}

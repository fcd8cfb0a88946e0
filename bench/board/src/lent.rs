//! What windows lead to: entries that leave alone, touch or copy what is lent, and that take and give back
//! pages and buffers.
//!
//! The driver's side is `windows.rs`. Portals with windows are opened at run time, so these interfaces are
//! found by name.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use pebble::abi::map::PAGE;
use pebble::buffer::Window;
use pebble::sync::Lock;

pebble::import! {
    MOVE = "vm.window_move";
}

/// For each length: left alone, written, read only. Both states.
macro_rules! windows {
    ($($pages:literal $write:ident $read:ident $sm:literal $np:literal $smt:literal $npt:literal $smr:literal $npr:literal: $w:literal $nw:literal $r:literal $nr:literal;)*) => {
        $(
            pebble::export!($sm, $w, null);
            pebble::export!($np, $nw, null);
            pebble::export!($smt, $w, $write: fn(u64));
            pebble::export!($npt, $nw, $write: fn(u64));
            pebble::export!($smr, $r, $read: fn(u64));
            pebble::export!($npr, $nr, $read: fn(u64));

            extern "C" fn $write(address: u64) -> i64 {
                touch::<$pages>(address)
            }

            extern "C" fn $read(address: u64) -> i64 {
                look::<$pages>(address)
            }
        )*
    };
}
windows! {
    1 write1 read1 "self.smw" "self.npw" "self.smw-t" "self.npw-t" "self.smr" "self.npr": "smw" "npw" "smr" "npr";
    2 write2 read2 "self.smw2" "self.npw2" "self.smw2-t" "self.npw2-t" "self.smr2" "self.npr2": "smw2" "npw2" "smr2" "npr2";
    512 write512 read512 "self.smw512" "self.npw512" "self.smw512-t" "self.npw512-t" "self.smr512" "self.npr512": "smw512" "npw512" "smr512" "npr512";
}
pebble::export!("self.take1", "npt", take: fn(u64));
pebble::export!("self.take16", "npt16", take: fn(u64));
pebble::export!("self.give1", "npg", give: fn(u64));
pebble::export!("self.give16", "npg16", give: fn(u64));
pebble::export!("self.copy1", "npr", copy1: fn(u64));
pebble::export!("self.copy16", "npr16", copy16: fn(u64));
pebble::export!("self.cap", "npk", keep: fn(u64));
pebble::component!(main);

/// Where what was taken has arrived.
static TAKEN: AtomicU64 = AtomicU64::new(0);
/// Where copies go.
static COPY: Lock<Vec<u8>> = Lock::new(Vec::new());

fn main() -> i64 {
    0
}

extern "C" fn null() -> i64 {
    0
}

/// A capability has arrived: the name that it has here.
extern "C" fn keep(name: u64) -> i64 {
    name as i64
}

/// The window, or what of it matters here: the last page of a long one is as good as the first.
#[inline(always)]
fn last<const PAGES: u64>(address: u64) -> u64 {
    address + (PAGES - 1) * PAGE
}

/// Writes a word into the first and the last page.
#[inline(always)]
fn touch<const PAGES: u64>(address: u64) -> i64 {
    let write = |at| Window::page(at).and_then(|window| window.set_word(0, 1));
    let first = write(address);
    if PAGES > 1 && write(last::<PAGES>(address)).is_err() {
        return -1;
    }
    first.map_or(-1, |()| 0)
}

/// Reads a word of the first and of the last page.
#[inline(always)]
fn look<const PAGES: u64>(address: u64) -> i64 {
    let read = |at| Window::page(at).and_then(|window| window.word(0));
    let first = read(address);
    if PAGES > 1 && read(last::<PAGES>(address)).is_err() {
        return -1;
    }
    first.map_or(-1, |word| word as i64)
}

extern "C" fn take(address: u64) -> i64 {
    TAKEN.store(address, Relaxed);
    0
}

extern "C" fn give(to: u64) -> i64 {
    MOVE.call([TAKEN.load(Relaxed), to]).unwrap_or(-1)
}

extern "C" fn copy1(address: u64) -> i64 {
    copy(address, 1)
}

extern "C" fn copy16(address: u64) -> i64 {
    copy(address, 16)
}

fn copy(address: u64, pages: usize) -> i64 {
    let mut to = COPY.lock();
    if to.is_empty() {
        to.resize(16 * PAGE as usize, 0);
    }
    let bytes = &mut to[..pages * PAGE as usize];
    Window::pages(address, pages).and_then(|window| window.read(0, bytes)).map_or(-1, |()| 0)
}

//! Faults by address range: pages that come when they are first touched, from whoever knows what is in them.
//!
//! A domain gives pages of its own address space, where nothing is mapped, to a handler behind one of its
//! portals ([`handle`]). The handler is called with the domain, the address and the cause, [`provide`]s the
//! page, and answers 0. Without a page the domain dies of the fault.

use crate::api::{Errno, answer};
use crate::client::vm;
use crate::heap;
use crate::portal::call;
use crate::process::Lazy;
use crate::words::VirtAddr;
use pebble_abi::fault::Cause;
use pebble_abi::{control, map, sys};

/// Cause of a handler's question: the page is to be written.
pub const STORE: u64 = Cause::Store as u64;

static PROVIDE: vm::Provide<Lazy> = vm::Provide::lazy();

/// Page faults in these pages call the portal at `index`: its specification takes up to three words, on a
/// stack of its own (`np`).
pub fn handle(address: u64, pages: u64, index: usize) -> Result<(), Errno> {
    ask(address, pages, index as u64)
}

/// The range that begins there has no handler any more.
pub fn unhandle(address: u64) -> Result<(), Errno> {
    ask(address, 0, 0)
}

fn ask(address: u64, pages: u64, index: u64) -> Result<(), Errno> {
    answer(call(sys::SYS_CONTROL, [control::FAULT_RANGE, address, pages, index])).map(|_| ())
}

/// For a handler that is being asked: a page with these bytes, and zeroes behind them, is mapped where the
/// domain faulted.
pub fn provide(asid: u16, address: u64, bytes: &[u8], write: bool) -> Result<(), Errno> {
    let rights = map::READ | if write { map::WRITE } else { 0 };
    let to = address / map::PAGE * map::PAGE;
    heap::with_page(|page| {
        for (word, at) in bytes.chunks(8).zip((page..page + map::PAGE).step_by(8)) {
            let word = word.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            // SAFETY: within a fresh page of this domain in which nothing lives.
            unsafe { (at as *mut u64).write_volatile(word) };
        }
        PROVIDE.call(asid.into(), VirtAddr(to), VirtAddr(page), rights).map(|_| ())
    })
}

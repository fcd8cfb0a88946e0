//! A server without state that can be replaced: what a replacement costs its client when there is nothing to
//! hand over.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use pebble::abi::errno;
use pebble::api::Errno;
use pebble::handover::Handover;
use pebble::sync::Lock;

pebble::export!("trivial.null", "np", null);
pebble::replaceable!(NOTHING: Nothing, Vec::new(), "trivial.handover", "trivial.takeover");
pebble::component!(main);

/// The only format of no state.
const FORMAT: u64 = 1;

struct Nothing;

static NOTHING: Lock<Nothing> = Lock::new(Nothing);

impl Handover for Nothing {
    type Bytes = Vec<u8>;

    fn save(&self, _: u64, _: &mut Vec<u8>) -> Result<u64, Errno> {
        Ok(FORMAT)
    }

    fn load(&mut self, format: u64, bytes: &[u8]) -> Result<(), Errno> {
        if format == FORMAT && bytes.is_empty() { Ok(()) } else { Err(errno::EINVAL) }
    }
}

fn main() -> i64 {
    0
}

/// A call that counts: it holds the lock that a hand-over closes.
extern "C" fn null() -> i64 {
    drop(NOTHING.lock());
    0
}

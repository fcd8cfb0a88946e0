//! A server of the image that dies in a call, for `vm-test`.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use pebble::abi::map::{PAGE, Registers};
use pebble::mmio::Mmio;

pebble::import! {
    OWN = "own.deep";
}
pebble::export!("self.touch", "npi", touch: fn(u64));
pebble::export!("self.deep", "sm", deep: fn());
pebble::component!(main);

fn main() -> i64 {
    0
}

/// Reads a device register that it was not given.
extern "C" fn touch(register: u64) -> i64 {
    let some = Registers { page: 0, offset: 0, bytes: PAGE as usize };
    Mmio::new(0, &some).read32(register as usize).into()
}

/// Calls itself through a portal, until the invocation stack is full.
extern "C" fn deep() -> i64 {
    OWN.call([0; 5]).map_or(-1, |n| n + 1)
}

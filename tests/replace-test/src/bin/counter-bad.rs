//! A counter that refuses every state.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

#[path = "../counter.rs"]
mod counter;

use counter::Version;

pebble::export!("counter.total", "np", total);
pebble::component!(main);

const VERSION: Version = Version { format: 0 };

/// Servers without a thread of their own have nothing to do here.
fn main() -> i64 {
    0
}

/// All calls so far.
extern "C" fn total() -> i64 {
    counter::counter().0.total() as i64
}

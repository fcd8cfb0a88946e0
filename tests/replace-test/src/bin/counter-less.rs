//! A counter that lacks an interface, `counter.total`.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

#[path = "../counter.rs"]
mod counter;

use counter::Version;

pebble::component!(main);

const VERSION: Version = Version { format: pebble_replace_test::counts::WITH_SUMS };

/// Servers without a thread of their own have nothing to do here.
fn main() -> i64 {
    0
}

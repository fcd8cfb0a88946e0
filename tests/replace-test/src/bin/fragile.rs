//! A component that faults when it is told to. It yields within its calls, so that some are under way when it
//! dies.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use pebble::api;

pebble::export!("self.work", "npi", work: fn(u64));
pebble::export!("self.fall", "np", fall);
pebble::component!(main);

/// Has no thread of its own.
fn main() -> i64 {
    0
}

extern "C" fn work(n: u64) -> i64 {
    api::yield_now();
    n as i64 + 1
}

extern "C" fn fall() -> i64 {
    panic!("told to")
}

//! The caller of full-state portals: its domain, and that of its callee, use floating point.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use pebble::io;
use pebble::portal::{COUNTED, counter, timed_call};
use pebble_bench::{ROUNDS, Samples};

extern crate alloc;

pebble::import! {
    CALLEE = "callee.nf4";
    START = "semaphore.float";
    DONE = "semaphore.float-done";
}
pebble::component!(main);

fn main() -> i64 {
    let _ = START.call([]);
    let base = (counter(), counter());
    let mut samples = Samples::new(2, (base.1 - base.0) as u32);
    for _ in 0..ROUNDS {
        samples.add(timed_call(CALLEE.index(), [1, 2, 3, 4, 0]));
    }
    if let Ok(console) = io::open("/dev/console") {
        let _ =
            console.write(alloc::format!("@bench {}\n", samples.row("portal.leg.fp.4", COUNTED)).as_bytes());
    }
    let _ = pebble::portal::call(DONE.index() + 1, []);
    0
}

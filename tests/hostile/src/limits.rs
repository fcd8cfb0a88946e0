//! A program takes all that its manifest lets it have: `hostile limits PAGES THREADS PORTALS` ends with 0 if
//! that is so much.

use pebble::abi::errno;
use pebble::api::{self, Errno};

const OWN: u64 = 320;

extern "C" fn sleeper(_: u64) {
    let _ = api::hrsleep(u64::MAX >> 1);
}

/// How often something succeeds before it is refused, and with what.
fn until_refused(most: u64, mut act: impl FnMut() -> Result<(), Errno>) -> (u64, Option<Errno>) {
    (0..=most).find_map(|n| act().err().map(|error| (n, Some(error)))).unwrap_or((most + 1, None))
}

pub fn all(pages: u64, threads: u64, portals: u64) -> i64 {
    let opened = until_refused(2000, || api::portal_open("clock.nanoseconds").map(|_| ()));
    let started = until_refused(100, || api::thread_create(sleeper, 0, 0).map(|_| ()));
    let taken = until_refused(5000, || api::sbrk(4096).map(|_| ()));
    // It cannot print: no portal is left. Its image, stacks and tables are pages too (up to OWN, by the
    // processor's code), and it is a thread itself.
    let good = opened == (portals, Some(errno::EMFILE))
        && started.0 < threads
        && started.0 + 2 >= threads
        && taken.0 < pages
        && taken.0 + OWN > pages;
    i64::from(!good)
}

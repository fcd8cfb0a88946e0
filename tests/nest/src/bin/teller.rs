//! `teller`: a server, outside of all walls, that tells each caller what it sees of it.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use pebble::api;
use pebble::link::More;

pebble::export!("teller.caller", "npa", caller: fn(u64));
pebble::export!("teller.thread", "npdai", thread: fn(u64, u64, u64));
pebble::export_wide!("teller.words", "npiiiii>4", words);
pebble::export!("teller.die", "np", die);
pebble::program!(main);

extern "C" fn caller(caller: u64) -> i64 {
    caller as i64
}

extern "C" fn thread(thread: u64, caller: u64, word: u64) -> i64 {
    (thread << 32 | caller << 16 | word) as i64
}

/// Every bit of the words, in four results.
extern "C" fn words(a: u64, b: u64, c: u64, d: u64, e: u64, _: u64, more: &mut More) -> i64 {
    *more = [!a, b.rotate_left(7), c ^ d, e];
    a as i64
}

/// Takes the server along.
extern "C" fn die() -> i64 {
    pebble::attack::load(0);
    0
}

fn main() -> i64 {
    loop {
        let _ = api::hrsleep(u64::MAX >> 1);
    }
}

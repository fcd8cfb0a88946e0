//! A program that says when its `main` began, and ends: 8 bytes of the counter, to standard output.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use pebble::io;
use pebble::portal::counter;

pebble::program!(main);

fn main() -> i64 {
    let began = counter();
    let written = io::standard(1).and_then(|out| out.write(&began.to_le_bytes()));
    i64::from(written.is_err())
}

//! `hog`: runs for a second without pause, and says for how much of it it ran.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use pebble::abi::map::TIME_HZ;
use pebble::portal::time;
use pebble::println;

pebble::program!(main);

/// Between two looks at the time, so many ticks at most, it ran.
const LOOK: u64 = TIME_HZ / 10_000;

fn main() -> i64 {
    let start = time();
    let (mut last, mut ran) = (start, 0);
    while last - start < TIME_HZ {
        let now = time();
        if now - last <= LOOK {
            ran += now - last;
        }
        last = now;
    }
    println!("hog: ran {} percent", ran * 100 / (last - start));
    0
}

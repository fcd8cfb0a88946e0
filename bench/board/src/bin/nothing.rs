//! The smallest program: it ends at once. The row `spawn.small` starts it.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

pebble::program!(main);

fn main() -> i64 {
    0
}

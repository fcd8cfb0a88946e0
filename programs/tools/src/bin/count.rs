//! `count PROGRAM ARGUMENTS`: runs a program and says, on standard error, how often it called which portal.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;
use pebble::control::Answer;
use pebble_tools::under;

pebble::program!(main);
pebble::handler!(entry = count);

fn count(index: usize, p: [u64; 5]) -> Answer {
    let name = {
        let mut portals = under::PORTALS.lock();
        portals.count(index);
        String::from(portals.name(index))
    };
    under::pass(index, &name, p)
}

fn main() -> i64 {
    let arguments: Vec<String> = pebble::io::args().skip(1).collect();
    if arguments.is_empty() {
        return under::usage("count PROGRAM [ARGUMENT...]");
    }
    let result =
        under::prepare(|| Ok(())).and_then(|(ready, ())| under::run(&ready, &arguments, entry, |_| ()));
    if result.is_ok() {
        let table = under::PORTALS.lock().table();
        under::say(&table);
    }
    under::end("count", result)
}

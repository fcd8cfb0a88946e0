//! `count PROGRAM ARGUMENTS`: runs a program and says, on standard error, how often it called which portal.
//!
//! Calls of plain portals, semaphores above all, are counted by index alone, in one instruction. They are
//! added to the interface that the index has when it gets another, and at the end.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use pebble::abi::map::TABLE_ENTRIES;
use pebble::control::{self, Answer, Plain};
use pebble_tools::under;

pebble::program!(main);
pebble::handler!(entry = count, plain = count_plain);

/// Calls of plain portals that are not yet in [`under::PORTALS`].
static CALLS: [AtomicU64; TABLE_ENTRIES] = [const { AtomicU64::new(0) }; TABLE_ENTRIES];

fn count_plain(index: usize) -> Plain {
    CALLS[index % TABLE_ENTRIES].fetch_add(1, Relaxed);
    control::pass_plain(index)
}

fn take(index: usize) -> u64 {
    CALLS[index % TABLE_ENTRIES].swap(0, Relaxed)
}

fn count(index: usize, p: [u64; 5]) -> Answer {
    let name = under::name(index);
    under::PORTALS.lock().count(index, 1);
    under::pass(index, &name, p)
}

fn main() -> i64 {
    let arguments: Vec<String> = pebble::io::args().skip(1).collect();
    if arguments.is_empty() {
        return under::usage("count PROGRAM [ARGUMENT...]");
    }
    under::PORTALS.lock().set_elsewhere(take);
    let result = under::prepare(|| Ok(())).and_then(|()| under::run(&arguments, entry, |_| ()));
    if result.is_ok() {
        let table = {
            let mut portals = under::PORTALS.lock();
            (0..TABLE_ENTRIES).for_each(|index| portals.gather(index));
            portals.table()
        };
        under::say(&table);
    }
    under::end("count", result)
}

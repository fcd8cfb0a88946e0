//! The rate limiter's component: registers the letter, and gives tokens back.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use pebble::abi::{errno, map};
use pebble::region::Region;
use pebble::{api, portal, template};
use pebble_rate::{CODE, DOMAINS, GIVEN, LETTER, LIMIT, spent_at};

pebble::interfaces!();
pebble::component!(main);

/// Ticks between two rounds: 10 ms.
const PERIOD: u64 = map::TIME_HZ / 100;
const DATA: Region = template::data(LETTER);

/// A predecessor's buckets and limits are as they were.
fn main() -> i64 {
    if let Err(refused) = template::register(LETTER, &CODE) {
        say(&alloc::format!("rate: letter {}: {refused}\n", char::from(LETTER)));
        return 1;
    }
    if DATA.read(LIMIT) == 0 {
        set(100, 100);
    }
    let mut next = portal::time();
    loop {
        next += PERIOD;
        let _ = api::hrsleep(next);
        (1..DOMAINS - 1).for_each(give);
    }
}

/// Portal code takes tokens between any two steps here.
fn give(domain: u64) {
    let at = spent_at(domain);
    while let spent @ 1.. = DATA.read(at)
        && !DATA.exchange(at, spent, spent.saturating_sub(DATA.read(GIVEN)))
    {}
}

/// The most tokens that a domain can spend at once, and how many it gets back every 10 ms.
extern "C" fn set(limit: u64, given: u64) -> i64 {
    if !(1..=i64::MAX as u64).contains(&limit) {
        return -errno::EINVAL;
    }
    DATA.write(GIVEN, given);
    DATA.write(LIMIT, limit);
    0
}

/// Tokens that a domain has spent and not got back.
extern "C" fn spent(domain: u64) -> i64 {
    if (1..DOMAINS - 1).contains(&domain) { DATA.read(spent_at(domain)) as i64 } else { -errno::ESRCH }
}

fn say(line: &str) {
    if let Ok(console) = pebble::io::open("/dev/console") {
        let _ = console.write(line.as_bytes());
    }
}

//! The letter `T`: a call costs its caller a token.
//!
//! **Problem.** A server that strangers call wants a bound on how often each of them does, without a call of its own to ask whether it may.
//! **Strategy.** It writes `T` where it would write `i`: the word passes as it is, and the portal's code, before anything else has happened, counts
//! a token as spent in the caller's bucket, or refuses the call with status `T | caller << 16`. This server gives tokens back, so many a
//! period, and says how many a bucket holds.
//!
//! **Invariants:** a bucket is its domain's alone, and its word is only counted up by portal code, by one, and down by the server, by
//! compare-and-swap, never below 0; the limit holds for whatever calls arrive between two periods.
//!
//! The private data is a word for each domain: tokens that it has spent. Domain 0 is none, and the last number is never a domain's: their words
//! are the limit and the tokens given back a period.
#![no_std]
#![forbid(unsafe_code)]

use pebble_portal::hardware::template::{BASE, CALLER, SCRATCH};
use pebble_portal::isa::riscv64::encode::{add, addi, bge, ld, sd, slli, srli};

pub const LETTER: u8 = b'T';
/// Domains, each with a word.
pub const DOMAINS: u64 = 256;
/// Where the most tokens that a bucket holds are, and how many are given back each period.
pub const LIMIT: u64 = 0;
pub const GIVEN: u64 = (DOMAINS - 1) * 8;

/// Where the tokens that a domain has spent are counted.
pub const fn spent_at(domain: u64) -> u64 {
    domain * 8
}

/// The template. The caller's word stays where it is.
pub fn code() -> [u32; 8] {
    let [bucket, spent] = SCRATCH;
    let limit = CALLER;
    const INDEX: u32 = DOMAINS.trailing_zeros();
    [
        slli(bucket, CALLER, 64 - INDEX),
        srli(bucket, bucket, 64 - INDEX - 3),
        add(bucket, bucket, BASE),
        ld(spent, bucket, 0),
        ld(limit, BASE, LIMIT as i32),
        bge(spent, limit, 12),
        addi(spent, spent, 1),
        sd(spent, bucket, 0),
    ]
}

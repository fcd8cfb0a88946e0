//! The letter `T`: a call costs its caller a token.
//!
//! **Problem.** A server that strangers call wants a bound on how often each of them does, without a call of
//! its own to ask whether it may. **Strategy.** It writes `T` where it would write `i`: the word passes as it
//! is, and the portal's code, before anything else has happened, counts a token as spent in the caller's
//! bucket, or refuses the call with status `T | caller << 16`. This server gives tokens back, so many a
//! period, and says how many a bucket holds.
//!
//! **Invariants:** a bucket is its domain's alone, and its word is only counted up by portal code, by one,
//! and down by the server, by compare-and-swap, never below 0; the limit holds for whatever calls arrive
//! between two periods.
//!
//! The private data is a word for each domain: tokens that it has spent. Domain 0 is none, and the last
//! number is never a domain's: their words are the limit and the tokens given back a period.
#![no_std]
#![forbid(unsafe_code)]

use pebble_abi::template::Operation::*;
use pebble_abi::template::Register::{A, B, Base, Caller};
use pebble_abi::template::{Condition, Operation};

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
pub const CODE: [Operation; 8] = [
    ShiftLeft { to: A, a: Caller, by: 64 - INDEX },
    ShiftRight { to: A, a: A, by: 64 - INDEX - 3 },
    Add { to: A, a: A, b: Base },
    Load { to: B, at: A, offset: 0 },
    Load { to: Caller, at: Base, offset: LIMIT as i16 },
    Refuse { a: B, condition: Condition::Greater, b: Caller },
    AddNumber { to: B, a: B, number: 1 },
    Store { from: B, at: A, offset: 0 },
];
const INDEX: u8 = DOMAINS.trailing_zeros() as u8;

//! A component that the system gives the letter `Z`, and that registers what it must not.
//!
//! `rogue.offer` tries the template of that number, good or bad; `rogue.begin` begins one and leaves it there; `rogue.commit` ends what was begun,
//! by whomever; `rogue.letter` tries a good template for another letter; `rogue.note` writes into its private data; `rogue.peek` reads
//! another's, `rogue.fall` faults. What is refused is answered as `-(word of the mistake) << 16` or `-errno`.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use pebble::abi::{control, map, sys, template as abi};
use pebble::attack;
use pebble::portal::call;
use pebble::template::{self, Refused};
use pebble_portal::hardware::template::{BASE, INOUT, SCRATCH};
use pebble_portal::isa::riscv64::encode::*;

pebble::export!("self.offer", "npi", offer: fn(u64));
pebble::export!("self.begin", "np", begin);
pebble::export!("self.commit", "np", commit);
pebble::export!("self.letter", "npi", letter: fn(u64));
pebble::export!("self.note", "npi", note: fn(u64));
pebble::export!("self.peek", "npi", peek: fn(u64));
pebble::export!("self.fall", "np", fall);
pebble::component!(main);

const LETTER: u8 = b'Z';
const X: u8 = SCRATCH[0];

/// Registers nothing by itself.
fn main() -> i64 {
    0
}

fn answer(outcome: Result<(), Refused>) -> i64 {
    match outcome {
        Ok(()) => 0,
        Err(Refused::Errno(error)) => -error,
        Err(Refused::Code(error)) => -((error.word() as i64) << 16),
    }
}

/// The templates, by number; those below 10 are good.
extern "C" fn offer(n: u64) -> i64 {
    let code: &[u32] = match n {
        // A word on; two on; by what its private data says; refused where the word is 0.
        0 => &[addi(INOUT, INOUT, 1)],
        1 => &[addi(INOUT, INOUT, 2)],
        2 => &[ld(X, BASE, 0), add(INOUT, INOUT, X)],
        3 => &[beq(INOUT, ZERO, 8), addi(INOUT, INOUT, 3)],
        // Elsewhere: the neighbour's page, before and behind its own; where the caller says; a word that is no double word.
        10 => &[sd(INOUT, BASE, -8)],
        11 => &[lui(X, 1), add(X, X, BASE), ld(INOUT, X, 0)],
        12 => &[ld(INOUT, INOUT, 0)],
        13 => &[add(X, INOUT, BASE), sd(ZERO, X, 0)],
        14 => &[ld(INOUT, BASE, 4)],
        // Control flow.
        20 => &[addi(INOUT, INOUT, 1), beq(ZERO, ZERO, -4)],
        21 => &[beq(ZERO, ZERO, 12), addi(INOUT, INOUT, 1)],
        22 => &[jalr(ZERO, INOUT, 0)],
        23 => &[beq(ZERO, ZERO, 0)],
        // Registers and instructions that are not its own.
        30 => &[addi(BASE, INOUT, 0), ld(INOUT, BASE, 0)],
        31 => &[addi(SP, INOUT, 0)],
        32 => &[addi(INOUT, GP, 0)],
        33 => &[csrrs(INOUT, csr::SATP, ZERO)],
        34 => &[0],
        // Length.
        40 => &[],
        41 => &[addi(INOUT, INOUT, 1); 33],
        _ => &[addi(INOUT, INOUT, 1); 1000],
    };
    answer(template::register(LETTER, code))
}

fn step(way: u64, words: [u64; 4]) -> i64 {
    let [word, a, b, c] = words;
    call(sys::SYS_CONTROL, [control::TEMPLATE | way << 16 | word << 32, a, b, c]).unwrap_or(i64::MIN)
}

extern "C" fn begin() -> i64 {
    let begun = step(abi::BEGIN, [LETTER.into(), 0, 0, 0]);
    if begun != 0 { begun } else { step(abi::FILL, [1, addi(INOUT, INOUT, 99).into(), 0, 0]) }
}

extern "C" fn commit() -> i64 {
    step(abi::COMMIT, [0; 4])
}

extern "C" fn letter(letter: u64) -> i64 {
    answer(template::register(letter as u8, &[addi(INOUT, INOUT, 1)]))
}

extern "C" fn note(word: u64) -> i64 {
    template::data(LETTER).write(0, word);
    0
}

/// It must not come back.
extern "C" fn peek(which: u64) -> i64 {
    match which {
        0 => attack::load(map::template_data_va(b'T')),
        1 => attack::load(map::template_va(b'T')),
        _ => attack::load(map::template_va(LETTER)),
    }
    0
}

extern "C" fn fall() -> i64 {
    panic!("told to")
}

//! A component that the system gives the letter `Z`, and that registers what it must not.
//!
//! `rogue.offer` tries the template of that number, good or bad; `rogue.begin` begins one and leaves it
//! there; `rogue.commit` ends what was begun, by whomever; `rogue.letter` tries a good template for another
//! letter; `rogue.note` writes into its private data; `rogue.peek` reads another's, `rogue.fall` faults. What
//! is refused is answered as `-(word of the mistake) << 16` or `-errno`.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use pebble::abi::template::Condition::Equal;
use pebble::abi::template::Operation::{self, *};
use pebble::abi::template::Register::{A, Base, Word, Zero};
use pebble::abi::{control, map, sys, template as abi};
use pebble::attack;
use pebble::portal::call;
use pebble::template::{self, Refused};

pebble::export!("self.offer", "npi", offer: fn(u64));
pebble::export!("self.begin", "np", begin);
pebble::export!("self.commit", "np", commit);
pebble::export!("self.letter", "npi", letter: fn(u64));
pebble::export!("self.note", "npi", note: fn(u64));
pebble::export!("self.peek", "npi", peek: fn(u64));
pebble::export!("self.fall", "np", fall);
pebble::component!(main);

const LETTER: u8 = b'Z';
const INCREMENT: Operation = AddNumber { to: Word, a: Word, number: 1 };
const ALWAYS: Operation = Skip { a: Zero, condition: Equal, b: Zero, count: 2 };

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
    let code: &[Operation] = match n {
        // A word on; two on; by what its private data says; refused where the word is 0, else three on.
        0 => &[INCREMENT],
        1 => &[AddNumber { to: Word, a: Word, number: 2 }],
        2 => &[Load { to: A, at: Base, offset: 0 }, Add { to: Word, a: Word, b: A }],
        3 => &[Refuse { a: Word, condition: Equal, b: Zero }, AddNumber { to: Word, a: Word, number: 3 }],
        // Elsewhere: the neighbour's page, before and behind its own; where the caller says; a word that is
        // no double word.
        10 => &[Store { from: Word, at: Base, offset: -8 }],
        11 => {
            &[Pages { to: A, number: 1 }, Add { to: A, a: A, b: Base }, Load { to: Word, at: A, offset: 0 }]
        }
        12 => &[Load { to: Word, at: Word, offset: 0 }],
        13 => &[Add { to: A, a: Word, b: Base }, Store { from: Zero, at: A, offset: 0 }],
        14 => &[Load { to: Word, at: Base, offset: 4 }],
        // Skips over nothing, and beyond the last.
        20 => &[INCREMENT, Skip { a: Zero, condition: Equal, b: Zero, count: 0 }, INCREMENT],
        21 => &[ALWAYS, INCREMENT],
        // What may not be written.
        30 => &[AddNumber { to: Base, a: Word, number: 0 }, Load { to: Word, at: Base, offset: 0 }],
        31 => &[AddNumber { to: Zero, a: Word, number: 0 }],
        // Length.
        40 => &[],
        41 => &[INCREMENT; 33],
        42.. => &[INCREMENT; 1000],
        // Numbers out of range.
        32 => &[AddNumber { to: Word, a: Word, number: 2048 }],
        33 => &[ShiftLeft { to: Word, a: Word, by: 64 }],
        _ => return words(n),
    };
    answer(template::register(LETTER, code))
}

/// Words that are no operations: RISC-V instructions among them, and what has bits where there must be none.
fn words(n: u64) -> i64 {
    let code: &[u32] = match n {
        34 => &[0],
        35 => &[u32::MAX],
        // mv t2, t2; sret
        36 => &[0x0003_8393],
        37 => &[0x1020_0073],
        // A register that there is not.
        38 => &[INCREMENT.encode() | 7 << 4],
        _ => &[INCREMENT.encode() | 1 << 13],
    };
    answer(template::register_words(LETTER, code))
}

fn step(way: u64, words: [u64; 4]) -> i64 {
    let [word, a, b, c] = words;
    call(sys::SYS_CONTROL, [control::TEMPLATE | way << 16 | word << 32, a, b, c]).unwrap_or(i64::MIN)
}

extern "C" fn begin() -> i64 {
    let begun = step(abi::BEGIN, [LETTER.into(), 0, 0, 0]);
    if begun != 0 { begun } else { step(abi::FILL, [1, INCREMENT.encode().into(), 0, 0]) }
}

extern "C" fn commit() -> i64 {
    step(abi::COMMIT, [0; 4])
}

extern "C" fn letter(letter: u64) -> i64 {
    answer(template::register(letter as u8, &[INCREMENT]))
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

//! The template of the letter `k`: the caller's name for a capability becomes the callee's.
//!
//! Table and rules: `docs/src/capability.md`. A name is the number of a node. The sender's must be the
//! caller's, valid, and transferable; the receiver's is the first free node, which becomes valid by the last
//! store into it. A use-once capability is then no longer the sender's.

use super::Condition::{Equal, Greater, Unequal};
use super::Operation::*;
use super::Register::{A, B, Base, Callee, Caller, Word, Zero};
use super::{Operation, Template};
use pebble_abi::capability::{HOLDER, NEXT, NODE_SHIFT, ONCE, PARENT, TABLE_BYTES, TOKEN, TRANSFER, VALID};
use pebble_abi::{map, status};

/// Bits of an offset in the table; of a node's number.
const BITS: u8 = TABLE_BYTES.trailing_zeros() as u8;
const NAME_BITS: u8 = BITS - NODE_SHIFT as u8;
/// Holder, VALID and TRANSFER are the lowest bits of the first word, ONCE is above them.
const SEEN: u8 = 64 - ONCE.trailing_zeros() as u8;
const _: () = assert!(VALID | TRANSFER == 3 << 16 && ONCE == 1 << 18);

const fn word(n: usize) -> i16 {
    n as i16 * 8
}

const OPERATIONS: [Operation; 31] = [
    ShiftRight { to: A, a: Word, by: NAME_BITS },
    Refuse { a: A, condition: Unequal, b: Zero },
    ShiftLeft { to: Word, a: Word, by: 64 - NAME_BITS },
    ShiftRight { to: Word, a: Word, by: 64 - BITS },
    Add { to: Word, a: Word, b: Base },
    // The sender's node; what its first word says without ONCE.
    Load { to: A, at: Word, offset: word(HOLDER) },
    ShiftLeft { to: B, a: A, by: SEEN },
    ShiftRight { to: B, a: B, by: SEEN },
    Subtract { to: B, a: B, b: Caller },
    Subtract { to: Callee, a: Callee, b: Caller },
    Pages { to: Caller, number: ((VALID | TRANSFER) >> 12) as i16 },
    Refuse { a: B, condition: Unequal, b: Caller },
    // The receiver's first word: another holder, the same flags.
    Add { to: Callee, a: Callee, b: A },
    Load { to: B, at: Base, offset: word(NEXT) },
    Refuse { a: B, condition: Equal, b: Zero },
    ShiftLeft { to: B, a: B, by: 64 - BITS },
    ShiftRight { to: B, a: B, by: 64 - NAME_BITS },
    ShiftLeft { to: Caller, a: B, by: NODE_SHIFT as u8 },
    Add { to: Caller, a: Caller, b: Base },
    // Out of the free list; token, parent, holder.
    Load { to: A, at: Caller, offset: word(NEXT) },
    Store { from: A, at: Base, offset: word(NEXT) },
    Load { to: A, at: Word, offset: word(TOKEN) },
    Store { from: A, at: Caller, offset: word(TOKEN) },
    Subtract { to: A, a: Word, b: Base },
    AddNumber { to: A, a: A, number: 1 },
    Store { from: A, at: Caller, offset: word(PARENT) },
    Store { from: Callee, at: Caller, offset: word(HOLDER) },
    // Used once: the sender's is gone.
    ShiftLeft { to: Callee, a: Callee, by: SEEN - 1 },
    Skip { a: Callee, condition: Greater, b: Zero, count: 1 },
    Store { from: Zero, at: Word, offset: word(HOLDER) },
    AddNumber { to: Word, a: B, number: 0 },
];

pub fn template() -> Template {
    Template {
        letter: b'k',
        status: status::CAPABILITY as u16,
        data: map::CAPABILITIES_VA,
        data_bits: BITS,
        operations: OPERATIONS.into_iter().collect(),
    }
}

//! The template of the letter `k`: the caller's name for a capability becomes the callee's.
//!
//! Table and rules: `docs/src/capability.md`. A name is the number of a node. The sender's must be the caller's, valid, and transferable;
//! the receiver's is the first free node, which becomes valid by the last store into it. A use-once capability is then no longer the sender's.

use super::{BASE, CALLEE, CALLER, INOUT, SCRATCH, Template};
use crate::isa::riscv64::encode::*;
use pebble_abi::capability::{HOLDER, NEXT, NODE_SHIFT, ONCE, PARENT, TABLE_BYTES, TOKEN, TRANSFER, VALID};
use pebble_abi::{map, status};

/// Bits of an offset in the table; of a node's number.
const BITS: u32 = TABLE_BYTES.trailing_zeros();
const NAME_BITS: u32 = BITS - NODE_SHIFT;
const LEN: i32 = 31;

const fn word(n: usize) -> i32 {
    n as i32 * 8
}

/// From instruction `at` to behind the last: the call is refused.
const fn refuse(at: i32) -> i32 {
    (LEN - at) * 4
}

pub fn template() -> Template {
    let [x, y] = SCRATCH;
    // Holder, VALID and TRANSFER are the lowest bits of the first word, ONCE is above them.
    const SEEN: u32 = 64 - ONCE.trailing_zeros();
    let words = [
        srli(x, INOUT, NAME_BITS),
        bne(x, ZERO, refuse(1)),
        slli(INOUT, INOUT, 64 - NAME_BITS),
        srli(INOUT, INOUT, 64 - BITS),
        add(INOUT, INOUT, BASE),
        // The sender's node; what its first word says without ONCE.
        ld(x, INOUT, word(HOLDER)),
        slli(y, x, SEEN),
        srli(y, y, SEEN),
        sub(y, y, CALLER),
        sub(CALLEE, CALLEE, CALLER),
        lui(CALLER, ((VALID | TRANSFER) >> 12) as u32),
        bne(y, CALLER, refuse(11)),
        // The receiver's first word: another holder, the same flags.
        add(CALLEE, CALLEE, x),
        ld(y, BASE, word(NEXT)),
        beq(y, ZERO, refuse(14)),
        slli(y, y, 64 - BITS),
        srli(y, y, 64 - NAME_BITS),
        slli(CALLER, y, NODE_SHIFT),
        add(CALLER, CALLER, BASE),
        // Out of the free list; token, parent, holder.
        ld(x, CALLER, word(NEXT)),
        sd(x, BASE, word(NEXT)),
        ld(x, INOUT, word(TOKEN)),
        sd(x, CALLER, word(TOKEN)),
        sub(x, INOUT, BASE),
        addi(x, x, 1),
        sd(x, CALLER, word(PARENT)),
        sd(CALLEE, CALLER, word(HOLDER)),
        // Used once: the sender's is gone.
        slli(CALLEE, CALLEE, SEEN - 1),
        bge(CALLEE, ZERO, 8),
        sd(ZERO, INOUT, word(HOLDER)),
        addi(INOUT, y, 0),
    ];
    const _: () = assert!(VALID | TRANSFER == 3 << 16 && ONCE == 1 << 18);
    Template {
        letter: b'k',
        status: status::CAPABILITY as u16,
        data: map::CAPABILITIES_VA,
        data_bits: BITS as u8,
        words: words.into_iter().collect(),
    }
}

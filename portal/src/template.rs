//! Argument templates: code of a trusted server, inlined by the compiler for one argument letter.
//!
//! Problem: a server that translates an argument (capabilities) must not cost every call a call of its own.
//! Strategy: the server registers straight, forward-branching code once, with private data that this code alone reads
//! and writes; [`Template::check`] proves that it does no more, and portals contain it as it is.
//!
//! * Registers: [`INOUT`] has the caller's word, and at the end the callee's argument; [`BASE`] the data's address (never
//!   written), [`CALLER`] and [`CALLEE`] the numbers of the two domains; [`SCRATCH`] are free. No others are read or written.
//! * Memory: only double words, at the base plus a constant, or plus an index that the code itself has masked.
//! * A branch to just behind the last instruction refuses: the call fails with [`Template::status`], before the callee runs.
//! * A template acts when it is reached: with two in one portal, the first has acted when the second refuses.

use arrayvec::ArrayVec;

/// Most instructions of a template.
pub const MAX_TEMPLATE_WORDS: usize = 32;
/// Largest private data, as a power of two.
pub const MAX_DATA_BITS: u8 = 16;

/// `t2`, `t3`, `t4`, `t5`; `t6` and `a0`.
pub const INOUT: u8 = 7;
pub const BASE: u8 = 28;
pub const CALLER: u8 = 29;
pub const CALLEE: u8 = 30;
pub const SCRATCH: [u8; 2] = [31, 10];

/// The code for one letter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    /// `k`, or a capital.
    pub letter: u8,
    /// Code of the transport status when it refuses; the domain in it is the caller.
    pub status: u16,
    /// Address of the private data, and its size as a power of two.
    pub data: u64,
    pub data_bits: u8,
    pub words: ArrayVec<u32, MAX_TEMPLATE_WORDS>,
}

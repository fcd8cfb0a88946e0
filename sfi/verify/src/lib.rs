//! The verifier: the one trusted judge of native x86-64 code in fault domains.
//!
//! Problem: a module is untrusted bytes, made by tools that are not trusted either, and runs unchecked once
//! it is accepted. So the bytes themselves must show that they write and jump only in their own segment (and,
//! at level full, read only there). Strategy: an allow-list decoder (`table`, `decode`), a list of labels
//! that the module brings and that is checked (`labels`), and one linear pass that carries a small abstract
//! state from instruction to instruction and meets it at labels (`state`, `step`, `memory`, `sequence`,
//! `pass`); most instructions go through it by a shorter way (`plain`). Nothing is searched, nothing is
//! iterated, every table is read within a budget, so the time is linear in the size whatever the input. The
//! contract is `docs/src/fault-domains.md`.
//!
//! Invariants kept: no allocation, no unsafe code, no panic on any input; what no rule allows is refused;
//! the scratch words hold nothing that is believed before this crate has written it.
//!
//! What the embedder owes, beyond the contract's memory map:
//! * bytes, ranges and records are those that will be mapped, and cannot change afterwards; read-only data is
//!   never writable;
//! * `Summary::x87` and `Summary::fp_control` say that the x87 state or the rounding and exception controls
//!   may be different after a call, and where the code calls out: portals restore them. `std` and `popf` do
//!   not exist: the direction flag stays 0;
//! * `int3` and `ud2` end the call; a signal handler believes no register of confined code but `rsp` and
//!   `rip`.
#![no_std]
#![forbid(unsafe_code)]

#[doc(hidden)]
pub mod decode;
mod error;
#[doc(hidden)]
pub mod labels;
mod memory;
mod pass;
#[doc(hidden)]
pub mod plain;
#[doc(hidden)]
pub mod sequence;
mod site;
#[doc(hidden)]
pub mod state;
#[doc(hidden)]
pub mod step;
#[doc(hidden)]
pub mod table;

pub use error::{Refusal, Rule};
pub use pass::verify;
pub use site::{Site, find as site};

use core::ops::Range;

/// How much is confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Stores and jumps.
    Write,
    /// Loads too.
    Full,
}

/// A module as it will be mapped. Addresses are segment offsets.
#[derive(Clone, Debug)]
pub struct Module<'a> {
    pub level: Level,
    /// The executable bytes, with the ftab first, and where they lie.
    pub text: &'a [u8],
    pub text_at: u32,
    /// Size of the ftab, which begins at `text_at`: a power of two, at least 64.
    pub ftab_size: u32,
    /// Read-only data: the only place that jump tables are believed from.
    pub rodata: &'a [u8],
    pub rodata_at: u32,
    /// Writable data with `.bss`; read-only parts that relocation makes may be in it.
    pub data: Range<u32>,
    /// The section `.pbl.facts`: 20 bytes a record.
    pub facts: &'a [u8],
    /// The section `.pbl.labels`.
    pub labels: &'a [u8],
    /// Code addresses of the exports, in any order.
    pub exports: &'a [u32],
    /// Number of imports.
    pub imports: u32,
}

/// What is known of an accepted module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Preserved registers (`rbx`, `r12`-`r15`; bit n is register n in encoding order) that a call of *any*
    /// entry may change. Never `rbp`, never `rsp`. A module that imports `pbl_longjmp` may change all,
    /// whatever this says.
    pub changes: u16,
    /// There is an x87 instruction: the register stack and the exception flags may not be empty after a call.
    pub x87: bool,
    /// There is an `ldmxcsr` or `fldcw`: rounding, masks and flush modes may be different after a call.
    pub fp_control: bool,
    /// Some result may depend on how vectors' arithmetic rounds, or is its control word.
    pub float: bool,
    /// Where the first instruction is that reads a clock of the processor's.
    pub timer: Option<u32>,
    pub instructions: u32,
    pub labels: u32,
}

/// Words of scratch that are enough for any text of this length. Most are never touched: memory that is
/// mapped lazily costs less than half a byte per byte of text.
pub const fn scratch_words(text_len: usize) -> usize {
    2 * (text_len / 64 + 1) + text_len
}

impl Summary {
    /// How many words of the scratch `site` needs.
    pub const fn scratch_used(&self, text_len: usize) -> usize {
        2 * (text_len / 64 + 1) + self.labels as usize
    }
}

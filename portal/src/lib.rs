//! The portal compiler: pure functions from specification, connection and processor to code, and their verifiers.
//!
//! [`spec`] parses the specification string, which is the same for both walls. [`hardware`] has the portals between domains that the
//! MMU keeps apart, [`fault`] those of fault domains in a process; each with an intermediate representation, emitters and verifiers.
//! [`isa`] has what both need of an instruction set: an encoder and, apart from it, a decoder.
//! The [`Processor`] is a value: every host builds and tests every back end.
#![no_std]
#![forbid(unsafe_code)]

pub mod fault;
pub mod hardware;
pub mod isa;
pub mod spec;

use core::fmt;
pub use spec::{Spec, SpecError};

/// Whose instructions the code is made of. Which wall it leads through is another matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processor {
    Riscv64,
    X86_64,
}

impl fmt::Display for Processor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Processor::Riscv64 => "RISC-V",
            Processor::X86_64 => "x86-64",
        })
    }
}

//! Instruction sets: an encoder and a decoder each, written apart from one another, so that a mistake in one
//! does not pass both.
pub mod mips64;
pub mod riscv64;
pub mod x86_64;

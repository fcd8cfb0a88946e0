//! Emitters: steps to machine code, one module a processor.
pub mod mips64;
pub mod riscv64;

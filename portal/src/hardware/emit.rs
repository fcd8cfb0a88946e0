//! Emitters: steps to machine code, one module a processor.
pub mod riscv64;

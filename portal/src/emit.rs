//! Emitters: intermediate representation to machine code, one module a target.
pub mod riscv64;
pub mod x86_64;

//! 64-bit MIPS: the registers of a call are those of `pebble_arch::mips64::regs`.
//!
//! The assembler fills no delay slots here: what stands behind a jump runs before it.

pub mod attack;
pub mod call;
pub mod control;
pub mod entry;
pub mod memory;
pub mod register;

//! rv64: the registers of a call are those of `pebble_arch::riscv64::regs`.

pub mod attack;
pub mod call;
pub mod control;
pub mod entry;
pub mod memory;
pub mod register;

//! What the programs that a user runs from the shell have in common, host-tested.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod transfer;

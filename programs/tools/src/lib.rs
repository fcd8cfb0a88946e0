//! What the programs that a user runs from the shell have in common, host-tested.
//!
//! * [`transfer`] files over the console
//! * [`calls`] what a program's calls mean, [`rules`] what tools do with them, [`timeline`] when they were
//! * `under` (on the machine only) running a program whose calls lead to a tool
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod calls;
pub mod rules;
pub mod timeline;
pub mod transfer;
#[cfg(target_os = "none")]
pub mod under;

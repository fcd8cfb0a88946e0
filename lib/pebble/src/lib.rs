//! What a component written in Rust links.
//!
//! * [`component!`] its entry, [`export!`] what it offers, [`import!`] what it needs
//! * [`portal`] calls through portals
//! * [`api`] the portals that every domain has, typed
//! * [`control`] children whose portals lead here
//! * [`sync`] locks made of semaphores
//! * [`fault`] pages that others provide when they are touched
//! * [`handover`] replacing a server while it is called
//! * [`io`] open files, standard input and output, [`print!`]
//! * [`mmio`] device registers granted by the manifest, [`device`] those that a program asks for
//! * [`policy`] what the system's rules say, for servers of what they are about
//! * [`test`] tests that a program makes of itself, [`tests!`]
//! * [`template`] code of one's own for an argument letter
//! * [`arch`] the instructions of all that
//! * [`wait`] clients that wait for an event in a server
//! * [`buffer`] memory that is lent and given through windows
//!
//! On a host only the parts without machine code exist, so that servers' logic is tested there.
#![no_std]
// So that components, which forbid unsafe code, can declare entries and records through this crate's macros.
#![cfg_attr(target_os = "none", allow(internal_features), feature(allow_internal_unsafe))]

extern crate alloc;

pub use pebble_abi as abi;

#[cfg(target_os = "none")]
pub mod api;
#[cfg(target_os = "none")]
pub mod arch;
#[cfg(target_os = "none")]
pub mod buffer;
#[cfg(target_os = "none")]
pub mod client;
#[cfg(target_os = "none")]
pub mod control;
#[cfg(target_os = "none")]
pub mod device;
#[cfg(target_os = "none")]
pub mod fault;
#[cfg(target_os = "none")]
pub mod handover;
#[cfg(target_os = "none")]
pub mod heap;
#[cfg(target_os = "none")]
pub mod io;
#[cfg(target_os = "none")]
pub mod link;
#[cfg(target_os = "none")]
pub mod mmio;
#[cfg(target_os = "none")]
pub mod policy;
#[cfg(target_os = "none")]
pub mod portal;
#[cfg(target_os = "none")]
pub mod power;
#[cfg(target_os = "none")]
pub mod process;
#[cfg(target_os = "none")]
pub mod region;
#[cfg(target_os = "none")]
mod start;
#[cfg(target_os = "none")]
pub mod sync;
#[cfg(target_os = "none")]
pub mod template;
#[cfg(target_os = "none")]
pub mod test;
pub mod wait;
#[cfg(target_os = "none")]
pub mod within;
#[cfg(target_os = "none")]
pub mod words;
#[cfg(target_os = "none")]
pub use arch::attack;
#[cfg(target_os = "none")]
pub use within::call_within;

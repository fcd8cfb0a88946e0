//! Runs a Pebble image in QEMU and talks to its console.
//!
//! * [`Machine`] the emulated board and how to start it
//! * [`Guest`] a running system whose console this process holds: send, expect, run a script
//! * [`Exit`] how it ended
//!
//! A guest that does not answer is an error, never a wait without end: every call that waits takes a limit of
//! the emulator's time (`patience.rs`), and a guest is killed when it is dropped. Killed means SIGKILL, since a wedged emulator may ignore
//! anything gentler.
#![forbid(unsafe_code)]

mod console;
mod error;
mod guest;
mod last_words;
mod machine;
mod nudge;
mod patience;
mod script;

pub use error::{Error, Exit};
pub use guest::Guest;
pub use last_words::WithoutStatus;
pub use machine::{Counting, Machine, Status};
pub use script::{PROMPT, Reply};

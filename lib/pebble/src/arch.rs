//! The instructions that the library needs of a processor. Each has a folder with the same files, in which
//! are the same names:
//!
//! | file | what |
//! |---|---|
//! | `call` | calls of portals, and the ways out of an entry |
//! | `entry` | where a program starts and gives up; entries that no compiler can make, as macros |
//! | `control` | calls that go on for others, copies of domains |
//! | `memory` | copies of words |
//! | `register` | counters, the thread pointer, fetches |
//! | `attack` | what only a hostile component does |

#[cfg(target_arch = "mips64")]
mod mips64;
#[cfg(target_arch = "riscv64")]
mod riscv64;
#[cfg(target_arch = "mips64")]
pub use mips64::*;
#[cfg(target_arch = "riscv64")]
pub use riscv64::*;

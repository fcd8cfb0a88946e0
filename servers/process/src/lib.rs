//! The process server: programs, from a file to a domain's last page.
//!
//! It turns files into domains and buries what has died: programs that exit, are killed or fault, and boot
//! components that fault. Nothing here can touch memory or portal tables; the VM manager and the portal
//! manager are asked.
//!
//! * [`elf`]: is this file a program, and what does it want? It trusts no byte of it.
//! * [`manifest`]: how much of the machine a program may have.
//! * [`startup`]: the arguments and standard files that are gathered before a program starts.
//! * [`table`]: who lives, whose child it is, who waits for it; pure state machine.
//! * [`crash`]: what else a dead domain leaves, in words.
//! * [`fault`]: a fault in words.
//!
//! The component has two threads of its own. The *reaper* frees exited threads. The *undertaker* does
//! everything else that is nobody's call: it prints, kills, reclaims, and wakes who waits; so whoever exits
//! or kills only marks and signals. Both have a higher priority than any program.
//!
//! Memory is allocated fallibly wherever a program's request is the cause, and never on the way of a death:
//! when programs have eaten all memory, they can still be buried.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod crash;
pub mod elf;
pub mod fault;
pub mod manifest;
pub mod samples;
pub mod startup;
pub mod table;

/// Pages that a program may have.
pub const PAGE_LIMIT: u64 = 4096;
/// Priority of programs, the shell among them: below every server, above the idle thread.
pub const PRIORITY: u64 = 8;
/// Priority of what a component of the image starts: the first shell, which can so end whatever its programs
/// do.
pub const FIRST_PRIORITY: u64 = 12;
const _: () = assert!(FIRST_PRIORITY < pebble_abi::scheduler::PROGRAMS as u64);
/// Threads that a program may have.
pub const THREAD_LIMIT: u64 = 32;
/// Largest program file that is read.
pub const FILE_LIMIT: u64 = 8 << 20;

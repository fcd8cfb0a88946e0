//! The portal manager: the only one that changes portal tables and portal code.
//!
//! It registers interfaces, and opens portals to them: parses nothing at that moment (specifications were
//! parsed when they were registered), compiles, verifies, places the code in the arena and writes one table
//! word. Who may open what is the name server's decision; the component asks it.
//!
//! Memory is reached through [`Machine`], so that all of this runs on a host against a fake one.
//!
//! Invariants:
//! * a table word is the address of common code, of verified code of that very slot, or of `none`; it is
//!   written last when a portal is opened and first when one is closed;
//! * code that a suspended thread may return through is not reused, but by the same portal: it waits in limbo
//!   until no invocation stack mentions it;
//! * a portal takes of its opener what that, or the image's manifest, has given, and of nobody else;
//! * a portal into a dead domain answers CLOSED with its name, and keeps no reference to what that domain
//!   had;
//! * a failed request changes nothing.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod admission;
pub mod arena;
mod births;
mod building;
pub mod consent;
pub mod fault_handlers;
mod forms;
pub mod frames;
pub mod gifts;
pub mod interfaces;
pub mod interposition;
pub mod letters;
mod limbo;
mod made;
pub mod manager;
pub mod notify;
pub mod open;
mod reopening;
pub mod replacement;
mod shares;
pub mod slots;
pub mod specification;
pub mod stacks;
mod subjects;
pub mod unwind;

pub use arena::Run;
use pebble_abi::errno::Errno;
use pebble_portal::hardware::instance::Site;

pub use interfaces::Interface;
pub use manager::{Domain, Goal, Manager, Slot};
pub use subjects::Subject;

/// The memory that the portal manager may touch, and what it asks others for.
pub trait Machine {
    fn set_table(&mut self, asid: u16, index: u16, word: u64);
    fn table(&self, asid: u16, index: u16) -> u64;
    /// Entry of the table that all dead domains share.
    fn set_dead_entry(&mut self, index: u16, word: u64);
    /// So many double words of the arena from there on. What is [copied](Site::copy) there can be executed.
    fn site(&mut self, offset: u64, doubles: usize) -> impl Site;
    fn code_word(&self, offset: u64) -> u64;
    /// Threads that have a block.
    fn threads(&self) -> impl Iterator<Item = u16>;
    /// Word of a thread block at this offset.
    fn thread_word(&self, tid: u16, offset: u64) -> u64;
    fn set_thread_word(&mut self, tid: u16, offset: u64, word: u64);
    /// Word of the nucleus data (stack queues, descriptors, counters) at this offset.
    fn data(&self, offset: u64) -> u64;
    fn set_data(&mut self, offset: u64, word: u64);
    /// Stores `new` there if the word is `old`, in one step even against portal code; whether it did.
    fn exchange_data(&mut self, offset: u64, old: u64, new: u64) -> bool;
    /// A fresh page of the arena.
    fn grow_code(&mut self, page: u32) -> Result<(), Errno>;
    /// A fresh page of a domain's table, whose entries lead nowhere.
    fn grow_table(&mut self, asid: u16, page: u32) -> Result<(), Errno>;
    /// A fresh stack of a domain for its queue: initial stack pointer.
    fn stack(&mut self, asid: u16) -> Result<u64, Errno>;
    /// `guest` sees the stacks of `host`, and no longer.
    fn share_stacks(&mut self, host: u16, guest: u16) -> Result<(), Errno>;
    fn unshare_stacks(&mut self, host: u16, guest: u16);
    /// Direct addresses for portals with windows: of a domain's level-1 table, of its window control page.
    fn space(&mut self, asid: u16) -> Result<u64, Errno>;
    fn windows(&mut self, asid: u16) -> Result<u64, Errno>;
    fn free_semaphore(&mut self, id: u16);
}

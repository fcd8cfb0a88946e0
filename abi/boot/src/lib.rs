//! What the image builder tells the first servers, encoded with `postcard` at `pebble_abi::map::BOOTINFO_VA`.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod rules;

use alloc::string::String;
use alloc::vec::Vec;
use pebble_abi::scheduler;
pub use rules::{About, Rule, Verdict};
use serde::{Deserialize, Serialize};

/// The whole message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootInfo {
    pub domains: Vec<Domain>,
    pub interfaces: Vec<Interface>,
    pub rules: Vec<Rule>,
    /// Devices that programs can have.
    pub devices: Vec<Device>,
    pub portals: Vec<Portal>,
    pub threads: Vec<Thread>,
    pub semaphores: Vec<Semaphore>,
    pub code: CommonCode,
    /// Page-aligned physical end of what the image occupies; free memory starts here.
    pub image_end: u64,
    pub ram_end: u64,
    /// Bytes of the code arena in use (its pages up to there are mapped).
    pub code_used: u64,
    /// Level-0 tables of the nucleus's first two 2 MiB: nucleus, data and thread blocks; portal code arena
    /// (physical).
    pub kernel_l0: [u64; 2],
    /// Stack descriptors in use.
    pub stack_descs: u32,
    /// Domain of the process server: what it may do is reserved to it.
    pub process: u16,
    /// Shared page of empty portal-table entries, gate page, and level-1 table of dead domains (physical).
    pub empty_table: u64,
    pub gate: u64,
    pub dead_l1: u64,
    /// Root entry 510 of every page table.
    pub kernel_pte: u64,
    /// What components have mapped that is not their own.
    pub grants: Vec<Grant>,
}

/// What a [`BootInfo`] begins with: all that servers read that deal with rules. Devices follow.
#[derive(Deserialize)]
pub struct Policy {
    pub domains: Vec<Domain>,
    pub interfaces: Vec<Interface>,
    pub rules: Vec<Rule>,
}

/// A device of the manifest's: registers at a physical address, page-aligned; source of its interrupt, or 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    pub name: String,
    pub at: u64,
    pub bytes: u64,
    pub irq: u16,
}

/// Pages of a device, or of the image, that a component has by its manifest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub asid: u16,
    pub va: u64,
    pub pa: u64,
    pub pages: u32,
    pub write: bool,
}

/// Generated code that is not made for one domain: addresses in the code arena.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommonCode {
    /// Entry 0 of every table.
    pub dispatch: u64,
    /// An index that is not held: raises the domain's exception.
    pub none: u64,
    /// Exception and interrupt entries: for domains without, and with, floating point.
    pub exception: [u64; 2],
    pub interrupt: [u64; 2],
    /// Return code of an interrupt's frame: likewise. A new thread starts through it.
    pub trap_return: [u64; 2],
    /// A call that found the callee's stack queue empty: waits in the scheduler, then repeats the call.
    pub no_stack: [u64; 2],
    /// Bottom of every invocation stack: the thread's first function returned. Goes on through table entry
    /// `THREAD_END`, which is:
    pub thread_end: u64,
    pub thread_exit: u64,
    /// Table entry `UNWIND`.
    pub unwound: u64,
    /// Table entry `LEAVE_WAIT` of the image's components.
    pub waits: u64,
    pub get_thread_id: u64,
    pub hrtime: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Domain {
    pub asid: u16,
    pub name: String,
    pub root: u64,
    /// Physical page of the first page of its portal table.
    pub table: u64,
    pub float: bool,
    /// Runs with interrupts off on one fixed stack.
    pub exclusive: bool,
    /// Fixed stack of an exclusive domain.
    pub fixed_stack: u64,
    pub priority: u8,
    /// Physical pages that it owns (image, stacks, tables), for accounting.
    pub pages: u32,
    /// Stack slots in use in its stack range.
    pub stack_slots: u8,
    /// Where its heap starts: the end of its image, or `pebble_abi::map::LARGE_HEAP_VA`.
    pub heap: u64,
    /// Its death stops the system.
    pub essential: bool,
    /// Its calls may use the reserve of the invocation stack.
    pub server: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    pub name: String,
    pub asid: u16,
    pub entry: u64,
    pub spec: String,
}

/// A portal that the image builder compiled. `index` in the table of `asid`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Portal {
    pub asid: u16,
    pub index: u16,
    /// Position in `BootInfo::interfaces`, or `u16::MAX` for common code.
    pub interface: u16,
    pub code: u64,
    pub len: u32,
    pub constant: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    pub tid: u16,
    pub asid: u16,
    pub priority: u8,
    /// Physical page of its thread block.
    pub block: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Semaphore {
    pub id: u16,
    pub name: String,
    pub initial: i64,
    pub owner: u16,
    /// What a wait on it is: the number of a [`scheduler::Wait`].
    pub wait: u8,
}

impl BootInfo {
    /// Three words (bytes of the `postcard` part, threads, semaphores), a word for each thread and each
    /// semaphore, so that the scheduler needs no decoder ([`pebble_abi::boot`]), then the `postcard` part.
    pub fn encode(&self) -> Result<Vec<u8>, postcard::Error> {
        let body = postcard::to_allocvec(self)?;
        let mut words =
            Vec::from([body.len() as u64, self.threads.len() as u64, self.semaphores.len() as u64]);
        words.extend(self.threads.iter().map(|t| scheduler::thread(t.tid, t.priority, t.asid)));
        words.extend(
            self.semaphores
                .iter()
                .map(|s| scheduler::semaphore(s.id, s.owner, scheduler::Wait::of(s.wait.into()))),
        );
        let mut out: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        out.extend_from_slice(&body);
        Ok(out)
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, postcard::Error> {
        beginning(bytes)
    }
}

/// The message, or what it begins with.
pub fn beginning<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, postcard::Error> {
    let word = |n: usize| {
        let raw = bytes.get(n * 8..n * 8 + 8).and_then(|b| b.try_into().ok());
        raw.map(|b| u64::from_le_bytes(b) as usize).ok_or(postcard::Error::DeserializeUnexpectedEnd)
    };
    let start = (scheduler::FIRST + word(1)? + word(2)?) * 8;
    let body = bytes.get(start..start + word(0)?).ok_or(postcard::Error::DeserializeUnexpectedEnd)?;
    postcard::from_bytes(body)
}

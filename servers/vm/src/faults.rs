//! Faults: the domain dies, the process server is told why.
//!
//! A domain dies of its first fault, so it has at most one record, which it keeps until that is read or the domain is forgotten.

use crate::{Machine, Vm};
use pebble_abi::map::{self, PAGE};
use pebble_abi::{errno, sys};

/// Causes beyond the hardware's.
pub const NOT_HELD: u8 = 64;
pub const INVOCATION_OVERFLOW: u8 = 65;
pub const STACK_OVERFLOW: u8 = 66;

/// `ecall` from user mode, as the hardware says it.
const CALL: u64 = 8;
const LOAD_PAGE_FAULT: u64 = 13;
const STORE_PAGE_FAULT: u64 = 15;

/// Why a domain died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    pub cause: u8,
    pub thread: u8,
    /// The faulting address, or the portal index.
    pub value: u64,
    /// Of the instruction.
    pub address: u64,
}

impl<M: Machine> Vm<M> {
    /// A thread faulted in a domain. Whether there is news for the process server: not if the domain was dead already.
    pub fn fault(&mut self, cause: u64, value: u64, address: u64, asid: u64, thread: u64, t0: u64) -> bool {
        let Ok(asid) = self.alive(asid) else { return false };
        let index = t0 & (map::TABLE_ENTRIES as u64 - 1);
        let (cause, value) = match cause {
            CALL if self.held(asid, index) => (INVOCATION_OVERFLOW, index),
            CALL => (NOT_HELD, t0),
            LOAD_PAGE_FAULT | STORE_PAGE_FAULT if self.below_stack(asid, value) => (STACK_OVERFLOW, value),
            _ => (cause.min(u64::from(NOT_HELD) - 1) as u8, value),
        };
        if self.kill(asid).is_err() {
            return false;
        }
        let d = self.domain_mut(asid);
        (d.fault, d.untold) = (Fault { cause, thread: thread as u8, value, address }, true);
        true
    }

    /// Whether the portal at this index leads anywhere but into a fault.
    fn held(&self, asid: u16, index: u64) -> bool {
        let Some(page) = self.page(asid, map::TABLE_VA + index * 8) else { return false };
        let word = self.machine.read(page + index * 8 % PAGE);
        index != sys::EXCEPTION as u64 && self.common().is_ok_and(|c| word != c.code.none)
    }

    /// Whether the address, which is not mapped, belongs to a stack that the domain runs on.
    fn below_stack(&self, asid: u16, address: u64) -> bool {
        let Some(offset) = address.checked_sub(map::STACKS_VA).filter(|_| address < map::USER_END) else {
            return false;
        };
        let owner = (offset / map::STACKS_STRIDE) as u16;
        let slot = offset % map::STACKS_STRIDE / map::STACK_SLOT;
        (owner == asid || self.sees_stacks(asid, owner)) && self.domain(owner).slots >> slot & 1 == 1
    }

    /// A domain that died of a fault nobody has asked about yet.
    pub fn fault_next(&mut self) -> Result<(u16, Fault), i64> {
        let asid = (1..map::MAX_DOMAINS as u16).find(|n| self.domain(*n).untold).ok_or(errno::ENOENT)?;
        let d = self.domain_mut(asid);
        d.untold = false;
        Ok((asid, d.fault))
    }
}

//! Faults: somebody answers for the address, or the domain dies and the process server is told why.
//!
//! A domain dies of its first fault, so it has at most one record, which it keeps until that is read or the domain is forgotten.

use crate::ranges::Turn;
use crate::space::leaf_slot;
use crate::{Ask, Machine, Vm};
use pebble_abi::map::{self, PAGE, PTE_R, PTE_U, PTE_V, PTE_W, PTE_X};
use pebble_abi::{errno, sys};

/// Causes beyond the hardware's.
pub const NOT_HELD: u8 = 64;
pub const INVOCATION_OVERFLOW: u8 = 65;
pub const STACK_OVERFLOW: u8 = 66;
/// In a range, below as many handlers as one thread may have called.
pub const HANDLERS: u8 = 67;

/// `ecall` from user mode, as the hardware says it.
const CALL: u64 = 8;
const FETCH_PAGE_FAULT: u64 = 12;
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

/// Cause of what need not be told.
pub(crate) const TOLD: u8 = 0xff;

/// What has become of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The domain was dead already, or the page has come meanwhile.
    Settled,
    /// It is dead, and there is news for the process server.
    Died,
    /// A handler is to be asked, the lock released, and [`Vm::answered`] told.
    Ask(Ask),
    /// Others of its family are being asked for: the thread may fault again.
    Later,
}

impl<M: Machine> Vm<M> {
    /// A thread faulted in a domain.
    pub fn fault(
        &mut self,
        cause: u64,
        value: u64,
        address: u64,
        asid: u64,
        thread: u64,
        t0: u64,
    ) -> Outcome {
        let Ok(asid) = self.alive(asid) else { return Outcome::Settled };
        let index = t0 & (map::TABLE_ENTRIES as u64 - 1);
        let (cause, value) = match cause {
            CALL if self.held(asid, index) => (INVOCATION_OVERFLOW, index),
            CALL => (NOT_HELD, t0),
            FETCH_PAGE_FAULT | LOAD_PAGE_FAULT | STORE_PAGE_FAULT => {
                if self.reachable(asid, cause, value) {
                    self.machine.flush(asid);
                    return Outcome::Settled;
                }
                match self.ask(asid, thread as u8, value, cause) {
                    Some(Turn::Ask(ask)) => return Outcome::Ask(ask),
                    Some(Turn::Later) => return Outcome::Later,
                    Some(Turn::Refused) => (HANDLERS, value),
                    None if cause != FETCH_PAGE_FAULT && self.below_stack(asid, value) => {
                        (STACK_OVERFLOW, value)
                    }
                    None => (cause as u8, value),
                }
            }
            _ => (cause.min(u64::from(NOT_HELD) - 1) as u8, value),
        };
        self.die(asid, Fault { cause, thread: thread as u8, value, address })
    }

    /// A handler has been asked. Whatever it says, a page that is there now saves the domain, and nothing else: of two handlers that are asked
    /// about one page for two threads, the second can provide none.
    pub fn answered(&mut self, ask: &Ask, address: u64, thread: u64) -> Outcome {
        self.asked(ask);
        if self.alive(ask.asid.into()).is_err() || self.reachable(ask.asid, ask.cause, ask.address) {
            return Outcome::Settled;
        }
        let fault = Fault { cause: ask.cause as u8, thread: thread as u8, value: ask.address, address };
        self.die(ask.asid, fault)
    }

    fn die(&mut self, asid: u16, fault: Fault) -> Outcome {
        self.keep_dump(asid, fault.thread);
        if self.kill(asid).is_err() {
            return Outcome::Settled;
        }
        let d = self.domain_mut(asid);
        (d.cause, d.culprit, d.value, d.address) = (fault.cause, fault.thread, fault.value, fault.address);
        Outcome::Died
    }

    /// Whether user mode may do what it has faulted at.
    fn reachable(&self, asid: u16, cause: u64, va: u64) -> bool {
        let right = match cause {
            FETCH_PAGE_FAULT => PTE_X,
            LOAD_PAGE_FAULT => PTE_R,
            _ => PTE_W,
        };
        let Some(l0) = self.l0(asid, va).filter(|_| va < map::USER_END) else { return false };
        let needed = PTE_V | PTE_U | right;
        self.machine.read(leaf_slot(l0, va)) & needed == needed
    }

    /// Whether the portal at this index leads anywhere but into a fault: the nucleus's own entries are no portals.
    fn held(&self, asid: u16, index: u64) -> bool {
        let Some(page) = self.page(asid, map::TABLE_VA + index * 8) else { return false };
        let word = self.machine.read(page + index * 8 % PAGE);
        let raises = [sys::UNWIND as u64, sys::THREAD_END as u64];
        let nucleus = index <= sys::INTERRUPT as u64 || raises.contains(&index);
        !nucleus && self.common().is_ok_and(|c| word != c.code.none)
    }

    /// Whether the address, which is not mapped, belongs to a stack that the domain runs on.
    fn below_stack(&self, asid: u16, address: u64) -> bool {
        let Some(offset) = address.checked_sub(map::STACKS_VA).filter(|_| address < map::USER_END) else {
            return false;
        };
        let owner = (offset / map::STACKS_STRIDE) as u16;
        let slot = offset % map::STACKS_STRIDE / map::STACK_SLOT;
        let copies = owner != asid && self.own_stacks(asid, map::stacks_of(owner));
        copies
            || (owner == asid || self.sees_stacks(asid, owner)) && self.domain(owner).slots >> slot & 1 == 1
    }

    /// A domain that died of a fault nobody has asked about yet. What was kept of those told before is gone.
    pub fn fault_next(&mut self) -> Result<(u16, Fault), i64> {
        self.drop_dumps();
        let asid =
            (1..map::MAX_DOMAINS as u16).find(|n| self.domain(*n).cause != TOLD).ok_or(errno::ENOENT)?;
        let d = self.domain_mut(asid);
        let fault = Fault { cause: d.cause, thread: d.culprit, value: d.value, address: d.address };
        d.cause = TOLD;
        Ok((asid, fault))
    }
}

//! Ranges of a domain's memory whose page faults somebody else answers.
//!
//! A range belongs to the faulting domain's control page. Its handler is reached through a portal of this component, which the portal manager
//! has opened; it is called with no lock held, and meanwhile may [`Vm::provide`] pages of its own. Who waits for a handler holds one of this
//! component's stacks, and the handler needs another to provide: so few are asked at once, and the others come again.
//!
//! A range dies with either side. Its record stays while somebody is being asked.

use crate::slots::RANGES;
use crate::space::{USER_R, USER_RW, leaf_slot, pages_in};
use crate::{Answer, Machine, Vm};
use core::ops::Range;
use pebble_abi::map::{self, PAGE, PTE_R, PTE_V, PTE_W};
use pebble_abi::{errno, sys};

/// Handlers asked at once.
const ASKED: u8 = 2;
/// A record: first address (0: free), end, handler's domain with the portal's index in bits 16 and up, how many faults it is asked about.
const END: u64 = 8;
const WHO: u64 = 16;
const BUSY: u64 = 24;
const RECORD: u64 = 32;
const RECORDS: u64 = (PAGE - RANGES) / RECORD;

/// A question to a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Of the portal to the handler, in the VM manager's table.
    pub index: u16,
    pub asid: u16,
    pub address: u64,
    pub cause: u64,
    record: u64,
}

impl<M: Machine> Vm<M> {
    fn records(&self, asid: u16) -> Range<u64> {
        self.control(asid).map_or(0..0, |control| control + RANGES..control + RANGES + RECORDS * RECORD)
    }

    fn record(&self, asid: u16, address: u64) -> Option<u64> {
        let holds = |r: &u64| (self.machine.read(*r)..self.machine.read(r + END)).contains(&address);
        self.records(asid).step_by(RECORD as usize).find(|r| self.machine.read(*r) != 0 && holds(r))
    }

    /// Faults in these pages go through a portal: `who` is its index in bits 16 and up, its handler's domain below. No pages: no longer; the
    /// portal's index.
    pub fn range_set(&mut self, asid: u64, address: u64, pages: u64, who: u64) -> Answer {
        let asid = self.alive(asid)?;
        if pages == 0 {
            let record = self.record(asid, address).filter(|r| self.machine.read(*r) == address);
            let record = record.ok_or(errno::ENOENT)?;
            if self.machine.read(record + BUSY) != 0 {
                return Err(errno::EAGAIN);
            }
            self.machine.write(record, 0);
            return Ok(self.machine.read(record + WHO) >> 16);
        }
        let range = pages_in(self.image_range(asid), address, pages)?;
        let index = who >> 16;
        if self.alive(who & 0xffff)? == asid
            || !(sys::FIRST_FREE as u64..map::TABLE_ENTRIES as u64).contains(&index)
        {
            return Err(errno::EINVAL);
        }
        self.make_control(asid)?;
        let mut free = None;
        for record in self.records(asid).step_by(RECORD as usize) {
            let start = self.machine.read(record);
            if start == 0 {
                free = free.or(Some(record));
            } else if start < range.end && range.start < self.machine.read(record + END) {
                return Err(errno::EEXIST);
            }
        }
        let record = free.ok_or(errno::EAGAIN)?;
        for (at, word) in [(0, range.start), (END, range.end), (WHO, who), (BUSY, 0)] {
            self.machine.write(record + at, word);
        }
        Ok(0)
    }

    /// Whether somebody answers for this address, and is to be asked now (`Some(None)`: later).
    pub(crate) fn ask(&mut self, asid: u16, address: u64, cause: u64) -> Option<Option<Ask>> {
        let record = self.record(asid, address)?;
        let who = self.machine.read(record + WHO);
        if who == 0 {
            return None;
        }
        if self.asked >= ASKED {
            return Some(None);
        }
        self.asked += 1;
        self.machine.write(record + BUSY, self.machine.read(record + BUSY) + 1);
        Some(Some(Ask { index: (who >> 16) as u16, asid, address, cause, record }))
    }

    /// A handler has answered, or cannot any more.
    pub(crate) fn asked(&mut self, ask: &Ask) {
        self.asked -= 1;
        // The domain, dead or not, has kept its control page: the thread that faulted was still in it.
        let busy = self.machine.read(ask.record + BUSY) - 1;
        self.machine.write(ask.record + BUSY, busy);
        if busy == 0 && self.machine.read(ask.record + WHO) == 0 {
            self.machine.write(ask.record, 0);
        }
    }

    /// A handler has died: nobody asks it any more.
    pub(crate) fn forget_handler(&mut self, asid: u16) {
        for other in 1..map::MAX_DOMAINS as u16 {
            for record in self.records(other).step_by(RECORD as usize) {
                if self.machine.read(record) != 0 && self.machine.read(record + WHO) & 0xffff == asid.into() {
                    self.machine.write(record + WHO, 0);
                    if self.machine.read(record + BUSY) == 0 {
                        self.machine.write(record, 0);
                    }
                }
            }
        }
    }

    /// A page of the handler's own moves to where a domain is waiting for one.
    pub fn provide(&mut self, caller: u64, asid: u64, address: u64, page: u64, flags: u64) -> Answer {
        let caller = self.alive(caller)?;
        let asid = self.alive(asid)?;
        let rights = match flags {
            PTE_R => USER_R,
            _ if flags == PTE_R | PTE_W => USER_RW,
            _ => return Err(errno::EINVAL),
        };
        let serves = |r: &u64| {
            self.machine.read(r + WHO) & 0xffff == caller.into() && self.machine.read(r + BUSY) != 0
        };
        self.record(asid, address).filter(serves).ok_or(errno::EPERM)?;
        if !address.is_multiple_of(PAGE) {
            return Err(errno::EINVAL);
        }
        let (word, entry) = self.own_page(caller, page)?;
        let l0 = self.make_l0(asid, address)?;
        if self.machine.read(leaf_slot(l0, address)) & PTE_V != 0 {
            return Err(errno::EEXIST);
        }
        if self.charge(asid) >= self.domain(asid).limit {
            return Err(errno::ENOMEM);
        }
        let alone = !self.is_goal(caller, page);
        if !self.machine.exchange(word, entry, 0) {
            return Err(errno::EAGAIN);
        }
        self.machine.flush(caller);
        self.charge_more(caller, -1);
        self.charge_more(asid, 1);
        self.machine.write(leaf_slot(l0, address), map::pte(map::pte_pa(entry), rights));
        self.machine.flush(asid);
        self.recover(caller, page, word, alone);
        Ok(0)
    }
}

const _: () = assert!(RECORDS == 8);

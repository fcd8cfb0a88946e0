//! Ranges of a domain's memory whose page faults somebody else answers.
//!
//! A range belongs to the faulting domain's control page. Its handler is reached through a portal of this
//! component, which the portal manager has opened; it is called with no lock held, and meanwhile may
//! [`Vm::provide`] pages of its own. A range dies with either side. Its record stays while somebody is being
//! asked.
//!
//! Who waits for a handler holds one of this component's stacks, for as long as the handler likes. So each
//! family that has ranges has [`LEVELS`] such stacks: the portal manager adds them when a family's first
//! range begins. One is for its threads, which take turns and come again; one for a handler that faults while
//! it is asked. **Invariants:** there are more stacks than threads that ask handlers; nobody waits for a
//! stack who has taken [`LEVELS`] of them, so all who wait are waited for by nobody; a family waits for its
//! own handlers alone.

use crate::slots::RANGES;
use crate::space::{leaf_slot, pages_in};
use crate::{Answer, Machine, Vm};
use core::num::NonZeroU16;
use core::ops::Range;
use pebble_abi::errno::{self, Errno};
use pebble_abi::fault::Cause;
use pebble_abi::map::{self, PAGE, READ, WRITE};
use pebble_abi::share::HANDLERS;
use pebble_abi::sys;
use pebble_abi::words::{Asid, VirtAddr};
use pebble_arch::{Arch, Leaf};

/// Handlers that one thread may have called, each by a fault in the one before: so many stacks a family has,
/// one for each.
const LEVELS: usize = HANDLERS.family;
/// Stacks of this component that no handler keeps.
const KEPT: usize = 2;
/// A record: first address (0: free), end, handler's domain with the portal's index in bits 16 to 31, how
/// many faults it is asked about.
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
    pub cause: Cause,
    record: u64,
    /// Index of who waits in [`Vm`]'s `asking`.
    asking: u8,
}

/// A thread that waits for what a handler says.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asking {
    /// The domain that has faulted.
    asid: NonZeroU16,
    thread: u8,
    /// How many handlers the thread has called before.
    level: u8,
}

// Nobody costs nothing.
const _: () = assert!(size_of::<Option<Asking>>() == 4);

/// What becomes of a fault for which somebody answers.
pub(crate) enum Turn {
    Ask(Ask),
    /// Others of the family have its stack.
    Later,
    /// The thread has called as many handlers as one may.
    Refused,
}

impl<M: Machine> Vm<M> {
    fn records(&self, asid: u16) -> Range<u64> {
        self.control(asid).map_or(0..0, |control| control + RANGES..control + RANGES + RECORDS * RECORD)
    }

    fn record(&self, asid: u16, address: u64) -> Option<u64> {
        let holds = |r: &u64| (self.machine.read(*r)..self.machine.read(r + END)).contains(&address);
        self.records(asid).step_by(RECORD as usize).find(|r| self.machine.read(*r) != 0 && holds(r))
    }

    /// Two of this component's stacks, of which there are so many, for the family of a domain that gets a
    /// range. `ESTACKS`: with two more.
    fn grant_stacks(&self, asid: u16, stacks: usize) -> Result<(), Errno> {
        let family = |asid: u16| usize::from(self.domain(asid).family);
        let mut has = [false; map::MAX_DOMAINS];
        for other in self.numbers() {
            let ranges = || self.records(other).step_by(RECORD as usize).any(|r| self.machine.read(r) != 0);
            has[family(other)] |= ranges();
        }
        // What has died may have left a thread with a handler.
        self.asking.iter().flatten().for_each(|a| has[family(a.asid.get())] = true);
        if has[family(asid)] {
            return Ok(());
        }
        let used = has.iter().filter(|has| **has).count() * LEVELS;
        HANDLERS.grant(family(asid) as u16, 0, used, LEVELS)?;
        if used + LEVELS + KEPT > stacks { Err(errno::ESTACKS) } else { Ok(()) }
    }

    /// Faults in these pages go through a portal: `who` is its index in bits 16 to 31, its handler's domain
    /// below, and above how many stacks this component has. No pages: no longer; the portal's index.
    pub fn range_set(&mut self, asid: Asid, VirtAddr(address): VirtAddr, pages: u64, who: u64) -> Answer {
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
        let (who, stacks) = (who & 0xffff_ffff, who >> 32);
        let index = who >> 16;
        if self.alive(Asid(who & 0xffff))? == asid
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
        self.grant_stacks(asid, stacks as usize)?;
        for (at, word) in [(0, range.start), (END, range.end), (WHO, who), (BUSY, 0)] {
            self.machine.write(record + at, word);
        }
        Ok(0)
    }

    /// Whether somebody answers for this address, and is to be asked now.
    pub(crate) fn ask(&mut self, asid: u16, thread: u8, address: u64, cause: Cause) -> Option<Turn> {
        let record = self.record(asid, address)?;
        let who = self.machine.read(record + WHO);
        if who == 0 {
            return None;
        }
        let asking = || self.asking.iter().flatten();
        let level = asking().filter(|a| a.thread == thread).count();
        if level >= LEVELS {
            return Some(Turn::Refused);
        }
        let family = |asid: u16| self.domain(asid).family;
        if asking().any(|a| usize::from(a.level) == level && family(a.asid.get()) == family(asid)) {
            return Some(Turn::Later);
        }
        let Some(free) = self.asking.iter().position(Option::is_none) else { return Some(Turn::Later) };
        self.asking[free] = NonZeroU16::new(asid).map(|asid| Asking { asid, thread, level: level as u8 });
        self.machine.write(record + BUSY, self.machine.read(record + BUSY) + 1);
        Some(Turn::Ask(Ask { index: (who >> 16) as u16, asid, address, cause, record, asking: free as u8 }))
    }

    /// A handler has answered, or cannot any more.
    pub(crate) fn asked(&mut self, ask: &Ask) {
        self.asking[usize::from(ask.asking)] = None;
        // The domain, dead or not, has kept its control page: the thread that faulted was still in it.
        let busy = self.machine.read(ask.record + BUSY) - 1;
        self.machine.write(ask.record + BUSY, busy);
        if busy == 0 && self.machine.read(ask.record + WHO) == 0 {
            self.machine.write(ask.record, 0);
        }
    }

    /// A handler has died: nobody asks it any more.
    pub(crate) fn forget_handler(&mut self, asid: u16) {
        for other in self.numbers() {
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
    pub fn provide(
        &mut self,
        caller: Asid,
        asid: Asid,
        VirtAddr(address): VirtAddr,
        VirtAddr(page): VirtAddr,
        rights: u64,
    ) -> Answer {
        let caller = self.alive(caller)?;
        let asid = self.alive(asid)?;
        let leaf = match rights {
            READ => Leaf::USER_R,
            _ if rights == READ | WRITE => Leaf::USER_RW,
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
        if self.machine.read(leaf_slot(l0, address)) != 0 {
            return Err(errno::EEXIST);
        }
        if self.charge(asid) >= self.domain(asid).limit.into() {
            return Err(errno::ENOMEM);
        }
        let alone = !self.is_goal(caller, page);
        if !self.machine.exchange(word, entry, 0) {
            return Err(errno::EAGAIN);
        }
        self.machine.flush(caller);
        self.charge_more(caller, -1);
        self.charge_more(asid, 1);
        self.machine.write(leaf_slot(l0, address), M::Arch::leaf(M::Arch::address(entry), leaf));
        self.machine.flush(asid);
        self.recover(caller, page, word, alone);
        Ok(0)
    }
}

const _: () = assert!(RECORDS == 8 && HANDLERS.all + KEPT < map::STACKS_PER_DOMAIN);

//! Families and their shares ([`pebble_abi::share`]): who may have more of what the portal manager gives
//! away.
//!
//! What a family has is counted when it asks for more, in the tables that are there anyway: nothing is kept
//! in step by hand. Portal code is made all the time, so its use is looked at only when as much is in use as
//! one family may have.

use crate::manager::{Domain, Manager};
use core::num::NonZeroU16;
use pebble_abi::errno::{self, Errno};
use pebble_abi::map;
use pebble_abi::share::{self, Share};
use pebble_abi::words::Asid;
use pebble_arch::Arch;

impl<A: Arch> Manager<A> {
    /// The domain, which may be about to get its table, belongs to that family from now on; 0: to the image.
    pub fn set_family(&mut self, asid: Asid, family: u64) -> Result<(), Errno> {
        if family >= map::MAX_DOMAINS as u64 {
            return Err(errno::EINVAL);
        }
        let n = asid.below(self.domains.len()).ok_or(errno::ESRCH)?;
        let domain = &mut self.domains[n];
        domain.family = family as u16;
        Ok(())
    }

    /// The family of a domain, whoever's.
    pub fn family(&self, asid: u16) -> u16 {
        self.domains.get(usize::from(asid)).map_or(0, |d| d.family)
    }

    /// May the domain's family have so many more of what these have?
    fn grant(
        &self,
        asid: u16,
        share: &Share,
        owners: impl Iterator<Item = (u16, usize)>,
        more: usize,
    ) -> Result<(), Errno> {
        let family = self.family(asid);
        let (mut its, mut used) = (0, 0);
        for (owner, count) in owners {
            used += count;
            its += if self.family(owner) == family { count } else { 0 };
        }
        share.grant(family, its, used, more)
    }

    /// One more interface with a name.
    pub(crate) fn grant_interface(&self, asid: u16) -> Result<(), Errno> {
        let named = self.interfaces.iter().filter(|i| i.asid != 0 && !i.name.is_empty());
        self.grant(asid, &share::INTERFACES, named.map(|i| (i.asid, 1)), 1)
    }

    /// One more semaphore, before the scheduler is asked for it.
    pub fn grant_semaphore(&self, asid: Asid) -> Result<(), Errno> {
        let made = self.semaphores.owners.iter().flatten();
        self.grant(asid.number(), &share::SEMAPHORES, made.map(|owner| (owner.get(), 1)), 1)
    }

    /// One more name for a semaphore.
    pub(crate) fn grant_published(&self, asid: u16) -> Result<(), Errno> {
        let owner = |id: &u16| self.semaphores.owners.get(usize::from(*id)).copied().flatten();
        let owner = |id: &u16| owner(id).map_or(0, NonZeroU16::get);
        self.grant(asid, &share::PUBLISHED, self.semaphores.published.iter().map(|(_, id)| (owner(id), 1)), 1)
    }

    /// One more stack in a domain's queue.
    pub(crate) fn grant_stack(&self, asid: u16) -> Result<(), Errno> {
        let queues = self.known().filter(|(_, d)| d.stacks != 0);
        self.grant(asid, &share::STACKS, queues.map(|(asid, d)| (asid, d.stacks.into())), 1)
    }

    /// One more counter, of a portal in a domain's table.
    pub(crate) fn grant_counter(&self, asid: u16) -> Result<(), Errno> {
        let counted = |d: &Domain| d.slots.used().filter(|(_, slot)| slot.counter.is_some()).count();
        let tables = self.known().filter(|(_, d)| d.counting);
        self.grant(asid, &share::COUNTERS, tables.map(|(asid, d)| (asid, counted(d))), 1)
    }

    /// One more range of addresses with a handler.
    pub(crate) fn grant_range(&self, asid: u16) -> Result<(), Errno> {
        self.grant(asid, &share::RANGES, self.handled.iter().map(|h| (h.asid, 1)), 1)
    }

    /// So many parts more of what is known of a domain's table.
    pub(crate) fn grant_table(&self, asid: u16, more: usize) -> Result<(), Errno> {
        let tables = self.known().map(|(asid, d)| (asid, d.slots.chunks()));
        self.grant(asid, &share::TABLES, tables, more)
    }

    /// Another portal in a domain's table, however long its code is.
    pub(crate) fn grant_code(&self, asid: u16) -> Result<(), Errno> {
        let used = self.made.arena.used() as usize;
        if used < share::CODE.family || self.family(asid) == 0 {
            return Ok(());
        }
        let (family, mut its) = (self.family(asid), 0);
        for (asid, domain) in self.known().filter(|(_, d)| d.alive) {
            domain.slots.each_used(|_, slot| {
                its += if self.family(self.payer(asid, slot)) == family { slot.run.len as usize } else { 0 };
            });
        }
        share::CODE.grant(family, its, used, 1)
    }
}

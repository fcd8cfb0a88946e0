//! Page tables: entries, ranges of pages, and what lies in them when a domain dies.
//!
//! A domain's user half is one level-1 table.

use crate::{Answer, Machine, RESERVE, Vm};
use core::num::NonZeroU16;
use core::ops::Range;
use pebble_abi::errno::{self, Errno};
use pebble_abi::map::{self, PAGE};
use pebble_abi::share;
use pebble_arch::{Arch, Leaf, SPAN, slot};

/// Entry of a page in a level-0 table.
pub(crate) fn leaf_slot(l0: u64, va: u64) -> u64 {
    slot(l0, 0, va)
}

/// Entry of a domain's stacks in a level-1 table.
pub(crate) fn stacks_slot(l1: u64, owner: u16) -> u64 {
    slot(l1, 1, map::stacks_of(owner))
}

pub(crate) fn page_up(at: u64) -> u64 {
    at.saturating_add(PAGE - 1) & !(PAGE - 1)
}

/// `pages` pages from `address`, if they lie in `within`.
pub(crate) fn pages_in(within: Range<u64>, address: u64, pages: u64) -> Result<Range<u64>, Errno> {
    let end = pages.checked_mul(PAGE).and_then(|bytes| address.checked_add(bytes));
    match end {
        Some(end)
            if pages > 0 && address.is_multiple_of(PAGE) && within.start <= address && end <= within.end =>
        {
            Ok(address..end)
        }
        _ => Err(errno::EINVAL),
    }
}

/// The parts of a range of pages that one level-0 table maps each.
pub(crate) fn parts(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let tables = (range.start / SPAN * SPAN..range.end).step_by(SPAN as usize);
    tables.map(move |at| at.max(range.start)..range.end.min(at + SPAN))
}

/// Their entries in that table.
pub(crate) fn leaves(l0: u64, part: Range<u64>) -> impl Iterator<Item = u64> {
    let first = leaf_slot(l0, part.start);
    (0..(part.end - part.start) / PAGE).map(move |n| first + n * 8)
}

impl<M: Machine> Vm<M> {
    /// Free pages that nobody is promised.
    pub(crate) fn unclaimed(&self) -> usize {
        self.frames.free().saturating_sub(self.promised as usize)
    }

    /// Whether a domain may have so many pages more.
    pub(crate) fn afford(&self, asid: u16, pages: u64) -> Result<(), Errno> {
        let d = self.domain(asid);
        // Of those that programs leave, the idle thread has a few.
        let reserve = if d.boot { self.frames.away() } else { RESERVE };
        let allowed = u64::from(u32::from(d.limit).saturating_sub(self.charge(asid)))
            .min(self.unclaimed().saturating_sub(reserve) as u64);
        if pages > allowed { Err(errno::ENOMEM) } else { self.afford_together(d.family, pages) }
    }

    /// Whether a family may have so many pages more. It is asked only when it could have its share: counting
    /// costs a look at every domain.
    fn afford_together(&self, family: u8, pages: u64) -> Result<(), Errno> {
        let used = share::PAGES.all.saturating_sub(self.unclaimed());
        if family == 0 || used + (pages as usize) < share::PAGES.family {
            return Ok(());
        }
        let its = self.numbers().filter(|asid| self.domain(*asid).family == family);
        let its = its.map(|asid| self.charge(asid) as usize).sum();
        share::PAGES.grant(family.into(), its, used, pages as usize)
    }

    /// A zeroed page for a domain.
    pub(crate) fn take(&mut self, asid: u16) -> Answer {
        self.afford(asid, 1)?;
        let pa = self.frames.take(&mut self.machine).ok_or(errno::ENOMEM)?;
        self.charge_more(asid, 1);
        Ok(pa)
    }

    /// A page for a domain, all of which is overwritten before anybody sees it.
    pub(crate) fn take_any(&mut self, asid: u16) -> Answer {
        self.afford(asid, 1)?;
        let pa = self.frames.take_any(&mut self.machine).ok_or(errno::ENOMEM)?;
        self.charge_more(asid, 1);
        Ok(pa)
    }

    pub(crate) fn give(&mut self, asid: u16, pa: u64) {
        self.frames.give(pa);
        self.charge_more(asid, -1);
    }

    /// The same of a table, or of what else only privileged code sees.
    pub(crate) fn give_table(&mut self, asid: u16, pa: u64) {
        self.frames.give_unseen(pa);
        self.charge_more(asid, -1);
    }

    /// The table behind a valid entry that is no leaf.
    pub(crate) fn table(&self, slot: u64) -> Option<u64> {
        let entry = self.machine.read(slot);
        M::Arch::is_table(entry).then(|| M::Arch::address(entry))
    }

    /// The domain's level-0 table for `va`.
    pub(crate) fn l0(&self, asid: u16, va: u64) -> Option<u64> {
        self.table(slot(self.domain(asid).l1(), 1, va))
    }

    /// The same, made if absent.
    pub(crate) fn make_l0(&mut self, asid: u16, va: u64) -> Answer {
        let slot = slot(self.domain(asid).l1(), 1, va);
        match self.table(slot) {
            Some(l0) => Ok(l0),
            None if M::Arch::is_valid(self.machine.read(slot)) => Err(errno::EEXIST),
            None => {
                let l0 = self.take(asid)?;
                self.machine.write(slot, M::Arch::table(l0));
                Ok(l0)
            }
        }
    }

    /// The page mapped at `va`.
    pub(crate) fn page(&self, asid: u16, va: u64) -> Option<u64> {
        let entry = self.machine.read(leaf_slot(self.l0(asid, va)?, va));
        M::Arch::is_valid(entry).then(|| M::Arch::address(entry))
    }

    /// Whether a page of the domain's own is.
    pub(crate) fn has_page(&self, asid: u16, va: u64) -> bool {
        self.l0(asid, va).is_some_and(|l0| M::Arch::is_own(self.machine.read(leaf_slot(l0, va))))
    }

    /// Whether anything is.
    pub(crate) fn mapped(&self, asid: u16, range: Range<u64>) -> bool {
        self.next_page(asid, range).is_some()
    }

    /// Nothing is there, and there are tables for what comes.
    #[inline(never)]
    pub(crate) fn make_place(&mut self, asid: u16, range: Range<u64>) -> Result<(), Errno> {
        if self.mapped(asid, range.clone()) {
            return Err(errno::EEXIST);
        }
        let mut at = range.start;
        while at < range.end {
            self.make_l0(asid, at)?;
            at = (at / SPAN + 1) * SPAN;
        }
        Ok(())
    }

    /// An entry, where there is a table for it.
    #[inline(never)]
    pub(crate) fn put(&mut self, asid: u16, va: u64, entry: u64) {
        if let Some(l0) = self.l0(asid, va) {
            self.machine.write(leaf_slot(l0, va), entry);
        }
    }

    /// Where in this range the next page is that is mapped. Most entries of most tables are empty, and most
    /// tables are missing.
    pub(crate) fn next_page(&self, asid: u16, mut range: Range<u64>) -> Option<u64> {
        while range.start < range.end {
            let end = (range.start / SPAN + 1) * SPAN;
            if let Some(l0) = self.l0(asid, range.start) {
                let left = (end.min(range.end) - range.start) / PAGE;
                let empty = self.machine.zeros(leaf_slot(l0, range.start), left);
                if empty < left {
                    return Some(range.start + empty * PAGE);
                }
                range.start = end;
            } else {
                let table = slot(self.domain(asid).l1(), 1, range.start);
                let tables = (range.end - range.start).div_ceil(SPAN);
                range.start = (range.start / SPAN + self.machine.zeros(table, tables).max(1)) * SPAN;
            }
        }
        None
    }

    /// How many pages of a range are not mapped.
    pub(crate) fn missing(&self, asid: u16, range: Range<u64>) -> u64 {
        let next = |at: u64| self.next_page(asid, at..range.end);
        let mapped = core::iter::successors(next(range.start), |page| next(page + PAGE)).count() as u64;
        (range.end - range.start) / PAGE - mapped
    }

    /// The domain may have fresh pages there, where nothing is, and has tables for them.
    fn make_room(&mut self, asid: u16, range: Range<u64>) -> Result<(), Errno> {
        let pages = (range.end - range.start) / PAGE;
        self.afford(asid, pages)?;
        let before = self.domain(asid).pages;
        for part in parts(range) {
            let (l0, count) = (self.make_l0(asid, part.start)?, (part.end - part.start) / PAGE);
            if self.machine.zeros(leaf_slot(l0, part.start), count) < count {
                return Err(errno::EEXIST);
            }
        }
        // The tables count too.
        if self.domain(asid).pages == before { Ok(()) } else { self.afford(asid, pages) }
    }

    /// Maps fresh pages; all or none. `leaf` none: they come when they are touched. The caller flushes.
    pub(crate) fn map_fresh(
        &mut self,
        asid: u16,
        range: Range<u64>,
        leaf: Option<Leaf>,
    ) -> Result<(), Errno> {
        self.make_room(asid, range.clone())?;
        // Nothing below fails: it is granted.
        for part in parts(range) {
            let l0 = self.make_l0(asid, part.start)?;
            for word in leaves(l0, part) {
                let entry = match leaf {
                    Some(leaf) => {
                        let pa = self.frames.take(&mut self.machine).ok_or(errno::ENOMEM)?;
                        self.charge_more(asid, 1);
                        M::Arch::leaf(pa, leaf)
                    }
                    None => {
                        self.promise(asid, 1);
                        M::Arch::PROMISED
                    }
                };
                self.machine.write(word, entry);
            }
        }
        Ok(())
    }

    /// What a word of a domain's tables says; a page that is promised there comes.
    #[inline(always)]
    pub(crate) fn entry(&mut self, asid: u16, word: u64) -> u64 {
        match self.machine.read(word) {
            entry if entry == M::Arch::PROMISED && self.keep_promise(asid, word) => self.machine.read(word),
            entry => entry,
        }
    }

    /// The page comes that was promised where this word of a domain's tables is, if one was.
    #[inline(never)]
    pub(crate) fn keep_promise(&mut self, asid: u16, word: u64) -> bool {
        if self.machine.read(word) != M::Arch::PROMISED {
            return false;
        }
        // It is there, since it was kept.
        let Some(pa) = self.frames.take(&mut self.machine) else { return false };
        self.promise_kept(asid);
        self.machine.write(word, M::Arch::leaf(pa, Leaf::USER_RW));
        self.machine.flush(asid);
        true
    }

    /// Unmaps pages, and gives back those that the domain owns or is promised. The caller flushes, under the
    /// same lock.
    pub(crate) fn unmap(&mut self, asid: u16, range: Range<u64>) {
        for part in parts(range) {
            let Some(l0) = self.l0(asid, part.start) else { continue };
            let (mut word, mut left) = (leaf_slot(l0, part.start), (part.end - part.start) / PAGE);
            while left > 0 {
                // Most are empty. Nothing but this server fills one.
                if self.machine.read(word) == 0 {
                    let empty = self.machine.zeros(word, left);
                    (word, left) = (word + empty * 8, left - empty);
                    continue;
                }
                let entry = self.swap(word, 0);
                if M::Arch::is_own(entry) {
                    self.give(asid, M::Arch::address(entry));
                } else if entry == M::Arch::PROMISED {
                    self.break_promise(asid, 1);
                }
                (word, left) = (word + 8, left - 1);
            }
        }
    }

    /// Maps somebody's page at an address of a trusted server, if the system has that server.
    pub(crate) fn window(&mut self, server: Option<NonZeroU16>, va: u64, pa: u64) -> Result<(), Errno> {
        if let Some(server) = self.living(server) {
            self.make_l0(server, va)?;
            self.put(server, va, M::Arch::leaf(pa, Leaf::FOREIGN_RW));
            self.machine.flush(server);
        }
        Ok(())
    }

    /// The inverse of [`window`](Self::window).
    pub(crate) fn shut(&mut self, server: Option<NonZeroU16>, pages: Range<u64>) {
        let Some(server) = self.living(server) else { return };
        pages.step_by(PAGE as usize).for_each(|va| self.put(server, va, 0));
        self.machine.flush(server);
    }

    /// Gives back all that a dying domain owns, but the level-1 table, the lowest level-0 table with the
    /// portal table, and what windows need. Nobody runs on these tables any more.
    pub(crate) fn drain(&mut self, asid: u16) {
        let l1 = self.domain(asid).l1();
        let mut n = 0;
        loop {
            // Most are empty.
            n += self.machine.zeros(slot(l1, 1, n * SPAN), 512 - n);
            if n == 512 {
                break;
            }
            let va = n * SPAN;
            let slot = slot(l1, 1, va);
            n += 1;
            if (map::WINDOWS_VA..map::STACKS_VA).contains(&va) {
                continue;
            }
            let entry = self.machine.read(slot);
            let own_stacks = self.own_stacks(asid, va);
            let large = M::Arch::is_valid(entry) && !M::Arch::is_table(entry);
            if (map::STACKS_VA..map::USER_END).contains(&va) && !own_stacks || large {
                self.machine.write(slot, 0);
            } else if M::Arch::is_valid(entry) {
                let owned = if own_stacks { va..va + SPAN } else { self.image_range(asid) };
                // A copy has its stack among its parent's, and mostly no other.
                if self.domain(asid).slots != 0 || va != map::stacks_of(asid) {
                    self.unmap(asid, va.max(owned.start)..owned.end.min(va + SPAN));
                }
                if va != 0 {
                    self.machine.write(slot, 0);
                    self.give_table(asid, M::Arch::address(entry));
                }
            }
        }
        self.drain_windows(asid, false);
    }
}

//! Domains: made, filled, grown, killed, forgotten.
//!
//! Death is in two steps. [`Vm::domain_kill`] points the root at the shared dead tables, flushes, and takes
//! back all user memory; root and portal table stay, since threads may still return into the domain and be
//! bounced. [`Vm::domain_free`] takes those back once the process server knows that no thread does.

use crate::space::{leaf_slot, page_up, pages_in, stacks_slot};
use crate::{Answer, Domain, Machine, State, Vm};
use core::num::NonZeroU16;
use pebble_abi::errno::{self, Errno};
use pebble_abi::map::{self, EAGER, EXECUTE, FLOAT, PAGE, READ, WRITE};
use pebble_abi::words::{Asid, VirtAddr};
use pebble_arch::{Arch, Leaf, slot};

/// Root, level-1 table, lowest level-0 table, portal table, level-0 table of the stacks.
const BIRTH_PAGES: u32 = 5;
const TABLE_PAGES: u64 = map::TABLE_BYTES / PAGE;

impl<M: Machine> Vm<M> {
    /// A new domain: a portal table without entries, the gate page, no memory. `kind`: [`FLOAT`], [`EAGER`].
    pub fn domain_create(&mut self, kind: u64, limit: u64, priority: u64, threads: u64) -> Answer {
        let common = self.common()?;
        let limit = u32::try_from(limit).map_err(|_| errno::EINVAL)?.min(u16::MAX.into()) as u16;
        if kind & !(FLOAT | EAGER) != 0 || priority > 31 || !(1..=map::MAX_THREADS as u64).contains(&threads)
        {
            return Err(errno::EINVAL);
        }
        let free = |n: &usize| self.domains[*n].state == State::Free;
        let asid = (1..map::MAX_DOMAINS).find(free).ok_or(errno::EAGAIN)? as u16;
        let table_va = map::PM_TABLES_VA + u64::from(asid) * map::TABLE_BYTES;
        if let Some(portal_manager) = self.living(self.portal_manager) {
            self.make_l0(portal_manager, table_va)?;
        }
        *self.domain_mut(asid) = Domain {
            float: kind & FLOAT != 0,
            eager: kind & EAGER != 0,
            priority: priority as u8,
            thread_limit: threads.min(u8::MAX.into()) as u8,
            // Nobody's but its own, until it is said whose.
            family: asid as u8,
            limit,
            ..Domain::FREE
        };
        self.end = self.end.max(asid + 1);
        // Nothing below fails once this is granted.
        self.afford(asid, BIRTH_PAGES.into())?;
        let (root, l1) = (self.take(asid)?, self.take(asid)?);
        self.machine.write(root, M::Arch::table(l1));
        self.machine.write(slot(root, 2, map::KERNEL_VA), common.kernel_pte);
        let d = self.domain_mut(asid);
        (d.root, d.l1, d.state) = (root as u32, l1 as u32, State::Alive);
        self.make_l0(asid, map::stacks_of(asid))?;
        let low = self.make_l0(asid, 0)?;
        // A page of a portal table, none of whose indices is held.
        let table = self.take_any(asid)?;
        self.machine.fill_page(table, common.code.none);
        for page in 0..TABLE_PAGES {
            self.name_table(asid, low, page, if page == 0 { table } else { common.empty_table });
        }
        self.machine.write(leaf_slot(low, map::GATE_VA), M::Arch::leaf(common.gate, Leaf::FOREIGN_RX));
        // Somebody may have had this number before.
        self.machine.flush(asid);
        self.window(self.portal_manager, table_va, table)?;
        Ok(asid.into())
    }

    /// The trap handler finds this page of the domain's portal table from now on.
    fn name_table(&mut self, asid: u16, low: u64, page: u64, pa: u64) {
        self.machine.write(leaf_slot(low, map::TABLE_VA + page * PAGE), M::Arch::leaf(pa, Leaf::TABLE_R));
        if let Some(words) = M::Arch::PORTALS {
            self.machine.write(self.domain(asid).root() + words + page * 8, M::Arch::direct(pa));
        }
    }

    /// A page of its own for part of a domain's portal table, also in the portal manager's window. It is as
    /// empty as the shared one at every moment at which the domain sees it.
    pub fn table_page(&mut self, caller: Asid, asid: Asid, page: u64) -> Answer {
        let common = self.common()?;
        let asid = self.alive(asid)?;
        let portal_manager = self.portal_manager(caller)?;
        if !(1..TABLE_PAGES).contains(&page) {
            return Err(errno::EINVAL);
        }
        let va = map::TABLE_VA + page * PAGE;
        let low = self.l0(asid, va).ok_or(errno::ESRCH)?;
        if self.page(asid, va) != Some(common.empty_table) {
            return Err(errno::EEXIST);
        }
        let window = map::PM_TABLES_VA + u64::from(asid) * map::TABLE_BYTES + page * PAGE;
        self.make_l0(portal_manager, window)?;
        let pa = self.take_any(asid)?;
        self.machine.fill_page(pa, common.code.none);
        self.name_table(asid, low, page, pa);
        self.machine.flush(asid);
        self.window(self.portal_manager, window, pa)?;
        Ok(0)
    }

    /// Fresh pages in the image range. `rights`: `READ`, `WRITE`, `EXECUTE`; never both of the last.
    pub fn map(&mut self, asid: Asid, VirtAddr(address): VirtAddr, pages: u64, rights: u64) -> Answer {
        let asid = self.program(asid)?;
        let range = pages_in(self.image_range(asid), address, pages)?;
        if rights & READ == 0
            || rights & !(READ | WRITE | EXECUTE) != 0
            || rights & (WRITE | EXECUTE) == WRITE | EXECUTE
        {
            return Err(errno::EINVAL);
        }
        let leaf = Leaf::user(rights & WRITE != 0, rights & EXECUTE != 0);
        self.map_fresh(asid, range, Some(leaf))?;
        self.machine.flush(asid);
        Ok(0)
    }

    /// Where the heap begins: the page boundary at or after `address`; not once there is a heap.
    pub fn heap(&mut self, asid: Asid, VirtAddr(address): VirtAddr) -> Answer {
        let asid = self.program(asid)?;
        let start = page_up(address);
        let d = self.domain_mut(asid);
        if !(map::IMAGE_VA..=map::HEAP_END).contains(&start) || d.brk != d.heap {
            return Err(errno::EINVAL);
        }
        (d.heap, d.brk) = (start as u32, start as u32);
        Ok(0)
    }

    /// Moves the end of the heap; returns the old one.
    pub fn sbrk(&mut self, asid: Asid, bytes: i64) -> Answer {
        let asid = self.alive(asid)?;
        let (heap, old) = (u64::from(self.domain(asid).heap), u64::from(self.domain(asid).brk));
        let new = old
            .checked_add_signed(bytes)
            .filter(|new| heap != 0 && *new <= self.image_range(asid).end)
            .ok_or(errno::ENOMEM)?;
        if new < heap {
            return Err(errno::EINVAL);
        }
        let (from, to) = (page_up(old), page_up(new));
        if to > from {
            if !self.leaves_room(asid, (to - from) / PAGE) {
                return Err(errno::ENOMEM);
            }
            // Who has used up a heap, and asks for some more, will use that too, and need not fault for it.
            let used_up = (to - from) * 2 <= from - heap && self.has_page(asid, from - PAGE);
            let leaf = (self.domain(asid).eager || used_up).then_some(Leaf::USER_RW);
            self.map_fresh(asid, from..to, leaf).map_err(|_| errno::ENOMEM)?;
            self.machine.flush(asid);
        } else if to < from {
            self.detach_from(asid, to..from);
            self.unmap(asid, to..from);
            self.machine.flush(asid);
            self.revoke();
        }
        self.domain_mut(asid).brk = new as u32;
        Ok(old)
    }

    /// Ends a domain, on demand. A dead one is as dead as it was.
    pub fn domain_kill(&mut self, asid: Asid) -> Answer {
        let n = asid.below(map::MAX_DOMAINS).ok_or(errno::ESRCH)?;
        match self.domains[n].state {
            State::Free => Err(errno::ESRCH),
            State::Dead => Ok(0),
            State::Alive if self.domains[n].essential => Err(errno::EPERM),
            State::Alive => {
                self.kill(n as u16)?;
                Ok(0)
            }
        }
    }

    /// From the first store on, whoever runs in it or returns into it is bounced.
    pub(crate) fn kill(&mut self, asid: u16) -> Result<(), Errno> {
        let dead = self.common()?.dead_l1;
        let root = self.domain(asid).root();
        self.machine.write(root, M::Arch::table(dead));
        if let Some(words) = M::Arch::PORTALS {
            self.machine.write(root + words, M::Arch::direct(self.dead_table()?));
        }
        self.machine.flush(asid);
        self.domain_mut(asid).state = State::Dead;
        for other in self.numbers() {
            if self.sees_stacks(other, asid) {
                self.machine.write(stacks_slot(self.domain(other).l1(), asid), 0);
                self.machine.flush(other);
            }
        }
        self.forget_handler(asid);
        self.break_promise(asid, u64::MAX);
        self.detach_from(asid, 0..map::USER_END);
        if NonZeroU16::new(asid) == self.process {
            self.attachments = [None; _];
        }
        self.drain(asid);
        self.revoke();
        let d = self.domain_mut(asid);
        // Where the heap began tells what else the domain owns, to whom it may yet be given back.
        (d.slots, d.brk) = (0, d.heap);
        Ok(())
    }

    /// Takes back the last pages of a dead domain without threads; its number is free.
    pub fn domain_free(&mut self, asid: Asid) -> Answer {
        let empty = self.common()?.empty_table;
        let n = asid.below(map::MAX_DOMAINS).ok_or(errno::ESRCH)?;
        let d = self.domains[n];
        match d.state {
            State::Free => return Err(errno::ESRCH),
            State::Alive => return Err(errno::EINVAL),
            State::Dead if d.threads != 0 => return Err(errno::EAGAIN),
            State::Dead => {}
        }
        let asid = n as u16;
        self.drain_windows(asid, true);
        let tables = map::PM_TABLES_VA + asid as u64 * map::TABLE_BYTES;
        self.shut(self.portal_manager, tables..tables + map::TABLE_BYTES);
        for page in 0..TABLE_PAGES {
            if let Some(pa) = self.page(asid, map::TABLE_VA + page * PAGE).filter(|pa| *pa != empty) {
                self.give_table(asid, pa);
            }
        }
        if let Some(low) = self.l0(asid, 0) {
            self.give_table(asid, low);
        }
        self.give_table(asid, d.l1());
        self.give_table(asid, d.root());
        self.machine.flush(asid);
        self.revoke();
        *self.domain_mut(asid) = Domain::FREE;
        while self.end > 1 && self.domain(self.end - 1).state == State::Free {
            self.end -= 1;
        }
        Ok(0)
    }

    /// 1 alive, 2 dead, 0 free; `space`, pages, threads, flags.
    pub fn domain_info(&self, asid: Asid) -> Result<(u64, [u64; 4]), Errno> {
        let n = asid.below(map::MAX_DOMAINS).ok_or(errno::ESRCH)?;
        let d = &self.domains[n];
        let state = match d.state {
            State::Free => return Ok((0, [0; 4])),
            State::Alive => 1,
            State::Dead => 2,
        };
        let flags = u64::from(d.float) | u64::from(d.priority) << 8 | u64::from(d.limit) << 16;
        let flags = flags | u64::from(d.family) << 32;
        Ok((
            state,
            [M::Arch::space(n as u16, d.root()), self.charge(n as u16).into(), d.threads.into(), flags],
        ))
    }
}

//! Opening and closing portals: find an entry, have the code built, write the table word.

use crate::Machine;
use crate::arena::Run;
use crate::gifts::GIFTS;
use crate::manager::{Domain, Goal, MAX_PORTALS, Manager, Slot};
use crate::slots::Slots;
use alloc::vec::Vec;
use core::num::NonZeroU16;
use pebble_abi::consent::Letters;
use pebble_abi::errno::{self, Errno};
use pebble_abi::words::Asid;
use pebble_abi::{map, sys};
use pebble_arch::Arch;
use pebble_portal::hardware::{Connection, Shape, Short};

/// Most names of one semaphore.
pub const NAMES: usize = 4;
/// Where a controller's own portals begin.
pub(crate) const FIRST_OWN: usize = sys::FIRST_FREE + MAX_PORTALS + GIFTS;

impl<A: Arch> Manager<A> {
    /// `count` consecutive free slots for the subject, or the domain itself; the table grows as needed.
    pub(crate) fn find(
        &mut self,
        machine: &mut impl Machine,
        asid: u16,
        count: usize,
    ) -> Result<usize, Errno> {
        // Its portals are made by whoever controls it.
        if self.domains[asid as usize].controller.is_some() {
            return Err(errno::EPERM);
        }
        let owner = &self.domains[usize::from(self.request.serving.map_or(asid, NonZeroU16::get))];
        let (own, full) = (owner.own, owner.held + count > owner.most.unwrap_or(MAX_PORTALS));
        if self.request.giving.is_some() {
            self.grant_gifts(asid, count)?;
        } else if full {
            return Err(errno::EMFILE);
        }
        self.room(machine, asid, count, own)
    }

    /// Free slots, whatever the domain may have. A controller's own lie from `own` on, behind all that its
    /// children can get.
    pub(crate) fn room(
        &mut self,
        machine: &mut impl Machine,
        asid: u16,
        count: usize,
        own: usize,
    ) -> Result<usize, Errno> {
        let domain = &mut self.domains[asid as usize];
        let free = |n: usize| domain.slots.get(n).is_none_or(|s| s.goal == Goal::Free);
        let from = if own == 0 { domain.hint } else { own };
        let first =
            (from..map::TABLE_ENTRIES - count).find(|n| (*n..n + count).all(free)).ok_or(errno::EMFILE)?;
        // What was skipped is too short for this many; single portals still fit there.
        if count == 1 && own == 0 {
            domain.hint = first + 1;
        }
        self.grow(machine, asid, first..first + count)?;
        Ok(first)
    }

    /// The table has pages for these entries, which are in order, and the heap has room.
    pub(crate) fn grow(
        &mut self,
        machine: &mut impl Machine,
        asid: u16,
        entries: impl Iterator<Item = usize> + Clone,
    ) -> Result<(), Errno> {
        let last = entries.clone().last().unwrap_or_default();
        let more = self.domains[usize::from(asid)].slots.missing(entries);
        if more > 0 {
            self.grant_table(asid, more)?;
            Slots::spare()?;
        }
        let domain = &mut self.domains[usize::from(asid)];
        while last / map::TABLE_ENTRIES_PER_PAGE > usize::from(domain.pages) {
            machine.grow_table(asid, u32::from(domain.pages) + 1)?;
            domain.pages += 1;
        }
        Ok(())
    }

    /// Fills slots from `first` on; all or none.
    pub(crate) fn fill(
        &mut self,
        machine: &mut impl Machine,
        asid: u16,
        first: usize,
        goals: &[(Goal, u64)],
    ) -> Result<(), Errno> {
        // Below an outermost controller, which has opened it, a stub is nobody's.
        let controlled = self.domains[asid as usize].controller.is_some();
        let subject = self.request.serving.filter(|_| !controlled);
        let giver = self.request.giving;
        self.grant_code(self.request.giving.or(self.request.serving).map_or(asid, NonZeroU16::get))?;
        for (n, (goal, constant)) in goals.iter().enumerate() {
            let index = (first + n) as u16;
            let counting = self.domains[asid as usize].counting && giver.is_none();
            let counter = counting.then(|| self.counter(machine, asid)).and_then(Result::ok);
            let mut slot =
                Slot { goal: *goal, run: Run::default(), constant: *constant, counter, subject, giver };
            match self.build(machine, asid, index, &slot) {
                Ok(run) => slot.run = run,
                Err(error) => {
                    self.discard(slot);
                    self.vacate(machine, asid, first, n);
                    return Err(error);
                }
            }
            self.domains[asid as usize].slots[usize::from(index)] = slot;
            self.domains[asid as usize].open += 1;
            if let Some(owner) = self.owner(asid, index, &slot) {
                owner.held += 1;
            }
            machine.set_table(asid, index, map::CODE_VA + u64::from(slot.run.at));
            self.changed(asid, index);
        }
        if let Some(subject) = subject {
            let (subject, indices) = (subject.get(), first..first + goals.len());
            return self.replicate(machine, subject, indices.clone()).inspect_err(|_| {
                self.vacate(machine, asid, first, goals.len());
                self.retract(machine, subject, indices);
            });
        }
        Ok(())
    }

    pub(crate) fn vacate(&mut self, machine: &mut impl Machine, asid: u16, first: usize, count: usize) {
        for index in first..first + count {
            machine.set_table(asid, index as u16, self.made.closed);
            let slot = self.domains[asid as usize].slots.take(index);
            if self.made.reopening.close(asid, index as u16, slot.run) {
                self.free_counter(slot.counter);
            } else {
                self.discard(slot);
            }
            if let Some(owner) = self.owner(asid, index as u16, &slot) {
                owner.held = owner.held.saturating_sub(1);
            }
            self.changed(asid, index as u16);
            let domain = &mut self.domains[asid as usize];
            domain.open -= 1;
            domain.hint = domain.hint.min(index).max(sys::FIRST_FREE);
        }
    }

    /// To whom a portal counts: the subject, or the table's own domain. Not what all are born with; nor
    /// stubs, nor gifts.
    fn owner(&mut self, asid: u16, index: u16, slot: &Slot) -> Option<&mut Domain> {
        let born = usize::from(index) < sys::FIRST_FREE || self.on_behalf(asid, index);
        let stub = self.domains[usize::from(asid)].controller.is_some();
        let owner = slot.subject.map_or(asid, NonZeroU16::get);
        (!born && !stub && slot.giver.is_none()).then(|| &mut self.domains[usize::from(owner)])
    }

    /// A portal for `asid` to an interface that takes no more than any stranger may have.
    pub fn open(&mut self, machine: &mut impl Machine, asid: Asid, interface: u16) -> Result<u16, Errno> {
        self.open_with(machine, asid, interface, Letters::NONE)
    }

    /// The same for an opener that gives these letters.
    pub fn open_with(
        &mut self,
        machine: &mut impl Machine,
        asid: Asid,
        interface: u16,
        given: Letters,
    ) -> Result<u16, Errno> {
        self.domain(asid)?;
        self.consents(asid.number(), interface, given)?;
        let first = self.find(machine, asid.number(), 1)?;
        self.fill(machine, asid.number(), first, &[(Goal::Interface(interface), 0)])?;
        Ok(first as u16)
    }

    /// Is the domain a component of the image?
    pub fn is_image(&self, asid: Asid) -> bool {
        asid.below(self.domains.len()).is_some_and(|n| self.domains[n].image)
    }

    /// A program puts no portal into the table of a component of the image, and takes none out of it: the
    /// portal manager that asks a policy, and the VM manager that asks a fault handler, are clients too, who
    /// know what they have by its index.
    pub(crate) fn may_change(&self, server: u16, client: u16) -> Result<(), Errno> {
        if self.is_image(client.into()) && !self.is_image(server.into()) { Err(errno::EPERM) } else { Ok(()) }
    }

    /// Portals for the client of a server to `count` of the server's interfaces, with a constant.
    pub fn create(
        &mut self,
        machine: &mut impl Machine,
        server: Asid,
        client: Asid,
        interface: u64,
        count: u64,
        constant: u64,
    ) -> Result<u16, Errno> {
        self.domain(server)?;
        self.domain(client)?;
        let (controlled, client) = (client.number(), Asid::from(self.outermost(client.number())));
        self.may_change(server.number(), client.number())?;
        if Asid::from(controlled) != client {
            self.request.serving = NonZeroU16::new(controlled);
        }
        if !(1..=8).contains(&count) || interface > 1024 {
            return Err(errno::EINVAL);
        }
        let mut goals = arrayvec::ArrayVec::<(Goal, u64), 8>::new();
        for n in interface..interface + count {
            if self.interfaces.get(n as usize).is_none_or(|i| Asid::from(i.asid) != server) {
                return Err(errno::EPERM);
            }
            // The client is not asked.
            self.consents(client.number(), n as u16, Letters::NONE)?;
            goals.push((Goal::Interface(n as u16), constant));
        }
        self.by(server.number(), |m| {
            let first = m.find(machine, client.number(), goals.len())?;
            m.fill(machine, client.number(), first, &goals)?;
            Ok(first as u16)
        })
    }

    /// P and V of a semaphore, for a domain.
    pub fn semaphore(&mut self, machine: &mut impl Machine, asid: Asid, id: u16) -> Result<u16, Errno> {
        self.domain(asid)?;
        let first = self.find(machine, asid.number(), 2)?;
        self.fill(
            machine,
            asid.number(),
            first,
            &[(Goal::Wait(id), id.into()), (Goal::Signal(id), id.into())],
        )?;
        Ok(first as u16)
    }

    /// The semaphore whose P is at `index`.
    pub fn semaphore_at(&mut self, asid: Asid, index: u64) -> Result<u16, Errno> {
        let domain = self.domain(asid)?;
        match usize::try_from(index).ok().and_then(|n| domain.slots.get(n)).map(|s| s.goal) {
            Some(Goal::Wait(id)) => Ok(id),
            _ => Err(errno::EBADF),
        }
    }

    /// Whose it is; nobody's, if it could not be had.
    pub fn own_semaphore(&mut self, owner: Option<Asid>, id: u16) {
        if let Some(entry) = self.semaphores.owners.get_mut(id as usize) {
            *entry = owner.and_then(|owner| NonZeroU16::new(owner.number()));
            entry.iter().for_each(|owner| self.domains[usize::from(owner.get())].makes_semaphores = true);
        }
    }

    pub fn publish(&mut self, asid: Asid, name: &str, id: u16) -> Result<(), Errno> {
        if name.is_empty() || self.semaphores.published.iter().any(|(n, _)| n == name) {
            return Err(errno::EEXIST);
        }
        if self.semaphores.published.iter().filter(|(_, published)| *published == id).count() >= NAMES {
            return Err(errno::EAGAIN);
        }
        self.grant_published(asid.number())?;
        self.semaphores.published.push((name.into(), id));
        Ok(())
    }

    pub fn published(&self, name: &str) -> Result<u16, Errno> {
        self.semaphores.published.iter().find(|(n, _)| n == name).map(|(_, id)| *id).ok_or(errno::ENOENT)
    }

    /// Closes portals of `asid`; with `server`, only those that it has [given](Self::gave).
    pub fn close(
        &mut self,
        machine: &mut impl Machine,
        asid: Asid,
        first: u64,
        count: u64,
        server: Option<Asid>,
    ) -> Result<(), Errno> {
        let domain = self.domain(asid)?;
        let (first, count) = (first as usize, count as usize);
        if first < sys::FIRST_FREE
            || count == 0
            || first.checked_add(count).is_none_or(|end| end > domain.slots.len())
        {
            return Err(errno::EBADF);
        }
        for index in first..first + count {
            let slot = &self.domains[usize::from(asid.number())].slots[index];
            if slot.goal == Goal::Free || server.is_some_and(|server| !self.gave(server.number(), slot)) {
                return Err(errno::EBADF);
            }
        }
        // Semaphores that the domain, or the subject, made go with its own P portal.
        let own = (first..first + count).filter_map(|index| {
            let Slot { goal: Goal::Wait(id), subject, .. } =
                self.domains[usize::from(asid.number())].slots[index]
            else {
                return None;
            };
            let owner = subject.map_or(asid.number(), NonZeroU16::get);
            self.owns(owner, id).then_some((owner, id))
        });
        let own: Vec<_> = own.collect();
        self.vacate(machine, asid.number(), first, count);
        for (owner, id) in own {
            self.drop_semaphore(machine, owner, id);
        }
        Ok(())
    }

    /// A semaphore ends: portals to it that are left, its owner's too, answer CLOSED. Its number may soon be
    /// somebody else's.
    fn drop_semaphore(&mut self, machine: &mut impl Machine, owner: u16, id: u16) {
        self.semaphores.owners[id as usize] = None;
        self.semaphores.published.retain(|(_, s)| *s != id);
        for (asid, index) in self.clients(|goal| goal == Goal::Wait(id) || goal == Goal::Signal(id)) {
            self.entomb(machine, asid, index, owner);
        }
        machine.free_semaphore(id);
    }

    /// A portal's target died: it answers CLOSED from now on. Without room for that code it leads nowhere.
    pub(crate) fn entomb(&mut self, machine: &mut impl Machine, asid: u16, index: u16, target: u16) {
        let old = self.domains[asid as usize].slots[index as usize];
        let mut slot =
            Slot { goal: Goal::Closed(target), subject: old.subject, giver: old.giver, ..Slot::default() };
        let word = match self.build(machine, asid, index, &slot) {
            Ok(run) => {
                slot.run = run;
                map::CODE_VA + u64::from(run.at)
            }
            Err(_) => self.made.closed,
        };
        machine.set_table(asid, index, word);
        self.domains[asid as usize].slots[index as usize] = slot;
        self.discard(old);
    }

    /// The common code for closed portals: -EBADF.
    pub fn prepare(&mut self, machine: &mut impl Machine) -> Result<(), Errno> {
        let answer = Short::Constant { value: -errno::EBADF, status: 0 };
        let run = self.make_plain(machine, Shape::Short(answer), &Connection::default())?;
        self.made.closed = map::CODE_VA + u64::from(run.at);
        Ok(())
    }

    /// A new domain: its table as every domain has it.
    pub fn attach(
        &mut self,
        machine: &mut impl Machine,
        view: pebble_portal::hardware::Domain,
    ) -> Result<(), Errno> {
        self.found(machine, view)?;
        let asid = view.asid;
        machine.set_table(asid, sys::SYS_GET_THREAD_ID as u16, self.code.get_thread_id);
        machine.set_table(asid, sys::SYS_HRTIME as u16, self.code.hrtime);
        self.identity(machine, view)?;
        self.domains[asid as usize].open += 3;
        self.bear(machine, &view, None, &[]);
        for n in 0..self.system.len() {
            let (index, interface) = self.system[n];
            if self.domains[usize::from(asid)].slots[usize::from(index)].goal == Goal::Common {
                self.fill(machine, asid, index.into(), &[(Goal::Interface(interface), 0)])?;
            }
        }
        self.learn(&view, None, &[]);
        Ok(())
    }

    /// A new domain: a table that leads nowhere but out of it.
    pub(crate) fn found(
        &mut self,
        machine: &mut impl Machine,
        view: pebble_portal::hardware::Domain,
    ) -> Result<(), Errno> {
        let asid = view.asid;
        let fresh = |d: &&Domain| !d.alive && d.slots.is_empty();
        self.domains.get(asid as usize).filter(fresh).ok_or(errno::EINVAL)?;
        self.grow(machine, asid, 0..sys::FIRST_FREE)?;
        self.enter(view);
        // All other indices of a new table lead nowhere.
        let float = usize::from(view.float);
        machine.set_table(asid, sys::RETURN as u16, self.code.dispatch);
        machine.set_table(asid, sys::EXCEPTION as u16, self.code.exception[float]);
        machine.set_table(asid, sys::INTERRUPT as u16, self.code.interrupt[float]);
        machine.set_table(asid, sys::UNWIND as u16, self.code.unwound);
        machine.set_table(asid, sys::NO_STACK as u16, self.code.no_stack[float]);
        machine.set_table(asid, sys::THREAD_END as u16, self.code.thread_exit);
        Ok(())
    }

    /// The portal that tells a domain its number.
    pub(crate) fn identity(
        &mut self,
        machine: &mut impl Machine,
        view: pebble_portal::hardware::Domain,
    ) -> Result<(), Errno> {
        let own = Connection { caller: view, ..Connection::default() };
        let identity = Short::Constant { value: view.asid.into(), status: 0 };
        let run = self.make_plain(machine, Shape::Short(identity), &own)?;
        self.domains[view.asid as usize].slots[sys::SYS_GET_ASID] =
            Slot { goal: Goal::Common, run, ..Slot::default() };
        machine.set_table(view.asid, sys::SYS_GET_ASID as u16, map::CODE_VA + u64::from(run.at));
        Ok(())
    }

    /// Recompiles a domain's portals with a call counter each, as many as its family may have, or without.
    pub fn count(&mut self, machine: &mut impl Machine, asid: Asid, on: bool) -> Result<(), Errno> {
        self.domain(asid)?.counting = on;
        for index in 0..self.domains[usize::from(asid.number())].slots.len() {
            let old = self.domains[usize::from(asid.number())].slots[index];
            let counted = matches!(old.goal, Goal::Interface(_) | Goal::Wait(_) | Goal::Signal(_));
            if !counted || old.counter.is_some() == on {
                continue;
            }
            let counter = if on { Some(self.counter(machine, asid.number())?) } else { None };
            let mut slot = Slot { counter, run: Run::default(), ..old };
            slot.run = self.build(machine, asid.number(), index as u16, &slot)?;
            machine.set_table(asid.number(), index as u16, map::CODE_VA + u64::from(slot.run.at));
            self.domains[usize::from(asid.number())].slots[index] = slot;
            self.discard(old);
        }
        Ok(())
    }
}

//! Interposition: domains all of whose portals lead to a handler in another.
//!
//! **Problem.** A controlled domain must not be able to tell, nor to get round it; what changes the caller
//! itself must change the controlled domain, though the controller makes the call; and controllers are
//! controlled themselves.
//!
//! **Strategy.** The table of a controlled domain mirrors that of its controller: behind each index that the
//! controller holds is a *stub*, a portal to the handler with the index in front of the words that the
//! original takes. So all tables below an outermost controller, whose portals are real, share its indices.
//! The outermost one has, besides, the *portals on behalf* ([`pebble_abi::control::BEHALF`]): they act on the
//! *subject*, found in the calling thread's invocation stack. From the caller downwards, whoever was entered
//! by its own child in such a call acts for that child.
//!
//! **Invariants:**
//! * every used entry of a controlled domain from the first system portal on is a stub;
//!   [`find`](Manager::find) refuses others;
//! * a stub's interface belongs to the domain's controller and has no name, so nobody else can open it;
//! * what a controller opened on behalf of a child ([`subject`](crate::Slot::subject)) goes when the child dies;
//! * a child's controller lives, or all its portals are closed.

use crate::Machine;
use crate::interfaces::Interface;
use crate::manager::{Goal, Manager, STACKS, Slot, is};
use crate::open::FIRST_OWN;
use crate::subjects::Subject;
use alloc::vec::Vec;
use arrayvec::ArrayVec;
use core::num::NonZeroU16;
use core::ops::Range;
use pebble_abi::consent::Letters;
use pebble_abi::control::{BEHALF, BEHALF_PM};
use pebble_abi::errno::{self, Errno};
use pebble_abi::words::Asid;
use pebble_abi::{map, sys};
use pebble_arch::Arch;
use pebble_portal::Spec;
use pebble_portal::spec::{Arg, Stack, State};

/// The handler's second entry, for stubs that pass words, give further results, or stand for a system portal.
const FULL: u64 = 4;
/// Kinds of stub that one controller may have at once.
const KINDS: usize = 96;
/// Most threads of domains that one controls: as many stacks as a domain can have, some for its own.
const SERVED: u16 = 24;

/// Whether there is something for the domain behind an entry.
#[inline(always)]
fn is_seen(index: usize, slot: &Slot) -> bool {
    match slot.goal {
        Goal::Free => false,
        Goal::Common => slot.run.len != 0 || [sys::SYS_GET_THREAD_ID, sys::SYS_HRTIME].contains(&index),
        _ => true,
    }
}

/// What a stub takes of its original: the caller's words, and as many results.
fn stub(original: &Spec) -> Result<Spec, Errno> {
    let mut spec = Spec { stack: Stack::New, state: State::Minimal, ..original.clone() };
    let words = original.args.iter().copied().filter(|a| a.is_word());
    spec.args = core::iter::once(Arg::Index).chain(words).collect::<ArrayVec<_, _>>();
    Ok(spec)
}

impl<A: Arch> Manager<A> {
    pub(crate) fn on_behalf(&self, asid: u16, index: u16) -> bool {
        let first = self.domains[asid as usize % map::MAX_DOMAINS].behalf;
        first.is_some_and(|first| (first.get()..first.get() + BEHALF.len() as u16).contains(&index))
    }

    /// The number of a controller's handler as an interface that has no name.
    fn handler(&mut self, asid: u16, entry: u64, spec: Spec) -> Result<u16, Errno> {
        if entry == 0 || entry >= map::USER_END {
            return Err(errno::EINVAL);
        }
        let same = |n: &&u16| {
            let i = &self.interfaces[usize::from(**n)];
            i.entry == entry && i.spec == spec
        };
        if let Some(n) = self.domains[usize::from(asid)].handlers.iter().find(same) {
            return Ok(*n);
        }
        if self.domains[usize::from(asid)].handlers.len() >= KINDS {
            self.drop_handlers();
        }
        if self.domains[usize::from(asid)].handlers.len() >= KINDS {
            return Err(errno::EAGAIN);
        }
        let number = self.add_interface(Interface::new("", asid, entry, spec))?;
        self.domains[usize::from(asid)].handlers.push(number);
        Ok(number)
    }

    /// Forgets handlers that no stub leads to: every table is looked through once, if anybody has a handler.
    /// It is done when there is no room for one more: the next child has the same.
    pub(crate) fn drop_handlers(&mut self) {
        let handler = |i: &Interface| i.asid != 0 && i.name.is_empty();
        if !self.interfaces.iter().any(handler) {
            return;
        }
        let mut led = alloc::vec![false; self.interfaces.len()];
        for domain in &self.domains {
            domain.slots.each_used(|_, slot| {
                if let Goal::Interface(n) = slot.goal
                    && let Some(led) = led.get_mut(usize::from(n))
                {
                    *led = true;
                }
            });
        }
        for (number, interface) in (0..).zip(&mut self.interfaces) {
            if handler(interface) && !led[usize::from(number)] {
                self.domains[usize::from(interface.asid)].handlers.retain(|n| *n != number);
                interface.asid = 0;
            }
        }
    }

    /// How a client sees what is behind an entry: the words that it passes, the results. `None`: an entry
    /// that is not held.
    pub fn seen(&self, asid: u16, index: usize) -> Option<Spec> {
        let mut spec = Spec { stack: Stack::New, state: State::Minimal, args: ArrayVec::new(), results: 0 };
        let slot = self.domains.get(asid as usize)?.slots.get(index)?;
        if !is_seen(index, slot) {
            return None;
        }
        match slot.goal {
            Goal::Free | Goal::Common | Goal::Wait(_) | Goal::Signal(_) => {}
            Goal::Interface(i) => {
                let original = &self.interfaces.get(i as usize)?.spec;
                spec.args = original.args.iter().copied().filter(|a| a.is_word()).collect();
                spec.results = original.results;
            }
            // What it took is forgotten; it answers all the same.
            Goal::Closed(_) => spec.args.extend([Arg::Word; 5]),
        }
        Some(spec)
    }

    /// An index at which the domain has something: whatever lies there in its controller's table, it may name
    /// no other.
    pub(crate) fn held(&self, asid: u16, index: u64) -> Result<usize, Errno> {
        usize::try_from(index).ok().filter(|n| self.seen(asid, *n).is_some()).ok_or(errno::EBADF)
    }

    /// Portals of a server of the image are its own, whomever the request is for.
    pub(crate) fn for_itself<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let serving = self.request.serving.take();
        let done = work(self);
        self.request.serving = serving;
        done
    }

    /// The name of what is behind an entry that a domain holds: it learns what it may call anyway. If it is
    /// controlled, `holder`, its outermost controller, has the portal itself.
    pub fn name_of(&self, asid: u16, holder: u16, index: u64) -> Result<&str, Errno> {
        let index = self.held(asid, index)?;
        let slot = self.domains[usize::from(holder)].slots.get(index).ok_or(errno::ENOENT)?;
        match slot.goal {
            Goal::Interface(i) => {
                let name = self.interfaces.get(usize::from(i)).map(|i| &*i.name);
                name.filter(|name| !name.is_empty()).ok_or(errno::ENOENT)
            }
            Goal::Wait(_) => Ok("semaphore.p"),
            Goal::Signal(_) => Ok("semaphore.v"),
            Goal::Free | Goal::Common | Goal::Closed(_) => Err(errno::ENOENT),
        }
    }

    /// An entry of a controlled domain, whatever was there before.
    fn put(
        &mut self,
        machine: &mut impl Machine,
        child: u16,
        index: usize,
        stub: Option<(u64, Spec, u64)>,
    ) -> Result<(), Errno> {
        let controller = self.controller(child).unwrap_or(0);
        let goal = match stub {
            Some((entry, spec, constant)) => {
                self.grow(machine, child, index..index + 1)?;
                let plain = spec.results == 0 && spec.caller_words() == 0 && index >= sys::FIRST_FREE;
                let entry = if plain { entry } else { entry + FULL };
                Some((Goal::Interface(self.handler(controller, entry, spec)?), constant))
            }
            None => None,
        };
        let old = self.domains[child as usize].slots.get(index).copied().unwrap_or_default();
        if goal == Some((old.goal, old.constant)) {
            return Ok(());
        }
        if old.run.len > 0 {
            self.vacate(machine, child, index, 1);
        }
        match goal {
            Some(goal) => self.fill(machine, child, index, &[goal]),
            None => Ok(()),
        }
    }

    /// A new domain becomes the child of its controller: a stub for each portal that it would be born with; a
    /// `copy` has one for each of the controller's. `view`: it has no table yet.
    pub fn control(
        &mut self,
        machine: &mut impl Machine,
        controller: Asid,
        (child, copy): (Asid, bool),
        handler: u64,
        view: Option<pebble_portal::hardware::Domain>,
    ) -> Result<(), Errno> {
        let parent = self.domain(controller)?;
        if parent.view.exclusive || handler == 0 || handler >= map::USER_END {
            return Err(errno::EINVAL);
        }
        let controller = controller.number();
        match view {
            Some(view) => self.found(machine, view)?,
            None => {
                // What a controlled domain has spawned is controlled as that is, until it puts its own walls
                // in between.
                let above = self.domains[usize::from(controller)].controller;
                let domain = self.domain(child)?;
                let free = domain.controller == above && (above.is_some() || domain.behalf.is_none());
                if domain.image || !free || child == controller.into() {
                    return Err(errno::EINVAL);
                }
                if above.is_some() {
                    self.close_opened_for(machine, child.number());
                    self.unserve(child.number(), u16::MAX);
                }
                for index in sys::SYS_GET_ASID..self.domains[usize::from(child.number())].slots.len() {
                    if self.seen(child.number(), index).is_some() {
                        self.vacate(machine, child.number(), index, 1);
                    }
                }
            }
        }
        self.serve(machine, controller, 1)?;
        let child = child.number();
        let behalf = self.behalf_for(machine, controller)?;
        let domain = &mut self.domains[child as usize];
        (domain.controller, domain.handler, domain.behalf) =
            (NonZeroU16::new(controller), handler, NonZeroU16::new(behalf));
        (domain.served, domain.serves) = (0, 1);
        let end = if copy { self.domains[controller as usize].slots.len() } else { sys::FIRST_FREE };
        let mirrored = self.mirrored(controller, sys::SYS_GET_ASID..end);
        // A controlled domain's entries are its controller's business alone: nothing is for a subject.
        self.for_itself(|m| {
            let Some(view) = view.filter(|_| copy) else { return m.mirror_all(machine, child, &mirrored) };
            let parent = Some((controller, handler));
            if m.bear(machine, &view, parent, &mirrored) < mirrored.len() {
                m.mirror_all(machine, child, &mirrored)?;
                m.learn(&view, parent, &mirrored);
            }
            Ok(())
        })
    }

    /// A stub for each of these entries that has none.
    fn mirror_all(
        &mut self,
        machine: &mut impl Machine,
        child: u16,
        mirrored: &[usize],
    ) -> Result<(), Errno> {
        for index in mirrored {
            if self.domains[usize::from(child)].slots[*index].run.len == 0 {
                self.mirror(machine, child, *index)?;
            }
        }
        Ok(())
    }

    /// The controller's entries that its children have stubs for, in order. What was made for a domain below is
    /// that one's alone, and no business of its siblings.
    fn mirrored(&self, controller: u16, within: Range<usize>) -> Vec<usize> {
        let outermost = self.outermost(controller);
        let [table, outer] = [controller, outermost].map(|asid| &self.domains[usize::from(asid)]);
        let mut mirrored = Vec::with_capacity(table.open);
        table.slots.each_used(|index, slot| {
            let held = within.contains(&index) && is_seen(index, slot);
            if !held || self.on_behalf(controller, index as u16) {
                return;
            }
            let subject = if outermost == controller { slot.subject } else { outer.slots[index].subject };
            let for_other = |s: NonZeroU16| s.get() != controller && self.is_below(s.get(), controller);
            if !subject.is_some_and(for_other) {
                mirrored.push(index);
            }
        });
        mirrored
    }

    /// The portals on behalf for a domain that becomes a controller. One that is only controlled has no stubs
    /// for them: they would tell it what it is.
    pub fn behalf_for(&mut self, machine: &mut impl Machine, controller: u16) -> Result<u16, Errno> {
        let first = self.behalf(machine, controller)?;
        let own = &mut self.domains[controller as usize].own;
        *own = (*own).max(FIRST_OWN);
        let indices = usize::from(first)..usize::from(first) + BEHALF.len();
        self.for_itself(|m| m.replicate(machine, controller, indices)).map(|()| first)
    }

    /// Where a controller's own portals shall lie, if that is behind all that its children can have; 0: at
    /// the first such place.
    pub fn own_from(&mut self, asid: Asid, first: u64) -> Result<(), Errno> {
        let domain = self.domain(asid)?;
        match usize::try_from(first) {
            Ok(0) => {}
            Ok(first @ FIRST_OWN..map::TABLE_ENTRIES) => domain.own = first,
            _ => return Err(errno::EINVAL),
        }
        Ok(())
    }

    /// The stub for an entry of the controller.
    fn mirror(&mut self, machine: &mut impl Machine, child: u16, index: usize) -> Result<(), Errno> {
        let handler = self.domains[child as usize].handler;
        match self.controller(child).and_then(|controller| self.seen(controller, index)) {
            Some(original) => self.put(machine, child, index, Some((handler, stub(&original)?, 0))),
            None => Ok(()),
        }
    }

    /// The portals on behalf of the children of `controller`: its outermost controller's.
    pub fn behalf(&mut self, machine: &mut impl Machine, controller: u16) -> Result<u16, Errno> {
        let domain = &self.domains[controller as usize];
        if domain.behalf.is_some() || domain.controller.is_some() {
            return domain.behalf.map(NonZeroU16::get).ok_or(errno::EINVAL);
        }
        let named = |name: &str| self.interfaces.iter().position(|i| i.asid != 0 && i.name == name);
        let manager = named("pm.behalf").ok_or(errno::ENOSYS)? as u16;
        let process = named("process.behalf").ok_or(errno::ENOSYS)? as u16;
        let mut goals = ArrayVec::<(Goal, u64), { BEHALF.len() }>::new();
        for (n, index) in BEHALF.iter().enumerate() {
            let interface = if n < BEHALF_PM { manager } else { process };
            goals.push((Goal::Interface(interface), *index as u64));
        }
        let made = self.for_itself(|m| {
            let first = m.room(machine, controller, goals.len(), FIRST_OWN)?;
            m.domains[controller as usize].behalf = NonZeroU16::new(first as u16);
            m.fill(machine, controller, first, &goals)?;
            Ok(first as u16)
        });
        made.inspect_err(|_| self.domains[controller as usize].behalf = None)
    }

    /// `more` threads more may enter the handlers of a controller, and of its controllers.
    pub fn serve(&mut self, machine: &mut impl Machine, controller: u16, more: u16) -> Result<(), Errno> {
        let mut above = Some(controller);
        while let Some(asid) = above {
            let served = self.domains[asid as usize].served + more;
            if served > SERVED {
                return Err(errno::EAGAIN);
            }
            // One for each, and some for what they call in between.
            self.stacks(machine, asid, STACKS as u16 + served)?;
            above = self.controller(asid);
        }
        above = Some(controller);
        while let Some(asid) = above {
            self.domains[asid as usize].served += more;
            above = self.controller(asid);
        }
        Ok(())
    }

    /// So many threads of `child` are gone.
    pub fn unserve(&mut self, child: u16, fewer: u16) {
        let fewer = fewer.min(self.domains[child as usize].serves);
        self.domains[child as usize].serves -= fewer;
        let mut above = self.controller(child);
        while let Some(asid) = above {
            let domain = &mut self.domains[asid as usize];
            domain.served = domain.served.saturating_sub(fewer);
            above = self.controller(asid);
        }
    }

    /// One more thread of a controlled domain.
    pub fn thread(&mut self, machine: &mut impl Machine, child: u16) -> Result<(), Errno> {
        if let Some(controller) = self.controller(child) {
            self.serve(machine, controller, 1)?;
            self.domains[child as usize].serves += 1;
        }
        Ok(())
    }

    /// An entry of the caller's child; without a specification it goes.
    pub fn create_child(
        &mut self,
        machine: &mut impl Machine,
        controller: Asid,
        child: Asid,
        index: u64,
        stub: Option<(u64, Spec, u64)>,
    ) -> Result<(), Errno> {
        self.domain(controller)?;
        let domain = self.domain(child)?;
        if domain.controller.is_none_or(|above| Asid::from(above.get()) != controller) {
            return Err(errno::EPERM);
        }
        if !(sys::SYS_GET_ASID as u64..map::TABLE_ENTRIES as u64).contains(&index) {
            return Err(errno::EINVAL);
        }
        // The child's thread calls the handler on a stack of the controller.
        if stub.as_ref().is_some_and(|(_, spec, _)| spec.stack != Stack::New) {
            return Err(errno::EINVAL);
        }
        if let Some((_, spec, _)) = &stub {
            self.asks_no_more(controller.number(), child.number(), index as usize, spec)?;
        }
        self.put(machine, child.number(), index as usize, stub)
    }

    /// A portal for a controlled domain that the loader opens: a real one in the outermost controller's
    /// table, stubs below.
    pub fn open_below(
        &mut self,
        machine: &mut impl Machine,
        child: Asid,
        interface: u16,
        given: Letters,
    ) -> Result<u16, Errno> {
        self.domain(child)?;
        self.request.serving = NonZeroU16::new(child.number());
        self.open_with(machine, self.outermost(child.number()).into(), interface, given)
    }

    /// Stubs for entries of the outermost controller, from its child down to `subject`.
    pub(crate) fn replicate(
        &mut self,
        machine: &mut impl Machine,
        subject: u16,
        indices: core::ops::Range<usize>,
    ) -> Result<(), Errno> {
        let mut chain = ArrayVec::<u16, 64>::new();
        let mut asid = subject;
        while let Some(above) = self.controller(asid) {
            chain.try_push(asid).map_err(|_| errno::EAGAIN)?;
            asid = above;
        }
        for asid in chain.iter().rev() {
            indices.clone().try_for_each(|index| self.mirror(machine, *asid, index))?;
        }
        Ok(())
    }

    /// The opposite: they go, from `lowest` up to the outermost controller's child.
    pub(crate) fn retract(
        &mut self,
        machine: &mut impl Machine,
        lowest: u16,
        indices: core::ops::Range<usize>,
    ) {
        let mut asid = lowest;
        while let Some(above) = self.controller(asid) {
            for index in indices.clone() {
                if self.seen(asid, index).is_some() {
                    self.vacate(machine, asid, index, 1);
                }
            }
            asid = above;
        }
    }

    /// The domain that controls this one.
    pub(crate) fn controller(&self, asid: u16) -> Option<u16> {
        self.domains.get(usize::from(asid))?.controller.map(NonZeroU16::get)
    }

    /// The outermost controller of a domain: itself, if nobody controls it.
    pub fn outermost(&self, mut asid: u16) -> u16 {
        while let Some(above) = self.controller(asid) {
            asid = above;
        }
        asid
    }

    /// Closes for a subject: what the outermost controller opened for it, or for a domain below it, from
    /// there down to the subject; what it has been given, in its own table.
    pub fn close_for(
        &mut self,
        machine: &mut impl Machine,
        subject: Subject,
        first: u64,
        count: u64,
    ) -> Result<(), Errno> {
        if subject.caller == subject.domain {
            return self.close(machine, subject.domain.into(), first, count, None);
        }
        self.domain(subject.domain.into())?;
        let held = |m: &Self, asid: u16, index| m.seen(asid, index as usize).is_some();
        let end = first.checked_add(count).filter(|end| count > 0 && *end <= map::TABLE_ENTRIES as u64);
        let end = end.filter(|_| first >= sys::FIRST_FREE as u64).ok_or(errno::EBADF)?;
        if !(first..end).all(|index| held(self, subject.domain, index)) {
            return Err(errno::EBADF);
        }
        for index in first as usize..end as usize {
            let outer = self.domains[subject.caller as usize].slots.get(index).and_then(|s| s.subject);
            if outer.is_some_and(|outer| self.is_below(outer.get(), subject.domain)) {
                self.close(machine, subject.caller.into(), index as u64, 1, None)?;
                self.retract(machine, subject.domain, index..index + 1);
            } else {
                self.vacate(machine, subject.domain, index, 1);
            }
        }
        Ok(())
    }

    /// A server takes portals away from a client; from a controlled one as if that had closed them.
    pub fn remove(
        &mut self,
        machine: &mut impl Machine,
        server: Asid,
        client: Asid,
        first: u64,
        count: u64,
    ) -> Result<(), Errno> {
        self.domain(client)?;
        let (domain, caller) = (client.number(), self.outermost(client.number()));
        self.may_change(server.number(), caller)?;
        if domain == caller {
            return self.close(machine, client, first, count, Some(server));
        }
        let theirs = |index: &u64| {
            let slot = self.domains[usize::from(caller)].slots.get(*index as usize);
            slot.is_some_and(|s| is(s.subject, domain) && self.gave(server.number(), s))
        };
        let end =
            first.checked_add(count).filter(|end| *end <= map::TABLE_ENTRIES as u64).ok_or(errno::EBADF)?;
        if !(first..end).all(|index| theirs(&index)) {
            return Err(errno::EBADF);
        }
        self.close_for(machine, Subject { domain, caller, ..Subject::default() }, first, count)
    }

    /// What the outermost controller has opened for a domain goes, down to that one's controller.
    fn close_opened_for(&mut self, machine: &mut impl Machine, asid: u16) {
        let outermost = self.outermost(asid);
        let Some(controller) = self.controller(asid) else { return };
        let mut opened = Vec::new();
        self.domains[outermost as usize].slots.each_used(|index, slot| {
            if index >= sys::FIRST_FREE && is(slot.subject, asid) {
                opened.push(index);
            }
        });
        for index in opened {
            let _ = self.close(machine, outermost.into(), index as u64, 1, None);
            self.retract(machine, controller, index..index + 1);
        }
    }

    /// A domain dies: its controllers keep nothing for it, nor for those below it, which reach nobody from
    /// now on.
    pub(crate) fn release(&mut self, machine: &mut impl Machine, asid: u16) {
        // Who neither controls nor is controlled has none.
        if self.domains[usize::from(asid)].behalf.is_some() {
            let controlled = |other: &u16| self.controller(*other).is_some() && self.is_below(*other, asid);
            let below = |other: &u16| *other == asid || controlled(other);
            let family = (1..self.end as u16).filter(below).collect::<Vec<_>>();
            family.into_iter().for_each(|other| self.close_opened_for(machine, other));
            self.domains[..self.end]
                .iter_mut()
                .filter(|d| is(d.controller, asid))
                .for_each(|child| child.controller = None);
        }
        self.unserve(asid, u16::MAX);
        self.detours.retain(|d| d.asid != asid);
        let domain = &mut self.domains[asid as usize];
        domain.notify = 0;
        domain.notices.clear();
        let controlled = domain.controller.take().is_some();
        if controlled {
            // After its stubs have gone, which is when the domain is reclaimed; those that others share stay.
            self.domains[asid as usize].handler = 0;
        }
    }
}

//! What the portal manager knows: domains and their slots, interfaces, semaphores, code in limbo.

use crate::Machine;
use crate::admission::Policies;
use crate::arena::Run;
use crate::fault_handlers::Handled;
use crate::frames::Current;
use crate::interfaces::{Interface, Name};
use crate::letters::Letters;
use crate::made::Made;
use crate::notify::Detour;
use crate::replacement::{NOBODY, Replacement};
use crate::slots::Slots;
use crate::unwind::Watch;
use alloc::string::String;
use alloc::vec::Vec;
use core::marker::PhantomData;
use core::num::NonZeroU16;
use pebble_abi::errno::{self, Errno};
use pebble_abi::words::Asid;
use pebble_abi::{map, sys};
use pebble_arch::Arch;
use pebble_boot::{BootInfo, CommonCode};
use pebble_portal::Spec;
use pebble_portal::spec::Stack;

/// Most portals of one domain.
pub const MAX_PORTALS: usize = 1024;
/// Stacks that a domain gets for its queue when it first registers an `n` interface.
pub const STACKS: usize = 4;
/// Interfaces, those without names too.
const INTERFACES: usize = 1024;
/// Of a change that no thread of the domain has made.
pub(crate) const UNMADE: u16 = u16::MAX;

/// What a slot leads to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Goal {
    #[default]
    Free,
    /// Code shared by all domains, or made by the image builder for no interface.
    Common,
    Interface(u16),
    Wait(u16),
    Signal(u16),
    /// Its target died: answers CLOSED.
    Closed(u16),
}

/// One entry of a portal table.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slot {
    pub goal: Goal,
    /// Its own code; empty for common code.
    pub run: Run,
    pub constant: u64,
    pub counter: Option<u16>,
    /// The controlled domain for which it was opened; `None`: for the table's own.
    pub subject: Option<NonZeroU16>,
    /// The program that has put it there ([`crate::gifts`]); `None`: it was asked for.
    pub giver: Option<NonZeroU16>,
}

#[derive(Default)]
pub struct Domain {
    pub alive: bool,
    /// Of the image.
    pub image: bool,
    /// The component that it is, whatever its number: that of the image's first domain for it, if it is
    /// one.
    pub role: Option<NonZeroU16>,
    /// With whom it shares what is scarce: see [`pebble_abi::share`].
    pub(crate) family: u16,
    pub view: pebble_portal::hardware::Domain,
    pub slots: Slots,
    /// Pages of its table beyond the first.
    pub pages: u8,
    /// Lowest index that may be free.
    pub hint: usize,
    pub open: usize,
    /// Portals that it has got since its birth, whoever's table they are in.
    pub held: usize,
    /// Most of them that it may have; `None`: as many as any.
    pub most: Option<usize>,
    /// Stacks in its queue.
    pub stacks: u16,
    pub counting: bool,
    /// It has, or had, interfaces; it has, or had, made semaphores; it has put portals into tables of others.
    pub(crate) exports: bool,
    pub(crate) makes_semaphores: bool,
    pub(crate) gives: bool,
    /// The domain that all its portals lead to, if it is controlled, and the handler there.
    pub controller: Option<NonZeroU16>,
    pub handler: u64,
    /// Its interfaces without names, for stubs.
    pub(crate) handlers: Vec<u16>,
    /// Index of the portals on behalf, if there are any, in the table of the outermost controller and so in
    /// those of all below.
    pub behalf: Option<NonZeroU16>,
    /// Where portals of its own begin, once it has, or is about to have, children of its own; 0 before.
    pub own: usize,
    /// Threads of domains that it controls: so many stacks its handlers may need.
    pub served: u16,
    /// Its own threads, if it is controlled: what its controllers count.
    pub(crate) serves: u16,
    /// Where it goes on after a call that changed its table.
    pub notify: u64,
    /// Changes that it has not been told of: the thread that made them (or [`UNMADE`]), index.
    pub(crate) notices: Vec<(u16, u16)>,
    pub watch: Watch,
    /// Domains that see its stacks: a bit each.
    pub(crate) shown: [u64; map::MAX_DOMAINS / 64],
}

/// Semaphores that programs and servers have.
pub(crate) struct Semaphores {
    /// Of each that was made here its owner.
    pub owners: Vec<Option<NonZeroU16>>,
    /// Published ones: name, semaphore, owner.
    pub published: Vec<(String, u16)>,
    /// Those that the image has by name.
    pub of_image: Vec<(String, u16)>,
}

/// Stack descriptors: those that are free, and the first that was never used.
struct Descriptors {
    free: Vec<u16>,
    next: u16,
}

/// What the request at work is about.
#[derive(Default)]
pub struct Request {
    /// The controlled domain for which it was made, if it was.
    pub serving: Option<NonZeroU16>,
    /// The program that puts portals into another's table, if one does.
    pub giving: Option<NonZeroU16>,
    /// Why it has made nothing: a status of [`pebble_abi::status::CONSENT`] or
    /// [`pebble_abi::status::SPECIFICATION`], or 0.
    pub refused: u64,
    /// Entries of tables that it has changed: domain, index.
    pub(crate) changes: Vec<(u16, u16)>,
}

pub struct Manager<A> {
    pub domains: Vec<Domain>,
    /// No domain from here on was ever there: numbers are given away from the lowest.
    pub(crate) end: usize,
    pub interfaces: Vec<Interface>,
    /// Interface of each system portal.
    pub(crate) system: Vec<(u16, u16)>,
    /// Common code of the image.
    pub code: CommonCode,
    pub(crate) made: Made,
    pub(crate) semaphores: Semaphores,
    descriptors: Descriptors,
    counters: Vec<bool>,
    pub request: Request,
    pub(crate) replacement: Replacement,
    pub policies: Policies,
    /// Templates of argument letters.
    pub(crate) letters: Letters,
    pub(crate) detours: Vec<Detour>,
    /// Ranges of addresses whose faults somebody answers.
    pub(crate) handled: Vec<Handled>,
    /// The process server's domain, which is never another, if the system has one.
    pub(crate) process: Option<NonZeroU16>,
    /// For whose processor portals are made.
    pub(crate) arch: PhantomData<A>,
}

/// Whether it is this domain. Nobody is no domain, not even the one with number 0.
pub(crate) fn is(who: Option<NonZeroU16>, asid: u16) -> bool {
    who.is_some_and(|who| who.get() == asid)
}

impl<A: Arch> Manager<A> {
    /// Takes over what the image builder has laid out.
    pub fn new(info: &BootInfo) -> Result<Self, Errno> {
        let mut domains: Vec<Domain> = Vec::new();
        domains.resize_with(map::MAX_DOMAINS, Domain::default);
        for d in &info.domains {
            let domain = domains.get_mut(d.asid as usize).ok_or(errno::EINVAL)?;
            domain.alive = true;
            domain.image = true;
            domain.role = NonZeroU16::new(d.asid);
            let threads = info.threads.iter().filter(|t| t.asid == d.asid).count() + usize::from(d.exclusive);
            domain.stacks = u16::from(d.stack_slots).saturating_sub(threads as u16);
            domain.view = pebble_portal::hardware::Domain {
                asid: d.asid,
                space: A::space(d.asid, d.root),
                float: d.float,
                exclusive: d.exclusive,
                fixed_stack: d.fixed_stack,
                trusted: d.server && !d.float,
                ..Default::default()
            };
            domain.reserve();
        }
        let end = info.domains.iter().map(|d| usize::from(d.asid) + 1).max().unwrap_or_default();
        // Names of the image's servers stay theirs while nobody has their role.
        domains[NOBODY as usize].image = true;
        let mut interfaces = Vec::new();
        for i in &info.interfaces {
            domains.get_mut(usize::from(i.asid)).ok_or(errno::EINVAL)?.exports = true;
            let spec = Spec::parse(&i.spec).map_err(|_| errno::EINVAL)?;
            interfaces.push(Interface::new(&i.name, i.asid, i.entry, spec).vouched());
        }
        for p in &info.portals {
            let domain = domains.get_mut(p.asid as usize).ok_or(errno::EINVAL)?;
            let run = if p.len == 0 {
                Run::default()
            } else {
                let len = p.len.next_multiple_of(8);
                let called = interfaces.get(p.interface as usize);
                let shared =
                    called.filter(|i: &&Interface| i.spec.stack == Stack::Shared && i.asid != p.asid);
                let (host, guest) = shared.map_or((0, 0), |i| (p.asid, i.asid));
                Run { at: (p.code - map::CODE_VA) as u32, len, host, guest }
            };
            let goal = match interfaces.get(p.interface as usize).map(|i| &*i.name) {
                None => Goal::Common,
                Some("scheduler.p") => Goal::Wait(p.constant as u16),
                Some("scheduler.v") => Goal::Signal(p.constant as u16),
                Some(_) => Goal::Interface(p.interface),
            };
            domain.slots[usize::from(p.index)] = Slot { goal, run, constant: p.constant, ..Slot::default() };
            domain.open += 1;
        }
        let system = sys::ALL
            .iter()
            .filter_map(|(index, name)| {
                Some((*index as u16, interfaces.iter().position(|i| i.name == *name)? as u16))
            })
            .collect();
        let mut manager = Manager {
            domains,
            end,
            interfaces,
            system,
            code: info.code,
            made: Made::new(info.code_used as u32, info.code.none),
            semaphores: Semaphores {
                owners: alloc::vec![None; map::MAX_SEMAPHORES],
                published: Vec::new(),
                of_image: info.semaphores.iter().map(|s| (s.name.clone(), s.id)).collect(),
            },
            descriptors: Descriptors { free: Vec::new(), next: info.stack_descs as u16 },
            counters: alloc::vec![false; map::MAX_COUNTERS],
            request: Request::default(),
            replacement: Replacement::default(),
            policies: Policies::default(),
            letters: Letters::new(info),
            detours: Vec::new(),
            handled: Vec::new(),
            process: NonZeroU16::new(info.process),
            arch: PhantomData,
        };
        manager.find_shown();
        Ok(manager)
    }

    pub fn domain(&mut self, asid: Asid) -> Result<&mut Domain, Errno> {
        let domain = asid.below(self.domains.len()).map(|n| &mut self.domains[n]);
        domain.filter(|d| d.alive).ok_or(errno::ESRCH)
    }

    /// A domain begins to be, however it came.
    pub(crate) fn enter(&mut self, view: pebble_portal::hardware::Domain) -> &mut Domain {
        self.end = self.end.max(usize::from(view.asid) + 1);
        let domain = &mut self.domains[usize::from(view.asid)];
        (domain.alive, domain.view) = (true, view);
        domain.reserve();
        domain
    }

    /// Those that there ever were, by their numbers.
    pub(crate) fn known(&self) -> impl Iterator<Item = (u16, &Domain)> {
        (0..).zip(&self.domains[..self.end])
    }

    /// The number of a domain's own interface.
    pub fn own_interface(&self, asid: Asid, name: &str) -> Result<u16, Errno> {
        let found = self.interfaces.iter().position(|i| Asid::from(i.asid) == asid && i.name == name);
        found.map(|n| n as u16).ok_or(errno::ENOENT)
    }

    /// A new interface's number; the name server is told by the component.
    pub fn register(
        &mut self,
        machine: &mut impl Machine,
        asid: Asid,
        name: &str,
        spec: Spec,
        entry: u64,
    ) -> Result<u16, Errno> {
        let needs_stacks = {
            let domain = self.domain(asid)?;
            if entry == 0 || entry >= map::USER_END || domain.view.exclusive {
                return Err(errno::EINVAL);
            }
            spec.stack == Stack::New
        };
        let asid = asid.number();
        if self.interfaces.iter().any(|i| i.asid != 0 && i.name == name) {
            return Err(errno::EEXIST);
        }
        if self.reserved(asid, name) {
            return Err(errno::EACCES);
        }
        self.grant_interface(asid)?;
        if needs_stacks {
            self.stacks(machine, asid, STACKS as u16)?;
        }
        self.add_interface(Interface::new(name, asid, entry, spec))
    }

    /// At least so many stacks in a domain's queue.
    pub(crate) fn stacks(&mut self, machine: &mut impl Machine, asid: u16, count: u16) -> Result<(), Errno> {
        while self.domains[asid as usize].stacks < count {
            self.grant_stack(asid)?;
            let top = machine.stack(asid)?;
            self.give_stack(machine, asid, top)?;
            self.domains[asid as usize].stacks += 1;
        }
        Ok(())
    }

    /// Stacks for a domain's queue, if it has none.
    pub(crate) fn provide_stacks(&mut self, machine: &mut impl Machine, asid: u16) -> Result<(), Errno> {
        self.stacks(machine, asid, STACKS as u16)
    }

    pub(crate) fn add_interface(&mut self, interface: Interface) -> Result<u16, Errno> {
        self.domains[usize::from(interface.asid)].exports = true;
        let free = |m: &Self| m.interfaces.iter().position(|i| i.asid == 0);
        let mut place = free(self);
        if place.is_none() && self.interfaces.len() == INTERFACES {
            self.drop_handlers();
            place = free(self);
        }
        match place {
            Some(n) => {
                self.interfaces[n] = interface;
                Ok(n as u16)
            }
            None if self.interfaces.len() < INTERFACES => {
                self.interfaces.push(interface);
                Ok(self.interfaces.len() as u16 - 1)
            }
            None => Err(errno::EAGAIN),
        }
    }

    /// Names of the form `server.method` belong to the component of the image that has any of that server.
    fn reserved(&self, asid: u16, name: &str) -> bool {
        let server = |name: &str| name.split('.').next().map(String::from);
        let image = |owner: u16| self.domains[owner as usize].image;
        let taken = |i: &&Interface| i.asid != asid && image(i.asid) && server(&i.name) == server(name);
        server(name).as_deref() == Some("nucleus") || self.interfaces.iter().find(taken).is_some()
    }

    /// The interface goes, before anybody could open it (its name was refused).
    pub fn unregister(&mut self, interface: u16) {
        if let Some(i) = self.interfaces.get_mut(interface as usize) {
            (i.asid, i.name) = (0, Name::default());
        }
    }

    fn give_stack(&mut self, machine: &mut impl Machine, asid: u16, top: u64) -> Result<(), Errno> {
        let desc = match self.descriptors.free.pop() {
            Some(desc) => desc,
            None if usize::from(self.descriptors.next) < map::MAX_STACKS => {
                self.descriptors.next += 1;
                self.descriptors.next - 1
            }
            None => return Err(errno::EAGAIN),
        };
        let (at, queue) =
            (map::stack_desc_va(desc.into()) - map::KDATA_VA, map::stack_queue_va(asid) - map::KDATA_VA);
        machine.set_data(at + 8, top);
        // Portal code takes and gives stacks of a living domain, and the scheduler turns the end of its
        // queue, between any two steps here. The head alone tells: what lies behind the one that is linked
        // to, is reached through it; an empty queue's head is its end.
        loop {
            let head = machine.data(queue);
            machine.set_data(at, head);
            if machine.exchange_data(queue, head, map::stack_desc_va(desc.into())) {
                return Ok(());
            }
        }
    }

    fn take_stacks(&mut self, machine: &mut impl Machine, asid: u16) {
        let first = map::stack_desc_va(0);
        // The scheduler may have kept some for callers that are gone.
        for list in [map::stack_queue_va(asid), map::stacks_kept_va(asid)] {
            let mut desc = machine.data(list - map::KDATA_VA);
            machine.set_data(list - map::KDATA_VA, map::STACKS_END);
            while (first..map::stack_desc_va(map::MAX_STACKS)).contains(&desc) {
                self.descriptors.free.push(((desc - first) / 16) as u16);
                desc = machine.data(desc - map::KDATA_VA);
            }
        }
    }

    /// For one more portal in a domain's table.
    pub(crate) fn counter(&mut self, machine: &mut impl Machine, asid: u16) -> Result<u16, Errno> {
        self.grant_counter(asid)?;
        let n = self.counters.iter().position(|used| !used).ok_or(errno::ECOUNTERS)?;
        self.counters[n] = true;
        machine.set_data(map::counter_va(n) - map::KDATA_VA, 0);
        Ok(n as u16)
    }

    pub(crate) fn free_counter(&mut self, counter: Option<u16>) {
        if let Some(counter) = counter {
            self.counters[counter as usize] = false;
        }
    }

    /// A domain died: nobody can reach it any more, and nothing of it is found again, but the interfaces that
    /// wait for a successor: these are returned.
    pub fn retire(&mut self, machine: &mut impl Machine, asid: Asid) -> Result<Vec<u16>, Errno> {
        let _ = self.watch(machine, asid, None);
        self.domain(asid)?.alive = false;
        let asid = asid.number();
        self.end_ranges(machine, asid);
        self.release(machine, asid);
        self.abandon(machine, asid.into());
        let vacant = self.vacate_role(machine, asid);
        self.drop_guards(machine, asid);
        self.drop_draft(asid);
        // Most programs have neither: nobody could reach them.
        let Domain { exports, makes_semaphores, .. } = self.domains[usize::from(asid)];
        if exports || makes_semaphores {
            self.bar(machine, asid);
        }
        self.leave_gifts(asid);
        if exports {
            self.interfaces.iter_mut().filter(|i| i.asid == asid).for_each(|i| i.asid = 0);
            self.domains[usize::from(asid)].handlers.clear();
        }
        for id in 0..self.semaphores.owners.len() * usize::from(makes_semaphores) {
            if is(self.semaphores.owners[id], asid) {
                self.semaphores.owners[id] = None;
                self.semaphores.published.retain(|(_, s)| usize::from(*s) != id);
                machine.free_semaphore(id as u16);
            }
        }
        Ok(vacant)
    }

    /// No interface of the domain's is found any more, and what others had opened answers CLOSED.
    fn bar(&mut self, machine: &mut impl Machine, asid: u16) {
        self.interfaces.iter_mut().filter(|i| i.asid == asid).for_each(|i| i.name = Name::default());
        let clients = self.clients(|goal| self.leads_to(goal, asid));
        for (other, index) in clients.into_iter().filter(|(other, _)| *other != asid) {
            self.entomb(machine, other, index, asid);
        }
    }

    /// Whether a domain has made this semaphore.
    pub(crate) fn owns(&self, asid: u16, semaphore: u16) -> bool {
        self.semaphores.owners.get(usize::from(semaphore)).is_some_and(|owner| is(*owner, asid))
    }

    #[inline(always)]
    pub(crate) fn leads_to(&self, goal: Goal, asid: u16) -> bool {
        match goal {
            Goal::Interface(i) => self.interfaces.get(i as usize).is_some_and(|i| i.asid == asid),
            Goal::Wait(s) | Goal::Signal(s) => self.owns(asid, s),
            _ => false,
        }
    }

    /// Frees all that a retired domain had, once no thread depends on it.
    pub fn reclaim(&mut self, machine: &mut impl Machine, asid: Asid, current: Current) -> Result<(), Errno> {
        let n = asid.below(map::MAX_DOMAINS).filter(|n| *n > 0).ok_or(errno::ESRCH)?;
        if self.domains[n].alive {
            return Err(errno::EINVAL);
        }
        let id = n as u16;
        if !self.sweep_without(machine, current, Some(id)) {
            return Err(errno::EAGAIN);
        }
        self.take_stacks(machine, id);
        self.domains[n] = Domain::default();
        self.forget_shown(id);
        self.made.births.forget(id);
        Ok(())
    }

    /// Portals, bytes of code, semaphores made here, interfaces with names.
    pub fn stats(&self) -> [u64; 4] {
        let portals: usize = self.known().map(|(_, d)| d.open).sum();
        let semaphores = self.semaphores.owners.iter().flatten().count();
        let interfaces = self.interfaces.iter().filter(|i| i.asid != 0 && !i.name.is_empty()).count();
        [portals as u64, self.made.arena.used().into(), semaphores as u64, interfaces as u64]
    }
}

impl Domain {
    /// Entries below the first free index belong to the system.
    pub(crate) fn reserve(&mut self) {
        self.slots.reserve(sys::FIRST_FREE);
        self.hint = sys::FIRST_FREE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_no_domain() {
        assert!(is(NonZeroU16::new(7), 7) && !is(NonZeroU16::new(7), 8));
        assert!(!is(None, 0) && !is(None, 7));
    }
}

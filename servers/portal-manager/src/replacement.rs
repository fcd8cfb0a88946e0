//! Replacement: another domain takes the place of a component, alive or dead, and its clients do not notice.
//!
//! **Problem.** Clients hold portals with the old domain compiled in, and go on calling. **Strategy.** A
//! component of the image has a *role*: a number that stays while domains come and go. A successor is
//! [adopted](Manager::adopt) into the role: it gets the system portals that the role has, and may
//! [import](Manager::import) what the role imported. It [offers](Manager::offer) entries.
//! [`prepare`](Manager::prepare) compiles, beside the old code, the portals of every client for the new
//! entries; [`commit`](Manager::commit) stores the table words and gives the interfaces, whose numbers stay,
//! to the new domain.
//!
//! **Invariants:**
//! * until `commit` nothing of the old domain is changed, and `abandon` takes back everything;
//! * every interface of the role has an offer of the same name and specification, or nothing is prepared;
//! * the old code stays until no invocation stack mentions it, as after every closing;
//! * whoever waits in an exclusive domain waits, after a commit, in its successor;
//! * a role that is kept while nobody has it (its component died) keeps its names; portals into it answer
//!   CLOSED with the dead domain's number;
//! * a successor has no portal of a kind that the role never had, except by the name server's policy.

mod role;

use crate::Machine;
use crate::arena::Run;
use crate::frames::{self, Current};
use crate::interfaces::{Interface, Written};
use crate::manager::{Goal, Manager, Slot};
use alloc::vec::Vec;
use core::num::NonZeroU16;
use pebble_abi::errno::{self, Errno};
use pebble_abi::words::Asid;
use pebble_abi::{map, status, sys};
use pebble_arch::Arch;
use pebble_portal::Spec;
use pebble_portal::hardware::{Connection, Shape, Short};
use pebble_portal::spec::Stack;
use role::Offer;
pub(crate) use role::Replacement;
pub use role::{Role, Successor};

/// Owner of the interfaces of a role that nobody has; no domain ever has this number.
pub const NOBODY: u16 = map::MAX_DOMAINS as u16 - 1;

/// Common code that leads into a component: its interface, the entry of every table, the shape.
const COMMON: [(&str, usize, Shape); 3] = [
    ("irq.entry", sys::INTERRUPT, Shape::Interrupt),
    ("scheduler.stack_wait", sys::NO_STACK, Shape::NoStack),
    ("scheduler.thread_exit", sys::THREAD_END, Shape::ThreadExit),
];

/// Name of an interface that nobody can look up.
const UNLISTED: &str = " ";

/// Whether it is one of these interfaces.
fn leads_into(goal: Goal, interfaces: &[u16]) -> bool {
    matches!(goal, Goal::Interface(i) if interfaces.contains(&i))
}

impl<A: Arch> Manager<A> {
    /// The living domain that has the role.
    pub fn holder(&self, role: NonZeroU16) -> Option<u16> {
        let has = |d: &crate::Domain| d.alive && d.role == Some(role);
        self.domains.iter().position(has).map(|n| n as u16)
    }

    /// Remembers what the domain that has the role of this number may do.
    fn record(&mut self, machine: &impl Machine, asid: u16, number: NonZeroU16) {
        let d = &self.domains[asid as usize];
        let system = d.slots.used().take_while(|(index, _)| *index < sys::FIRST_FREE);
        let system = system.map(|(index, s)| (index as u16, s.goal, machine.table(asid, index as u16)));
        let system = system.filter(|(.., word)| *word != self.code.none).collect();
        let own = d.slots.used().skip_while(|(index, _)| *index < sys::FIRST_FREE).map(|(_, s)| s.goal);
        let own: Vec<Goal> = own.collect();
        let kept = self.replacement.roles.iter().any(|r| r.number == number && r.kept);
        let (trusted, exclusive) = (d.view.trusted, d.view.exclusive);
        let may = own.iter().filter(|g| matches!(g, Goal::Interface(_) | Goal::Wait(_)));
        let mut may: Vec<Goal> = may.copied().collect();
        // What the last one opened while it ran is no more the role's than the stranger's; what the role ever
        // imported stays.
        for goal in self.replacement.roles.iter().filter(|r| r.number == number).flat_map(|r| &r.may) {
            if !may.contains(goal) {
                may.push(*goal);
            }
        }
        // Of the nucleus's portals only this one is imported at an index that is not fixed.
        let top =
            own.contains(&Goal::Common) || self.replacement.roles.iter().any(|r| r.number == number && r.top);
        // Code of the nucleus that the image made for this component alone is the role's from now on: it
        // stays when the domain goes.
        let end = d.slots.len().min(sys::FIRST_FREE);
        for index in 0..end {
            let slot = &mut self.domains[asid as usize].slots[index];
            if slot.goal == Goal::Common && index != sys::SYS_GET_ASID {
                slot.run = Run::default();
            }
        }
        self.replacement.roles.retain(|r| r.number != number);
        let stacks = self.domains[asid as usize].stacks;
        self.replacement.roles.push(Role { number, trusted, exclusive, kept, system, may, top, stacks });
    }

    /// Whether the names of a role stay reserved when its domain dies.
    pub fn keep_role(&mut self, machine: &mut impl Machine, role: u64, keep: bool) -> Result<(), Errno> {
        let role = u16::try_from(role).map_err(|_| errno::EINVAL)?;
        let role = NonZeroU16::new(role).ok_or(errno::ESRCH)?;
        if let Some(asid) = self.holder(role)
            && self.replacement.roles.iter().all(|r| r.number != role)
        {
            self.record(machine, asid, role);
        }
        let known = self.replacement.roles.iter_mut().find(|r| r.number == role).ok_or(errno::ESRCH)?;
        known.kept = keep;
        if !keep && self.holder(role).is_none() {
            self.give_up(machine, role);
        }
        Ok(())
    }

    /// Nobody will have the role any more: its interfaces go for good.
    fn give_up(&mut self, machine: &mut impl Machine, role: NonZeroU16) {
        for n in 0..self.interfaces.len() {
            if self.interfaces[n].asid == NOBODY && self.interfaces[n].role == Some(role) {
                let dead = self.interfaces[n].entry as u16;
                for (asid, index) in self.clients(|goal| goal == Goal::Interface(n as u16)) {
                    self.entomb(machine, asid, index, dead);
                }
                self.unregister(n as u16);
            }
        }
    }

    /// The domain that dies has a role that is kept: its interfaces stay, and lead nowhere until somebody
    /// takes the role. These are returned.
    pub(crate) fn vacate_role(&mut self, machine: &mut impl Machine, asid: u16) -> Vec<u16> {
        let kept = |role: &NonZeroU16| self.replacement.roles.iter().any(|r| r.number == *role && r.kept);
        let Some(role) = self.domains[asid as usize].role.filter(kept) else { return Vec::new() };
        self.record(machine, asid, role);
        let mut gone = Vec::new();
        for (n, i) in (0u16..).zip(&mut self.interfaces).filter(|(_, i)| i.asid == asid) {
            (i.asid, i.entry, i.role) = (NOBODY, asid.into(), Some(role));
            gone.push(n);
        }
        for (client, index) in self.clients(|goal| matches!(goal, Goal::Interface(i) if gone.contains(&i))) {
            self.rebuild(machine, client, index);
        }
        gone
    }

    /// Whether a thread is in a call that this domain has not answered.
    pub fn busy(&self, machine: &impl Machine, asid: Asid, current: Current) -> bool {
        let end = self.code.thread_end;
        let mut threads = machine.threads();
        threads.any(|tid| frames::any::<A>(machine, tid, current, end, |f| Asid::from(f.callee) == asid))
    }

    /// Slots of living domains with such a goal.
    pub(crate) fn clients(&self, wanted: impl Fn(Goal) -> bool) -> Vec<(u16, u16)> {
        let mut found = Vec::new();
        for (asid, domain) in self.known().filter(|(_, d)| d.alive) {
            domain.slots.each_used(|index, slot| {
                if wanted(slot.goal) {
                    found.push((asid, index as u16));
                }
            });
        }
        found
    }

    /// New code for a slot whose goal has changed its meaning. Without room for that it leads nowhere.
    fn rebuild(&mut self, machine: &mut impl Machine, asid: u16, index: u16) {
        let old = self.domains[asid as usize].slots[index as usize];
        let mut slot = Slot { run: Run::default(), ..old };
        let word = match self.build(machine, asid, index, &slot) {
            Ok(run) => {
                slot.run = run;
                map::CODE_VA + u64::from(run.at)
            }
            Err(_) => self.made.closed,
        };
        machine.set_table(asid, index, word);
        self.domains[asid as usize].slots[index as usize] = slot;
        self.discard(Slot { counter: None, ..old });
    }

    /// A fresh domain enters a role: its table gets what the role's system part has.
    pub fn adopt(
        &mut self,
        machine: &mut impl Machine,
        role: u64,
        mut view: pebble_portal::hardware::Domain,
    ) -> Result<(), Errno> {
        let number = u16::try_from(role).ok().and_then(NonZeroU16::new).ok_or(errno::ESRCH)?;
        if let Some(asid) = self.holder(number) {
            self.record(machine, asid, number);
        }
        let role = self.replacement.roles.iter().position(|r| r.number == number).ok_or(errno::ESRCH)?;
        let asid = view.asid;
        let fresh = self.domains.get(asid as usize).is_some_and(|d| !d.alive && d.slots.is_empty());
        if !fresh || self.replacement.successors.iter().any(|s| s.role == number) {
            return Err(errno::EAGAIN);
        }
        view.trusted = self.replacement.roles[role].trusted && !view.float;
        if self.replacement.roles[role].exclusive {
            view.exclusive = true;
            view.fixed_stack = machine.stack(asid)?;
        }
        self.enter(view).image = true;
        for entry in 0..map::TABLE_ENTRIES_PER_PAGE {
            machine.set_table(asid, entry as u16, self.code.none);
        }
        self.replacement.successors.push(Successor {
            role: number,
            asid,
            offers: Vec::new(),
            entries: Vec::new(),
            portals: Vec::new(),
            reached: Vec::new(),
        });
        for (index, goal, word) in self.replacement.roles[role].system.clone() {
            if index as usize == sys::SYS_GET_ASID {
                self.identity(machine, view)?;
            } else if goal == Goal::Common {
                // Of a role that nobody had for a while, some may be out of date.
                let word = self.common_word(index.into(), view.float).unwrap_or(word);
                machine.set_table(asid, index, word);
            } else {
                self.fill(machine, asid, index.into(), &[(goal, self.constant_of(goal))])?;
            }
        }
        Ok(())
    }

    /// Where every table leads at an entry that goes with a component, if that has been replaced.
    fn common_word(&self, index: usize, float: bool) -> Option<u64> {
        let (_, runs) = self.made.common_runs.iter().find(|(i, _)| usize::from(*i) == index)?;
        Some(map::CODE_VA + u64::from(runs[usize::from(float)].at))
    }

    fn constant_of(&self, goal: Goal) -> u64 {
        match goal {
            Goal::Wait(id) | Goal::Signal(id) => id.into(),
            _ => 0,
        }
    }

    fn successor(&mut self, asid: Asid) -> Result<&mut Successor, Errno> {
        self.replacement.successors.iter_mut().find(|s| Asid::from(s.asid) == asid).ok_or(errno::ESRCH)
    }

    /// The index of a portal that the role had, in the successor's table; -EACCES for what it had not.
    pub fn import(&mut self, machine: &mut impl Machine, asid: Asid, name: &str) -> Result<u16, Errno> {
        let number = self.successor(asid)?.role;
        let role = self.replacement.roles.iter().find(|r| r.number == number).ok_or(errno::ESRCH)?;
        if let Some((index, _)) = sys::FIXED.iter().find(|(_, n)| *n == name) {
            let held = role.system.iter().any(|(i, ..)| usize::from(*i) == *index);
            return if held { Ok(*index as u16) } else { Err(errno::EACCES) };
        }
        if name == "nucleus.top" {
            return if role.top { self.own_top(machine, asid.number()) } else { Err(errno::EACCES) };
        }
        let goal = match name.strip_prefix("semaphore.") {
            Some(name) => {
                let named = self.semaphores.of_image.iter().find(|(n, _)| n == name);
                Goal::Wait(named.ok_or(errno::ENOENT)?.1)
            }
            None => {
                let at = self.interfaces.iter().position(|i| i.asid != 0 && i.name == name);
                Goal::Interface(at.ok_or(errno::ENOENT)? as u16)
            }
        };
        if !role.may.contains(&goal) {
            return Err(errno::EACCES);
        }
        match goal {
            Goal::Wait(id) => self.semaphore(machine, asid, id),
            Goal::Interface(interface) => self.open(machine, asid, interface),
            _ => Err(errno::EACCES),
        }
    }

    /// The portal that tells the top of the invocation stack.
    fn own_top(&mut self, machine: &mut impl Machine, asid: u16) -> Result<u16, Errno> {
        let index = self.find(machine, asid, 1)?;
        let c = Connection { caller: self.domains[asid as usize].view, ..Connection::default() };
        let run = self.make_plain(machine, Shape::Short(Short::Top), &c)?;
        self.domains[asid as usize].slots[index] = Slot { goal: Goal::Common, run, ..Slot::default() };
        self.domains[asid as usize].open += 1;
        machine.set_table(asid, index as u16, map::CODE_VA + u64::from(run.at));
        Ok(index as u16)
    }

    /// An entry that the successor has.
    pub fn offer(&mut self, asid: Asid, name: &str, spec: Spec, entry: u64) -> Result<(), Errno> {
        let successor = self.successor(asid)?;
        if entry == 0 || entry >= map::USER_END || successor.offers.len() >= 64 {
            return Err(errno::EINVAL);
        }
        successor.offers.push(Offer { name: name.into(), spec, entry });
        Ok(())
    }

    /// A portal for `asid` to what the successor offers under that name, until it is in charge or abandoned.
    pub fn reach(
        &mut self,
        machine: &mut impl Machine,
        asid: Asid,
        successor: Asid,
        name: &str,
    ) -> Result<u16, Errno> {
        let s = self.successor(successor)?;
        let offer = s.offers.iter().find(|o| o.name == name).ok_or(errno::ENOENT)?;
        let (spec, entry, owner, role) = (offer.spec.clone(), offer.entry, s.asid, s.role);
        if spec.stack == Stack::New && !self.domains[owner as usize].view.exclusive {
            self.provide_stacks(machine, owner)?;
        }
        // What the role has already, and nothing else, has been vouched for.
        let holder = self.holder_but(role, owner);
        let its =
            |i: &&Interface| holder.map_or(i.asid == NOBODY && i.role == Some(role), |old| i.asid == old);
        let vouched =
            self.interfaces.iter().filter(its).any(|i| i.vouched && i.name == name && i.spec == spec);
        let unlisted = Interface { vouched, ..Interface::new(UNLISTED, owner, entry, spec) };
        let number = self.add_interface(unlisted)?;
        self.successor(successor)?.reached.push(number);
        self.open(machine, asid, number)
    }

    /// Portals that are ready for a successor.
    pub(crate) fn prepared(&self) -> impl Iterator<Item = &Slot> {
        self.replacement.successors.iter().flat_map(|s| s.portals.iter().map(|(.., slot)| slot))
    }

    /// Unlisted interfaces made for a successor go; who still has a portal to one is told that it is closed.
    /// `portals`: all that lead to them, and maybe others, which stay.
    fn unreach(
        &mut self,
        machine: &mut impl Machine,
        numbers: &[u16],
        asid: u16,
        portals: &mut Vec<(u16, u16)>,
    ) {
        portals.retain(|(client, index)| {
            let slot = &self.domains[usize::from(*client)].slots[usize::from(*index)];
            let gone = leads_into(slot.goal, numbers);
            if gone {
                self.entomb(machine, *client, *index, asid);
            }
            !gone
        });
        numbers.iter().for_each(|n| self.unregister(*n));
    }

    /// The domain gets the portal through which its calls leave with status `MOVED`.
    pub fn let_leave(&mut self, machine: &mut impl Machine, asid: Asid) -> Result<(), Errno> {
        self.domain(asid)?;
        if self.made.moved == 0 {
            let shape = Shape::Leave(status::MOVED as u16);
            let run = self.make_plain(machine, shape, &Connection::default())?;
            self.made.moved = map::CODE_VA + u64::from(run.at);
        }
        machine.set_table(asid.number(), sys::LEAVE_MOVED as u16, self.made.moved);
        Ok(())
    }

    /// Compiles every client's portal for the successor. Nothing changes for anybody yet.
    pub fn prepare_successor(&mut self, machine: &mut impl Machine, asid: Asid) -> Result<(), Errno> {
        let (role, new) = {
            let s = self.successor(asid)?;
            (s.role, s.asid)
        };
        let old = self.holder_but(role, new);
        let mut entries = Vec::new();
        for (n, i) in (0u16..).zip(&self.interfaces) {
            let its = old.map_or(i.asid == NOBODY && i.role == Some(role), |old| i.asid == old);
            if !its || i.name.is_empty() || i.name == UNLISTED {
                continue;
            }
            let successor = self.replacement.successors.iter().find(|s| s.asid == new).ok_or(errno::ESRCH)?;
            let offer = successor.offers.iter().find(|o| *o.name == *i.name && o.spec == i.spec);
            entries.push((n, offer.ok_or(errno::ENOENT)?.entry));
        }
        let needs_stacks = |n: &(u16, u64)| self.interfaces[n.0 as usize].spec.stack == Stack::New;
        if !self.domains[new as usize].view.exclusive && entries.iter().any(needs_stacks) {
            let stacks = self.replacement.roles.iter().find(|r| r.number == role).map_or(0, |r| r.stacks);
            self.stacks(machine, new, stacks.max(1))?;
        }
        // For the time of compiling, the interfaces are the successor's.
        let before: Vec<(u16, u64)> = entries.iter().map(|(n, entry)| self.aim(*n, new, *entry)).collect();
        let goals: Vec<u16> = entries.iter().map(|(n, _)| *n).collect();
        let slots = self.leading_into(&goals);
        let outcome = self.build_all(machine, &slots);
        for ((n, _), (owner, entry)) in entries.iter().zip(before) {
            self.aim(*n, owner, entry);
        }
        let portals = outcome?;
        let successor = self.successor(asid)?;
        (successor.entries, successor.portals) = (entries, portals);
        Ok(())
    }

    /// The living domain that has the role, other than its successor.
    fn holder_but(&self, role: NonZeroU16, new: u16) -> Option<u16> {
        self.holder(role).filter(|old| *old != new)
    }

    /// All portals that lead to these interfaces.
    fn leading_into(&self, interfaces: &[u16]) -> Vec<(u16, u16)> {
        // Looked up once, and not for each portal.
        let has = |name| {
            let named = self.interfaces.iter().position(|i| i.name == name);
            named.is_some_and(|n| interfaces.contains(&(n as u16)))
        };
        let (waits, signals) = (has("scheduler.p"), has("scheduler.v"));
        self.clients(|goal| match goal {
            Goal::Wait(_) => waits,
            Goal::Signal(_) => signals,
            _ => leads_into(goal, interfaces),
        })
    }

    /// The interface belongs to this domain from now on; who had it, and its entry there.
    fn aim(&mut self, interface: u16, asid: u16, entry: u64) -> (u16, u64) {
        let i = &mut self.interfaces[interface as usize];
        let before = (i.asid, i.entry);
        (i.asid, i.entry) = (asid, entry);
        self.domains[usize::from(asid)].exports = true;
        before
    }

    /// New code for all these slots, or none.
    pub(crate) fn build_all(
        &mut self,
        machine: &mut impl Machine,
        slots: &[(u16, u16)],
    ) -> Result<Vec<(u16, u16, Slot)>, Errno> {
        let mut made = Vec::with_capacity(slots.len());
        for (asid, index) in slots {
            let slot = self.domains[*asid as usize].slots[*index as usize];
            match self.build(machine, *asid, *index, &slot) {
                Ok(run) => made.push((*asid, *index, Slot { run, ..slot })),
                Err(error) => {
                    made.into_iter().for_each(|(.., slot)| self.discard(Slot { counter: None, ..slot }));
                    return Err(error);
                }
            }
        }
        Ok(made)
    }

    /// Code that every domain's table leads to, for those of these interfaces that it calls: made before
    /// anything changes, without it nothing will.
    fn common_code(
        &mut self,
        machine: &mut impl Machine,
        entries: &[(u16, u64)],
        new: u16,
    ) -> Result<Vec<(u16, [Run; 2])>, Errno> {
        let callee = self.domains[new as usize].view;
        let mut made = Vec::new();
        for (name, index, shape) in COMMON {
            let called = |(n, _): &&(u16, u64)| self.interfaces[*n as usize].name == name;
            let Some((interface, entry)) = entries.iter().find(called).copied() else { continue };
            let spec = self.interfaces[interface as usize].spec.clone();
            let mut runs = [Run::default(); 2];
            for (float, run) in [false, true].into_iter().zip(&mut runs) {
                let caller = pebble_portal::hardware::Domain { float, ..Default::default() };
                let c = Connection { caller, callee, entry, ..Connection::default() };
                *run = self.make(machine, Written::of(&spec), shape, &c)?;
            }
            made.push((index as u16, runs));
        }
        Ok(made)
    }

    /// Every table leads to this common code from now on; what it led to before goes, if it was made here.
    fn install_common(&mut self, machine: &mut impl Machine, made: Vec<(u16, [Run; 2])>) {
        for (index, runs) in made {
            let words = runs.map(|run| map::CODE_VA + u64::from(run.at));
            for asid in (1..NOBODY).filter(|asid| self.domains[*asid as usize].alive) {
                let view = self.domains[asid as usize].view;
                // In an exclusive domain an interrupt is a mistake.
                if usize::from(index) != sys::INTERRUPT || !view.exclusive {
                    machine.set_table(asid, index, words[usize::from(view.float)]);
                }
            }
            match usize::from(index) {
                sys::INTERRUPT => self.code.interrupt = words,
                sys::NO_STACK => self.code.no_stack = words,
                _ => {
                    self.code.thread_exit = words[0];
                    machine.set_dead_entry(index, words[0]);
                }
            }
            let before = self.made.common_runs.iter().position(|(i, _)| *i == index);
            if let Some(at) = before {
                let (_, old) = self.made.common_runs.swap_remove(at);
                old.into_iter().for_each(|run| self.discard(Slot { run, ..Slot::default() }));
            }
            self.made.common_runs.push((index, runs));
        }
    }

    /// The successor has the role: the old domain's interfaces and clients are its own. Portals opened since
    /// `prepare` are compiled now. Returns the interfaces.
    pub fn commit(
        &mut self,
        machine: &mut impl Machine,
        asid: Asid,
        current: Current,
    ) -> Result<Vec<u16>, Errno> {
        let at = self
            .replacement
            .successors
            .iter()
            .position(|s| Asid::from(s.asid) == asid && !s.entries.is_empty());
        let prepared = self.replacement.successors[at.ok_or(errno::ESRCH)?].entries.clone();
        let common = self.common_code(machine, &prepared, asid.number())?;
        let Successor { role, asid: new, entries, portals, reached, .. } =
            self.replacement.successors.swap_remove(at.ok_or(errno::ESRCH)?);
        let old = self.holder_but(role, new);
        let goals: Vec<u16> = entries.iter().map(|(n, _)| *n).collect();
        // Nobody can call while the tables are looked through: it is done once.
        let mut late = self.leading_into(&[&goals[..], &reached].concat());
        self.unreach(machine, &reached, new, &mut late);
        for (n, entry) in &entries {
            self.aim(*n, new, *entry);
            self.interfaces[*n as usize].role = None;
        }
        for (client, index, slot) in portals {
            let d = &self.domains[client as usize];
            let now = d.slots.get(index as usize).filter(|_| d.alive);
            let same =
                |s: &&Slot| (s.goal, s.constant, s.counter) == (slot.goal, slot.constant, slot.counter);
            match now.filter(same).copied() {
                Some(before) => {
                    machine.set_table(client, index, map::CODE_VA + u64::from(slot.run.at));
                    self.domains[client as usize].slots[index as usize] = slot;
                    self.discard(Slot { counter: None, ..before });
                    late.retain(|l| *l != (client, index));
                }
                None => self.discard(Slot { counter: None, ..slot }),
            }
        }
        for (client, index) in late {
            self.rebuild(machine, client, index);
        }
        self.install_common(machine, common);
        self.domains[new as usize].role = Some(role);
        if let Some(old) = old {
            self.domains[old as usize].role = None;
            self.inherit_waits(machine, old, new, current);
        }
        Ok(goals)
    }

    /// Threads that wait in an exclusive domain never come back to it: another instance wakes them, and they
    /// go on behind its return code. So their stacks name the successor from now on, and nothing keeps the
    /// old domain. No table leads there any more: none can follow.
    fn inherit_waits(&mut self, machine: &mut impl Machine, old: u16, new: u16, current: Current) {
        if !self.domains[old as usize].view.exclusive {
            return;
        }
        let others: Vec<u16> = machine.threads().filter(|tid| *tid != current.tid).collect();
        for tid in others {
            if let Some(frame) = frames::waits::<A>(machine, tid).filter(|frame| frame.callee == old) {
                frames::rename(machine, frame, new);
            }
        }
    }

    /// The successor will not have the role: what was compiled for it goes.
    pub fn abandon(&mut self, machine: &mut impl Machine, asid: Asid) {
        if let Some(at) = self.replacement.successors.iter().position(|s| Asid::from(s.asid) == asid) {
            let successor = self.replacement.successors.swap_remove(at);
            successor.portals.into_iter().for_each(|(.., slot)| self.discard(Slot { counter: None, ..slot }));
            let reached = successor.reached;
            let mut portals = self.clients(|goal| leads_into(goal, &reached));
            self.unreach(machine, &reached, successor.asid, &mut portals);
        }
    }
}

//! Building the code behind an entry.
//!
//! Whoever opens, replaces or closes a portal gets code for it here, and writes the table word itself: until
//! then nobody is led there. What two domains must have before there can be a portal between them, pages,
//! stacks and the sight of stacks, is asked for first; what the code comes from is only looked at then, and not
//! copied.

use crate::Machine;
use crate::arena::Run;
use crate::interfaces::Written;
use crate::made::Failure;
use crate::manager::{Goal, Manager, Slot};
use crate::replacement::NOBODY;
use crate::specification::uncompiled;
use core::num::NonZeroU16;
use pebble_abi::errno::{self, Errno};
use pebble_abi::status;
use pebble_arch::Arch;
use pebble_portal::hardware::{Connection, Shape, ir};
use pebble_portal::spec::{Spec, Stack, State};

/// For portals whose shape ignores the specification.
fn plain() -> Spec {
    Spec { stack: Stack::Shared, state: State::Minimal, args: Default::default(), results: 0 }
}

impl<A: Arch> Manager<A> {
    /// Finds the form, or compiles and verifies it; places the portal.
    pub(crate) fn make(
        &mut self,
        machine: &mut impl Machine,
        written: Written,
        shape: Shape,
        c: &Connection,
    ) -> Result<Run, Errno> {
        self.made.make::<A>(machine, written, shape, c).map(|(run, _)| run).map_err(|failure| match failure {
            Failure::Compiling(error) => self.refuse_code(c.callee.asid, uncompiled(written.text, error)),
            Failure::Placing(error) => error,
        })
    }

    /// The same, of a shape that ignores the specification.
    pub(crate) fn make_plain(
        &mut self,
        machine: &mut impl Machine,
        shape: Shape,
        c: &Connection,
    ) -> Result<Run, Errno> {
        self.make(machine, Written::of(&plain()), shape, c)
    }

    /// Code for a slot's goal.
    pub(crate) fn build(
        &mut self,
        machine: &mut impl Machine,
        asid: u16,
        index: u16,
        slot: &Slot,
    ) -> Result<Run, Errno> {
        match self.reopen(machine, asid, index, slot) {
            Some(run) => Ok(run),
            None => self.build_anew(machine, asid, index, slot),
        }
    }

    // What opens a portal again has no use for its frame.
    #[inline(never)]
    fn build_anew(
        &mut self,
        machine: &mut impl Machine,
        asid: u16,
        index: u16,
        slot: &Slot,
    ) -> Result<Run, Errno> {
        let (interface, shape) = match slot.goal {
            Goal::Interface(i) => (i, Shape::Call),
            Goal::Wait(s) => (self.scheduler("scheduler.p")?, Shape::Wait(s)),
            Goal::Signal(s) => (self.scheduler("scheduler.v")?, Shape::Signal(s)),
            Goal::Closed(target) => return self.build_closed(machine, (asid, index), slot, target),
            Goal::Free | Goal::Common => return Ok(Run::default()),
        };
        let i = self.interfaces.get(usize::from(interface)).filter(|i| i.asid != 0).ok_or(errno::ENOENT)?;
        if i.asid == NOBODY {
            let dead = i.entry as u16;
            return self.build_closed(machine, (asid, index), slot, dead);
        }
        let shared = self.join(machine, asid, interface, slot)?;
        let made = self.connect(machine, (asid, index), (interface, shape), slot);
        if !shared {
            return made;
        }
        let made = made.inspect_err(|_| self.hide_stacks(machine))?;
        Ok(Run { host: asid, guest: self.interfaces[usize::from(interface)].asid, ..made })
    }

    /// What was behind the entry is gone, or its role is nobody's.
    fn build_closed(
        &mut self,
        machine: &mut impl Machine,
        (asid, index): (u16, u16),
        slot: &Slot,
        target: u16,
    ) -> Result<Run, Errno> {
        let (caller, counter) = (self.domains[usize::from(asid)].view, slot.counter);
        let c = Connection { caller, index, counter, ..Connection::default() };
        self.make_plain(machine, Shape::Short(ir::closed(status::CLOSED, target)), &c)
    }

    /// What the two domains must have before there can be such a portal. Whether the callee runs on stacks of
    /// the caller, which it sees now.
    fn join(
        &mut self,
        machine: &mut impl Machine,
        asid: u16,
        interface: u16,
        slot: &Slot,
    ) -> Result<bool, Errno> {
        let i = &self.interfaces[usize::from(interface)];
        let (callee, shared) = (i.asid, i.spec.stack == Stack::Shared);
        if let Some(moves) = i.moves {
            self.lend(machine, asid, callee, moves)?;
        }
        if shared && slot.subject.is_some() {
            self.provide_stacks(machine, callee)?;
        } else if shared && callee != asid {
            self.show_stacks(machine, asid, callee)?;
            return Ok(true);
        }
        Ok(false)
    }

    /// The portal to an interface whose domain lives.
    fn connect(
        &mut self,
        machine: &mut impl Machine,
        (asid, index): (u16, u16),
        (interface, shape): (u16, Shape),
        slot: &Slot,
    ) -> Result<Run, Errno> {
        let Manager { domains, interfaces, letters, made, .. } = self;
        let i = &interfaces[usize::from(interface)];
        let (caller, callee) = (&domains[usize::from(asid)].view, &domains[usize::from(i.asid)].view);
        // Two exclusive domains share no stack, and keep no frame between them.
        let tail = caller.exclusive && callee.exclusive && shape == Shape::Call;
        let shape = if tail { Shape::Tail } else { shape };
        let c = Connection {
            caller: *caller,
            callee: *callee,
            entry: i.entry,
            index,
            constant: slot.constant,
            counter: slot.counter,
            // A controller answers for the portal that a stub stands for, and can feign errors only to its own
            // child.
            keeps_status: i.name.is_empty() && shape == Shape::Call,
            // What was opened for a controlled domain tells that one's number.
            subject: slot.subject.filter(|_| shape == Shape::Call).map_or(0, NonZeroU16::get),
            templates: &letters.registered,
        };
        let below = slot.subject.map(|_| i.below());
        let written = below.as_ref().map_or_else(|| i.written(), Written::of);
        match made.make::<A>(machine, written, shape, &c) {
            Ok((run, constant)) => {
                self.remember(asid, index, slot, run, constant);
                Ok(run)
            }
            Err(Failure::Placing(error)) => Err(error),
            Err(Failure::Compiling(error)) => {
                let (exporter, why) = (i.asid, uncompiled(written.text, error));
                Err(self.refuse_code(exporter, why))
            }
        }
    }

    /// What windows need of the two domains: asked for once.
    fn lend(
        &mut self,
        machine: &mut impl Machine,
        caller: u16,
        callee: u16,
        moves: bool,
    ) -> Result<(), Errno> {
        if self.domains[caller as usize].view.l1 == 0 {
            self.domains[caller as usize].view.l1 = machine.space(caller)?;
        }
        for asid in [Some(callee), moves.then_some(caller)].into_iter().flatten() {
            if self.domains[asid as usize].view.windows == 0 {
                self.domains[asid as usize].view.windows = machine.windows(asid)?;
            }
        }
        Ok(())
    }

    fn scheduler(&self, name: &str) -> Result<u16, Errno> {
        self.interfaces
            .iter()
            .position(|i| i.asid != 0 && i.name == name)
            .map(|n| n as u16)
            .ok_or(errno::ENOENT)
    }
}

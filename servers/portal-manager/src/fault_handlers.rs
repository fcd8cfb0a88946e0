//! Faults by address range: the portals by which the VM manager asks handlers.
//!
//! A domain names a portal that it holds, and pages of its own; the VM manager gets a portal to the same
//! interface, and calls that when a page fault happens there. What a range is and how it is answered is the
//! VM manager's business; here is who may be asked, and what becomes of the portal when either side dies.
//!
//! **Invariants:** a handler is an interface that the domain itself may call, and not its own; every portal
//! made here is closed when its range ends; the VM manager, which is trusted by all, calls nobody on its own
//! stack or with registers that it needs.

use crate::Machine;
use crate::manager::{Goal, Manager};
use pebble_abi::errno::{self, Errno};
use pebble_abi::share::HANDLERS;
use pebble_arch::Arch;
use pebble_portal::spec::{Arg, Stack, State};

/// A range that somebody answers for.
pub struct Handled {
    pub(crate) asid: u16,
    address: u64,
    /// Index of the portal in the VM manager's table.
    index: u16,
    handler: u16,
}

/// Words that a handler is called with: domain, address, cause.
const WORDS: usize = 3;

impl<A: Arch> Manager<A> {
    /// Who owns the VM manager's interfaces.
    fn vm(&self) -> Result<u16, Errno> {
        self.interfaces
            .iter()
            .find(|i| i.asid != 0 && i.name == "vm.provide")
            .map(|i| i.asid)
            .ok_or(errno::ENOSYS)
    }

    /// The interface behind a portal that `asid` has, in `holder`'s table, if it can be a handler for it.
    fn handler_at(&self, holder: u16, asid: u16, index: u64) -> Result<u16, Errno> {
        let index = self.held(asid, index)?;
        let slot = self.domains[usize::from(holder)].slots.get(index).ok_or(errno::EBADF)?;
        let Goal::Interface(interface) = slot.goal else { return Err(errno::EBADF) };
        let i =
            self.interfaces.get(usize::from(interface)).filter(|i| !i.name.is_empty()).ok_or(errno::EBADF)?;
        let plain = |arg: &Arg| matches!(arg, Arg::Word | Arg::Domain | Arg::Thread | Arg::Time);
        let callable = i.spec.stack == Stack::New && i.spec.state >= State::Partial;
        let fits = i.spec.args.iter().all(plain) && i.spec.caller_words() <= WORDS;
        // Nor is a server of the image asked: it may be what the VM manager itself waits for.
        let stranger = self.domains.get(usize::from(i.asid)).is_some_and(|d| d.alive && !d.image);
        if !callable || !fits || !stranger || i.asid == asid {
            return Err(errno::EINVAL);
        }
        Ok(interface)
    }

    /// Page faults of `asid` from `address` on go to the interface behind that index of `holder`: its own,
    /// or, if it is controlled, its outermost controller's. `set` tells the VM manager: handler's domain,
    /// index in the VM manager's table << 16, how many stacks that has << 32; where these are too few for one
    /// more family, it gets two.
    pub fn handle_range<M: Machine>(
        &mut self,
        machine: &mut M,
        (asid, holder): (u16, u16),
        address: u64,
        index: u64,
        set: impl Fn(&mut M, u64) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        self.domain(asid.into())?;
        self.grant_range(asid)?;
        let vm = self.vm()?;
        let interface = self.handler_at(holder, asid, index)?;
        let handler = self.interfaces[usize::from(interface)].asid;
        let index = self.for_itself(|m| m.open(machine, vm.into(), interface))?;
        let outcome = loop {
            let stacks = self.domains[usize::from(vm)].stacks;
            match set(machine, u64::from(handler) | u64::from(index) << 16 | u64::from(stacks) << 32) {
                Err(errno::ESTACKS) => {}
                other => break other,
            }
            if self.stacks(machine, vm, stacks + HANDLERS.family as u16).is_err() {
                break Err(errno::EHANDLERS);
            }
        };
        if let Err(error) = outcome {
            self.vacate(machine, vm, index.into(), 1);
            return Err(error);
        }
        self.handled.push(Handled { asid, address, index, handler });
        Ok(())
    }

    /// The range that begins there ends.
    pub fn end_range(&mut self, machine: &mut impl Machine, asid: u16, address: u64) -> Result<(), Errno> {
        let same = |h: &Handled| (h.asid, h.address) == (asid, address);
        let at = self.handled.iter().position(same).ok_or(errno::ENOENT)?;
        let vm = self.vm()?;
        let Handled { index, .. } = self.handled.swap_remove(at);
        self.vacate(machine, vm, index.into(), 1);
        Ok(())
    }

    /// A domain dies: its ranges end, and those that it answered for.
    pub(crate) fn end_ranges(&mut self, machine: &mut impl Machine, asid: u16) {
        while let Some(h) = self.handled.iter().find(|h| h.asid == asid || h.handler == asid) {
            let (owner, address) = (h.asid, h.address);
            if self.end_range(machine, owner, address).is_err() {
                return;
            }
        }
    }
}

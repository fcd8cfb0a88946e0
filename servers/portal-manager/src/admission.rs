//! Who may open a portal to an interface, as its exporter decides.
//!
//! The name server's rules come first, and are the system's. An exporter may be stricter: it lists the
//! domains that it admits, or names a portal that is asked each time: its own, or a policy component's. Who
//! opens is asked about by the number under which the exporter will see it call. Portals that are open stay.
//!
//! **Invariants:** without an answer that says yes nothing is opened; who asks holds no lock, and asks with a
//! time limit; one is asked at a time, so that a policy that does not answer keeps one of the portal
//! manager's stacks, never the last; the portal manager asks nobody who would do for it what the exporter may
//! not ask for: servers of the image, which trust it, are not told who asks.

use crate::Machine;
use crate::manager::{Goal, Manager};
use alloc::vec::Vec;
use pebble_abi::errno::{self, Errno};
use pebble_abi::map;
use pebble_abi::words::Asid;
use pebble_arch::Arch;
use pebble_portal::spec::{Arg, Stack, State};

/// What exporters have said of their interfaces, and who is being asked.
#[derive(Default)]
pub struct Policies {
    pub(crate) guards: Vec<Guard>,
    /// Somebody's policy is being asked.
    pub asking: bool,
    /// Families whose policies took long, and until when they are not asked again.
    pub(crate) resting: Vec<(u16, u64)>,
}

/// What an exporter has said of one of its interfaces.
pub(crate) struct Guard {
    interface: u16,
    way: Way,
}

enum Way {
    /// These domains, a bit each.
    Listed([u64; map::MAX_DOMAINS / 64]),
    /// The index of a portal in the portal manager's own table.
    Asks(u16),
}

/// Whether a domain may open an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    Granted,
    /// If the portal at this index of the portal manager's table answers 1 to the domain and the interface's
    /// number.
    Asks(u16),
}

/// Ticks that a policy may take for nothing: a millisecond.
const QUICK: u64 = map::TIME_HZ / 1000;
/// So many times as long as it took, a slow policy's family is left alone: it has a tenth of the time in
/// which policies are asked.
const REST: u64 = 9;

/// Words that a policy is called with.
const WORDS: usize = 2;

impl<A: Arch> Manager<A> {
    /// The portal manager's own domain.
    pub(crate) fn own(&self) -> Result<u16, Errno> {
        let own = self.interfaces.iter().find(|i| i.asid != 0 && i.name == OWN);
        own.map(|i| i.asid).ok_or(errno::ENOSYS)
    }

    pub fn admission(&self, opener: u16, interface: u16) -> Result<Admission, Errno> {
        let owner = self.interfaces.get(usize::from(interface)).map_or(0, |i| i.asid);
        match self.policies.guards.iter().find(|g| g.interface == interface).map(|g| &g.way) {
            Some(_) if owner == opener => Ok(Admission::Granted),
            Some(Way::Listed(bits)) if bits[usize::from(opener) / 64] >> (opener % 64) & 1 == 0 => {
                Err(errno::EACCES)
            }
            Some(Way::Asks(index)) => Ok(Admission::Asks(*index)),
            _ => Ok(Admission::Granted),
        }
    }

    /// One policy is asked at a time, so whose policies are slow must not be asked all the time. -EBUSY: the
    /// family of this interface's exporter rests.
    pub fn may_ask(&mut self, interface: u16, now: u64) -> Result<(), Errno> {
        self.policies.resting.retain(|(_, until)| *until > now);
        let family = self.exporter(interface);
        if self.policies.resting.iter().any(|(resting, _)| *resting == family) {
            Err(errno::EBUSY)
        } else {
            Ok(())
        }
    }

    /// A policy has answered, or not, after so many ticks.
    pub fn has_asked(&mut self, interface: u16, took: u64, now: u64) {
        let family = self.exporter(interface);
        if family != 0 && took > QUICK && self.policies.resting.try_reserve(1).is_ok() {
            self.policies.resting.push((family, now.saturating_add(took * REST)));
        }
    }

    fn exporter(&self, interface: u16) -> u16 {
        self.interfaces.get(usize::from(interface)).map_or(0, |i| self.family(i.asid))
    }

    /// The exporter's own interface, whatever was said of it before.
    fn unguard(&mut self, machine: &mut impl Machine, interface: u16) {
        let Some(at) = self.policies.guards.iter().position(|g| g.interface == interface) else { return };
        if let (Way::Asks(index), Ok(own)) = (self.policies.guards.swap_remove(at).way, self.own()) {
            self.vacate(machine, own, index.into(), 1);
        }
    }

    fn owned(&mut self, asid: Asid, interface: u64) -> Result<u16, Errno> {
        self.domain(asid)?;
        let owned = usize::try_from(interface).ok().and_then(|n| self.interfaces.get(n));
        let owned = owned.is_some_and(|i| Asid::from(i.asid) == asid && !i.name.is_empty());
        if owned { Ok(interface as u16) } else { Err(errno::EPERM) }
    }

    /// The name server alone decides again.
    pub fn guard_by_names(
        &mut self,
        machine: &mut impl Machine,
        asid: Asid,
        interface: u64,
    ) -> Result<(), Errno> {
        let interface = self.owned(asid, interface)?;
        self.unguard(machine, interface);
        Ok(())
    }

    /// Nobody but who is [admitted](Self::admit) from now on.
    pub fn guard_by_list(
        &mut self,
        machine: &mut impl Machine,
        asid: Asid,
        interface: u64,
    ) -> Result<(), Errno> {
        let interface = self.owned(asid, interface)?;
        self.unguard(machine, interface);
        self.policies.guards.push(Guard { interface, way: Way::Listed(Default::default()) });
        Ok(())
    }

    pub fn admit(&mut self, asid: Asid, interface: u64, client: Asid) -> Result<(), Errno> {
        let interface = self.owned(asid, interface)?;
        self.domain(client)?;
        match self.policies.guards.iter_mut().find(|g| g.interface == interface).map(|g| &mut g.way) {
            Some(Way::Listed(bits)) => bits[usize::from(client.number()) / 64] |= 1 << (client.number() % 64),
            _ => return Err(errno::EINVAL),
        }
        Ok(())
    }

    /// The portal at an index of the exporter is asked; `holder`, the exporter or its outermost controller,
    /// has it.
    pub fn guard_by_asking(
        &mut self,
        machine: &mut impl Machine,
        asid: Asid,
        interface: u64,
        (holder, index): (u16, u64),
    ) -> Result<(), Errno> {
        let interface = self.owned(asid, interface)?;
        let index = self.held(asid.number(), index)?;
        let slot = self.domains[usize::from(holder)].slots.get(index);
        let Some(Goal::Interface(policy)) = slot.map(|s| s.goal) else { return Err(errno::EBADF) };
        let i = self.interfaces.get(usize::from(policy)).filter(|i| i.asid != 0).ok_or(errno::EBADF)?;
        let trusting = self.domains[usize::from(i.asid)].image;
        let plain = |arg: &Arg| match arg {
            Arg::Word | Arg::Time => true,
            Arg::Domain | Arg::Thread => !trusting,
            _ => false,
        };
        let callable = i.spec.stack == Stack::New && i.spec.state >= State::Partial && !i.name.is_empty();
        if !callable || !i.spec.args.iter().all(plain) || i.spec.caller_words() > WORDS {
            return Err(errno::EINVAL);
        }
        let own = self.own()?;
        let index = self.for_itself(|m| m.open(machine, own.into(), policy))?;
        self.unguard(machine, interface);
        self.policies.guards.push(Guard { interface, way: Way::Asks(index) });
        Ok(())
    }

    /// A domain dies: its interfaces are guarded no longer, unless they wait for a successor; nobody admits
    /// it.
    pub(crate) fn drop_guards(&mut self, machine: &mut impl Machine, asid: u16) {
        if self.domains[usize::from(asid)].exports {
            let its = (0..).zip(&self.interfaces).filter(|(_, i)| i.asid == asid);
            let gone: Vec<u16> = its.map(|(n, _)| n).collect();
            gone.into_iter().for_each(|n| self.unguard(machine, n));
        }
        for guard in &mut self.policies.guards {
            if let Way::Listed(bits) = &mut guard.way {
                bits[usize::from(asid) / 64] &= !(1 << (asid % 64));
            }
        }
    }
}

/// An interface of the portal manager.
const OWN: &str = "pm.unwind";

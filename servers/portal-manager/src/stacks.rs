//! Whose stacks who sees.
//!
//! **Problem.** The callee of an `s` portal runs on its caller's stack, so it must see the stacks of the caller's domain; and where it goes on through
//! an `s` portal of its own, so must the next. What is mapped so is writable, and takes over whoever returns on it. **Strategy.** A pair
//! (*host*, *guest*) is mapped for as long as there is `s` code on some way from the one to the other: in a table, or in limbo because a call
//! may still return through it. All that code names its pair ([`crate::Run`]); who sees whom is found from it anew when some of it goes.
//!
//! **Invariants:**
//! * a guest sees the stacks of a host that has opened an `s` portal into it, and of no other; but what a component of the image sees, the image's
//!   other components see to which it has such portals: the manifest put these together;
//! * a portal that would lead anybody's stacks to a guest that they are not given to is refused, whichever of a chain's portals is
//!   opened last;
//! * what is not on such a way any more is unmapped, not before no thread is on it.

use crate::Machine;
use crate::manager::Manager;
use alloc::vec::Vec;
use pebble_abi::map;

const DOMAINS: core::ops::Range<u16> = 1..map::MAX_DOMAINS as u16;

impl Manager {
    fn shows(&self, host: u16, guest: u16) -> bool {
        self.domains[usize::from(host)].shown[usize::from(guest) / 64] >> (guest % 64) & 1 == 1
    }

    fn set_shown(&mut self, host: u16, guest: u16, on: bool) {
        let (word, bit) = (usize::from(guest) / 64, 1 << (guest % 64));
        let shown = &mut self.domains[usize::from(host)].shown[word];
        *shown = if on { *shown | bit } else { *shown & !bit };
    }

    /// `guest` may be called on stacks of `host`, and so on stacks of whoever calls that; and so may whom it calls on them.
    pub(crate) fn show_stacks(
        &mut self,
        machine: &mut impl Machine,
        host: u16,
        guest: u16,
    ) -> Result<(), i64> {
        if self.shows(host, guest) {
            return Ok(());
        }
        let alive = |asid: &u16| self.domains[usize::from(*asid)].alive;
        let hosts = DOMAINS.filter(|h| *h == host || self.shows(*h, host)).filter(alive).collect::<Vec<_>>();
        let guests = DOMAINS.filter(|g| *g == guest || self.shows(guest, *g)).filter(alive);
        let guests = guests.collect::<Vec<_>>();
        let mut pairs = Vec::new();
        for (h, g) in hosts.iter().flat_map(|h| guests.iter().map(|g| (*h, *g))) {
            if h == g || self.shows(h, g) {
                continue;
            }
            if (h, g) != (host, guest) && !self.domains[usize::from(g)].image {
                return Err(self.refuse(b's', g, h));
            }
            pairs.push((h, g));
        }
        for (h, g) in pairs {
            if let Err(error) = machine.share_stacks(h, g) {
                self.hide_stacks(machine);
                return Err(error);
            }
            self.set_shown(h, g, true);
        }
        Ok(())
    }

    /// Pairs that some `s` code connects.
    fn connected(&self) -> Vec<(u16, u16)> {
        let mut pairs = Vec::new();
        for domain in self.domains.iter().filter(|d| d.alive) {
            domain.slots.each_used(|_, slot| pairs.push((slot.run.host, slot.run.guest)));
        }
        pairs.extend(self.limbo.iter().map(|run| (run.host, run.guest)));
        pairs.extend(self.prepared().map(|slot| (slot.run.host, slot.run.guest)));
        pairs.retain(|(host, _)| *host != 0);
        pairs.sort_unstable();
        pairs.dedup();
        pairs
    }

    /// Ends what is on no way any more.
    pub(crate) fn hide_stacks(&mut self, machine: &mut impl Machine) {
        let pairs = self.connected();
        for host in DOMAINS {
            if self.domains[usize::from(host)].shown == [0; map::MAX_DOMAINS / 64] {
                continue;
            }
            let reached = reached(&pairs, host);
            for guest in DOMAINS.filter(|guest| !reached.contains(guest)) {
                if self.shows(host, guest) {
                    machine.unshare_stacks(host, guest);
                    self.set_shown(host, guest, false);
                }
            }
        }
    }

    /// What the image builder has mapped.
    pub(crate) fn find_shown(&mut self) {
        let pairs = self.connected();
        for host in DOMAINS {
            let reached = reached(&pairs, host);
            reached.into_iter().filter(|g| *g != host).for_each(|guest| self.set_shown(host, guest, true));
        }
    }

    /// A domain's number will be another's; the VM manager has unmapped all that it had to do with.
    pub(crate) fn forget_shown(&mut self, asid: u16) {
        self.domains[usize::from(asid)].shown = Default::default();
        DOMAINS.for_each(|host| self.set_shown(host, asid, false));
    }
}

/// Who is called on stacks of `host`, however far.
fn reached(pairs: &[(u16, u16)], host: u16) -> Vec<u16> {
    let mut reached = alloc::vec![host];
    let mut at = 0;
    while let Some(from) = reached.get(at).copied() {
        for (_, guest) in pairs.iter().filter(|(h, _)| *h == from) {
            if !reached.contains(guest) {
                reached.push(*guest);
            }
        }
        at += 1;
    }
    reached
}

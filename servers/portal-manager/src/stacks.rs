//! Whose stacks who sees.
//!
//! **Problem.** The callee of an `s` portal runs on its caller's stack, so it must see the stacks of the
//! caller's domain; and where it goes on through an `s` portal of its own, so must the next. What is mapped
//! so is writable, and takes over whoever returns on it. **Strategy.** A pair (*host*, *guest*) is mapped for
//! as long as there is `s` code on some way from the one to the other: in a table, or in limbo because a call
//! may still return through it. All that code names its pair ([`crate::Run`]); who sees whom is found from it
//! anew when some of it goes.
//!
//! **Invariants:**
//! * a guest sees the stacks of a host that has opened an `s` portal into it, and of no other; but what a
//!   component of the image sees, the image's other components see to which it has such portals: the manifest
//!   put these together;
//! * a portal that would lead anybody's stacks to a guest that they are not given to is refused, whichever of
//!   a chain's portals is opened last;
//! * what is not on such a way any more is unmapped, not before no thread is on it.

use crate::Machine;
use crate::manager::Manager;
use alloc::vec::Vec;
use core::ops::Range;
use pebble_abi::errno::Errno;
use pebble_abi::map;
use pebble_arch::Arch;

impl<A: Arch> Manager<A> {
    fn numbers(&self) -> Range<u16> {
        1..self.end as u16
    }

    fn shows(&self, host: u16, guest: u16) -> bool {
        has(&self.domains[usize::from(host)].shown, guest)
    }

    fn set_shown(&mut self, host: u16, guest: u16, on: bool) {
        set(&mut self.domains[usize::from(host)].shown, guest, on);
    }

    /// `guest` may be called on stacks of `host`, and so on stacks of whoever calls that; and so may whom it
    /// calls on them.
    pub(crate) fn show_stacks(
        &mut self,
        machine: &mut impl Machine,
        host: u16,
        guest: u16,
    ) -> Result<(), Errno> {
        if self.shows(host, guest) {
            return Ok(());
        }
        let alive = |asid: &u16| self.domains[usize::from(*asid)].alive;
        let hosts =
            self.numbers().filter(|h| *h == host || self.shows(*h, host)).filter(alive).collect::<Vec<_>>();
        let guests = self.numbers().filter(|g| *g == guest || self.shows(guest, *g)).filter(alive);
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
        // Few, and kept in order: a sort would be larger than all else here.
        let mut pairs: Vec<(u16, u16)> = Vec::new();
        let mut enter = |pair: (u16, u16)| {
            // Hardly any code has one.
            if pair.0 != 0
                && let Err(at) = pairs.binary_search(&pair)
            {
                pairs.insert(at, pair);
            }
        };
        for (_, domain) in self.known().filter(|(_, d)| d.alive) {
            domain.slots.each_used(|_, slot| enter((slot.run.host, slot.run.guest)));
        }
        self.made.limbo.iter().for_each(|run| enter((run.host, run.guest)));
        self.prepared().for_each(|slot| enter((slot.run.host, slot.run.guest)));
        pairs
    }

    /// Ends what is on no way any more.
    pub(crate) fn hide_stacks(&mut self, machine: &mut impl Machine) {
        let pairs = self.connected();
        for host in self.numbers() {
            let shown = self.domains[usize::from(host)].shown;
            if shown.iter().all(|word| *word == 0) {
                continue;
            }
            let reached = reached(&pairs, host);
            for (n, (shown, reached)) in (0u16..).zip(shown.iter().zip(reached)) {
                let mut gone = shown & !reached;
                while gone != 0 {
                    let guest = n * 64 + gone.trailing_zeros() as u16;
                    machine.unshare_stacks(host, guest);
                    self.set_shown(host, guest, false);
                    gone &= gone - 1;
                }
            }
        }
    }

    /// What the image builder has mapped.
    pub(crate) fn find_shown(&mut self) {
        let pairs = self.connected();
        for host in self.numbers() {
            let mut reached = reached(&pairs, host);
            set(&mut reached, host, false);
            self.domains[usize::from(host)]
                .shown
                .iter_mut()
                .zip(reached)
                .for_each(|(word, more)| *word |= more);
        }
    }

    /// A domain's number will be another's; the VM manager has unmapped all that it had to do with.
    pub(crate) fn forget_shown(&mut self, asid: u16) {
        self.domains[usize::from(asid)].shown = Default::default();
        let (word, bit) = (usize::from(asid) / 64, 1 << (asid % 64));
        self.domains[..self.end].iter_mut().for_each(|host| host.shown[word] &= !bit);
    }
}

/// Who is called on stacks of `host`, however far. `pairs`: in order.
fn reached(pairs: &[(u16, u16)], host: u16) -> Domains {
    let mut reached = Domains::default();
    let mut next = alloc::vec![host];
    while let Some(from) = next.pop() {
        let first = pairs.partition_point(|(host, _)| *host < from);
        for (_, guest) in pairs[first..].iter().take_while(|(host, _)| *host == from) {
            if !has(&reached, *guest) {
                set(&mut reached, *guest, true);
                next.push(*guest);
            }
        }
    }
    reached
}

/// A set of domains.
type Domains = [u64; map::MAX_DOMAINS / 64];

fn has(domains: &Domains, asid: u16) -> bool {
    domains[usize::from(asid) / 64] >> (asid % 64) & 1 == 1
}

fn set(domains: &mut Domains, asid: u16, on: bool) {
    let (word, bit) = (&mut domains[usize::from(asid) / 64], 1 << (asid % 64));
    *word = if on { *word | bit } else { *word & !bit };
}

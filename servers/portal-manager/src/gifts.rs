//! Portals that a program puts into another's table.
//!
//! **Problem.** A server answers a call with portals (`portal_create`), and nobody has asked the client: its
//! table and its family's portal code would soon be full of what it never wanted. **Strategy.** Such portals
//! are *gifts*: they have places of their own, and their code is the giver's. What a server of the image
//! makes for a client is no gift: that has asked for it, and pays for it.
//!
//! **Invariants:** a gift takes nothing of what its receiver may open, and no code of the receiver's family;
//! whoever has given all that it may keeps no other from giving; the receiver closes gifts like any portal,
//! and the giver takes back its gifts alone.

use crate::manager::{Manager, Slot, is};
use core::num::NonZeroU16;
use pebble_abi::errno::{self, Errno};
use pebble_arch::Arch;

/// Gifts in one table, and those of one giver.
pub const GIFTS: usize = 256;
pub const OF_ONE: usize = 64;
/// A giver that has died.
const GONE: NonZeroU16 = NonZeroU16::MAX;

impl<A: Arch> Manager<A> {
    fn is_program(&self, asid: u16) -> bool {
        self.domains.get(usize::from(asid)).is_some_and(|d| !d.image)
    }

    /// What `giver`, unless it is of the image, puts into tables while `work` is done are gifts.
    pub(crate) fn by<T>(&mut self, giver: u16, work: impl FnOnce(&mut Self) -> T) -> T {
        if self.is_program(giver) {
            self.request.giving = NonZeroU16::new(giver);
            self.domains[usize::from(giver)].gives = true;
        }
        let done = work(self);
        self.request.giving = None;
        done
    }

    /// So many gifts more in the table of `holder`, for the domain that the request serves, if any.
    pub(crate) fn grant_gifts(&self, holder: u16, more: usize) -> Result<(), Errno> {
        let (mut all, mut its) = (more, more);
        self.domains[usize::from(holder)].slots.each_used(|_, slot| {
            if slot.giver.is_some() && slot.subject == self.request.serving {
                all += 1;
                its += usize::from(slot.giver == self.request.giving);
            }
        });
        if all > GIFTS || its > OF_ONE { Err(errno::EGIFTS) } else { Ok(()) }
    }

    /// Whose share the code of a portal in a domain's table is.
    pub(crate) fn payer(&self, asid: u16, slot: &Slot) -> u16 {
        slot.giver.map_or(asid, NonZeroU16::get)
    }

    /// Whether a server may take a portal out of the table of another: what leads to it, if it has put it
    /// there.
    pub(crate) fn gave(&self, server: u16, slot: &Slot) -> bool {
        self.leads_to(slot.goal, server) && (is(slot.giver, server) || !self.is_program(server))
    }

    /// A giver dies. What it has given leads nowhere, and stays until its receiver closes it.
    pub(crate) fn leave_gifts(&mut self, giver: u16) {
        if !core::mem::take(&mut self.domains[usize::from(giver)].gives) {
            return;
        }
        for domain in &mut self.domains[..self.end] {
            for index in 0..domain.slots.len() {
                if is(domain.slots[index].giver, giver) {
                    domain.slots[index].giver = Some(GONE);
                }
            }
        }
    }
}

//! Stacks: where they lie, and how they grow.
//!
//! Problem: a program that recurses deep wants a large stack, most want two pages, and nobody says which.
//! Strategy: a program's stack has its first pages from the start. Others come when they are touched, as long as
//! the stack has addresses and its domain may have pages. Each stack has a slot. A program's first thread has the
//! last slot, and the half of all slots that ends there, as far as no other stack is in it: the others lie in the
//! lowest slots. Components of the image have all pages of their stacks from the start: they must not die for
//! want of one.
//!
//! Invariants:
//! * the lowest page of what a stack may have is never mapped, nor is the page above the slot of another stack:
//!   who runs over the end faults;
//! * a stack never grows into a slot that is in use, and no slot is given away that a stack has grown into;
//! * pages belong to the domain whose stack it is, whoever runs on it.

use crate::{Answer, Machine, State, Vm};
use core::ops::Range;
use pebble_abi::errno::{self, Errno};
use pebble_abi::map::{self, PAGE};
use pebble_abi::words::Asid;
use pebble_arch::Leaf;

/// Pages that a thread's stack has from the start.
pub const PROGRAM_STACK: u64 = 2;
pub(crate) const IMAGE_STACK: u64 = 8;
pub(crate) const LAST: usize = map::FIRST_STACK;

/// So many of the lowest slots it leaves to others.
const OTHERS: u64 = map::STACKS_PER_DOMAIN as u64 / 2;

/// So many pages a heap leaves of what its domain may have, for stacks; or an eighth of that.
pub(crate) const STACK_ROOM: u32 = (map::STACKS_STRIDE / 2 / PAGE) as u32;

/// What has become of an access below a stack.
pub(crate) enum Growth {
    /// The page is there now.
    Grown,
    /// The stack is as large as it can be.
    Full,
    /// Its domain, or the machine, has no page left for it.
    NoMemory,
    /// There is no stack.
    NoStack,
}

/// The slot with this address among those of its domain.
pub(crate) fn slot_of(address: u64) -> usize {
    ((address - map::STACKS_VA) % map::STACKS_STRIDE / map::STACK_SLOT) as usize
}

/// Whose stacks have this address.
fn owner_of(address: u64) -> Option<u16> {
    let offset = address.checked_sub(map::STACKS_VA).filter(|_| address < map::USER_END)?;
    Some((offset / map::STACKS_STRIDE) as u16)
}

impl<M: Machine> Vm<M> {
    /// A stack for a domain's stack queue, of so many pages if it cannot grow: its initial stack pointer.
    pub fn stack(&mut self, asid: Asid, pages: u64) -> Answer {
        let asid = self.alive(asid)?;
        if !(1..map::STACK_SLOT / PAGE).contains(&pages) {
            return Err(errno::EINVAL);
        }
        let pages = if self.domain(asid).eager { pages } else { 1 };
        self.new_stack(asid, pages, false).map(|(_, sp)| sp)
    }

    /// Slot and initial stack pointer of a fresh stack: the slot's top pages; what lies below stays unmapped.
    pub(crate) fn new_stack(&mut self, asid: u16, pages: u64, first: bool) -> Result<(u8, u64), Errno> {
        let used = self.domain(asid).slots;
        let first = first && !self.domain(asid).eager && used >> LAST & 1 == 0;
        let slot = if first { LAST } else { used.trailing_ones() as usize };
        if slot >= map::STACKS_PER_DOMAIN {
            return Err(errno::EAGAIN);
        }
        let top = map::stack_top(asid, slot);
        // The first thread's stack may have grown into it.
        if self.mapped(asid, top - map::STACK_SLOT..top) {
            return Err(errno::EAGAIN);
        }
        self.map_fresh(asid, top - pages * PAGE..top, Leaf::USER_RW)?;
        self.domain_mut(asid).slots |= 1 << slot;
        self.flush_stacks(asid);
        Ok((slot as u8, top))
    }

    pub(crate) fn drop_stack(&mut self, asid: u16, slot: u8) {
        let all = self.stack_at(asid, slot.into());
        self.unmap(asid, all);
        self.domain_mut(asid).slots &= !(1 << slot);
        self.flush_stacks(asid);
        self.revoke();
    }

    /// All addresses that the stack in this slot may have.
    fn stack_at(&self, owner: u16, slot: usize) -> Range<u64> {
        let top = map::stack_top(owner, slot);
        let others = self.domain(owner).slots & !(1 << LAST);
        match u64::from(u32::BITS - others.leading_zeros()).max(OTHERS) {
            behind if slot == LAST && behind < LAST as u64 => {
                map::stacks_of(owner) + behind * map::STACK_SLOT..top
            }
            _ => top - map::STACK_SLOT..top,
        }
    }

    /// Slot and addresses of the stack that has this address, which its owner's domain says.
    pub(crate) fn stack_with(&self, owner: u16, address: u64) -> Option<(usize, Range<u64>)> {
        let used = self.domain(owner).slots;
        let slot = [slot_of(address), LAST].into_iter().find(|slot| used >> slot & 1 == 1)?;
        let all = self.stack_at(owner, slot);
        all.contains(&address).then_some((slot, all))
    }

    /// Somebody has touched this address, where nothing is mapped, on its own stack or on one that it shares.
    pub(crate) fn grow_stack(&mut self, asid: u16, address: u64) -> Growth {
        let Some(owner) = owner_of(address) else { return Growth::NoStack };
        // A copy has its stack where its parent's lies, in a table of its own.
        let copied = owner != asid && self.own_stacks(asid, map::stacks_of(owner));
        let (whose, all) = if copied {
            (asid, map::stacks_of(owner)..map::stacks_of(owner) + map::STACKS_STRIDE)
        } else {
            let shared = owner == asid || self.sees_stacks(asid, owner);
            match self.stack_with(owner, address).filter(|_| shared) {
                Some((_, all)) => (owner, all),
                None => return Growth::NoStack,
            }
        };
        let d = self.domain(whose);
        if d.eager || d.state != State::Alive || address < all.start + PAGE {
            return Growth::Full;
        }
        let page = address / PAGE * PAGE;
        if self.map_fresh(whose, page..page + PAGE, Leaf::USER_RW).is_err() {
            return Growth::NoMemory;
        }
        if copied {
            self.machine.flush(asid)
        } else {
            self.flush_stacks(owner)
        }
        Growth::Grown
    }
}

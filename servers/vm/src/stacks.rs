//! Stacks: where they lie, and how they grow.
//!
//! Problem: a program that recurses deep wants a large stack, most want two pages, and nobody says which.
//! Strategy: a program's stack has its first page or two from the start. Others come when they are touched, as long
//! as the stack has addresses and its domain may have pages. Each stack has a slot. A program's first thread has the
//! last slot, and the half of all slots that ends there, as far as no other stack is in it: the others lie in the
//! lowest slots. Components of the image have all pages of their stacks from the start: they must not die for
//! want of one.
//!
//! Invariants:
//! * the lowest page of what a stack may have is never mapped, nor is the page above the slot of another stack:
//!   who runs over the end faults;
//! * a stack never grows into a slot that is in use, and no slot is given away that a stack has grown into;
//! * pages belong to the domain whose stack it is, whoever runs on it;
//! * a stack is *sure* of its top pages: they are charged when it is made, and kept for it until it touches them,
//!   whatever others take meanwhile. What it grows by beyond these, there may not be.

use crate::space::leaf_slot;
use crate::{Answer, Domain, Machine, State, Vm};
use core::ops::Range;
use pebble_abi::errno::{self, Errno};
use pebble_abi::map::{self, PAGE};
use pebble_abi::words::Asid;
use pebble_arch::{Arch, Leaf};

/// Pages of a thread's stack in the image's components.
pub(crate) const IMAGE_STACK: u64 = 8;
/// Pages that a program's stack has from the start.
pub const FIRST_PAGES: u64 = 2;
/// Pages that a program's first stack is sure of, and each of the others.
pub const SURE: [u64; 2] = [15, 8];
/// The slot of a program's first thread.
pub(crate) const LAST: usize = map::FIRST_STACK;
/// So many of the lowest slots its stack leaves to others.
const OTHERS: u64 = map::STACKS_PER_DOMAIN as u64 / 2;

/// So many pages a heap leaves of what its domain may have, for stacks; or an eighth of that.
const ROOM: u64 = map::STACKS_STRIDE / 2 / PAGE;

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
pub(crate) fn owner_of(address: u64) -> Option<u16> {
    let offset = address.checked_sub(map::STACKS_VA).filter(|_| address < map::USER_END)?;
    Some((offset / map::STACKS_STRIDE) as u16)
}

/// All addresses of a domain's stacks.
pub(crate) fn all_stacks(owner: u16) -> Range<u64> {
    map::stacks_of(owner)..map::stacks_of(owner) + map::STACKS_STRIDE
}

/// What the stack in this slot is sure of.
pub(crate) fn sure_part(owner: u16, slot: usize) -> Range<u64> {
    let top = map::stack_top(owner, slot);
    top - SURE[usize::from(slot != LAST)] * PAGE..top
}

impl<M: Machine> Vm<M> {
    /// A stack for a domain's stack queue, of so many pages if it cannot grow: its initial stack pointer.
    pub fn stack(&mut self, asid: Asid, pages: u64) -> Answer {
        let asid = self.alive(asid)?;
        if !(1..map::STACK_SLOT / PAGE).contains(&pages) {
            return Err(errno::EINVAL);
        }
        self.new_stack(asid, pages, false).map(|(_, sp)| sp)
    }

    /// Slot and initial stack pointer of a fresh stack, of so many pages if it cannot grow.
    pub(crate) fn new_stack(&mut self, asid: u16, pages: u64, first: bool) -> Result<(u8, u64), Errno> {
        let &Domain { slots: used, eager, .. } = self.domain(asid);
        let slot =
            if first && !eager && used >> LAST & 1 == 0 { LAST } else { used.trailing_ones() as usize };
        if slot >= map::STACKS_PER_DOMAIN {
            return Err(errno::EAGAIN);
        }
        let top = map::stack_top(asid, slot);
        // The first thread's stack may have grown into it.
        if self.mapped(asid, top - map::STACK_SLOT..top) {
            return Err(errno::EAGAIN);
        }
        let sure = SURE[usize::from(slot != LAST)];
        let (pages, promised) = if eager { (pages, 0) } else { (FIRST_PAGES, sure - FIRST_PAGES) };
        self.afford(asid, pages + promised)?;
        self.map_fresh(asid, top - pages * PAGE..top, Some(Leaf::USER_RW))?;
        self.promise(asid, promised);
        self.domain_mut(asid).slots |= 1 << slot;
        self.flush_stacks(asid);
        Ok((slot as u8, top))
    }

    pub(crate) fn drop_stack(&mut self, asid: u16, slot: u8) {
        let (all, sure) = (self.stack_at(asid, slot.into()), sure_part(asid, slot.into()));
        if !self.domain(asid).eager {
            self.break_promise(asid, self.missing(asid, sure));
        }
        self.unmap(asid, all);
        self.domain_mut(asid).slots &= !(1 << slot);
        self.flush_stacks(asid);
        self.revoke();
    }

    /// Whether a heap with so many pages more leaves its domain's stacks something to grow by: a program whose heap
    /// has taken all that it can get shall not die of its next call.
    pub(crate) fn leaves_room(&self, asid: u16, pages: u64) -> bool {
        let &Domain { limit, eager, .. } = self.domain(asid);
        let room = ROOM.min(u64::from(limit) / 8);
        eager || u64::from(self.charge(asid)) + pages + room <= limit.into()
    }

    /// So many pages, which it can afford, are kept for a domain's stacks and heap.
    #[inline(never)]
    pub(crate) fn promise(&mut self, asid: u16, pages: u64) {
        self.charge_more(asid, pages as i32);
        self.promised += pages as u32;
        self.domain_mut(asid).promised += pages as u16;
    }

    /// The domain gets a page that it was promised, and charged for then.
    #[inline(always)]
    pub(crate) fn promise_kept(&mut self, asid: u16) {
        self.promised -= 1;
        self.domain_mut(asid).promised -= 1;
    }

    /// So many of the pages that a domain is promised are everybody's again; at most all.
    pub(crate) fn break_promise(&mut self, asid: u16, pages: u64) {
        let broken = pages.min(self.domain(asid).promised.into()) as u16;
        self.domain_mut(asid).promised -= broken;
        self.promised -= u32::from(broken);
        self.charge_more(asid, -i32::from(broken));
    }

    /// A page comes where a stack wants it: one that was promised, and has been charged, or another.
    fn map_one(&mut self, asid: u16, page: u64, promised: bool) -> Result<(), Errno> {
        let word = leaf_slot(self.l0(asid, page).ok_or(errno::EFAULT)?, page);
        if M::Arch::is_valid(self.machine.read(word)) {
            return Err(errno::EEXIST);
        }
        let pa = if promised {
            self.promise_kept(asid);
            self.frames.take(&mut self.machine).ok_or(errno::ENOMEM)?
        } else {
            self.take(asid)?
        };
        self.machine.write(word, M::Arch::leaf(pa, Leaf::USER_RW));
        Ok(())
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

    /// The slot of the stack at this address that a domain has as a copy: its table alone tells.
    pub(crate) fn copied_slot(&self, asid: u16, owner: u16, address: u64) -> usize {
        let first = self.page(asid, all_stacks(owner).end - 1).is_some();
        if first { LAST } else { slot_of(address) }
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
        let (whose, all, sure) = if copied {
            let slot = self.copied_slot(asid, owner, address);
            (asid, all_stacks(owner), sure_part(owner, slot).contains(&address))
        } else {
            let shared = owner == asid || self.sees_stacks(asid, owner);
            match self.stack_with(owner, address).filter(|_| shared) {
                Some((slot, all)) => (owner, all, sure_part(owner, slot).contains(&address)),
                None => return Growth::NoStack,
            }
        };
        let d = self.domain(whose);
        if d.eager || d.state != State::Alive || address < all.start + PAGE {
            return Growth::Full;
        }
        let promised = sure && d.promised > 0;
        if self.map_one(whose, address / PAGE * PAGE, promised).is_err() {
            return Growth::NoMemory;
        }
        // Whoever else sees the stack may still take the page for missing: it faults, and is told of it then.
        self.machine.flush(asid);
        Growth::Grown
    }
}

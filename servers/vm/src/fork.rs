//! A copy of a domain's memory, in a domain that has none yet.
//!
//! What is copied is what belongs to the parent alone: image, heap, and the stack of the thread that asks; of
//! the archive the copy sees what its parent sees. It is copied in pieces, between which others get the lock:
//! a parent with further threads that write meanwhile, or move its heap, gives its child what was there at
//! some moment, page by page.
//!
//! The child's thread goes on upon the copied stack, at the same addresses: those of its parent's stacks,
//! where the child has a table of its own. Registers are not copied. Who forks pushes those it needs, and the
//! child's thread pops them.

use crate::space::leaf_slot;
use crate::stacks::{all_stacks, owner_of, sure_part};
use crate::threads::NO_STACK;
use crate::{Answer, Machine, Start, Vm};
use core::ops::Range;
use pebble_abi::errno::{self, Errno};
use pebble_abi::map::{self, PAGE};
use pebble_abi::words::{Asid, VirtAddr};
use pebble_arch::Arch;

/// Pages copied under one lock.
const PIECE: u64 = 16;

impl<M: Machine> Vm<M> {
    /// Copies a piece from `from` on; where the next begins, or 0 when all is done. `sp`: in the stack that
    /// is to be copied.
    pub fn fork(
        &mut self,
        parent: Asid,
        child: Asid,
        VirtAddr(sp): VirtAddr,
        VirtAddr(from): VirtAddr,
    ) -> Answer {
        let (parent, child) = (self.program(parent)?, self.program(child)?);
        if parent == child || self.domain(child).threads != 0 {
            return Err(errno::EINVAL);
        }
        let image = self.image_range(parent);
        let mut at = from.max(image.start);
        let mut left = PIECE;
        while left > 0 {
            match self.next_page(parent, at..image.end) {
                Some(next) => at = next + PAGE,
                None => {
                    at = image.end;
                    break;
                }
            }
            left -= self.copy(parent, child, at - PAGE..at)?;
        }
        if at < image.end {
            return Ok(at);
        }
        match self.show_copy(parent, child, from)? {
            0 => {}
            next => return Ok(next),
        }
        self.copy_stack(parent, child, sp)?;
        let &crate::Domain { heap, brk, .. } = self.domain(parent);
        let d = self.domain_mut(child);
        (d.heap, d.brk) = (heap, brk);
        self.machine.flush(child);
        Ok(0)
    }

    /// Own pages of one domain to the same addresses of the other: how many.
    fn copy(&mut self, parent: u16, child: u16, range: Range<u64>) -> Answer {
        let mut copied = 0;
        let mut at = range.start;
        while let Some(va) = self.next_page(parent, at..range.end) {
            at = va + PAGE;
            let Some(l0) = self.l0(parent, va) else { continue };
            let entry = self.machine.read(leaf_slot(l0, va));
            if !M::Arch::is_own(entry) {
                continue;
            }
            let word = leaf_slot(self.make_l0(child, va)?, va);
            if M::Arch::is_valid(self.machine.read(word)) {
                return Err(errno::EEXIST);
            }
            let pa = self.take_any(child)?;
            self.machine.copy_page(M::Arch::address(entry), pa);
            self.machine.write(word, M::Arch::moved(entry, pa));
            copied += 1;
        }
        Ok(copied)
    }

    fn copy_stack(&mut self, parent: u16, child: u16, sp: u64) -> Result<(), Errno> {
        let last = sp.wrapping_sub(8);
        let owner = owner_of(last).ok_or(errno::EFAULT)?;
        if owner != parent && owner != self.domain(parent).stacks.into() {
            return Err(errno::EPERM);
        }
        let (slot, all) = if owner == parent {
            self.stack_with(owner, last).ok_or(errno::EFAULT)?
        } else {
            (self.copied_slot(parent, owner, last), all_stacks(owner))
        };
        if owner == child {
            self.domain_mut(child).slots |= 1 << slot;
        } else if self.domain(child).stacks == 0 {
            self.domain_mut(child).stacks = owner as u8;
        } else {
            return Err(errno::EEXIST);
        }
        self.copy(parent, child, all)?;
        let missing = self.missing(child, sure_part(owner, slot));
        self.afford(child, missing)?;
        self.promise(child, missing);
        Ok(())
    }

    /// The thread of a copied domain: at `entry`, with this stack pointer and this word for an argument.
    pub fn thread_fork(
        &mut self,
        child: Asid,
        VirtAddr(entry): VirtAddr,
        VirtAddr(sp): VirtAddr,
        value: u64,
    ) -> Result<Start, Errno> {
        let child = self.program(child)?;
        let stacks = map::STACKS_VA..map::USER_END;
        if self.domain(child).threads != 0
            || !sp.is_multiple_of(16)
            || !stacks.contains(&sp.wrapping_sub(8))
            || self.page(child, sp - 8).is_none()
        {
            return Err(errno::EINVAL);
        }
        let number = self.thread_number(child, entry)?;
        self.thread_on(child, number, [entry, value, sp], self.domain(child).priority, NO_STACK)
    }
}

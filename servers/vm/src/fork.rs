//! A copy of a domain's memory, in a domain that has none yet.
//!
//! What is copied is what belongs to the parent alone: image, what it has touched of its heap, and the stack
//! of the thread that asks; of the archive, its program's text among it, the copy sees what its parent sees.
//! It is copied in pieces, between which others get the lock: a parent with further threads that write
//! meanwhile, or move its heap, gives its child what was there at some moment, page by page.
//!
//! The child's thread goes on upon the copied stack, at the same addresses: those of its parent's stacks,
//! where the child has a table of its own. Registers are not copied. Who forks pushes those it needs, and the
//! child's thread pops them.

use crate::shown::ARCHIVE;
use crate::space::leaf_slot;
use crate::stacks::{all_stacks, owner_of, sure_part};
use crate::threads::NO_STACK;
use crate::{Answer, Machine, Start, Vm};
use core::ops::Range;
use pebble_abi::errno::{self, Errno};
use pebble_abi::map::{self, PAGE};
use pebble_abi::words::{Asid, VirtAddr};
use pebble_arch::{Arch, SPAN, Whose};

/// What is done under one lock: a page that is copied takes as long as so many that are shown.
const COPY: u64 = 32;
const PIECE: u64 = 16 * COPY;

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
        let mut left = PIECE;
        for range in [self.image_range(parent), ARCHIVE] {
            if from < range.end {
                let next = self.copy(parent, child, range.start.max(from)..range.end, &mut left)?;
                if next < range.end {
                    return Ok(next);
                }
            }
        }
        let (owner, slot, stack) = self.stack_to_copy(parent, sp)?;
        if from < map::STACKS_VA {
            self.place_stack(child, owner, slot)?;
        }
        let next = self.copy(parent, child, stack.start.max(from)..stack.end, &mut left)?;
        if next < stack.end {
            return Ok(next);
        }
        let missing = self.missing(child, sure_part(owner, slot));
        self.afford(child, missing)?;
        self.promise(child, missing);
        let &crate::Domain { heap, brk, .. } = self.domain(parent);
        let d = self.domain_mut(child);
        (d.heap, d.brk) = (heap, brk);
        self.machine.flush(child);
        Ok(0)
    }

    /// What of this range is the parent's, or shown to it, at the same addresses of the child. Where there is
    /// more when enough has been done, or the end.
    fn copy(&mut self, parent: u16, child: u16, range: Range<u64>, left: &mut u64) -> Answer {
        let mut at = range.start;
        while let Some(first) = self.next_page(parent, at..range.end) {
            at = (first / SPAN * SPAN + SPAN).min(range.end);
            let Some(from) = self.l0(parent, first) else { continue };
            let (mut word, mut rest) = (leaf_slot(from, first), (at - first) / PAGE);
            while rest > 0 {
                let entry = self.machine.read(word);
                let done = if entry == 0 {
                    self.machine.zeros(word, rest)
                } else if *left == 0 {
                    return Ok(at - rest * PAGE);
                } else {
                    self.copy_some(child, entry, (at - rest * PAGE, word..word + rest * 8), left)?
                };
                (word, rest) = (word + done * 8, rest - done);
            }
        }
        Ok(range.end)
    }

    /// What the first of these words says, and others that say the same: so many. `va`: what it is of.
    fn copy_some(
        &mut self,
        child: u16,
        entry: u64,
        (va, words): (u64, Range<u64>),
        left: &mut u64,
    ) -> Answer {
        if entry == M::Arch::PROMISED {
            let row = self.copy_promises(child, va, words)?;
            *left = left.saturating_sub(row);
            return Ok(row);
        }
        let own = M::Arch::is_own(entry);
        let open = M::Arch::is_valid(entry) && M::Arch::whose(entry) == Whose::Open;
        if own || open {
            let word = leaf_slot(self.make_l0(child, va)?, va);
            if self.machine.read(word) != 0 {
                return Err(errno::EEXIST);
            }
            let copy = if own { self.copy_page(child, entry)? } else { entry };
            self.machine.write(word, copy);
        }
        *left = left.saturating_sub(if own { COPY } else { 1 });
        Ok(1)
    }

    /// The entry of a copy.
    fn copy_page(&mut self, child: u16, entry: u64) -> Answer {
        let pa = self.take_any(child)?;
        self.machine.copy_page(M::Arch::address(entry), pa);
        Ok(M::Arch::moved(entry, pa))
    }

    /// What the parent has not touched of its heap the child is promised too: the pages from `va` on, as many
    /// as there are in a row. `words`: the parent's.
    fn copy_promises(&mut self, child: u16, va: u64, words: Range<u64>) -> Answer {
        let (mut row, last) = (1, (words.end - words.start) / 8);
        while row < last && self.machine.read(words.start + row * 8) == M::Arch::PROMISED {
            row += 1;
        }
        self.map_fresh(child, va..va + row * PAGE, None)?;
        Ok(row)
    }

    /// Whose stacks have this address, in which slot, and all addresses of that stack.
    fn stack_to_copy(&self, parent: u16, sp: u64) -> Result<(u16, usize, Range<u64>), Errno> {
        let last = sp.wrapping_sub(8);
        let owner = owner_of(last).ok_or(errno::EFAULT)?;
        if owner == parent {
            let (slot, all) = self.stack_with(owner, last).ok_or(errno::EFAULT)?;
            return Ok((owner, slot, all));
        }
        if owner != self.domain(parent).stacks.into() {
            return Err(errno::EPERM);
        }
        Ok((owner, self.copied_slot(parent, owner, last), all_stacks(owner)))
    }

    /// The copy is where its parent's stack is.
    fn place_stack(&mut self, child: u16, owner: u16, slot: usize) -> Result<(), Errno> {
        if owner == child {
            self.domain_mut(child).slots |= 1 << slot;
        } else if self.domain(child).stacks == 0 && !self.sees_stacks(child, owner) {
            self.domain_mut(child).stacks = owner as u8;
        } else {
            return Err(errno::EEXIST);
        }
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

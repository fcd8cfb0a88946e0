//! What a domain that has died of a fault leaves to be looked at: copies of the culprit's thread block and of
//! the top of its stack.
//!
//! Problem: death takes the memory back at once, and the thread, which goes on in its callers, overwrites
//! what its block says of the dead domain; who prints comes later. Strategy: a few pages are copied before
//! the domain dies, and are free again when the next fault is asked about.
//!
//! Invariants:
//! * at most [`DUMPS`] deaths have copies; who finds none left, or no memory, dies without;
//! * only pages that the dead domain owned are copied, but for the block: no page that was lent to it, nobody
//!   else's stack.

use crate::space::leaf_slot;
use crate::{Machine, Vm};
use pebble_abi::errno::{self, Errno};
use pebble_abi::map::{self, PAGE};
use pebble_abi::words::Asid;
use pebble_arch::{Arch, Reach, SPAN, Whose};

/// Deaths that may have copies at once.
const DUMPS: usize = 4;
/// Pages of a copy: the thread block, then of the stack that with its lowest word in use, and the one above.
const PAGES: usize = 3;

/// Copies for a dead domain.
#[derive(Clone, Copy)]
pub(crate) struct Dump {
    asid: u16,
    /// Offset in the block of the invocation stack's top word, which belongs to the fault.
    top: u16,
    /// Physical addresses; 0: no copy.
    pages: [u32; PAGES],
}

pub(crate) type Dumps = [Option<Dump>; DUMPS];
pub(crate) const NO_DUMPS: Dumps = [None; DUMPS];

impl<M: Machine> Vm<M> {
    /// The calling thread's fault is about to end the domain.
    pub(crate) fn keep_dump(&mut self, asid: u16, tid: u8) {
        let top = self.machine.top().wrapping_sub(map::thread_va(tid.into()));
        let layout = &M::Arch::LAYOUT;
        if !(layout.words as u64 * 8..PAGE).contains(&top) {
            return;
        }
        let Some(free) = self.dumps.iter().position(Option::is_none) else { return };
        let Ok(common) = self.common() else { return };
        let slot = leaf_slot(common.kernel_l0[0], map::thread_va(tid.into()));
        let block = self.block_page(slot, tid.into());
        let sp = self.machine.read(block + layout.offset(top, layout.stack));
        let stack = |n: u64| self.kept_page(asid, sp.saturating_add(n * PAGE));
        let copied = [Some(block), stack(0), stack(1)].map(|page| {
            let copy = page.and_then(|page| Some((page, self.frames.take_any(&mut self.machine)?)));
            copy.map_or(0, |(page, copy)| {
                self.machine.copy_page(page, copy);
                copy as u32
            })
        });
        self.dumps[free] = Some(Dump { asid, top: top as u16, pages: copied });
    }

    /// The page there, if it is the domain's own.
    fn kept_page(&self, asid: u16, va: u64) -> Option<u64> {
        let own = self.image_range(asid).contains(&va) || self.own_stacks(asid, va / SPAN * SPAN);
        let entry = self.machine.read(leaf_slot(self.l0(asid, va).filter(|_| own)?, va));
        let leaf = M::Arch::read(entry)?;
        (leaf.reach == Reach::User && leaf.whose == Whose::Own).then(|| M::Arch::address(entry))
    }

    /// Faults that have been told are forgotten.
    pub(crate) fn drop_dumps(&mut self) {
        for n in 0..DUMPS {
            if let Some(dump) = self.dumps[n].filter(|dump| self.domain(dump.asid).cause.is_none()) {
                dump.pages
                    .iter()
                    .filter(|page| **page != 0)
                    .for_each(|page| self.frames.give((*page).into()));
                self.dumps[n] = None;
            }
        }
        self.revoke();
    }

    /// Four words of a dead domain's copies, from this offset in them: the block's page, then those of the
    /// stack. Their first word's offset, in the block, of the top of the invocation stack.
    pub fn dump(&self, asid: Asid, offset: u64) -> Result<(u64, [u64; 4]), Errno> {
        let found = self.dumps.iter().flatten().find(|dump| Asid::from(dump.asid) == asid);
        let dump = found.ok_or(errno::ENOENT)?;
        let page = dump.pages.get((offset / PAGE) as usize).filter(|page| **page != 0);
        let at = u64::from(*page.ok_or(errno::EFAULT)?) + offset % PAGE / 32 * 32;
        Ok((dump.top.into(), [0, 8, 16, 24].map(|word| self.machine.read(at + word))))
    }
}

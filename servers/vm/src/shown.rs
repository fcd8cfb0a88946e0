//! Pages of the archive that domains see.
//!
//! **Problem.** Files of the archive never change, and whoever reads them has a copy made, call by call.
//! **Strategy.** The server that has the archive shows its pages to its clients, each at the address at which
//! it sees the page itself. So a place need not be found, nor remembered: to show a page again changes
//! nothing, and who no longer wants it says where it is.
//!
//! **Invariants.** What is shown is a page of the image, which nobody writes and nobody frees; it is
//! read-only, and marked *open*: who sees it may lend it, but has nothing to give away. Nobody is charged for
//! it but for the level-0 table.

use crate::space::{leaves, pages_in, parts};
use crate::{Answer, Machine, Vm};
use core::ops::Range;
use pebble_abi::errno;
use pebble_abi::map;
use pebble_abi::words::{Asid, VirtAddr};
use pebble_arch::{Arch, Leaf, Whose};

const ARCHIVE: Range<u64> = map::ARCHIVE_VA..map::PHYS_VA;
const SHOWN: Leaf = Leaf { whose: Whose::Open, ..Leaf::USER_R };

impl<M: Machine> Vm<M> {
    /// Pages of the archive, where the caller sees them, also in that domain.
    pub fn show(&mut self, caller: Asid, asid: Asid, VirtAddr(address): VirtAddr, pages: u64) -> Answer {
        let (caller, asid) = (self.alive(caller)?, self.alive(asid)?);
        let range = pages_in(ARCHIVE, address, pages)?;
        for part in parts(range.clone()) {
            let from = self.l0(caller, part.start).ok_or(errno::EFAULT)?;
            // What is shown to the caller it may lend, and no more.
            if leaves(from, part).any(|word| M::Arch::whose(self.machine.read(word)) != Whose::Foreign) {
                return Err(errno::EFAULT);
            }
        }
        for part in parts(range.clone()) {
            self.make_l0(asid, part.start)?;
        }
        // Nothing below fails.
        for part in parts(range) {
            let (Some(from), Some(to)) = (self.l0(caller, part.start), self.l0(asid, part.start)) else {
                continue;
            };
            for (from, to) in leaves(from, part.clone()).zip(leaves(to, part)) {
                if !M::Arch::is_valid(self.machine.read(to)) {
                    let pa = M::Arch::address(self.machine.read(from));
                    self.machine.write(to, M::Arch::leaf(pa, SHOWN));
                }
            }
        }
        self.machine.flush(asid);
        Ok(0)
    }

    /// The caller sees them no more. Others to whom it has lent them do, until those calls end.
    pub fn hide(&mut self, caller: Asid, VirtAddr(address): VirtAddr, pages: u64) -> Answer {
        let caller = self.alive(caller)?;
        for part in parts(pages_in(ARCHIVE, address, pages)?) {
            let Some(l0) = self.l0(caller, part.start) else { continue };
            for word in leaves(l0, part) {
                // The archive's own server has it for good.
                if M::Arch::whose(self.machine.read(word)) == Whose::Open {
                    self.machine.write(word, 0);
                }
            }
        }
        self.machine.flush(caller);
        Ok(0)
    }

    /// What a parent sees, from an address on, its copy sees: as much as one table maps. Where the next
    /// begins, or 0 if there is no more.
    pub(crate) fn show_copy(&mut self, parent: u16, child: u16, from: u64) -> Answer {
        let Some(first) = self.next_page(parent, from.max(ARCHIVE.start)..ARCHIVE.end) else { return Ok(0) };
        let Some(part) = parts(first..ARCHIVE.end).next() else { return Ok(0) };
        let (Some(l0), copy) = (self.l0(parent, first), self.make_l0(child, first)?) else { return Ok(0) };
        let end = part.end;
        for (from, to) in leaves(l0, part.clone()).zip(leaves(copy, part)) {
            let entry = self.machine.read(from);
            if M::Arch::whose(entry) == Whose::Open {
                self.machine.write(to, entry);
            }
        }
        Ok(end)
    }
}

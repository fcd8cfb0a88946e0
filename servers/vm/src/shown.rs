//! Pages of the archive that domains see.
//!
//! **Problem.** Files of the archive never change, and whoever reads them has a copy made, call by call.
//! **Strategy.** The server that has the archive shows its pages to its clients, each at the address at which
//! it sees the page itself. So a place need not be found, nor remembered: to show a page again changes
//! nothing, and who no longer wants it says where it is.
//!
//! Of a program's file, what the program never writes to is mapped from there: its loader has it shown where
//! the program wants it. So all instances have one text, which is neither copied when a program starts or
//! forks, nor freed when it ends.
//!
//! **Invariants.** What is shown is a page of the image, which nobody writes and nobody frees; nobody who
//! sees it may write to it, and it is marked *open*: who sees it may lend it, but has nothing to give away.
//! Nobody is charged for it but for the level-0 table.

use crate::space::{leaf_slot, leaves, pages_in, parts};
use crate::{Answer, Machine, Vm};
use core::ops::Range;
use pebble_abi::errno;
use pebble_abi::map::{self, EXECUTE, PAGE, READ};
use pebble_abi::words::{Asid, VirtAddr};
use pebble_arch::{Arch, Leaf, Reach, Whose};

pub(crate) const ARCHIVE: Range<u64> = map::ARCHIVE_VA..map::PHYS_VA;
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

    /// Pages of the archive that the caller sees, also in the image of a program that it makes. `pages`: with
    /// `READ` and `EXECUTE` in the low 16 bits.
    pub fn map_shown(
        &mut self,
        caller: Asid,
        asid: Asid,
        VirtAddr(address): VirtAddr,
        VirtAddr(from): VirtAddr,
        pages: u64,
    ) -> Answer {
        let (caller, asid) = (self.alive(caller)?, self.program(asid)?);
        let (pages, rights) = (pages >> 16, pages & 0xffff);
        let range = pages_in(self.image_range(asid), address, pages)?;
        pages_in(ARCHIVE, from, pages)?;
        if rights & READ == 0 || rights & !(READ | EXECUTE) != 0 {
            return Err(errno::EINVAL);
        }
        let shown = |at: u64| self.shown_page(caller, from + at).is_some();
        if !(0..pages).all(|n| shown(n * PAGE)) {
            return Err(errno::EFAULT);
        }
        self.make_place(asid, range)?;
        // Nothing below fails.
        let leaf = Leaf { execute: rights & EXECUTE != 0, ..SHOWN };
        for at in (0..pages).map(|n| n * PAGE) {
            if let Some(pa) = self.shown_page(caller, from + at) {
                self.put(asid, address + at, M::Arch::leaf(pa, leaf));
            }
        }
        self.machine.flush(asid);
        Ok(0)
    }

    /// The page of the archive that a domain sees there.
    #[inline(never)]
    fn shown_page(&self, asid: u16, va: u64) -> Option<u64> {
        let entry = self.machine.read(leaf_slot(self.l0(asid, va)?, va));
        let leaf = M::Arch::read(entry)?;
        let shown = leaf.reach == Reach::User && !leaf.write && leaf.whose != Whose::Own;
        shown.then(|| M::Arch::address(entry))
    }
}

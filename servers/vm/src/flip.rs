//! Pages of two domains that change places: *page flipping*.
//!
//! **Problem.** Who passes much on through a server has it copied, or lends it and must trust whoever sees it.
//! **Strategy.** A page of one domain goes to where the other had one, and that page to where it was: nothing
//! is copied or zeroed, no memory is won or lost, and no account changes. A server in which both have agreed
//! asks for it.
//!
//! **Invariants.**
//! * Only pages flip that a domain may write and that are nobody else's: from its image or heap.
//! * While they change places they are marked *foreign*, so portal code lends none of them and lets none move.
//! * When they have, each is its new owner's alone: windows over it that are open show the sink, as for a page
//!   that is [claimed](Vm::window_claim).

use crate::space::leaf_slot;
use crate::{Answer, Machine, Vm};
use pebble_abi::errno::{self, Errno};
use pebble_abi::map::PAGE;
use pebble_abi::words::{Asid, VirtAddr};
use pebble_arch::{Arch, Leaf, SPAN};

/// Pages that flip under one lock.
pub const MOST: u64 = 64;

/// One side: page table words, one behind the other.
struct Side {
    asid: u16,
    words: u64,
    pages: u64,
}

impl<M: Machine> Vm<M> {
    /// So many pages from an address of one domain and as many from one of the other, as far as one page table
    /// maps each and all are what may flip, [`MOST`] at most: how many have. `EFAULT`: not even the first.
    pub fn flip(&mut self, one: (Asid, VirtAddr), other: (Asid, VirtAddr), pages: u64) -> Answer {
        let (one, other) = (self.side(one)?, self.side(other)?);
        let pages = pages.min(one.pages).min(other.pages).min(MOST);
        let words = |n: u64| (one.words + n * 8, other.words + n * 8);
        let mut held = 0;
        while held < pages && self.hold(&one, &other, held * 8) {
            held += 1;
        }
        if held == 0 {
            return Err(errno::EFAULT);
        }
        if self.look(|vm| vm.numbers().any(|asid| vm.shows_something(asid))) {
            self.take_windows((0..held).map(words));
        }
        for (one, other) in (0..held).map(words) {
            let here = M::Arch::address(self.machine.read(one));
            let there = M::Arch::address(self.machine.read(other));
            self.machine.write(one, M::Arch::leaf(there, Leaf::USER_RW));
            self.machine.write(other, M::Arch::leaf(here, Leaf::USER_RW));
        }
        self.machine.flush(one.asid);
        self.machine.flush(other.asid);
        Ok(held)
    }

    fn side(&self, (asid, VirtAddr(address)): (Asid, VirtAddr)) -> Result<Side, Errno> {
        let asid = self.program(asid)?;
        let image = self.image_range(asid);
        if !address.is_multiple_of(PAGE) || !image.contains(&address) {
            return Err(errno::EFAULT);
        }
        let end = image.end.min((address / SPAN + 1) * SPAN);
        let l0 = self.l0(asid, address).ok_or(errno::EFAULT)?;
        Ok(Side { asid, words: leaf_slot(l0, address), pages: (end - address) / PAGE })
    }

    /// Marks a page of each side, or neither. A page that is on both sides is marked when its turn comes again.
    #[inline(always)]
    fn hold(&mut self, one: &Side, other: &Side, at: u64) -> bool {
        let Some(entry) = self.mark(one.asid, one.words + at) else { return false };
        if self.mark(other.asid, other.words + at).is_some() {
            return true;
        }
        self.machine.write(one.words + at, entry);
        false
    }

    /// What was there.
    #[inline(always)]
    fn mark(&mut self, asid: u16, word: u64) -> Option<u64> {
        let entry = self.entry(asid, word);
        let pa = M::Arch::address(entry);
        // Equal words say the same: it takes no decoding.
        let may = entry == M::Arch::leaf(pa, Leaf::USER_RW);
        (may && self.machine.exchange(word, entry, M::Arch::leaf(pa, Leaf::FOREIGN_RW))).then_some(entry)
    }

    /// As for pages that are free.
    #[cold]
    fn take_windows(&mut self, words: impl Iterator<Item = (u64, u64)> + Clone) {
        let pages = words.flat_map(|(one, other)| [one, other]);
        for word in pages.clone() {
            self.frames.give(M::Arch::address(self.machine.read(word)));
        }
        self.revoke();
        for word in pages {
            self.frames.take_back(M::Arch::address(self.machine.read(word)));
        }
    }
}

//! The physical memory of the running system, as it will be at boot, and page tables in it.

use pebble_abi::map::{self, PAGE};
use pebble_arch::{Arch, Leaf, SPAN, slot};
use std::marker::PhantomData;

pub struct Memory<A> {
    pub bytes: Vec<u8>,
    arch: PhantomData<A>,
}

impl<A> Default for Memory<A> {
    fn default() -> Self {
        Memory { bytes: Vec::new(), arch: PhantomData }
    }
}

impl<A: Arch> Memory<A> {
    /// A fresh zeroed page's physical address.
    pub fn page(&mut self) -> u64 {
        self.pages(1)
    }

    pub fn pages(&mut self, count: usize) -> u64 {
        let at = self.end();
        self.bytes.resize(self.bytes.len() + count * PAGE as usize, 0);
        at
    }

    pub fn end(&self) -> u64 {
        map::LOAD_PA + self.bytes.len() as u64
    }

    fn at(&self, pa: u64) -> usize {
        (pa - map::LOAD_PA) as usize
    }

    pub fn write(&mut self, pa: u64, bytes: &[u8]) {
        let at = self.at(pa);
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    pub fn write_word(&mut self, pa: u64, word: u64) {
        self.write(pa, &word.to_le_bytes());
    }

    pub fn read_word(&self, pa: u64) -> u64 {
        let at = self.at(pa);
        u64::from_le_bytes(self.bytes[at..at + 8].try_into().unwrap_or_default())
    }

    /// The next lower table behind the entry for `va` in `table` at `level`, made if absent.
    pub fn table(&mut self, table: u64, level: u32, va: u64) -> u64 {
        let slot = slot(table, level, va);
        let entry = self.read_word(slot);
        if A::is_valid(entry) {
            return A::address(entry);
        }
        let fresh = self.page();
        self.write_word(slot, A::table(fresh));
        fresh
    }

    /// Maps one page.
    pub fn map(&mut self, root: u64, va: u64, pa: u64, leaf: Leaf) {
        let l0 = self.table_for(root, va);
        self.write_word(slot(l0, 0, va), A::leaf(pa, leaf));
    }

    /// The lowest table for `va`, made if absent: whoever maps pages there later need not.
    pub fn table_for(&mut self, root: u64, va: u64) -> u64 {
        let l1 = self.table(root, 2, va);
        self.table(l1, 1, va)
    }

    /// Maps as much as one such table would, at once.
    pub fn map_span(&mut self, root: u64, va: u64, pa: u64, leaf: Leaf) {
        let l1 = self.table(root, 2, va);
        self.write_word(slot(l1, 1, va), A::leaf(pa, leaf));
    }

    /// Physical address of a mapped user page.
    pub fn translate(&self, root: u64, va: u64) -> Option<u64> {
        let mut table = root;
        for level in [2, 1, 0] {
            let entry = self.read_word(slot(table, level, va));
            if !A::is_valid(entry) {
                return None;
            }
            table = A::address(entry);
            if !A::is_table(entry) {
                return Some(table + (va & ((SPAN / 512 << (9 * level)) - 1)));
            }
        }
        None
    }
}

//! The physical memory of the running system, as it will be at boot, and page tables in it.
//!
//! Pages are taken one behind the other from where the image is loaded. Where the hardware fixes what is in
//! the nucleus's half, its pages are further pieces of memory.

use pebble_abi::map::PAGE;
use pebble_arch::{Arch, Leaf, SPAN, slot};
use std::collections::BTreeMap;
use std::marker::PhantomData;

pub struct Memory<A> {
    /// Bytes, by where they begin.
    pieces: BTreeMap<u64, Vec<u8>>,
    load: u64,
    arch: PhantomData<A>,
}

impl<A: Arch> Memory<A> {
    /// `load`: where the image is loaded.
    pub fn new(load: u64) -> Self {
        Memory { pieces: BTreeMap::from([(load, Vec::new())]), load, arch: PhantomData }
    }

    pub fn pieces(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.pieces.iter().map(|(at, bytes)| (*at, &**bytes))
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> u64 {
        self.pieces().map(|(_, bytes)| bytes.len() as u64).sum()
    }

    /// A fresh zeroed page's physical address.
    pub fn page(&mut self) -> u64 {
        self.pages(1)
    }

    pub fn pages(&mut self, count: usize) -> u64 {
        let at = self.end();
        self.grow(self.load, count);
        at
    }

    /// The page at a fixed address: zeroed, unless it is there already.
    pub fn page_at(&mut self, pa: u64) {
        let below = self.pieces.range(..=pa).next_back().map(|(at, bytes)| (*at, at + bytes.len() as u64));
        match below {
            Some((_, end)) if pa < end => {}
            Some((at, end)) if pa == end => self.grow(at, 1),
            _ => self.grow(pa, 1),
        }
    }

    fn grow(&mut self, piece: u64, pages: usize) {
        let bytes = self.pieces.entry(piece).or_default();
        bytes.resize(bytes.len() + pages * PAGE as usize, 0);
    }

    /// Where the next page will be.
    pub fn end(&self) -> u64 {
        self.load + self.pieces[&self.load].len() as u64
    }

    fn from(&self, pa: u64) -> &[u8] {
        let piece = self.pieces.range(..=pa).next_back();
        piece.and_then(|(at, bytes)| bytes.get((pa - at) as usize..)).unwrap_or_default()
    }

    pub fn write(&mut self, pa: u64, bytes: &[u8]) {
        if let Some((at, piece)) = self.pieces.range_mut(..=pa).next_back() {
            let at = (pa - at) as usize;
            piece[at..at + bytes.len()].copy_from_slice(bytes);
        }
    }

    pub fn write_word(&mut self, pa: u64, word: u64) {
        self.write(pa, &word.to_le_bytes());
    }

    pub fn read_word(&self, pa: u64) -> u64 {
        self.from(pa).first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
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

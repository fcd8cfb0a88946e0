//! The physical memory of the running system, as it will be at boot, and Sv39 page tables in it.

use pebble_abi::map::{self, PAGE, PTE_A, PTE_D, PTE_FOREIGN, PTE_G, PTE_R, PTE_U, PTE_V, PTE_W, PTE_X};

/// Flags of leaf entries. Accessed and dirty are set: the hardware never has to.
pub const USER_RX: u64 = PTE_V | PTE_R | PTE_X | PTE_U | PTE_A;
pub const USER_R: u64 = PTE_V | PTE_R | PTE_U | PTE_A;
pub const USER_RW: u64 = PTE_V | PTE_R | PTE_W | PTE_U | PTE_A | PTE_D;
/// What is not the domain's own: devices, grants, the gate. It is never lent.
pub const FOREIGN_RX: u64 = USER_RX | PTE_FOREIGN;
pub const FOREIGN_R: u64 = USER_R | PTE_FOREIGN;
pub const FOREIGN_RW: u64 = USER_RW | PTE_FOREIGN;
pub const NUCLEUS_RX: u64 = PTE_V | PTE_R | PTE_X | PTE_G | PTE_A;
pub const NUCLEUS_RW: u64 = PTE_V | PTE_R | PTE_W | PTE_G | PTE_A | PTE_D;
pub const TABLE_R: u64 = PTE_V | PTE_R | PTE_A;

#[derive(Default)]
pub struct Memory {
    pub bytes: Vec<u8>,
}

impl Memory {
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
        let slot = table + (va >> (12 + 9 * level) & 511) * 8;
        let entry = self.read_word(slot);
        if entry & PTE_V != 0 {
            return map::pte_pa(entry);
        }
        let fresh = self.page();
        self.write_word(slot, map::pte(fresh, PTE_V));
        fresh
    }

    /// Maps one 4 KiB page.
    pub fn map(&mut self, root: u64, va: u64, pa: u64, flags: u64) {
        let l1 = self.table(root, 2, va);
        let l0 = self.table(l1, 1, va);
        self.write_word(l0 + (va >> 12 & 511) * 8, map::pte(pa, flags));
    }

    /// Makes the level-0 table for `va`, so that whoever maps pages there later need not.
    pub fn table_for(&mut self, root: u64, va: u64) {
        let l1 = self.table(root, 2, va);
        self.table(l1, 1, va);
    }

    /// Maps one 2 MiB page.
    pub fn map_mega(&mut self, root: u64, va: u64, pa: u64, flags: u64) {
        let l1 = self.table(root, 2, va);
        self.write_word(l1 + (va >> 21 & 511) * 8, map::pte(pa, flags));
    }

    /// Physical address of a mapped user page.
    pub fn translate(&self, root: u64, va: u64) -> Option<u64> {
        let mut table = root;
        for level in [2, 1, 0] {
            let entry = self.read_word(table + (va >> (12 + 9 * level) & 511) * 8);
            if entry & PTE_V == 0 {
                return None;
            }
            table = map::pte_pa(entry);
            if entry & (PTE_R | PTE_X) != 0 {
                return Some(table + (va & (PAGE - 1)));
            }
        }
        None
    }
}

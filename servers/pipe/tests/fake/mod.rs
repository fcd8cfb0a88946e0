//! Offers and the memory of clients, as the component would have them.

use pebble_pipe::{Offers, Pages, QUEUES, Queue, Wake};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    Free,
    Open,
    Taken,
    Done(usize),
}

pub const PAGE: usize = 4096;

/// Memory is one array; an address is an index, of whichever domain.
pub struct Fake {
    pub offers: [Offer; QUEUES],
    pub memory: Vec<u8>,
    /// Whether the caller may sleep.
    pub sleeps: bool,
    /// Domains whose pages may not flip.
    pub fixed: Vec<u64>,
    /// Who was woken in passing.
    pub woken: Vec<Wake>,
}

impl Fake {
    /// Nobody may sleep, and nobody has offered anything.
    pub fn none() -> Self {
        Fake {
            offers: [Offer::Free; QUEUES],
            memory: Vec::new(),
            sleeps: false,
            fixed: Vec::new(),
            woken: Vec::new(),
        }
    }
}

impl Offers for Fake {
    fn make(&mut self, queue: Queue) -> bool {
        let may = self.sleeps && self.offers[queue.index()] == Offer::Free;
        if may {
            self.offers[queue.index()] = Offer::Open;
        }
        may
    }

    fn take(&mut self, queue: Queue) -> bool {
        let open = self.offers[queue.index()] == Offer::Open;
        if open {
            self.offers[queue.index()] = Offer::Taken;
        }
        open
    }

    fn finish(&mut self, queue: Queue, count: usize) {
        assert_eq!(self.offers[queue.index()], Offer::Taken);
        self.offers[queue.index()] = Offer::Done(count);
    }

    fn copy(&mut self, from: u64, to: u64, len: usize) {
        self.memory.copy_within(from as usize..from as usize + len, to as usize);
    }

    fn flip(&mut self, one: Pages, other: Pages) -> u64 {
        if [one, other].iter().any(|pages| self.fixed.contains(&pages.domain.0)) {
            return 0;
        }
        let count = one.count.min(other.count);
        for n in 0..count as usize * PAGE {
            self.memory.swap(one.address as usize + n, other.address as usize + n);
        }
        count
    }

    fn wake(&mut self, wake: Wake) {
        self.woken.push(wake);
    }

    fn load(&mut self, from: u64, len: usize) -> [u64; 4] {
        let mut bytes = [0; 32];
        bytes[..len].copy_from_slice(&self.memory[from as usize..][..len]);
        core::array::from_fn(|word| u64::from_le_bytes(*bytes[word * 8..].first_chunk().unwrap()))
    }

    fn store(&mut self, to: u64, words: [u64; 4], len: usize) {
        let bytes = words.map(u64::to_le_bytes);
        self.memory[to as usize..][..len].copy_from_slice(&bytes.as_flattened()[..len]);
    }
}

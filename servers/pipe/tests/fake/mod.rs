//! Offers and the memory of clients, as the component would have them.

use pebble_pipe::{Offers, QUEUES, Queue};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    Free,
    Open,
    Taken,
    Done(usize),
}

/// Memory is one array; an address is an index.
pub struct Fake {
    pub offers: [Offer; QUEUES],
    pub memory: Vec<u8>,
    /// Whether the caller may sleep.
    pub sleeps: bool,
}

impl Fake {
    /// Nobody may sleep, and nobody has offered anything.
    pub fn none() -> Self {
        Fake { offers: [Offer::Free; QUEUES], memory: Vec::new(), sleeps: false }
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

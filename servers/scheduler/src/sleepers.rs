//! Sleeping threads, the earliest first.
//!
//! **Strategy.** A binary heap in a static array. A key is the time and the thread in one word, so an
//! entry is moved by one store, compared by one instruction, and equal times have a fixed order.
//!
//! **Invariant.** No key is smaller than its parent; each thread has at most one; keys that are not in use are
//! larger than all others, so an empty heap is due "never". Masks replace bounds checks: indices are below `len`,
//! which is at most the number of threads.

use pebble_abi::map::MAX_THREADS;

const MASK: usize = MAX_THREADS - 1;
/// The latest time that a key holds, 200 years after power-on.
pub const NEVER: u64 = u64::MAX >> 8;
const UNUSED: u64 = u64::MAX;

pub struct Sleepers {
    len: usize,
    keys: [u64; MAX_THREADS],
}

impl Sleepers {
    pub const fn new() -> Self {
        Self { len: 0, keys: [UNUSED; MAX_THREADS] }
    }

    /// When the first is due; [`NEVER`] without one.
    #[inline(always)]
    pub fn due(&self) -> u64 {
        self.keys[0] >> 8
    }

    /// `t` is not among them.
    pub fn push(&mut self, until: u64, t: u8) {
        self.len += 1;
        self.rise(self.len - 1, until.min(NEVER) << 8 | u64::from(t));
    }

    /// The first; there is one.
    #[inline]
    pub fn pop(&mut self) -> u8 {
        let first = self.keys[0] as u8;
        let last = self.drop_last();
        if self.len > 0 {
            self.sink(0, last);
        }
        first
    }

    /// Takes `t` out, wherever it is.
    pub fn remove(&mut self, t: u8) {
        let Some(at) = self.keys.iter().take(self.len).position(|key| *key as u8 == t) else { return };
        let last = self.drop_last();
        if at < self.len {
            // One of the two moves it, or neither.
            let at = self.rise(at, last);
            self.sink(at, last);
        }
    }

    #[inline]
    fn drop_last(&mut self) -> u64 {
        self.len -= 1;
        core::mem::replace(&mut self.keys[self.len & MASK], UNUSED)
    }

    /// Fills the gap `at` with `key` or, where that is smaller than the parents, with those; returns its index.
    fn rise(&mut self, mut at: usize, key: u64) -> usize {
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.keys[parent & MASK] < key {
                break;
            }
            self.keys[at & MASK] = self.keys[parent & MASK];
            at = parent;
        }
        self.keys[at & MASK] = key;
        at
    }

    /// Fills the gap `at` with `key` or, where that is larger than the children, with the smaller of those.
    fn sink(&mut self, mut at: usize, key: u64) {
        loop {
            let mut child = 2 * at + 1;
            if child >= self.len {
                break;
            }
            if child + 1 < self.len && self.keys[(child + 1) & MASK] < self.keys[child & MASK] {
                child += 1;
            }
            if key < self.keys[child & MASK] {
                break;
            }
            self.keys[at & MASK] = self.keys[child & MASK];
            at = child;
        }
        self.keys[at & MASK] = key;
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn the_earliest_comes_first(ops in prop::collection::vec((0..6u8, 0..100u64, any::<u8>()), 1..600)) {
            let (mut heap, mut model) = (Sleepers::new(), BTreeSet::new());
            for (op, until, t) in ops {
                let known = model.iter().find(|(_, other)| *other == t).copied();
                match (op, known) {
                    (0, _) if !model.is_empty() => {
                        prop_assert_eq!(heap.pop(), model.pop_first().unwrap().1);
                    }
                    (1, Some(entry)) => {
                        heap.remove(t);
                        model.remove(&entry);
                    }
                    (1, None) => heap.remove(t),
                    (_, None) => {
                        heap.push(until, t);
                        model.insert((until, t));
                    }
                    _ => {}
                }
                prop_assert_eq!(heap.due(), model.first().map_or(NEVER, |(until, _)| *until));
            }
            while let Some((_, t)) = model.pop_first() {
                prop_assert_eq!(heap.pop(), t);
            }
        }
    }
}

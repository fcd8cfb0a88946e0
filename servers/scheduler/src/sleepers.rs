//! Sleeping threads, the earliest first.
//!
//! **Strategy.** The first is kept apart: mostly there is no other. The others are a binary heap in a static
//! array. A key is the time and the thread in one word, so an entry is moved by one store, compared by one
//! instruction, and equal times have a fixed order. The heap knows where each thread is, so none is looked
//! for.
//!
//! **Invariant.** No key is smaller than its parent, nor than the first; each thread has at most one; without
//! sleepers the first key is larger than all others, so nobody is due, "never". So is the key in each place
//! of the heap behind the last: whoever has a child has two to compare. Masks replace bounds checks: indices
//! are below `others`, which is less than the number of threads.

use pebble_abi::map::MAX_THREADS;

const MASK: usize = MAX_THREADS - 1;
/// A time that no clock shows.
pub const NEVER: u64 = u64::MAX;
/// The latest time that a key holds, 100 years after power-on.
pub const LATEST: u64 = NEVER >> 9;
/// No key: the only one with its sign bit set, which is what makes it due at [`NEVER`].
const UNUSED: u64 = u64::MAX;

/// Where the others are: it lies elsewhere, like the links of a queue.
#[repr(C)]
pub struct Heap {
    keys: [u64; MAX_THREADS],
    /// The place of each thread's key.
    places: [u8; MAX_THREADS],
}

impl Heap {
    /// Not usable before it is [cleared](Self::clear); all zero.
    pub const fn zero() -> Self {
        Heap { keys: [0; MAX_THREADS], places: [0; MAX_THREADS] }
    }

    /// Usable, and without a key.
    pub fn clear(&mut self) {
        self.keys.fill(UNUSED);
    }

    fn put(&mut self, at: usize, key: u64) {
        self.keys[at & MASK] = key;
        self.places[key as u8 as usize] = at as u8;
    }
}

#[repr(C)]
pub struct Sleepers {
    first: u64,
    others: usize,
}

impl Sleepers {
    pub const fn new() -> Self {
        Self { first: UNUSED, others: 0 }
    }

    /// Not usable; all zero.
    pub const fn zero() -> Self {
        Self { first: 0, others: 0 }
    }

    /// When the first is due; [`NEVER`] without one.
    #[inline(always)]
    pub fn due(&self) -> u64 {
        (self.first as i64 >> 8) as u64
    }

    /// The first, known to be there, if there is no other.
    #[inline(always)]
    pub fn only(&self) -> Option<u8> {
        (self.others == 0).then_some(self.first as u8)
    }

    /// Takes the only one out.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.first = UNUSED;
    }

    /// `t` is not among them.
    pub fn push(&mut self, heap: &mut Heap, until: u64, t: u8) {
        let key = until.min(LATEST) << 8 | u64::from(t);
        let later = self.first.max(key);
        self.first = self.first.min(key);
        if later != UNUSED {
            self.others += 1;
            rise(heap, self.others - 1, later);
        }
    }

    /// The first; there is one.
    #[inline]
    pub fn pop(&mut self, heap: &mut Heap) -> u8 {
        let t = self.first as u8;
        self.first = UNUSED;
        if self.others > 0 {
            self.first = heap.keys[0];
            self.fill(heap, 0);
        }
        t
    }

    /// Takes `t` out, wherever it is, if it is there.
    pub fn remove(&mut self, heap: &mut Heap, t: u8) {
        if self.first != UNUSED && self.first as u8 == t {
            self.pop(heap);
            return;
        }
        let at = usize::from(heap.places[t as usize]);
        if at < self.others && heap.keys[at] as u8 == t {
            self.fill(heap, at);
        }
    }

    /// Fills the gap `at` with the last of the others.
    #[inline(never)]
    fn fill(&mut self, heap: &mut Heap, at: usize) {
        self.others -= 1;
        let last = core::mem::replace(&mut heap.keys[self.others & MASK], UNUSED);
        if at < self.others {
            // One of the two moves it, or neither.
            let at = rise(heap, at, last);
            sink(heap, self.others, at, last);
        }
    }
}

/// Fills the gap `at` with `key` or, where that is smaller than the parents, with those; returns its index.
fn rise(heap: &mut Heap, mut at: usize, key: u64) -> usize {
    while at > 0 {
        let parent = (at - 1) / 2;
        let above = heap.keys[parent & MASK];
        if above < key {
            break;
        }
        heap.put(at, above);
        at = parent;
    }
    heap.put(at, key);
    at
}

/// Fills the gap `at` with `key` or, where that is larger than the children, with the smaller of those.
fn sink(heap: &mut Heap, len: usize, at: usize, key: u64) {
    let (len, mut at) = (len.min(MASK), at & MASK);
    loop {
        let child = 2 * at + 1;
        if child >= len {
            break;
        }
        let (left, right) = (heap.keys[child], heap.keys[child + 1]);
        let below = left.min(right);
        if key < below {
            break;
        }
        heap.put(at, below);
        at = child + usize::from(right < left);
    }
    heap.put(at, key);
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
            let (mut sleepers, mut heap, mut model) = (Sleepers::new(), Heap::zero(), BTreeSet::new());
            heap.clear();
            for (op, until, t) in ops {
                let known = model.iter().find(|(_, other)| *other == t).copied();
                match (op, known) {
                    (0, _) if !model.is_empty() => {
                        prop_assert_eq!(sleepers.pop(&mut heap), model.pop_first().unwrap().1);
                    }
                    (1, Some(entry)) => {
                        sleepers.remove(&mut heap, t);
                        model.remove(&entry);
                    }
                    (1, None) => sleepers.remove(&mut heap, t),
                    (_, None) => {
                        sleepers.push(&mut heap, until, t);
                        model.insert((until, t));
                    }
                    _ => {}
                }
                let only = model.first().filter(|_| model.len() == 1).map(|(_, t)| *t);
                prop_assert!(model.is_empty() || sleepers.only() == only);
                prop_assert_eq!(sleepers.due(), model.first().map_or(NEVER, |(until, _)| *until));
            }
            while let Some((_, t)) = model.pop_first() {
                prop_assert_eq!(sleepers.pop(&mut heap), t);
            }
        }
    }
}

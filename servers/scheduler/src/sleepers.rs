//! Sleeping threads: those first that are more urgent than programs may be, and of each kind the earliest.
//!
//! **Strategy.** The earliest is kept apart: mostly there is no other. The others are two binary heaps, one
//! of each [`Kind`], so that no crowd of programs that are due keeps a server or a driver waiting. The heaps
//! are in one static array, which they fill from its two ends. A key is the time and the thread in one word,
//! so an entry is moved by one store, compared by one instruction, and equal times have a fixed order. The
//! heap knows where each thread is, so none is looked for.
//!
//! **Invariant.** No key is smaller than its parent, nor than the first; each thread has at most one; without
//! sleepers the first key is larger than all others, so nobody is due, "never". So is each key
//! behind the last of a heap: whoever has a child has two to compare, and an empty heap a root that is never
//! due. Indices are below the number of threads, for masks, and the two heaps never meet, since the running
//! thread is in neither.

use crate::PRIORITIES;
use pebble_abi::map::MAX_THREADS;
use pebble_abi::scheduler::PROGRAMS;

/// The last level that no program has.
const LEAST_URGENT: u8 = PRIORITIES as u8 - 1 - PROGRAMS;
const MASK: usize = MAX_THREADS - 1;
/// A time that no clock shows.
pub const NEVER: u64 = u64::MAX;
/// The latest time that a key holds, 100 years after power-on.
pub const LATEST: u64 = NEVER >> 9;
/// No key: the only one with its sign bit set, which is what makes it due at [`NEVER`].
const UNUSED: u64 = u64::MAX;

/// Whose turn comes first when several are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Urgent = 0,
    Usual = 1,
}

impl Kind {
    const ALL: [Kind; 2] = [Kind::Urgent, Kind::Usual];

    /// Of a thread at this level.
    #[inline(always)]
    pub const fn of(level: u8) -> Kind {
        if level <= LEAST_URGENT { Kind::Urgent } else { Kind::Usual }
    }

    /// Where in the array the index `at` of this heap is: the usual fill it from its beginning, the urgent
    /// from its end.
    #[inline(always)]
    const fn index(self, at: usize) -> usize {
        (at ^ if matches!(self, Kind::Urgent) { MASK } else { 0 }) & MASK
    }
}

/// Where the others are: it lies elsewhere, like the links of a queue.
#[repr(C)]
pub struct Heap {
    keys: [u64; MAX_THREADS],
    /// Where in the array each thread's key is.
    indices: [u8; MAX_THREADS],
}

impl Heap {
    /// Not usable before it is [cleared](Self::clear); all zero.
    pub const fn zero() -> Self {
        Heap { keys: [0; MAX_THREADS], indices: [0; MAX_THREADS] }
    }

    /// Usable, and without a key.
    pub fn clear(&mut self) {
        self.keys.fill(UNUSED);
    }

    #[inline(always)]
    fn get(&self, kind: Kind, at: usize) -> u64 {
        self.keys[kind.index(at)]
    }

    #[inline(always)]
    fn put(&mut self, kind: Kind, at: usize, key: u64) {
        let index = kind.index(at);
        self.keys[index] = key;
        self.indices[key as u8 as usize] = index as u8;
    }
}

#[repr(C)]
pub struct Sleepers {
    /// The earliest of all.
    first: u64,
    others: [u32; 2],
    kind: Kind,
}

impl Sleepers {
    pub const fn new() -> Self {
        Self { first: UNUSED, others: [0; 2], kind: Kind::Urgent }
    }

    /// Not usable; all zero.
    pub const fn zero() -> Self {
        Self { first: 0, others: [0; 2], kind: Kind::Urgent }
    }

    /// When the first is due; [`NEVER`] without one.
    #[inline(always)]
    pub fn due(&self) -> u64 {
        due(self.first)
    }

    /// The first, known to be there, if there is no other.
    #[inline(always)]
    pub fn only(&self) -> Option<u8> {
        (self.others == [0; 2]).then_some(self.first as u8)
    }

    /// Takes the only one out.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.first = UNUSED;
    }

    /// `t` is not among them.
    pub fn push(&mut self, heap: &mut Heap, until: u64, t: u8, kind: Kind) {
        let key = until.min(LATEST) << 8 | u64::from(t);
        let (mut later, mut of) = (key, kind);
        if key < self.first {
            later = core::mem::replace(&mut self.first, key);
            of = core::mem::replace(&mut self.kind, kind);
        }
        if later != UNUSED {
            let others = &mut self.others[of as usize];
            *others += 1;
            rise(heap, of, *others as usize - 1, later);
        }
    }

    /// When somebody is due for whom the timer must tick while a thread of this kind runs: who is less urgent
    /// and due already is woken when that thread stops.
    #[inline(always)]
    pub fn next_due(&self, heap: &Heap, running: Kind, now: u64) -> u64 {
        let first = self.due();
        if first > now || running == Kind::Usual { first } else { self.next_urgent(heap) }
    }

    #[inline(never)]
    fn next_urgent(&self, heap: &Heap) -> u64 {
        if self.kind == Kind::Urgent { self.due() } else { due(heap.get(Kind::Urgent, 0)) }
    }

    /// Who is to be woken now while a thread of this kind would run, if anybody is due.
    pub fn pop(&mut self, heap: &mut Heap, now: u64, running: Kind) -> Option<u8> {
        let urgent = heap.get(Kind::Urgent, 0);
        if self.kind == Kind::Usual && due(urgent) <= now {
            self.fill(heap, Kind::Urgent, 0);
            return Some(urgent as u8);
        }
        let wakes = self.kind == Kind::Urgent || running == Kind::Usual;
        (wakes && self.due() <= now).then(|| self.take(heap))
    }

    /// The first; there is one.
    fn take(&mut self, heap: &mut Heap) -> u8 {
        let t = self.first as u8;
        let [urgent, usual] = Kind::ALL.map(|kind| heap.get(kind, 0));
        self.kind = if urgent < usual { Kind::Urgent } else { Kind::Usual };
        self.first = urgent.min(usual);
        if self.first != UNUSED {
            self.fill(heap, self.kind, 0);
        }
        t
    }

    /// Takes `t` out, wherever it is, if it is there.
    pub fn remove(&mut self, heap: &mut Heap, t: u8) {
        if self.first != UNUSED && self.first as u8 == t {
            self.take(heap);
            return;
        }
        for kind in Kind::ALL {
            let at = kind.index(heap.indices[t as usize].into());
            if at < self.others[kind as usize] as usize && heap.get(kind, at) as u8 == t {
                self.fill(heap, kind, at);
                return;
            }
        }
    }

    /// Fills the gap `at` with the last of the others.
    #[inline(never)]
    fn fill(&mut self, heap: &mut Heap, kind: Kind, at: usize) {
        let others = &mut self.others[kind as usize];
        *others -= 1;
        let others = *others as usize;
        let last = core::mem::replace(&mut heap.keys[kind.index(others)], UNUSED);
        if at < others {
            // One of the two moves it, or neither.
            let at = rise(heap, kind, at, last);
            sink(heap, kind, others, at, last);
        }
    }
}

/// When this key is due.
#[inline(always)]
const fn due(key: u64) -> u64 {
    (key as i64 >> 8) as u64
}

/// Fills the gap `at` with `key` or, where that is smaller than the parents, with those; returns its index.
fn rise(heap: &mut Heap, kind: Kind, mut at: usize, key: u64) -> usize {
    while at > 0 {
        let parent = (at - 1) / 2;
        let above = heap.get(kind, parent);
        if above < key {
            break;
        }
        heap.put(kind, at, above);
        at = parent;
    }
    heap.put(kind, at, key);
    at
}

/// Fills the gap `at` with `key` or, where that is larger than the children, with the smaller of those.
fn sink(heap: &mut Heap, kind: Kind, len: usize, mut at: usize, key: u64) {
    loop {
        let child = 2 * at + 1;
        if child >= len {
            break;
        }
        let (left, right) = (heap.get(kind, child), heap.get(kind, child + 1));
        let below = left.min(right);
        if key < below {
            break;
        }
        heap.put(kind, at, below);
        at = child + usize::from(right < left);
    }
    heap.put(kind, at, key);
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn the_urgent_come_first_then_the_earliest(
            ops in prop::collection::vec((0..7u8, 0..100u64, any::<u8>(), any::<bool>()), 1..900),
        ) {
            let (mut sleepers, mut heap) = (Sleepers::new(), Heap::zero());
            // Whether usual, until when, who.
            let mut model: BTreeSet<(bool, u64, u8)> = BTreeSet::new();
            heap.clear();
            for (op, until, t, usual) in ops {
                let known = model.iter().find(|(_, _, other)| *other == t).copied();
                let kind = if usual { Kind::Usual } else { Kind::Urgent };
                match (op, known) {
                    (0, _) => {
                        let is_due = |entry: &&(bool, u64, u8)| entry.1 <= until && (usual || !entry.0);
                        let due = model.iter().find(is_due).copied();
                        prop_assert_eq!(sleepers.pop(&mut heap, until, kind), due.map(|(_, _, t)| t));
                        due.map(|entry| model.remove(&entry));
                    }
                    (1, _) => {
                        sleepers.remove(&mut heap, t);
                        known.map(|entry| model.remove(&entry));
                    }
                    (_, None) if model.len() < MAX_THREADS - 1 => {
                        sleepers.push(&mut heap, until, t, kind);
                        model.insert((usual, until, t));
                    }
                    _ => {}
                }
                let only = model.first().filter(|_| model.len() == 1).map(|(.., t)| *t);
                prop_assert!(model.is_empty() || sleepers.only() == only);
                prop_assert_eq!(sleepers.due(), model.iter().map(|(_, due, _)| *due).min().unwrap_or(NEVER));
            }
            while let Some((.., t)) = model.pop_first() {
                prop_assert_eq!(sleepers.pop(&mut heap, LATEST, Kind::Usual), Some(t));
            }
            prop_assert_eq!(sleepers.due(), NEVER);
        }
    }
}

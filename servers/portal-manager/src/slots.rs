//! What is known of a portal table's entries, by index.
//!
//! Problem: a table may have portals at its begin and, far behind, those of a controller's own; and a hundred
//! domains may have such tables. Strategy: entries lie in chunks, and a chunk in which nothing ever was takes
//! no memory.
//!
//! Invariants: what lies in a missing chunk is free, and a chunk whose last portal goes goes too; only
//! writing by an index makes one, and before that [`Slots::spare`] sees to it that the heap has room to
//! spare.

use crate::arena::Run;
use crate::manager::{Goal, Slot};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::{Index, IndexMut};
use pebble_abi::errno::{self, Errno};

const CHUNK: usize = 32;
/// Bytes that must be left for what else there is: names, specifications, lists, above all of code in limbo
/// and of free code.
const SPARE: usize = 352 << 10;

static FREE: Slot = Slot {
    goal: Goal::Free,
    run: Run { at: 0, len: 0, host: 0, guest: 0 },
    constant: 0,
    counter: None,
    subject: None,
    giver: None,
};

#[derive(Default)]
pub struct Slots {
    /// Each of [`CHUNK`] entries.
    chunks: Vec<Option<Box<[Slot]>>>,
    len: usize,
    /// Chunks that are there.
    there: usize,
    /// So often an entry may have changed.
    changes: u64,
}

impl Slots {
    /// Behind the last entry that was ever used.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn get(&self, index: usize) -> Option<&Slot> {
        (index < self.len).then(|| &self[index])
    }

    /// What is not free, with its index, in order.
    pub fn used(&self) -> impl Iterator<Item = (usize, &Slot)> {
        (0..self.len).map(|index| (index, &self[index])).filter(|(_, slot)| slot.goal != Goal::Free)
    }

    /// The same for who looks through the tables of all domains: nothing is asked of what no chunk has.
    /// Spelled out, since all else here is compiled for size, and nobody can call a server without state
    /// while it is replaced and this goes on.
    #[inline(always)]
    pub fn each_used(&self, mut visit: impl FnMut(usize, &Slot)) {
        let mut first = 0;
        for chunk in &self.chunks {
            if let Some(chunk) = chunk {
                let mut index = first;
                for slot in chunk.iter() {
                    if !matches!(slot.goal, Goal::Free) {
                        visit(index, slot);
                    }
                    index += 1;
                }
            }
            first += CHUNK;
        }
    }

    /// How many chunks it has.
    pub fn chunks(&self) -> usize {
        self.there
    }

    /// Whenever an entry changes this does.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// How many more it would have with these entries, which are in order.
    pub fn missing(&self, entries: impl Iterator<Item = usize>) -> usize {
        let (mut missing, mut before) = (0, None);
        for chunk in entries.map(|index| index / CHUNK) {
            if before != Some(chunk) {
                missing += usize::from(!self.chunks.get(chunk).is_some_and(Option::is_some));
            }
            before = Some(chunk);
        }
        missing
    }

    /// Room for new chunks, and some to spare: -EAGAIN before the heap is at its end, for afterwards it is too
    /// late to say so.
    pub fn spare() -> Result<(), Errno> {
        Vec::<u8>::new().try_reserve_exact(SPARE).map_err(|_| errno::EAGAIN)
    }

    /// So many entries at the begin are common, and none's.
    pub fn reserve(&mut self, count: usize) {
        for first in (0..count).step_by(CHUNK) {
            let last = CHUNK.min(count - first) - 1;
            // The chunk, and all of it is used.
            self[first + last].goal = Goal::Common;
            let slots = self.chunks[first / CHUNK].iter_mut().flat_map(|chunk| chunk.iter_mut());
            slots.take(last).for_each(|slot| slot.goal = Goal::Common);
        }
    }

    /// What was there; free from now on. The last of a chunk takes it along.
    pub fn take(&mut self, index: usize) -> Slot {
        let Some(place) = self.chunks.get_mut(index / CHUNK) else { return FREE };
        let Some(chunk) = place else { return FREE };
        self.changes += 1;
        let taken = core::mem::take(&mut chunk[index % CHUNK]);
        if chunk.iter().all(|slot| slot.goal == Goal::Free) {
            *place = None;
            self.there -= 1;
        }
        taken
    }
}

impl Index<usize> for Slots {
    type Output = Slot;

    fn index(&self, index: usize) -> &Slot {
        match self.chunks.get(index / CHUNK) {
            Some(Some(chunk)) => &chunk[index % CHUNK],
            _ => &FREE,
        }
    }
}

impl IndexMut<usize> for Slots {
    fn index_mut(&mut self, index: usize) -> &mut Slot {
        self.changes += 1;
        self.len = self.len.max(index + 1);
        let chunk = index / CHUNK;
        if self.chunks.len() <= chunk {
            self.chunks.resize_with(chunk + 1, || None);
        }
        let there = &mut self.there;
        &mut self.chunks[chunk].get_or_insert_with(|| {
            *there += 1;
            // Not an array: it would be on the stack first.
            alloc::vec![FREE; CHUNK].into_boxed_slice()
        })[index % CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_far_apart_takes_little() {
        let mut slots = Slots::default();
        assert!(slots.is_empty() && slots.get(0).is_none());
        slots[40].constant = 7;
        slots[2560].constant = 8;
        assert_eq!((slots.len(), slots.chunks.iter().flatten().count(), slots.chunks()), (2561, 2, 2));
        assert_eq!((slots.missing(40..65), slots.missing(31..33), slots.missing(64..96)), (1, 1, 1));
        assert_eq!((slots[40].constant, slots[41].goal, slots[1000].goal), (7, Goal::Free, Goal::Free));
        assert!(slots.get(2561).is_none());
        slots[41].goal = Goal::Common;
        slots[2560].goal = Goal::Common;
        assert_eq!(slots.used().map(|(index, _)| index).collect::<Vec<_>>(), [41, 2560]);
        assert_eq!(slots.take(2560).constant, 8);
        assert_eq!((slots.take(2560).constant, slots.take(9999).goal), (0, Goal::Free));
        assert_eq!(
            (slots.len(), slots[41].goal, slots.chunks.iter().flatten().count()),
            (2561, Goal::Common, 1)
        );
        assert_eq!(slots.chunks(), 1);
    }
}

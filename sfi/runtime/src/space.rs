//! What memory an instance has, and which parts of its segment's heap area are in use: what `brk` and `mmap`
//! of the domain's C library stand on.
//!
//! One number counts all that an instance can write, or that is there for it alone: its image, stacks, heap,
//! mappings (whatever their rights), pages that were given away to it. It never passes the limit.

use crate::error::Error;
use crate::layout::{MODULE_END, PAGE};
use crate::os::{PROT_READ, PROT_WRITE};
use std::collections::BTreeMap;
use std::ops::Range;

/// Pieces between holes at most, pieces with other rights, and moves of one to another place: each is two
/// mappings of the process, which has some ten thousands, and cannot do without.
const MOST: usize = 2048;

/// Rights of new memory.
pub const OPEN: i32 = PROT_READ | PROT_WRITE;

/// Offsets in the segment. `brk` grows from below, mappings are taken from above.
#[derive(Debug)]
pub struct Space {
    begin: u64,
    pub brk: u64,
    /// Begins and ends; no two of them touch.
    taken: BTreeMap<u64, u64>,
    /// Ends and rights of ranges that are not [`OPEN`], by their begins. They lie in what is taken, below the
    /// break, or in the image's data.
    rights: BTreeMap<u64, (u64, i32)>,
    /// Bytes that the instance may have, and those that it has.
    pub limit: u64,
    pub used: u64,
    moves: usize,
}

impl Space {
    /// `used`: what it has before it asks for anything.
    pub fn new(begin: u64, limit: u64, used: u64) -> Space {
        Space { begin, brk: begin, taken: BTreeMap::new(), rights: BTreeMap::new(), limit, used, moves: 0 }
    }

    pub fn untouched(&self) -> bool {
        self.taken.is_empty() && self.rights.is_empty() && self.brk == self.begin
    }

    /// Memory elsewhere in the segment, or for it, counts too; unless there is no more.
    pub fn charge(&mut self, bytes: u64) -> bool {
        let used = self.used.saturating_add(bytes);
        let fits = used <= self.limit;
        if fits {
            self.used = used;
        }
        fits
    }

    /// Why so many more bytes are too many.
    pub fn too_much(&self, bytes: u64) -> Error {
        Error::Memory { has: self.used, wants: bytes, limit: self.limit }
    }

    pub fn release(&mut self, bytes: u64) {
        self.used = self.used.saturating_sub(bytes);
    }

    pub fn begin(&self) -> u64 {
        self.begin
    }

    fn lowest_taken(&self) -> u64 {
        self.taken.keys().next().copied().unwrap_or(MODULE_END)
    }

    /// Room for `bytes` (whole pages), as high as possible.
    pub fn take(&mut self, bytes: u64) -> Option<u64> {
        let floor = self.brk.next_multiple_of(PAGE) + PAGE;
        if bytes == 0 || bytes > MODULE_END || self.used.saturating_add(bytes) > self.limit {
            return None;
        }
        let mut top = MODULE_END;
        let mut found = None;
        for (begin, end) in self.taken.iter().rev() {
            if top - end >= bytes {
                found = Some(top - bytes);
                break;
            }
            top = *begin;
        }
        let at = found.or_else(|| (top >= floor + bytes).then(|| top - bytes))?;
        self.used += bytes;
        // It lies below another piece, or the end, and may fill the hole.
        let end = self.taken.remove(&(at + bytes)).unwrap_or(at + bytes);
        match self.taken.range_mut(..at).next_back() {
            Some((_, below)) if *below == at => *below = end,
            _ => drop(self.taken.insert(at, end)),
        }
        Some(at)
    }

    /// Gives a range back; what of it was not taken is ignored. The ranges that were; none if there would be
    /// too many pieces.
    pub fn give(&mut self, at: u64, bytes: u64) -> Option<Vec<(u64, u64)>> {
        let end = at.saturating_add(bytes);
        let within = self.taken.range(..at).next_back().is_some_and(|(_, e)| *e > end);
        if within && self.taken.len() >= MOST {
            return None;
        }
        let hit: Vec<(u64, u64)> =
            self.taken.range(..end).filter(|(_, e)| **e > at).map(|(b, e)| (*b, *e)).collect();
        let mut out = Vec::new();
        for (b, e) in hit {
            self.taken.remove(&b);
            if b < at {
                self.taken.insert(b, at);
            }
            if e > end {
                self.taken.insert(end, e);
            }
            let (from, to) = (b.max(at), e.min(end));
            self.used -= to - from;
            self.cut_rights(from, to);
            out.push((from, to));
        }
        Some(out)
    }

    /// All of the range is taken, or below the break, or in `data`, the image's.
    pub fn owns(&self, at: u64, bytes: u64, data: Range<u64>) -> bool {
        let within = |range: Range<u64>| at >= range.start && at.saturating_add(bytes) <= range.end;
        within(self.begin..self.brk.next_multiple_of(PAGE)) || within(data) || self.holds(at, bytes)
    }

    /// No page of the range has other rights than new memory.
    pub fn is_open(&self, at: u64, bytes: u64) -> bool {
        let before = self.rights.range(..at.saturating_add(bytes)).next_back();
        before.is_none_or(|(_, (end, _))| *end <= at)
    }

    /// Notes a range's rights; false, and nothing is noted, if there would be too many pieces.
    pub fn set_rights(&mut self, at: u64, bytes: u64, prot: i32) -> bool {
        let end = at + bytes;
        let before = self.rights.clone();
        self.cut_rights(at, end);
        if prot != OPEN {
            self.rights.insert(at, (end, prot));
        }
        let fits = self.rights.len() <= MOST || self.rights.len() < before.len();
        if !fits {
            self.rights = before;
        }
        fits
    }

    fn cut_rights(&mut self, at: u64, end: u64) {
        let hit = self.rights.range(..end).filter(|(_, (e, _))| *e > at);
        let hit: Vec<(u64, (u64, i32))> = hit.map(|(begin, rest)| (*begin, *rest)).collect();
        for (begin, (e, prot)) in hit {
            self.rights.remove(&begin);
            if begin < at {
                self.rights.insert(begin, (at, prot));
            }
            if e > end {
                self.rights.insert(end, (e, prot));
            }
        }
    }

    /// Pages may move: where they come to they never are one mapping with their neighbours.
    pub fn may_move(&mut self) -> bool {
        self.moves += 1;
        self.moves <= MOST
    }

    /// All of the range is taken.
    pub fn holds(&self, at: u64, bytes: u64) -> bool {
        let mut next = at;
        while next < at.saturating_add(bytes) {
            match self.taken.range(..=next).next_back() {
                Some((_, end)) if *end > next => next = *end,
                _ => return false,
            }
        }
        true
    }

    /// Moves the break; the old and new end of its pages.
    pub fn set_brk(&mut self, to: u64) -> Option<(u64, u64)> {
        let (old, new) = (self.brk.next_multiple_of(PAGE), to.checked_next_multiple_of(PAGE)?);
        if to < self.begin || new.checked_add(PAGE)? > self.lowest_taken() {
            return None;
        }
        let used = (self.used + new).checked_sub(old)?;
        if used > self.limit {
            return None;
        }
        (self.brk, self.used) = (to, used);
        self.cut_rights(new, old.max(new));
        Some((old, new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_break_at_the_end_of_the_address_space_is_refused() {
        let mut space = Space::new(0x4_0000, 1 << 30, 0);
        assert!(space.take(1 << 20).is_some());
        for to in [u64::MAX, u64::MAX - PAGE + 1, u64::MAX - PAGE, u64::MAX - 2 * PAGE + 1] {
            assert_eq!(space.set_brk(to), None, "{to:#x}");
        }
        // What is given out afterwards still lies above the break.
        assert_eq!((space.brk, space.used), (0x4_0000, 1 << 20));
        assert_eq!(space.take(1 << 20), Some(MODULE_END - (2 << 20)));
    }

    #[test]
    fn pieces_that_touch_are_one() {
        let mut space = Space::new(0x4_0000, 1 << 30, 0);
        let [a, b, c] = [0; 3].map(|_| space.take(PAGE).unwrap());
        assert_eq!((a, b, c), (MODULE_END - PAGE, MODULE_END - 2 * PAGE, MODULE_END - 3 * PAGE));
        assert_eq!(space.taken, BTreeMap::from([(c, MODULE_END)]));
        assert_eq!(space.give(b, PAGE), Some(vec![(b, a)]));
        assert_eq!(space.taken, BTreeMap::from([(c, b), (a, MODULE_END)]));
        assert!(!space.holds(c, 2 * PAGE) && space.holds(a, PAGE));
        assert_eq!((space.take(PAGE), space.used), (Some(b), 3 * PAGE));
        assert_eq!(space.taken, BTreeMap::from([(c, MODULE_END)]));
        assert_eq!(space.give(0, MODULE_END), Some(vec![(c, MODULE_END)]));
        assert!(space.untouched());
    }

    #[test]
    fn rights_are_of_pages_that_are_there() {
        let mut space = Space::new(0x4_0000, 1 << 30, 0);
        let at = space.take(8 * PAGE).unwrap();
        assert!(space.set_rights(at + PAGE, 4 * PAGE, 0) && space.set_rights(at + 2 * PAGE, PAGE, OPEN));
        let open: Vec<bool> = (0..8).map(|i| space.is_open(at + i * PAGE, PAGE)).collect();
        assert_eq!(open, [true, false, true, false, false, true, true, true]);
        assert!(!space.is_open(at, 8 * PAGE) && space.owns(at, 8 * PAGE, 0..0));
        assert!(!space.owns(at, 9 * PAGE, 0..0) && space.owns(PAGE, PAGE, PAGE..2 * PAGE));
        space.give(at, 8 * PAGE).unwrap();
        assert!(space.rights.is_empty() && space.untouched());
    }

    #[test]
    fn pieces_of_rights_are_counted() {
        let mut space = Space::new(0x4_0000, 1 << 30, 0);
        let pages = 4 * MOST as u64;
        let at = space.take(pages * PAGE).unwrap();
        let done = (0..pages).step_by(2).filter(|i| space.set_rights(at + i * PAGE, PAGE, 0)).count();
        assert_eq!((done, space.rights.len()), (MOST, MOST));
        // What joins them, or makes fewer, is done.
        assert!(space.set_rights(at, pages * PAGE, OPEN) && space.rights.is_empty());
    }

    #[test]
    fn everything_is_counted_together() {
        let mut space = Space::new(0x4_0000, 8 * PAGE, 2 * PAGE);
        assert!(space.charge(3 * PAGE) && space.set_brk(0x4_0000 + 2 * PAGE).is_some());
        assert!(space.take(2 * PAGE).is_none() && !space.charge(2 * PAGE) && !space.charge(u64::MAX));
        assert!(space.take(PAGE).is_some() && !space.charge(1));
        space.release(3 * PAGE);
        assert_eq!(space.used, 5 * PAGE);
    }
}

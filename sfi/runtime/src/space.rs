//! Which parts of a segment's heap area are in use: what `brk` and `mmap` of the domain's C library stand on.

use crate::layout::{MODULE_END, PAGE};
use std::collections::BTreeMap;

/// Pieces between holes at most, and moves of one to another place: each is two mappings of the process, which has some ten thousands, and
/// cannot do without.
const MOST: usize = 2048;

/// Offsets in the segment. `brk` grows from below, mappings are taken from above.
#[derive(Debug)]
pub struct Space {
    begin: u64,
    pub brk: u64,
    /// Begins and ends; no two of them touch.
    taken: BTreeMap<u64, u64>,
    /// Bytes that may be mapped, and those that are.
    pub limit: u64,
    pub used: u64,
    moves: usize,
}

impl Space {
    pub fn new(begin: u64, limit: u64) -> Space {
        Space { begin, brk: begin, taken: BTreeMap::new(), limit, used: 0, moves: 0 }
    }

    pub fn untouched(&self) -> bool {
        self.used == 0 && self.brk == self.begin
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
        if bytes == 0 || bytes > MODULE_END || self.used + bytes > self.limit {
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

    /// Gives a range back; what of it was not taken is ignored. The ranges that were; none if there would be too many pieces.
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
            out.push((from, to));
        }
        Some(out)
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
        Some((old, new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_break_at_the_end_of_the_address_space_is_refused() {
        let mut space = Space::new(0x4_0000, 1 << 30);
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
        let mut space = Space::new(0x4_0000, 1 << 30);
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
}

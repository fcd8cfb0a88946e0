//! Which parts of a segment's heap area are in use: what `brk` and `mmap` of the domain's C library stand on.

use crate::layout::{MODULE_END, PAGE};
use std::collections::BTreeMap;

/// Offsets in the segment. `brk` grows from below, mappings are taken from above.
#[derive(Debug)]
pub struct Space {
    begin: u64,
    pub brk: u64,
    taken: BTreeMap<u64, u64>,
    /// Bytes that may be mapped, and those that are.
    pub limit: u64,
    pub used: u64,
}

impl Space {
    pub fn new(begin: u64, limit: u64) -> Space {
        Space { begin, brk: begin, taken: BTreeMap::new(), limit, used: 0 }
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
        self.taken.insert(at, at + bytes);
        self.used += bytes;
        Some(at)
    }

    /// Gives a range back; what of it was not taken is ignored. The ranges that were.
    pub fn give(&mut self, at: u64, bytes: u64) -> Vec<(u64, u64)> {
        let end = at.saturating_add(bytes);
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
        out
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
}

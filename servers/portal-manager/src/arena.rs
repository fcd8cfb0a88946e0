//! The portal code arena: best fit over a list of free runs, in units of 64 bytes, growing page by page. Both
//! keep it from growing by fragmentation while portals of many lengths come and go.
//!
//! Nearly all runs are as long as others that come and go as often. So a short one that comes back waits in front
//! of the list, with those of its length: the next one takes it from there. Before the arena grows they all go
//! into the list, where neighbours become one.

use crate::Machine;
use alloc::vec::Vec;
use pebble_abi::errno::{self, Errno};
use pebble_abi::map::{CODE_BYTES, PAGE};

const UNIT: u32 = Run::UNIT as u32;
/// Of so many lengths runs wait, so many of each.
const LENGTHS: usize = 16;
const DEPTH: usize = 32;

/// A run of the arena: offset and length in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    pub at: u32,
    pub len: u32,
    /// The portal's code lets `guest` run on stacks of `host`; both 0: nobody.
    pub host: u16,
    pub guest: u16,
}

impl Run {
    /// Runs begin at multiples of this, and their lengths are such.
    pub const UNIT: usize = 64;

    pub fn contains(&self, offset: u64) -> bool {
        (u64::from(self.at)..u64::from(self.at) + u64::from(self.len)).contains(&offset)
    }

    /// Whether the two lie one behind the other, and are no more than code.
    pub fn is_before(&self, next: &Run) -> bool {
        self.at + self.len == next.at && self.host == 0 && next.host == 0
    }
}

/// By offset. After Shell: in place, without recursion, and quick where most is in order already.
pub(crate) fn sort(runs: &mut [Run]) {
    // Ciura's.
    for gap in [1750, 701, 301, 132, 57, 23, 10, 4, 1] {
        for n in gap..runs.len() {
            let run = runs[n];
            let mut at = n;
            while at >= gap && runs[at - gap].at > run.at {
                runs[at] = runs[at - gap];
                at -= gap;
            }
            runs[at] = run;
        }
    }
}

pub struct Arena {
    /// Where free runs of one unit, of two, and so on lie, that are not in the list.
    ready: Vec<Vec<u32>>,
    /// Free runs below `top`, by offset, never touching.
    free: Vec<Run>,
    /// End of what has ever been handed out.
    top: u32,
    /// End of the pages that exist.
    mapped: u32,
    used: u32,
}

/// What an allocation needs first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Take {
    Run(Run),
    /// The page with this number, then ask again.
    Page(u32),
    Full,
}

impl Arena {
    /// `used` bytes are taken by the image.
    pub fn new(used: u32) -> Self {
        let top = used.next_multiple_of(UNIT);
        let ready = (0..LENGTHS).map(|_| Vec::with_capacity(DEPTH)).collect();
        Arena {
            ready,
            free: Vec::with_capacity(256),
            top,
            mapped: top.next_multiple_of(PAGE as u32),
            used: top,
        }
    }

    pub fn used(&self) -> u32 {
        self.used
    }

    /// So many double words; the arena grows as needed.
    #[inline(always)]
    pub fn place(&mut self, machine: &mut impl Machine, doubles: usize) -> Result<Run, Errno> {
        let len = (doubles as u32 * 8).next_multiple_of(UNIT);
        match self.again(len) {
            Some(run) => Ok(run),
            None => self.place_long(machine, len),
        }
    }

    /// A run of this length that came back not long ago.
    #[inline(always)]
    fn again(&mut self, len: u32) -> Option<Run> {
        let at = self.ready(len)?.pop()?;
        self.used += len;
        Some(Run { at, len, ..Run::default() })
    }

    /// So many bytes, a multiple of [`UNIT`], where none came back that are as long.
    #[inline(never)]
    pub fn place_long(&mut self, machine: &mut impl Machine, len: u32) -> Result<Run, Errno> {
        loop {
            match self.take(len) {
                Take::Run(run) => return Ok(run),
                Take::Page(page) => {
                    machine.grow_code(page)?;
                    self.grown();
                }
                Take::Full => return Err(errno::ECODE),
            }
        }
    }

    fn take(&mut self, len: u32) -> Take {
        let found = self.fit(len).or_else(|| {
            self.gather();
            self.fit(len)
        });
        if let Some(at) = found {
            self.used += len;
            return Take::Run(Run { at, len, ..Run::default() });
        }
        if u64::from(self.top) + u64::from(len) > CODE_BYTES {
            return Take::Full;
        }
        if self.top + len > self.mapped {
            return Take::Page(self.mapped / PAGE as u32);
        }
        let at = self.top;
        self.top += len;
        self.used += len;
        Take::Run(Run { at, len, ..Run::default() })
    }

    /// Those of this length that are not in the list.
    fn ready(&mut self, len: u32) -> Option<&mut Vec<u32>> {
        self.ready.get_mut(((len / UNIT) as usize).checked_sub(1)?)
    }

    /// All that is free comes into the list.
    fn gather(&mut self) {
        for n in 0..self.ready.len() {
            while let Some(at) = self.ready[n].pop() {
                self.list(Run { at, len: (n as u32 + 1) * UNIT, ..Run::default() });
            }
        }
    }

    /// So many bytes out of the list.
    fn fit(&mut self, len: u32) -> Option<u32> {
        let n = self.best(len)?;
        let at = self.free[n].at;
        if self.free[n].len == len {
            self.free.remove(n);
        } else {
            self.free[n] = Run { at: at + len, len: self.free[n].len - len, ..Run::default() };
        }
        Some(at)
    }

    /// The shortest free run of so many bytes or more; the first that fits exactly.
    fn best(&self, len: u32) -> Option<usize> {
        let (mut best, mut shortest) = (None, u32::MAX);
        for (n, run) in self.free.iter().enumerate() {
            if run.len >= len && run.len < shortest {
                (best, shortest) = (Some(n), run.len);
                if run.len == len {
                    break;
                }
            }
        }
        best
    }

    /// The page asked for by [`Take::Page`] exists now.
    fn grown(&mut self) {
        self.mapped += PAGE as u32;
    }

    pub fn give(&mut self, run: Run) {
        if run.len == 0 {
            return;
        }
        self.used -= run.len;
        match self.ready(run.len).filter(|ready| ready.len() < DEPTH) {
            Some(ready) => ready.push(run.at),
            None => self.list(run),
        }
    }

    /// Into the list, with its neighbours.
    fn list(&mut self, run: Run) {
        let n = self.free.partition_point(|r| r.at < run.at);
        self.free.insert(n, run);
        if n + 1 < self.free.len() && run.at + run.len == self.free[n + 1].at {
            self.free[n].len += self.free.remove(n + 1).len;
        }
        if n > 0 && self.free[n - 1].at + self.free[n - 1].len == run.at {
            self.free[n - 1].len += self.free.remove(n).len;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn take(arena: &mut Arena, bytes: u32) -> Option<Run> {
        let len = bytes.next_multiple_of(UNIT);
        arena.again(len).or_else(|| {
            loop {
                match arena.take(len) {
                    Take::Run(run) => return Some(run),
                    Take::Page(_) => arena.grown(),
                    Take::Full => return None,
                }
            }
        })
    }

    proptest! {
        #[test]
        fn runs_are_sorted(offsets in prop::collection::vec(any::<u32>(), 0..3000)) {
            let mut runs: Vec<Run> = offsets.iter().map(|at| Run { at: *at, ..Run::default() }).collect();
            sort(&mut runs);
            let mut wanted = offsets;
            wanted.sort();
            prop_assert_eq!(runs.iter().map(|run| run.at).collect::<Vec<_>>(), wanted);
        }

        #[test]
        fn runs_never_overlap_and_all_comes_back(
            steps in proptest::collection::vec((0u8..3, 1u32..700), 1..300),
        ) {
            let mut arena = Arena::new(1024);
            let mut live: Vec<Run> = Vec::new();
            for (what, size) in steps {
                if what == 0 && !live.is_empty() {
                    arena.give(live.swap_remove(size as usize % live.len()));
                } else if let Some(run) = take(&mut arena, size) {
                    prop_assert!(run.len >= size && run.at >= 1024 && run.at % UNIT == 0);
                    prop_assert!(live.iter().all(|r| r.at + r.len <= run.at || run.at + run.len <= r.at));
                    live.push(run);
                }
                prop_assert_eq!(arena.used(), 1024 + live.iter().map(|r| r.len).sum::<u32>());
            }
            for run in live {
                arena.give(run);
            }
            prop_assert_eq!(arena.used(), 1024);
            arena.gather();
            prop_assert!(arena.free.len() <= 1);
        }
    }

    /// What waits in front of the list is not kept from who wants more than one of it.
    #[test]
    fn short_runs_that_came_back_are_room_for_a_long_one() {
        let mut arena = Arena::new(0);
        let short: Vec<Run> = (0..PAGE as u32 / UNIT).filter_map(|_| take(&mut arena, UNIT)).collect();
        short.into_iter().for_each(|run| arena.give(run));
        assert_eq!(take(&mut arena, PAGE as u32).map(|run| run.at), Some(0));
        assert_eq!(arena.mapped, PAGE as u32);
    }

    #[test]
    fn a_full_arena_says_so() {
        let mut arena = Arena::new(CODE_BYTES as u32 - 64);
        assert!(take(&mut arena, 16).is_some());
        assert_eq!(take(&mut arena, 8), None);
    }
}

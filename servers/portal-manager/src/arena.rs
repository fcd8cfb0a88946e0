//! The portal code arena: best fit over a list of free runs, in units of 64 bytes, growing page by page. Both
//! keep it from growing by fragmentation while portals of many lengths come and go.

use crate::Machine;
use alloc::vec::Vec;
use pebble_abi::errno::{self, Errno};
use pebble_abi::map::{CODE_BYTES, PAGE};

const UNIT: u32 = Run::UNIT as u32;

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
        Arena { free: Vec::with_capacity(256), top, mapped: top.next_multiple_of(PAGE as u32), used: top }
    }

    pub fn used(&self) -> u32 {
        self.used
    }

    /// So many double words; the arena grows as needed.
    pub fn place(&mut self, machine: &mut impl Machine, doubles: usize) -> Result<Run, Errno> {
        loop {
            match self.take(doubles as u32 * 8) {
                Take::Run(run) => return Ok(run),
                Take::Page(page) => {
                    machine.grow_code(page)?;
                    self.grown();
                }
                Take::Full => return Err(errno::ECODE),
            }
        }
    }

    fn take(&mut self, bytes: u32) -> Take {
        let len = bytes.next_multiple_of(UNIT);
        if let Some(n) = self.best(len) {
            let at = self.free[n].at;
            if self.free[n].len == len {
                self.free.remove(n);
            } else {
                self.free[n] = Run { at: at + len, len: self.free[n].len - len, ..Run::default() };
            }
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
        loop {
            match arena.take(bytes) {
                Take::Run(run) => return Some(run),
                Take::Page(_) => arena.grown(),
                Take::Full => return None,
            }
        }
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
            prop_assert!(arena.free.len() <= 1);
        }
    }

    #[test]
    fn a_full_arena_says_so() {
        let mut arena = Arena::new(CODE_BYTES as u32 - 64);
        assert!(take(&mut arena, 16).is_some());
        assert_eq!(take(&mut arena, 8), None);
    }
}

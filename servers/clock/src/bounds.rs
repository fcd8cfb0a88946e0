//! Time limits of calls.
//!
//! A bound is a thread, the place on its invocation stack above which calls end when the time has passed, and that time. A thread may have
//! several, one in the other. The table is small and looked through as a whole: bounds are made for calls that may take long.

use pebble_abi::errno;

/// Bounds at one time.
pub const MAX_BOUNDS: usize = 32;
/// Bytes of a bound in the hand-over format.
pub const BOUND_BYTES: usize = 24;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bound {
    /// In ticks; 0: this entry is free.
    pub until: u64,
    pub thread: u64,
    /// What the portal manager is told: offset of the stack's top word in the thread block, domain << 16.
    pub level: u64,
}

pub struct Bounds {
    all: [Bound; MAX_BOUNDS],
}

impl Default for Bounds {
    fn default() -> Self {
        Self::new()
    }
}

impl Bounds {
    pub const fn new() -> Self {
        Bounds { all: [Bound { until: 0, thread: 0, level: 0 }; MAX_BOUNDS] }
    }

    /// One more. The same thread's bound at the same place is replaced: it was left behind.
    pub fn add(&mut self, bound: Bound) -> Result<(), i64> {
        self.remove(bound.thread, bound.level);
        let free = self.all.iter_mut().find(|b| b.until == 0).ok_or(errno::EAGAIN)?;
        *free = Bound { until: bound.until.max(1), ..bound };
        Ok(())
    }

    /// Whether it was there still.
    pub fn remove(&mut self, thread: u64, level: u64) -> bool {
        let found = self.all.iter_mut().find(|b| b.until != 0 && b.thread == thread && b.level == level);
        found.map(|bound| bound.until = 0).is_some()
    }

    /// When the first is due.
    pub fn first(&self) -> Option<u64> {
        self.all().map(|b| b.until).min()
    }

    /// Takes one out that is due, the earliest first.
    pub fn due(&mut self, now: u64) -> Option<Bound> {
        let bound = self.all.iter_mut().filter(|b| b.until != 0 && b.until <= now).min_by_key(|b| b.until)?;
        Some(core::mem::take(bound))
    }

    pub fn all(&self) -> impl Iterator<Item = &Bound> {
        self.all.iter().filter(|b| b.until != 0)
    }

    /// The state in format 1: each bound as three words, little-endian.
    pub fn save(&self, mut put: impl FnMut(&[u8]) -> bool) -> Result<(), i64> {
        let mut words = self.all().flat_map(|b| [b.until, b.thread, b.level]);
        if words.all(|word| put(&word.to_le_bytes())) { Ok(()) } else { Err(errno::ENOMEM) }
    }

    pub fn load(&mut self, bytes: &[u8]) -> Result<(), i64> {
        if !bytes.len().is_multiple_of(BOUND_BYTES) || bytes.len() / BOUND_BYTES > MAX_BOUNDS {
            return Err(errno::EINVAL);
        }
        *self = Self::new();
        let word = |part: &[u8]| part.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        for (to, from) in self.all.iter_mut().zip(bytes.chunks(BOUND_BYTES)) {
            *to = Bound { until: word(&from[..8]), thread: word(&from[8..16]), level: word(&from[16..]) };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::vec::Vec;

    proptest! {
        #[test]
        fn the_earliest_ends_first(ops in prop::collection::vec((0..4u8, 0..60u64, 0..6u64, 0..3u64), 1..200)) {
            let (mut bounds, mut model) = (Bounds::new(), BTreeMap::new());
            for (op, until, thread, level) in ops {
                match op {
                    0 => prop_assert_eq!(bounds.remove(thread, level), model.remove(&(thread, level)).is_some()),
                    1 => {
                        let due: Vec<u64> = core::iter::from_fn(|| bounds.due(until)).map(|b| b.until).collect();
                        let mut wanted: Vec<u64> = model.values().copied().filter(|u| *u <= until).collect();
                        wanted.sort_unstable();
                        prop_assert_eq!(due, wanted);
                        model.retain(|_, u| *u > until);
                    }
                    _ => {
                        let until = until.max(1);
                        prop_assert_eq!(bounds.add(Bound { until, thread, level }), Ok(()));
                        model.insert((thread, level), until);
                    }
                }
                prop_assert_eq!(bounds.first(), model.values().copied().min());
                let (mut bytes, mut other) = (Vec::new(), Bounds::new());
                prop_assert_eq!(bounds.save(|b| { bytes.extend_from_slice(b); true }), Ok(()));
                prop_assert_eq!(other.load(&bytes), Ok(()));
                prop_assert_eq!(other.all().count(), model.len());
            }
        }
    }

    #[test]
    fn a_full_table_and_a_bad_state_are_refused() {
        let mut bounds = Bounds::new();
        let bound = |thread| Bound { until: 9, thread, level: 1 };
        (0..MAX_BOUNDS as u64).for_each(|t| bounds.add(bound(t)).unwrap());
        assert_eq!(bounds.add(bound(99)), Err(errno::EAGAIN));
        assert_eq!(bounds.add(bound(0)), Ok(()));
        assert_eq!(bounds.load(&[0; 23]), Err(errno::EINVAL));
        assert_eq!(bounds.load(&[0; (MAX_BOUNDS + 1) * BOUND_BYTES]), Err(errno::EINVAL));
        assert_eq!(bounds.all().count(), MAX_BOUNDS);
    }
}

//! Time limits of calls.
//!
//! A bound is a thread, the place on its invocation stack above which calls end when the time has passed, and
//! that time. A thread may have several, one in the other: when an outer one's time is over, the inner ones
//! end with it. A bound stays until the thread says that it is back, and is looked at again from time to
//! time: a server of the image may have gone on to the next domain that does not return. The table is small
//! and looked through as a whole: bounds are made for calls that may take long.

use pebble_abi::errno::{self, Errno};
use pebble_abi::share;

/// Bounds at one time.
pub const MAX_BOUNDS: usize = share::TIME_LIMITS.all;
/// Bytes of a bound in the hand-over format.
pub const BOUND_BYTES: usize = 16;
/// Number of that format.
pub const FORMAT: u64 = 4;

/// Small, for there are many: threads and domains have numbers of one byte, a thread block is a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bound {
    /// In ticks; 0: this entry is free.
    pub until: u64,
    pub thread: u8,
    /// Offset of the stack's top word in the thread block.
    pub top: u16,
    pub domain: u8,
    pub family: u8,
    /// Who had the call when its time was over; 0: it is not over.
    pub late: u8,
    /// How often it was waited for a program that is in a section of its own.
    pub spared: u8,
}

impl Bound {
    const FREE: Self = Bound { until: 0, thread: 0, top: 0, domain: 0, family: 0, late: 0, spared: 0 };

    /// A program is in a section of its own: the bound is due again then.
    pub fn spare(&mut self, next: u64) {
        (self.until, self.spared) = (next, self.spared.saturating_add(1));
    }

    /// Its call has been ended, which this domain had.
    pub fn ended(&mut self, callee: u8) {
        if self.late == 0 {
            self.late = callee;
        }
    }

    fn is_above(&self, other: &Bound) -> bool {
        self.thread == other.thread && self.top > other.top
    }

    /// All but `until`, and what a successor need not know.
    fn place(&self) -> [u8; 8] {
        let [low, high] = self.top.to_le_bytes();
        [low, high, self.thread, self.domain, self.family, self.late, 0, 0]
    }
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
        Bounds { all: [Bound::FREE; MAX_BOUNDS] }
    }

    /// One more. Those of the same thread at the same place or above were left behind, and go. Its number:
    /// how many the thread has below it.
    pub fn add(&mut self, bound: Bound) -> Result<u64, Errno> {
        self.forget(|b| b.thread == bound.thread && b.top >= bound.top);
        let its = self.all().filter(|b| b.family == bound.family).count();
        share::TIME_LIMITS.grant(bound.family.into(), its, self.all().count(), 1)?;
        let free = self.all.iter_mut().find(|b| b.until == 0).ok_or(errno::ETIMELIMITS)?;
        *free = Bound { until: bound.until.max(1), ..bound };
        Ok(self.below(&bound))
    }

    /// The thread is back. Who had the call when the time was over, or 0; `None`: the domain has no bound of
    /// that number in this thread.
    pub fn remove(&mut self, thread: u8, domain: u8, number: u64) -> Option<u8> {
        let own = |b: &Bound| b.until != 0 && b.thread == thread && b.domain == domain;
        let at = self.all.iter().position(|b| own(b) && self.below(b) == number)?;
        let found = self.all.get_mut(at)?;
        found.until = 0;
        Some(found.late)
    }

    /// How many bounds the same domain has further down in the same thread: that, and no place, is what it is
    /// told.
    fn below(&self, bound: &Bound) -> u64 {
        self.all().filter(|b| b.domain == bound.domain && bound.is_above(b)).count() as u64
    }

    /// A domain is gone, with all calls that it was making.
    pub fn gone(&mut self, domain: u8) {
        self.forget(|b| b.domain == domain);
    }

    fn forget(&mut self, which: impl Fn(&Bound) -> bool) {
        self.all.iter_mut().filter(|b| b.until != 0 && which(b)).for_each(|b| b.until = 0);
    }

    /// When the first is due.
    pub fn first(&self) -> Option<u64> {
        self.all().map(|b| b.until).min()
    }

    /// One that is due, the earliest first; those above it end with it. It is due again at `next`.
    pub fn due(&mut self, now: u64, next: u64) -> Option<&mut Bound> {
        let due = self.all().filter(|b| b.until <= now).min_by_key(|b| b.until).copied()?;
        self.forget(|b| b.is_above(&due));
        let bound = self.all.iter_mut().find(|b| **b == due)?;
        bound.until = next;
        Some(bound)
    }

    pub fn all(&self) -> impl Iterator<Item = &Bound> {
        self.all.iter().filter(|b| b.until != 0)
    }

    /// Each bound as [`BOUND_BYTES`] bytes.
    pub fn save(&self, mut put: impl FnMut(&[u8]) -> bool) -> Result<(), Errno> {
        let mut all = self.all();
        if all.all(|b| put(&b.until.to_le_bytes()) && put(&b.place())) { Ok(()) } else { Err(errno::ENOMEM) }
    }

    pub fn load(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        let (bounds, []) = bytes.as_chunks::<BOUND_BYTES>() else { return Err(errno::EINVAL) };
        if bounds.len() > MAX_BOUNDS {
            return Err(errno::EINVAL);
        }
        self.forget(|_| true);
        for (to, from) in self.all.iter_mut().zip(bounds) {
            let [until @ .., low, high, thread, domain, family, late, _, _] = *from;
            let (until, top) = (u64::from_le_bytes(until), u16::from_le_bytes([low, high]));
            *to = Bound { until, thread, top, domain, family, late, spared: 0 };
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

    /// Until when, and who was late.
    type Model = BTreeMap<(u8, u16), (u64, u8)>;

    /// Domain 0's.
    fn bound(until: u64, thread: u8, top: u16) -> Bound {
        Bound { until, thread, top, ..Bound::default() }
    }

    /// The bound that is due, as the table should say.
    fn due(model: &mut Model, now: u64, next: u64) -> Option<(u8, u16)> {
        let first = model.values().map(|(until, _)| *until).min().filter(|until| *until <= now)?;
        let (at, _) = model.iter().find(|(_, (until, _))| *until == first).map(|(at, v)| (*at, *v))?;
        model.retain(|(thread, top), _| *thread != at.0 || *top <= at.1);
        model.get_mut(&at)?.0 = next;
        Some(at)
    }

    proptest! {
        #[test]
        fn the_earliest_ends_first_and_what_is_above_with_it(
            ops in prop::collection::vec((0..5u8, 0..60u64, 0..6u8, 0..4u16), 1..200),
        ) {
            let (mut bounds, mut model) = (Bounds::new(), Model::new());
            for (op, time, thread, top) in ops {
                // Times are all different, so that it is known which is first.
                let until = time * 1000 + u64::from(thread) * 10 + u64::from(top) + 1;
                match op {
                    0 => {
                        let below = model.keys().filter(|(t, l)| *t == thread && *l < top).count() as u64;
                        let number = if model.contains_key(&(thread, top)) { below } else { 99 };
                        let late = model.remove(&(thread, top)).map(|v| v.1);
                        prop_assert_eq!(bounds.remove(thread, 1, number), None, "all are domain 0's");
                        prop_assert_eq!(bounds.remove(thread, 0, number), late);
                    }
                    1 => {
                        let next = 1_000_000 + until;
                        let found = bounds.due(until, next).map(|bound| {
                            bound.ended(77);
                            bound.ended(78);
                            (bound.thread, bound.top)
                        });
                        prop_assert_eq!(found, due(&mut model, until, next));
                        if let Some(at) = found {
                            model.get_mut(&at).unwrap().1 = 77;
                        }
                    }
                    2 => {
                        let before = bounds.all().count();
                        bounds.gone(1);
                        prop_assert_eq!(bounds.all().count(), before, "all are domain 0's");
                    }
                    _ => {
                        model.retain(|(t, l), _| *t != thread || *l < top);
                        let below = model.keys().filter(|(t, _)| *t == thread).count() as u64;
                        prop_assert_eq!(bounds.add(bound(until, thread, top)), Ok(below));
                        model.insert((thread, top), (until, 0));
                    }
                }
                prop_assert_eq!(bounds.first(), model.values().map(|v| v.0).min());
                let (mut bytes, mut other) = (Vec::new(), Bounds::new());
                prop_assert_eq!(bounds.save(|b| { bytes.extend_from_slice(b); true }), Ok(()));
                prop_assert_eq!(other.load(&bytes), Ok(()));
                let all = |b: &Bounds| b.all().copied().collect::<Vec<_>>();
                prop_assert_eq!(all(&other), all(&bounds));
            }
        }
    }

    #[test]
    fn a_family_leaves_limits_to_others() {
        let mut bounds = Bounds::new();
        // Each in a domain of its own.
        let bound = |family, thread| Bound { domain: thread, family, ..bound(9, thread, 1) };
        for thread in 0..share::TIME_LIMITS.family as u8 {
            assert_eq!(bounds.add(bound(7, thread)), Ok(0));
        }
        assert_eq!(bounds.add(bound(7, 99)), Err(errno::ETIMELIMITS));
        assert_eq!(bounds.add(bound(8, 99)), Ok(0));
        assert_eq!(bounds.remove(99, 99, 0), Some(0), "found by its domain");
        bounds.gone(3);
        assert_eq!(bounds.add(bound(7, 98)), Ok(0));
    }

    #[test]
    fn a_full_table_and_a_bad_state_are_refused() {
        let mut bounds = Bounds::new();
        let bound = |thread| Bound { domain: 7, ..bound(9, thread, 1) };
        (0..MAX_BOUNDS as u8).for_each(|t| assert_eq!(bounds.add(bound(t)), Ok(0)));
        assert_eq!(bounds.add(bound(255)), Err(errno::ETIMELIMITS));
        assert_eq!(bounds.add(bound(0)), Ok(0));
        assert_eq!(bounds.load(&[0; BOUND_BYTES + 7]), Err(errno::EINVAL));
        assert_eq!(bounds.load(&[0; (MAX_BOUNDS + 1) * BOUND_BYTES]), Err(errno::EINVAL));
        assert_eq!(bounds.all().count(), MAX_BOUNDS);
        bounds.gone(6);
        assert_eq!(bounds.all().count(), MAX_BOUNDS);
        bounds.gone(7);
        assert_eq!(bounds.all().count(), 0);
    }
}

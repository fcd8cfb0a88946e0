//! Crowds: the threads of a family that compute at the same time share the turns that one thread would have.
//!
//! **Problem.** Threads of one priority take turns, so a program with thirty busy threads would get thirty
//! times what one with a single thread gets, and with a family of programs it is ninety. **Strategy.** Nobody
//! counts who is ready: that would cost each wait and each wake-up. When a thread's slice ends it sees how
//! many slices of its family have ended since its own last one: so many are at it. Its next slice is that
//! part of [`SLICE`]. A new thread begins with the shortest, or a program would get more by ending its
//! threads and starting others.
//!
//! **Bound:** a round of n busy families takes n slices, and [`SHORTEST`] for each thread beyond [`MOST`].
//! **Invariant:** a family with one busy thread has whole slices, however many others of it wait.

use crate::*;

/// Threads among which a slice is shared, at most: a shorter one would go into switching.
const MOST: u8 = (SLICE / SHORTEST) as u8;
/// Ticks of the shortest slice: 100 microseconds.
pub const SHORTEST: u64 = TIME_HZ / 10_000;

/// A crowd is known by the number of its family, or of the home of a thread that is in none.
#[repr(C)]
pub(crate) struct Crowds {
    /// Of each thread.
    of: [u8; MAX_THREADS],
    /// How many slices of its crowd had ended when its own last one did. These are counted round and round:
    /// whoever has not run for that long has one slice of some other length.
    seen: [u8; MAX_THREADS],
    /// Slices that have ended, of each crowd.
    ended: [u8; MAX_DOMAINS],
}

impl Crowds {
    pub(crate) const fn zero() -> Self {
        Crowds { of: [0; MAX_THREADS], seen: [0; MAX_THREADS], ended: [0; MAX_DOMAINS] }
    }

    /// The thread's.
    pub(crate) fn of(&self, t: u8) -> u8 {
        self.of[usize::from(t)]
    }

    /// A new thread; the length of its first slice.
    pub(crate) fn join(&mut self, t: u8, crowd: u8) -> u64 {
        self.of[usize::from(t)] = crowd;
        self.seen[usize::from(t)] = self.ended[usize::from(crowd)];
        SHORTEST
    }

    /// A slice of the thread's has ended; the length of its next.
    pub(crate) fn next_slice(&mut self, t: u8) -> u64 {
        let t = usize::from(t);
        let ended = &mut self.ended[usize::from(self.of[t])];
        *ended = ended.wrapping_add(1);
        let before = core::mem::replace(&mut self.seen[t], *ended);
        SLICE / u64::from(ended.wrapping_sub(before).clamp(1, MOST))
    }
}

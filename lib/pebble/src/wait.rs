//! How a server lets its clients wait: on their own side, without a stack of the server's.
//!
//! **Problem.** An entry that sleeps holds a stack of the server's queue; as many clients that wait as there
//! are stacks keep all others out, and nobody answers them. **Strategy.** An entry that cannot go on puts the
//! calling thread into a queue of its [`Parking`], gives the lock up, and ends the call with status `WAIT`
//! ([`leave`]): it has not taken place. The client's library parks the thread in the scheduler
//! ([`pebble_abi::sys::SYS_PARK`]), and calls again when the server wakes it. So what waits is the client's
//! thread, and nothing of the server's.
//!
//! ```text
//! an entry: lock; is it there?  yes: take it; unlock; return     no: parking.enter(queue); unlock; leave()
//! an event: lock; note it; unlock; parking.wake(queue)
//! ```
//!
//! **Invariants.**
//! * A thread is in one queue at most, so the queues never run out of room, whoever waits.
//! * All of a queue are woken: one that does not come back keeps nobody from what is there.
//! * The scheduler keeps a wake-up that comes before the thread parks; a server that dies wakes whom it would
//!   have woken. A wake-up too many is harmless: the client calls again, and is told again.

use pebble_abi::map::MAX_THREADS;

#[cfg(target_os = "none")]
use crate::link::Import;
#[cfg(target_os = "none")]
use crate::sync::Lock;
#[cfg(target_os = "none")]
use pebble_abi::sys;

/// Threads that wait, in `QUEUES` queues, each in order of arrival.
pub struct Waiters<const QUEUES: usize> {
    queues: [Queue; QUEUES],
    /// The one behind each thread in its queue.
    next: [u8; MAX_THREADS],
    /// The queue of each thread that is in one; which these are, a bit each.
    place: [u8; MAX_THREADS],
    waits: [u8; MAX_THREADS / 8],
}

#[derive(Clone, Copy)]
struct Queue {
    first: u8,
    last: u8,
    /// Has any.
    some: bool,
}

impl<const QUEUES: usize> Default for Waiters<QUEUES> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const QUEUES: usize> Waiters<QUEUES> {
    pub const fn new() -> Self {
        const { assert!(MAX_THREADS <= 256 && QUEUES <= 256) };
        Waiters {
            queues: [Queue { first: 0, last: 0, some: false }; QUEUES],
            next: [0; MAX_THREADS],
            place: [0; MAX_THREADS],
            waits: [0; MAX_THREADS / 8],
        }
    }

    /// The thread is the last in this queue from now on, and in no other: of an earlier wait it has heard
    /// otherwise.
    pub fn enter(&mut self, queue: usize, thread: u8) {
        self.leave(thread);
        let Queue { last, some, .. } = self.queues[queue];
        if some {
            self.next[usize::from(last)] = thread;
            self.queues[queue].last = thread;
        } else {
            self.queues[queue] = Queue { first: thread, last: thread, some: true };
        }
        self.place[usize::from(thread)] = queue as u8;
        self.waits[usize::from(thread / 8)] |= 1 << (thread % 8);
    }

    /// Whether any thread waits there.
    #[inline]
    pub fn any(&self, queue: usize) -> bool {
        self.queues[queue].some
    }

    /// Takes the first thread out of the queue.
    pub fn take(&mut self, queue: usize) -> Option<u8> {
        let Queue { first, last, some } = self.queues[queue];
        if !some {
            return None;
        }
        self.queues[queue].first = self.next[usize::from(first)];
        self.queues[queue].some = first != last;
        self.waits[usize::from(first / 8)] &= !(1 << (first % 8));
        Some(first)
    }

    /// Takes a thread out of the queue where it is, if it is in one.
    fn leave(&mut self, thread: u8) {
        if self.waits[usize::from(thread / 8)] >> (thread % 8) & 1 == 0 {
            return;
        }
        let queue = usize::from(self.place[usize::from(thread)]);
        // Once round the whole queue, past the last that is there now.
        let last = self.queues[queue].last;
        while let Some(other) = self.take(queue) {
            if other != thread {
                self.enter(queue, other);
            }
            if other == last {
                break;
            }
        }
    }
}

/// The waiters of a component, under a lock of their own, which is taken under that of its state and is never
/// closed.
#[cfg(target_os = "none")]
pub struct Parking<const QUEUES: usize> {
    waiters: Lock<Waiters<QUEUES>>,
    /// Portals to the scheduler.
    will_wake: &'static Import,
    wake: &'static Import,
}

#[cfg(target_os = "none")]
impl<const QUEUES: usize> Parking<QUEUES> {
    /// The component's imports `scheduler.will_wake` and `scheduler.wake`.
    pub const fn new(will_wake: &'static Import, wake: &'static Import) -> Self {
        Parking { waiters: Lock::new(Waiters::new()), will_wake, wake }
    }

    /// Makes the lock's semaphore now: while a thread of low priority makes it, others could not wait for it,
    /// and so would not lend it their own.
    pub fn prepare(&self) {
        self.waiters.prepare();
    }

    /// Puts the calling thread into the queue, under the lock under which the event is looked for; then the
    /// call must [`leave`].
    pub fn enter(&self, queue: usize) {
        let thread = self.will_wake.call([]).unwrap_or(0) as u8;
        self.waiters.lock().enter(queue, thread);
    }

    /// Wakes all that are in the queue now, the first first.
    pub fn wake(&self, queue: usize) {
        let (mut threads, mut count) = ([0; MAX_THREADS], 0);
        let mut waiters = self.waiters.lock();
        while let Some(thread) = waiters.take(queue) {
            threads[count] = thread;
            count += 1;
        }
        drop(waiters);
        for thread in &threads[..count] {
            let _ = self.wake.call([u64::from(*thread)]);
        }
    }
}

/// Ends the call that this thread is in with status `WAIT`. The thread holds no lock, and nothing that has a
/// destructor; the entry's portal restores the caller's registers (`p` or `f`).
#[cfg(target_os = "none")]
#[cold]
pub fn leave() -> ! {
    // SAFETY: the portal runs the error return of the frame by which the domain was entered. Nothing of this
    // activation is used again.
    unsafe { crate::arch::call::leave(sys::LEAVE_WAIT, crate::arch::call::Word::uninit()) }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;
    use std::vec;

    proptest! {
        #[test]
        fn each_queue_is_in_order_and_a_thread_in_one(
            ops in prop::collection::vec((any::<bool>(), 0..4usize, 0..12u8), 1..200),
        ) {
            let (mut waiters, mut model) = (Waiters::<4>::new(), vec![VecDeque::new(); 4]);
            for (enters, queue, thread) in ops {
                if enters {
                    waiters.enter(queue, thread);
                    model.iter_mut().for_each(|queue| queue.retain(|t| *t != thread));
                    model[queue].push_back(thread);
                } else {
                    prop_assert_eq!(waiters.take(queue), model[queue].pop_front());
                }
                (0..4).for_each(|queue| assert_eq!(waiters.any(queue), !model[queue].is_empty()));
            }
        }
    }
}

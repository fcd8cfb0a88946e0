//! Locks.
//!
//! [`Lock`] is a semaphore of the scheduler, made at first use; P and V are hybrid portals, so an uncontended lock costs two
//! short portal calls and no scheduling. [`Exclusive`] is for domains that run with interrupts off.

use crate::{api, portal};
use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicUsize, Ordering};

/// Mutual exclusion among the threads that are in this domain.
pub struct Lock<T> {
    /// Index of the P portal; 0 until the first use.
    semaphore: AtomicUsize,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only by the thread that passed P.
unsafe impl<T: Send> Sync for Lock<T> {}

/// Index while the semaphore is being made.
const MAKING: usize = usize::MAX;

impl<T> Lock<T> {
    pub const fn new(value: T) -> Self {
        Lock { semaphore: AtomicUsize::new(0), value: UnsafeCell::new(value) }
    }

    /// A lock on a semaphore that exists already (P at `index`, V behind it).
    pub const fn on(index: usize, value: T) -> Self {
        Lock { semaphore: AtomicUsize::new(index), value: UnsafeCell::new(value) }
    }

    #[cold]
    fn make(&self) -> usize {
        loop {
            match self.semaphore.compare_exchange(0, MAKING, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => {
                    let index = api::sem_create(1).unwrap_or(0);
                    self.semaphore.store(index, Ordering::Release);
                    return index;
                }
                Err(MAKING) => api::yield_now(),
                Err(index) => return index,
            }
        }
    }

    pub fn lock(&self) -> Guard<'_, T> {
        let index = match self.semaphore.load(Ordering::Acquire) {
            0 | MAKING => self.make(),
            index => index,
        };
        // A wait that was cut short is no reason to enter: ask again.
        while index != 0 && portal::call(index, [0; 5]) != Ok(0) {}
        Guard { lock: self, index }
    }
}

pub struct Guard<'a, T> {
    lock: &'a Lock<T>,
    index: usize,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: this thread holds the lock.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this thread holds the lock.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        if self.index != 0 {
            let _ = portal::call(self.index + 1, [0; 5]);
        }
    }
}

/// State of an exclusive domain: its entries run one at a time, to their end, with interrupts off.
pub struct Exclusive<T>(UnsafeCell<T>);

// SAFETY: by the domain's manifest no two entries are ever under way at once.
unsafe impl<T: Send> Sync for Exclusive<T> {}

impl<T> Exclusive<T> {
    pub const fn new(value: T) -> Self {
        Exclusive(UnsafeCell::new(value))
    }

    /// The state, for the length of one entry. Entries must not nest calls of `with`.
    #[inline]
    pub fn with<R>(&self, entry: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: see the type.
        entry(unsafe { &mut *self.0.get() })
    }
}

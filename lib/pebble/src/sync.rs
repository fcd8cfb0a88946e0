//! Locks.
//!
//! [`Lock`] counts who holds or wants it in one atomic word; a semaphore of the scheduler is made, and P and V are called,
//! only when two threads meet. [`Exclusive`] is for domains that run with interrupts off.

use crate::{api, portal};
use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicUsize, Ordering};

/// Mutual exclusion among the threads that are in this domain.
pub struct Lock<T> {
    /// Threads that hold it or wait for it.
    wanted: AtomicUsize,
    /// Index of the P portal; 0 until two threads first meet.
    semaphore: AtomicUsize,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only by the thread that found the lock free or passed P.
unsafe impl<T: Send> Sync for Lock<T> {}

/// Index while the semaphore is being made.
const MAKING: usize = usize::MAX;

impl<T> Lock<T> {
    pub const fn new(value: T) -> Self {
        Lock { wanted: AtomicUsize::new(0), semaphore: AtomicUsize::new(0), value: UnsafeCell::new(value) }
    }

    /// Uses a semaphore that exists already (P at `index`, V behind it; no units) instead of making one: for servers
    /// that cannot ask for one.
    pub fn use_semaphore(&self, index: usize) {
        self.semaphore.store(index, Ordering::Release);
    }

    /// Makes the semaphore now, rather than when two threads first meet: what a server holds then does not depend on timing.
    pub fn prepare(&self) {
        self.semaphore();
    }

    #[cold]
    fn semaphore(&self) -> usize {
        loop {
            match self.semaphore.compare_exchange(0, MAKING, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => {
                    // Nobody's death cuts a wait for a lock short: its holder goes on, and so will they.
                    let index = api::sem_create_patient(0).unwrap_or(0);
                    self.semaphore.store(index, Ordering::Release);
                    if index != 0 {
                        return index;
                    }
                }
                Err(MAKING) => {}
                Err(index) => return index,
            }
            let _ = api::hrsleep(portal::time() + 1000);
        }
    }

    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        self.enter().unwrap_or_else(Queued::wait)
    }

    /// Takes the lock, or a place in the queue for it. With [`Guard::release`], for entries that contain no call as long as
    /// nobody else wants the lock.
    #[inline]
    pub fn enter(&self) -> Result<Guard<'_, T>, Queued<'_, T>> {
        match self.wanted.fetch_add(1, Ordering::Acquire) {
            0 => Ok(Guard { lock: self }),
            _ => Err(Queued { lock: self }),
        }
    }

    /// Lets the next one in: what [`Guard::release`] has left to do.
    #[cold]
    pub fn pass_on(&self) {
        let _ = portal::call(self.semaphore() + 1, []);
    }
}

/// A place in the queue for a lock.
#[must_use = "the lock comes to whoever is queued"]
pub struct Queued<'a, T> {
    lock: &'a Lock<T>,
}

impl<'a, T> Queued<'a, T> {
    #[cold]
    pub fn wait(self) -> Guard<'a, T> {
        let index = self.lock.semaphore();
        while portal::call(index, []) != Ok(0) {}
        Guard { lock: self.lock }
    }
}

pub struct Guard<'a, T> {
    lock: &'a Lock<T>,
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

impl<T> Guard<'_, T> {
    /// Gives the lock up; if somebody waits for it, the caller must [`Lock::pass_on`] soon. No method, so that it hides none
    /// of the value's.
    #[inline]
    #[must_use = "somebody may wait for `pass_on`"]
    pub fn release(guard: Self) -> bool {
        core::mem::ManuallyDrop::new(guard).lock.wanted.fetch_sub(1, Ordering::Release) != 1
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.lock.wanted.fetch_sub(1, Ordering::Release) != 1 {
            self.lock.pass_on();
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

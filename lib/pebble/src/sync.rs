//! Locks.
//!
//! [`Lock`] counts who holds or wants it in one atomic word; a semaphore of the scheduler is made, and P and
//! V are called, only when two threads meet. [`Exclusive`] is for domains that run with interrupts off.
//!
//! Where no semaphore can be had, since the program has used up its portals, whoever gives the lock up counts
//! a turn, and those who wait look for one now and then. Who makes the semaphore looks for a turn afterwards,
//! and who counts a turn for the semaphore: none is left lying.
//!
//! Who has a lock, or is about to, says so in `tp` ([`section`]): a time limit that is over waits a little
//! for such a thread, so that the lock is given up before the thread leaves the domain.
//!
//! A lock can be *closed*, when the server is replaced ([`crate::handover`]): a bit below the count, so that
//! whoever comes finds the word not to be 0, as if somebody had the lock, and looks closer. The count alone
//! decides whose turn it is.

use crate::{api, handover, portal};
use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicUsize, Ordering};

/// Sections that are not unwound half-way, unless they take long: so many of them the thread is in, one in
/// the other, in the bits `thread::SECTION` of the thread pointer, which is 0 when a call comes in.
pub(crate) mod section {
    use crate::arch::register;

    #[inline(always)]
    pub fn enter() {
        // SAFETY: nothing but this module uses the register's lowest bits.
        unsafe { register::enter_section() }
    }

    #[inline(always)]
    pub fn leave() {
        // SAFETY: as above; the section has been entered.
        unsafe { register::leave_section() }
    }
}

/// As long as there is one, no time limit ends the call half-way, unless it takes long: the thread has promised
/// something that it must keep before it leaves.
pub struct Section(());

impl Section {
    pub fn enter() -> Self {
        section::enter();
        Section(())
    }
}

impl Drop for Section {
    fn drop(&mut self) {
        section::leave();
    }
}

/// Mutual exclusion among the threads that are in this domain.
pub struct Lock<T> {
    gate: Gate,
    value: UnsafeCell<T>,
}

/// A lock, whatever is behind it: so its code is there once.
struct Gate {
    /// [`ONE`] for each thread that holds it or waits for it, and perhaps [`CLOSED`].
    wanted: AtomicUsize,
    /// Index of the P portal; 0 until two threads first meet.
    semaphore: AtomicUsize,
    /// Given to those who wait while there is no semaphore, and not taken yet.
    turns: AtomicUsize,
}

// SAFETY: the value is reached only by the thread that found the lock free or passed P.
unsafe impl<T: Send> Sync for Lock<T> {}

/// Bit of `wanted`: who gets the lock must leave the server.
const CLOSED: usize = 1;
const ONE: usize = 2;
/// Ticks between two looks at a closed lock by the server's own threads.
const PATIENCE: u64 = portal::MILLISECOND;

/// Index while the semaphore is being made.
const MAKING: usize = usize::MAX;

impl Gate {
    /// `None`: it is being made, or none can be had now.
    #[cold]
    fn semaphore(&self) -> Option<usize> {
        match self.semaphore.compare_exchange(0, MAKING, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => {
                // Nobody's death cuts a wait for a lock short: its holder goes on, and so will they.
                let index = api::sem_create_lock().ok();
                self.semaphore.store(index.unwrap_or(0), Ordering::SeqCst);
                index
            }
            Err(MAKING) => None,
            Err(index) => Some(index),
        }
    }

    fn take_turn(&self) -> bool {
        self.turns.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |turns| turns.checked_sub(1)).is_ok()
    }

    /// One more wants it; what was there before.
    #[inline]
    fn want(&self) -> usize {
        section::enter();
        self.wanted.fetch_add(ONE, Ordering::Acquire)
    }

    /// One less; whether others want it.
    #[inline]
    fn leave(&self) -> bool {
        self.wanted.fetch_sub(ONE, Ordering::Release) >= 2 * ONE
    }

    fn is_closed(&self) -> bool {
        self.wanted.load(Ordering::Acquire) & CLOSED != 0
    }

    #[inline]
    fn give_up(&self) {
        if self.leave() {
            self.pass_on();
        }
        section::leave();
    }

    /// Lets the next one in.
    #[cold]
    fn pass_on(&self) {
        let made =
            || Some(self.semaphore.load(Ordering::SeqCst)).filter(|index| !matches!(*index, 0 | MAKING));
        let give_turn = || {
            self.turns.fetch_add(1, Ordering::SeqCst);
            made().filter(|_| self.take_turn())
        };
        if let Some(index) = made().or_else(give_turn) {
            let _ = portal::call_once(index + 1, []);
        }
    }

    /// Waits until it is the turn of who found `before`, open or closed.
    #[cold]
    fn turn(&self, before: usize) {
        let mut waits = before >= ONE;
        while waits {
            let semaphore = self.semaphore();
            if self.take_turn() {
                break;
            }
            if let Some(index) = semaphore {
                waits = portal::call_once(index, []) != Ok(0);
            } else {
                let _ = api::hrsleep(portal::time() + portal::MILLISECOND / 10);
            }
        }
    }

    /// The same; if it is closed, out of the server with status `MOVED`.
    #[cold]
    fn wait(&self, before: usize) {
        self.turn(before);
        if self.is_closed() {
            self.give_up();
            handover::leave();
        }
    }

    /// As [`Lock::own`].
    fn own(&self) {
        loop {
            let before = self.want();
            if before != 0 {
                self.turn(before);
            }
            if !self.is_closed() {
                return;
            }
            self.give_up();
            let _ = api::hrsleep(portal::time() + PATIENCE);
        }
    }
}

impl<T> Lock<T> {
    pub const fn new(value: T) -> Self {
        let [wanted, semaphore, turns] = [const { AtomicUsize::new(0) }; 3];
        Lock { gate: Gate { wanted, semaphore, turns }, value: UnsafeCell::new(value) }
    }

    /// Uses a semaphore that exists already (P at `index`, V behind it; no units) instead of making one: for
    /// servers that cannot ask for one.
    pub fn use_semaphore(&self, index: usize) {
        self.gate.semaphore.store(index, Ordering::Release);
    }

    /// Makes the semaphore now, rather than when two threads first meet: what a server holds then does not
    /// depend on timing.
    pub fn prepare(&self) {
        self.gate.semaphore();
    }

    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        match self.gate.want() {
            0 => {}
            before => self.gate.wait(before),
        }
        Guard { lock: self }
    }

    /// The lock, if nobody has it or wants it.
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        section::enter();
        let free = self.gate.wanted.compare_exchange(0, ONE, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if !free {
            section::leave();
        }
        // A guard that is made is dropped, and gives up a lock that somebody else has: none is made but for
        // who has it.
        free.then(|| Guard { lock: self })
    }

    /// Takes the lock, or a place in the queue for it, for entries that contain no call as long as nobody
    /// else wants the lock. They say nothing in `tp`: only components of the image have such, and these are
    /// not unwound while they hold a lock.
    #[inline]
    pub fn enter(&self) -> Result<Quick<'_, T>, Queued<'_, T>> {
        match self.gate.wanted.fetch_add(ONE, Ordering::Acquire) {
            0 => Ok(Quick { lock: self }),
            before => {
                section::enter();
                Err(Queued { lock: self, before })
            }
        }
    }

    /// As [`lock`](Self::lock), for threads of the server that serve nobody's call and so cannot leave: while
    /// the lock is closed they wait for it to open again.
    pub fn own(&self) -> Guard<'_, T> {
        self.gate.own();
        Guard { lock: self }
    }

    pub(crate) fn close(&self) {
        self.gate.wanted.fetch_or(CLOSED, Ordering::Release);
    }

    pub(crate) fn open(&self) {
        self.gate.wanted.fetch_and(!CLOSED, Ordering::Release);
    }

    /// The server is being replaced: no call takes place here.
    pub fn is_closed(&self) -> bool {
        self.gate.is_closed()
    }

    /// Lets the next one in: what [`Quick::release`] has left to do.
    pub fn pass_on(&self) {
        self.gate.pass_on();
    }
}

/// A place in the queue for a lock.
#[must_use = "the lock comes to whoever is queued"]
pub struct Queued<'a, T> {
    lock: &'a Lock<T>,
    /// The word before.
    before: usize,
}

impl<'a, T> Queued<'a, T> {
    /// The lock; or, if it is closed, out of the server with status `MOVED`.
    #[cold]
    pub fn wait(self) -> Guard<'a, T> {
        self.lock.gate.wait(self.before);
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

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.gate.give_up();
    }
}

/// What [`Lock::enter`] gives.
pub struct Quick<'a, T> {
    lock: &'a Lock<T>,
}

impl<T> Quick<'_, T> {
    /// Gives the lock up; if somebody waits for it, the caller must [`Lock::pass_on`] soon. No method, so
    /// that it hides none of the value's.
    #[inline]
    #[must_use = "somebody may wait for `pass_on`"]
    pub fn release(quick: Self) -> bool {
        core::mem::ManuallyDrop::new(quick).lock.gate.leave()
    }
}

impl<T> Deref for Quick<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: this thread holds the lock.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Quick<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this thread holds the lock.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Quick<'_, T> {
    fn drop(&mut self) {
        if self.lock.gate.leave() {
            self.lock.gate.pass_on();
        }
    }
}

/// State of an exclusive domain: its entries run one at a time, to their end, with interrupts off.
#[repr(transparent)]
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

//! Counting semaphores: the part of P and V that must wait or wake.
//!
//! The words are shared with the hybrid portals of P and V, which finish alone when the word is positive
//! (P) or not negative (V). What comes here re-checks: nothing has been promised yet.

use crate::*;
use pebble_abi::errno::{EAGAIN, EPERM};

/// Word of a free semaphore: negative, so that both fast paths fail, and one less is positive, so that P sees
/// it by the same branch that sees a free unit.
pub const FREED: i64 = i64::MIN;
const NONE: u16 = u16::MAX;
const IN_USE: u16 = u16::MAX - 1;

/// A semaphore of the image; its word holds its initial value already.
#[derive(Clone, Copy, Debug)]
pub struct BootSemaphore {
    pub id: u16,
    pub owner: u16,
    pub interruptible: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SemInfo {
    /// Free units, or minus the number of waiters.
    pub value: i64,
    pub owner: u16,
    pub waiters: usize,
}

/// As large as a word, so that one shift indexes both.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(crate) struct Semaphore {
    pub(crate) waiters: Ring,
    /// The next free one (or `NONE`) while it is free; else `IN_USE`.
    free: u16,
    owner: u8,
    pub(crate) interruptible: bool,
}

impl Semaphore {
    fn in_use(&self) -> bool {
        self.free == IN_USE
    }
}

pub(crate) struct Table {
    pub(crate) all: [Semaphore; MAX_SEMAPHORES],
    /// First of the free ones, or `NONE`.
    free: u16,
}

impl Table {
    pub(crate) const fn new() -> Self {
        let free = Semaphore { waiters: Ring::EMPTY, free: NONE, owner: 0, interruptible: false };
        Self { all: [free; MAX_SEMAPHORES], free: NONE }
    }

    pub(crate) fn boot(
        &mut self,
        words: &Words,
        semaphores: impl IntoIterator<Item = BootSemaphore>,
    ) -> Result<(), i64> {
        for boot in semaphores {
            let owner = u8::try_from(boot.owner).map_err(|_| -EINVAL)?;
            let sem = self.all.get_mut(boot.id as usize).filter(|sem| !sem.in_use()).ok_or(-EINVAL)?;
            *sem = Semaphore { owner, interruptible: boot.interruptible, free: IN_USE, ..*sem };
        }
        for (id, (sem, word)) in self.all.iter_mut().zip(words).enumerate().rev() {
            if !sem.in_use() {
                word.store(FREED, Relaxed);
                sem.free = core::mem::replace(&mut self.free, id as u16);
            }
        }
        Ok(())
    }
}

impl Scheduler {
    /// Takes a unit, or waits for one. `caller` is the domain that called. 0; `-EINVAL`: no such semaphore;
    /// `-EINTR`: caught by [`domain_abort`](Self::domain_abort); `-EPERM`: no other thread is ready.
    #[inline]
    pub fn p(&mut self, words: &Words, sem: u64, caller: u64, now: u64) -> Decision {
        let sem = sem as usize;
        if sem >= MAX_SEMAPHORES {
            return Decision::stay(-EINVAL);
        }
        let decision = self.wait(words, sem, caller, now);
        self.exit(decision, now)
    }

    #[inline(always)]
    fn wait(&mut self, words: &Words, sem: usize, caller: u64, now: u64) -> Decision {
        let less = words[sem].load(Relaxed).wrapping_sub(1);
        if less >= 0 {
            return take(&words[sem], less);
        }
        let me = self.running;
        if self.doomed[me as usize] && self.semaphores.all[sem].interruptible {
            return Decision::stay(-EINTR);
        }
        let Some(next) = self.leave(me) else { return CANNOT_WAIT };
        words[sem].store(less, Relaxed);
        self.place[me as usize] = Place::Waiting;
        let record = &mut self.records[me as usize];
        record.sem = sem as u16;
        record.caller = caller as u8;
        self.semaphores.all[sem].waiters.insert(&mut self.next, &self.level, me);
        self.switch(me, next, now)
    }

    /// Gives a unit to the most urgent waiter, or back. 0, or `-EINVAL`: no such semaphore.
    #[inline]
    pub fn v(&mut self, words: &Words, sem: u64, now: u64) -> Decision {
        let sem = sem as usize;
        if sem >= MAX_SEMAPHORES {
            return Decision::stay(-EINVAL);
        }
        let decision = self.signal(words, sem, now);
        self.exit(decision, now)
    }

    #[inline(always)]
    fn signal(&mut self, words: &Words, sem: usize, now: u64) -> Decision {
        let Some(t) = self.semaphores.all[sem].waiters.pop_front(&mut self.next) else {
            return self.give(&words[sem], sem);
        };
        add(&words[sem], 1);
        self.make_ready(t);
        let me = self.running;
        let (mine, its) = (self.level[me as usize], self.level[t as usize]);
        if its < mine {
            return self.switch(me, t, now);
        }
        if its == mine && !self.slicing {
            self.alarm = 0;
        }
        GO_ON
    }

    #[cold]
    fn give(&mut self, word: &AtomicI64, sem: usize) -> Decision {
        if !self.semaphores.all[sem].in_use() {
            return Decision::stay(-EINVAL);
        }
        add(word, 1);
        GO_ON
    }

    /// V without a decision, for [`thread_exit`](Self::thread_exit).
    pub(crate) fn notify(&mut self, words: &Words, sem: u16) {
        let Some(semaphore) = self.semaphores.all.get_mut(sem as usize).filter(|sem| sem.in_use()) else {
            return;
        };
        add(&words[sem as usize], 1);
        if let Some(t) = semaphore.waiters.pop_front(&mut self.next) {
            self.make_ready(t);
        }
    }

    /// A new semaphore: its number, or `-EAGAIN` when all are in use, or `-EINVAL` for a negative value or an
    /// impossible owner.
    pub fn sem_alloc(&mut self, words: &Words, initial: i64, owner: u64, interruptible: bool) -> i64 {
        let (Ok(owner), 0..) = (u8::try_from(owner), initial) else { return -EINVAL };
        let id = self.semaphores.free;
        let Some(sem) = self.semaphores.all.get_mut(id as usize) else { return -EAGAIN };
        self.semaphores.free = sem.free;
        *sem = Semaphore { waiters: Ring::EMPTY, free: IN_USE, owner, interruptible };
        words[id as usize].store(initial, Relaxed);
        id.into()
    }

    /// Ends a semaphore. Its waiters wake and get `-EINVAL`, as will every later P and V.
    /// 0, `-EINVAL`: no such semaphore, `-EPERM`: it is the reaper's.
    pub fn sem_free(&mut self, words: &Words, sem: u64, now: u64) -> Decision {
        let id = sem as usize;
        let Some(sem) = self.semaphores.all.get_mut(id).filter(|sem| sem.in_use()) else {
            return Decision::stay(-EINVAL);
        };
        if id == self.reaper as usize {
            return Decision::stay(-EPERM);
        }
        let mut waiters = core::mem::replace(&mut sem.waiters, Ring::EMPTY);
        sem.free = core::mem::replace(&mut self.semaphores.free, id as u16);
        words[id].store(FREED, Relaxed);
        while let Some(t) = waiters.pop_front(&mut self.next) {
            self.set_result(t, INVALID);
            self.make_ready(t);
        }
        self.decide(GO_ON, now)
    }

    /// `None`: no such semaphore.
    pub fn sem_info(&self, words: &Words, sem: u64) -> Option<SemInfo> {
        let id = sem as usize;
        let sem = self.semaphores.all.get(id).filter(|sem| sem.in_use())?;
        Some(SemInfo {
            value: words[id].load(Relaxed),
            owner: sem.owner.into(),
            waiters: sem.waiters.len(&self.next),
        })
    }
}

/// P that need not wait after all; `FREED - 1` wraps to the largest number.
#[cold]
fn take(word: &AtomicI64, less: i64) -> Decision {
    if less == FREED.wrapping_sub(1) {
        return Decision::stay(-EINVAL);
    }
    word.store(less, Relaxed);
    GO_ON
}

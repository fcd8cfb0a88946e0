//! Counting semaphores: the part of P and V that must wait or wake.
//!
//! The words are shared with the hybrid portals of P and V, which finish alone when the word is positive
//! (P) or not negative (V). What comes here re-checks: nothing has been promised yet.

use crate::*;
use pebble_abi::errno::EAGAIN;

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

/// What hot paths do not need; they look at the word and at `Scheduler::tails`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Semaphore {
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

#[repr(C)]
pub(crate) struct Table {
    pub(crate) all: [Semaphore; MAX_SEMAPHORES],
    /// First of the free ones, or `NONE`.
    free: u16,
}

impl Table {
    /// Not usable; all zero.
    pub(crate) const fn zero() -> Self {
        Self { all: [Semaphore { free: 0, owner: 0, interruptible: false }; MAX_SEMAPHORES], free: 0 }
    }

    pub(crate) fn clear(&mut self) {
        self.free = NONE;
        self.all.iter_mut().for_each(|sem| sem.free = NONE);
    }

    pub(crate) fn boot(
        &mut self,
        words: &Words,
        semaphores: impl IntoIterator<Item = BootSemaphore>,
    ) -> Result<(), i64> {
        for boot in semaphores {
            let owner = u8::try_from(boot.owner).map_err(|_| -EINVAL)?;
            let sem = self.all.get_mut(boot.id as usize).filter(|sem| !sem.in_use()).ok_or(-EINVAL)?;
            *sem = Semaphore { owner, interruptible: boot.interruptible, free: IN_USE };
        }
        for (id, (sem, word)) in self.all.iter_mut().zip(words).enumerate().rev() {
            if !sem.in_use() {
                word.store(FREED, Relaxed);
                // The first is nobody's: its word marks stack queues (`map::STACKS_WANTED`).
                if id > 0 {
                    sem.free = core::mem::replace(&mut self.free, id as u16);
                }
            }
        }
        Ok(())
    }
}

impl<const EDF: bool> Scheduler<EDF> {
    /// Takes a unit, or waits for one. `caller` is the domain that called, not 0. 0; `-EINVAL`: no such semaphore;
    /// `-EINTR`: caught by [`domain_abort`](Self::domain_abort); `-EPERM`: no other thread is ready.
    pub fn p(&mut self, words: &Words, sem: u64, caller: u64, now: u64) -> Decision {
        let me = self.begin();
        let error = self.wait(words, sem as usize, me, caller).err().unwrap_or(0);
        self.decide(me, error, now)
    }

    fn wait(&mut self, words: &Words, sem: usize, me: u8, caller: u64) -> Result<(), i64> {
        let semaphore = self.semaphores.all.get(sem).filter(|sem| sem.in_use()).ok_or(-EINVAL)?;
        if words[sem].load(Relaxed) > 0 {
            add(&words[sem], -1);
        } else if self.doomed[me as usize] && semaphore.interruptible {
            return Err(-EINTR);
        } else if self.is_last() {
            return Err(-EPERM);
        } else {
            self.leave_ready(me, self.level[me as usize]);
            self.set_place(me, sem as u16, caller);
            self.enqueue(words, sem, me);
        }
        Ok(())
    }

    /// Gives a unit to the most urgent waiter, or back. 0, or `-EINVAL`: no such semaphore.
    pub fn v(&mut self, words: &Words, sem: u64, now: u64) -> Decision {
        let me = self.begin();
        let error = self.signal(words, sem as usize).err().unwrap_or(0);
        self.decide(me, error, now)
    }

    fn signal(&mut self, words: &Words, sem: usize) -> Result<(), i64> {
        self.semaphores.all.get(sem).filter(|sem| sem.in_use()).ok_or(-EINVAL)?;
        if let Some(waiters) = self.waiters(words, sem) {
            self.unqueue(words, sem, waiters.head);
            self.make_ready(waiters.head);
        } else {
            add(&words[sem], 1);
        }
        Ok(())
    }

    /// V without a decision, for [`thread_exit`](Self::thread_exit).
    pub(crate) fn notify(&mut self, words: &Words, sem: u16) {
        let _ = self.signal(words, sem.into());
    }

    fn waiters(&self, words: &Words, sem: usize) -> Option<Queue> {
        let tail = self.tails[sem];
        match words[sem].load(Relaxed) {
            0.. | FREED => None,
            -1 => Some(Queue::of(tail)),
            _ => Some(Queue { head: self.links[tail as usize], tail }),
        }
    }

    /// One more waiter.
    pub(crate) fn enqueue(&mut self, words: &Words, sem: usize, t: u8) {
        let mut queue = Queue::of(t);
        if let Some(waiters) = self.waiters(words, sem) {
            queue = waiters;
            queue.insert(&mut self.links, &self.level, t);
        }
        self.keep(sem, queue);
        add(&words[sem], -1);
    }

    /// One waiter less.
    pub(crate) fn unqueue(&mut self, words: &Words, sem: usize, t: u8) {
        if let Some(mut queue) = self.waiters(words, sem).filter(|queue| !queue.is_single()) {
            queue.remove(&mut self.links, t);
            self.keep(sem, queue);
        }
        add(&words[sem], 1);
    }

    fn keep(&mut self, sem: usize, queue: Queue) {
        self.tails[sem] = queue.tail;
        self.links[queue.tail as usize] = queue.head;
    }

    /// A new semaphore: its number, or `-EAGAIN` when all are in use, or `-EINVAL` for a negative value or an
    /// impossible owner.
    pub fn sem_alloc(&mut self, words: &Words, initial: i64, owner: u64, interruptible: bool) -> i64 {
        let (Ok(owner), 0..) = (u8::try_from(owner), initial) else { return -EINVAL };
        let id = self.semaphores.free;
        let Some(sem) = self.semaphores.all.get_mut(id as usize) else { return -EAGAIN };
        self.semaphores.free = sem.free;
        *sem = Semaphore { free: IN_USE, owner, interruptible };
        words[id as usize].store(initial, Relaxed);
        id.into()
    }

    /// Ends a semaphore. Its waiters wake and get `-EINVAL`, as will every later P and V.
    /// 0, `-EINVAL`: no such semaphore, `-EPERM`: it is the reaper's.
    pub fn sem_free(&mut self, words: &Words, sem: u64, now: u64) -> Decision {
        let me = self.begin();
        let error = self.free(words, sem as usize).err().unwrap_or(0);
        self.decide(me, error, now)
    }

    fn free(&mut self, words: &Words, sem: usize) -> Result<(), i64> {
        self.semaphores.all.get(sem).filter(|sem| sem.in_use()).ok_or(-EINVAL)?;
        if sem == self.reaper as usize {
            return Err(-EPERM);
        }
        while let Some(waiters) = self.waiters(words, sem) {
            self.unqueue(words, sem, waiters.head);
            self.set_result(waiters.head, INVALID);
            self.make_ready(waiters.head);
        }
        words[sem].store(FREED, Relaxed);
        self.semaphores.all[sem].free = core::mem::replace(&mut self.semaphores.free, sem as u16);
        Ok(())
    }

    /// `None`: no such semaphore.
    pub fn sem_info(&self, words: &Words, sem: u64) -> Option<SemInfo> {
        let id = sem as usize;
        let sem = self.semaphores.all.get(id).filter(|sem| sem.in_use())?;
        Some(SemInfo {
            value: words[id].load(Relaxed),
            owner: sem.owner.into(),
            waiters: self.waiters(words, id).map_or(0, |queue| queue.len(&self.links)),
        })
    }
}

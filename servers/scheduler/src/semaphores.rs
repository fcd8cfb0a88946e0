//! Counting semaphores: the part of P and V that must wait or wake.
//!
//! The words are shared with the hybrid portals of P and V, which finish alone when the word is positive
//! (P) or not negative (V). What comes here re-checks: nothing has been promised yet.

use crate::queue::Line;
use crate::*;
use core::num::NonZeroU8;
use pebble_abi::errno::{EAGAIN, Errno};

/// Word of a free semaphore: negative, so that both fast paths fail, and one less is positive, so that P sees
/// it by the same branch that sees a free unit.
pub const FREED: i64 = i64::MIN;
const NONE: u16 = u16::MAX;
const IN_USE: u16 = u16::MAX - 1;
/// Being freed: it is in use for nobody, but has waiters.
const ENDING: u16 = u16::MAX - 2;

/// A semaphore of the image; its word holds its initial value already.
#[derive(Clone, Copy, Debug)]
pub struct BootSemaphore {
    pub id: u16,
    pub owner: Asid,
    pub wait: Wait,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SemInfo {
    /// Free units, or minus the number of waiters.
    pub value: i64,
    pub owner: Option<NonZeroU8>,
    pub waiters: usize,
}

/// What hot paths do not need; they look at the word and at `Scheduler::tails`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Semaphore {
    /// The next free one (or `NONE`) while it is free; else `IN_USE` or `ENDING`.
    free: u16,
    /// The domain that may say so, if there is one.
    owner: Option<NonZeroU8>,
    wait: Wait,
}

impl Semaphore {
    pub(crate) fn interruptible(&self) -> bool {
        self.wait == Wait::Interruptible
    }

    fn is_lock(&self) -> bool {
        self.wait == Wait::Lock
    }

    fn in_use(&self) -> bool {
        self.free == IN_USE
    }
}

/// A domain that may have a semaphore; nobody, if it is 0.
fn owner(asid: Asid) -> Result<Option<NonZeroU8>, Errno> {
    u8::try_from(asid.get()).map(NonZeroU8::new).map_err(|_| EINVAL)
}

/// In which list it is while it is free.
fn for_locks(id: usize) -> usize {
    usize::from(id >= FIRST_LOCK)
}

#[repr(C)]
pub(crate) struct Table {
    pub(crate) all: [Semaphore; MAX_SEMAPHORES],
    /// First of the free ones, or `NONE`; of those, too, that are for locks.
    free: [u16; 2],
}

impl Table {
    /// Not usable; all zero.
    pub(crate) const fn zero() -> Self {
        Self { all: [Semaphore { free: 0, owner: None, wait: Wait::Patient }; MAX_SEMAPHORES], free: [0; 2] }
    }

    pub(crate) fn clear(&mut self) {
        self.free = [NONE; 2];
        self.all.iter_mut().for_each(|sem| sem.free = NONE);
    }

    pub(crate) fn boot(
        &mut self,
        words: &Words,
        semaphores: impl IntoIterator<Item = BootSemaphore>,
    ) -> Result<(), Errno> {
        for boot in semaphores {
            let owner = owner(boot.owner)?;
            let sem = self.all.get_mut(boot.id as usize).filter(|sem| !sem.in_use()).ok_or(EINVAL)?;
            *sem = Semaphore { owner, wait: boot.wait, free: IN_USE };
        }
        for (id, (sem, word)) in self.all.iter_mut().zip(words).enumerate().rev() {
            if !sem.in_use() {
                word.store(FREED, Relaxed);
                // 0 is the number of none.
                if id > 0 {
                    sem.free = core::mem::replace(&mut self.free[for_locks(id)], id as u16);
                }
            }
        }
        Ok(())
    }
}

impl<const EDF: bool> Scheduler<EDF> {
    /// Takes a unit, or waits for one. `caller` is the domain that called, not 0. 0; `-EINVAL`: no such
    /// semaphore; `-EINTR`: caught by [`domain_abort`](Self::domain_abort); `-EPERM`: no other thread is
    /// ready.
    pub fn p(&mut self, words: &Words, sem: u64, caller: Asid, now: u64) -> Decision {
        let me = self.begin();
        let error = self.wait(words, sem as usize, me, caller).err().map_or(0, Errno::word);
        self.decide(me, error, now)
    }

    fn wait(&mut self, words: &Words, sem: usize, me: u8, caller: Asid) -> Result<(), Errno> {
        let semaphore = self.semaphores.all.get(sem).filter(|sem| sem.in_use()).ok_or(EINVAL)?;
        if words[sem].load(Relaxed) > 0 {
            add(&words[sem], -1);
        } else if self.doomed.has(me) && semaphore.interruptible() {
            return Err(EINTR);
        } else if self.is_last() {
            return Err(EPERM);
        } else {
            self.stop_being_ready(me);
            self.set_waiting(me, sem as u16, caller);
            self.enqueue(words, sem, me);
        }
        Ok(())
    }

    /// Gives a unit to the most urgent waiter, or back. 0, or `-EINVAL`: no such semaphore.
    pub fn v(&mut self, words: &Words, sem: u64, now: u64) -> Decision {
        let me = self.begin();
        let error = self.signal(words, sem as usize).err().map_or(0, Errno::word);
        self.decide(me, error, now)
    }

    fn signal(&mut self, words: &Words, sem: usize) -> Result<(), Errno> {
        self.semaphores.all.get(sem).filter(|sem| sem.in_use()).ok_or(EINVAL)?;
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
        let tail = *self.tails.get(sem)?;
        match words[sem].load(Relaxed) {
            0.. | FREED => None,
            -1 => Some(Queue::of(tail)),
            _ => Some(Queue { head: self.links.next[tail as usize], tail }),
        }
    }

    /// One more waiter.
    pub(crate) fn enqueue(&mut self, words: &Words, sem: usize, t: u8) {
        self.ranks.of[t as usize] = self.level[t as usize];
        let mut queue = Queue::of(t);
        if let Some(waiters) = self.waiters(words, sem) {
            queue = waiters;
            self.long = true;
            // Who came first has come the quick way, perhaps.
            self.ranks.of[queue.head as usize] = self.level[queue.head as usize];
            Line { queue: &mut queue, links: &mut self.links, ranks: &mut self.ranks }.insert(t, false);
        }
        self.keep(sem, queue);
        add(&words[sem], -1);
        if self.semaphores.all.get(sem).is_some_and(Semaphore::is_lock) {
            self.lock_wanted(t);
        }
    }

    /// One waiter less.
    pub(crate) fn unqueue(&mut self, words: &Words, sem: usize, t: u8) {
        if let Some(mut queue) = self.waiters(words, sem).filter(|queue| !queue.is_single()) {
            Line { queue: &mut queue, links: &mut self.links, ranks: &mut self.ranks }.remove(t);
            self.keep(sem, queue);
        }
        add(&words[sem], 1);
        if self.semaphores.all.get(sem).is_some_and(Semaphore::is_lock) {
            self.lock_had();
        }
    }

    fn keep(&mut self, sem: usize, queue: Queue) {
        self.tails[sem] = queue.tail;
        self.links.next[queue.tail as usize] = queue.head;
    }

    /// A new semaphore: its number, or `-EAGAIN` when all are in use, or `-EINVAL` for a negative value or an
    /// impossible owner.
    pub fn sem_alloc(&mut self, words: &Words, initial: i64, owner: Asid, wait: Wait) -> i64 {
        let (Ok(owner), 0..) = (self::owner(owner), initial) else { return -EINVAL };
        let free = &mut self.semaphores.free;
        let which = usize::from(wait == Wait::Lock);
        let which = if free[which] == NONE { 1 - which } else { which };
        let id = free[which];
        let Some(sem) = self.semaphores.all.get_mut(id as usize) else { return -EAGAIN };
        free[which] = sem.free;
        // By a number that is no lock's it would be waited for the quick way.
        let wait = if which == 0 && wait == Wait::Lock { Wait::Patient } else { wait };
        *sem = Semaphore { free: IN_USE, owner, wait };
        words[id as usize].store(initial, Relaxed);
        id.into()
    }

    /// Ends a semaphore. Its waiters wake and get `-EINVAL`, as will every P and V from now on; one waiter a
    /// call, so this is to be called until it returns 0. 1: there are others; `-EINVAL`: no such semaphore,
    /// `-EPERM`: it is the reaper's.
    pub fn sem_free(&mut self, words: &Words, sem: u64, now: u64) -> Decision {
        let me = self.begin();
        let answer = self.free(words, sem as usize).map_or_else(Errno::word, i64::from);
        self.decide(me, answer, now)
    }

    /// Whether it is to be called again.
    fn free(&mut self, words: &Words, sem: usize) -> Result<bool, Errno> {
        let semaphore = self.semaphores.all.get_mut(sem).ok_or(EINVAL)?;
        if sem == self.reaper as usize {
            return Err(EPERM);
        }
        match semaphore.free {
            IN_USE => {
                semaphore.free = ENDING;
                // No quick method looks whether it is in use.
                self.attention += 1;
            }
            ENDING => {}
            _ => return Err(EINVAL),
        }
        if let Some(waiters) = self.waiters(words, sem) {
            self.unqueue(words, sem, waiters.head);
            self.set_result(waiters.head, INVALID);
            self.make_ready(waiters.head);
            if self.waiters(words, sem).is_some() {
                return Ok(true);
            }
        }
        words[sem].store(FREED, Relaxed);
        self.semaphores.all[sem].free =
            core::mem::replace(&mut self.semaphores.free[for_locks(sem)], sem as u16);
        self.attention -= 1;
        Ok(false)
    }

    /// `None`: no such semaphore.
    pub fn sem_info(&self, words: &Words, sem: u64) -> Option<SemInfo> {
        let id = sem as usize;
        let sem = self.semaphores.all.get(id).filter(|sem| sem.in_use())?;
        Some(SemInfo {
            value: words[id].load(Relaxed),
            owner: sem.owner,
            waiters: words[id].load(Relaxed).min(0).unsigned_abs() as usize,
        })
    }
}

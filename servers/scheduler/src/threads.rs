//! Threads: their turns, sleep, birth, death, and the end of their domain.

use crate::*;
use pebble_abi::errno::{EEXIST, ESRCH};

/// A thread of the image, ready to run.
#[derive(Clone, Copy, Debug)]
pub struct BootThread {
    pub tid: u16,
    pub priority: u8,
    pub home: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadState {
    Free,
    Ready,
    Running,
    Sleeping,
    Exited,
    /// On this semaphore.
    Waiting(u16),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadInfo {
    pub state: ThreadState,
    pub priority: u8,
    pub home: u16,
    /// Ticks of run time.
    pub ran: u64,
    /// How often it stopped running.
    pub switches: u32,
}

impl Scheduler {
    /// The next thread of the same priority runs.
    #[inline]
    pub fn yield_now(&mut self, now: u64) -> Decision {
        let me = self.running;
        let next = self.next[me as usize];
        let mut decision = GO_ON;
        if next != me {
            self.rings[self.level[me as usize] as usize].turn(me);
            decision = self.switch(me, next, now);
        }
        self.exit(decision, now)
    }

    /// Not before `until`. `caller` is the domain that called. 0; `-EINTR`: caught by
    /// [`domain_abort`](Self::domain_abort); `-EPERM`: no other thread is ready.
    pub fn sleep(&mut self, until: u64, caller: u64, now: u64) -> Decision {
        let me = self.running;
        if self.doomed[me as usize] {
            return self.decide(Decision::stay(-EINTR), now);
        }
        if until > now {
            if self.leave(me).is_none() {
                return self.decide(CANNOT_WAIT, now);
            }
            self.place[me as usize] = Place::Sleeping;
            self.records[me as usize].caller = caller as u8;
            self.sleepers.push(until, me);
            self.due = self.sleepers.due();
        }
        self.decide(GO_ON, now)
    }

    /// The timer: wakes whoever is due, and ends the slice of the running thread if it is used up.
    pub fn tick(&mut self, now: u64) -> Decision {
        if now >= self.due {
            self.wake(now);
        }
        let me = self.running;
        let ran = self.records[me as usize].ran.wrapping_add(now.wrapping_sub(self.since));
        if self.has_peer(me) && ran >= self.records[me as usize].slice_end {
            self.records[me as usize].slice_end = ran.wrapping_add(SLICE);
            self.rings[self.level[me as usize] as usize].turn(me);
            // It may have used up its own before it yielded or waited.
            let next = &mut self.records[self.next[me as usize] as usize];
            if next.ran >= next.slice_end {
                next.slice_end = next.ran.wrapping_add(SLICE);
            }
        }
        self.decide(GO_ON, now)
    }

    /// Checks and fills the tables for a new thread, which is in no ring yet.
    pub(crate) fn claim(&mut self, tid: u64, priority: u64, home: u64) -> Result<u8, i64> {
        let (Ok(t), Ok(home), 0..32) = (u8::try_from(tid), u8::try_from(home), priority) else {
            return Err(-EINVAL);
        };
        if self.place[t as usize] != Place::Free {
            return Err(-EEXIST);
        }
        self.place[t as usize] = Place::Ready;
        self.level[t as usize] = (PRIORITIES - 1) as u8 - priority as u8;
        self.result[t as usize] = 0;
        self.doomed[t as usize] = false;
        self.records[t as usize] = Record { ran: 0, slice_end: SLICE, switches: 0, sem: 0, home, caller: 0 };
        Ok(t)
    }

    /// A new thread becomes ready. 0, `-EINVAL`: argument out of range, `-EEXIST`: the thread is in use.
    pub fn thread_start(&mut self, tid: u64, priority: u64, home: u64, now: u64) -> Decision {
        match self.claim(tid, priority, home) {
            Ok(t) => self.make_ready(t),
            Err(error) => return Decision::stay(error),
        }
        self.decide(GO_ON, now)
    }

    /// The running thread ends, and the reaper hears of it. Returns only to the last ready thread (`-EPERM`).
    pub fn thread_exit(&mut self, words: &Words, now: u64) -> Decision {
        let me = self.running;
        if self.leave(me).is_none() {
            return CANNOT_WAIT;
        }
        self.place[me as usize] = Place::Exited;
        self.exited.push_back(&mut self.next, me);
        self.notify(words, self.reaper);
        self.decide(GO_ON, now)
    }

    /// A thread that has exited, the first one first; its number is free from now on.
    pub fn reap(&mut self) -> Option<u16> {
        let t = self.exited.pop_front(&mut self.next)?;
        self.place[t as usize] = Place::Free;
        Some(t.into())
    }

    /// 0, `-EINVAL`: no such priority, `-ESRCH`: no such thread. A ready or waiting thread goes behind those
    /// of its new priority, the running one before them.
    pub fn set_priority(&mut self, tid: u64, priority: u64, now: u64) -> Decision {
        let 0..32 = priority else { return Decision::stay(-EINVAL) };
        let Some(t) = self.thread(tid) else { return Decision::stay(-ESRCH) };
        self.relevel(t, (PRIORITIES - 1) as u8 - priority as u8);
        self.decide(GO_ON, now)
    }

    /// Changes the level of a thread, and its place in the ring that it is in.
    fn relevel(&mut self, t: u8, level: u8) {
        let old = core::mem::replace(&mut self.level[t as usize], level);
        match self.place[t as usize] {
            Place::Ready => {
                if self.rings[old as usize].remove(&mut self.next, t) {
                    self.ready &= !(1 << old);
                }
                let ring = &mut self.rings[level as usize];
                if t == self.running {
                    ring.push_front(&mut self.next, t);
                } else {
                    ring.push_back(&mut self.next, t);
                }
                self.ready |= 1 << level;
            }
            Place::Waiting => {
                let sem = self.records[t as usize].sem as usize;
                let waiters = &mut self.semaphores.all[sem % MAX_SEMAPHORES].waiters;
                waiters.remove(&mut self.next, t);
                waiters.insert(&mut self.next, &self.level, t);
            }
            Place::Sleeping | Place::Exited | Place::Free => {}
        }
    }

    /// The domain is dying. Every wait or sleep called from it ends now with `-EINTR`, and so does every sleep
    /// and interruptible wait of a thread whose home it is; such a thread may begin no other, and is raised
    /// to the caller's priority, so that it finds its way out soon. 0, or `-EINVAL`: no such domain.
    pub fn domain_abort(&mut self, words: &Words, asid: u64, now: u64) -> Decision {
        let Ok(asid) = u8::try_from(asid) else { return Decision::stay(-EINVAL) };
        let level = self.level[self.running as usize];
        self.wake(now);
        for t in 0..=u8::MAX {
            let place = self.place[t as usize];
            if matches!(place, Place::Free | Place::Exited) {
                continue;
            }
            let Record { home, caller, sem, .. } = self.records[t as usize];
            if home == asid {
                self.doomed[t as usize] = true;
                if self.level[t as usize] > level {
                    self.relevel(t, level);
                }
            }
            let sem = sem as usize % MAX_SEMAPHORES;
            match place {
                Place::Waiting
                    if caller == asid || home == asid && self.semaphores.all[sem].interruptible =>
                {
                    self.semaphores.all[sem].waiters.remove(&mut self.next, t);
                    add(&words[sem], 1);
                }
                Place::Sleeping if caller == asid || home == asid => self.sleepers.remove(t),
                _ => continue,
            }
            self.set_result(t, INTERRUPTED);
            self.make_ready(t);
        }
        self.due = self.sleepers.due();
        self.decide(GO_ON, now)
    }

    /// `None`: no such number.
    pub fn thread_info(&self, tid: u64, now: u64) -> Option<ThreadInfo> {
        let t = usize::try_from(tid).ok().filter(|t| *t < MAX_THREADS)?;
        let record = &self.records[t];
        let runs = t == self.running as usize;
        let state = match self.place[t] {
            Place::Ready if runs => ThreadState::Running,
            Place::Ready => ThreadState::Ready,
            Place::Waiting => ThreadState::Waiting(record.sem),
            Place::Sleeping => ThreadState::Sleeping,
            Place::Exited => ThreadState::Exited,
            Place::Free => ThreadState::Free,
        };
        Some(ThreadInfo {
            state,
            priority: (PRIORITIES - 1) as u8 - self.level[t],
            home: record.home.into(),
            ran: if runs { record.ran.wrapping_add(now.wrapping_sub(self.since)) } else { record.ran },
            switches: record.switches,
        })
    }
}

//! Threads: their turns, sleep, birth, death, and the end of their domain.

use crate::*;
use pebble_abi::errno::{EEXIST, ESRCH};

/// Threads at which one part of an abort looks.
const AT_A_TIME: usize = 8;

/// A thread of the image, ready to run.
#[derive(Clone, Copy, Debug)]
pub struct BootThread {
    pub tid: ThreadId,
    pub priority: u8,
    pub home: Asid,
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
    /// For a stack of this domain.
    Stack(Asid),
    /// Its home has used up its share.
    Held,
    /// Until a server wakes it.
    Parked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadInfo {
    pub state: ThreadState,
    pub priority: u8,
    pub home: Asid,
    /// Ticks of run time.
    pub ran: u64,
    /// How often it stopped running without having to wait: it yielded, or another was more urgent, or had
    /// its turn.
    pub switches: u32,
}

impl<const EDF: bool> Scheduler<EDF> {
    /// The next thread of the same priority runs.
    pub fn yield_now(&mut self, now: u64) -> Decision {
        let me = self.begin();
        self.turn(me);
        self.decide(me, 0, now)
    }

    /// Puts the running thread behind its peers, and names the first of those, if there are any.
    #[inline(always)]
    fn turn(&mut self, me: u8) -> Option<u8> {
        let queue = &mut self.queues[self.level[me as usize] as usize % PRIORITIES];
        if queue.is_single() {
            return None;
        }
        if EDF && self.level[me as usize] == 0 {
            queue.drop_head(&self.links);
            self.queue_ready(me, false);
            return Some(self.queues[0].head);
        }
        queue.push_back(&mut self.links, me);
        queue.drop_head(&self.links);
        Some(queue.head)
    }

    /// Not before `until`. `caller` is the domain that called, or 0. 0; `-EINTR`: caught by
    /// [`domain_abort`](Self::domain_abort); `-EPERM`: no other thread is ready.
    pub fn sleep(&mut self, until: u64, caller: Asid, now: u64) -> Decision {
        let me = self.begin();
        if self.doomed.has(me) {
            return self.decide(me, -EINTR, now);
        }
        if until > now {
            if self.is_last() {
                return self.decide(me, -EPERM, now);
            }
            self.stop_being_ready(me);
            let home = u16::from(self.records[me as usize].home);
            self.set_waiting(me, SLEEPING, if caller == Asid(0) { home.into() } else { caller });
            self.push_sleeper(until, me);
        }
        self.decide(me, 0, now)
    }

    /// The timer: wakes whoever is due, and ends the slice of the running thread if it is used up.
    pub fn tick(&mut self, now: u64) -> Decision {
        let me = self.begin();
        // Set anew in any case: on some machines a tick may come, and come again, for a time that was
        // replaced as it fell due.
        self.armed = 0;
        self.wake(now);
        if EDF {
            self.forget_missed(now);
        }
        if self.slice_is_over(now)
            && (!EDF || self.queues[self.level[me as usize] as usize % PRIORITIES].head == me)
            && let Some(next) = self.turn(me)
        {
            self.records[me as usize].slice_end = self.ran(now).wrapping_add(self.crowds.next_slice(me));
            // It may have used up its own before it yielded or waited.
            let record = &mut self.records[next as usize];
            if record.ran >= record.slice_end {
                record.slice_end = record.ran.wrapping_add(self.crowds.next_slice(next));
            }
        }
        self.conclude(me, 0, now)
    }

    /// Run time of the running thread.
    #[inline(always)]
    fn ran(&self, now: u64) -> u64 {
        self.records[self.current.head as usize].ran.wrapping_add(now.wrapping_sub(self.since))
    }

    #[inline(always)]
    pub(crate) fn slice_is_over(&self, now: u64) -> bool {
        self.ran(now) >= self.records[self.current.head as usize].slice_end
    }

    /// Checks and fills the tables for a new thread, which is in no queue yet; `family` is its home's, or 0.
    /// The thread's number, `-EINVAL`, or `-EEXIST`.
    #[inline(never)]
    pub(crate) fn claim(&mut self, tid: ThreadId, priority: u64, home: Asid, family: Asid) -> i64 {
        let byte = |word: u64| u8::try_from(word);
        let (Ok(t), Ok(home @ 1..), Ok(family), 0..32) =
            (byte(tid.get()), byte(home.get()), byte(family.get()), priority)
        else {
            return -EINVAL;
        };
        if self.state(t) != State::Free {
            return -EEXIST;
        }
        let base = (PRIORITIES - 1) as u8 - priority as u8;
        self.level[t as usize] = base;
        self.highest = self.highest.max(t);
        self.result[t as usize] = 0;
        self.doomed.set(t, false);
        self.promises[t as usize] = 0;
        let slice_end = self.crowds.join(t, if family == 0 { home } else { family });
        self.records[t as usize] =
            Record { ran: 0, slice_end, switches: 0, sem: FREE, home, base, deadline: 0 };
        t.into()
    }

    /// A new thread becomes ready. 0, `-EINVAL`: argument out of range, `-EEXIST`: the thread is in use.
    pub fn thread_start(
        &mut self,
        tid: ThreadId,
        priority: u64,
        home: Asid,
        family: Asid,
        now: u64,
    ) -> Decision {
        let me = self.begin();
        let error = match self.claim(tid, priority, home, family) {
            t @ 0.. => {
                self.make_ready(t as u8);
                0
            }
            error => error,
        };
        self.decide(me, error, now)
    }

    /// The running thread ends, and the reaper hears of it. Returns only to the last ready thread, and to who
    /// serves a `client`'s call, which must come to its end: the thread is the client's (`-EPERM`).
    pub fn thread_exit(&mut self, words: &Words, client: Asid, now: u64) -> Decision {
        let me = self.begin();
        if client != Asid(0) || self.is_last() {
            return self.decide(me, -EPERM, now);
        }
        self.stop_being_ready(me);
        // No domain's call ends this.
        self.set_waiting(me, EXITED, Asid(u64::MAX));
        self.attention -= u16::from(self.doomed.set(me, false));
        self.forget_deadline(me);
        if self.any_exited {
            self.exited.push_back(&mut self.links, me);
        } else {
            (self.exited, self.any_exited) = (Queue::of(me), true);
        }
        self.notify(words, self.reaper);
        self.decide(me, 0, now)
    }

    /// A thread that has exited, the first one first; its number is free from now on.
    pub fn reap(&mut self) -> Option<ThreadId> {
        if !self.any_exited {
            return None;
        }
        let t = self.exited.head;
        if self.exited.is_single() {
            self.any_exited = false;
        } else {
            self.exited.drop_head(&self.links);
        }
        self.records[t as usize].sem = FREE;
        Some(u16::from(t).into())
    }

    /// 0, `-EINVAL`: no such priority, `-ESRCH`: no such thread. A ready or waiting thread goes behind those
    /// of its new priority, the running one before them.
    pub fn set_priority(&mut self, words: &Words, tid: ThreadId, priority: u64, now: u64) -> Decision {
        let me = self.begin();
        let error = match (self.thread(tid), priority) {
            (Some(t), 0..32) => {
                self.rebase(words, t, (PRIORITIES - 1) as u8 - priority as u8);
                0
            }
            (None, 0..32) => -ESRCH,
            _ => -EINVAL,
        };
        self.decide(me, error, now)
    }

    fn rebase(&mut self, words: &Words, t: u8, base: u8) {
        self.records[t as usize].base = base;
        self.relevel(words, t, self.proper_level(t));
    }

    /// Changes the level of a thread, and its place in the queue that it is in.
    pub(crate) fn relevel(&mut self, words: &Words, t: u8, level: u8) {
        self.long = true;
        let old = self.level[t as usize];
        match self.state(t) {
            State::Ready => {
                self.leave_ready(t, old);
                self.level[t as usize] = level;
                self.queue_ready(t, t == self.current.head);
            }
            State::Waiting(sem) => {
                self.unqueue(words, sem, t);
                self.level[t as usize] = level;
                self.enqueue(words, sem, t);
            }
            State::Stack(domain) => {
                self.unqueue_for_stack(domain, t);
                self.level[t as usize] = level;
                self.queue_for_stack(domain, t);
            }
            State::Sleeping | State::Parked | State::Held | State::Exited | State::Free => {
                self.level[t as usize] = level;
            }
        }
    }

    /// The domain is dying, or dead and its portals are closed. Every wait or sleep called from it ends now
    /// with `-EINTR`, and so does every sleep and interruptible wait of a thread whose home it is; such a
    /// thread may begin no other, and is raised to the caller's priority, so that it finds its way out soon.
    /// Who waits for a stack of the domain's, or for it to wake them, calls again.
    ///
    /// It is done thread by thread, and this call does a part, beginning at thread `from`. It returns where
    /// the next call is to begin; 0: all is done; `-EINVAL`: no such domain.
    pub fn domain_abort(&mut self, words: &Words, asid: Asid, from: ThreadId, now: u64) -> Decision {
        let me = self.begin();
        let Ok(asid) = u8::try_from(asid.get()) else { return self.decide(me, -EINVAL, now) };
        // Not a level that it is lent.
        let level = self.records[me as usize].base;
        self.wake(now);
        if from == ThreadId(0) {
            self.end_share(asid);
            self.stacks.has_locks(asid, false);
        }
        let next = self.some_threads(from, |s, t| s.abort(words, t, asid, level));
        if next == 0 {
            self.abandon_stacks(asid);
        }
        self.conclude(me, next, now)
    }

    /// Whether there was anything to do.
    fn abort(&mut self, words: &Words, t: u8, asid: u8, level: u8) -> bool {
        let woken = self.keep_promise(asid, t);
        let (at_home, called) = (self.records[t as usize].home == asid, self.caller[t as usize] == asid);
        let waits = self.records[t as usize].sem == STACKS | u16::from(asid);
        if !at_home && !called && !waits || matches!(self.state(t), State::Free | State::Exited) {
            return woken;
        }
        if at_home {
            self.attention += u16::from(!self.doomed.set(t, true));
            if self.records[t as usize].base > level {
                self.rebase(words, t, level);
            }
        }
        if waits {
            // An heir would stand back, into a line from which nobody takes it again.
            self.disinherit(t);
        }
        if at_home || called || self.state(t) == State::Stack(asid) {
            self.cut_short(words, t, called);
        }
        true
    }

    /// Does it for threads from this one on, until something was done for one, or for [`AT_A_TIME`]. Where to
    /// go on; 0: that was the last.
    fn some_threads(&mut self, from: ThreadId, mut work: impl FnMut(&mut Self, u8) -> bool) -> i64 {
        let all = usize::from(self.highest) + 1;
        let from = from.get().min(all as u64) as usize;
        let end = (from + AT_A_TIME).min(all);
        let next = (from..end).find(|t| work(self, *t as u8)).map_or(end, |t| t + 1);
        if next < all { next as i64 } else { 0 }
    }

    /// The dying domain's threads have had their turn at the priority of
    /// [`domain_abort`](Self::domain_abort)'s caller. One that is still somewhere, in the server of somebody
    /// who does not let it go, has this priority from now on. In parts, as that; `-EINVAL`: no such domain or
    /// priority.
    pub fn domain_calm(
        &mut self,
        words: &Words,
        asid: Asid,
        priority: u64,
        from: ThreadId,
        now: u64,
    ) -> Decision {
        let me = self.begin();
        let (Ok(asid), 0..32) = (u8::try_from(asid.get()), priority) else {
            return self.decide(me, -EINVAL, now);
        };
        let next = self.some_threads(from, |s, t| {
            let there = !matches!(s.state(t), State::Free | State::Exited);
            let wanted = there && s.doomed.has(t) && s.records[t as usize].home == asid;
            if wanted {
                s.rebase(words, t, (PRIORITIES - 1) as u8 - priority as u8);
            }
            wanted
        });
        self.decide(me, next, now)
    }

    /// Ends the sleep or wait of one thread with `-EINTR`, if it has not ended meanwhile, and is
    /// interruptible or `any` wait may be. 0 whether there was any, or `-ESRCH`: no such thread.
    pub fn thread_abort(&mut self, words: &Words, tid: ThreadId, any: bool, now: u64) -> Decision {
        let me = self.begin();
        self.wake(now);
        let error = match self.thread(tid) {
            Some(t) => {
                self.cut_short(words, t, any);
                0
            }
            None => -ESRCH,
        };
        self.conclude(me, error, now)
    }

    /// Ends what `t` waits for, if it may be ended: any sleep, and a wait that is interruptible, or of which
    /// the caller is gone.
    fn cut_short(&mut self, words: &Words, t: u8, gone: bool) {
        match self.state(t) {
            State::Waiting(sem) if gone || self.semaphores.all[sem].interruptible() => {
                self.unqueue(words, sem, t);
            }
            State::Sleeping => self.sleepers.remove(&mut self.later, t),
            State::Held => return self.release(t),
            State::Parked => self.promises[t as usize] = 0,
            // It calls again, from where it is.
            State::Stack(domain) => {
                self.unqueue_for_stack(domain, t);
                return self.make_ready(t);
            }
            _ => return,
        }
        self.set_result(t, INTERRUPTED);
        self.make_ready(t);
    }

    /// `None`: no such number.
    pub fn thread_info(&self, tid: ThreadId, now: u64) -> Option<ThreadInfo> {
        let t = u8::try_from(tid.get()).ok()?;
        let record = &self.records[t as usize];
        let runs = t == self.current.head;
        let state = match self.state(t) {
            State::Ready if runs => ThreadState::Running,
            State::Ready => ThreadState::Ready,
            State::Waiting(sem) => ThreadState::Waiting(sem as u16),
            State::Stack(domain) => ThreadState::Stack(u16::from(domain).into()),
            State::Sleeping => ThreadState::Sleeping,
            State::Held => ThreadState::Held,
            State::Parked => ThreadState::Parked,
            State::Exited => ThreadState::Exited,
            State::Free => ThreadState::Free,
        };
        Some(ThreadInfo {
            state,
            priority: (PRIORITIES - 1) as u8 - record.base,
            home: u16::from(record.home).into(),
            ran: if runs { self.ran(now) } else { record.ran },
            switches: record.switches,
        })
    }
}

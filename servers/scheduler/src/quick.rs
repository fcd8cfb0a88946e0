//! The quick ways: what happens all the time, when all is as usual. `None`, and nothing has changed, when it
//! is not.
//!
//! Where deadlines count, nothing quick happens at level 0, which is theirs.
//!
//! A *late* way does the same for an entry that finds a sleeper due ([`Scheduler::is_late`]), the only one
//! there is, more urgent than the running thread: it runs at once. As after a quick tick, the timer must then
//! be silenced: set to [`NEVER`].

use crate::*;

impl<const EDF: bool> Scheduler<EDF> {
    /// The decision for the thread that is the running one now.
    #[inline(always)]
    pub const fn switch(&self) -> Decision {
        Decision { thread: self.current.head as u64, value: 0 }
    }

    /// As [`yield_now`](Self::yield_now).
    #[inline(always)]
    pub fn quick_yield(&mut self, now: u64) -> Option<Decision> {
        if now >= self.alarm {
            return None;
        }
        if self.current.is_single() {
            return Some(GO_ON);
        }
        if EDF && self.top == 0 {
            return None;
        }
        let me = self.rotate();
        self.stop_ready(me, now);
        Some(self.switch())
    }

    pub fn late_yield(&mut self, now: u64) -> Option<Decision> {
        let (t, level) = self.lone_sleeper()?;
        let me = if self.current.is_single() { self.current.head } else { self.rotate() };
        self.stop_ready(me, now);
        Some(self.wake_lone(t, level))
    }

    /// The running thread goes behind its peers; there is one.
    #[inline(always)]
    fn rotate(&mut self) -> u8 {
        let me = self.current.head;
        self.current.push_back(&mut self.links, me);
        self.current.drop_head(&self.links);
        me
    }

    /// As [`p`](Self::p), for the first to wait on the semaphore.
    #[inline(always)]
    pub fn quick_p(&mut self, words: &Words, sem: u64, caller: Asid, now: u64) -> Option<Decision> {
        if now >= self.alarm {
            return None;
        }
        let (me, next) = self.block(words, sem, caller)?;
        self.stop(me, now);
        Some(Decision { thread: next.into(), value: 0 })
    }

    pub fn late_p(&mut self, words: &Words, sem: u64, caller: Asid, now: u64) -> Option<Decision> {
        let (t, level) = self.lone_sleeper()?;
        let (me, _) = self.block(words, sem, caller)?;
        self.stop(me, now);
        Some(self.wake_lone(t, level))
    }

    /// The running thread leaves `current`, and waits. It, and the head that follows it.
    #[inline(always)]
    fn block(&mut self, words: &Words, sem: u64, caller: Asid) -> Option<(u8, u8)> {
        // Of a lock's, not here: somebody less urgent may hold it.
        let word = words[..FIRST_LOCK].get(sem as usize)?;
        if word.load(Relaxed) != 0 || EDF && self.top == 0 {
            return None;
        }
        let me = self.current.head;
        let mut next = self.links.next[me as usize];
        if self.current.is_single() {
            let rest = self.ready & self.ready.wrapping_sub(1);
            let top = rest.trailing_zeros() as u8;
            let queue = *self.queue(top);
            // No other is ready, or a slice begins.
            if rest == 0 || !queue.is_single() && !self.slicing {
                return None;
            }
            next = queue.head;
            (self.ready, self.top, self.current.tail) = (rest, top, queue.tail);
        }
        self.current.head = next;
        word.store(-1, Relaxed);
        self.tails[sem as usize] = me;
        self.set_waiting(me, sem as u16, caller);
        Some((me, next))
    }

    /// As [`v`](Self::v), for a semaphore with one waiter.
    #[inline(always)]
    pub fn quick_v(&mut self, words: &Words, sem: u64, now: u64) -> Option<Decision> {
        if now >= self.alarm {
            return None;
        }
        let (word, t, level) = self.one_waiter(words, sem)?;
        if level == self.top {
            // A slice begins.
            if !self.slicing {
                return None;
            }
            word.store(0, Relaxed);
            self.caller[t as usize] = NOBODY;
            self.current.push_back(&mut self.links, t);
            return Some(GO_ON);
        }
        word.store(0, Relaxed);
        if level < self.top {
            self.stop_ready(self.current.head, now);
            return Some(self.preempt(t, level));
        }
        self.queue_ready(t, false);
        Some(GO_ON)
    }

    pub fn late_v(&mut self, words: &Words, sem: u64, now: u64) -> Option<Decision> {
        let (sleeper, urgent) = self.lone_sleeper()?;
        let (word, t, level) = self.one_waiter(words, sem)?;
        if level < self.top {
            return None;
        }
        word.store(0, Relaxed);
        if level == self.top {
            self.caller[t as usize] = NOBODY;
            self.current.push_back(&mut self.links, t);
        } else {
            self.queue_ready(t, false);
        }
        self.stop_ready(self.current.head, now);
        Some(self.wake_lone(sleeper, urgent))
    }

    /// The word, the waiter, and its level.
    #[inline(always)]
    fn one_waiter<'a>(&self, words: &'a Words, sem: u64) -> Option<(&'a AtomicI64, u8, u8)> {
        let word = words.get(sem as usize)?;
        if word.load(Relaxed) != -1 {
            return None;
        }
        let t = self.tails[sem as usize];
        let level = self.usual_level(t);
        if EDF && level == 0 {
            return None;
        }
        Some((word, t, level))
    }

    /// As [`tick`](Self::tick), for the only sleeper, when it is more urgent than the running thread.
    #[inline(always)]
    pub fn quick_tick(&mut self, now: u64) -> Option<Decision> {
        let (t, level) = self.is_late(now).then(|| self.lone_sleeper())??;
        if !self.current.is_single() && self.slice_is_over(now) {
            return None;
        }
        self.stop_ready(self.current.head, now);
        Some(self.wake_lone(t, level))
    }

    /// Is a sleeper due, and nothing else wants attention? Only then a late way may be tried.
    #[inline(always)]
    pub const fn is_late(&self, now: u64) -> bool {
        self.alarm != 0 && now >= self.alarm
    }

    /// The only sleeper, which is due, and its level, if that is more urgent than the running thread's.
    #[inline(always)]
    fn lone_sleeper(&self) -> Option<(u8, u8)> {
        let t = self.sleepers.only()?;
        let level = self.usual_level(t);
        (level < self.top && !(EDF && level == 0)).then_some((t, level))
    }

    /// The thread's level, when all is as usual: without deadlines it is `base`, which is nearer.
    #[inline(always)]
    fn usual_level(&self, t: u8) -> u8 {
        if EDF { self.level[t as usize] } else { self.records[t as usize].base }
    }

    #[inline(always)]
    fn wake_lone(&mut self, t: u8, level: u8) -> Decision {
        self.sleepers.clear();
        self.alarm = NEVER;
        self.armed = NEVER;
        self.slicing = false;
        self.preempt(t, level)
    }

    /// Lets `t` run, whose level is more urgent than all that are ready.
    #[inline(always)]
    fn preempt(&mut self, t: u8, level: u8) -> Decision {
        self.begin();
        self.caller[t as usize] = NOBODY;
        self.ready |= 1 << (level % 32);
        self.top = level;
        self.current = Queue::of(t);
        self.switch()
    }
}

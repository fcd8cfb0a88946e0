//! The model: what the scheduler is meant to do, said as plainly as possible.

use pebble_abi::errno::*;
use pebble_abi::scheduler::PROGRAMS;
use pebble_scheduler::{LATEST, NEVER, SHORTEST, SLICE, WAKES};
use std::collections::{BTreeMap, VecDeque};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Ready,
    Sleeping(u64),
    Waiting(usize),
    Parked,
    Exited,
}

#[derive(Debug)]
pub struct Thread {
    pub priority: u8,
    pub home: u8,
    pub state: State,
    pub ran: u64,
    pub switches: u32,
    caller: u8,
    doomed: bool,
    result: i64,
    slice_end: u64,
    /// Slices of its home that had ended when its own last one did.
    seen: u64,
    promise: Promise,
    /// It went to sleep with more urgency than programs have.
    urgent: bool,
}

/// What the thread has been told about the next time that it parks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Promise {
    Nothing,
    By(u8),
    Kept,
}

#[derive(Debug)]
pub struct Semaphore {
    pub value: i64,
    pub waiters: Vec<usize>,
    pub owner: u8,
    /// Being freed: nobody finds it, but some wait for it.
    pub ending: bool,
    interruptible: bool,
}

/// Threads at which one part of an abort looks.
const PART: usize = 8;

pub struct Model {
    pub threads: BTreeMap<usize, Thread>,
    pub semaphores: BTreeMap<usize, Semaphore>,
    pub running: usize,
    pub since: u64,
    /// What the thread that runs now got from the last call.
    pub answer: Option<i64>,
    /// Every ready thread, in the order of its turn within its priority.
    ready: Vec<usize>,
    exited: VecDeque<usize>,
    reaper: usize,
    /// No thread has had a higher number.
    highest: usize,
    /// Slices that have ended, of each home.
    ended: BTreeMap<u8, u64>,
}

impl Model {
    pub fn new(running: usize, reaper: usize, now: u64) -> Self {
        Self {
            threads: BTreeMap::new(),
            semaphores: BTreeMap::new(),
            running,
            since: now,
            answer: None,
            ready: Vec::new(),
            exited: VecDeque::new(),
            reaper,
            highest: 0,
            ended: BTreeMap::new(),
        }
    }

    pub fn add(&mut self, tid: usize, priority: u8, home: u8, slice_end: u64) {
        let state = State::Ready;
        let (ran, switches, caller, doomed, result) = (0, 0, 0, false, 0);
        let (seen, promise) = (self.ended.get(&home).copied().unwrap_or(0), Promise::Nothing);
        let thread = Thread {
            priority,
            home,
            state,
            ran,
            switches,
            caller,
            doomed,
            result,
            slice_end,
            seen,
            promise,
            urgent: false,
        };
        assert!(self.threads.insert(tid, thread).is_none());
        self.highest = self.highest.max(tid);
        self.ready.push(tid);
    }

    pub fn add_semaphore(&mut self, id: usize, value: i64, owner: u8, interruptible: bool) {
        let semaphore = Semaphore { value, waiters: Vec::new(), owner, ending: false, interruptible };
        assert!(self.semaphores.insert(id, semaphore).is_none(), "semaphore {id} given twice");
    }

    pub fn semaphore(&mut self, sem: u64) -> Option<&mut Semaphore> {
        self.semaphores.get_mut(&(sem as usize))
    }

    fn thread(&mut self, tid: usize) -> &mut Thread {
        self.threads.get_mut(&tid).unwrap()
    }

    fn priority(&self, tid: usize) -> u8 {
        self.threads[&tid].priority
    }

    /// The first among the most urgent ready threads.
    pub fn most_urgent(&self) -> usize {
        let top = self.ready.iter().map(|t| self.priority(*t)).max().unwrap();
        *self.ready.iter().find(|t| self.priority(**t) == top).unwrap()
    }

    fn peers(&self) -> Vec<usize> {
        let mine = self.priority(self.running);
        self.ready.iter().copied().filter(|t| self.priority(*t) == mine && *t != self.running).collect()
    }

    fn make_ready(&mut self, tid: usize) {
        self.thread(tid).state = State::Ready;
        self.ready.push(tid);
    }

    /// False if nobody else is ready.
    fn leave(&mut self, state: State, caller: u8) -> bool {
        let me = self.running;
        if self.ready.len() == 1 {
            self.thread(me).result = -EPERM;
            return false;
        }
        self.ready.retain(|t| *t != me);
        self.thread(me).state = state;
        self.thread(me).caller = caller;
        true
    }

    fn end_turn(&mut self, tid: usize) {
        self.ready.retain(|t| *t != tid);
        self.ready.push(tid);
    }

    fn switch(&mut self, tid: usize, now: u64) {
        if tid != self.running {
            let ran = now - self.since;
            let me = self.running;
            self.thread(me).ran += ran;
            self.thread(me).switches += u32::from(self.threads[&me].state == State::Ready);
            (self.running, self.since) = (tid, now);
        }
    }

    fn wake_due(&mut self, now: u64) {
        for _ in 0..WAKES {
            let busy = self.priority(self.most_urgent()) >= PROGRAMS;
            let urgent = |tid: &usize| self.threads[tid].urgent;
            let due =
                self.sleepers().into_iter().filter(|(until, tid)| *until <= now && (urgent(tid) || !busy));
            let Some((_, tid)) = due.min_by_key(|(until, tid)| (!urgent(tid), *until, *tid)) else { break };
            self.make_ready(tid);
        }
    }

    fn sleepers(&self) -> Vec<(u64, usize)> {
        let until = |(tid, t): (&usize, &Thread)| match t.state {
            State::Sleeping(until) => Some((until.min(LATEST), *tid)),
            _ => None,
        };
        self.threads.iter().filter_map(until).collect()
    }

    /// The end of each call.
    fn decide(&mut self, now: u64) {
        self.wake_due(now);
        self.conclude(now);
    }

    fn conclude(&mut self, now: u64) {
        self.switch(self.most_urgent(), now);
        let me = self.running;
        self.answer = Some(std::mem::take(&mut self.thread(me).result));
    }

    fn fail(&mut self, error: Errno, now: u64) {
        let me = self.running;
        self.thread(me).result = -error;
        self.decide(now);
    }

    pub fn yield_now(&mut self, now: u64) {
        self.end_turn(self.running);
        self.decide(now);
    }

    pub fn sleep(&mut self, until: u64, caller: u8, now: u64) {
        if self.threads[&self.running].doomed {
            return self.fail(EINTR, now);
        }
        if until > now {
            let me = self.running;
            let urgent = self.threads[&me].priority >= PROGRAMS;
            self.thread(me).urgent = urgent;
            self.leave(State::Sleeping(until), caller);
        }
        self.decide(now);
    }

    pub fn p(&mut self, sem: u64, caller: u8, now: u64) {
        let me = self.running;
        let doomed = self.threads[&me].doomed;
        let Some(semaphore) = self.semaphore(sem).filter(|sem| !sem.ending) else {
            return self.fail(EINVAL, now);
        };
        if semaphore.value > 0 {
            semaphore.value -= 1;
        } else if doomed && semaphore.interruptible {
            return self.fail(EINTR, now);
        } else if self.leave(State::Waiting(sem as usize), caller) {
            self.semaphore(sem).unwrap().value -= 1;
            self.enqueue(sem as usize, me);
        }
        self.decide(now);
    }

    fn enqueue(&mut self, sem: usize, tid: usize) {
        let priority = self.priority(tid);
        let waiters = &self.semaphores[&sem].waiters;
        let at = waiters.iter().position(|t| self.priority(*t) < priority).unwrap_or(waiters.len());
        self.semaphores.get_mut(&sem).unwrap().waiters.insert(at, tid);
    }

    fn signal(&mut self, sem: usize) -> Result<(), Errno> {
        let semaphore = self.semaphores.get_mut(&sem).filter(|sem| !sem.ending).ok_or(EINVAL)?;
        semaphore.value += 1;
        if !semaphore.waiters.is_empty() {
            let tid = semaphore.waiters.remove(0);
            self.make_ready(tid);
        }
        Ok(())
    }

    pub fn v(&mut self, sem: u64, now: u64) {
        match self.signal(sem as usize) {
            Ok(()) => self.decide(now),
            Err(error) => self.fail(error, now),
        }
    }

    pub fn will_wake(&mut self, server: u8) -> i64 {
        let me = self.running;
        self.thread(me).promise = Promise::By(server);
        me as i64
    }

    pub fn park(&mut self, caller: u8, now: u64) {
        let me = self.running;
        match self.threads[&me] {
            Thread { promise: Promise::By(_), doomed: true, .. } => return self.fail(EINTR, now),
            Thread { promise: Promise::By(_), .. } => _ = self.leave(State::Parked, caller),
            _ => self.thread(me).promise = Promise::Nothing,
        }
        self.decide(now);
    }

    pub fn unpark(&mut self, server: u8, tid: u64, now: u64) {
        if self.threads.get(&(tid as usize)).is_some_and(|t| t.state != State::Exited) {
            self.keep(server, tid as usize);
        }
        self.decide(now);
    }

    /// Whether it was parked.
    fn keep(&mut self, server: u8, tid: usize) -> bool {
        let thread = self.thread(tid);
        if thread.promise != Promise::By(server) {
            return false;
        }
        let parked = thread.state == State::Parked;
        thread.promise = if parked { Promise::Nothing } else { Promise::Kept };
        if parked {
            self.make_ready(tid);
        }
        parked
    }

    /// A slice has ended. The next is shared with all of the home's that have ended since the thread's own
    /// last one.
    fn next_slice(&mut self, tid: usize) -> u64 {
        let ended = self.ended.entry(self.threads[&tid].home).or_default();
        *ended += 1;
        let since = *ended - std::mem::replace(&mut self.threads.get_mut(&tid).unwrap().seen, *ended);
        SLICE / since.clamp(1, SLICE / SHORTEST)
    }

    pub fn tick(&mut self, now: u64) {
        self.wake_due(now);
        let me = self.running;
        let ran = self.threads[&me].ran + now - self.since;
        if let Some(next) = self.peers().first()
            && ran >= self.threads[&me].slice_end
        {
            self.thread(me).slice_end = ran + self.next_slice(me);
            self.end_turn(me);
            let ran = self.threads[next].ran;
            if ran >= self.threads[next].slice_end {
                self.thread(*next).slice_end = ran + self.next_slice(*next);
            }
        }
        self.conclude(now);
    }

    pub fn start(&mut self, tid: u64, priority: u64, home: u64, now: u64) {
        if tid > 255 || priority > 31 || home > 255 {
            self.fail(EINVAL, now)
        } else if self.threads.contains_key(&(tid as usize)) {
            self.fail(EEXIST, now)
        } else {
            self.add(tid as usize, priority as u8, home as u8, SHORTEST);
            self.decide(now)
        }
    }

    pub fn exit(&mut self, now: u64) {
        let me = self.running;
        if self.leave(State::Exited, 0) {
            self.exited.push_back(me);
            let _ = self.signal(self.reaper);
        }
        self.decide(now);
    }

    pub fn reap(&mut self) -> Option<usize> {
        let tid = self.exited.pop_front()?;
        self.threads.remove(&tid);
        Some(tid)
    }

    fn change_priority(&mut self, tid: usize, priority: u8) {
        self.thread(tid).priority = priority;
        match self.threads[&tid].state {
            State::Ready if tid == self.running => {
                self.ready.retain(|t| *t != tid);
                self.ready.insert(0, tid);
            }
            State::Ready => self.end_turn(tid),
            State::Waiting(sem) => {
                self.semaphores.get_mut(&sem).unwrap().waiters.retain(|t| *t != tid);
                self.enqueue(sem, tid);
            }
            State::Sleeping(_) | State::Parked | State::Exited => {}
        }
    }

    pub fn set_priority(&mut self, tid: u64, priority: u64, now: u64) {
        let tid = tid as usize;
        if priority > 31 {
            return self.fail(EINVAL, now);
        }
        if self.threads.get(&tid).is_none_or(|t| t.state == State::Exited) {
            return self.fail(ESRCH, now);
        }
        self.change_priority(tid, priority as u8);
        self.decide(now);
    }

    /// Does it for the first thread from this one on that it concerns, if there is one among the next few.
    /// Where to go on; 0: that was the last.
    fn part(&mut self, from: usize, mut work: impl FnMut(&mut Self, usize) -> bool) -> usize {
        let all = self.highest + 1;
        let end = (from + PART).min(all);
        let last = (from..end).find(|tid| self.threads.contains_key(tid) && work(self, *tid));
        let next = last.map_or(end, |tid| tid + 1);
        if next < all { next } else { 0 }
    }

    /// The answer, too.
    fn goes_on(&mut self, next: usize, now: u64) -> usize {
        let me = self.running;
        self.thread(me).result = next as i64;
        self.conclude(now);
        next
    }

    pub fn calm(&mut self, asid: u64, priority: u64, from: usize, now: u64) -> usize {
        let (Ok(asid), 0..32) = (u8::try_from(asid), priority) else {
            self.fail(EINVAL, now);
            return 0;
        };
        let next = self.part(from, |model, tid| {
            let thread = &model.threads[&tid];
            let wanted = thread.state != State::Exited && thread.doomed && thread.home == asid;
            if wanted {
                model.change_priority(tid, priority as u8);
            }
            wanted
        });
        self.wake_due(now);
        self.goes_on(next, now)
    }

    pub fn abort(&mut self, asid: u64, from: usize, now: u64) -> usize {
        let Ok(asid) = u8::try_from(asid) else {
            self.fail(EINVAL, now);
            return 0;
        };
        let priority = self.priority(self.running);
        self.wake_due(now);
        let next = self.part(from, |model, tid| model.abort_one(asid, tid, priority));
        self.goes_on(next, now)
    }

    fn abort_one(&mut self, asid: u8, tid: usize, priority: u8) -> bool {
        let woken = self.keep(asid, tid);
        let thread = self.thread(tid);
        let blocked = matches!(thread.state, State::Waiting(_) | State::Sleeping(_) | State::Parked);
        let (at_home, called) = (thread.home == asid, thread.caller == asid && blocked);
        if thread.state == State::Exited || !at_home && !called {
            return woken;
        }
        if at_home {
            thread.doomed = true;
            if thread.priority < priority {
                self.change_priority(tid, priority);
            }
        }
        match self.threads[&tid].state {
            State::Waiting(sem) => {
                let semaphore = self.semaphores.get_mut(&sem).unwrap();
                if !(called || at_home && semaphore.interruptible) {
                    return true;
                }
                semaphore.waiters.retain(|t| *t != tid);
                semaphore.value += 1;
            }
            State::Sleeping(_) => {}
            State::Parked => self.thread(tid).promise = Promise::Nothing,
            _ => return true,
        }
        self.thread(tid).result = -EINTR;
        self.make_ready(tid);
        true
    }

    pub fn thread_abort(&mut self, tid: u64, any: bool, now: u64) {
        self.wake_due(now);
        let tid = tid as usize;
        let Some(thread) = self.threads.get(&tid).filter(|t| t.state != State::Exited) else {
            let me = self.running;
            self.thread(me).result = -ESRCH;
            return self.conclude(now);
        };
        match thread.state {
            State::Waiting(sem) if any || self.semaphores[&sem].interruptible => {
                let semaphore = self.semaphores.get_mut(&sem).unwrap();
                semaphore.waiters.retain(|t| *t != tid);
                semaphore.value += 1;
            }
            State::Sleeping(_) => {}
            State::Parked => self.thread(tid).promise = Promise::Nothing,
            _ => return self.conclude(now),
        }
        self.thread(tid).result = -EINTR;
        self.make_ready(tid);
        self.conclude(now);
    }

    pub fn assert_nothing_blocked(&self, asid: u64) {
        for (tid, thread) in &self.threads {
            let called = u64::from(thread.caller) == asid;
            let at_home = u64::from(thread.home) == asid;
            match thread.state {
                State::Sleeping(_) => assert!(!called && !at_home, "{tid} sleeps"),
                State::Parked => {
                    assert!(!called && !at_home, "{tid} is parked");
                    assert_ne!(thread.promise, Promise::By(asid as u8), "nobody will wake {tid}");
                }
                State::Waiting(sem) => {
                    assert!(!(called || at_home && self.semaphores[&sem].interruptible), "{tid} waits")
                }
                State::Ready | State::Exited => {}
            }
        }
    }

    pub fn free(&mut self, sem: u64, now: u64) {
        let sem = sem as usize;
        if !self.semaphores.contains_key(&sem) {
            return self.fail(EINVAL, now);
        }
        if sem == self.reaper {
            return self.fail(EPERM, now);
        }
        let semaphore = self.semaphores.get_mut(&sem).unwrap();
        semaphore.ending = true;
        if !semaphore.waiters.is_empty() {
            let tid = semaphore.waiters.remove(0);
            semaphore.value += 1;
            let others = !semaphore.waiters.is_empty();
            self.thread(tid).result = -EINVAL;
            self.make_ready(tid);
            if others {
                let me = self.running;
                self.thread(me).result = 1;
                return self.decide(now);
            }
        }
        self.semaphores.remove(&sem);
        self.decide(now);
    }

    /// While a thread runs that is more urgent than programs are, and one of theirs is due, the next that
    /// runs wakes theirs.
    fn first_due(&self, now: u64) -> u64 {
        let first = |urgent| {
            let of = self.sleepers().into_iter().filter(|(_, tid)| self.threads[tid].urgent == urgent);
            of.map(|(until, _)| until).min().unwrap_or(NEVER)
        };
        let busy = self.priority(self.running) >= PROGRAMS;
        if busy && first(false) <= now { first(true) } else { first(true).min(first(false)) }
    }

    /// The time for which the timer is set if it is set now.
    pub fn timer_wanted(&self, now: u64) -> u64 {
        let me = &self.threads[&self.running];
        let slice = if self.peers().is_empty() { NEVER } else { self.since + me.slice_end - me.ran };
        slice.min(self.first_due(now))
    }

    /// No sleeper is due before the timer, and no turn lasts longer than a slice while a peer is ready.
    pub fn assert_timer(&self, timer: u64, now: u64) {
        assert!(timer <= self.first_due(now), "timer {timer} after {}", self.first_due(now));
        assert!(self.peers().is_empty() || timer <= now + SLICE, "no slice: {timer} at {now}");
    }
}

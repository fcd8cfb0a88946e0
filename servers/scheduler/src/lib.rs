//! The scheduler: which thread runs next.
//!
//! **Problem.** Every switch of threads, every wait and every wake-up passes through here, with interrupts off,
//! so each path must be a short, bounded number of instructions that does not grow with the number of threads.
//!
//! **Strategy.** This crate is pure logic over flat arrays indexed by thread; it switches nothing itself. Each
//! entry returns a [`Decision`]: go on with the caller, or invoke the switch portal. Every queue is a
//! [`Ring`]: circular, singly linked, known by its tail, linked through one byte a thread. The running
//! thread stays in the ring of its priority, as the head. Hence "yield" is one store (the head becomes the
//! tail), and a preempted thread is where it should be: at the head. A bitmap of non-empty rings finds the
//! next priority when a ring runs empty. Sleepers are a heap.
//!
//! Hot paths know nothing of what is rare. They end with one comparison, of the time with the *alarm*: the time
//! when the first sleeper is due, or 0 when something else wants attention (a result to deliver, a slice to
//! start). When it has come, the decision is made again with everything in view (`Scheduler::decide`).
//!
//! Inside, priorities are *levels*, 0 the most urgent, so that the lowest set bit is what is looked for.
//!
//! **Invariants**, at the end of every entry:
//! * a thread that is not free is in one place: a ready ring, one semaphore's ring, the sleepers, or the exited ring;
//! * the running thread is the head of the most urgent ready ring;
//! * a ready bit is set if and only if its ring is not empty, and some ring is not: the last ready thread may not wait;
//! * a semaphore has waiters only while its word is negative, and then `-word` of them, in order of priority,
//!   then of arrival; a free semaphore's word is [`FREED`], so both fast paths of its portals come here and fail;
//! * the timer is due no later than the first sleeper, and within a slice when the running thread has a ready peer.
//!
//! **Time slices.** A slice is run time, not real time: it ends at a tick that finds the thread to have run
//! [`SLICE`] since its last slice ended, however often it was preempted meanwhile. No turn is longer than that
//! while a peer is ready.
//!
//! # Entries of the component
//!
//! | interface | arguments | method |
//! |---|---|---|
//! | `scheduler.yield` | – | [`yield_now(now)`](Scheduler::yield_now) |
//! | `scheduler.sleep` | caller's domain; until | [`sleep(until, caller, now)`](Scheduler::sleep) |
//! | `scheduler.stack_wait` | – | `sleep`, for a while, with no caller's domain (0) |
//! | `scheduler.p` | semaphore; caller's domain | [`p(words, sem, caller, now)`](Scheduler::p) |
//! | `scheduler.v`, `scheduler.irq` | semaphore | [`v(words, sem, now)`](Scheduler::v) |
//! | `scheduler.tick` | – | [`tick(now)`](Scheduler::tick) |
//! | `scheduler.thread_start` | thread, priority, home | [`thread_start(tid, priority, home, now)`](Scheduler::thread_start) |
//! | `scheduler.thread_exit` | – | [`thread_exit(words, now)`](Scheduler::thread_exit) |
//! | `scheduler.priority` | thread, priority | [`set_priority(tid, priority, now)`](Scheduler::set_priority) |
//! | `scheduler.domain_abort` | domain | [`domain_abort(words, asid, now)`](Scheduler::domain_abort) |
//! | `scheduler.sem_alloc` | initial, owner, interruptible | [`sem_alloc(words, ..)`](Scheduler::sem_alloc): number or error |
//! | `scheduler.sem_free` | semaphore | [`sem_free(words, sem, now)`](Scheduler::sem_free) |
//! | `scheduler.sem_info` | semaphore | [`sem_info(words, sem)`](Scheduler::sem_info) |
//! | `scheduler.thread_info` | thread | [`thread_info(tid, now)`](Scheduler::thread_info) |
//! | `scheduler.reap` | – | [`reap()`](Scheduler::reap): thread or -1 |
//!
//! After each entry that returns a [`Decision`] the component asks [`timer()`](Scheduler::timer) and programs the
//! timer if the answer is a time; then it returns `value` if `thread` is [`STAY`] (negative as a signed
//! word), and invokes the switch portal with both words otherwise.
//!
//! The calling thread is not an argument: on one processor it is the running one, which is known here.
#![no_std]
#![forbid(unsafe_code)]

pub mod ring;
mod semaphores;
mod sleepers;
mod threads;

use core::sync::atomic::{AtomicI64, Ordering::Relaxed};
use pebble_abi::errno::{EINTR, EINVAL, EPERM};
use pebble_abi::map::{MAX_DOMAINS, MAX_SEMAPHORES, MAX_THREADS, TIME_HZ};
use ring::{Links, Ring};
use sleepers::Sleepers;

pub use semaphores::{BootSemaphore, FREED, SemInfo};
pub use sleepers::NEVER;
pub use threads::{BootThread, ThreadInfo, ThreadState};

/// Priorities are `0..PRIORITIES`, the highest number most urgent.
pub const PRIORITIES: usize = 32;
/// Ticks that a thread may run while others of its priority are ready: 10 ms.
pub const SLICE: u64 = TIME_HZ / 100;
/// [`Decision::thread`]: the caller goes on.
pub const STAY: u64 = u64::MAX;

/// The semaphore words, shared with generated code. Relaxed atomics: plain loads and stores.
pub type Words = [AtomicI64; MAX_SEMAPHORES];

// A thread is a byte here, and so is a domain.
const _: () = assert!(MAX_THREADS == 256 && MAX_DOMAINS == 256);

/// What the component does next; two registers.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The thread to switch to, or [`STAY`].
    pub thread: u64,
    /// What the pending call of that thread returns: 0 or a negative error.
    pub value: i64,
}

impl Decision {
    #[inline(always)]
    const fn stay(value: i64) -> Self {
        Self { thread: STAY, value }
    }
}

/// Where a thread is. Zero is the state that hot paths store.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In a ready ring; at its head, perhaps running.
    Ready,
    /// In the ring of semaphore `Record::sem`.
    Waiting,
    Sleeping,
    Exited,
    Free,
}

/// What hot paths touch of the running thread alone. The size makes the index a shift.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
struct Record {
    /// Ticks run, up to the last time it stopped running.
    ran: u64,
    /// The value of `ran` at which its slice ends.
    slice_end: u64,
    /// How often it stopped running.
    switches: u32,
    /// What it waits on, while it waits.
    sem: u16,
    home: u8,
    /// The domain whose call waits or sleeps.
    caller: u8,
}

/// The state of the scheduler. Large: it belongs in a `static`.
// The order keeps all that is indexed by bytes within reach of a load's immediate offset.
#[repr(C)]
pub struct Scheduler {
    /// When `exit` must take the long way: the time the first sleeper is due, or 0 for at once.
    alarm: u64,
    /// When the first sleeper is due, or [`NEVER`].
    due: u64,
    /// When the running thread began to run.
    since: u64,
    /// What the timer is set to, or will be once the component has asked.
    armed: u64,
    changed: bool,
    /// Bit of each level whose ring is not empty.
    ready: u32,
    running: u8,
    /// The timer is set to end a slice.
    slicing: bool,
    /// Threads with a `result`. While there are any, the alarm is 0.
    pending: u16,
    /// A semaphore to tell about exited threads; out of range for none.
    reaper: u16,
    /// Ready threads of each level. Only the first [`PRIORITIES`] are used; so many that a byte needs no mask.
    rings: [Ring; 256],
    next: Links,
    level: [u8; MAX_THREADS],
    place: [Place; MAX_THREADS],
    /// What its pending call will return: 0 or a negative error.
    result: [i8; MAX_THREADS],
    /// Its home was aborted: it may not begin an interruptible wait.
    doomed: [bool; MAX_THREADS],
    records: [Record; MAX_THREADS],
    semaphores: semaphores::Table,
    sleepers: Sleepers,
    exited: Ring,
}

impl Default for Scheduler {
    fn default() -> Self {
        Self::new()
    }
}

impl Scheduler {
    /// A scheduler that knows no thread yet; nothing but [`boot`](Self::boot) may follow.
    pub const fn new() -> Self {
        let record = Record { ran: 0, slice_end: SLICE, switches: 0, sem: 0, home: 0, caller: 0 };
        Self {
            alarm: NEVER,
            due: NEVER,
            since: 0,
            armed: NEVER,
            changed: false,
            ready: 0,
            running: 0,
            slicing: false,
            pending: 0,
            reaper: u16::MAX,
            rings: [Ring::EMPTY; 256],
            next: [0; MAX_THREADS],
            level: [0; MAX_THREADS],
            place: [Place::Free; MAX_THREADS],
            result: [0; MAX_THREADS],
            doomed: [false; MAX_THREADS],
            records: [record; MAX_THREADS],
            semaphores: semaphores::Table::new(),
            sleepers: Sleepers::new(),
            exited: Ring::EMPTY,
        }
    }

    /// Takes over a running system: its threads (all ready, `running` the one that calls, and one of them
    /// that will never wait), its semaphores, whose words are left as they are, and the semaphore that
    /// [`thread_exit`](Self::thread_exit) signals (out of range for none). The first entry after it decides
    /// anew, so `running` need not be the most urgent. Call it once.
    pub fn boot(
        &mut self,
        words: &Words,
        threads: impl IntoIterator<Item = BootThread>,
        semaphores: impl IntoIterator<Item = BootSemaphore>,
        running: u16,
        reaper: u16,
        now: u64,
    ) -> Result<(), i64> {
        for thread in threads {
            let t = self.claim(thread.tid.into(), thread.priority.into(), thread.home.into())?;
            if thread.tid == running {
                self.rings[self.level[t as usize] as usize].push_front(&mut self.next, t);
                self.ready |= 1 << self.level[t as usize];
            } else {
                self.make_ready(t);
            }
        }
        if running as usize >= MAX_THREADS || self.place[running as usize] == Place::Free {
            return Err(-EINVAL);
        }
        self.running = running as u8;
        self.reaper = reaper;
        self.since = now;
        self.alarm = 0;
        self.semaphores.boot(words, semaphores)
    }

    /// The time to which the timer must be set now, if that has changed; [`NEVER`] to silence it.
    #[inline(always)]
    pub fn timer(&mut self) -> Option<u64> {
        if self.changed {
            self.changed = false;
            return Some(self.armed);
        }
        None
    }

    // --- parts of the hot paths ---------------------------------------------------------------

    /// Appends a thread to the ready ring of its level.
    #[inline(always)]
    fn make_ready(&mut self, t: u8) {
        let level = self.level[t as usize];
        self.place[t as usize] = Place::Ready;
        if self.rings[level as usize].push_back(&mut self.next, t) {
            self.ready |= 1u32.wrapping_shl(level.into());
        }
    }

    /// Takes the running thread, `me`, out of the ready rings and names the thread to run instead.
    /// `None`, and nothing has changed, if no other is ready.
    #[inline(always)]
    fn leave(&mut self, me: u8) -> Option<u8> {
        let ring = &mut self.rings[self.level[me as usize] as usize];
        if let Some(head) = ring.drop_head(&mut self.next, me) {
            return Some(head);
        }
        let rest = self.ready & self.ready.wrapping_sub(1);
        if rest == 0 {
            return None;
        }
        ring.clear();
        self.ready = rest;
        let head = self.most_urgent();
        if self.has_peer(head) && !self.slicing {
            self.alarm = 0;
        }
        Some(head)
    }

    /// Head of the most urgent ring; one is not empty.
    #[inline(always)]
    fn most_urgent(&self) -> u8 {
        self.rings[self.ready.trailing_zeros() as usize].head_unchecked(&self.next)
    }

    /// Is another thread of the same priority as `t`, a ready thread, ready?
    #[inline(always)]
    fn has_peer(&self, t: u8) -> bool {
        self.next[t as usize] != t
    }

    /// Makes `t` the running thread instead of `me`.
    #[inline(always)]
    fn switch(&mut self, me: u8, t: u8, now: u64) -> Decision {
        let record = &mut self.records[me as usize];
        record.ran = record.ran.wrapping_add(now.wrapping_sub(self.since));
        record.switches = record.switches.wrapping_add(1);
        self.since = now;
        self.running = t;
        Decision { thread: t.into(), value: 0 }
    }

    /// The way out of a hot path.
    #[inline(always)]
    fn exit(&mut self, decision: Decision, now: u64) -> Decision {
        if now >= self.alarm { self.decide(decision, now) } else { decision }
    }

    // --- parts of the others ------------------------------------------------------------------

    /// The end of every entry that is not hot, and of the others when the alarm has come: wakes the sleepers
    /// that are due, and lets the most urgent thread run. `so_far` is what was decided without looking.
    #[cold]
    fn decide(&mut self, so_far: Decision, now: u64) -> Decision {
        self.set_result(self.running, so_far.value as i8);
        if now >= self.due {
            self.wake(now);
        }
        let t = self.most_urgent();
        let thread = if t == self.running { so_far.thread } else { self.switch(self.running, t, now).thread };
        let value = core::mem::take(&mut self.result[t as usize]);
        self.pending -= u16::from(value != 0);
        self.alarm = if self.pending == 0 { self.due } else { 0 };
        self.arm(now);
        Decision { thread, value: value.into() }
    }

    /// Makes every sleeper ready that is due.
    #[inline(always)]
    fn wake(&mut self, now: u64) {
        while now >= self.due {
            let t = self.sleepers.pop();
            self.make_ready(t);
            self.due = self.sleepers.due();
        }
    }

    /// The pending call of `t` will return this; 0 changes nothing.
    fn set_result(&mut self, t: u8, value: i8) {
        if value != 0 {
            self.pending += u16::from(self.result[t as usize] == 0);
            self.result[t as usize] = value;
        }
    }

    /// Sets the timer to what is needed next. One that is set too early stays until it has passed: a tick for
    /// nothing costs less than a change at each switch.
    #[inline]
    fn arm(&mut self, now: u64) {
        let mut want = self.due;
        self.slicing = self.has_peer(self.running);
        if self.slicing {
            // In the past if the slice is used up.
            let record = &self.records[self.running as usize];
            want = want.min(self.since.wrapping_add(record.slice_end).wrapping_sub(record.ran));
        }
        if want < self.armed || self.armed <= now {
            self.armed = want;
            self.changed = true;
        }
    }

    /// A thread number, checked.
    fn thread(&self, tid: u64) -> Option<u8> {
        u8::try_from(tid).ok().filter(|t| !matches!(self.place[*t as usize], Place::Free | Place::Exited))
    }
}

/// `word += amount`, where nobody interrupts.
#[inline(always)]
fn add(word: &AtomicI64, amount: i64) {
    word.store(word.load(Relaxed).wrapping_add(amount), Relaxed);
}

/// Errors in the form in which a thread keeps them.
const INTERRUPTED: i8 = -(EINTR as i8);
const INVALID: i8 = -(EINVAL as i8);
/// The caller goes on, unless the end of the entry finds a more urgent thread.
const GO_ON: Decision = Decision::stay(0);
/// Refusal to the last ready thread.
const CANNOT_WAIT: Decision = Decision::stay(-EPERM);

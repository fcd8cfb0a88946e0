//! The scheduler: which thread runs next.
//!
//! **Problem.** Every switch of threads, every wait and every wake-up passes through here, with interrupts
//! off, so each path must be a short, bounded number of instructions that does not grow with the number of
//! threads.
//!
//! **Strategy.** This crate is pure logic over flat arrays indexed by thread; it switches nothing itself.
//! Each entry returns a [`Decision`]: go on with the caller, or invoke the switch portal. Every queue is a
//! [`Queue`]: known by its ends, linked through a byte a thread each way. The running
//! thread stays in the ready queue of its level, as the head; that queue, `current`, is kept apart from those
//! of the other levels. Hence "yield" is three stores, and a preempted thread is where it should be: at the
//! head. A bitmap of ready levels finds the next one when a queue runs empty. Sleepers are a heap, but for
//! the first.
//!
//! **Two ways through.** Each call that is made all the time has a *quick* method, which knows nothing of
//! what is rare: before it changes anything it makes sure that all is as usual, and returns `None` otherwise.
//! Then the method proper is called, which does the same, and everything else, and decides with everything in
//! view (`Scheduler::decide`). Most of what is unusual a quick method sees by one comparison, of the time
//! with the *alarm*: the time when the first sleeper is due, or 0 when something else wants attention: a
//! result to deliver, a thread whose home is dying, the boot. When nothing but one sleeper is due, a *late*
//! method does the quick one's work and lets the sleeper run.
//!
//! **Bounds.** No entry walks over threads, semaphores or domains. The only loops are over the groups of a
//! line (as many as there are levels), the height of the sleepers' heap, the few threads with deadlines, and
//! a fixed number of steps of work that is rare: sleepers that are due ([`WAKES`]), threads held for their
//! share, an abort ([`domain_abort`](Scheduler::domain_abort)), the end of a semaphore. What is left of such
//! work is done at the following entries, or when the caller asks again; interrupts come between.
//!
//! **One long thing an entry.** Some steps take a hundred instructions and more: a waiter goes into a line, a
//! sleeper comes out of the heap, a stack finds its heir, a thread that waits gets another level. An entry
//! that has done one of these is *long*, and [`serve`](Scheduler::serve) does no other. The next entry wakes
//! none but urgent threads. So no crowd of sleepers keeps it from what was put off. The timer ticks at once
//! if the running thread may have to give way to a thread that is lent a level.
//!
//! Inside, priorities are *levels*, 0 the most urgent, so that the lowest set bit is what is looked for.
//!
//! **Invariants**, at the end of every entry:
//! * a thread that is not free is in one place: a ready queue, one semaphore's or domain's queue, the
//!   sleepers, those held or parked, or the exited queue;
//! * the running thread is the head of `current`, the ready queue of the most urgent level, `top`; what
//!   `queues` says of that level is out of date (inside the method proper, `queues` is right and `current`
//!   out of date);
//! * a ready bit is set if and only if its level has a ready thread, and some level has: the last ready
//!   thread may not wait;
//! * a semaphore has waiters only while its word is negative, and then `-word` of them, in order of priority,
//!   then of arrival; a free semaphore's word is [`FREED`], so both fast paths of its portals come here and
//!   fail;
//! * the alarm is 0 while anything wants attention;
//! * the timer is due no later than the first sleeper, but for programs' threads that are due while a more
//!   urgent thread runs (then the alarm is past, so the next entry looks), and within a slice when the
//!   running thread has a ready peer.
//!
//! **Time slices.** A slice is run time, not real time: it ends at a tick that finds the thread to have run
//! its part of [`SLICE`] since its last slice ended, however often it was preempted meanwhile: threads of a
//! family that compute at the same time share one ([`crowds`]). No turn is longer than that while a peer is
//! ready.
//!
//! **Two disciplines.** `Scheduler<false>` decides by priority, `Scheduler<true>` by deadline first
//! ([`deadlines`]). Both keep the same state in the same form, [`FORMAT`], in memory that outlives an
//! instance: another one takes over by going on from there ([`Scheduler::adopt`]), without a copy; until the
//! last portal leads to it, both may be called.
//!
//! # Entries of the component
//!
//! | interface | arguments | method |
//! |---|---|---|
//! | `scheduler.yield` | – | [`quick_yield(now)`](Scheduler::quick_yield), [`yield_now(now)`](Scheduler::yield_now) |
//! | `scheduler.sleep` | caller's domain; until | [`sleep(until, caller, now)`](Scheduler::sleep) |
//! | `scheduler.stack_wait` | domain; caller's domain | [`stack_wait(stacks, domain, caller, now)`](Scheduler::stack_wait) |
//! | `scheduler.p` | semaphore; caller's domain | [`quick_p`](Scheduler::quick_p), [`p(words, sem, caller, now)`](Scheduler::p) |
//! | `scheduler.v`, `scheduler.irq` | semaphore | [`quick_v`](Scheduler::quick_v), [`v(words, sem, now)`](Scheduler::v) |
//! | `scheduler.tick` | – | [`quick_tick`](Scheduler::quick_tick), [`tick(now)`](Scheduler::tick) |
//! | `scheduler.thread_start` | thread, priority, home with family << 16 | [`thread_start(tid, priority, home, family, now)`](Scheduler::thread_start) |
//! | `scheduler.thread_exit` | domain that is being served, or 0 | [`thread_exit(words, client, now)`](Scheduler::thread_exit) |
//! | `scheduler.priority` | thread, priority | [`set_priority(tid, priority, now)`](Scheduler::set_priority) |
//! | `scheduler.domain_abort` | domain | [`domain_abort(words, stacks, asid, now)`](Scheduler::domain_abort) |
//! | | with a priority plus 1 in bits 16 and up | [`domain_calm(words, asid, priority, now)`](Scheduler::domain_calm) |
//! | `scheduler.thread_abort` | thread | [`thread_abort(words, tid, now)`](Scheduler::thread_abort) |
//! | `scheduler.will_wake` | caller's domain | [`will_wake(server)`](Scheduler::will_wake): the running thread |
//! | `scheduler.park` | caller's domain | [`park(caller, now)`](Scheduler::park) |
//! | `scheduler.wake` | caller's domain; thread | [`unpark(server, tid, now)`](Scheduler::unpark) |
//! | `scheduler.deadline` | ticks from now | [`deadline(ticks, now)`](Scheduler::deadline) |
//! | `scheduler.share` | domain, percent | [`share(domain, percent, now)`](Scheduler::share) |
//! | `scheduler.takeover` | format | [`adopt(words, format, now)`](Scheduler::adopt) |
//! | `scheduler.sem_alloc` | initial, owner, [`Wait`] | [`sem_alloc(words, ..)`](Scheduler::sem_alloc): number or error |
//! | `scheduler.sem_free` | semaphore | [`sem_free(words, sem, now)`](Scheduler::sem_free) |
//! | `scheduler.sem_info` | semaphore | [`sem_info(words, sem)`](Scheduler::sem_info) |
//! | `scheduler.thread_info` | thread | [`thread_info(tid, now)`](Scheduler::thread_info) |
//! | `scheduler.reap` | – | [`reap()`](Scheduler::reap): thread or -1 |
//!
//! Where a quick method gives up, the component tries the late one (`late_yield`, `late_p`, `late_v`) before
//! the method proper, if [it is late](Scheduler::is_late). After a late one and after `quick_tick` it
//! silences the timer. After each method proper that returns a [`Decision`] the component asks
//! [`serve`](Scheduler::serve), if that is [wanted](Scheduler::wants_attention), then
//! [`timer(now)`](Scheduler::timer) (or [`timer_to_serve`](Scheduler::timer_to_serve)), and programs the
//! timer if the answer is a time; then it returns `value` if `thread` is [`STAY`] (negative as a signed
//! word), and invokes the switch portal with both words otherwise.
//!
//! The calling thread is not an argument: on one processor it is the running one, which is known here.
#![no_std]
#![forbid(unsafe_code)]

mod bits;
mod crowds;
mod deadlines;
mod lending;
mod park;
pub mod queue;
mod quick;
mod semaphores;
mod shares;
mod sleepers;
mod stacks;
mod threads;

use bits::Bits;
use core::sync::atomic::{AtomicI64, Ordering::Relaxed};
use pebble_abi::errno::{EINTR, EINVAL, EPERM, Errno};
use pebble_abi::map::{FIRST_LOCK, MAX_DOMAINS, MAX_SEMAPHORES, MAX_THREADS, TIME_HZ};
pub use pebble_abi::scheduler::Wait;
use pebble_abi::words::{Asid, ThreadId};
use queue::{Links, Queue, Ranks};
use sleepers::{Heap, Kind, Sleepers};

pub use crowds::SHORTEST;
pub use deadlines::{MAX_DEADLINE, MAX_HURRIED, MAX_HURRIED_AT_HOME};
pub use lending::LENT;
pub use semaphores::{BootSemaphore, FREED, SemInfo};
pub use shares::PERIOD;
pub use sleepers::{LATEST, NEVER};
pub use stacks::{LOOK, Stacks};
pub use threads::{BootThread, ThreadInfo, ThreadState};

/// Priorities are `0..PRIORITIES`, the highest number most urgent.
pub const PRIORITIES: usize = 32;
/// Ticks that a thread may run while others of its priority are ready: 10 ms.
pub const SLICE: u64 = TIME_HZ / 100;
/// Sleepers that one entry wakes; if more are due, the timer ticks again at once.
pub const WAKES: usize = 2;
/// The form of the state. Whoever changes the fields of [`Scheduler`] gives it another number.
pub const FORMAT: u64 = 11;
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

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In a ready queue; at its head, perhaps running.
    Ready,
    /// In the queue of this semaphore.
    Waiting(usize),
    /// In the queue for a stack of this domain.
    Stack(u8),
    Sleeping,
    /// Until a server wakes it.
    Parked,
    /// Not to run before its home's share of the next period.
    Held,
    Exited,
    Free,
}

/// `Scheduler::caller` of a ready thread.
const NOBODY: u8 = 0;
/// `Record::sem` of a thread that is not ready and waits for no semaphore.
const SLEEPING: u16 = u16::MAX;
const EXITED: u16 = u16::MAX - 1;
const FREE: u16 = u16::MAX - 2;
const HELD: u16 = u16::MAX - 3;
const PARKED: u16 = u16::MAX - 4;
/// The first of those for the stacks of each domain.
const STACKS: u16 = 1 << 15;
const LAST_STACKS: u16 = STACKS + u8::MAX as u16;

/// What hot paths touch of the running thread alone. The size makes the index a shift.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
struct Record {
    /// Ticks run, up to the last time it stopped running.
    ran: u64,
    /// The value of `ran` at which its slice ends.
    slice_end: u64,
    /// How often it stopped running without having to wait.
    switches: u32,
    /// What it waits on, while it waits.
    sem: u16,
    home: u8,
    /// The level that its priority gives it.
    base: u8,
    /// When it wants to be done; 0: it has not said.
    deadline: u64,
}

/// The state of the scheduler. Large: it belongs in a `static`.
// The order keeps all that hot paths touch within reach of a load's immediate offset, or begins there.
#[repr(C)]
pub struct Scheduler<const EDF: bool = false> {
    /// When quick methods must give up: the time the first sleeper is due, or 0 for at once.
    alarm: u64,
    /// When the running thread began to run.
    since: u64,
    /// What the timer is set to, or will be once the component has asked.
    armed: u64,
    sleepers: Sleepers,
    /// Bit of each level that has a ready thread.
    ready: u32,
    /// The ready queue of the running thread, which is its head.
    current: Queue,
    /// Its level, the most urgent of the ready ones.
    top: u8,
    /// The timer is set to end a slice.
    slicing: bool,
    /// This entry has done something long: what else [`serve`](Self::serve) has to do it puts off.
    long: bool,
    /// So it was in the last one: this one wakes no programs' threads, so that it gets to what was put off.
    rest: bool,
    /// No thread has had a higher number.
    highest: u8,
    /// Threads with a `result`, threads that are doomed, that inherit a stack or were offered one; shares;
    /// threads that are held, or to be put in their place; semaphores that end; who waits for a lock, and a
    /// level that is lent. While there are any, or anybody waits for a stack, the alarm is 0.
    attention: u16,
    /// A semaphore to tell about exited threads; out of range for none.
    reaper: u16,
    /// Ready threads of the other levels.
    queues: [Queue; PRIORITIES],
    links: Links,
    /// The domain whose call waits or sleeps; [`NOBODY`] while the thread is ready, for 0 is no domain.
    caller: [u8; MAX_THREADS],
    /// Last waiter of each semaphore that has one; its link leads to the first, unless it is alone.
    tails: [u8; MAX_SEMAPHORES],
    records: [Record; MAX_THREADS],
    level: [u8; MAX_THREADS],
    /// Of threads that wait for semaphores or stacks.
    ranks: Ranks,
    /// What its pending call will return, unless 0.
    result: [i16; MAX_THREADS],
    /// Its home was aborted: it may not begin an interruptible wait.
    doomed: Bits,
    semaphores: semaphores::Table,
    later: Heap,
    /// Threads that have exited, if `any_exited`.
    exited: Queue,
    any_exited: bool,
    stacks: stacks::Waiters,
    shares: shares::Shares,
    hurried: deadlines::Hurried,
    promises: park::Promises,
    lending: lending::Lending,
    crowds: crowds::Crowds,
}

impl<const EDF: bool> Default for Scheduler<EDF> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const EDF: bool> Scheduler<EDF> {
    /// A scheduler that knows no thread yet, in memory all zero: all quick methods give up, and nothing but
    /// [`boot`](Self::boot) may follow, which fills in what is not 0.
    pub const fn new() -> Self {
        let record = Record { ran: 0, slice_end: 0, switches: 0, sem: 0, home: 0, base: 0, deadline: 0 };
        Self {
            alarm: 0,
            since: 0,
            armed: 0,
            sleepers: Sleepers::zero(),
            ready: 0,
            current: Queue::of(0),
            top: 0,
            slicing: false,
            long: false,
            rest: false,
            highest: 0,
            attention: 0,
            reaper: 0,
            queues: [Queue::of(0); PRIORITIES],
            links: Links::new(),
            level: [0; MAX_THREADS],
            ranks: Ranks::new(),
            caller: [0; MAX_THREADS],
            tails: [0; MAX_SEMAPHORES],
            records: [record; MAX_THREADS],
            result: [0; MAX_THREADS],
            doomed: Bits::NONE,
            semaphores: semaphores::Table::zero(),
            later: Heap::zero(),
            exited: Queue::of(0),
            any_exited: false,
            stacks: stacks::Waiters::zero(),
            shares: shares::Shares::zero(),
            hurried: deadlines::Hurried::zero(),
            promises: [0; MAX_THREADS],
            lending: lending::Lending::zero(),
            crowds: crowds::Crowds::zero(),
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
        running: ThreadId,
        reaper: u16,
        now: u64,
    ) -> Result<(), Errno> {
        self.armed = NEVER;
        self.sleepers = Sleepers::new();
        self.later.clear();
        self.caller.fill(!NOBODY);
        self.records.iter_mut().for_each(|record| record.sem = FREE);
        self.semaphores.clear();
        for thread in threads {
            let t = self.claim(thread.tid, thread.priority.into(), thread.home, Asid(0));
            let t = Errno::answer(t)? as u8;
            self.records[t as usize].slice_end = SLICE;
            self.queue_ready(t, thread.tid == running);
        }
        let Some(t) = self.thread(running) else { return Err(EINVAL) };
        self.top = self.level[t as usize];
        self.current = *self.queue(self.top);
        self.reaper = reaper;
        self.since = now;
        self.semaphores.boot(words, semaphores)
    }

    /// Has [`boot`](Self::boot) been called?
    #[inline(always)]
    pub const fn booted(&self) -> bool {
        self.ready != 0
    }

    /// The time to which the timer must be set now, or `None` to leave it. [`NEVER`] silences it. One that is
    /// set too early stays until it has passed: a tick for nothing costs less than a change at each switch.
    #[inline(always)]
    pub fn timer(&mut self, now: u64) -> Option<u64> {
        (self.long, self.rest) = (false, false);
        self.timer_before(NEVER, now)
    }

    /// The same, and no later than `look`.
    #[inline(always)]
    fn timer_before(&mut self, look: u64, now: u64) -> Option<u64> {
        let mut want = self.sleepers.next_due(&self.later, Kind::of(self.top), now).min(look);
        self.slicing = !self.current.is_single();
        if self.slicing {
            // In the past if the slice is used up.
            let record = &self.records[self.current.head as usize];
            want = want.min(self.since.wrapping_add(record.slice_end).wrapping_sub(record.ran));
        }
        if EDF && self.top == 0 {
            want = want.min(self.due(self.current.head));
        }
        if want < self.armed || self.armed <= now {
            self.armed = want;
            return Some(want);
        }
        None
    }

    // --- parts of the methods proper ----------------------------------------------------------

    /// The beginning of each: brings `queues` up to date, and names the running thread.
    #[inline(always)]
    fn begin(&mut self) -> u8 {
        *self.queue(self.top) = self.current;
        self.current.head
    }

    /// The end of each: wakes the sleepers that are due, and lets the most urgent thread run instead of `me`,
    /// whose call returns `value`.
    #[inline(never)]
    fn decide(&mut self, me: u8, value: i64, now: u64) -> Decision {
        self.wake(now);
        self.conclude(me, value, now)
    }

    /// The same, of those that have woken sleepers.
    #[inline(never)]
    fn conclude(&mut self, me: u8, value: i64, now: u64) -> Decision {
        self.set_result(me, value as i16);
        self.select();
        let t = self.current.head;
        let mut decision = GO_ON;
        if t != me {
            if self.caller[me as usize] == NOBODY {
                self.stop_ready(me, now);
            } else {
                self.stop(me, now);
            }
            decision.thread = t.into();
        }
        let result = core::mem::take(&mut self.result[t as usize]);
        self.attention -= u16::from(result != 0);
        self.set_alarm();
        decision.value = result.into();
        decision
    }

    #[inline(always)]
    fn set_alarm(&mut self) {
        self.alarm = if self.wants_attention() { 0 } else { self.sleepers.due() };
    }

    /// Makes sleepers ready that are due: first who is more urgent than programs are, then the earliest.
    /// While somebody that urgent is ready, the others sleep on: waking them would only hold it up.
    #[inline(always)]
    fn wake(&mut self, now: u64) {
        if now >= self.sleepers.due() {
            self.wake_due(now);
        }
    }

    /// Is there work besides what was called for?
    fn burdened(&self) -> bool {
        self.stacks.any() || self.lending.any() || self.shares.any() || self.hurried.misplaced > 0
    }

    #[inline(never)]
    fn wake_due(&mut self, now: u64) {
        for _ in 0..WAKES {
            let next = if (self.long || self.rest) && self.burdened() {
                Kind::Urgent
            } else {
                Kind::of(self.ready.trailing_zeros() as u8)
            };
            let Some(t) = self.sleepers.pop(&mut self.later, now, next) else { break };
            self.make_ready(t);
            self.long = true;
        }
    }

    /// `me`, which is in its level, sleeps.
    fn push_sleeper(&mut self, until: u64, me: u8) {
        self.sleepers.push(&mut self.later, until, me, Kind::of(self.level[me as usize]));
    }

    /// Makes the most urgent ready queue the current one.
    #[inline(always)]
    fn select(&mut self) {
        self.top = self.ready.trailing_zeros() as u8;
        self.current = *self.queue(self.top);
    }

    /// `me` stops running.
    #[inline(always)]
    fn stop(&mut self, me: u8, now: u64) {
        let record = &mut self.records[me as usize];
        record.ran = record.ran.wrapping_add(now.wrapping_sub(self.since));
        self.since = now;
    }

    /// `me` stops running, and is ready still.
    #[inline(always)]
    fn stop_ready(&mut self, me: u8, now: u64) {
        self.stop(me, now);
        let switches = &mut self.records[me as usize].switches;
        *switches = switches.wrapping_add(1);
    }

    /// The pending call of `t` will return this; 0 changes nothing.
    fn set_result(&mut self, t: u8, value: i16) {
        if value != 0 {
            self.attention += u16::from(self.result[t as usize] == 0);
            self.result[t as usize] = value;
        }
    }

    #[inline(always)]
    fn queue(&mut self, level: u8) -> &mut Queue {
        &mut self.queues[level as usize % PRIORITIES]
    }

    /// Appends a thread to the ready queue of its level.
    #[inline(never)]
    fn make_ready(&mut self, t: u8) {
        self.queue_ready(t, false);
    }

    /// Puts a thread into the ready queue of its level, in front or behind.
    #[inline(always)]
    fn queue_ready(&mut self, t: u8, in_front: bool) {
        let level = self.level[t as usize];
        self.caller[t as usize] = NOBODY;
        let due = if EDF { self.due(t) } else { 0 };
        let queue = &mut self.queues[level as usize % PRIORITIES];
        if self.ready >> (level % 32) & 1 == 0 {
            *queue = Queue::of(t);
            self.ready |= 1 << (level % 32);
        } else if EDF && level == 0 && (due != NEVER || in_front) {
            let records = &self.records;
            queue.insert_where(&mut self.links, t, |other| {
                let others = records[other as usize].due();
                others > due || in_front && others == due
            });
        } else if in_front {
            queue.push_front(&mut self.links, t);
        } else {
            queue.push_back(&mut self.links, t);
        }
    }

    /// Takes a thread out of the ready queue of `level`, its own.
    fn leave_ready(&mut self, t: u8, level: u8) {
        let queue = &mut self.queues[level as usize % PRIORITIES];
        if queue.is_single() {
            self.ready &= !(1 << (level % 32));
        } else {
            queue.remove(&mut self.links, t);
        }
    }

    /// The thread is about to wait. What it is lent is for running.
    #[inline(never)]
    fn stop_being_ready(&mut self, t: u8) {
        self.leave_ready(t, self.level[t as usize]);
        self.level[t as usize] = self.own_level(t);
    }

    /// Is `me`, the running thread, the only one that is ready? Then it may not wait.
    #[inline(always)]
    fn is_last(&self) -> bool {
        self.current.is_single() && self.ready & self.ready.wrapping_sub(1) == 0
    }

    #[inline(always)]
    fn state(&self, t: u8) -> State {
        if self.caller[t as usize] == NOBODY {
            return State::Ready;
        }
        match self.records[t as usize].sem {
            SLEEPING => State::Sleeping,
            EXITED => State::Exited,
            FREE => State::Free,
            HELD => State::Held,
            PARKED => State::Parked,
            sem @ STACKS..=LAST_STACKS => State::Stack(sem as u8),
            sem => State::Waiting(sem as usize % MAX_SEMAPHORES),
        }
    }

    /// What `t` waits on, which is in no queue, on behalf of `caller`.
    #[inline(always)]
    fn set_waiting(&mut self, t: u8, sem: u16, caller: Asid) {
        self.caller[t as usize] = caller.get() as u8;
        self.records[t as usize].sem = sem;
    }

    /// A thread number, checked.
    fn thread(&self, tid: ThreadId) -> Option<u8> {
        u8::try_from(tid.get()).ok().filter(|t| !matches!(self.state(*t), State::Free | State::Exited))
    }
}

/// `word += amount`, where nobody interrupts.
#[inline(always)]
fn add(word: &AtomicI64, amount: i64) {
    word.store(word.load(Relaxed).wrapping_add(amount), Relaxed);
}

/// Errors in the form in which a thread keeps them.
const INTERRUPTED: i16 = EINTR.word() as i16;
const INVALID: i16 = EINVAL.word() as i16;
/// The caller goes on.
const GO_ON: Decision = Decision { thread: STAY, value: 0 };

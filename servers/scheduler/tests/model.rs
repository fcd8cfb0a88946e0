//! The scheduler against a naive model: the same random calls to both, every answer and every visible state
//! compared after each step.
//!
//! The model keeps plain vectors and looks at everything each time: it has no alarm, no bitmap, no heap and
//! no links. The harness plays the portals: P and V first try their fast path on the shared word. It plays
//! the component too: the quick way first, or for comparison only the long one.

mod reference;
mod stackless;

use pebble_abi::errno::{EINVAL, ESRCH};
use pebble_abi::scheduler::PROGRAMS;
use pebble_abi::words::{Asid, ThreadId};
use pebble_scheduler::*;
use proptest::prelude::*;
use reference::{Model, State};
use stackless::NoStacks;
use std::num::NonZeroU8;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

#[derive(Clone, Debug)]
enum Op {
    Advance(u64),
    /// Time passes while interrupts are off: the next entry comes before the tick.
    Drift(u64),
    Yield,
    Sleep {
        delay: u64,
        caller: u8,
    },
    P {
        sem: u64,
        caller: u8,
        fast: bool,
    },
    V {
        sem: u64,
        fast: bool,
    },
    Tick,
    Start {
        tid: u64,
        priority: u64,
        home: u64,
    },
    Exit,
    Reap,
    Priority {
        tid: u64,
        priority: u64,
    },
    Abort(u64),
    Calm(u64, u64),
    ThreadAbort(u64, bool),
    WillWake(u8),
    Park(u8),
    Unpark(u8, u64),
    Alloc {
        initial: i64,
        owner: u64,
        interruptible: bool,
    },
    Free(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let sem = prop_oneof![30 => 0..6u64, 1 => Just(1023), 1 => 6..9u64, 1 => Just(1024), 1 => Just(u64::MAX)];
    let tid = || prop_oneof![30 => 0..24u64, 2 => Just(255), 1 => Just(256), 1 => Just(u64::MAX)];
    let priority = || prop_oneof![12 => Just(5u64), 6 => 4..8u64, 2 => 0..34u64, 2 => 15..17u64];
    let asid = || 1..4u8;
    let delay = prop_oneof![1 => Just(0), 4 => 1..300u64, 2 => 1..3 * SLICE, 1 => Just(u64::MAX / 2)];
    let time = prop_oneof![6 => 0..40u64, 2 => 0..400u64, 2 => 0..2 * SLICE];
    prop_oneof![
        20 => time.prop_map(Op::Advance),
        4 => (0..300u64).prop_map(Op::Drift),
        10 => Just(Op::Yield),
        10 => (delay, asid()).prop_map(|(delay, caller)| Op::Sleep { delay, caller }),
        18 => (sem.clone(), asid(), prop::bool::weighted(0.9))
            .prop_map(|(sem, caller, fast)| Op::P { sem, caller, fast }),
        18 => (sem.clone(), prop::bool::weighted(0.9)).prop_map(|(sem, fast)| Op::V { sem, fast }),
        4 => Just(Op::Tick),
        12 => (tid(), priority(), prop_oneof![20 => 1..4u64, 1 => Just(256)])
            .prop_map(|(tid, priority, home)| Op::Start { tid, priority, home }),
        2 => Just(Op::Exit),
        2 => Just(Op::Reap),
        5 => (tid(), priority()).prop_map(|(tid, priority)| Op::Priority { tid, priority }),
        1 => prop_oneof![20 => 1..4u64, 1 => Just(256)].prop_map(Op::Abort),
        2 => (1..4u64, 0..33u64).prop_map(|(asid, priority)| Op::Calm(asid, priority)),
        2 => (tid(), any::<bool>()).prop_map(|(tid, all)| Op::ThreadAbort(tid, all)),
        4 => asid().prop_map(Op::WillWake),
        6 => asid().prop_map(Op::Park),
        6 => (asid(), tid()).prop_map(|(server, tid)| Op::Unpark(server, tid)),
        1 => (-1..3i64, prop_oneof![9 => 1..4u64, 1 => Just(999)], any::<bool>())
            .prop_map(|(initial, owner, interruptible)| Op::Alloc { initial, owner, interruptible }),
        1 => sem.prop_map(Op::Free),
    ]
}

/// Locks are in `lending.rs`.
fn wait(interruptible: bool) -> Wait {
    if interruptible { Wait::Interruptible } else { Wait::Patient }
}

struct Pair {
    real: Box<Scheduler>,
    model: Model,
    words: Box<Words>,
    /// What the timer is set to.
    timer: u64,
    now: u64,
    /// The component's way: the quick method first.
    quick: bool,
}

fn thread(tid: u64, priority: u8) -> BootThread {
    BootThread { tid: ThreadId(tid), priority, home: Asid(1) }
}

impl Pair {
    fn info(&self, tid: u64) -> ThreadInfo {
        self.real.thread_info(ThreadId(tid), self.now).unwrap()
    }

    fn boot() -> Self {
        Self::boot_with(true)
    }

    fn boot_with(quick: bool) -> Self {
        let words: Box<Words> = Box::new([const { AtomicI64::new(0) }; 1024]);
        let mut real = Box::new(<Scheduler>::new());
        let threads = [thread(0, 0), thread(1, 5), thread(2, 5), thread(3, 7)];
        let semaphores = [0, 1, 2, 3, 1023];
        let boot = semaphores.map(|id| BootSemaphore { id, owner: Asid(1), wait: wait(id % 2 == 0) });
        // Thread 3 runs, semaphore 3 is the reaper's.
        real.boot(&words, threads, boot, ThreadId(3), 3, 1000).unwrap();
        let mut model = Model::new(3, 3, 1000);
        threads.iter().for_each(|t| model.add(t.tid.get() as usize, t.priority, 1, SLICE));
        boot.iter().for_each(|s| model.add_semaphore(s.id as usize, 0, 1, s.wait == Wait::Interruptible));
        Self { real, model, words, timer: NEVER, now: 1000, quick }
    }

    fn word(&self, sem: u64) -> Option<&AtomicI64> {
        self.words.get(sem as usize)
    }

    fn step(&mut self, op: &Op) {
        let now = self.now;
        let before = self.model.running;
        let mut ticked = matches!(op, Op::Tick);
        let decision = match *op {
            Op::Advance(ticks) => {
                self.now += ticks;
                ticked = self.timer <= self.now;
                ticked.then(|| self.tick())
            }
            Op::Drift(ticks) => {
                self.now += ticks;
                None
            }
            Op::Tick => Some(self.tick()),
            Op::Yield => {
                self.model.yield_now(now);
                Some(self.try_quick(
                    |real, _| real.quick_yield(now),
                    |real, _| real.late_yield(now),
                    |real, _| real.yield_now(now),
                ))
            }
            Op::Sleep { delay, caller } => {
                self.model.sleep(now + delay, caller, now);
                Some(self.long(|real, _| real.sleep(now + delay, Asid(caller.into()), now)))
            }
            Op::P { sem, caller, fast } => match self.word(sem) {
                Some(word) if fast && word.load(Relaxed) > 0 => {
                    word.store(word.load(Relaxed) - 1, Relaxed);
                    self.model.semaphore(sem).unwrap().value -= 1;
                    None
                }
                _ => {
                    self.model.p(sem, caller, now);
                    let caller = caller.into();
                    Some(self.try_quick(
                        |real, words| real.quick_p(words, sem, Asid(caller), now),
                        |real, words| real.late_p(words, sem, Asid(caller), now),
                        |real, words| real.p(words, sem, Asid(caller), now),
                    ))
                }
            },
            Op::V { sem, fast } => match self.word(sem) {
                Some(word) if fast && word.load(Relaxed) >= 0 => {
                    word.store(word.load(Relaxed) + 1, Relaxed);
                    self.model.semaphore(sem).unwrap().value += 1;
                    None
                }
                _ => {
                    self.model.v(sem, now);
                    Some(self.try_quick(
                        |real, words| real.quick_v(words, sem, now),
                        |real, words| real.late_v(words, sem, now),
                        |real, words| real.v(words, sem, now),
                    ))
                }
            },
            Op::Start { tid, priority, home } => {
                self.model.start(tid, priority, home, now);
                let (tid, home) = (ThreadId(tid), Asid(home));
                Some(self.long(|real, _| real.thread_start(tid, priority, home, Asid(0), now)))
            }
            Op::Exit => {
                self.model.exit(now);
                Some(self.long(|real, words| real.thread_exit(words, Asid(0), now)))
            }
            Op::Reap => {
                assert_eq!(self.real.reap().map(|tid| tid.get() as usize), self.model.reap());
                None
            }
            Op::Priority { tid, priority } => {
                self.model.set_priority(tid, priority, now);
                Some(self.long(|real, words| real.set_priority(words, ThreadId(tid), priority, now)))
            }
            Op::Abort(asid) => {
                self.parts(
                    |model, from| model.abort(asid, from, now),
                    |real, words, from| real.domain_abort(words, Asid(asid), ThreadId(from), now),
                );
                self.model.assert_nothing_blocked(asid);
                None
            }
            Op::WillWake(server) => {
                assert_eq!(self.real.will_wake(Asid(server.into())), self.model.will_wake(server));
                None
            }
            Op::Park(caller) => {
                self.model.park(caller, now);
                Some(self.long(|real, _| real.park(Asid(caller.into()), now)))
            }
            Op::Unpark(server, tid) => {
                self.model.unpark(server, tid, now);
                Some(self.long(|real, _| real.unpark(Asid(server.into()), ThreadId(tid), now)))
            }
            Op::Calm(asid, priority) => {
                self.parts(
                    |model, from| model.calm(asid, priority, from, now),
                    |real, words, from| real.domain_calm(words, Asid(asid), priority, ThreadId(from), now),
                );
                None
            }
            Op::ThreadAbort(tid, all) => {
                self.model.thread_abort(tid, all, now);
                Some(self.long(|real, words| real.thread_abort(words, ThreadId(tid), all, now)))
            }
            Op::Alloc { initial, owner, interruptible } => {
                let id = self.real.sem_alloc(&self.words, initial, Asid(owner), wait(interruptible));
                if initial < 0 || owner > 255 {
                    assert_eq!(id, -EINVAL);
                } else {
                    self.model.add_semaphore(id as usize, initial, owner as u8, interruptible);
                }
                None
            }
            Op::Free(sem) => {
                self.model.free(sem, now);
                Some(self.long(|real, words| real.sem_free(words, sem, now)))
            }
        };
        if let Some(decision) = decision {
            let value = self.model.answer.take().unwrap();
            let thread = if self.model.running == before { STAY } else { self.model.running as u64 };
            assert_eq!(decision, Decision { thread, value });
            if ticked {
                // Or it would tick for ever.
                assert!(
                    self.timer > self.now || self.timer == self.model.timer_wanted(self.now),
                    "timer not moved on"
                );
            }
        }
        self.check();
    }

    /// What is done in parts, to its end.
    fn parts(
        &mut self,
        mut model: impl FnMut(&mut Model, usize) -> usize,
        mut part: impl FnMut(&mut Scheduler, &Words, u64) -> Decision,
    ) {
        let mut from = 0;
        loop {
            let before = self.model.running;
            let next = model(&mut self.model, from);
            let decision = self.long(|real, words| part(real, words, from as u64));
            let value = self.model.answer.take().unwrap();
            let thread = if self.model.running == before { STAY } else { self.model.running as u64 };
            assert_eq!(decision, Decision { thread, value });
            self.check();
            from = next;
            if from == 0 {
                return;
            }
        }
    }

    /// A method proper, after which the timer is set.
    fn long(&mut self, entry: impl FnOnce(&mut Scheduler, &Words) -> Decision) -> Decision {
        let mut decision = entry(&mut self.real, &self.words);
        let now = self.now;
        let timer = if self.real.wants_attention() {
            decision = self.real.serve(&self.words, &NoStacks, decision, now);
            self.real.timer_to_serve(now)
        } else {
            self.real.timer(now)
        };
        if let Some(time) = timer {
            assert_eq!(time, self.model.timer_wanted(self.now), "timer");
            self.timer = time;
        }
        decision
    }

    fn tick(&mut self) -> Decision {
        let now = self.now;
        self.model.tick(now);
        self.try_quick(|_, _| None, |real, _| real.quick_tick(now), |real, _| real.tick(now))
    }

    /// What the component does: the quick way, or the late one, after which the timer is silenced, or the
    /// method proper.
    fn try_quick(
        &mut self,
        quick: impl FnOnce(&mut Scheduler, &Words) -> Option<Decision>,
        late: impl FnOnce(&mut Scheduler, &Words) -> Option<Decision>,
        long: impl FnOnce(&mut Scheduler, &Words) -> Decision,
    ) -> Decision {
        if self.quick {
            if let Some(decision) = quick(&mut self.real, &self.words) {
                return decision;
            }
            if self.real.is_late(self.now)
                && let Some(decision) = late(&mut self.real, &self.words)
            {
                assert_eq!(NEVER, self.model.timer_wanted(self.now), "timer");
                assert_eq!(decision, self.real.switch());
                self.timer = NEVER;
                return decision;
            }
        }
        self.long(long)
    }

    fn check(&self) {
        let now = self.now;
        let mut running = 0;
        for tid in 0..256 {
            let info = self.info(tid);
            running += usize::from(info.state == ThreadState::Running);
            let Some(thread) = self.model.threads.get(&(tid as usize)) else {
                assert_eq!(info.state, ThreadState::Free);
                continue;
            };
            let runs = tid as usize == self.model.running;
            let state = match thread.state {
                State::Ready if runs => ThreadState::Running,
                State::Ready => ThreadState::Ready,
                State::Sleeping(_) => ThreadState::Sleeping,
                State::Waiting(sem) => ThreadState::Waiting(sem as u16),
                State::Parked => ThreadState::Parked,
                State::Exited => ThreadState::Exited,
            };
            let ran = thread.ran + if runs { now - self.model.since } else { 0 };
            let home = u16::from(thread.home).into();
            let expected =
                ThreadInfo { state, priority: thread.priority, home, ran, switches: thread.switches };
            assert_eq!(info, expected, "thread {tid}");
        }
        assert_eq!(running, 1);
        for sem in (0..12).chain(1020..1024) {
            let word = self.words[sem as usize].load(Relaxed);
            let info = self.real.sem_info(&self.words, sem);
            let Some(expected) = self.model.semaphores.get(&(sem as usize)) else {
                assert_eq!((info, word), (None, FREED), "semaphore {sem}");
                continue;
            };
            let waiters = expected.waiters.len();
            if expected.ending {
                assert_eq!((info, word), (None, expected.value), "semaphore {sem}");
                continue;
            }
            let info = info.unwrap();
            assert_eq!((word, info.value), (expected.value, expected.value), "semaphore {sem}");
            let owner = NonZeroU8::new(expected.owner);
            assert_eq!((info.waiters, info.owner), (waiters, owner), "semaphore {sem}");
            assert!(if word < 0 { -word == waiters as i64 } else { waiters == 0 }, "semaphore {sem}");
        }
        self.model.assert_timer(self.timer, now);
        assert_eq!(self.model.most_urgent(), self.model.running);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn does_what_the_model_does(ops in prop::collection::vec(op(), 50..250), quick: bool) {
        let mut pair = Pair::boot_with(quick);
        for op in &ops {
            pair.step(op);
        }
    }
}

#[test]
fn two_hogs_share_the_processor() {
    let mut pair = Pair::boot();
    pair.step(&Op::Sleep { delay: u64::MAX / 2, caller: 1 });
    for _ in 0..100 {
        pair.step(&Op::Advance(SLICE));
    }
    let ran = |tid| pair.info(tid).ran;
    assert_eq!((ran(0), ran(1), ran(2)), (0, 50 * SLICE, 50 * SLICE));
}

#[test]
fn a_crowd_shares_one_turn() {
    let mut pair = Pair::boot();
    let start = |pair: &mut Pair, tid, home| pair.step(&Op::Start { tid, priority: 8, home });
    (4..24).for_each(|tid| start(&mut pair, tid, 2));
    start(&mut pair, 24, 3);
    pair.step(&Op::Advance(20 * SLICE));
    let ran = |pair: &Pair, tid: u64| pair.info(tid).ran;
    let before: Vec<u64> = (4..25).map(|tid| ran(&pair, tid)).collect();
    (0..10_000).for_each(|_| pair.step(&Op::Advance(SLICE / 100)));
    let of: Vec<u64> = (4..25).map(|tid| ran(&pair, tid) - before[tid as usize - 4]).collect();
    let alone = of[20];
    assert!(alone.abs_diff(50 * SLICE) <= 2 * SLICE, "{of:?}");
    assert!(of[..20].iter().all(|ran| ran.abs_diff(50 * SLICE / 20) <= SLICE), "{of:?}");
}

#[test]
fn frequent_preemption_starves_nobody() {
    let mut pair = Pair::boot();
    // Thread 3 takes a quarter of each half slice; 1 and 2 share the rest.
    for _ in 0..400 {
        pair.step(&Op::Sleep { delay: SLICE / 2, caller: 1 });
        pair.step(&Op::Advance(SLICE / 2));
        pair.step(&Op::Advance(SLICE / 8));
    }
    let ran = |tid| pair.info(tid).ran;
    assert!(ran(1).abs_diff(ran(2)) <= 2 * SLICE, "{} {}", ran(1), ran(2));
}

/// Each entry that finds the only sleeper due does its own work and lets the sleeper run.
#[test]
fn a_due_sleeper_runs_after_any_entry() {
    // Threads 1 and 2 (priority 5) share the processor, 4 (priority 2) waits for semaphore 1, 3 (priority 7)
    // sleeps.
    let v = |sem| Op::V { sem, fast: true };
    let p = |sem| Op::P { sem, caller: 1, fast: true };
    for (before, entry) in [
        (vec![], Op::Yield),
        (vec![], p(0)),
        (vec![p(0)], p(2)),
        (vec![p(0)], v(0)),
        (vec![], v(1)),
        (vec![], Op::Tick),
    ] {
        let mut pair = Pair::boot();
        let start = Op::Start { tid: 4, priority: 2, home: 2 };
        let sleep = |delay| Op::Sleep { delay, caller: 1 };
        let begin = [start, Op::Priority { tid: 4, priority: 8 }, p(1), Op::Priority { tid: 4, priority: 2 }];
        begin.iter().for_each(|op| pair.step(op));
        pair.step(&sleep(100));
        before.iter().for_each(|op| pair.step(op));
        pair.step(&Op::Drift(100));
        pair.step(&entry);
        let running = pair.info(3).state;
        assert_eq!(running, ThreadState::Running, "{entry:?}");
        // All the others run in their turn again.
        for _ in 0..8 {
            pair.step(&sleep(1000));
            pair.step(&Op::Yield);
            pair.step(&Op::Advance(2000));
        }
    }
}

/// Forty programs wake a little before a driver: it runs after one tick, and no other tick comes on their
/// account until it sleeps again.
#[test]
fn a_crowd_of_sleepers_does_not_hold_up_a_driver() {
    const DRIVER: u64 = 60;
    let mut pair = Pair::boot();
    for tid in 10..50 {
        pair.step(&Op::Start { tid, priority: 8, home: 2 });
        pair.step(&Op::Sleep { delay: 100, caller: 1 });
    }
    pair.step(&Op::Start { tid: DRIVER, priority: PROGRAMS.into(), home: 3 });
    pair.step(&Op::Sleep { delay: 103, caller: 1 });
    pair.step(&Op::Drift(110));
    pair.step(&Op::Tick);
    assert_eq!(pair.info(DRIVER).state, ThreadState::Running);
    assert_eq!(pair.timer, NEVER);
    pair.step(&Op::Sleep { delay: 1000, caller: 1 });
    (0..40).for_each(|_| pair.step(&Op::Tick));
    assert!((10..50).all(|tid| pair.info(tid).state != ThreadState::Sleeping));
}

#[test]
fn waiters_wake_by_priority_then_by_arrival() {
    let mut pair = Pair::boot();
    pair.step(&Op::Start { tid: 10, priority: 5, home: 2 });
    pair.step(&Op::Start { tid: 11, priority: 6, home: 2 });
    // 3 (priority 7), 11 (6), 1, 2, 10 (5) wait in this order; then 3 and 11 are put behind by priority.
    for _ in 0..5 {
        pair.step(&Op::P { sem: 0, caller: 1, fast: true });
    }
    pair.step(&Op::Priority { tid: 3, priority: 4 });
    pair.step(&Op::Priority { tid: 11, priority: 5 });
    let mut order = Vec::new();
    for _ in 0..5 {
        pair.step(&Op::V { sem: 0, fast: true });
        let woken = [1, 2, 3, 10, 11]
            .into_iter()
            .find(|tid| !order.contains(tid) && !matches!(pair.info(*tid).state, ThreadState::Waiting(_)));
        order.push(woken.unwrap());
    }
    assert_eq!(order, [1, 2, 10, 11, 3]);
}

/// And sets the timer anew, or it would come again. An emulator without anything to do may go to the latest
/// time that the timer can be set to.
#[test]
fn a_tick_when_nobody_sleeps_changes_nothing_however_late() {
    for time in [LATEST, LATEST + 1, u64::MAX / 256, i64::MAX as u64 / 100, u64::MAX - 1] {
        for edf in [false, true] {
            let mut pair = Pair::boot();
            pair.step(&Op::Sleep { delay: 10, caller: 1 });
            pair.step(&Op::Advance(10));
            let real = *pair.real;
            let stay = Decision { thread: STAY, value: 0 };
            if edf {
                let mut real = Box::new(real.with_discipline::<true>());
                assert_eq!((real.quick_tick(time), real.is_late(time)), (None, false));
                assert_eq!((real.tick(time), real.timer(time)), (stay, Some(NEVER)));
            } else {
                let mut real = Box::new(real);
                assert_eq!((real.quick_tick(time), real.is_late(time)), (None, false));
                assert_eq!((real.tick(time), real.timer(time)), (stay, Some(NEVER)));
            }
        }
    }
}

#[test]
fn semaphores_run_out_and_come_back() {
    let mut pair = Pair::boot();
    let alloc = |pair: &mut Pair| pair.real.sem_alloc(&pair.words, 1, Asid(1), Wait::Interruptible);
    for _ in 0..1024 - 5 {
        assert!(alloc(&mut pair) >= 0);
    }
    assert_eq!(alloc(&mut pair), -pebble_abi::errno::EAGAIN);
    assert_eq!(pair.real.sem_free(&pair.words, 77, 1000).value, 0);
    assert_eq!(pair.real.sem_free(&pair.words, 77, 1000).value, -EINVAL);
    assert_eq!(alloc(&mut pair), 77);
}

#[test]
fn boot_refuses_what_it_cannot_hold() {
    let words: Words = [const { AtomicI64::new(0) }; 1024];
    let boot = |threads: &[BootThread], running| {
        let mut real = <Scheduler>::new();
        real.boot(&words, threads.iter().copied(), [], ThreadId(running), u16::MAX, 0)
    };
    assert!(boot(&[thread(0, 0), thread(256, 1)], 0).is_err());
    assert!(boot(&[thread(0, 32)], 0).is_err());
    assert!(boot(&[thread(0, 0), thread(0, 1)], 0).is_err());
    assert!(boot(&[thread(0, 0)], 1).is_err());
    assert!(boot(&[], 0).is_err());
    assert!(boot(&[thread(0, 0)], 0).is_ok());
}

#[test]
fn the_first_entry_after_boot_decides_anew() {
    let words: Words = [const { AtomicI64::new(0) }; 1024];
    let mut real = Box::new(<Scheduler>::new());
    let threads = [thread(0, 0), thread(1, 9), thread(2, 9)];
    real.boot(&words, threads, [], ThreadId(0), u16::MAX, 0).unwrap();
    assert_eq!(real.v(&words, 0, 1), Decision { thread: 1, value: 0 });
    assert_eq!(real.timer(1), Some(1 + SLICE));
    // What thread 0 was to return has been kept for it; it is the only one left at last.
    assert_eq!(real.thread_exit(&words, Asid(0), 2), Decision { thread: 2, value: 0 });
    assert_eq!(real.thread_exit(&words, Asid(0), 3), Decision { thread: 0, value: -EINVAL });
    assert_eq!(real.set_priority(&words, ThreadId(2), 1, 4).value, -ESRCH);
    assert_eq!((real.reap(), real.reap(), real.reap()), (Some(ThreadId(1)), Some(ThreadId(2)), None));
}

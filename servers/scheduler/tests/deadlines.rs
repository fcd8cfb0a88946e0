//! Deadlines, and instances of both disciplines that follow one another on the same state.
//!
//! The model of the discipline: the ready thread with the earliest deadline runs; without any, the most
//! urgent. Random histories, played by instances of both kinds in turn, are compared with it after every
//! step.

mod stackless;

use pebble_abi::errno::{EAGAIN, EINVAL};
use pebble_abi::words::{Asid, ThreadId};
use pebble_scheduler::*;
use proptest::prelude::*;
use stackless::NoStacks;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicI64;

type Priorities = Scheduler<false>;
type Deadlines = Scheduler<true>;

fn words() -> Box<Words> {
    Box::new([const { AtomicI64::new(0) }; 1024])
}

fn threads() -> [BootThread; 4] {
    [(0, 0), (1, 5), (2, 5), (3, 31)].map(|(tid, priority)| BootThread {
        tid: ThreadId(tid),
        priority,
        home: Asid(1),
    })
}

fn booted(words: &Words) -> Box<Deadlines> {
    let mut real = Box::new(Deadlines::new());
    let semaphores = [0, 1].map(|id| BootSemaphore { id, owner: Asid(1), wait: Wait::Interruptible });
    real.boot(words, threads(), semaphores, ThreadId(3), u16::MAX, 0).unwrap();
    real
}

fn running<const EDF: bool>(real: &Scheduler<EDF>) -> u64 {
    (0..256).find(|t| real.thread_info(ThreadId(*t), 0).unwrap().state == ThreadState::Running).unwrap()
}

#[test]
fn the_earliest_deadline_runs_first_and_a_missed_one_is_forgotten() {
    let words = words();
    let mut real = booted(&words);
    // Thread 3 waits; 1 and 2 declare deadlines, the later one first.
    assert_eq!(real.p(&words, 0, Asid(1), 1), Decision { thread: 1, value: 0 });
    assert_eq!(real.deadline(&words, 500, 2).value, 0);
    assert_eq!(real.p(&words, 1, Asid(1), 3).thread, 2);
    assert_eq!(real.deadline(&words, 100, 4).value, 0);
    // The later one wakes, and so does priority 31: neither runs before 2.
    assert_eq!(real.v(&words, 1, 5), Decision { thread: STAY, value: 0 });
    assert_eq!(real.v(&words, 0, 6), Decision { thread: STAY, value: 0 });
    assert!(real.timer(6).is_none_or(|at| at <= 104));
    // 2 misses its deadline: 1 has the next, then comes 3, by priority.
    assert_eq!(real.tick(104).thread, 1);
    assert_eq!(real.deadline(&words, 0, 105).thread, 3);
    assert_eq!(real.p(&words, 0, Asid(1), 106).thread, 1);
    assert_eq!(real.deadline(&words, MAX_DEADLINE + 1, 107).value, -EINVAL);
}

#[test]
fn a_successor_of_the_other_discipline_goes_on() {
    let words = words();
    let mut edf = booted(&words);
    assert_eq!(edf.p(&words, 0, Asid(1), 1).thread, 1);
    assert_eq!(edf.deadline(&words, 500, 2).value, 0);
    assert_eq!(edf.v(&words, 0, 3), Decision { thread: STAY, value: 0 });
    let mut priorities = Box::new(edf.with_discipline::<false>());
    assert_eq!(priorities.adopt(&words, FORMAT + 1, 4).value, -EINVAL);
    // By priority it is 3's turn; what 1's call returns is kept.
    assert_eq!(priorities.adopt(&words, FORMAT, 4).thread, 3);
    let mut edf = Box::new(priorities.with_discipline::<true>());
    assert_eq!(edf.adopt(&words, FORMAT, 5).thread, 1);
    assert_eq!(edf.thread_info(ThreadId(1), 5).unwrap().priority, 5);
}

/// Those in order at level 0 are few, whoever declares.
#[test]
fn deadlines_run_out_for_a_home_and_for_all() {
    let words = words();
    let mut real = booted(&words);
    for tid in 8..48 {
        real.thread_start(ThreadId(tid), 5, Asid(2 + tid / 10), Asid(0), 0);
    }
    // Each that has declared one waits, so that the next can.
    let mut answers = Vec::new();
    assert_ne!(real.p(&words, 0, Asid(1), 1).thread, STAY);
    for now in 2..43 {
        let me = running(&real);
        if me < 8 {
            real.p(&words, 0, Asid(1), now);
            continue;
        }
        let home = real.thread_info(ThreadId(me), now).unwrap().home;
        answers.push((home, real.deadline(&words, 5000, now).value));
        real.p(&words, 0, Asid(1), now);
    }
    let of = |home| answers.iter().filter(|(h, answer)| *h == Asid(home) && *answer == 0).count();
    assert!((2..7).all(|home| of(home) <= MAX_HURRIED_AT_HOME), "{answers:?}");
    assert_eq!((2..7).map(of).sum::<usize>(), MAX_HURRIED, "{answers:?}");
    assert!(answers.iter().all(|(_, answer)| [0, -EAGAIN].contains(answer)));
}

/// Between taking over and the commit the old instance may still be called: what it does not know of must not
/// keep the timer busy.
#[test]
fn a_deadline_declared_to_the_one_that_leaves_is_no_reason_to_tick() {
    let words = words();
    let mut edf = booted(&words);
    assert_eq!(edf.adopt(&words, FORMAT, 1).value, 0);
    let mut priorities = Box::new(edf.with_discipline::<false>());
    assert_eq!(priorities.deadline(&words, 50, 2).value, 0);
    let mut edf = Box::new(priorities.with_discipline::<true>());
    assert_eq!(edf.tick(100).thread, STAY);
    assert!(edf.timer(100).is_none_or(|at| at > 100));
    // Declared again it counts, and to one without deadlines it does not.
    assert_eq!(edf.deadline(&words, 50, 101).value, 0);
    assert_eq!(edf.timer(101), Some(151));
    let mut priorities = Box::new(edf.with_discipline::<false>());
    assert_eq!(priorities.deadline(&words, 50, 102).value, 0);
    assert_eq!(priorities.p(&words, 0, Asid(1), 103).thread, 1);
    assert_eq!(priorities.thread_info(ThreadId(3), 103).unwrap().priority, 31);
}

#[derive(Clone, Debug)]
enum Op {
    Advance(u64),
    Deadline(u64),
    Yield,
    Sleep(u64),
    P(u64),
    V(u64),
    Priority(u64, u64),
    Replace,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (0..60u64).prop_map(Op::Advance),
        5 => prop_oneof![1 => Just(0), 6 => 1..400u64].prop_map(Op::Deadline),
        4 => Just(Op::Yield),
        4 => (1..200u64).prop_map(Op::Sleep),
        5 => (0..2u64).prop_map(Op::P),
        6 => (0..2u64).prop_map(Op::V),
        2 => (1..8u64, 1..32u64).prop_map(|(t, p)| Op::Priority(t, p)),
        1 => Just(Op::Replace),
    ]
}

enum Either {
    Priorities(Box<Priorities>),
    Deadlines(Box<Deadlines>),
}

/// The same call to whichever is in charge.
macro_rules! ask {
    ($real:expr, |$s:ident| $call:expr) => {
        match $real {
            Either::Priorities($s) => $call,
            Either::Deadlines($s) => $call,
        }
    };
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whoever_is_in_charge_lets_the_right_thread_run(ops in prop::collection::vec(op(), 20..200)) {
        let words = words();
        let mut real = Either::Deadlines(booted(&words));
        for tid in 4..8 {
            ask!(&mut real, |s| s.thread_start(ThreadId(tid), 5 + tid % 2, Asid(2), Asid(0), 0));
        }
        let (mut now, mut deadlines) = (1, BTreeMap::<u64, u64>::new());
        for op in ops {
            let me = ask!(&real, |s| running(s));
            // Thread 0 is the idle one: it never waits, nor hurries.
            match op {
                Op::Advance(ticks) => now += ticks,
                Op::Deadline(_) | Op::Sleep(_) | Op::P(_) if me == 0 => {}
                Op::Deadline(ticks) => {
                    deadlines.remove(&me);
                    if ticks > 0 {
                        deadlines.insert(me, now + ticks);
                    }
                    ask!(&mut real, |s| s.deadline(&words, ticks, now));
                }
                Op::Yield => {
                    if ask!(&mut real, |s| s.quick_yield(now)).is_none() {
                        ask!(&mut real, |s| s.yield_now(now));
                    }
                }
                Op::Sleep(ticks) => {
                    ask!(&mut real, |s| s.sleep(now + ticks, Asid(2), now));
                }
                Op::P(sem) => {
                    if ask!(&mut real, |s| s.quick_p(&words, sem, Asid(2), now)).is_none() {
                        ask!(&mut real, |s| s.p(&words, sem, Asid(2), now));
                    }
                }
                Op::V(sem) => {
                    if ask!(&mut real, |s| s.quick_v(&words, sem, now)).is_none() {
                        ask!(&mut real, |s| s.v(&words, sem, now));
                    }
                }
                Op::Priority(tid, priority) => {
                    ask!(&mut real, |s| s.set_priority(&words, ThreadId(tid), priority, now));
                }
                Op::Replace => {
                    real = match real {
                        Either::Priorities(state) => Either::Deadlines(Box::new(state.with_discipline())),
                        Either::Deadlines(state) => Either::Priorities(Box::new(state.with_discipline())),
                    };
                    prop_assert!(ask!(&mut real, |s| s.adopt(&words, FORMAT, now)).value <= 0);
                }
            }
            let edf = matches!(real, Either::Deadlines(_));
            // The timer is set to the earliest of what is due, so a tick comes in time.
            // What is done a few at a time is done when nothing is left of it.
            for _ in 0..8 {
                ask!(&mut real, |s| {
                    let decision = s.tick(now);
                    s.serve(&words, &NoStacks, decision, now)
                });
            }
            let info = |tid| ask!(&real, |s| s.thread_info(ThreadId(tid), now)).unwrap();
            if edf {
                let ready = |tid: u64| matches!(info(tid).state, ThreadState::Ready | ThreadState::Running);
                deadlines.retain(|tid, at| *at > now || !ready(*tid));
            }
            let key = |tid: u64| {
                let deadline = deadlines.get(&tid).copied().filter(|_| edf).unwrap_or(u64::MAX);
                (deadline, 31 - info(tid).priority)
            };
            let ready: Vec<u64> = (0..8)
                .filter(|tid| matches!(info(*tid).state, ThreadState::Ready | ThreadState::Running))
                .collect();
            let best = ready.iter().map(|tid| key(*tid)).min().unwrap();
            let now_runs = ask!(&real, |s| running(s));
            let (deadline, level) = key(now_runs);
            prop_assert_eq!(deadline, best.0, "thread {} runs", now_runs);
            prop_assert!(deadline != u64::MAX || level == best.1, "thread {} runs", now_runs);
        }
    }
}

//! Lending: a lock's holder gets to run while somebody waits, however little urgent it is, and everything is
//! as before when nobody does.

mod stackless;

use pebble_abi::words::{Asid, ThreadId};
use pebble_scheduler::*;
use proptest::prelude::*;
use stackless::NoStacks;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// The lock's semaphore, and one for which nobody is lent anything.
const LOCK: u64 = 1000;
const PATIENT: u64 = 2;
/// Ticks for which a thread holds the lock.
const HOLD: u64 = LENT / 3;
/// Thread 0 idles; 1 is the shell, more urgent than all others.
const SHELL: u64 = 1;
const THREADS: u64 = 10;

struct World<const EDF: bool> {
    real: Box<Scheduler<EDF>>,
    words: Box<Words>,
    now: u64,
    timer: u64,
    /// Who holds the lock, and what it had run when it got it.
    holder: Option<(u64, u64)>,
    waiters: Vec<u64>,
}

impl<const EDF: bool> World<EDF> {
    /// All are ready; the shell runs.
    fn new(priorities: &[u8]) -> Self {
        let words: Box<Words> = Box::new([const { AtomicI64::new(0) }; 1024]);
        let mut real = Box::new(Scheduler::new());
        let threads = [0, 12].iter().chain(priorities).enumerate();
        let threads = threads.map(|(n, priority)| BootThread {
            tid: ThreadId(n as u64),
            priority: *priority,
            home: Asid(1 + n as u64),
        });
        let semaphores = [(LOCK, Wait::Lock), (PATIENT, Wait::Patient)];
        let semaphores = semaphores.map(|(id, wait)| BootSemaphore { id: id as u16, owner: Asid(1), wait });
        real.boot(&words, threads, semaphores, ThreadId(SHELL), u16::MAX, 0).unwrap();
        World { real, words, now: 1, timer: NEVER, holder: None, waiters: vec![] }
    }

    /// As the component: the quick way, if there is one, else the other.
    fn enter(
        &mut self,
        quick: impl FnOnce(&mut Scheduler<EDF>, &Words, u64) -> Option<Decision>,
        entry: impl FnOnce(&mut Scheduler<EDF>, &Words, u64) -> Decision,
    ) -> i64 {
        let now = self.now;
        if let Some(decision) = quick(&mut self.real, &self.words, now) {
            return decision.value;
        }
        let mut decision = entry(&mut self.real, &self.words, now);
        let timer = if self.real.wants_attention() {
            decision = self.real.serve(&self.words, &NoStacks, decision, now);
            self.real.timer_to_serve(now)
        } else {
            self.real.timer(now)
        };
        self.timer = timer.unwrap_or(self.timer);
        assert!(decision.thread == STAY || decision.thread == self.running());
        decision.value
    }

    fn running(&self) -> u64 {
        let running = |t: &u64| self.info(*t).is_some_and(|info| info.state == ThreadState::Running);
        (0..=THREADS + 1).find(running).unwrap()
    }

    fn info(&self, t: u64) -> Option<ThreadInfo> {
        self.real.thread_info(ThreadId(t), self.now)
    }

    /// What has been run by that thread.
    fn ran(&self, t: u64) -> u64 {
        self.info(t).unwrap().ran
    }

    /// Time passes, the timer ticks, and whoever holds the lock gives it up when it has done its work.
    fn advance(&mut self, ticks: u64) {
        let until = self.now + ticks;
        let mut again = 0;
        while self.now < until {
            let done = self.holder.filter(|(t, _)| *t == self.running());
            let done = done.map_or(NEVER, |(t, from)| self.now + (from + HOLD).saturating_sub(self.ran(t)));
            let next = self.timer.max(self.now).min(done).min(until);
            again = if next > self.now { 0 } else { again + 1 };
            assert!(again < 8, "the time stands still");
            self.now = next;
            if done == next {
                self.give_up();
            } else if self.timer <= next {
                match self.real.quick_tick(next) {
                    Some(_) => self.timer = NEVER,
                    None => drop(self.enter(|_, _, _| None, |s, _, now| s.tick(now))),
                }
            }
        }
    }

    /// The running thread takes the lock, or waits for it.
    fn take(&mut self) {
        let t = self.running();
        if t == 0 || self.holder.is_some_and(|(holder, _)| holder == t) {
            return;
        }
        if self.holder.is_none() && self.waiters.is_empty() {
            self.holder = Some((t, self.ran(t)));
            return;
        }
        self.waiters.push(t);
        self.enter(
            |s, words, now| s.quick_p(words, LOCK, Asid(1), now),
            |s, words, now| s.p(words, LOCK, Asid(1), now),
        );
    }

    fn give_up(&mut self) {
        let waits = |world: &Self, t: u64| world.info(t).unwrap().state == ThreadState::Waiting(LOCK as u16);
        self.holder = None;
        if self.words[LOCK as usize].load(Relaxed) < 0 {
            self.enter(|s, words, now| s.quick_v(words, LOCK, now), |s, words, now| s.v(words, LOCK, now));
            let woken = self.waiters.iter().position(|t| !waits(self, *t)).expect("nobody was woken");
            let t = self.waiters.remove(woken);
            self.holder = Some((t, self.ran(t)));
        }
    }

    fn sleep(&mut self, ticks: u64) -> i64 {
        self.enter(|_, _, _| None, |s, _, now| s.sleep(now + ticks, Asid(1), now))
    }
}

/// A thread of the least priority holds the lock, and a crowd computes.
fn inverted<const EDF: bool>(crowd: &[u8]) -> World<EDF> {
    let mut world = World::<EDF>::new(&[&[1], crowd].concat());
    // All sleep but the holder to be.
    while world.running() != 2 {
        world.sleep(100);
    }
    world.take();
    world.advance(200);
    assert_eq!((world.running(), world.holder), (SHELL, Some((2, 0))));
    world
}

#[test]
fn who_holds_a_lock_gets_to_run() {
    fn check<const EDF: bool>(crowd: &[u8]) {
        let mut world = inverted::<EDF>(crowd);
        let (begin, turns) = (world.now, crowd.len() as u64 + 2);
        world.take();
        world.advance(turns * LENT);
        assert!(world.ran(2) >= HOLD, "{crowd:?}: ran {}", world.ran(2));
        let late = world.now - begin - world.ran(SHELL);
        assert!(world.running() == SHELL && late <= turns * LENT, "{crowd:?}: {late} ticks");
        // The shell waits for something else: the crowd computes, and the other does not.
        let before = world.ran(2);
        world.enter(|_, _, _| None, |s, words, now| s.p(words, PATIENT, Asid(1), now));
        world.advance(50 * SLICE);
        assert_eq!(world.ran(2), before, "{crowd:?}");
    }
    for crowd in [&[8][..], &[8, 8], &[5, 8, 8], &[11], &[8; 8]] {
        check::<false>(crowd);
        check::<true>(crowd);
    }
}

/// The holder does not go on at the shell's level, when it has given up what the shell has waited for.
#[test]
fn who_gets_a_lock_runs_at_once() {
    fn check<const EDF: bool>(crowd: &[u8]) {
        let mut world = inverted::<EDF>(crowd);
        world.take();
        while world.holder.is_some_and(|(t, _)| t == 2) {
            world.advance(1);
        }
        assert_eq!((world.running(), world.ran(2)), (SHELL, HOLD), "{crowd:?}");
    }
    for crowd in [&[][..], &[1], &[8], &[5, 8, 8], &[8; 8]] {
        check::<false>(crowd);
        check::<true>(crowd);
    }
}

#[test]
fn nobody_is_lent_anything_for_what_is_no_lock() {
    let mut world = inverted::<false>(&[8, 8]);
    world.enter(
        |s, words, now| s.quick_p(words, PATIENT, Asid(1), now),
        |s, words, now| s.p(words, PATIENT, Asid(1), now),
    );
    world.advance(100 * SLICE);
    assert!(world.ran(2) < HOLD && world.holder.is_some());
}

/// Whoever ends a domain during a turn gives its threads no more than what it has itself when the turn is
/// over: or one that does not stop would keep its own burial from going on.
#[test]
fn what_is_lent_is_not_passed_on() {
    fn check<const EDF: bool>() {
        let mut world = inverted::<EDF>(&[4, 5]);
        world.take();
        // Until the holder has a turn, at the shell's level.
        while world.running() != 2 {
            world.advance(HOLD / 4);
        }
        world.enter(|_, _, _| None, |s, words, now| s.domain_abort(words, Asid(1 + 3), ThreadId(0), now));
        world.enter(|_, _, _| None, |s, words, now| s.domain_abort(words, Asid(1 + 4), ThreadId(0), now));
        world.advance(100 * LENT);
        assert_eq!(world.info(3).unwrap().priority, 4);
    }
    check::<false>();
    check::<true>();
}

#[derive(Clone, Debug)]
enum Op {
    Advance(u64),
    Take,
    Yield,
    Sleep(u64),
    Priority(u64, u64),
    Deadline(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => prop_oneof![1..2 * HOLD, 1..3 * SLICE].prop_map(Op::Advance),
        6 => Just(Op::Take),
        2 => Just(Op::Yield),
        4 => (1..SLICE).prop_map(Op::Sleep),
        1 => (2..THREADS, 1..12u64).prop_map(|(t, p)| Op::Priority(t, p)),
        1 => (0..SLICE).prop_map(Op::Deadline),
    ]
}

fn lives<const EDF: bool>(priorities: &[u8], ops: &[Op]) -> Result<(), TestCaseError> {
    let mut world = World::<EDF>::new(priorities);
    for op in ops {
        let idle = world.running() == 0;
        // Who holds a lock sleeps in no server of ours.
        let busy = idle || world.holder.is_some_and(|(t, _)| t == world.running());
        match *op {
            Op::Advance(ticks) => world.advance(ticks),
            Op::Take if !idle => world.take(),
            Op::Yield => drop(world.enter(|s, _, now| s.quick_yield(now), |s, _, now| s.yield_now(now))),
            Op::Sleep(ticks) if !busy => drop(world.sleep(ticks)),
            Op::Priority(t, p) => {
                let _ =
                    world.enter(|_, _, _| None, |s, words, now| s.set_priority(words, ThreadId(t), p, now));
            }
            Op::Deadline(ticks) => {
                let _ = world.enter(|_, _, _| None, |s, words, now| s.deadline(words, ticks, now));
            }
            _ => {}
        }
    }
    // However it stands, when sleeps and deadlines are over: the shell gets the lock. Who is less urgent may
    // wait for ever, for the processor.
    world.advance(2 * SLICE);
    let waits = |world: &World<EDF>| world.waiters.contains(&SHELL);
    if !waits(&world) && world.holder.is_none_or(|(t, _)| t != SHELL) {
        prop_assert_eq!(world.running(), SHELL);
        world.take();
    }
    let levels = 12;
    world.advance((THREADS + 1) * (THREADS * levels * LENT + HOLD));
    prop_assert!(!waits(&world), "{:?} wait, holder {:?}", world.waiters, world.holder);
    // And then the most urgent runs, with nothing left of what was lent.
    world.advance(2 * LENT);
    world.enter(|_, _, _| None, |s, _, now| s.tick(now));
    let urgent =
        |t: u64| world.info(t).filter(|i| matches!(i.state, ThreadState::Ready | ThreadState::Running));
    let most = (0..THREADS).filter_map(urgent).map(|info| info.priority).max().unwrap();
    prop_assert_eq!(world.info(world.running()).unwrap().priority, most);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whoever_waits_for_a_lock_gets_it(
        priorities in prop::collection::vec(1..12u8, THREADS as usize - 2),
        ops in prop::collection::vec(op(), 10..150),
        edf: bool,
    ) {
        if edf { lives::<true>(&priorities, &ops)? } else { lives::<false>(&priorities, &ops)? }
    }
}

/// An entry that has put a waiter behind others lends nothing anew: the timer ticks at once, and that entry
/// does.
#[test]
fn a_turn_is_lent_in_an_entry_of_its_own() {
    let mut world = World::<false>::new(&[8, 5, 3]);
    let wait = |world: &mut World<false>| {
        world.enter(|_, _, _| None, |s, words, now| s.p(words, LOCK, Asid(1), now));
    };
    wait(&mut world);
    assert_eq!((world.running(), world.timer), (SHELL + 1, world.now + LENT));
    world.now += 1;
    wait(&mut world);
    assert!(world.timer <= world.now, "nothing was put off");
    world.enter(|_, _, _| None, |s, _, now| s.tick(now));
    assert_eq!((world.running(), world.timer), (SHELL + 2, world.now + LENT));
}

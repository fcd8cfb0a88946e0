//! Shares of the processor: over any window of time a domain's threads run no longer than its share says,
//! plus one slice.

mod stackless;

use pebble_abi::words::{Asid, ThreadId};
use pebble_scheduler::*;
use proptest::prelude::*;
use stackless::NoStacks;
use std::sync::atomic::AtomicI64;

/// Domains of the threads: 0 is the idle one, 1 and 2 are of domain 2, 3 and 4 of domain 3, 5 of domain 4.
const HOMES: [u16; 6] = [1, 2, 2, 3, 3, 4];
const PRIORITIES: [u8; 6] = [0, 9, 5, 5, 7, 5];

struct World {
    real: Box<Scheduler>,
    words: Box<Words>,
    now: u64,
    timer: u64,
}

impl World {
    fn new() -> Self {
        let words: Box<Words> = Box::new([const { AtomicI64::new(0) }; 1024]);
        let mut real = Box::new(Scheduler::new());
        let threads = (0..6).map(|n| BootThread {
            tid: ThreadId(n as u64),
            priority: PRIORITIES[n],
            home: HOMES[n].into(),
        });
        let semaphore = BootSemaphore { id: 1, owner: Asid(1), wait: Wait::Interruptible };
        real.boot(&words, threads, [semaphore], ThreadId(0), u16::MAX, 0).unwrap();
        World { real, words, now: 1, timer: NEVER }
    }

    fn enter(&mut self, entry: impl FnOnce(&mut Scheduler, &Words, u64) -> Decision) -> i64 {
        let now = self.now;
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
        let running =
            |t: &u64| self.real.thread_info(ThreadId(*t), self.now).unwrap().state == ThreadState::Running;
        (0..6).find(running).unwrap()
    }

    /// Time passes, and the timer ticks.
    fn advance(&mut self, ticks: u64) {
        let until = self.now + ticks;
        let mut again = 0;
        while self.timer <= until {
            // A slice that was over before may end at once.
            again = if self.timer > self.now { 0 } else { again + 1 };
            assert!(again < 8, "the timer stands still");
            self.now = self.now.max(self.timer);
            match self.real.quick_tick(self.now) {
                Some(_) => self.timer = NEVER,
                None => drop(self.enter(|s, _, now| s.tick(now))),
            }
        }
        self.now = until;
    }

    fn share(&mut self, domain: u64, percent: u64) -> i64 {
        self.enter(|s, _, now| s.share(Asid(domain), percent, now))
    }

    /// What the threads of a domain have run.
    fn ran(&self, domain: u16) -> u64 {
        let threads = (0..6).filter(|n| HOMES[*n] == domain);
        threads.map(|n| self.real.thread_info(ThreadId(n as u64), self.now).unwrap().ran).sum()
    }
}

#[test]
fn a_share_holds_even_if_nobody_else_wants_to_run() {
    let mut world = World::new();
    for domain in [2, 3, 4] {
        assert_eq!(world.share(domain, 10 * u64::from(domain)), 0);
    }
    world.advance(100 * PERIOD);
    for domain in [2, 3, 4] {
        let wanted = u64::from(domain) * 10 * PERIOD;
        assert!(world.ran(domain).abs_diff(wanted) <= SLICE, "domain {domain}: {}", world.ran(domain));
    }
    assert!(world.ran(1) >= 9 * PERIOD, "idle: {}", world.ran(1));
    // And ends.
    let before = world.ran(2);
    assert_eq!((world.share(2, 0), world.share(256, 1), world.share(2, 101)), (0, -22, -22));
    world.advance(100 * PERIOD);
    assert_eq!(world.ran(2) - before, 100 * PERIOD);
}

#[test]
fn a_domain_that_dies_is_not_held() {
    let mut world = World::new();
    world.share(2, 1);
    world.advance(PERIOD / 2);
    assert_eq!(world.real.thread_info(ThreadId(1), world.now).unwrap().state, ThreadState::Held);
    for from in (0..6).chain([255]) {
        world.enter(|s, words, now| s.domain_abort(words, Asid(2), ThreadId(from), now));
    }
    // Both of its threads, now as urgent as one another.
    assert!([1, 2].contains(&world.running()));
    let before = world.ran(2);
    world.advance(3 * PERIOD);
    assert_eq!(world.ran(2) - before, 3 * PERIOD);
}

#[derive(Clone, Debug)]
enum Op {
    Advance(u64),
    Yield,
    Sleep(u64),
    P,
    V,
    Priority(u64, u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => prop_oneof![1..100u64, 1..2 * PERIOD].prop_map(Op::Advance),
        2 => Just(Op::Yield),
        2 => (1..PERIOD).prop_map(Op::Sleep),
        2 => Just(Op::P),
        3 => Just(Op::V),
        1 => (1..6u64, 4..10u64).prop_map(|(t, p)| Op::Priority(t, p)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nobody_gets_more_than_its_share(ops in prop::collection::vec(op(), 20..200), percent in 1..50u64) {
        let mut world = World::new();
        world.share(2, percent);
        let mut seen = vec![(world.now, world.ran(2))];
        for op in ops {
            let idle = world.running() == 0;
            match op {
                Op::Advance(ticks) => world.advance(ticks),
                Op::Yield => drop(world.enter(|s, _, now| s.yield_now(now))),
                Op::Sleep(ticks) if !idle => {
                    world.enter(|s, _, now| s.sleep(now + ticks, Asid(2), now));
                }
                Op::P if !idle => drop(world.enter(|s, words, now| s.p(words, 1, Asid(2), now))),
                Op::V => drop(world.enter(|s, words, now| s.v(words, 1, now))),
                Op::Priority(t, p) => {
                    world.enter(|s, words, now| s.set_priority(words, ThreadId(t), p, now));
                }
                _ => {}
            }
            seen.push((world.now, world.ran(2)));
        }
        for (n, (from, before)) in seen.iter().enumerate() {
            for (to, after) in &seen[n..] {
                let most = (to - from) * percent / 100 + SLICE;
                prop_assert!(after - before <= most, "{} of {} ticks", after - before, to - from);
            }
        }
    }
}

//! Waiting for stacks: random callers of two domains that have fewer stacks than callers.
//!
//! The harness plays portal code: a call takes the first stack of the queue, or enters the scheduler and is made again when it returns; a
//! return gives the stack back, and tells nobody. Checked after each step: stacks come to those who wait by priority, then by arrival;
//! whoever is let go finds one; at the end all of them are there again, and nobody waits.

use pebble_abi::map;
use pebble_scheduler::*;
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicI64;

/// Domains that are called, and how many stacks each has.
const CALLEES: [(u8, u16); 2] = [(7, 1), (130, 3)];
/// Thread 0 is the idle one.
const THREADS: u64 = 9;
/// Home of all threads.
const HOME: u16 = 2;

/// The stacks of one domain; the first of each list last.
#[derive(Clone, Debug, Default)]
struct Lists {
    queue: Vec<u64>,
    /// The end of the queue is the one that makes callers wait.
    marked: bool,
    kept: Vec<u64>,
}

/// Those of all domains, and what the nucleus does with them.
#[derive(Default)]
struct Queues(RefCell<BTreeMap<u8, Lists>>);

impl Queues {
    fn of<R>(&self, domain: u8, work: impl FnOnce(&mut Lists) -> R) -> R {
        work(self.0.borrow_mut().entry(domain).or_default())
    }

    fn give(&self, domain: u8, stack: u64) {
        self.of(domain, |lists| lists.queue.push(stack));
    }

    /// As portal code does it.
    fn take(&self, domain: u8) -> Option<u64> {
        self.of(domain, |lists| if lists.queue.len() == 1 && lists.marked { None } else { lists.queue.pop() })
    }
}

impl Stacks for Queues {
    fn head(&self, domain: u8) -> u64 {
        self.of(domain, |lists| {
            let end = if lists.marked { map::STACKS_WANTED } else { map::STACKS_END };
            lists.queue.last().copied().unwrap_or(end)
        })
    }
    fn keep(&self, domain: u8) -> bool {
        self.of(domain, |lists| {
            let stack = lists.queue.pop();
            lists.kept.extend(stack);
            lists.marked |= lists.queue.is_empty();
            stack.is_some()
        })
    }
    fn offer(&self, domain: u8) -> bool {
        self.of(domain, |lists| {
            let stack = lists.kept.pop();
            lists.marked &= stack.is_none() || !lists.queue.is_empty();
            lists.queue.extend(stack);
            stack.is_some()
        })
    }
    fn release(&self, domain: u8) -> bool {
        self.of(domain, |lists| {
            let done = lists.queue.is_empty() && lists.marked;
            if done {
                lists.queue.append(&mut lists.kept);
                lists.marked = false;
            }
            done
        })
    }
}

struct World<const EDF: bool> {
    real: Box<Scheduler<EDF>>,
    words: Box<Words>,
    queues: Queues,
    now: u64,
    timer: u64,
    /// Stacks that each thread has, the last one last.
    held: BTreeMap<u64, Vec<(u8, u64)>>,
    /// Calls that wait, or are about to be made again; when they were first made.
    calls: BTreeMap<u64, (u8, i64)>,
    /// Who was let go by an abort, and so may find nothing.
    torn: Vec<u64>,
    made: i64,
}

impl<const EDF: bool> World<EDF> {
    fn new() -> Self {
        let words: Box<Words> = Box::new([const { AtomicI64::new(0) }; 1024]);
        let mut real = Box::new(Scheduler::new());
        let boot = (0..THREADS).map(|t| BootThread {
            tid: t as u16,
            priority: if t == 0 { 0 } else { 5 + (t % 2) as u8 },
            home: HOME,
        });
        real.boot(
            &words,
            boot,
            [BootSemaphore { id: 0, owner: 1, wait: Wait::Interruptible }],
            1,
            u16::MAX,
            0,
        )
        .unwrap();
        let world = World {
            real,
            words,
            queues: Queues::default(),
            now: 1,
            timer: NEVER,
            held: BTreeMap::new(),
            calls: BTreeMap::new(),
            torn: Vec::new(),
            made: 0,
        };
        let mut next = 0;
        for (domain, count) in CALLEES {
            for _ in 0..count {
                world.queues.give(domain, map::stack_desc_va(next));
                next += 1;
            }
        }
        world
    }

    fn running(&self) -> u64 {
        (0..THREADS).find(|t| self.state(*t) == ThreadState::Running).unwrap()
    }

    fn state(&self, t: u64) -> ThreadState {
        self.real.thread_info(t, self.now).unwrap().state
    }

    /// Of the callees that a thread is in, the last in order.
    fn deepest(&self, t: u64) -> u8 {
        self.held.get(&t).and_then(|held| held.iter().map(|(domain, _)| *domain).max()).unwrap_or(0)
    }

    /// Who waits for that domain, the first to go first.
    fn line(&self, domain: u8) -> Vec<u64> {
        let waits = |t: &u64| self.state(*t) == ThreadState::Stack(domain.into());
        let mut line: Vec<u64> = (0..THREADS).filter(waits).collect();
        line.sort_by_key(|t| {
            let priority = self.real.thread_info(*t, self.now).unwrap().priority;
            (std::cmp::Reverse(priority), self.calls[t].1)
        });
        line
    }

    /// An entry of the component. `orderly`: it changes no order, and tears nobody away.
    fn enter(&mut self, orderly: bool, entry: impl FnOnce(&mut Scheduler<EDF>, &Words, &Queues) -> Decision) {
        let before = CALLEES.map(|(domain, _)| (domain, self.line(domain)));
        let now = self.now;
        let mut decision = entry(&mut self.real, &self.words, &self.queues);
        let timer = if self.real.wants_attention() {
            decision = self.real.serve(&self.words, &self.queues, decision, now);
            self.real.timer_to_serve(now)
        } else {
            self.real.timer(now)
        };
        self.timer = timer.unwrap_or(self.timer);
        let running = self.running();
        assert!(decision.thread == STAY || decision.thread == running);
        for (domain, line) in before {
            let still = self.line(domain);
            let gone: Vec<u64> = line.iter().copied().filter(|t| !still.contains(t)).collect();
            if orderly {
                assert_eq!(gone, line[..gone.len()], "not in order");
            } else {
                self.torn.extend(gone);
            }
            assert!(still.is_empty() || self.timer <= now + LOOK, "nobody looks");
        }
    }

    /// The running thread makes the call that waits, if there is one.
    fn call_again(&mut self) {
        let me = self.running();
        let Some((domain, _)) = self.calls.get(&me).copied() else { return };
        match self.queues.take(domain) {
            Some(stack) => {
                self.held.entry(me).or_default().push((domain, stack));
                self.calls.remove(&me);
                self.torn.retain(|t| *t != me);
            }
            None => {
                let first = self.calls[&me].1 == self.made;
                let priority = |t: u64| self.real.thread_info(t, self.now).unwrap().priority;
                // Somebody more urgent may have got what was kept.
                let outranked = (0..THREADS).any(|t| priority(t) > priority(me));
                let torn = first || outranked || self.torn.contains(&me);
                assert!(torn, "thread {me} was let go, and finds nothing");
                self.torn.retain(|t| *t != me);
                // It counts as come now.
                self.made += 1;
                self.calls.insert(me, (domain, self.made));
                let now = self.now;
                self.enter(true, |s, _, stacks| s.stack_wait(stacks, domain.into(), now));
            }
        }
    }

    fn tick(&mut self) {
        let now = self.now;
        if self.real.quick_tick(now).is_some() {
            self.timer = NEVER;
        } else {
            self.enter(true, |s, _, _| s.tick(now));
        }
    }

    fn step(&mut self, op: &Op) {
        // Unless an interrupt comes before anything else.
        match op {
            Op::AtOnce => self.tick(),
            Op::Preempt => {
                let now = self.now;
                self.change(1);
                self.enter(false, |s, words, _| s.set_priority(words, 1, 9, now));
                self.enter(false, |s, words, _| s.set_priority(words, 1, 6, now));
                self.torn.extend(self.calls.keys());
            }
            _ => self.act(op),
        }
    }

    /// The thread's priority changes. If it waits it goes behind its new peers; one that was let go, and has to stand back, is before them.
    fn change(&mut self, t: u64) {
        let waits = matches!(self.state(t), ThreadState::Stack(_));
        self.made += 1;
        if let Some((_, when)) = self.calls.get_mut(&t) {
            *when = if waits { self.made } else { -self.made };
        }
    }

    fn act(&mut self, op: &Op) {
        while self.calls.contains_key(&self.running()) {
            self.call_again();
        }
        let (me, now) = (self.running(), self.now);
        match *op {
            // No domain calls itself, and the second not the first: or all stacks could be with those who wait for another.
            Op::Call(n) if me != 0 && self.deepest(me) < CALLEES[n].0 => {
                let domain = CALLEES[n].0;
                match self.queues.take(domain) {
                    Some(stack) => self.held.entry(me).or_default().push((domain, stack)),
                    None => {
                        self.made += 1;
                        self.calls.insert(me, (domain, self.made));
                        self.enter(true, |s, _, stacks| s.stack_wait(stacks, domain.into(), now));
                    }
                }
            }
            Op::Return => {
                if let Some((domain, stack)) = self.held.entry(me).or_default().pop() {
                    self.queues.give(domain, stack);
                }
            }
            Op::Yield => {
                let mut quick = self.real.quick_yield(now);
                if quick.is_none() && self.real.calm(&self.queues) {
                    quick = self.real.quick_yield(now);
                    self.real.alarm_again();
                }
                if quick.is_none() {
                    self.enter(true, |s, _, _| s.yield_now(now));
                }
            }
            Op::Sleep(ticks) if me != 0 => self.enter(true, |s, _, _| s.sleep(now + ticks, 2, now)),
            Op::Advance(ticks) => {
                self.now += ticks;
                if self.timer <= self.now {
                    self.tick();
                }
            }
            Op::Priority(t, priority) => {
                self.change(t);
                self.enter(false, |s, words, _| s.set_priority(words, t, priority, now));
                self.torn.extend(self.calls.keys());
            }
            Op::Abort(t) => self.enter(false, |s, words, _| s.thread_abort(words, t, false, now)),
            Op::Gone(n) => {
                let domain = CALLEES[n].0.into();
                for from in (0..THREADS).chain([255]) {
                    self.enter(false, |s, words, _| s.domain_abort(words, domain, from, now));
                }
                assert_eq!(self.line(CALLEES[n].0), []);
                // What is not held is in one of the lists. The portal manager puts them in order when the domain's number is used again.
                let held = self.held.values().flatten().filter(|(d, _)| *d == CALLEES[n].0).count();
                let there = self.queues.of(CALLEES[n].0, |lists| {
                    lists.queue.append(&mut lists.kept);
                    lists.marked = false;
                    lists.queue.len()
                });
                assert_eq!(there + held, usize::from(CALLEES[n].1));
                // So even who was to have one may find that somebody else was faster.
                self.torn.extend(self.calls.keys());
            }
            _ => {}
        }
    }

    /// Everybody returns from everything, and then sleeps.
    fn settle(&mut self) {
        for _ in 0..500 {
            self.act(&Op::Return);
            if self.deepest(self.running()) == 0 {
                self.act(&Op::Sleep(LATEST / 2));
            }
            self.act(&Op::Advance(LOOK));
        }
        assert!(self.calls.is_empty(), "{:?} wait for ever", self.calls);
        for (domain, count) in CALLEES {
            let there = (0..count).filter(|_| self.queues.take(domain).is_some()).count();
            assert_eq!(there, usize::from(count), "stacks of {domain}");
            assert_eq!(self.queues.take(domain), None);
        }
    }
}

#[derive(Clone, Debug)]
enum Op {
    Call(usize),
    Return,
    Yield,
    Sleep(u64),
    Advance(u64),
    /// A tick before the running thread has done anything.
    AtOnce,
    /// The same, and somebody else is more urgent for a moment.
    Preempt,
    Priority(u64, u64),
    Abort(u64),
    Gone(usize),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => (0..2usize).prop_map(Op::Call),
        8 => Just(Op::Return),
        4 => Just(Op::Yield),
        3 => (1..200u64).prop_map(Op::Sleep),
        4 => prop_oneof![0..60u64, 0..2 * LOOK, 0..2 * SLICE].prop_map(Op::Advance),
        4 => Just(Op::AtOnce),
        2 => Just(Op::Preempt),
        1 => (1..THREADS, 4..8u64).prop_map(|(t, p)| Op::Priority(t, p)),
        1 => (1..THREADS).prop_map(Op::Abort),
        1 => (0..2usize).prop_map(Op::Gone),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn stacks_come_in_order_and_none_is_lost(ops in prop::collection::vec(op(), 20..200), edf: bool) {
        if edf {
            let mut world = World::<true>::new();
            ops.iter().for_each(|op| world.step(op));
            world.settle();
        } else {
            let mut world = World::<false>::new();
            ops.iter().for_each(|op| world.step(op));
            world.settle();
        }
    }
}

/// Whoever gives a stack back and calls again at once does not get it while others wait.
#[test]
fn nobody_overtakes() {
    let mut world = World::<false>::new();
    let turns: Vec<u64> = (0..40)
        .map(|_| {
            world.act(&Op::Call(0));
            while world.held.get(&world.running()).is_none_or(|held| held.is_empty()) {
                world.act(&Op::Yield);
            }
            let me = world.running();
            world.act(&Op::Yield);
            while world.running() != me {
                world.act(&Op::Call(0));
            }
            // Whoever gives it back calls again at once.
            world.act(&Op::Return);
            me
        })
        .collect();
    // The four threads of the higher priority take turns; the others never run.
    for (n, t) in turns.iter().enumerate().skip(4) {
        assert_eq!(*t, turns[n - 4], "{turns:?}");
    }
}

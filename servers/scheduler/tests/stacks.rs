//! Waiting for stacks: random callers of two domains that have fewer stacks than callers.
//!
//! The harness plays portal code: a call takes the first stack of the queue, or enters the scheduler and is
//! made again when it returns; a return gives the stack back, and tells nobody. Checked after each step:
//! stacks come to those who wait, first to those who are in the other domain, by priority, then by arrival,
//! unless they are of one family; whoever is let go finds one; at the end all of them are there again, and
//! nobody waits.

use pebble_abi::map;
use pebble_abi::words::{Asid, ThreadId};
use pebble_scheduler::*;
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicI64;

/// Domains that are called, and how many stacks each has.
const CALLEES: [(u8, u16); 2] = [(7, 1), (130, 3)];
/// Thread 0 is the idle one.
const THREADS: u64 = 9;
/// Home of the idle thread; behind it come those of the others.
const HOME: u16 = 20;

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
    /// How often each was interrupted before it made the call that waits.
    interrupted: BTreeMap<u64, u8>,
    made: i64,
    /// Each is of a family of its own.
    in_order: bool,
    threads: u64,
    /// In the first domain threads have waited for locks; threads that waited last when they were there.
    locks: bool,
    abroad: Vec<u64>,
}

impl<const EDF: bool> World<EDF> {
    /// Threads of one family, or each of one of its own.
    fn new(homes: u64) -> Self {
        let words: Box<Words> = Box::new([const { AtomicI64::new(0) }; 1024]);
        let mut real = Box::new(Scheduler::new());
        let boot = (0..THREADS).map(|t| BootThread {
            tid: ThreadId(t),
            priority: if t == 0 { 0 } else { 5 + (t % 2) as u8 },
            home: (HOME + (t % homes) as u16).into(),
        });
        real.boot(
            &words,
            boot,
            [BootSemaphore { id: 0, owner: Asid(1), wait: Wait::Interruptible }],
            ThreadId(1),
            u16::MAX,
            0,
        )
        .unwrap();
        // In the first domain somebody waits for a lock, for a moment.
        let lock = real.sem_alloc(&words, 0, Asid(1), Wait::Lock) as u64;
        real.p(&words, lock, Asid(CALLEES[0].0.into()), 0);
        real.v(&words, lock, 0);
        let world = World {
            real,
            words,
            queues: Queues::default(),
            now: 1,
            timer: NEVER,
            held: BTreeMap::new(),
            calls: BTreeMap::new(),
            torn: Vec::new(),
            interrupted: BTreeMap::new(),
            made: 0,
            in_order: homes > 1,
            threads: THREADS,
            locks: true,
            abroad: Vec::new(),
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
        (0..self.threads).find(|t| self.state(*t) == ThreadState::Running).unwrap()
    }

    fn state(&self, t: u64) -> ThreadState {
        self.real.thread_info(ThreadId(t), self.now).unwrap().state
    }

    /// Of the callees that a thread is in, the last in order.
    fn deepest(&self, t: u64) -> u8 {
        self.held.get(&t).and_then(|held| held.iter().map(|(domain, _)| *domain).max()).unwrap_or(0)
    }

    /// The domain that the thread is in.
    fn caller(&self, t: u64) -> u64 {
        let held = self.held.get(&t).and_then(|held| held.last());
        held.map_or(self.real.thread_info(ThreadId(t), self.now).unwrap().home.get(), |(domain, _)| {
            (*domain).into()
        })
    }

    /// The running thread finds no stack.
    fn wait(&mut self, me: u64, domain: u8) {
        let (now, from) = (self.now, self.caller(me));
        self.abroad.retain(|t| *t != me);
        if self.locks && from == CALLEES[0].0.into() {
            self.abroad.push(me);
        }
        self.enter(true, |s, _, stacks| s.stack_wait(stacks, Asid(domain.into()), Asid(from), now));
    }

    /// Who waits for that domain, the first to go first.
    fn line(&self, domain: u8) -> Vec<u64> {
        let waits = |t: &u64| self.state(*t) == ThreadState::Stack(u16::from(domain).into());
        let mut line: Vec<u64> = (0..self.threads).filter(waits).collect();
        line.sort_by_key(|t| {
            let priority = self.real.thread_info(ThreadId(*t), self.now).unwrap().priority;
            (!self.abroad.contains(t), std::cmp::Reverse(priority), self.calls[t].1)
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
        let ready = |t: &&u64| self.state(**t) == ThreadState::Ready || **t == running;
        let heirs = before.iter().flat_map(|(_, line)| line.iter().filter(ready)).count();
        assert!(!orderly || heirs <= 1, "{heirs} heirs in one entry");
        for (domain, line) in before {
            let still = self.line(domain);
            let gone: Vec<u64> = line.iter().copied().filter(|t| !still.contains(t)).collect();
            if orderly && self.in_order {
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
                self.interrupted.remove(&me);
                self.torn.retain(|t| *t != me);
            }
            None => {
                let first = self.calls[&me].1 == self.made;
                let priority = |t: u64| self.real.thread_info(ThreadId(t), self.now).unwrap().priority;
                // Somebody more urgent, or abroad, may have got what was kept.
                let outranked = (0..self.threads)
                    .any(|t| priority(t) > priority(me) || t != me && self.abroad.contains(&t));
                let torn = first || outranked || self.torn.contains(&me);
                assert!(torn, "thread {me} was let go, and finds nothing");
                self.torn.retain(|t| *t != me);
                // It counts as come now.
                self.made += 1;
                self.calls.insert(me, (domain, self.made));
                self.wait(me, domain);
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
            Op::AtOnce => {
                let me = self.running();
                let times = self.interrupted.entry(me).or_default();
                *times += 1;
                // What was offered is kept again twice.
                if *times > 2 && self.calls.contains_key(&me) {
                    self.torn.push(me);
                }
                self.tick();
            }
            Op::Preempt => {
                let now = self.now;
                self.change(1);
                self.enter(false, |s, words, _| s.set_priority(words, ThreadId(1), 9, now));
                // It may have been let go by this, and has to stand back.
                self.change(1);
                self.enter(false, |s, words, _| s.set_priority(words, ThreadId(1), 6, now));
                self.torn.extend(self.calls.keys());
            }
            _ => self.act(op),
        }
    }

    /// The thread's priority changes. If it waits it goes behind its new peers; one that was let go, and has
    /// to stand back, is before them.
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
            // No domain calls itself, and the second not the first: or all stacks could be with those who
            // wait for another.
            Op::Call(n) if me != 0 && self.deepest(me) < CALLEES[n].0 => {
                let domain = CALLEES[n].0;
                match self.queues.take(domain) {
                    Some(stack) => self.held.entry(me).or_default().push((domain, stack)),
                    None => {
                        self.made += 1;
                        self.calls.insert(me, (domain, self.made));
                        self.wait(me, domain);
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
            Op::Sleep(ticks) if me != 0 => self.enter(true, |s, _, _| s.sleep(now + ticks, Asid(2), now)),
            Op::Advance(ticks) => {
                self.now += ticks;
                if self.timer <= self.now {
                    self.tick();
                }
            }
            Op::Priority(t, priority) => {
                self.change(t);
                self.enter(false, |s, words, _| s.set_priority(words, ThreadId(t), priority, now));
                self.torn.extend(self.calls.keys());
            }
            Op::Abort(t) => self.enter(false, |s, words, _| s.thread_abort(words, ThreadId(t), false, now)),
            Op::Gone(n) => {
                let domain = CALLEES[n].0.into();
                self.locks &= n != 0;
                for from in (0..THREADS).chain([255]) {
                    self.enter(false, |s, words, _| s.domain_abort(words, Asid(domain), ThreadId(from), now));
                }
                assert_eq!(self.line(CALLEES[n].0), []);
                // What is not held is in one of the lists. The portal manager puts them in order when the
                // domain's number is used again.
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
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn stacks_come_in_order_and_none_is_lost(
        ops in prop::collection::vec(op(), 20..200),
        edf: bool,
        one: bool,
    ) {
        let homes = if one { 1 } else { THREADS };
        if edf {
            let mut world = World::<true>::new(homes);
            ops.iter().for_each(|op| world.step(op));
            world.settle();
        } else {
            let mut world = World::<false>::new(homes);
            ops.iter().for_each(|op| world.step(op));
            world.settle();
        }
    }
}

/// Who gets the only stack, when all call for it, and whoever gives it back calls again at once.
fn turns(world: &mut World<false>, count: usize) -> Vec<u64> {
    let turn = |_| {
        world.act(&Op::Call(0));
        while world.held.get(&world.running()).is_none_or(|held| held.is_empty()) {
            world.act(&Op::Yield);
        }
        let me = world.running();
        world.act(&Op::Yield);
        while world.running() != me {
            world.act(&Op::Call(0));
        }
        world.act(&Op::Return);
        me
    };
    (0..count).map(turn).collect()
}

/// Whoever gives a stack back and calls again at once does not get it while others wait.
#[test]
fn nobody_overtakes() {
    let turns = turns(&mut World::<false>::new(THREADS), 40);
    // The four threads of the higher priority take turns; the others never run.
    for (n, t) in turns.iter().enumerate().skip(4) {
        assert_eq!(*t, turns[n - 4], "{turns:?}");
    }
}

/// Sixteen threads of one family want the only stack all the time, and so does one of another's: it waits for
/// four turns at most.
#[test]
fn a_family_waits_behind_its_own() {
    const FAMILY: u64 = 16;
    let mut world = World::<false>::new(THREADS);
    for t in THREADS..THREADS + FAMILY {
        let home = u64::from(HOME) + 50;
        world.enter(true, |s, _, _| s.thread_start(ThreadId(t), 6, Asid(home), Asid(0), 1));
    }
    // The other three of the higher priority have nothing to do.
    for t in [3, 5, 7] {
        world.enter(false, |s, words, _| s.set_priority(words, ThreadId(t), 1, 1));
    }
    world.threads = THREADS + FAMILY;
    world.in_order = false;
    let turns = turns(&mut world, 200);
    let alone: Vec<usize> = (0..turns.len()).filter(|n| turns[*n] == 1).collect();
    assert!(alone.len() > 40 && alone.windows(2).all(|two| two[1] - two[0] <= 4), "{turns:?}");
    // None of the family is left out.
    for t in THREADS..THREADS + FAMILY {
        assert!(turns.iter().filter(|turn| **turn == t).count() >= 5, "{turns:?}");
    }
}

/// Who is abroad goes first, however little urgent; behind it waits somebody urgent, and others that compute
/// are between the two. Whoever has the stack gets to run all the same.
#[test]
fn who_waits_behind_somebody_abroad_lends_its_urgency() {
    const SHELL: u64 = 1;
    const FIRST: u64 = 2;
    const HOLDER: u64 = 3;
    let words: Box<Words> = Box::new([const { AtomicI64::new(0) }; 1024]);
    let mut real = Box::new(Scheduler::<false>::new());
    let threads = [0, 12, 20, 1, 8].iter().zip(0u16..);
    let threads = threads.map(|(priority, tid)| BootThread {
        tid: ThreadId(tid.into()),
        priority: *priority,
        home: (HOME + tid).into(),
    });
    let semaphore = BootSemaphore { id: 0, owner: Asid(1), wait: Wait::Interruptible };
    real.boot(&words, threads, [semaphore], ThreadId(FIRST), u16::MAX, 0).expect("threads");
    let [abroad, wanted] = [CALLEES[0].0, CALLEES[1].0].map(u64::from);
    let lock = real.sem_alloc(&words, 0, Asid(1), Wait::Lock) as u64;
    real.p(&words, lock, Asid(abroad), 0);
    real.v(&words, lock, 0);
    let queues = Queues::default();
    let mut now = 1;
    let decision = real.stack_wait(&queues, Asid(wanted), Asid(abroad), now);
    real.serve(&words, &queues, decision, now);
    let decision = real.set_priority(&words, ThreadId(FIRST), 1, now);
    real.serve(&words, &queues, decision, now);
    let decision = real.stack_wait(&queues, Asid(wanted), Asid(u64::from(HOME) + SHELL), now);
    real.serve(&words, &queues, decision, now);
    let has_run = (0..100).any(|_| {
        now += LOOK / 3;
        let decision = real.tick(now);
        real.serve(&words, &queues, decision, now);
        real.thread_info(ThreadId(HOLDER), now).is_some_and(|info| info.state == ThreadState::Running)
    });
    assert!(has_run);
}

/// Who has had the stack, is done with it, and enters the scheduler before a moment has passed, over and
/// over, looks like one that was interrupted before it could call. It keeps nobody waiting for long.
#[test]
fn who_is_done_at_once_leaves_the_stack_to_others() {
    let mut world = World::<false>::new(THREADS);
    // 1 has the only stack; 3 and 5 want it.
    let holder = world.running();
    world.act(&Op::Call(0));
    world.act(&Op::Yield);
    let [heir, waiter] = [(); 2].map(|()| {
        let me = world.running();
        world.act(&Op::Call(0));
        me
    });
    while world.running() != holder {
        world.act(&Op::Yield);
    }
    world.act(&Op::Return);
    let waits = ThreadState::Stack(Asid(CALLEES[0].0.into()));
    while world.running() != heir {
        world.act(&Op::Yield);
    }
    world.act(&Op::Return);
    assert_eq!([heir, waiter].map(|t| world.state(t)), [ThreadState::Running, waits]);
    for entry in 0.. {
        if world.state(waiter) != waits {
            break;
        }
        assert!(entry < 40, "{entry} entries, and it still waits");
        world.now += 1;
        world.act(&Op::Yield);
    }
}

/// Of a crowd of sleepers somebody is due at each entry. Still whoever waits soon gets what has come back.
#[test]
fn a_crowd_of_sleepers_keeps_nobody_from_a_stack() {
    const CROWD: u64 = 60;
    let mut world = World::<false>::new(THREADS);
    world.threads = THREADS + CROWD;
    for t in THREADS..THREADS + CROWD {
        world.enter(true, |s, _, _| s.thread_start(ThreadId(t), 7, Asid(u64::from(HOME) + t), Asid(0), 1));
    }
    // The crowd sleeps, all until the same time, and then those that are less urgent call.
    for _ in 0..CROWD {
        world.act(&Op::Sleep(100));
    }
    let holder = world.running();
    world.act(&Op::Call(0));
    world.act(&Op::Yield);
    let waiter = world.running();
    world.act(&Op::Call(0));
    assert_eq!(world.state(waiter), ThreadState::Stack(Asid(CALLEES[0].0.into())));
    while world.running() != holder {
        world.act(&Op::Yield);
    }
    world.act(&Op::Return);
    world.now += 100;
    for entry in 0.. {
        if world.state(waiter) == ThreadState::Ready {
            break;
        }
        assert!(entry < 4, "{entry} entries, and nobody has looked");
        world.tick();
        // Whoever has been woken sleeps again, and is due at once.
        if world.running() >= THREADS {
            world.act(&Op::Sleep(1));
            world.now += 1;
        }
    }
}

/// Whose share of the period is used up is held when it would take what was kept for it: another gets that.
#[test]
fn who_is_held_inherits_nothing() {
    let mut world = World::<false>::new(THREADS);
    let holder = world.running();
    world.act(&Op::Call(0));
    world.act(&Op::Yield);
    let held = world.running();
    let now = world.now;
    world.enter(true, |s, _, _| s.share(Asid(u64::from(HOME) + held), 1, now));
    // A tenth of its slice is ten times its share.
    world.now += SLICE / 10;
    world.act(&Op::Call(0));
    let next = world.running();
    world.act(&Op::Call(0));
    while world.running() != holder {
        world.act(&Op::Yield);
    }
    world.act(&Op::Return);
    world.now += LOOK;
    let waits = ThreadState::Stack(Asid(CALLEES[0].0.into()));
    assert_eq!([held, next].map(|t| world.state(t)), [waits; 2]);
    for _ in 0..8 {
        let now = world.now;
        world.enter(false, |s, _, _| s.tick(now));
        world.act(&Op::Yield);
    }
    assert_eq!(world.state(held), ThreadState::Held);
    assert_ne!(world.state(next), waits);
}

//! Programs from spawn to burial.

use pebble_abi::errno::*;
use pebble_abi::fault::{Cause, KILLED};
use pebble_abi::share;
use pebble_abi::words::Asid;
use pebble_process::startup::{name, path};
use pebble_process::table::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

const INIT: Asid = Asid(1);
const SERVER: Asid = Asid(2);

/// A table, and what VM knows: the numbers in use.
struct World {
    table: Table,
    used: BTreeSet<Asid>,
    /// Threads that wait: of whom, for which child; and those that have been woken.
    waiting: Vec<(Asid, Asid)>,
    woken: Vec<(Asid, Asid)>,
}

impl World {
    fn new() -> Self {
        let mut table = Table::new();
        table.boot(INIT, path("init"));
        table.boot(SERVER, path("server"));
        World { table, used: BTreeSet::from([INIT, SERVER]), waiting: Vec::new(), woken: Vec::new() }
    }

    /// A child that is being loaded.
    fn create(&mut self, parent: Asid) -> Result<Asid, Errno> {
        self.table.prepare(parent)?;
        let child = (1..).map(Asid).find(|n| !self.used.contains(n)).unwrap();
        self.used.insert(child);
        let plan = Plan { path: path("/bin/prog"), entry: 0x10000, end: 0x20000, ..Plan::default() };
        self.table.create(parent, child, plan, path("/dev/console"));
        Ok(child)
    }

    fn spawn(&mut self, parent: Asid) -> Result<Asid, Errno> {
        let child = self.create(parent)?;
        self.table.release(child, State::Suspended)?;
        Ok(child)
    }

    fn run(&mut self, parent: Asid) -> Asid {
        let child = self.spawn(parent).unwrap();
        self.table.start(parent, child).unwrap();
        self.table.release(child, State::Running).unwrap();
        child
    }

    fn free(&mut self, number: Asid) {
        assert!(self.used.remove(&number), "{number} was freed twice");
        assert!(self.state(number).is_none(), "{number} was freed, but it is in the table");
    }

    /// One turn of the undertaker; `stuck` domains cannot be reclaimed.
    fn bury(&mut self, stuck: &[Asid]) {
        let mut after = Asid(0);
        while let Some((domain, looks)) = self.table.next_dying(after) {
            assert!(domain > after);
            after = domain;
            if looks > 0 && !stuck.contains(&domain) {
                self.table.buried(domain);
            }
        }
        let mut from = Asid(0);
        while let Some(child) = self.table.over(from) {
            self.woken.extend(self.waiting.extract_if(.., |(_, waits_for)| *waits_for == child));
            from = Asid(child.get() + 1);
        }
        while let Some(domain) = self.table.unmourned() {
            self.free(domain);
        }
    }

    fn state(&self, domain: Asid) -> Option<State> {
        self.table.list(domain).filter(|e| e.domain == domain).map(|e| e.state)
    }

    /// A wait that must not block.
    fn status(&mut self, parent: Asid, child: Asid) -> Result<u8, Errno> {
        self.table.wait(parent, child).expect("no need to wait").map(|Farewell { status, free }| {
            if free {
                self.free(child);
            }
            status
        })
    }

    /// A wait that must.
    fn waits(&mut self, parent: Asid, child: Asid) {
        assert_eq!(self.table.wait(parent, child), None);
        self.waiting.push((parent, child));
    }

    /// What each does that has been woken.
    fn woken(&mut self) -> Vec<Result<u8, Errno>> {
        std::mem::take(&mut self.woken)
            .into_iter()
            .map(|(parent, child)| self.status(parent, child))
            .collect()
    }
}

#[test]
fn the_parent_gets_the_status_once() {
    let mut w = World::new();
    let child = w.run(INIT);
    w.table.exit(child, 0x105).unwrap();
    w.table.exit(child, 6).unwrap();
    w.bury(&[]);
    assert_eq!(w.state(child), Some(State::Dying));
    w.bury(&[]);
    assert_eq!(w.state(child), Some(State::Dead));
    assert_eq!(w.status(SERVER, child), Err(ECHILD));
    assert_eq!(w.status(INIT, child), Ok(5));
    assert_eq!(w.status(INIT, child), Err(ECHILD));
    assert!(!w.used.contains(&child));
}

#[test]
fn a_waiter_is_woken_when_nothing_is_left_of_the_child() {
    let mut w = World::new();
    let child = w.run(INIT);
    w.waits(INIT, child);
    w.waits(INIT, child);
    w.table.fault(child, Cause::Load).unwrap();
    w.bury(&[]);
    assert!(w.woken.is_empty());
    w.bury(&[]);
    assert_eq!(w.woken(), [Ok(139), Err(ECHILD)]);
    assert_eq!(w.table.faults(), 1);
}

#[test]
fn patience_ends_before_a_domain_that_cannot_be_reclaimed() {
    let mut w = World::new();
    let (child, late) = (w.run(INIT), w.run(INIT));
    w.waits(INIT, child);
    w.table.exit(child, 1).unwrap();
    w.table.exit(late, 2).unwrap();
    for _ in 0..PATIENCE {
        w.bury(&[child, late]);
        assert!(w.woken.is_empty());
    }
    w.bury(&[child, late]);
    assert_eq!(w.woken(), [Ok(1)]);
    assert_eq!(w.status(INIT, late), Ok(2));
    assert_eq!(w.status(INIT, late), Err(ECHILD));
    assert!(w.used.contains(&child) && w.used.contains(&late));
    w.bury(&[]);
    assert_eq!(w.used, BTreeSet::from([INIT, SERVER]));
}

#[test]
fn who_may_do_what() {
    let mut w = World::new();
    let shell = w.run(INIT);
    let child = w.spawn(shell).unwrap();
    let other = w.run(shell);
    for stranger in [INIT, other, child] {
        assert_eq!(w.table.argument(stranger, child, &[0x61; 4], 1), Err(ECHILD));
        assert_eq!(w.table.stdio(stranger, child, 0, path("x")), Err(ECHILD));
        assert_eq!(w.table.start(stranger, child), Err(ECHILD));
        assert_eq!(w.status(stranger, child), Err(ECHILD));
    }
    assert_eq!(w.table.kill(other, child), Err(EPERM));
    assert_eq!(w.table.kill(other, shell), Err(EPERM));
    assert_eq!(w.table.kill(INIT, SERVER), Err(EPERM));
    assert_eq!(w.table.kill(SERVER, SERVER), Err(EPERM));
    assert_eq!(w.table.kill(INIT, Asid(200)), Err(ESRCH));
    assert_eq!(w.table.start(shell, other), Err(EINVAL));
    assert_eq!(w.table.argument(shell, other, &[0; 4], 1), Err(EINVAL));
    assert_eq!(w.table.stdio(shell, child, 3, path("x")), Err(EINVAL));
    assert_eq!(w.table.kill(SERVER, other), Ok(()));
    assert_eq!(w.table.kill(shell, child), Ok(()));
    assert_eq!(w.table.kill(shell, child), Ok(()));
    w.bury(&[]);
    w.bury(&[]);
    // Killed before it had started: it can be waited for, nothing else.
    assert_eq!(w.table.start(shell, child), Err(EINVAL));
    assert_eq!(w.status(shell, child), Ok(KILLED));
    assert_eq!(w.status(shell, other), Ok(KILLED));
    assert_eq!(w.table.kill(shell, shell), Ok(()));
}

#[test]
fn a_component_of_the_image_can_end_and_is_forgotten() {
    let mut w = World::new();
    w.table.fault(SERVER, Cause::LoadNowhere);
    w.bury(&[]);
    w.bury(&[]);
    assert_eq!(w.used, BTreeSet::from([INIT]));
    assert_eq!(w.table.prepare(SERVER), Err(ESRCH));
}

#[test]
fn descendants_die_with_their_ancestor() {
    let mut w = World::new();
    let parent = w.run(INIT);
    let child = w.run(parent);
    let (grandchild, dead) = (w.spawn(child).unwrap(), w.run(child));
    w.table.exit(dead, 0).unwrap();
    w.bury(&[]);
    w.bury(&[]);
    assert_eq!(w.state(dead), Some(State::Dead));
    w.waits(child, grandchild);
    w.table.exit(parent, 3).unwrap();
    assert!([child, grandchild].iter().all(|d| w.state(*d) == Some(State::Dying)));
    assert_eq!(w.table.prepare(child), Err(EINTR));
    w.bury(&[]);
    // The waiter in the domain that dies is let go; the number of the dead one is free.
    assert_eq!(w.woken(), [Err(EINTR)]);
    assert!(!w.used.contains(&dead));
    w.bury(&[]);
    assert_eq!(w.status(INIT, parent), Ok(3));
    assert_eq!(w.used, BTreeSet::from([INIT, SERVER]));
}

#[test]
fn the_loader_lets_go_before_the_undertaker_comes() {
    let mut w = World::new();
    let parent = w.run(INIT);
    let child = w.create(parent).unwrap();
    w.table.kill(parent, child).unwrap();
    w.bury(&[]);
    assert_eq!(w.state(child), Some(State::Loading));
    assert_eq!(w.table.release(child, State::Suspended), Err(EINTR));
    w.table.abandon(child);
    // The parent dies while the loader has prepared its next.
    w.table.prepare(parent).unwrap();
    w.table.exit(parent, 0).unwrap();
    w.used.insert(Asid(50));
    w.table.create(parent, Asid(50), Plan::default(), path("/dev/console"));
    assert_eq!(w.table.release(Asid(50), State::Suspended), Err(EINTR));
    w.bury(&[]);
    w.bury(&[]);
    assert_eq!(w.status(INIT, parent), Ok(0));
    assert_eq!(w.used, BTreeSet::from([INIT, SERVER]));
}

#[test]
fn standard_files_are_inherited() {
    let mut w = World::new();
    let shell = w.spawn(INIT).unwrap();
    let console = path("/dev/console");
    assert_eq!(w.table.gathered(shell).unwrap().1.stdio, [console; 3]);
    w.table.stdio(INIT, shell, 1, path("/pipe/1/w")).unwrap();
    let child = w.spawn(shell).unwrap();
    assert_eq!(w.table.gathered(child).unwrap().1.stdio, [console, path("/pipe/1/w"), console]);
}

#[test]
fn limits_do_not_bind_the_image_and_what_it_started() {
    let mut w = World::new();
    let shell = w.run(INIT);
    let greedy = w.run(shell);
    let children: Vec<_> = (1..share::PROGRAMS.family).map(|_| w.spawn(greedy).unwrap()).collect();
    assert_eq!(w.spawn(greedy), Err(EPROGRAMS));
    // Nor may its children, whoever's they are.
    let child = children[0];
    w.table.release(child, State::Running).ok();
    assert_eq!(w.spawn(child), Err(EPROGRAMS));
    let other = w.run(shell);
    assert!(w.spawn(other).is_ok());
    assert_eq!((w.table.family(INIT), w.table.family(shell)), (Asid(0), Asid(0)));
    assert_eq!((w.table.family(greedy), w.table.family(child)), (greedy, greedy));
    assert_eq!(w.table.family(other), other);
    assert!(w.spawn(shell).is_ok());
    // All of them may be waited for.
    children.iter().for_each(|child| w.waits(greedy, *child));
}

#[test]
fn listed_in_order_with_short_names() {
    let mut w = World::new();
    let child = w.spawn(INIT).unwrap();
    let entry = w.table.list(Asid(3)).unwrap();
    assert_eq!((entry.domain, entry.parent, entry.state), (child, Some(INIT), State::Suspended));
    assert_eq!(name(&entry.path), [u64::from_le_bytes(*b"prog\0\0\0\0"), 0]);
    assert_eq!(w.table.list(Asid(child.get() + 1)), None);
}

#[derive(Clone, Debug)]
enum Step {
    Create(usize),
    Release(usize),
    Abandon(usize),
    Start(usize),
    Exit(usize, u8),
    Fault(usize),
    Kill(usize, usize),
    Wait(usize),
    Interrupt(usize),
    Bury(Option<usize>),
}

fn step() -> impl Strategy<Value = Step> {
    let n = 0usize..12;
    prop_oneof![
        3 => n.clone().prop_map(Step::Create),
        4 => n.clone().prop_map(Step::Release),
        1 => n.clone().prop_map(Step::Abandon),
        2 => n.clone().prop_map(Step::Start),
        1 => (n.clone(), any::<u8>()).prop_map(|(n, s)| Step::Exit(n, s)),
        1 => n.clone().prop_map(Step::Fault),
        1 => (n.clone(), n.clone()).prop_map(|(a, b)| Step::Kill(a, b)),
        3 => n.clone().prop_map(Step::Wait),
        1 => n.clone().prop_map(Step::Interrupt),
        3 => prop::option::of(n).prop_map(Step::Bury),
    ]
}

/// Whatever happens in whatever order: numbers are freed once and not too early, every wait ends, and in the
/// end nothing is left.
fn play(steps: Vec<Step>) {
    let mut w = World::new();
    // What the loader has: new ones, and those that are being started and may run already.
    let (mut loading, mut starting) = (BTreeSet::new(), BTreeSet::new());
    for step in steps {
        let pick = |n: usize| w.used.iter().copied().filter(|d| *d != SERVER).nth(n);
        let entry = |d: Asid| w.table.list(d).filter(|e| e.domain == d);
        match step {
            Step::Create(n) => {
                if let Some(Ok(child)) = pick(n).filter(|p| !loading.contains(p)).map(|p| w.create(p)) {
                    loading.insert(child);
                }
            }
            Step::Release(n) => {
                if let Some(d) = pick(n) {
                    if loading.remove(&d) {
                        let _ = w.table.release(d, State::Suspended);
                    } else if starting.remove(&d) {
                        let _ = w.table.release(d, State::Running);
                    }
                }
            }
            Step::Abandon(n) => {
                if let Some(d) = pick(n).filter(|d| loading.remove(d)) {
                    w.table.abandon(d);
                }
            }
            Step::Start(n) => {
                if let Some(d) = pick(n) {
                    let parent = entry(d).and_then(|e| e.parent).unwrap_or_default();
                    if w.table.start(parent, d).is_ok() {
                        starting.insert(d);
                    }
                }
            }
            Step::Exit(n, status) => {
                if let Some(d) = pick(n).filter(|d| {
                    entry(*d).is_some_and(|e| matches!(e.state, State::Running | State::Dying)) && *d != INIT
                        || starting.contains(d)
                }) {
                    w.table.exit(d, status.into()).unwrap();
                }
            }
            Step::Fault(n) => {
                if let Some(d) = pick(n).filter(|d| *d != INIT) {
                    w.table.fault(d, Cause::Illegal);
                }
            }
            Step::Kill(a, b) => {
                if let (Some(a), Some(b)) = (pick(a), pick(b)) {
                    let _ = w.table.kill(a, b);
                }
            }
            Step::Wait(n) => {
                if let Some((d, e)) = pick(n).and_then(|d| Some((d, entry(d)?))) {
                    match w.table.wait(e.parent.unwrap_or_default(), d) {
                        Some(Ok(Farewell { free: true, .. })) => w.free(d),
                        Some(_) => {}
                        None => w.waiting.push((e.parent.unwrap_or_default(), d)),
                    }
                }
            }
            Step::Interrupt(n) => {
                if n < w.waiting.len() {
                    w.waiting.swap_remove(n);
                }
            }
            Step::Bury(stuck) => {
                let stuck: Vec<Asid> = stuck.and_then(pick).into_iter().collect();
                w.bury(&stuck);
            }
        }
        w.woken();
    }
    for domain in loading.into_iter().chain(starting) {
        let _ = w.table.release(domain, State::Suspended);
    }
    w.table.exit(INIT, 0).unwrap();
    w.bury(&[]);
    w.bury(&[]);
    w.woken();
    assert!(w.waiting.is_empty());
    assert_eq!(w.used, BTreeSet::from([SERVER]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn everybody_is_buried_once(steps in prop::collection::vec(step(), 0..120)) {
        play(steps);
    }
}

/// Whatever the rules say of its name: who has started it tells it what to do.
#[test]
fn components_are_replaced_for_components_and_for_what_they_start() {
    let mut w = World::new();
    let first = w.run(INIT);
    let second = w.run(first);
    assert_eq!([INIT, SERVER, first].map(|domain| w.table.may_replace(domain)), [Ok(()); 3]);
    assert_eq!([second, Asid(99)].map(|domain| w.table.may_replace(domain)), [Err(EPERM); 2]);
}

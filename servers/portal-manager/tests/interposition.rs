//! Interposition over a fake machine: what controlled domains, and those who control them, can do to each
//! other and to everybody else.

mod common;

use common::{CLIENTS, CURRENT, Fake, Manager, check, system, view};
use pebble_abi::consent::Letters;
use pebble_abi::control::BEHALF;
use pebble_abi::errno::{self, Errno};
use pebble_abi::words::Asid;
use pebble_abi::{map, sys, thread};
use pebble_portal::Spec;
use pebble_portal_manager::Goal;
use pebble_portal_manager::Subject;
use pebble_portal_manager::frames::Current;
use proptest::prelude::*;
use std::num::NonZeroU16;

const HANDLER: u64 = 0x2_0000;
/// The domain that controls, and its first child.
const PARENT: u16 = 3;
const CHILD: u16 = 20;
/// The thread that makes the calls.
const TID: u16 = 9;
const NOTIFY: u64 = 0x1_1000;

/// A new child of a controller.
fn fork(m: &mut Manager, machine: &mut Fake, parent: u16, child: u16) -> Result<(), Errno> {
    m.control(machine, parent.into(), (child.into(), true), HANDLER, Some(view(child)))
}

/// Pushes frames of calls through these portals, outermost first: (domain, index).
struct Stack(u64);

impl Stack {
    fn new() -> Self {
        Stack(thread::FRAMES)
    }

    fn call(&mut self, m: &Manager, machine: &mut Fake, asid: u16, index: u16) {
        let run = m.domains[asid as usize].slots[index as usize].run;
        let ret = (8..u64::from(run.len)).step_by(8).find(|at| {
            let word = machine.code_word_at(u64::from(run.at) + at - 8);
            (word >> 16) as u16 == asid && (1..64).contains(&(word & 0xffff))
        });
        let ret = ret.expect("a return leg");
        let words = machine.code_word_at(u64::from(run.at) + ret - 8) & 0xffff;
        machine.threads.insert((TID, self.0 + 8), 0x1_2340 + u64::from(index));
        self.0 += words * 8;
        machine.threads.insert((TID, self.0), map::CODE_VA + u64::from(run.at) + ret);
    }

    fn top(&self) -> Current {
        Current { tid: TID, top: map::thread_va(TID) + self.0 }
    }
}

fn behalf(m: &Manager, index: usize) -> u16 {
    let place = BEHALF.iter().position(|b| *b == index).expect("on behalf") as u16;
    m.domains[PARENT as usize].behalf.expect("it has them").get() + place
}

/// Every used entry of a controlled domain leads to its controller, and mirrors what that holds.
fn check_stubs(m: &Manager) {
    for (asid, d) in m.domains.iter().enumerate().filter(|(_, d)| d.alive) {
        let Some(controller) = d.controller.map(NonZeroU16::get) else { continue };
        assert!(m.domains[controller as usize].alive, "{asid} has lost its controller");
        for (index, slot) in d.slots.used() {
            if index < sys::SYS_GET_ASID || slot.run.len == 0 {
                continue;
            }
            match slot.goal {
                Goal::Interface(i) => {
                    let i = &m.interfaces[i as usize];
                    assert!(i.asid == controller && i.name.is_empty(), "{asid}:{index} leads to {}", i.asid);
                }
                goal => panic!("{asid}:{index} is {goal:?}"),
            }
        }
    }
}

#[test]
fn a_child_has_a_stub_for_each_portal_of_its_parent() {
    let (mut m, mut machine) = system();
    let read = m.create(&mut machine, Asid(2), PARENT.into(), 2, 2, 7).expect("two portals");
    m.own_semaphore(Some(PARENT.into()), 80);
    let sem = m.semaphore(&mut machine, PARENT.into(), 80).expect("P and V");
    fork(&mut m, &mut machine, PARENT, CHILD).expect("a child");
    check_stubs(&m);
    let spec = |index: u16| {
        let Goal::Interface(i) = m.domains[CHILD as usize].slots[index as usize].goal else {
            panic!("no stub")
        };
        m.interfaces[i as usize].spec.to_string()
    };
    assert_eq!(spec(read), "nm=i>4");
    assert_eq!(spec(read + 1), "nm=iiiii");
    assert_eq!((spec(sem), spec(sem + 1)), ("nm=".into(), "nm=".into()));
    assert_eq!(spec(sys::SYS_YIELD as u16), "nm=");
    // And none where the parent has nothing.
    assert!(m.seen(CHILD, usize::from(sem) + 40).is_none());
}

#[test]
fn a_controlled_domain_opens_nothing_itself() {
    let (mut m, mut machine) = system();
    fork(&mut m, &mut machine, PARENT, CHILD).expect("a child");
    assert_eq!(m.open(&mut machine, CHILD.into(), 3), Err(errno::EPERM));
    assert_eq!(m.semaphore(&mut machine, CHILD.into(), 90), Err(errno::EPERM));
    check_stubs(&m);
}

#[test]
fn what_a_server_gives_a_controlled_client_is_a_stub_and_goes_when_it_is_taken() {
    let (mut m, mut machine) = system();
    fork(&mut m, &mut machine, PARENT, CHILD).expect("a child");
    fork(&mut m, &mut machine, CHILD, 21).expect("a child's child");
    let index = m.create(&mut machine, Asid(2), Asid(21), 2, 2, 7).expect("two portals");
    m.request.serving = None;
    let held = |m: &Manager| [PARENT, 21].map(|asid| m.seen(asid, index.into()).is_some());
    assert_eq!(held(&m), [true; 2]);
    check_stubs(&m);
    for (server, client) in [(4, 21), (2, CHILD.into())] {
        assert_eq!(m.remove(&mut machine, Asid(server), Asid(client), index.into(), 2), Err(errno::EBADF));
    }
    assert_eq!(m.remove(&mut machine, Asid(2), Asid(21), index.into(), 3), Err(errno::EBADF));
    assert_eq!(m.remove(&mut machine, Asid(2), Asid(21), u64::MAX, 2), Err(errno::EBADF));
    m.remove(&mut machine, Asid(2), Asid(21), index.into(), 2).expect("its own");
    assert_eq!(held(&m), [false; 2]);
    check(&m, &machine);
}

#[test]
fn a_client_is_who_made_the_call_and_not_who_passed_it_on() {
    let (mut m, mut machine) = system();
    fork(&mut m, &mut machine, PARENT, CHILD).expect("a child");
    let passed = m.create(&mut machine, Asid(2), CHILD.into(), 2, 1, 7).expect("a portal");
    m.request.serving = None;
    let own = m.open(&mut machine, PARENT.into(), 3).expect("a portal");
    let served = m.open(&mut machine, Asid(2), 3).expect("a portal");
    for (index, client) in [(passed, CHILD), (own, PARENT)] {
        let mut stack = Stack::new();
        stack.call(&m, &mut machine, CHILD, passed);
        stack.call(&m, &mut machine, PARENT, index);
        stack.call(&m, &mut machine, 2, served);
        let who = m.subject(&machine, stack.top(), 0, false);
        assert_eq!((who.domain, who.origin), (2, client));
    }
}

#[test]
fn a_child_has_the_indices_and_the_limit_that_it_would_have_alone() {
    let (mut m, mut machine) = system();
    m.control(&mut machine, PARENT.into(), (CHILD.into(), false), HANDLER, Some(view(CHILD)))
        .expect("a child");
    let own = m.open(&mut machine, PARENT.into(), 3).expect("the parent's own");
    assert!(m.seen(CHILD, own.into()).is_none());
    m.domains[CHILD as usize].most = Some(3);
    let mut opens = |m: &mut Manager| m.open_below(&mut machine, CHILD.into(), 2, Letters::NONE);
    let first = sys::FIRST_FREE as u16;
    let opened = [(); 4].map(|()| opens(&mut m));
    assert_eq!(opened, [Ok(first), Ok(first + 1), Ok(first + 2), Err(errno::EMFILE)]);
    m.request.serving = None;
    assert_eq!(m.open(&mut machine, PARENT.into(), 3), Ok(own + 1), "another's limit");
    let subject = Subject { domain: CHILD, caller: PARENT, ..Subject::default() };
    m.close_for(&mut machine, subject, u64::from(first) + 1, 1).expect("closed");
    assert_eq!(m.open_below(&mut machine, CHILD.into(), 2, Letters::NONE), Ok(first + 1));
    check_stubs(&m);
    check(&m, &machine);
}

#[test]
fn a_domain_learns_the_names_of_what_it_holds_and_no_others() {
    let (mut m, mut machine) = system();
    fork(&mut m, &mut machine, PARENT, CHILD).expect("a child");
    let index = m.open_below(&mut machine, CHILD.into(), 2, Letters::NONE).expect("a portal");
    m.request.serving = None;
    let own = m.open(&mut machine, PARENT.into(), 3).expect("a portal");
    let stranger = m.open(&mut machine, Asid(4), 3).expect("a portal");
    assert_eq!(m.name_of(CHILD, PARENT, index.into()), Ok("server.read"));
    assert_eq!(m.name_of(PARENT, PARENT, own.into()), Ok("server.write"));
    assert_eq!(m.name_of(4, 4, stranger.into()), Ok("server.write"));
    for index in [own.into(), u64::from(index) + 1, 4095, 4096, u64::MAX] {
        assert_eq!(m.name_of(CHILD, PARENT, index), Err(errno::EBADF));
    }
}

#[test]
fn only_the_controller_makes_stubs() {
    let (mut m, mut machine) = system();
    fork(&mut m, &mut machine, PARENT, CHILD).expect("a child");
    let spec = |text| Spec::parse(text).expect("a specification");
    let stub = || Some((HANDLER, spec("nm=i"), 5));
    assert_eq!(m.create_child(&mut machine, Asid(4), CHILD.into(), 100, stub()), Err(errno::EPERM));
    assert_eq!(m.create_child(&mut machine, CHILD.into(), CHILD.into(), 100, stub()), Err(errno::EPERM));
    assert_eq!(m.create_child(&mut machine, CHILD.into(), PARENT.into(), 100, stub()), Err(errno::EPERM));
    assert_eq!(m.create_child(&mut machine, PARENT.into(), Asid(4), 100, stub()), Err(errno::EPERM));
    for index in [0, 1, 2, 4096, u64::MAX] {
        assert_eq!(
            m.create_child(&mut machine, PARENT.into(), CHILD.into(), index, stub()),
            Err(errno::EINVAL)
        );
    }
    let shared = Some((HANDLER, spec("sm=i"), 5));
    assert_eq!(m.create_child(&mut machine, PARENT.into(), CHILD.into(), 100, shared), Err(errno::EINVAL));
    let nucleus = Some((map::USER_END, spec("nm=i"), 5));
    assert_eq!(m.create_child(&mut machine, PARENT.into(), CHILD.into(), 100, nucleus), Err(errno::EINVAL));
    m.create_child(&mut machine, PARENT.into(), CHILD.into(), 4095, stub()).expect("the last index");
    m.create_child(&mut machine, PARENT.into(), CHILD.into(), 4095, None).expect("it goes");
    m.create_child(&mut machine, PARENT.into(), CHILD.into(), 4095, None).expect("it is gone");
    check_stubs(&m);
    check(&m, &machine);
}

#[test]
fn calls_on_behalf_act_on_the_child_and_others_on_the_controller() {
    let (mut m, mut machine) = system();
    fork(&mut m, &mut machine, PARENT, CHILD).expect("a child");
    let own = m.open(&mut machine, PARENT.into(), 3).expect("a portal");
    let sbrk = behalf(&m, sys::SYS_SBRK);
    // The child calls, its handler goes on: for the child.
    let mut stack = Stack::new();
    stack.call(&m, &mut machine, CHILD, sys::SYS_YIELD as u16);
    stack.call(&m, &mut machine, PARENT, sbrk);
    let who = m.subject(&machine, stack.top(), 0, false);
    assert_eq!((who.domain, who.caller, who.origin), (CHILD, PARENT, 0));
    // The handler calls something for itself.
    let mut stack = Stack::new();
    stack.call(&m, &mut machine, CHILD, sys::SYS_YIELD as u16);
    stack.call(&m, &mut machine, PARENT, own);
    assert_eq!(m.subject(&machine, stack.top(), 0, false).domain, PARENT);
    assert_eq!(m.subject(&machine, stack.top(), 0, true).domain, CHILD, "but serves the child");
    // Nobody's handler.
    let mut stack = Stack::new();
    stack.call(&m, &mut machine, PARENT, sbrk);
    assert_eq!(m.subject(&machine, stack.top(), 0, false).domain, PARENT);
}

#[test]
fn a_stranger_called_by_a_controlled_domain_is_not_taken_for_its_controller() {
    let (mut m, mut machine) = system();
    fork(&mut m, &mut machine, PARENT, CHILD).expect("a child");
    fork(&mut m, &mut machine, 4, 21).expect("another's child");
    // 4 serves its child 21, and calls its own portal on behalf; below lies a call of PARENT's child.
    let portal = m.open(&mut machine, Asid(4), 3).expect("a portal");
    let mut stack = Stack::new();
    stack.call(&m, &mut machine, CHILD, sys::SYS_YIELD as u16);
    stack.call(&m, &mut machine, 4, portal);
    let who = m.subject(&machine, stack.top(), 0, true);
    assert_eq!((who.domain, who.origin), (4, 0));
}

#[test]
fn eight_levels() {
    let (mut m, mut machine) = system();
    let mut level = PARENT;
    for child in 20..28 {
        fork(&mut m, &mut machine, level, child).expect("one level more");
        level = child;
    }
    check_stubs(&m);
    let sbrk = behalf(&m, sys::SYS_SBRK);
    assert!((20..28).all(|asid| m.domains[asid].behalf == m.domains[PARENT as usize].behalf));
    // Who controls nobody does not see them.
    assert!(m.seen(26, sbrk.into()).is_some() && m.seen(27, sbrk.into()).is_none());
    // The innermost calls; every handler goes on on behalf of it.
    let mut stack = Stack::new();
    for asid in (20..28).rev() {
        stack.call(&m, &mut machine, asid, if asid == 27 { sys::SYS_SBRK as u16 } else { sbrk });
    }
    stack.call(&m, &mut machine, PARENT, sbrk);
    assert!(stack.0 < thread::INVOCATION_LIMIT, "{}", stack.0);
    assert_eq!(m.subject(&machine, stack.top(), 0, false).domain, 27);
    // The fourth asks for itself, while it serves the innermost.
    let mut stack = Stack::new();
    for asid in (20..28).rev() {
        stack.call(
            &m,
            &mut machine,
            asid,
            if [24, 27].contains(&asid) { sys::SYS_SBRK as u16 } else { sbrk },
        );
    }
    stack.call(&m, &mut machine, PARENT, sbrk);
    assert_eq!(m.subject(&machine, stack.top(), 0, false).domain, 24);
    // What the outermost opens for the innermost is at the same index in all.
    m.request.serving = NonZeroU16::new(27);
    let index = m.open(&mut machine, PARENT.into(), 2).expect("a portal");
    m.request.serving = None;
    assert!((20..28).all(|asid| m.seen(asid, index.into()).is_some()));
    check_stubs(&m);
    check(&m, &machine);
}

#[test]
fn a_change_sends_the_thread_round_by_its_domain_once() {
    let (mut m, mut machine) = system();
    fork(&mut m, &mut machine, PARENT, CHILD).expect("a child");
    m.set_notify(PARENT.into(), NOTIFY).expect("an address");
    let mut stack = Stack::new();
    stack.call(&m, &mut machine, CHILD, sys::SYS_YIELD as u16);
    let base = stack.0 + 8;
    stack.call(&m, &mut machine, PARENT, behalf(&m, sys::SYS_PORTAL_OPEN));
    let before = machine.threads[&(TID, base)];
    m.request.serving = NonZeroU16::new(CHILD);
    let first = m.open(&mut machine, PARENT.into(), 2).expect("a portal");
    let second = m.open(&mut machine, PARENT.into(), 3).expect("a portal");
    m.request.serving = None;
    assert!(m.news());
    m.announce(&mut machine, stack.top());
    assert!(!m.news());
    assert_eq!(machine.threads[&(TID, base)], NOTIFY);
    // The child's frame is as it was: it is told nothing.
    assert_ne!(machine.threads[&(TID, thread::FRAMES + 8)], NOTIFY);
    assert_eq!(m.notice(PARENT, TID, base), Ok(first));
    // Somebody else's thread learns nothing of it, and neither does another frame.
    assert_eq!(m.notice(PARENT, TID + 1, base), Err(0));
    assert_eq!(m.notice(PARENT, TID, base), Ok(second));
    assert_eq!(m.notice(PARENT, TID, base + 8), Err(0));
    assert_eq!(m.notice(PARENT, TID, base), Err(before));
    assert_eq!(m.notice(PARENT, TID, base), Err(0), "once");
}

/// What a domain has been told: index, and whether there is a portal now.
fn told(m: &mut Manager, machine: &mut Fake, asid: u16) -> Vec<(u16, bool)> {
    m.announce(machine, CURRENT);
    core::iter::from_fn(|| m.notice(asid, TID, 0).ok())
        .collect::<Vec<_>>()
        .into_iter()
        .map(|index| (index, m.seen(asid, index.into()).is_some()))
        .collect()
}

#[test]
fn every_level_is_told_of_what_opens_and_closes_for_a_domain_below() {
    let (mut m, mut machine) = system();
    let levels = [PARENT, CHILD, 21, 22];
    for pair in levels.windows(2) {
        fork(&mut m, &mut machine, pair[0], pair[1]).expect("one level more");
    }
    levels.iter().for_each(|asid| m.set_notify((*asid).into(), NOTIFY).expect("an address"));
    let who = |domain| Subject { domain, caller: PARENT, ..Subject::default() };
    let all_told = |m: &mut Manager, machine: &mut Fake, what: &[(u16, bool)], said: &str| {
        for asid in levels {
            assert_eq!(told(m, machine, asid), what, "{asid}, {said}");
        }
    };
    for round in 0..2 {
        let index = m.open_below(&mut machine, Asid(22), 2, Letters::NONE).expect("a portal");
        all_told(&mut m, &mut machine, &[(index, true)], &format!("opened, round {round}"));
        m.close_for(&mut machine, who(22), index.into(), 1).expect("its own");
        all_told(&mut m, &mut machine, &[(index, false)], &format!("closed, round {round}"));
    }
    m.request.serving = NonZeroU16::new(22);
    let pair = m.semaphore(&mut machine, PARENT.into(), 100).expect("P and V");
    m.request.serving = None;
    all_told(&mut m, &mut machine, &[(pair, true), (pair + 1, true)], "a semaphore");
    m.close_for(&mut machine, who(22), pair.into(), 2).expect("its own");
    all_told(&mut m, &mut machine, &[(pair, false), (pair + 1, false)], "a semaphore closed");
    let given = m.create(&mut machine, Asid(2), Asid(22), 2, 2, 7).expect("two portals");
    all_told(&mut m, &mut machine, &[(given, true), (given + 1, true)], "given");
    m.remove(&mut machine, Asid(2), Asid(22), given.into(), 2).expect("its server takes them");
    all_told(&mut m, &mut machine, &[(given, false), (given + 1, false)], "taken");
    // Who controls may close it, too: what is below keeps a stub that leads to nothing.
    let index = m.open_below(&mut machine, Asid(22), 2, Letters::NONE).expect("a portal");
    all_told(&mut m, &mut machine, &[(index, true)], "opened");
    m.close_for(&mut machine, who(21), index.into(), 1).expect("it is seen there");
    for (asid, left) in [(PARENT, false), (CHILD, false), (21, false), (22, true)] {
        assert_eq!(m.seen(asid, index.into()).is_some(), left, "{asid}");
        assert_eq!(told(&mut m, &mut machine, asid).len(), usize::from(!left), "{asid}");
    }
    // And what dies leaves nothing behind.
    let index = m.open_below(&mut machine, Asid(22), 3, Letters::NONE).expect("a portal");
    levels.iter().for_each(|asid| drop(told(&mut m, &mut machine, *asid)));
    m.retire(&mut machine, Asid(22)).expect("it lives");
    for asid in [PARENT, CHILD, 21] {
        assert_eq!(told(&mut m, &mut machine, asid), [(index, false)], "{asid}, after a death");
    }
    check(&m, &machine);
}

#[test]
fn what_changes_while_a_change_is_told_is_told_afterwards() {
    let (mut m, mut machine) = system();
    let opener = m.open(&mut machine, PARENT.into(), 2).expect("a portal");
    m.set_notify(PARENT.into(), NOTIFY).expect("an address");
    let mut stack = Stack::new();
    stack.call(&m, &mut machine, PARENT, opener);
    let base = thread::FRAMES + 8;
    let before = machine.threads[&(TID, base)];
    let first = m.open(&mut machine, PARENT.into(), 2).expect("a portal");
    m.announce(&mut machine, stack.top());
    assert_eq!(m.notice(PARENT, TID, base), Ok(first));
    // The function, which runs now where the call has returned, makes calls of its own: they return to it.
    let inner = before + 64;
    machine.threads.insert((TID, base), inner);
    let [second, third] = [2, 3].map(|i| m.open(&mut machine, PARENT.into(), i).expect("a portal"));
    m.announce(&mut machine, stack.top());
    assert_eq!(machine.threads[&(TID, base)], inner);
    assert_eq!(m.notice(PARENT, TID, base), Ok(second));
    assert_eq!(m.notice(PARENT, TID, base), Ok(third));
    assert_eq!(m.notice(PARENT, TID, base), Err(before));
    // It is over: the next change is told at once.
    let fourth = m.open(&mut machine, PARENT.into(), 2).expect("a portal");
    m.announce(&mut machine, stack.top());
    assert_eq!(machine.threads[&(TID, base)], NOTIFY);
    assert_eq!(m.notice(PARENT, TID, base), Ok(fourth));
}

#[test]
fn a_child_closes_its_own_and_not_its_parents() {
    let (mut m, mut machine) = system();
    let inherited = m.create(&mut machine, Asid(2), PARENT.into(), 2, 2, 7).expect("two portals");
    fork(&mut m, &mut machine, PARENT, CHILD).expect("a child");
    m.request.serving = NonZeroU16::new(CHILD);
    let own = m.create(&mut machine, Asid(2), PARENT.into(), 2, 2, 8).expect("two portals");
    m.request.serving = None;
    let close = behalf(&m, sys::SYS_PORTAL_CLOSE);
    let mut stack = Stack::new();
    stack.call(&m, &mut machine, CHILD, sys::SYS_PORTAL_CLOSE as u16);
    stack.call(&m, &mut machine, PARENT, close);
    let who = m.subject(&machine, stack.top(), 0, false);
    assert_eq!(who.domain, CHILD);
    for (first, count) in [(0, 1), (3, 1), (own.into(), 0), (own.into(), u64::MAX), (4096, 1), (4000, 1)] {
        assert_eq!(m.close_for(&mut machine, who, first, count), Err(errno::EBADF));
    }
    m.close_for(&mut machine, who, inherited.into(), 2).expect("its stubs");
    assert!(m.seen(CHILD, inherited.into()).is_none() && m.seen(PARENT, inherited.into()).is_some());
    m.close_for(&mut machine, who, own.into(), 2).expect("its own");
    assert!(m.seen(CHILD, own.into()).is_none() && m.seen(PARENT, own.into()).is_none());
    check(&m, &machine);
}

#[test]
fn nothing_is_left_of_a_child() {
    let (mut m, mut machine) = system();
    fork(&mut m, &mut machine, PARENT, CHILD).expect("a child");
    m.retire(&mut machine, CHILD.into()).expect("it lives");
    m.reclaim(&mut machine, CHILD.into(), CURRENT).expect("nobody is in it");
    let before = (m.stats(), m.domains[PARENT as usize].served);
    for round in 0..50 {
        fork(&mut m, &mut machine, PARENT, CHILD).expect("a child");
        m.thread(&mut machine, CHILD).expect("a thread");
        m.request.serving = NonZeroU16::new(CHILD);
        m.open(&mut machine, PARENT.into(), 2).expect("a portal");
        m.own_semaphore(Some(CHILD.into()), 100 + round);
        m.semaphore(&mut machine, PARENT.into(), 100 + round).expect("P and V");
        m.request.serving = None;
        m.retire(&mut machine, CHILD.into()).expect("it lives");
        m.reclaim(&mut machine, CHILD.into(), CURRENT).expect("nobody is in it");
        assert_eq!((m.stats(), m.domains[PARENT as usize].served), before, "round {round}");
        assert_eq!(machine.freed.len(), usize::from(round) + 1, "its semaphore goes");
    }
}

#[test]
fn a_dead_controllers_children_reach_nobody() {
    let (mut m, mut machine) = system();
    fork(&mut m, &mut machine, PARENT, CHILD).expect("a child");
    m.retire(&mut machine, PARENT.into()).expect("it lives");
    let closed = |s: &pebble_portal_manager::Slot| s.run.len == 0 || s.goal == Goal::Closed(PARENT);
    assert!(m.domains[CHILD as usize].slots.used().all(|(index, slot)| index < 3 || closed(slot)));
    assert!(m.control(&mut machine, PARENT.into(), (Asid(30), true), HANDLER, Some(view(30))).is_err());
}

#[test]
fn threads_without_end_are_refused() {
    let (mut m, mut machine) = system();
    fork(&mut m, &mut machine, PARENT, CHILD).expect("a child");
    let made = (0..100).take_while(|_| m.thread(&mut machine, CHILD).is_ok()).count();
    assert!((8..32).contains(&made), "{made}");
    assert_eq!(m.thread(&mut machine, CHILD), Err(errno::EAGAIN));
    assert!(m.domains[PARENT as usize].stacks >= made as u16);
    m.unserve(CHILD, 1);
    m.thread(&mut machine, CHILD).expect("one is gone");
}

#[test]
fn handlers_without_end_are_refused() {
    let (mut m, mut machine) = system();
    fork(&mut m, &mut machine, PARENT, CHILD).expect("a child");
    let mut outcome = Ok(());
    for n in 0..2000 {
        let stub = Some((HANDLER + 8 * n, Spec::parse("nm=i").expect("a specification"), 0));
        outcome = m.create_child(&mut machine, PARENT.into(), CHILD.into(), 100 + n, stub);
        if outcome.is_err() {
            break;
        }
    }
    assert_eq!(outcome, Err(errno::EAGAIN));
    assert!(m.interfaces.iter().filter(|i| i.name.is_empty() && i.asid != 0).count() < 200);
    // One place with ever new handlers does not use them up.
    for n in 0..2000 {
        let stub = Some((HANDLER + 0x1_0000 + 8 * n, Spec::parse("nm=i").expect("a specification"), 0));
        let _ = m.create_child(&mut machine, PARENT.into(), CHILD.into(), 100, stub);
    }
    check_stubs(&m);
}

#[derive(Clone, Debug)]
enum Step {
    Fork(u16, u16),
    Die(u16),
    Open(u16, u16),
    OpenFor(u16, u16),
    Create(u16, u64, u64),
    CloseFor(u16, u64, u64),
    Child(u16, u16, u64, bool),
    Thread(u16),
    Notify(u16),
    Announce,
    Impatient(u32),
}

fn step() -> impl Strategy<Value = Step> {
    let who = || prop_oneof![Just(3u16), Just(4), Just(5), 20u16..26];
    prop_oneof![
        4 => (who(), 20u16..26).prop_map(|(p, c)| Step::Fork(p, c)),
        2 => who().prop_map(Step::Die),
        2 => (who(), 0u16..8).prop_map(|(d, i)| Step::Open(d, i)),
        4 => (who(), 0u16..8).prop_map(|(d, i)| Step::OpenFor(d, i)),
        2 => (who(), 0u64..6, 0u64..4).prop_map(|(d, i, n)| Step::Create(d, i, n)),
        3 => (who(), 30u64..80, 0u64..4).prop_map(|(d, i, n)| Step::CloseFor(d, i, n)),
        3 => (who(), who(), 0u64..700, proptest::prelude::any::<bool>()).prop_map(|(p, c, i, on)| Step::Child(p, c, i, on)),
        2 => who().prop_map(Step::Thread),
        1 => who().prop_map(Step::Notify),
        1 => Just(Step::Announce),
        1 => (0u32..6).prop_map(Step::Impatient),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whatever_happens_stubs_stay_stubs_and_everything_comes_back(
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let (mut m, mut machine) = system();
        let baseline = m.stats();
        for step in steps {
            match step {
                Step::Fork(p, c) => { let _ = fork(&mut m, &mut machine, p, c); }
                Step::Die(d) => {
                    // Children die with their parent, as the process server has it.
                    machine.patience = u32::MAX;
                    let mut doomed = vec![d];
                    let mut at = 0;
                    while at < doomed.len() {
                        let parent = NonZeroU16::new(doomed[at]);
                        doomed.extend((20..26).filter(|c| m.domains[usize::from(*c)].controller == parent));
                        at += 1;
                    }
                    for d in doomed {
                        if m.retire(&mut machine, d.into()).is_ok() {
                            m.reclaim(&mut machine, d.into(), CURRENT).expect("nobody is in it");
                            machine.domain_free(d);
                            if d < 20 {
                                m.attach(&mut machine, view(d)).expect("its number is free");
                            }
                        }
                    }
                }
                Step::Open(d, i) => { let _ = m.open(&mut machine, d.into(), i); }
                Step::OpenFor(d, i) => { let _ = m.open_below(&mut machine, d.into(), i, Letters::NONE); }
                Step::Create(d, i, n) => { let _ = m.create(&mut machine, Asid(2), d.into(), i, n, 9); }
                Step::CloseFor(d, i, n) => {
                    let caller = m.outermost(d);
                    let who = pebble_portal_manager::Subject { domain: d, caller, ..Default::default() };
                    let _ = m.close_for(&mut machine, who, i, n);
                }
                Step::Child(p, c, i, on) => {
                    let stub = on.then(|| (HANDLER + i % 4 * 8, Spec::parse("nm=ii").expect("a specification"), i));
                    let _ = m.create_child(&mut machine, p.into(), c.into(), i, stub);
                }
                Step::Thread(d) => { let _ = m.thread(&mut machine, d); }
                Step::Notify(d) => { let _ = m.set_notify(d.into(), NOTIFY); }
                Step::Announce => m.announce(&mut machine, CURRENT),
                Step::Impatient(n) => machine.patience = n,
            }
            m.request.serving = None;
            check(&m, &machine);
            check_stubs(&m);
        }
        machine.patience = u32::MAX;
        for asid in (20..26).chain(CLIENTS) {
            if m.retire(&mut machine, asid.into()).is_ok() {
                m.reclaim(&mut machine, asid.into(), CURRENT).expect("nobody is in it");
            }
        }
        let after = m.stats();
        prop_assert_eq!((after[1], after[2], after[3]), (baseline[1], 0, baseline[3]));
    }
}

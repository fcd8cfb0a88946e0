//! Portals that are opened again: out of limbo while nothing but the constant differs, and anew otherwise.

mod common;

use common::*;
use pebble_abi::words::Asid;
use pebble_abi::{map, thread};
use pebble_portal_manager::{Machine, Run};
use proptest::prelude::*;

const CLIENT: Asid = Asid(3);
/// Of `system`: `server.read`, which takes a constant.
const READ: u64 = 2;

/// Reading and writing, of the file with this number.
fn open(manager: &mut Manager, machine: &mut Fake, file: u64) -> u16 {
    let first = manager.create(machine, SERVER.into(), CLIENT, READ, 2, file).expect("two portals");
    check(manager, machine);
    first
}

fn close(manager: &mut Manager, machine: &mut Fake, first: u16) {
    manager.close(machine, CLIENT, first.into(), 2, None).expect("closed");
    check(manager, machine);
}

fn runs(manager: &Manager, first: u16) -> [Run; 2] {
    [0, 1].map(|n| manager.domains[3].slots[usize::from(first) + n].run)
}

#[test]
fn a_file_gets_the_portals_of_the_last_one() {
    let (mut manager, mut machine) = system();
    let first = open(&mut manager, &mut machine, 0x1111_2222_3333);
    let (used, before) = (manager.stats()[1], runs(&manager, first));
    for file in 1..100 {
        close(&mut manager, &mut machine, first);
        assert_eq!(open(&mut manager, &mut machine, file << 40), first);
        assert_eq!((runs(&manager, first), manager.stats()[1]), (before, used));
        assert!(!manager.untidy(), "nothing is left behind");
    }
}

/// One that is in the server goes on as if its portal were there still.
#[test]
fn a_thread_returns_through_code_that_is_open_again() {
    let (mut manager, mut machine) = system();
    let first = open(&mut manager, &mut machine, 1);
    let run = runs(&manager, first)[0];
    let word = |machine: &Fake, at: u64| machine.code_word(u64::from(run.at) + at);
    let ret = (8..u64::from(run.len))
        .step_by(8)
        .find(|at| word(&machine, at - 8) >> 16 & 0xffff_ffff == u64::from(SERVER) << 16 | 3)
        .expect("a return leg");
    machine.enter(map::CODE_VA + u64::from(run.at), ret);
    let way_back: Vec<u64> = (ret - 8..u64::from(run.len)).step_by(8).map(|at| word(&machine, at)).collect();
    close(&mut manager, &mut machine, first);
    assert_eq!(open(&mut manager, &mut machine, 2), first);
    assert_eq!(runs(&manager, first)[0], run);
    let now: Vec<u64> = (ret - 8..u64::from(run.len)).step_by(8).map(|at| word(&machine, at)).collect();
    assert_eq!(now, way_back, "the way back is as it was");
    // In limbo it is nobody's before the thread has left.
    close(&mut manager, &mut machine, first);
    manager.sweep(&mut machine, CURRENT);
    open(&mut manager, &mut machine, 3);
    assert_ne!(runs(&manager, first)[0], run);
    machine.leave();
}

/// What was swept is gone: the place may be somebody else's.
#[test]
fn code_that_has_left_limbo_is_made_anew() {
    let (mut manager, mut machine) = system();
    let first = open(&mut manager, &mut machine, 1);
    let before = runs(&manager, first);
    close(&mut manager, &mut machine, first);
    manager.sweep(&mut machine, CURRENT);
    let other = manager.create(&mut machine, SERVER.into(), Asid(4), READ, 2, 9).expect("two portals");
    let others = [0, 1].map(|n| manager.domains[4].slots[usize::from(other) + n].run);
    assert!(before.iter().all(|run| others.contains(run)), "{others:?} are where {before:?} were");
    assert_eq!(open(&mut manager, &mut machine, 2), first);
    assert_ne!(runs(&manager, first), before);
}

/// Two programs whose interfaces look alike, entry and all, give portals for the same entry of one table in
/// turn: each leads to who has given it, with that one's constant.
#[test]
fn what_one_server_gave_is_not_another_ones() {
    let (mut manager, mut machine) = system();
    CLIENTS.iter().for_each(|asid| manager.domains[usize::from(*asid)].image = false);
    let spec = || pebble_portal::Spec::parse("npci").expect("a specification");
    let gifts = [(4, "one.gift"), (5, "other.gift")].map(|(giver, name)| {
        let gift = manager.register(&mut machine, Asid(giver), name, spec(), 0x3_0000).expect("an interface");
        (giver, u64::from(gift))
    });
    let mut entries = Vec::new();
    for round in 0..8 {
        // Each also gets its own back, every second time.
        let (giver, gift) = gifts[round as usize / 2 % 2];
        let index = manager.create(&mut machine, Asid(giver), CLIENT, gift, 1, 7 + round).expect("a gift");
        check(&manager, &machine);
        assert_eq!(manager.domains[3].slots[usize::from(index)].constant, 7 + round);
        manager.close(&mut machine, CLIENT, index.into(), 1, None).expect("closed");
        entries.push(index);
    }
    assert!(entries.iter().all(|index| *index == entries[0]), "the same entry each time");
}

/// A domain that gets the number of a dead one has another space.
#[test]
fn nothing_is_passed_on_to_who_is_another() {
    let (mut manager, mut machine) = system();
    let first = open(&mut manager, &mut machine, 1);
    // A thread keeps its code.
    machine.threads.insert((THREAD, thread::SAVED_TOP), 1);
    close(&mut manager, &mut machine, first);
    let before = manager.domains[3].view;
    manager.retire(&mut machine, CLIENT).expect("it lives");
    machine.leave();
    manager.reclaim(&mut machine, CLIENT, CURRENT).expect("nobody is in it");
    let view = pebble_portal::hardware::Domain { space: before.space + 1, ..before };
    manager.attach(&mut machine, view).expect("its number is free");
    open(&mut manager, &mut machine, 2);
}

#[derive(Clone, Debug)]
enum Step {
    Open(u64),
    Close(usize),
    Count(bool),
    /// Of a portal by name, which may be in such a place.
    Name,
    Sweep,
    Succeed,
    Enter(usize),
    Leave,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => any::<u64>().prop_map(Step::Open),
        6 => any::<usize>().prop_map(Step::Close),
        1 => any::<bool>().prop_map(Step::Count),
        1 => Just(Step::Name),
        1 => Just(Step::Sweep),
        1 => Just(Step::Succeed),
        2 => any::<usize>().prop_map(Step::Enter),
        1 => Just(Step::Leave),
    ]
}

/// Another instance of the server, whose entries lie elsewhere; the old one dies.
fn succeed(manager: &mut Manager, machine: &mut Fake, old: u16) -> u16 {
    let new = if old == 7 { 8 } else { 7 };
    machine.leave();
    manager.adopt(machine, SERVER.into(), view(new)).expect("the role is there");
    for name in ["server.read", "server.write", "server.trusted"] {
        let spec = manager.interfaces.iter().find(|i| i.name == name).map(|i| i.spec.clone()).expect("there");
        manager.offer(new.into(), name, spec, 0x2_0000).expect("it is its name");
    }
    manager.prepare_successor(machine, new.into()).expect("it offers everything");
    manager.commit(machine, new.into(), CURRENT).expect("prepared");
    manager.retire(machine, old.into()).expect("it lives");
    manager.reclaim(machine, old.into(), CURRENT).expect("nobody is in it");
    new
}

proptest! {
    /// Every portal that is open has the code that would be compiled for it, at each step.
    #[test]
    fn whatever_comes_between_the_code_is_right(steps in prop::collection::vec(step(), 1..80)) {
        let (mut manager, mut machine) = system();
        let (mut open, mut server) = (Vec::new(), SERVER);
        for step in steps {
            match step {
                Step::Open(file) => open.extend(manager.create(&mut machine, server.into(), CLIENT, READ, 2, file)),
                Step::Close(n) if !open.is_empty() => {
                    let first = open.swap_remove(n % open.len());
                    manager.close(&mut machine, CLIENT, first.into(), 2, None).expect("closed");
                }
                Step::Name => {
                    let one = manager.open(&mut machine, CLIENT, 3).expect("a portal");
                    manager.close(&mut machine, CLIENT, one.into(), 1, None).expect("closed");
                }
                Step::Count(on) => _ = manager.count(&mut machine, CLIENT, on),
                Step::Sweep => manager.sweep(&mut machine, CURRENT),
                Step::Enter(n) if !open.is_empty() => {
                    machine.leave();
                    let run = manager.domains[3].slots[usize::from(open[n % open.len()])].run;
                    let ret = (8..u64::from(run.len)).step_by(8).find(|at| {
                        machine.code_word(u64::from(run.at) + at - 8) >> 16 & 0xffff_ffff == u64::from(server) << 16 | 3
                    });
                    machine.enter(map::CODE_VA + u64::from(run.at), ret.expect("a return leg"));
                }
                Step::Leave => machine.leave(),
                Step::Succeed => server = succeed(&mut manager, &mut machine, server),
                _ => {}
            }
            check(&manager, &machine);
        }
    }
}

//! The portals that domains are born with: made one by one, and as blocks afterwards, they are the same.

mod common;

use common::*;
use pebble_abi::errno;
use pebble_abi::words::Asid;
use pebble_abi::{map, sys};
use pebble_boot::{BootInfo, CommonCode, Interface};
use pebble_portal::hardware::Domain as View;
use pebble_portal_manager::Goal;
use proptest::prelude::*;

/// Specifications as the system's interfaces have them, and one that shares stacks.
const SPECS: [&str; 6] = ["npai", "npaiiii", "np>4", "npcii", "smii", "npaiii>1"];

/// A server with an interface for each portal that domains are born with.
fn system() -> (Manager, Fake) {
    // Not what is the nucleus's, and what all tables lead to by common code.
    let named = |name: &str| !name.starts_with("nucleus.") && name != "scheduler.thread_exit";
    let interfaces = sys::ALL.iter().filter(|(_, name)| named(name)).enumerate();
    let interfaces = interfaces.map(|(n, (_, name))| Interface {
        name: (*name).into(),
        asid: SERVER,
        entry: 0x1_0000 + n as u64 * 64,
        spec: SPECS[n % SPECS.len()].into(),
    });
    let server = |asid: u16, name: &str| pebble_boot::Domain {
        asid,
        name: name.into(),
        root: 0x8100_0000 + u64::from(asid) * map::PAGE,
        server: true,
        ..Default::default()
    };
    let info = BootInfo {
        domains: vec![server(SERVER, "server"), server(MANAGER, "manager")],
        interfaces: interfaces.collect(),
        code: CommonCode {
            none: NONE,
            thread_end: THREAD_END,
            no_stack: [map::CODE_VA + 24; 2],
            ..CommonCode::default()
        },
        code_used: CODE_USED,
        ..BootInfo::default()
    };
    let (mut machine, mut manager) = (Fake::new(), Manager::new(&info).expect("boot information"));
    manager.prepare(&mut machine).expect("common code");
    (manager, machine)
}

fn newcomer(asid: u16, float: bool) -> View {
    View { float, ..view(asid) }
}

fn bury(manager: &mut Manager, machine: &mut Fake, asid: u16) {
    manager.retire(machine, asid.into()).expect("it lives");
    manager.reclaim(machine, asid.into(), CURRENT).expect("nobody is in it");
}

/// Domains `asid` and up, each born; how much code the last one took.
fn bear(manager: &mut Manager, machine: &mut Fake, asids: std::ops::Range<u16>, float: bool) -> u64 {
    let mut took = 0;
    for asid in asids {
        let before = manager.stats()[1];
        manager.attach(machine, newcomer(asid, float)).expect("born");
        check(manager, machine);
        took = manager.stats()[1] - before;
    }
    took
}

#[test]
fn a_block_is_what_was_made_one_by_one() {
    let (mut manager, mut machine) = system();
    for float in [false, true] {
        let first = bear(&mut manager, &mut machine, 20..21, float);
        assert_eq!(bear(&mut manager, &mut machine, 21..25, float), first);
        let system = |asid: u16| {
            let slots = &manager.domains[usize::from(asid)].slots;
            (0..sys::FIRST_FREE).map(|index| (slots[index].goal, slots[index].run.len)).collect::<Vec<_>>()
        };
        let born =
            |slots: &[(Goal, u32)]| slots.iter().filter(|(g, _)| matches!(g, Goal::Interface(_))).count();
        assert!(born(&system(20)) > 15);
        (21..25).for_each(|asid| assert_eq!(system(asid), system(20)));
        let before = manager.stats()[1];
        (20..25).for_each(|asid| bury(&mut manager, &mut machine, asid));
        assert_eq!(before - manager.stats()[1], first * 5, "all of it comes back");
    }
}

/// Domain 7 and 8 in turn have the server's role, with entries elsewhere.
fn succeed(manager: &mut Manager, machine: &mut Fake, old: u16) -> u16 {
    let new = if old == 7 { 8 } else { 7 };
    manager.adopt(machine, SERVER.into(), view(new)).expect("the role is there");
    let offers: Vec<_> = manager
        .interfaces
        .iter()
        .filter(|i| i.asid == old)
        .map(|i| (i.name.to_string(), i.spec.clone()))
        .collect();
    for (n, (name, spec)) in offers.into_iter().enumerate() {
        let entry = 0x2_0000 + n as u64 * 64 + u64::from(new);
        manager.offer(new.into(), &name, spec, entry & !3).expect("it is its name");
    }
    manager.prepare_successor(machine, new.into()).expect("it offers everything");
    manager.commit(machine, new.into(), CURRENT).expect("prepared");
    bury(manager, machine, old);
    new
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever lives, dies and is replaced: who is born has the portals that are compiled for it.
    #[test]
    fn every_newcomer_has_its_own_portals(
        steps in prop::collection::vec((0u8..8, 20u16..26, any::<bool>(), 0u32..8), 1..40),
    ) {
        let (mut manager, mut machine) = system();
        let mut server = SERVER;
        for (step, asid, float, pages) in steps {
            let alive = manager.domains[usize::from(asid)].alive;
            match step {
                0 => server = succeed(&mut manager, &mut machine, server),
                _ if alive => bury(&mut manager, &mut machine, asid),
                _ => {
                    // Few pages are left, now and then.
                    machine.patience = if pages < 3 { pages } else { u32::MAX };
                    let born = manager.attach(&mut machine, newcomer(asid, float));
                    machine.patience = u32::MAX;
                    if born.is_err() {
                        bury(&mut manager, &mut machine, asid);
                    }
                }
            }
            check(&manager, &machine);
        }
    }
}

/// No block fits where free code lies scattered; each portal does.
#[test]
fn scattered_room_is_enough() {
    let (mut manager, mut machine) = system();
    bear(&mut manager, &mut machine, 20..30, false);
    // All code that there is, in one portal behind the other; then each second one goes.
    let mut opened = Vec::new();
    for asid in 20..30 {
        while let Ok(at) = manager.open(&mut machine, Asid(asid), 0) {
            opened.push((asid, at));
        }
    }
    assert_eq!(manager.open(&mut machine, Asid(29), 0), Err(errno::ECODE));
    for (asid, at) in opened.iter().step_by(2) {
        manager.close(&mut machine, Asid(*asid), (*at).into(), 1, None).expect("closed");
    }
    manager.sweep(&mut machine, CURRENT);
    manager.attach(&mut machine, newcomer(30, false)).expect("there is room for each");
    check(&manager, &machine);
}

#[test]
fn a_family_without_code_left_has_no_newcomer() {
    let (mut manager, mut machine) = system();
    bear(&mut manager, &mut machine, 20..22, false);
    manager.set_family(Asid(22), 9).expect("a number");
    let refused = (22..map::MAX_DOMAINS as u16 - 2).find(|asid| {
        manager.set_family(Asid(u64::from(*asid)), 9).expect("a number");
        manager.attach(&mut machine, newcomer(*asid, false)).is_err()
    });
    assert!(refused.is_some(), "one family has all code");
    check(&manager, &machine);
}

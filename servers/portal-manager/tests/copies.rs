//! Copies of a domain get their stubs as a block, and have what their parent has at that moment.

mod common;

use common::{CURRENT, Fake, Manager, check, system, view};
use pebble_abi::control::BEHALF;
use pebble_abi::words::Asid;
use pebble_abi::{map, sys};
use pebble_portal_manager::Goal;
use proptest::prelude::*;

const HANDLERS: [u64; 2] = [0x2_0000, 0x2_0100];
const PARENTS: [u16; 2] = [3, 4];
const CHILD: u16 = 20;

fn is_behalf(m: &Manager, asid: u16, index: usize) -> bool {
    let first = m.domains[usize::from(asid)].behalf.map(|first| usize::from(first.get()));
    first.is_some_and(|first| (first..first + BEHALF.len()).contains(&index))
}

/// Whether the stubs of a copy that has just been made are those for its parent's portals.
fn mirrors(m: &Manager, parent: u16, handler: u64) {
    for index in sys::SYS_GET_ASID..map::TABLE_ENTRIES {
        let stub = match m.domains[usize::from(CHILD)].slots[index].goal {
            Goal::Interface(n) => Some(&m.interfaces[usize::from(n)]),
            _ => None,
        };
        let original = m.seen(parent, index).filter(|_| !is_behalf(m, parent, index));
        assert_eq!(stub.is_some(), original.is_some(), "index {index}");
        let Some((stub, original)) = stub.zip(original) else { continue };
        assert_eq!((stub.asid, &*stub.name), (parent, ""));
        assert_eq!(stub.entry & !4, handler, "index {index}");
        assert_eq!(&stub.spec.args[1..], &original.args[..], "index {index}");
        assert_eq!(stub.spec.results, original.results, "index {index}");
    }
}

fn die(m: &mut Manager, machine: &mut Fake, asid: u16) {
    m.retire(machine, asid.into()).expect("it lives");
    m.reclaim(machine, asid.into(), CURRENT).expect("nobody is in it");
    machine.domain_free(asid);
}

#[test]
fn the_next_copy_has_a_block_and_takes_as_much_room() {
    let (mut m, mut machine) = system();
    m.create(&mut machine, Asid(2), PARENTS[0].into(), 2, 2, 7).expect("two portals");
    let mut took = Vec::new();
    for _ in 0..3 {
        let before = m.stats();
        m.control(&mut machine, PARENTS[0].into(), (CHILD.into(), true), HANDLERS[0], Some(view(CHILD)))
            .expect("a copy");
        took.push(m.stats()[1] - before[1]);
        check(&m, &machine);
        mirrors(&m, PARENTS[0], HANDLERS[0]);
        die(&mut m, &mut machine, CHILD);
    }
    // The first one has the portals on behalf made, besides.
    assert_eq!(took[1], took[2]);
}

/// One program ends, and the next with its number looks like it: page tables, handlers, as many portals opened.
/// Only what its portal leads to is something else.
#[test]
fn a_copy_has_nothing_of_who_had_its_parents_number() {
    const WATCHED: u16 = 21;
    let (mut m, mut machine) = system();
    let parent = 30u16;
    for (round, interface) in [2, 3].into_iter().enumerate() {
        m.attach(&mut machine, view(parent)).expect("a program");
        m.open(&mut machine, parent.into(), interface).expect("a portal");
        if round == 1 {
            // Before its first copy it has all handlers, with the numbers that those of its forerunner had.
            let child = (WATCHED.into(), false);
            m.control(&mut machine, parent.into(), child, HANDLERS[0], Some(view(WATCHED))).expect("a child");
            let stub = Some((HANDLERS[0], pebble_portal::Spec::parse("nm=i>4").expect("a good one"), 0));
            m.create_child(&mut machine, parent.into(), WATCHED.into(), 99, stub).expect("a stub");
        }
        for _ in 0..2 {
            m.control(&mut machine, parent.into(), (CHILD.into(), true), HANDLERS[0], Some(view(CHILD)))
                .expect("a copy");
            check(&m, &machine);
            mirrors(&m, parent, HANDLERS[0]);
            die(&mut m, &mut machine, CHILD);
        }
        die(&mut m, &mut machine, parent);
    }
}

/// Handlers that no stub leads to, of all controllers.
fn handlers(m: &Manager) -> usize {
    m.interfaces.iter().filter(|i| i.asid != 0 && i.name.is_empty()).count()
}

#[test]
fn a_controller_with_another_handler_each_time_has_room_for_the_next() {
    let (mut m, mut machine) = system();
    let mut most = 0;
    for n in 0..100 {
        let copy = (CHILD.into(), true);
        m.control(&mut machine, PARENTS[0].into(), copy, HANDLERS[0] + n * 16, Some(view(CHILD)))
            .expect("a copy");
        die(&mut m, &mut machine, CHILD);
        most = most.max(handlers(&m));
    }
    assert!((20..=96).contains(&most), "{most} are kept");
}

/// Many controllers, each with handlers of copies that are long dead.
#[test]
fn handlers_that_are_kept_keep_nobody_from_offering_something() {
    let (mut m, mut machine) = system();
    let mut full = false;
    for parent in 30..100 {
        m.attach(&mut machine, view(parent)).expect("a program");
        for n in 0..24 {
            let (before, copy) = (handlers(&m), (CHILD.into(), true));
            m.control(&mut machine, parent.into(), copy, HANDLERS[0] + n * 16, Some(view(CHILD)))
                .expect("a copy");
            full |= handlers(&m) < before;
            die(&mut m, &mut machine, CHILD);
        }
        let name = format!("name.{parent}");
        let spec = pebble_portal::Spec::parse("smi").expect("a good one");
        m.register(&mut machine, parent.into(), &name, spec, 0x1_0000).expect("there is room");
        m.unregister(m.own_interface(parent.into(), &name).expect("it is there"));
    }
    assert!(full, "the table was never full");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever parents open and close between their copies, and whose copy is next.
    #[test]
    fn a_copy_has_what_its_parent_has_now(
        steps in prop::collection::vec((0u8..6, 0usize..2, 0u64..4, any::<prop::sample::Index>()), 1..40),
    ) {
        let (mut m, mut machine) = system();
        for (step, who, which, index) in steps {
            let parent = PARENTS[who];
            match step {
                // What lies at an index may be another thing than what lay there when the last copy was made.
                0 => { let _ = m.open(&mut machine, parent.into(), 2 + which as u16); }
                1 => { let _ = m.create(&mut machine, Asid(2), parent.into(), 2, 1 + which % 2, which); }
                2 => {
                    let used: Vec<u64> = (sys::FIRST_FREE..map::TABLE_ENTRIES)
                        .filter(|n| m.seen(parent, *n).is_some() && !is_behalf(&m, parent, *n))
                        .map(|n| n as u64)
                        .collect();
                    if !used.is_empty() {
                        m.close(&mut machine, parent.into(), *index.get(&used), 1, None).expect("it is open");
                    }
                }
                _ => {
                    let handler = HANDLERS[which as usize % 2];
                    let copy = (CHILD.into(), true);
                    m.control(&mut machine, parent.into(), copy, handler, Some(view(CHILD))).expect("a copy");
                    check(&m, &machine);
                    mirrors(&m, parent, handler);
                    die(&mut m, &mut machine, CHILD);
                }
            }
        }
    }
}

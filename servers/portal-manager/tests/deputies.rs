//! Whose authority a portal has that the portal manager opens for itself, or for a domain below a controller.

mod common;

use common::{CURRENT, Fake, MANAGER, Manager, SERVER, check, system, view};
use pebble_abi::consent::Letters;
use pebble_abi::words::Asid;
use pebble_abi::{errno, map};
use pebble_portal::Spec;
use pebble_portal_manager::Subject;
use pebble_portal_manager::open::NAMES;
use pebble_portal_manager::{Goal, Interface};
use std::num::NonZeroU16;

const HANDLER: u64 = 0x2_0000;
const PARENT: u16 = 3;
const CHILD: u16 = 20;
const SIBLING: u16 = 21;

/// The system with interfaces by which portal manager and VM manager are known; its clients are programs.
fn programs() -> (Manager, Fake) {
    let (mut m, machine) = system();
    for program in common::CLIENTS {
        m.domains[usize::from(program)].image = false;
    }
    for (name, asid, spec) in [
        ("pm.unwind", MANAGER, "npii"),
        ("vm.provide", SERVER, "npaiiii"),
        ("process.exit", SERVER, "npai"),
        ("process.list", SERVER, "npi>4"),
    ] {
        let spec = Spec::parse(spec).expect("a specification");
        m.interfaces.push(Interface::new(name, asid, 0x1_0000, spec).vouched());
    }
    (m, machine)
}

fn interface(m: &Manager, name: &str) -> u16 {
    m.interfaces.iter().position(|i| i.name == name).expect("an interface") as u16
}

/// A portal of `asid` to what another program offers.
fn to_program(m: &mut Manager, machine: &mut Fake, asid: u16, name: &str, spec: &str) -> u16 {
    let spec = Spec::parse(spec).expect("a specification");
    let offered = m.register(machine, Asid(4), name, spec, 0x1_0000).expect("an interface");
    m.open(machine, asid.into(), offered).expect("a portal")
}

/// Whoever trusts the portal manager would take it for the one who asks: it would exit, and the system with
/// it.
#[test]
fn the_portal_manager_asks_no_server_that_wants_to_know_who_asks() {
    let (mut m, mut machine) = programs();
    let own = m.register(&mut machine, Asid(5), "own", Spec::parse("np").expect("a specification"), 0x1_0000);
    let own = u64::from(own.expect("an interface"));
    let [exit, list] = ["process.exit", "process.list"].map(|name| interface(&m, name));
    let exit = m.open(&mut machine, Asid(5), exit).expect("a portal").into();
    assert_eq!(m.guard_by_asking(&mut machine, Asid(5), own, (5, exit)), Err(errno::EINVAL));
    // Who asks makes no difference to these.
    let list = m.open(&mut machine, Asid(5), list).expect("a portal").into();
    m.guard_by_asking(&mut machine, Asid(5), own, (5, list)).expect("a server that need not know");
    let stranger = to_program(&mut m, &mut machine, 5, "policy", "npaii");
    m.guard_by_asking(&mut machine, Asid(5), own, (5, stranger.into())).expect("another program");
    check(&m, &machine);
}

/// A controller with two children, of which each has something that the other has not.
fn siblings() -> (Manager, Fake) {
    let (mut m, mut machine) = programs();
    for child in [CHILD, SIBLING] {
        m.control(&mut machine, PARENT.into(), (child.into(), false), HANDLER, Some(view(child)))
            .expect("a child");
    }
    (m, machine)
}

/// All that a domain can call.
fn indices(m: &Manager, asid: u16) -> Vec<usize> {
    (0..map::TABLE_ENTRIES).filter(|index| m.seen(asid, *index).is_some()).collect()
}

#[test]
fn what_servers_open_for_a_controlled_domain_is_theirs() {
    let (mut m, mut machine) = siblings();
    m.own_semaphore(Some(CHILD.into()), 80);
    m.request.serving = NonZeroU16::new(CHILD);
    let semaphore = m.semaphore(&mut machine, PARENT.into(), 80).expect("P and V").into();
    let offered = m
        .register(&mut machine, Asid(4), "stranger", Spec::parse("npiii").expect("a specification"), 0x1_0000)
        .expect("an interface");
    let handler = m.open(&mut machine, PARENT.into(), offered).expect("a portal").into();
    let offered = m
        .register(&mut machine, Asid(4), "policy", Spec::parse("npii").expect("a specification"), 0x1_0000)
        .expect("an interface");
    let policy = m.open(&mut machine, PARENT.into(), offered).expect("a portal").into();
    let own = m
        .register(&mut machine, CHILD.into(), "own", Spec::parse("np").expect("a specification"), 0x1_0000)
        .expect("an interface");
    // The sibling fills what follows.
    m.request.serving = NonZeroU16::new(SIBLING);
    for _ in 0..64 {
        m.open(&mut machine, PARENT.into(), 2).expect("a portal");
    }
    let had = indices(&m, CHILD);
    let who = Subject { domain: CHILD, caller: PARENT, ..Subject::default() };
    m.request.serving = NonZeroU16::new(CHILD);
    let id = m.semaphore_of(who, semaphore).expect("its own");
    m.watch(&mut machine, CHILD.into(), Some(id)).expect("watches");
    m.request.serving = NonZeroU16::new(CHILD);
    m.guard_by_asking(&mut machine, CHILD.into(), own.into(), (PARENT, policy)).expect("a policy");
    m.request.serving = NonZeroU16::new(CHILD);
    m.handle_range(&mut machine, (CHILD, PARENT), 0x1_0000, handler, |_, _| Ok(())).expect("a handler");
    m.request.serving = None;
    assert_eq!(indices(&m, CHILD), had, "it has got what the sibling has");
    for server in [MANAGER, SERVER] {
        let slots = &m.domains[usize::from(server)].slots;
        assert!(slots.used().all(|(_, slot)| slot.subject.is_none()), "a server that calls for somebody");
    }
    check(&m, &machine);
}

#[test]
fn a_controlled_domain_names_only_what_it_has() {
    let (mut m, mut machine) = siblings();
    let own = m
        .register(&mut machine, CHILD.into(), "own", Spec::parse("np").expect("a specification"), 0x1_0000)
        .expect("an interface");
    m.own_semaphore(Some(PARENT.into()), 80);
    let lock = m.semaphore(&mut machine, PARENT.into(), 80).expect("P and V").into();
    let portal = to_program(&mut m, &mut machine, PARENT, "parents", "npii").into();
    let who = Subject { domain: CHILD, caller: PARENT, ..Subject::default() };
    assert_eq!(m.semaphore_of(who, lock), Err(errno::EBADF));
    assert_eq!(
        m.guard_by_asking(&mut machine, CHILD.into(), own.into(), (PARENT, portal)),
        Err(errno::EBADF)
    );
    let range = m.handle_range(&mut machine, (CHILD, PARENT), 0x1_0000, portal, |_, _| Ok(()));
    assert_eq!(range, Err(errno::EBADF));
    // Its parent may.
    let own = m
        .register(
            &mut machine,
            PARENT.into(),
            "parent",
            Spec::parse("np").expect("a specification"),
            0x1_0000,
        )
        .expect("an interface");
    m.guard_by_asking(&mut machine, PARENT.into(), own.into(), (PARENT, portal)).expect("its own");
    check(&m, &machine);
}

/// Else the controller would be taken for whoever has the number next.
#[test]
fn a_number_that_is_free_again_is_nobodys_in_a_controllers_table() {
    let (mut m, mut machine) = programs();
    let fork = |m: &mut Manager, machine: &mut Fake, parent: u16, child: u16| {
        m.control(machine, parent.into(), (child.into(), true), HANDLER, Some(view(child))).expect("a child");
    };
    fork(&mut m, &mut machine, PARENT, CHILD);
    fork(&mut m, &mut machine, CHILD, 22);
    let index = m.open_below(&mut machine, Asid(22), 2, Letters::NONE).expect("a portal");
    m.request.serving = None;
    assert_eq!(m.domains[usize::from(PARENT)].slots[usize::from(index)].subject, NonZeroU16::new(22));
    for dead in [CHILD, 22] {
        m.retire(&mut machine, dead.into()).expect("it lives");
        m.reclaim(&mut machine, dead.into(), CURRENT).expect("nobody is in it");
    }
    m.attach(&mut machine, view(22)).expect("the number is free");
    let slots = &m.domains[usize::from(PARENT)].slots;
    let left = slots
        .used()
        .filter(|(_, slot)| slot.subject == NonZeroU16::new(22) && slot.goal != Goal::Free)
        .count();
    assert_eq!(left, 0, "portals that say they are another's");
    check(&m, &machine);
}

/// Or one semaphore would fill the portal manager's memory.
#[test]
fn a_semaphore_has_few_names() {
    let (mut m, mut machine) = programs();
    m.own_semaphore(Some(PARENT.into()), 80);
    m.semaphore(&mut machine, PARENT.into(), 80).expect("P and V");
    let given = (0..100).take_while(|n| m.publish(Asid(7), &format!("name{n}"), 80).is_ok()).count();
    assert_eq!(given, NAMES);
    assert_eq!(m.publish(Asid(7), "another", 80), Err(errno::EAGAIN));
    assert_eq!(m.publish(Asid(7), "another", 81), Ok(()));
    assert_eq!(m.published("name0"), Ok(80));
}

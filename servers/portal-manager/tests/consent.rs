//! What a portal takes of its opener, who gives it, and whose stacks who sees.

mod common;

use common::{CLIENTS, CURRENT, Fake, Manager, SERVER, check, system, view};
use pebble_abi::consent::Letters;
use pebble_abi::{errno, map, status};
use pebble_portal::Spec;
use pebble_portal_manager::Goal;

const HOST: u16 = CLIENTS[0];
const GUEST: u16 = CLIENTS[1];
const NEXT: u16 = CLIENTS[2];
const HANDLER: u64 = 0x2_0000;
const CHILD: u16 = 20;
const TRUSTED: u16 = 4;

/// Clients that are programs; the second and the third export what nobody vouches for.
fn strangers() -> (Manager, Fake, [u16; 2]) {
    let (mut m, mut machine) = system();
    for program in CLIENTS {
        m.domains[usize::from(program)].image = false;
    }
    let mut offer = |asid: u16, name: &str, spec: &str| {
        let spec = Spec::parse(spec).expect("a specification");
        m.register(&mut machine, asid.into(), name, spec, 0x3_0000).expect("an interface")
    };
    let offered = [offer(GUEST, "guest.deep", "smii"), offer(NEXT, "next.deep", "sm")];
    (m, machine, offered)
}

const GIVEN: Letters = Letters::of("sm");

#[test]
fn a_letter_that_is_not_given_is_refused_by_name() {
    let (mut m, mut machine, [deep, _]) = strangers();
    for (given, missing) in [("", b's'), ("m", b's'), ("s", b'm'), ("wrotgkABC", b's')] {
        let opened = m.open_with(&mut machine, HOST.into(), deep, Letters::of(given));
        assert_eq!(opened, Err(errno::EPROTOTYPE), "{given}");
        assert_eq!(m.request.refused, status::refused(missing, GUEST, HOST));
        assert_eq!(status::missing(m.request.refused), (missing.into(), HOST));
        assert!(machine.shown.is_empty());
    }
    for letter in ["w", "r", "o", "t", "g", "k", "Z"] {
        let spec = Spec::parse(&format!("npi{letter}")).expect("a specification");
        let asks = m.register(
            &mut machine,
            GUEST.into(),
            &format!("guest.{}", letter.to_lowercase()),
            spec,
            0x3_0000,
        );
        let opened = m.open(&mut machine, HOST.into(), asks.expect("an interface"));
        assert_eq!(
            (opened, status::missing(m.request.refused).0),
            (Err(errno::EPROTOTYPE), letter.chars().next().unwrap())
        );
    }
    // Its own, the image's, and what is given.
    m.open(&mut machine, GUEST.into(), deep).expect("its own");
    assert!(machine.shown.is_empty());
    m.open(&mut machine, HOST.into(), TRUSTED).expect("the image's");
    m.open_with(&mut machine, HOST.into(), deep, GIVEN).expect("given");
    assert_eq!(machine.shown.iter().copied().collect::<Vec<_>>(), [(HOST, SERVER), (HOST, GUEST)]);
    // What a component of the image registers while it runs is nobody's but its own.
    let spec = Spec::parse("nm").expect("a specification");
    let late = m.register(&mut machine, SERVER.into(), "server.late", spec, 0x3_0000).expect("an interface");
    assert_eq!(m.open(&mut machine, HOST.into(), late), Err(errno::EPROTOTYPE));
    check(&m, &machine);
}

#[test]
fn what_a_server_makes_for_its_client_takes_nothing() {
    let (mut m, mut machine, [deep, _]) = strangers();
    let made = m.create(&mut machine, GUEST.into(), HOST.into(), deep.into(), 1, 7);
    assert_eq!((made, m.request.refused), (Err(errno::EPROTOTYPE), status::refused(b's', GUEST, HOST)));
    m.create(&mut machine, SERVER.into(), HOST.into(), TRUSTED.into(), 1, 7).expect("the image's");
    check(&m, &machine);
}

/// Whoever is asked by the portal manager, or by the VM manager, is in its call.
#[test]
fn a_program_changes_no_table_of_the_image() {
    let (mut m, mut machine, [_, plain]) = strangers();
    let made = m.create(&mut machine, SERVER.into(), HOST.into(), TRUSTED.into(), 1, 7).expect("the image's");
    let own = m.open(&mut machine, SERVER.into(), TRUSTED).expect("a portal");
    for server in [GUEST, HOST] {
        let given = m.create(&mut machine, server.into(), SERVER.into(), plain.into(), 1, 7);
        assert_eq!(given, Err(errno::EPERM));
        assert_eq!(m.remove(&mut machine, server.into(), SERVER.into(), own.into(), 1), Err(errno::EPERM));
    }
    m.remove(&mut machine, SERVER.into(), HOST.into(), made.into(), 1).expect("the image's");
    check(&m, &machine);
}

#[test]
fn stacks_are_seen_as_long_as_a_portal_or_a_call_needs_them() {
    let (mut m, mut machine, [deep, _]) = strangers();
    let open = |m: &mut Manager, machine: &mut Fake| {
        m.open_with(machine, HOST.into(), deep, GIVEN).expect("a portal")
    };
    let [first, second] = [(); 2].map(|()| open(&mut m, &mut machine));
    for (index, seen) in [(first, true), (second, false)] {
        m.close(&mut machine, HOST.into(), index.into(), 1, None).expect("closes");
        assert!(m.untidy());
        m.sweep(&mut machine, CURRENT);
        assert_eq!(machine.shown.contains(&(HOST, GUEST)), seen);
    }
    assert!(!m.untidy());
    // A thread is in the call: it returns on the host's stack.
    let third = open(&mut m, &mut machine);
    let run = m.domains[usize::from(HOST)].slots[usize::from(third)].run;
    let frame = u64::from(GUEST) << 16 | u64::from(HOST);
    let ret = (8..u64::from(run.len))
        .step_by(8)
        .find(|at| machine.code_word_at(u64::from(run.at) + at - 8) >> 16 & 0xffff_ffff == frame)
        .expect("a return leg");
    machine.enter(map::CODE_VA + u64::from(run.at), ret);
    m.close(&mut machine, HOST.into(), third.into(), 1, None).expect("closes");
    m.sweep(&mut machine, CURRENT);
    let in_call = machine.shown.contains(&(HOST, GUEST));
    machine.leave();
    m.sweep(&mut machine, CURRENT);
    assert!(in_call && machine.shown.is_empty(), "{in_call}");
    check(&m, &machine);
}

#[test]
fn nobody_passes_on_the_stacks_of_another() {
    for guest_first in [true, false] {
        let (mut m, mut machine, [deep, next]) = strangers();
        let host = |m: &mut Manager, machine: &mut Fake| m.open_with(machine, HOST.into(), deep, GIVEN);
        let guest = |m: &mut Manager, machine: &mut Fake| m.open_with(machine, GUEST.into(), next, GIVEN);
        if guest_first {
            guest(&mut m, &mut machine).expect("its own stacks");
            assert_eq!(host(&mut m, &mut machine), Err(errno::EPROTOTYPE));
        } else {
            host(&mut m, &mut machine).expect("to the guest");
            assert_eq!(guest(&mut m, &mut machine), Err(errno::EPROTOTYPE));
        }
        assert_eq!(m.request.refused, status::refused(b's', NEXT, HOST));
        assert!(!machine.shown.contains(&(HOST, NEXT)));
        // Who gives them to both may be called through both; the image's are given to all that the image puts
        // behind them.
        m.open_with(&mut machine, HOST.into(), next, GIVEN).expect("to the next");
        let last = if guest_first { host(&mut m, &mut machine) } else { guest(&mut m, &mut machine) };
        last.expect("given to both");
        m.open(&mut machine, NEXT.into(), TRUSTED).expect("the image's");
        for seen in
            [(HOST, GUEST), (HOST, NEXT), (GUEST, NEXT), (HOST, SERVER), (GUEST, SERVER), (NEXT, SERVER)]
        {
            assert!(machine.shown.contains(&seen), "{seen:?}");
        }
        check(&m, &machine);
    }
}

/// A child of the host.
fn controlled() -> (Manager, Fake, [u16; 2]) {
    let (mut m, mut machine, offered) = strangers();
    m.control(&mut machine, HOST.into(), (CHILD.into(), false), HANDLER, Some(view(CHILD))).expect("a child");
    (m, machine, offered)
}

#[test]
fn a_child_gives_nothing_of_its_controllers() {
    let (mut m, mut machine, [deep, _]) = controlled();
    assert_eq!(m.open_below(&mut machine, CHILD.into(), deep, Letters::NONE), Err(errno::EPROTOTYPE));
    assert_eq!(m.request.refused, status::refused(b's', GUEST, CHILD));
    let index = m.open_below(&mut machine, CHILD.into(), deep, GIVEN).expect("given");
    let words = |m: &Manager, machine: &Fake, asid: u16, index: u16| {
        let run = m.domains[usize::from(asid)].slots[usize::from(index)].run;
        machine.code[run.at as usize / 8..][..run.len as usize / 8].to_vec()
    };
    assert!(machine.shown.is_empty(), "{:?}", machine.shown);
    assert!(m.domains[usize::from(GUEST)].stacks > 0, "it runs on its own");
    // Preserved registers are saved and hidden, as by a portal that says so.
    m.request.serving = None;
    let spec = Spec::parse("npii").expect("a specification");
    let plain = m.register(&mut machine, GUEST.into(), "guest.plain", spec, 0x3_0000).expect("an interface");
    let other = m.open_below(&mut machine, CHILD.into(), plain, Letters::NONE).expect("a portal");
    let [code, wanted] = [index, other].map(|index| words(&m, &machine, HOST, index).len());
    assert_eq!(code, wanted);
    assert_eq!(
        m.text_of(deep)[0],
        u64::from_le_bytes(*b"smii\0\0\0\0"),
        "the child is told what the exporter says"
    );
    // What it exports itself.
    m.request.serving = None;
    let spec = Spec::parse("sm").expect("a specification");
    let own = m.register(&mut machine, CHILD.into(), "child.own", spec, 0x3_0000).expect("an interface");
    m.open_below(&mut machine, CHILD.into(), own, Letters::NONE).expect("its own");
    assert!(machine.shown.is_empty(), "{:?}", machine.shown);
    // Nor does the image's get them through a child.
    m.open_below(&mut machine, CHILD.into(), TRUSTED, Letters::NONE).expect("the image's");
    assert!(machine.shown.is_empty(), "{:?}", machine.shown);
    // A counter, a rebuilt portal: the same.
    m.request.serving = None;
    m.count(&mut machine, HOST.into(), true).expect("counts");
    assert!(machine.shown.is_empty(), "{:?}", machine.shown);
    check(&m, &machine);
}

#[test]
fn a_controller_takes_no_page_where_the_portal_takes_none() {
    let (mut m, mut machine, _) = controlled();
    let index = m.open_below(&mut machine, CHILD.into(), 3, Letters::NONE).expect("a portal").into();
    m.request.serving = None;
    for (spec, missing) in [("nm=w", b'w'), ("nmit", b't'), ("npk", b'k'), ("nm=iir", b'r')] {
        let stub = Some((HANDLER, Spec::parse(spec).expect("a specification"), 0));
        let made = m.create_child(&mut machine, HOST.into(), CHILD.into(), index, stub);
        assert_eq!(
            (made, m.request.refused),
            (Err(errno::EPROTOTYPE), status::refused(missing, HOST, CHILD)),
            "{spec}"
        );
    }
    let stub = Some((HANDLER, Spec::parse("nm=ii").expect("a specification"), 0));
    m.create_child(&mut machine, HOST.into(), CHILD.into(), index, stub).expect("words");
    check(&m, &machine);
}

#[test]
fn a_death_ends_what_was_seen() {
    let (mut m, mut machine, [deep, _]) = strangers();
    m.open_with(&mut machine, HOST.into(), deep, GIVEN).expect("a portal");
    m.retire(&mut machine, GUEST.into()).expect("dies");
    m.sweep(&mut machine, CURRENT);
    assert!(machine.shown.is_empty());
    m.reclaim(&mut machine, GUEST.into(), CURRENT).expect("is buried");
    // Another with its number sees nothing.
    m.attach(&mut machine, view(GUEST)).expect("a new domain");
    assert!(m.domains[usize::from(HOST)].slots.used().all(|(_, s)| s.goal != Goal::Interface(deep)));
    assert!(machine.shown.is_empty());
    check(&m, &machine);
}

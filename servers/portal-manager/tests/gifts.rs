//! Portals that programs put into others' tables.

mod common;

use common::{CLIENTS, Fake, Manager, check, system};
use pebble_abi::errno::{self, Errno};
use pebble_abi::share;
use pebble_portal::Spec;
use pebble_portal_manager::Goal;
use pebble_portal_manager::gifts::{GIFTS, OF_ONE};
use std::num::NonZeroU16;

const HOST: u16 = CLIENTS[0];
const GUEST: u16 = CLIENTS[1];
const NEXT: u16 = CLIENTS[2];
const TRUSTED: u16 = 4;

/// Clients that are programs, with two givers among them and what these give.
fn givers() -> (Manager, Fake, [u64; 2]) {
    let (mut m, mut machine) = system();
    for program in CLIENTS {
        m.domains[usize::from(program)].image = false;
    }
    let gifts = [(GUEST, "guest.gift"), (NEXT, "next.gift")].map(|(asid, name)| {
        let spec = Spec::parse("np").expect("a specification");
        m.register(&mut machine, asid.into(), name, spec, 0x3_0000).expect("an interface").into()
    });
    (m, machine, gifts)
}

fn give(m: &mut Manager, machine: &mut Fake, giver: u16, gift: u64) -> Result<u16, Errno> {
    m.create(machine, giver.into(), HOST.into(), gift, 1, 0)
}

#[test]
fn gifts_take_nothing_of_their_receiver() {
    let (mut m, mut machine, [gift, other]) = givers();
    m.domains[usize::from(HOST)].most = Some(m.domains[usize::from(HOST)].held + 1);
    let given: Vec<u64> =
        (0..OF_ONE).map(|_| give(&mut m, &mut machine, GUEST, gift).expect("a gift").into()).collect();
    assert_eq!(give(&mut m, &mut machine, GUEST, gift), Err(errno::EGIFTS));
    let another = give(&mut m, &mut machine, NEXT, other).expect("another's gift").into();
    let own = m.open(&mut machine, HOST.into(), gift as u16).expect("its own").into();
    assert_eq!(m.open(&mut machine, HOST.into(), TRUSTED), Err(errno::EMFILE), "it may have one");
    // A giver takes back its gifts alone.
    let mut back = |m: &mut Manager, index| m.remove(&mut machine, GUEST.into(), HOST.into(), index, 1);
    assert_eq!(back(&mut m, own), Err(errno::EBADF));
    assert_eq!(back(&mut m, another), Err(errno::EBADF));
    assert_eq!(back(&mut m, given[0]), Ok(()));
    // The receiver drops what it likes; then there is room.
    m.close(&mut machine, HOST.into(), given[1], 1, None).expect("a portal like any");
    for _ in 0..2 {
        give(&mut m, &mut machine, GUEST, gift).expect("a gift");
    }
    assert_eq!(give(&mut m, &mut machine, GUEST, gift), Err(errno::EGIFTS));
    // The dead give nothing, and are not charged for what they gave.
    m.retire(&mut machine, GUEST.into()).expect("it lives");
    let slot = m.domains[usize::from(HOST)].slots[given[2] as usize];
    assert_eq!(slot.goal, Goal::Closed(GUEST));
    assert_ne!(slot.giver, NonZeroU16::new(GUEST));
    m.close(&mut machine, HOST.into(), given[2], 1, None).expect("closed, but held");
    check(&m, &machine);
}

#[test]
fn there_is_an_end_to_all_gifts_of_a_table() {
    let (mut m, mut machine, [gift, other]) = givers();
    let (host, mut had) = (usize::from(HOST), 0);
    while give(&mut m, &mut machine, GUEST, gift).is_ok() {
        had += 1;
        // As if each dozen were of a giver that has died since.
        if had % 12 == 0 {
            for index in 0..m.domains[host].slots.len() {
                if m.domains[host].slots[index].giver == NonZeroU16::new(GUEST) {
                    m.domains[host].slots[index].giver = Some(NonZeroU16::MAX);
                }
            }
        }
    }
    assert_eq!((had, give(&mut m, &mut machine, NEXT, other)), (GIFTS, Err(errno::EGIFTS)));
    check(&m, &machine);
}

#[test]
fn the_giver_pays_for_the_code() {
    let (mut m, mut machine, [gift, other]) = givers();
    for (family, asid) in [(1, HOST), (2, GUEST), (3, NEXT)] {
        m.set_family(asid.into(), family).expect("a program");
    }
    // The host's family has all that it may have.
    m.domains[usize::from(HOST)].most = Some(usize::MAX);
    while m.open(&mut machine, HOST.into(), gift as u16).is_ok() {}
    assert!(m.stats()[1] as usize >= share::CODE.family);
    assert_eq!(m.open(&mut machine, HOST.into(), TRUSTED), Err(errno::ECODE));
    give(&mut m, &mut machine, GUEST, gift).expect("the giver has its own");
    m.set_family(NEXT.into(), 1).expect("a program");
    assert_eq!(give(&mut m, &mut machine, NEXT, other), Err(errno::ECODE), "the host's family");
    check(&m, &machine);
}

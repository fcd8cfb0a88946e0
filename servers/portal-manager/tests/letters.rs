//! Letters registered by components: by whom, in one step, and for all portals or none.

mod common;

use common::*;
use pebble_abi::errno;
use pebble_abi::map;
use pebble_abi::template::Condition::Equal;
use pebble_abi::template::Operation::{self, *};
use pebble_abi::template::Register::{Base, Word, Zero};
use pebble_abi::template::{TemplateError, TemplateErrorKind};
use pebble_abi::words::Asid;
use pebble_portal::Spec;
use pebble_portal::hardware::template::riscv64::register as x;
use pebble_portal::isa::riscv64::encode::{addi, ld, lui};
use pebble_portal_manager::Machine;
use pebble_portal_manager::letters::Refused;

/// The number of "server.letter", which is registered first.
const LETTER: u16 = 8;
const OWNER: u64 = SERVER as u64;

fn lettered() -> (Manager, Fake) {
    let (mut manager, mut machine) = system();
    let made = manager.register(&mut machine, Asid(OWNER), "server.letter", parse("npiZ"), 0x1_0000);
    assert_eq!(made, Ok(LETTER));
    // As if it were the image's: who opens it is not asked.
    manager.interfaces[usize::from(LETTER)].vouched = true;
    (manager, machine)
}

/// Adds to the caller's word.
const fn plus(number: i16) -> Operation {
    AddNumber { to: Word, a: Word, number }
}

/// The instruction that it becomes.
fn made(number: i32) -> u32 {
    addi(x(Word), x(Word), number)
}

fn register(manager: &mut Manager, machine: &mut Fake, code: &[Operation]) -> Result<(), Refused> {
    manager.begin_template(Asid(OWNER), b'Z'.into())?;
    let words: Vec<u32> = code.iter().map(|operation| operation.encode()).collect();
    for words in words.chunks(6) {
        manager.fill_template(Asid(OWNER), words)?;
    }
    manager.commit_template(machine, Asid(OWNER))
}

/// Words of a portal's code, as the table leads to it.
fn words(manager: &Manager, machine: &Fake, asid: u16, index: u16) -> Vec<u32> {
    let run = manager.domains[usize::from(asid)].slots[usize::from(index)].run;
    assert_eq!(machine.table(asid, index), map::CODE_VA + u64::from(run.at), "the table leads elsewhere");
    let doubles = &machine.code[run.at as usize / 8..][..run.len as usize / 8];
    doubles.iter().flat_map(|double| [*double as u32, (double >> 32) as u32]).collect()
}

fn has(words: &[u32], code: &[u32]) -> bool {
    words.windows(code.len()).any(|w| w == code)
}

const fn wrong(at: usize, kind: TemplateErrorKind) -> Result<(), Refused> {
    Err(Refused::Code(TemplateError { at, kind }))
}

#[test]
fn a_letter_is_its_components_alone() {
    let (mut manager, _) = system();
    for (asid, letter) in [(3, b'Z'), (OWNER, b'T'), (OWNER, b'k'), (OWNER, b'w'), (MANAGER.into(), b'Z')] {
        assert_eq!(manager.begin_template(Asid(asid), letter.into()), Err(errno::EACCES));
    }
    assert_eq!(manager.begin_template(Asid(OWNER), 0x100 + u64::from(b'Z')), Err(errno::EACCES));
    assert_eq!(manager.begin_template(Asid(99), b'Z'.into()), Err(errno::ESRCH));
    assert_eq!(manager.begin_template(Asid(OWNER), b'Z'.into()), Ok(()));
}

#[test]
fn a_portal_has_the_code_as_soon_as_it_is_registered() {
    let (mut manager, mut machine) = lettered();
    assert_eq!(manager.open(&mut machine, Asid(3), LETTER), Err(errno::ENOPROTOOPT));
    let (first, second) = ([ld(x(Word), x(Base), 8), made(77)], [made(99)]);
    let (one, other_code) = ([Load { to: Word, at: Base, offset: 8 }, plus(77)], [plus(99)]);
    assert_eq!(register(&mut manager, &mut machine, &one), Ok(()));
    let indices =
        [3, 4, 5].map(|asid| (asid, manager.open(&mut machine, asid.into(), LETTER).expect("open")));
    let other = manager.open(&mut machine, Asid(3), 2).expect("open");
    let before = words(&manager, &machine, 3, other);
    manager.count(&mut machine, Asid(4), true).expect("counters");
    for (asid, index) in indices {
        let code = words(&manager, &machine, asid, index);
        assert!(has(&code, &first), "{code:08x?}");
        assert!(code.contains(&lui(x(Base), (map::template_va(b'Z') >> 12) as u32 & 0xf_ffff)));
    }
    let used = manager.stats()[1];
    assert_eq!(register(&mut manager, &mut machine, &other_code), Ok(()));
    for (asid, index) in indices {
        let code = words(&manager, &machine, asid, index);
        assert!(has(&code, &second) && !has(&code, &first), "{code:08x?}");
    }
    assert_eq!(words(&manager, &machine, 3, other), before, "has no letter");
    assert!(manager.domains[4].slots[usize::from(indices[1].1)].counter.is_some(), "is counted still");
    // The old code waits until nobody returns through it.
    manager.sweep(&mut machine, CURRENT);
    assert!(manager.stats()[1] < used);
    check(&manager, &machine);
    // The same again is nothing new.
    let table = machine.tables.clone();
    assert_eq!(register(&mut manager, &mut machine, &other_code), Ok(()));
    assert_eq!(machine.tables, table);
}

#[test]
fn what_is_bad_or_unfinished_changes_nothing() {
    use TemplateErrorKind::{Access, Length, Skip};
    let (mut manager, mut machine) = lettered();
    let good = [plus(77)];
    assert_eq!(register(&mut manager, &mut machine, &good), Ok(()));
    let index = manager.open(&mut machine, Asid(3), LETTER).expect("open");
    let before = (machine.tables.clone(), words(&manager, &machine, 3, index), manager.stats());
    assert_eq!(
        register(&mut manager, &mut machine, &[Store { from: Word, at: Base, offset: -8 }]),
        wrong(0, Access)
    );
    let endless = Operation::Skip { a: Zero, condition: Equal, b: Zero, count: 0 };
    assert_eq!(register(&mut manager, &mut machine, &[good[0], endless]), wrong(1, Skip));
    assert_eq!(register(&mut manager, &mut machine, &[]), wrong(0, Length));
    assert_eq!(register(&mut manager, &mut machine, &[good[0]; 33]), wrong(32, Length));
    assert_eq!(
        manager.commit_template(&mut machine, Asid(OWNER)),
        Err(Refused::Errno(errno::EINVAL)),
        "it ended"
    );
    assert_eq!(
        manager.fill_template(Asid(OWNER), &[plus(77).encode()]),
        Err(Refused::Errno(errno::EINVAL)),
        "not begun"
    );
    // Begun anew: what was there before is dropped.
    assert_eq!(manager.begin_template(Asid(OWNER), b'Z'.into()), Ok(()));
    assert_eq!(manager.fill_template(Asid(OWNER), &[plus(1).encode(); 32]), Ok(()));
    assert_eq!(before, (machine.tables.clone(), words(&manager, &machine, 3, index), manager.stats()));
    assert_eq!(register(&mut manager, &mut machine, &good), Ok(()));
    assert_eq!(before, (machine.tables.clone(), words(&manager, &machine, 3, index), manager.stats()));
}

/// No room for one of the portals: all keep the code that they have.
#[test]
fn for_all_portals_or_none() {
    let (mut manager, mut machine) = lettered();
    let (good, long) = ([plus(77)], [plus(99); 32]);
    assert_eq!(register(&mut manager, &mut machine, &good), Ok(()));
    let indices: Vec<u16> =
        (0..40).map(|_| manager.open(&mut machine, Asid(3), LETTER).expect("open")).collect();
    let (tables, used) = (machine.tables.clone(), manager.stats());
    // Of some ten pages it gets two.
    machine.patience = 2;
    assert_eq!(register(&mut manager, &mut machine, &long), Err(Refused::Errno(errno::ENOMEM)));
    machine.patience = u32::MAX;
    assert_eq!(machine.tables, tables);
    manager.sweep(&mut machine, CURRENT);
    assert_eq!(manager.stats(), used, "what was compiled in vain is free again");
    let late = manager.open(&mut machine, Asid(4), LETTER).expect("open");
    for (asid, index) in indices.iter().map(|index| (3, *index)).chain([(4, late)]) {
        assert!(has(&words(&manager, &machine, asid, index), &[made(77)]));
    }
    check(&manager, &machine);
}

#[test]
fn a_registration_outlives_its_domain_and_a_draft_does_not() {
    let (mut manager, mut machine) = lettered();
    let good = [plus(77)];
    manager.keep_role(&mut machine, OWNER, true).expect("the role is there");
    assert_eq!(register(&mut manager, &mut machine, &good), Ok(()));
    let entry = 0x1_0000;
    let own = manager.register(&mut machine, Asid(4), "client.letter", parse("nmZ"), entry);
    let own = own.expect("an interface");
    manager.interfaces[usize::from(own)].vouched = true;
    let index = manager.open(&mut machine, Asid(3), own).expect("open");
    assert_eq!(manager.begin_template(Asid(OWNER), b'Z'.into()), Ok(()));
    manager.retire(&mut machine, Asid(OWNER)).expect("it lives");
    assert!(has(&words(&manager, &machine, 3, index), &[made(77)]), "goes on");
    let fresh = manager.open(&mut machine, Asid(5), own).expect("opened after its death");
    assert!(has(&words(&manager, &machine, 5, fresh), &[made(77)]));
    assert_eq!(manager.commit_template(&mut machine, Asid(OWNER)), Err(Refused::Errno(errno::EINVAL)));
    // Whoever takes the role has the letter, already while it starts.
    manager.adopt(&mut machine, OWNER, view(7)).expect("a successor");
    assert_eq!(manager.begin_template(Asid(7), b'Z'.into()), Ok(()));
    assert_eq!(manager.commit_template(&mut machine, Asid(7)), wrong(0, TemplateErrorKind::Length));
    assert_eq!(manager.begin_template(Asid(8), b'Z'.into()), Err(errno::ESRCH));
}

/// Clients' portals have been compiled for the successor with the letters as they were.
#[test]
fn not_while_a_successor_waits() {
    let (mut manager, mut machine) = lettered();
    let good = [plus(77)];
    manager.keep_role(&mut machine, OWNER, true).expect("the role is there");
    manager.adopt(&mut machine, OWNER, view(7)).expect("a successor");
    for (name, spec) in [
        ("server.read", "npci>4"),
        ("server.write", "npciiiii"),
        ("server.trusted", "smii"),
        ("server.letter", "npiZ"),
    ] {
        manager.offer(Asid(7), name, parse(spec), 0x2_0000).expect("the same");
    }
    manager.prepare_successor(&mut machine, Asid(7)).expect("prepared");
    assert_eq!(register(&mut manager, &mut machine, &good), Err(Refused::Errno(errno::EBUSY)));
    manager.commit(&mut machine, Asid(7), CURRENT).expect("committed");
    manager.begin_template(Asid(7), b'Z'.into()).expect("its letter now");
    manager.fill_template(Asid(7), &[plus(77).encode()]).expect("room");
    assert_eq!(manager.commit_template(&mut machine, Asid(7)), Ok(()));
    assert_eq!(manager.begin_template(Asid(OWNER), b'Z'.into()), Err(errno::EACCES), "was its letter");
}

fn parse(text: &str) -> Spec {
    Spec::parse(text).expect("a good specification")
}

//! The portal manager over a fake machine: random requests, and what must hold after each.

mod common;

use common::*;
use pebble_abi::errno::{self, Errno};
use pebble_abi::share::{COUNTERS, LATE, RANGES, TABLES};
use pebble_abi::words::Asid;
use pebble_abi::{map, sys, thread};
use pebble_portal::Spec;
use pebble_portal_manager::frames::Current;
use pebble_portal_manager::{Goal, Machine};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Request {
    Open(usize, u16),
    Create(usize, u64, u64, u64),
    Close(usize, u64, u64),
    Remove(usize, u64, u64),
    Semaphore(usize),
    Count(usize, bool),
    Die(usize),
    Register(usize, u8),
    Impatient(u32),
}

fn request() -> impl Strategy<Value = Request> {
    let client = 0..CLIENTS.len();
    prop_oneof![
        4 => (client.clone(), 0u16..12).prop_map(|(c, i)| Request::Open(c, i)),
        4 => (client.clone(), 0u64..8, 0u64..6, any::<u64>()).prop_map(|(c, i, n, k)| Request::Create(c, i, n, k)),
        3 => (client.clone(), 20u64..60, 0u64..6).prop_map(|(c, i, n)| Request::Close(c, i, n)),
        2 => (client.clone(), 20u64..60, 0u64..6).prop_map(|(c, i, n)| Request::Remove(c, i, n)),
        2 => client.clone().prop_map(Request::Semaphore),
        1 => (client.clone(), any::<bool>()).prop_map(|(c, on)| Request::Count(c, on)),
        1 => client.clone().prop_map(Request::Die),
        1 => (client, any::<u8>()).prop_map(|(c, n)| Request::Register(c, n)),
        1 => (0u32..3).prop_map(Request::Impatient),
    ]
}

proptest! {
    #[test]
    fn tables_stay_right_and_everything_comes_back(requests in proptest::collection::vec(request(), 1..120)) {
        let (mut manager, mut machine) = system();
        let baseline = manager.stats();
        let mut next_semaphore = map::SEM_FIRST;
        for request in requests {
            match request {
                Request::Open(c, i) => { let _ = manager.open(&mut machine, CLIENTS[c].into(), i); }
                Request::Create(c, i, n, k) => { let _ = manager.create(&mut machine, SERVER.into(), CLIENTS[c].into(), i, n, k); }
                Request::Close(c, i, n) => { let _ = manager.close(&mut machine, CLIENTS[c].into(), i, n, None); }
                Request::Remove(c, i, n) => { let _ = manager.close(&mut machine, CLIENTS[c].into(), i, n, Some(SERVER.into())); }
                Request::Semaphore(c) => {
                    manager.own_semaphore(Some(CLIENTS[c].into()), next_semaphore);
                    if manager.semaphore(&mut machine, CLIENTS[c].into(), next_semaphore).is_err() {
                        manager.own_semaphore(None, next_semaphore);
                    }
                    next_semaphore = map::SEM_FIRST + (next_semaphore + 1 - map::SEM_FIRST) % 500;
                }
                Request::Count(c, on) => { let _ = manager.count(&mut machine, CLIENTS[c].into(), on); }
                Request::Die(c) => {
                    let asid = u64::from(CLIENTS[c]);
                    machine.patience = u32::MAX;
                    manager.retire(&mut machine, Asid(asid)).expect("it lives");
                    manager.reclaim(&mut machine, Asid(asid), CURRENT).expect("nobody is in it");
                    machine.domain_free(asid as u16);
                    manager.attach(&mut machine, view(asid as u16)).expect("its number is free");
                }
                Request::Register(c, n) => {
                    let spec = Spec::parse("npi").expect("a specification");
                    let _ = manager.register(&mut machine, CLIENTS[c].into(), &format!("x{n}"), spec, 0x1_0000);
                }
                Request::Impatient(n) => machine.patience = n,
            }
            check(&manager, &machine);
        }
        machine.patience = u32::MAX;
        for asid in CLIENTS {
            manager.retire(&mut machine, asid.into()).expect("it lives");
            manager.reclaim(&mut machine, asid.into(), CURRENT).expect("nobody is in it");
        }
        let after = manager.stats();
        prop_assert_eq!((after[1], after[2], after[3]), (baseline[1], 0, baseline[3]));
    }
}

#[test]
fn code_in_use_is_not_reused() {
    let (mut manager, mut machine) = system();
    let index = manager.open(&mut machine, Asid(3), 2).expect("a portal");
    let slot = manager.domains[3].slots[index as usize];
    let code = map::CODE_VA + u64::from(slot.run.at);
    // Find the return leg: its description names caller 3 and callee 2.
    let ret = (8..u64::from(slot.run.len))
        .step_by(8)
        .find(|at| machine.code_word(u64::from(slot.run.at) + at - 8) >> 16 & 0xffff_ffff == 2 << 16 | 3)
        .expect("a return leg");
    machine.enter(code, ret);
    let used = manager.stats()[1];
    manager.close(&mut machine, Asid(3), index.into(), 1, None).expect("closed");
    manager.sweep(&mut machine, CURRENT);
    assert_eq!(manager.stats()[1], used, "freed under a thread that returns through it");
    assert_eq!(manager.reclaim(&mut machine, Asid(3), CURRENT), Err(errno::EINVAL), "it lives");
    manager.retire(&mut machine, Asid(3)).expect("it lives");
    assert_eq!(manager.reclaim(&mut machine, Asid(3), CURRENT), Err(errno::EAGAIN));
    machine.leave();
    manager.reclaim(&mut machine, Asid(3), CURRENT).expect("the thread has left");
    assert!(manager.stats()[1] < used);
}

/// A program that is deep in calls through portals that it has closed makes nobody else's requests long: what
/// stays in limbo is looked through again when there is as much more.
#[test]
fn code_that_stays_in_limbo_is_not_looked_at_each_time() {
    let (mut manager, mut machine) = system();
    // Its frames are the shortest.
    let spec = Spec::parse("sm").expect("a specification");
    let own = manager.register(&mut machine, Asid(3), "own", spec, 0x1_0000).expect("an interface");
    let before = manager.stats()[1];
    // All at once: one that is opened after another was closed would be that one again.
    let open: Vec<u16> =
        (0..200).map(|_| manager.open(&mut machine, Asid(3), own).expect("a portal")).collect();
    let opened = manager.stats()[1] - before;
    let mut left = open.into_iter();
    let mut close_one = |machine: &mut Fake, manager: &mut Manager, enter: bool| {
        let index = left.next().expect("one more");
        let run = manager.domains[3].slots[index as usize].run;
        let ret = (8..u64::from(run.len))
            .step_by(8)
            .find(|at| machine.code_word(u64::from(run.at) + at - 8) >> 16 & 0xffff_ffff == 3 << 16 | 3)
            .expect("a return leg");
        if enter {
            machine.enter(map::CODE_VA + u64::from(run.at), ret);
        }
        manager.close(machine, Asid(3), index.into(), 1, None).expect("closed");
    };
    let mut deep = 0;
    while !manager.untidy() {
        close_one(&mut machine, &mut manager, true);
        deep += 1;
    }
    manager.sweep(&mut machine, CURRENT);
    assert!(manager.stats()[1] == before + opened && !manager.untidy(), "{deep} runs stay, and are no news");
    let mut shallow = 0;
    while !manager.untidy() {
        close_one(&mut machine, &mut manager, false);
        shallow += 1;
    }
    let each = opened / 200;
    manager.sweep(&mut machine, CURRENT);
    assert_eq!(manager.stats()[1], before + opened - shallow * each, "what nobody needs has gone");
    machine.leave();
    manager.sweep(&mut machine, CURRENT);
    assert_eq!(manager.stats()[1], before + opened - (shallow + deep) * each);
}

/// Tables with a portal in each 32 entries take as much memory as full ones: families have shares of it, and
/// others begin.
#[test]
fn no_family_takes_all_room_for_tables() {
    let (mut manager, mut machine) = system();
    let mut had = 0;
    let refused = (20..60).find_map(|asid| {
        manager.set_family(Asid(asid), 20).expect("a number");
        if let Err(error) = manager.attach(&mut machine, view(asid as u16)) {
            return Some(error);
        }
        let error = loop {
            if let Err(error) = manager.open(&mut machine, Asid(asid), 2) {
                break error;
            }
        };
        for index in sys::FIRST_FREE..manager.domains[asid as usize].slots.len() {
            if index % 32 != 0 {
                let _ = manager.close(&mut machine, Asid(asid), index as u64, 1, None);
            }
        }
        manager.sweep(&mut machine, CURRENT);
        had += manager.domains[asid as usize].slots.chunks();
        Some(error).filter(|error| *error != errno::EMFILE)
    });
    assert_eq!((refused, had), (Some(errno::ETABLES), TABLES.family));
    manager.set_family(Asid(60), 60).expect("a number");
    manager.attach(&mut machine, view(60)).expect("another family");
    manager.open(&mut machine, Asid(60), 2).expect("another family");
}

#[test]
fn the_thread_that_asks_counts_too() {
    let (mut manager, mut machine) = system();
    let index = manager.open(&mut machine, Asid(3), 2).expect("a portal");
    let run = manager.domains[3].slots[index as usize].run;
    let ret = (8..u64::from(run.len))
        .step_by(8)
        .find(|at| machine.code_word(u64::from(run.at) + at - 8) >> 16 & 0xffff_ffff == 2 << 16 | 3)
        .expect("a return leg");
    machine.enter(map::CODE_VA + u64::from(run.at), ret);
    let top = machine.thread_word(THREAD, thread::SAVED_TOP);
    // Its block says otherwise, as that of a running thread does.
    machine.leave();
    manager.close(&mut machine, Asid(3), index.into(), 1, None).expect("closed");
    let used = manager.stats()[1];
    manager.sweep(&mut machine, Current { tid: THREAD, top });
    assert_eq!(manager.stats()[1], used);
    manager.sweep(&mut machine, CURRENT);
    assert!(manager.stats()[1] < used);
}

#[test]
fn a_dead_servers_portals_say_so() {
    let (mut manager, mut machine) = system();
    let index = manager.create(&mut machine, SERVER.into(), Asid(4), 2, 2, 5).expect("two portals");
    manager.retire(&mut machine, SERVER.into()).expect("it lives");
    for n in [index, index + 1] {
        assert_eq!(manager.domains[4].slots[n as usize].goal, Goal::Closed(SERVER));
    }
    assert_eq!(manager.open(&mut machine, Asid(4), 2), Err(errno::ENOENT));
    assert_eq!(manager.create(&mut machine, SERVER.into(), Asid(4), 2, 1, 5), Err(errno::ESRCH));
}

#[test]
fn a_server_gives_away_only_its_own_interfaces() {
    let (mut manager, mut machine) = system();
    assert_eq!(manager.create(&mut machine, Asid(3), Asid(4), 2, 1, 0), Err(errno::EPERM));
    assert_eq!(manager.create(&mut machine, SERVER.into(), Asid(4), 4, 2, 0), Err(errno::EPERM));
    assert_eq!(manager.create(&mut machine, SERVER.into(), Asid(0), 2, 1, 0), Err(errno::ESRCH));
    let index = manager.open(&mut machine, Asid(4), 2).expect("a portal");
    assert_eq!(manager.close(&mut machine, Asid(4), index.into(), 1, Some(Asid(3))), Err(errno::EBADF));
    assert_eq!(manager.close(&mut machine, Asid(4), 3, 1, None), Err(errno::EBADF), "system portals stay");
}

#[test]
fn a_dead_semaphores_portals_are_closed_everywhere() {
    let (mut manager, mut machine) = system();
    manager.own_semaphore(Some(Asid(3)), 80);
    let own = manager.semaphore(&mut machine, Asid(3), 80).expect("P and V");
    let other = manager.semaphore(&mut machine, Asid(4), 80).expect("P and V");
    manager.close(&mut machine, Asid(3), own.into(), 1, None).expect("closed");
    assert_eq!(machine.freed, [80]);
    // Its V, too: the number may soon be that of somebody else's semaphore.
    for (asid, n) in [(4, other), (4, other + 1), (3, own + 1)] {
        assert_eq!(manager.domains[asid].slots[n as usize].goal, Goal::Closed(3));
    }
    manager.close(&mut machine, Asid(3), u64::from(own) + 1, 1, None).expect("what is left");
    check(&manager, &machine);
}

#[test]
fn portals_end_at_the_limit() {
    let (mut manager, mut machine) = system();
    let opened = (0..5000).take_while(|_| manager.open(&mut machine, Asid(3), 3).is_ok()).count();
    assert!((500..4096).contains(&opened));
    assert_eq!(manager.open(&mut machine, Asid(3), 3), Err(errno::EMFILE));
    assert!(manager.open(&mut machine, Asid(4), 3).is_ok(), "others are not hurt");
}

/// The callee that a portal's return leg names.
fn callee(machine: &Fake, run: pebble_portal_manager::Run) -> Option<u16> {
    let words = (8..u64::from(run.len)).step_by(8).map(|at| machine.code_word(u64::from(run.at) + at - 8));
    words.filter(|w| w & 0xff != 0 && w & 0xff < 64 && w >> 16 & 0xffff == 4).map(|w| (w >> 32) as u16).next()
}

/// Domain 7 offers what the server has, but for the interfaces with these names.
fn successor(manager: &mut Manager, machine: &mut Fake, without: &[&str]) -> Result<(), Errno> {
    manager.adopt(machine, SERVER.into(), view(7))?;
    for (name, spec) in [("server.read", "npci>4"), ("server.write", "npciiiii"), ("server.trusted", "smii")]
    {
        if !without.contains(&name) {
            manager.offer(Asid(7), name, Spec::parse(spec).expect("a specification"), 0x2_0000)?;
        }
    }
    manager.prepare_successor(machine, Asid(7))
}

#[test]
fn a_successor_takes_over_every_portal() {
    let (mut manager, mut machine) = system();
    let index = manager.create(&mut machine, SERVER.into(), Asid(4), 2, 2, 5).expect("two portals");
    let before = machine.tables.clone();
    let run = |m: &Manager| m.domains[4].slots[index as usize].run;
    let old = run(&manager);
    assert_eq!(callee(&machine, old), Some(SERVER));
    successor(&mut manager, &mut machine, &[]).expect("it offers everything");
    let changed =
        machine.tables.iter().filter(|(at, word)| at.0 != 7 && before.get(at) != Some(word)).count();
    assert_eq!(changed, 0, "prepared, and somebody has noticed");
    // Opened between the two.
    let late = manager.open(&mut machine, Asid(5), 3).expect("a portal");
    manager.commit(&mut machine, Asid(7), CURRENT).expect("prepared");
    assert_eq!(callee(&machine, run(&manager)), Some(7));
    assert_eq!(manager.domains[4].slots[index as usize].constant, 5);
    assert!(machine.tables[&(5, late)] > 0 && manager.interfaces[3].asid == 7);
    check(&manager, &machine);
    // The interfaces are the successor's own, and the old one's no more.
    assert!(manager.create(&mut machine, Asid(7), Asid(3), 2, 1, 1).is_ok());
    assert_eq!(manager.create(&mut machine, SERVER.into(), Asid(3), 2, 1, 1), Err(errno::EPERM));
    manager.retire(&mut machine, SERVER.into()).expect("it lives");
    assert_eq!(callee(&machine, run(&manager)), Some(7), "the old one's death is nobody's business");
}

#[test]
fn who_waits_in_a_scheduler_waits_in_its_successor() {
    let (mut manager, mut machine) = system();
    let index = manager.open(&mut machine, Asid(4), 5).expect("a portal to scheduler.yield");
    let run = manager.domains[4].slots[index as usize].run;
    let names = |machine: &Fake, at: u64| machine.code_word_at(u64::from(run.at) + at - 8);
    let ret = (8..u64::from(run.len))
        .step_by(8)
        .find(|at| names(&machine, *at) >> 16 & 0xffff_ffff == u64::from(SCHEDULER) << 16 | 4)
        .expect("a return leg");
    let before = names(&machine, ret);
    machine.enter(map::CODE_VA + u64::from(run.at), ret);
    // One after the other; the thread is never woken.
    for (old, new) in [(SCHEDULER, 7), (7, 8)] {
        manager.adopt(&mut machine, SCHEDULER.into(), view(new)).expect("the role is there");
        for (name, spec) in [("scheduler.p", "nmca"), ("scheduler.v", "nmc"), ("scheduler.yield", "nm")] {
            manager
                .offer(new.into(), name, Spec::parse(spec).expect("a specification"), 0x2_0000)
                .expect("it is its name");
        }
        manager.prepare_successor(&mut machine, new.into()).expect("it offers everything");
        manager.commit(&mut machine, new.into(), CURRENT).expect("prepared");
        assert!(!manager.busy(&machine, old.into(), CURRENT), "{old}");
        assert!(manager.busy(&machine, new.into(), CURRENT), "{new}");
        manager.retire(&mut machine, old.into()).expect("it lives");
        manager.reclaim(&mut machine, old.into(), CURRENT).expect("nobody depends on it");
    }
    // Of its code nothing else has changed, and it is there until the thread has left.
    assert_eq!(names(&machine, ret), before & !(0xffff << 32) | 8 << 32);
    let used = manager.stats()[1];
    machine.leave();
    manager.sweep(&mut machine, CURRENT);
    assert!(manager.stats()[1] < used);
    check(&manager, &machine);
}

#[test]
fn an_incomplete_successor_changes_nothing() {
    let (mut manager, mut machine) = system();
    manager.create(&mut machine, SERVER.into(), Asid(4), 2, 2, 5).expect("two portals");
    let used = manager.stats();
    let before = machine.tables.clone();
    assert_eq!(successor(&mut manager, &mut machine, &["server.write"]), Err(errno::ENOENT));
    assert_eq!(manager.commit(&mut machine, Asid(7), CURRENT), Err(errno::ESRCH), "not prepared");
    manager.abandon(&mut machine, Asid(7));
    manager.retire(&mut machine, Asid(7)).expect("it lives");
    manager.reclaim(&mut machine, Asid(7), CURRENT).expect("nobody is in it");
    assert_eq!(manager.stats(), used);
    assert!(before.iter().all(|(at, word)| machine.tables[at] == *word));
}

#[test]
fn a_kept_role_waits_for_its_successor() {
    let (mut manager, mut machine) = system();
    let index = manager.create(&mut machine, SERVER.into(), Asid(4), 2, 1, 5).expect("a portal");
    manager.keep_role(&mut machine, SERVER.into(), true).expect("it has a role");
    manager.retire(&mut machine, SERVER.into()).expect("it lives");
    manager.reclaim(&mut machine, SERVER.into(), CURRENT).expect("nobody is in it");
    let slot = manager.domains[4].slots[index as usize];
    assert_eq!(slot.goal, Goal::Interface(2), "it remembers where it led");
    assert_eq!(callee(&machine, slot.run), None);
    let spec = Spec::parse("npi").expect("a specification");
    assert_eq!(
        manager.register(&mut machine, Asid(3), "server.read", spec.clone(), 0x1_0000),
        Err(errno::EEXIST)
    );
    assert_eq!(manager.register(&mut machine, Asid(3), "server.evil", spec, 0x1_0000), Err(errno::EACCES));
    successor(&mut manager, &mut machine, &[]).expect("it offers everything");
    manager.commit(&mut machine, Asid(7), CURRENT).expect("prepared");
    assert_eq!(callee(&machine, manager.domains[4].slots[index as usize].run), Some(7));
    check(&manager, &machine);
    // It dies too, and nobody shall follow.
    manager.retire(&mut machine, Asid(7)).expect("it lives");
    manager.keep_role(&mut machine, SERVER.into(), false).expect("the role is known");
    assert_eq!(manager.domains[4].slots[index as usize].goal, Goal::Closed(7));
    let spec = Spec::parse("npi").expect("a specification");
    assert!(manager.register(&mut machine, Asid(3), "server.read", spec, 0x1_0000).is_ok());
}

#[test]
fn a_successor_imports_what_the_role_had_and_no_more() {
    let (mut manager, mut machine) = system();
    manager.open(&mut machine, SERVER.into(), 5).expect("the server imports scheduler.yield");
    manager.adopt(&mut machine, SERVER.into(), view(7)).expect("the role is there");
    assert!(manager.import(&mut machine, Asid(7), "scheduler.yield").is_ok());
    assert_eq!(manager.import(&mut machine, Asid(7), "scheduler.p"), Err(errno::EACCES));
    assert_eq!(manager.import(&mut machine, Asid(7), "nucleus.switch"), Err(errno::EACCES));
    assert_eq!(manager.import(&mut machine, Asid(3), "scheduler.yield"), Err(errno::ESRCH), "no successor");
}

/// Whoever came as a successor is a client like any other: what it holds is found when that changes.
#[test]
fn what_a_successor_holds_is_closed_when_its_target_dies() {
    let (mut manager, mut machine) = system();
    manager.open(&mut machine, SERVER.into(), 5).expect("the server imports scheduler.yield");
    let new = 200;
    manager.adopt(&mut machine, SERVER.into(), view(new)).expect("the role is there");
    let index = manager.import(&mut machine, new.into(), "scheduler.yield").expect("the role has it");
    check(&manager, &machine);
    manager.retire(&mut machine, SCHEDULER.into()).expect("it lives");
    let slot = manager.domains[usize::from(new)].slots[usize::from(index)];
    assert_eq!(slot.goal, Goal::Closed(SCHEDULER));
    check(&manager, &machine);
}

#[test]
fn a_family_leaves_counters_to_others() {
    let (mut manager, mut machine) = system();
    for (family, asid) in [3, 4, 5].into_iter().enumerate() {
        manager.set_family(Asid(asid), family as u64 + 1).expect("it lives");
        for _ in 0..COUNTERS.family + 40 {
            manager.open(&mut machine, Asid(asid), 2).expect("a portal");
        }
    }
    assert_eq!(
        manager.count(&mut machine, Asid(3), true),
        Err(errno::ECOUNTERS),
        "those of its birth are counted, too"
    );
    let counted = |manager: &Manager, asid: usize| {
        manager.domains[asid].slots.used().filter(|(_, slot)| slot.counter.is_some()).count()
    };
    assert_eq!(counted(&manager, 3), COUNTERS.family);
    // A portal without a counter is a portal.
    manager.open(&mut machine, Asid(3), 2).expect("a portal");
    assert_eq!(manager.count(&mut machine, Asid(4), true), Err(errno::ECOUNTERS));
    assert_eq!(manager.count(&mut machine, Asid(5), true), Err(errno::ECOUNTERS), "what is kept for others");
    assert_eq!(counted(&manager, 4), COUNTERS.family);
    let left =
        COUNTERS.least.max(COUNTERS.all - COUNTERS.reserve - LATE * COUNTERS.least - 2 * COUNTERS.family);
    assert_eq!(counted(&manager, 5), left);
    manager.set_family(Asid(5), 0).expect("it lives");
    assert_eq!(manager.count(&mut machine, Asid(5), true), Err(errno::ECOUNTERS), "there are no more");
    assert_eq!(counted(&manager, 5), COUNTERS.all - 2 * COUNTERS.family);
    manager.count(&mut machine, Asid(3), false).expect("without");
    manager.count(&mut machine, Asid(4), true).expect_err("its share is the same");
    manager.count(&mut machine, Asid(5), true).expect("those that are back");
    check(&manager, &machine);
}

/// Stacks for handlers that the VM manager asks come when it says that they are too few.
#[test]
fn the_vm_manager_gets_stacks_for_handlers() {
    let (mut manager, mut machine) = system();
    let (npiii, program) = (Spec::parse("npiii").expect("a specification"), 8);
    manager.attach(&mut machine, view(program)).expect("a program");
    manager.register(&mut machine, SERVER.into(), "vm.provide", npiii.clone(), 0x1_0000).expect("a name");
    let offered = manager.register(&mut machine, program.into(), "handler", npiii, 0x1_0000).expect("a name");
    let handler = manager.open(&mut machine, Asid(3), offered).expect("a portal").into();
    let before = manager.domains[usize::from(SERVER)].stacks;
    let told = core::cell::RefCell::new(Vec::new());
    let few = |_: &mut Fake, who: u64| {
        told.borrow_mut().push((who as u16, (who >> 32) as u16));
        if told.borrow().len() < 3 { Err(errno::ESTACKS) } else { Ok(()) }
    };
    manager.handle_range(&mut machine, (3, 3), 0x1_0000, handler, few).expect("a handler");
    let stacks = [0, 2, 4].map(|more| (program, before + more));
    assert_eq!(*told.borrow(), stacks);
    assert_eq!(manager.domains[usize::from(SERVER)].stacks, before + 4);
    // There is an end to ranges, and to stacks.
    manager.set_family(Asid(4), 4).expect("it lives");
    let others = manager.open(&mut machine, Asid(4), offered).expect("a portal").into();
    for n in 0..RANGES.family as u64 {
        manager.handle_range(&mut machine, (4, 4), n << 16, others, |_, _| Ok(())).expect("a range");
    }
    let further = manager.handle_range(&mut machine, (4, 4), 1 << 32, others, |_, _| Ok(()));
    assert_eq!(further, Err(errno::EHANDLERS));
    let never = |_: &mut Fake, _| Err(errno::ESTACKS);
    assert_eq!(manager.handle_range(&mut machine, (3, 3), 0x2_0000, handler, never), Err(errno::EHANDLERS));
    check(&manager, &machine);
}

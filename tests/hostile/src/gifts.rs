//! Servers that put portals into the tables of whoever calls them.
//!
//! `hostile gifts [ROUNDS]` starts givers (`hostile give NAME`) and is given portals until there is an end to
//! that; so are clients beside it (`hostile gifted NAME`). All go on: they open portals of their own, close
//! what they were given, and are given some by others.

use crate::judge::Judge;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use pebble::abi::{errno, status};
use pebble::api::{self, Errno};
use pebble::portal::{Broken, call};
use pebble::process::Child;

/// More than any table has place for.
const MANY: usize = 2000;
/// Of one giver.
const MOST: usize = 64;

pub fn all(judge: &mut Judge, rounds: u32) {
    judge.steadily(rounds, |judge| {
        giver(judge, |judge, name, _| {
            let clients = [(); 3].map(|()| Child::run("/bin/hostile", &["hostile", "gifted", name]));
            let seen = [given(name), clients_end(clients)];
            judge.check("given too much", seen == [Ok(()), Ok(())], || format!("{seen:?}"));
        });
        giver(judge, |judge, first, _| {
            giver(judge, |judge, second, child| others(judge, first, second, child))
        });
    });
}

fn clients_end(clients: [Result<Child, Errno>; 3]) -> Result<(), String> {
    let ended = clients.map(|client| client.and_then(|c| c.wait()));
    if ended == [Ok(0); 3] { Ok(()) } else { Err(format!("clients end with {ended:?}")) }
}

/// Runs `work` with the name of a giver.
fn giver(judge: &mut Judge, work: impl FnOnce(&mut Judge, &str, Child)) {
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    let name = format!("give{}.{}", api::get_asid(), SERIAL.fetch_add(1, Relaxed));
    let Ok(child) = Child::run("/bin/hostile", &["hostile", "give", &name]) else {
        return judge.check("a giver", false, || "it did not start".into());
    };
    let ready = judge.await_portal(&name);
    judge.check("a giver", ready.is_some(), || "it did not come up".into());
    work(judge, &name, child);
    let _ = ready.map(|index| api::portal_close(index, 1));
    let _ = child.kill();
    let _ = child.wait();
}

/// Calls an interface of a giver once.
fn ask(name: &str, what: &str, word: u64) -> Result<i64, Errno> {
    let index = api::portal_open(&format!("{name}{what}"))?;
    let answer = call(index, [word]);
    let _ = api::portal_close(index, 1);
    answer.map_err(Broken::errno)
}

/// All that one gives, and why no more.
fn gifts(name: &str) -> (Vec<usize>, i64) {
    let Ok(gives) = api::portal_open(&format!("{name}.one")) else { return (Vec::new(), 0) };
    let (mut taken, mut last) = (Vec::new(), 0);
    while last >= 0 && taken.len() < MANY {
        last = call(gives, []).unwrap_or(-errno::EIO);
        taken.extend(usize::try_from(last).ok());
    }
    let _ = api::portal_close(gives, 1);
    (taken, last)
}

/// A client whose table a stranger fills opens as much as before, and has done with what it does not want.
fn given(name: &str) -> Result<(), String> {
    let (taken, last) = gifts(name);
    let own: Vec<_> = (0..100).map(|_| api::portal_open("vm.stats")).collect();
    let opened = own.iter().flatten().count();
    for index in own.into_iter().flatten() {
        let _ = api::portal_close(index, 1);
    }
    let works = taken.last().map(|index| call(*index, []));
    let closed = taken.iter().filter(|index| api::portal_close(**index, 1).is_ok()).count();
    let good = last == -errno::EGIFTS && opened == 100 && works == Some(Ok(5)) && closed == MOST;
    if good && taken.len() == MOST {
        return Ok(());
    }
    let count = taken.len();
    Err(format!("{count} given, then {last}; {opened} opened; a gift answers {works:?}; {closed} closed"))
}

/// One who has given all that it may keeps no other from giving; nobody takes back what is not its gift; who
/// dies leaves closed doors.
fn others(judge: &mut Judge, first: &str, second: &str, child: Child) {
    let (taken, _) = gifts(first);
    let gift = ask(second, ".one", 0);
    let index = gift.unwrap_or(0);
    let answer = call(index as usize, []);
    judge.check("another's gift", answer == Ok(5), || format!("{gift:?}, {answer:?}"));
    let own = api::portal_open(second).unwrap_or(0);
    let foreign = taken.first().map_or(0, |index| *index as u64);
    for (what, index, wanted) in [
        ("what was opened", own as u64, -errno::EBADF),
        ("another's gift", foreign, -errno::EBADF),
        ("its gift", index as u64, 0),
        ("its gift, again", index as u64, -errno::EBADF),
    ] {
        let taken = ask(second, ".back", index);
        judge.check("taking back", taken == Ok(wanted), || format!("{what}: {taken:?}"));
    }
    let answer = call(own, []);
    judge.check("what was opened stays", answer == Ok(5), || format!("{answer:?}"));
    let _ = api::portal_close(own, 1);
    let left = ask(second, ".one", 0).unwrap_or(0) as usize;
    let _ = child.kill();
    let _ = child.wait();
    let answer = call(left, []);
    let closed = matches!(answer, Err(broken) if status::code(broken.0) == status::CLOSED);
    judge.check("a dead one's gift", closed && api::portal_close(left, 1).is_ok(), || format!("{answer:?}"));
    let kept = taken.iter().filter(|index| api::portal_close(**index, 1).is_ok()).count();
    judge.check("dropping", kept == taken.len(), || format!("{kept} of {}", taken.len()));
}

// --- the others --------------------------------------------------------------------------------

static OWN: AtomicU64 = AtomicU64::new(0);

extern "C" fn five() -> i64 {
    5
}

extern "C" fn one() -> i64 {
    api::portal_create(OWN.load(Relaxed), 1, 0).map_or_else(|error| -Errno::from(error), |index| index as i64)
}

extern "C" fn back(index: u64) -> i64 {
    api::portal_remove(index as usize, 1).map_or_else(|error| -error, |_| 0)
}

pub fn give(name: &str) -> i64 {
    let made = || -> Result<(), Errno> {
        api::portal_register(&format!("{name}.one"), "np", one as extern "C" fn() -> i64 as usize as u64, 0)?;
        let entry = back as extern "C" fn(u64) -> i64 as usize as u64;
        api::portal_register(&format!("{name}.back"), "npi", entry, 0)?;
        let own = api::portal_register(name, "np", five as extern "C" fn() -> i64 as usize as u64, 0)?;
        OWN.store(own.into(), Relaxed);
        Ok(())
    };
    if made().is_err() {
        return 98;
    }
    loop {
        let _ = api::hrsleep(u64::MAX >> 1);
    }
}

/// A client.
pub fn take(name: &str) -> i64 {
    match given(name) {
        Ok(()) => 0,
        Err(why) => {
            pebble::eprintln!("{why}");
            1
        }
    }
}

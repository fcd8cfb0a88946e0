//! Exporters that decide who may open them, and policies that do not answer.
//!
//! `hostile guards [ROUNDS]` starts, for each kind, an exporter (`hostile keeper WAY NAME WORD`) and often a
//! policy component, and tries to open what they guard, itself and through a stranger (`hostile open NAME`),
//! who ends with the error number.

use crate::judge::Judge;
use alloc::format;
use alloc::string::String;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use pebble::abi::errno;
use pebble::api::{self, Errno, Guard};
use pebble::portal::{MILLISECOND, call, time};
use pebble::process::Child;

pub fn all(judge: &mut Judge, rounds: u32) {
    let round = |judge: &mut Judge| {
        for (way, mine, strangers) in [
            ("names", Ok(5), None),
            ("list", Err(errno::EACCES), Some(errno::EACCES)),
            ("admit", Ok(5), Some(errno::EACCES)),
            ("ask", Ok(5), Some(errno::EACCES)),
            ("change", Ok(5), None),
            ("grabs", Ok(5), None),
        ] {
            let own = format!("{}", api::get_asid());
            exporter(judge, way, &own, |judge, name| judge_opens(judge, way, name, mine, strangers));
        }
        with_policy(judge);
        foreign(judge);
    };
    // One lost with each domain would be dozens.
    judge.steadily(rounds, round);
}

fn fresh(what: &str) -> String {
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    format!("{what}{}.{}", api::get_asid(), SERIAL.fetch_add(1, Relaxed))
}

/// Runs `work` while there is an exporter; its name is that of an interface that says when it is ready, with
/// `.x` of the guarded one.
fn exporter(judge: &mut Judge, way: &str, word: &str, work: impl FnOnce(&mut Judge, &str)) {
    let name = fresh("g");
    let Ok(child) = Child::run("/bin/hostile", &["hostile", "keeper", way, &name, word]) else {
        return judge.check(way, false, || "the exporter did not start".into());
    };
    let ready = judge.await_portal(&name);
    judge.check(way, ready.is_some(), || "the exporter did not come up".into());
    work(judge, &format!("{name}.x"));
    let _ = ready.map(|index| api::portal_close(index, 1));
    let _ = child.kill();
    let _ = child.wait();
}

fn opens(name: &str) -> Result<i64, Errno> {
    let index = api::portal_open(name)?;
    let answer = call(index, [0; 5]).unwrap_or(-1);
    let _ = api::portal_close(index, 1);
    Ok(answer)
}

/// A family whose policies were slow is not asked for a while: who comes then tries again.
fn rested<T: PartialEq>(busy: T, mut opens: impl FnMut() -> T) -> T {
    (0..5).map(|_| opens()).find(|opened| *opened != busy).unwrap_or(busy)
}

fn judge_opens(
    judge: &mut Judge,
    what: &str,
    name: &str,
    mine: Result<i64, Errno>,
    strangers: Option<Errno>,
) {
    let opened = rested(Err(errno::EBUSY), || opens(name));
    judge.check(what, opened == mine, || format!("opening: {opened:?}"));
    let run = || Child::run("/bin/hostile", &["hostile", "open", name]).and_then(|c| c.wait());
    let stranger = rested(Ok(errno::EBUSY.number()), run);
    judge.check(what, stranger == Ok(strangers.map_or(0, Errno::number)), || {
        format!("the stranger: {stranger:?}")
    });
}

/// Another component decides; then it hangs, each in its own way; then it is dead.
fn with_policy(judge: &mut Judge) {
    let policy = fresh("policy");
    let own = format!("{}", api::get_asid());
    let Ok(child) = Child::run("/bin/hostile", &["hostile", "policy", &policy, &own]) else { return };
    let ready = judge.await_portal(&policy);
    exporter(judge, "policy", &policy, |judge, name| {
        judge_opens(judge, "a policy", name, Ok(5), Some(errno::EACCES));
        // What is open stays.
        let open = api::portal_open(name);
        let _ = child.kill();
        let _ = child.wait();
        let answer = open.map(|index| (call(index, [0; 5]), api::portal_close(index, 1)));
        judge.check("what is open stays", matches!(answer, Ok((Ok(5), _))), || format!("{answer:?}"));
        judge_opens(judge, "a dead policy", name, Err(errno::EACCES), Some(errno::EACCES));
    });
    let _ = ready.map(|index| api::portal_close(index, 1));
    for kind in ["loop", "sleep", "wait", "yield-loop", "null", "thread-exit", "thread-end"] {
        let policy = fresh("policy");
        let Ok(child) = Child::run("/bin/hostile", &["hostile", "serve", kind, &policy]) else { return };
        let ready = judge.await_portal(&policy);
        exporter(judge, "policy", &policy, |judge, name| {
            let before = time();
            let opened = opens(name);
            let took = time() - before;
            judge.check(kind, opened == Err(errno::EACCES), || format!("opening: {opened:?}"));
            judge.check(kind, took < 1000 * MILLISECOND, || format!("it took {took} ticks"));
            crowd(judge, name);
        });
        let _ = ready.map(|index| api::portal_close(index, 1));
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Many open what is guarded by somebody who does not answer; the portal manager serves others meanwhile.
fn crowd(judge: &mut Judge, name: &str) {
    let crowd = [(); 3].map(|()| Child::run("/bin/hostile", &["hostile", "open", name]));
    for _ in 0..20 {
        let before = time();
        let opened = api::portal_open("clock.nanoseconds").map(|index| api::portal_close(index, 1));
        let took = time() - before;
        judge.check("others open", opened.is_ok() && took < 500 * MILLISECOND, || {
            format!("{opened:?}, {took} ticks")
        });
    }
    for child in crowd {
        let ended = child.and_then(|c| c.wait());
        // The family of whoever does not answer is left alone for a while: not all are patient enough to be
        // refused by the policy.
        let refused = ended.is_ok_and(|status| [errno::EACCES, errno::EBUSY].contains(&Errno::new(status)));
        judge.check("all are refused", refused, || format!("{ended:?}"));
    }
}

/// Nobody guards what is another's, or by what he cannot call.
fn foreign(judge: &mut Judge) {
    let name = format!("own{}", api::get_asid());
    let entry = five as extern "C" fn() -> i64 as usize as u64;
    // The same one in each round: it stays.
    let own = api::own_interface(&name).map(|own| own as u16);
    let Ok(own) = own.or_else(|_| api::portal_register(&name, "np", entry, 0)) else {
        return judge.check("an interface", false, || "not registered".into());
    };
    for (interface, guard, error) in [
        (0, Guard::List, errno::EPERM),
        (own + 1, Guard::List, errno::EPERM),
        (u16::MAX, Guard::List, errno::EPERM),
        (own, Guard::Admit(api::get_asid()), errno::EINVAL),
        (own, Guard::Ask(usize::MAX), errno::EBADF),
        (own, Guard::Ask(pebble::abi::sys::SYS_GET_ASID), errno::EBADF),
        (own, Guard::Ask(pebble::abi::sys::SYS_YIELD), errno::EINVAL),
        (own, Guard::Ask(pebble::abi::sys::SYS_FILE_OPEN), errno::EINVAL),
        // It would do that for the portal manager.
        (own, Guard::Ask(pebble::abi::sys::SYS_EXIT), errno::EINVAL),
    ] {
        let answer = api::portal_guard(interface, guard);
        judge.check("no guard", answer == Err(error), || format!("{interface} {guard:?}: {answer:?}"));
    }
    let _ = api::portal_guard(own, Guard::List);
    let opened = opens(&name);
    judge.check("its own", opened == Ok(5), || format!("{opened:?}"));
    let _ = api::portal_guard(own, Guard::Names);
}

// --- the others --------------------------------------------------------------------------------

static FRIEND: AtomicU64 = AtomicU64::new(0);

extern "C" fn five() -> i64 {
    5
}

extern "C" fn decides(asid: u64, _: u64) -> i64 {
    i64::from(asid == FRIEND.load(Relaxed))
}

/// Whether whoever asks, the portal manager, gets and loses nothing by it.
extern "C" fn grabs(_: u64, _: u64) -> i64 {
    let own = GIFT.load(Relaxed);
    let given = (0..8).all(|_| api::portal_create(own, 1, 0) == Err(errno::EPERM.into()));
    let taken = (0..256).all(|index| api::portal_remove(index, 1) == Err(errno::EPERM));
    i64::from(given && taken)
}

static GIFT: AtomicU64 = AtomicU64::new(0);

type Policy = extern "C" fn(u64, u64) -> i64;

fn forever() -> i64 {
    loop {
        let _ = api::hrsleep(u64::MAX >> 1);
    }
}

pub fn keep(way: &str, name: &str, word: &str) -> i64 {
    let friend = word.parse().unwrap_or(0);
    FRIEND.store(friend, Relaxed);
    let entry = five as extern "C" fn() -> i64 as usize as u64;
    let made = || -> Result<u64, Errno> {
        let own = api::portal_register(&format!("{name}.x"), "np", entry, 0)?;
        match way {
            "names" => api::portal_guard(own, Guard::Names),
            "list" => api::portal_guard(own, Guard::List),
            "admit" => api::portal_guard(own, Guard::List)
                .and_then(|_| api::portal_guard(own, Guard::Admit(friend as u16))),
            "change" => {
                api::portal_guard(own, Guard::List)?;
                api::portal_guard(own, Guard::Names)
            }
            "ask" => {
                let policy = format!("{name}.p");
                api::portal_register(&policy, "npii", decides as Policy as usize as u64, 0)?;
                api::portal_guard(own, Guard::Ask(api::portal_open(&policy)?))
            }
            "grabs" => {
                GIFT.store(own.into(), Relaxed);
                let policy = format!("{name}.p");
                api::portal_register(&policy, "npii", grabs as Policy as usize as u64, 0)?;
                api::portal_guard(own, Guard::Ask(api::portal_open(&policy)?))
            }
            _ => api::portal_guard(own, Guard::Ask(api::portal_open(word)?)),
        }?;
        Ok(api::portal_register(name, "np", entry, 0)?.into())
    };
    if made().is_err() { 98 } else { forever() }
}

pub fn decide(name: &str, friend: &str) -> i64 {
    FRIEND.store(friend.parse().unwrap_or(0), Relaxed);
    let made = api::portal_register(name, "npii", decides as Policy as usize as u64, 0);
    if made.is_err() { 98 } else { forever() }
}

/// Ends with the error number.
pub fn open(name: &str) -> i64 {
    opens(name).map_or_else(Errno::number, |answer| if answer == 5 { 0 } else { 99 })
}

//! A name that is open to those who hold a capability, and what they do with it.
//!
//! `hostile secrets` offers `secret.word`, which the system's rules open by capability, with itself as first
//! holder; it passes one to a stranger (`stranger wait NAME`), revokes it, and looks whether the dead leave
//! anything behind.

use crate::judge::Judge;
use alloc::format;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use pebble::abi::link::pack;
use pebble::abi::{errno, status};
use pebble::api::{self, Errno};
use pebble::portal::{call, call_wide};
use pebble::process::Child;

const SECRET: &str = "secret.word";

extern "C" fn word() -> i64 {
    77
}

/// What opening it answers: the word, or an error.
extern "C" fn try_it() -> i64 {
    match api::portal_open(SECRET) {
        Ok(index) => {
            let answer = call(index, [0; 5]).unwrap_or(-errno::EIO);
            let _ = api::portal_close(index, 1);
            answer
        }
        Err(error) => -error,
    }
}

/// A first capability for it.
extern "C" fn ask() -> i64 {
    let answer = || -> Result<i64, Errno> {
        let index = api::portal_open("name.capability")?;
        let answer =
            pack::<3>(SECRET).map_or(-errno::EINVAL, |name| call(index, name).unwrap_or(-errno::EIO));
        let _ = api::portal_close(index, 1);
        Ok(answer)
    };
    answer().unwrap_or_else(|error| -error)
}

pub fn all(judge: &mut Judge, rounds: u32) {
    let made = || -> Result<[usize; 2], Errno> {
        api::portal_register(SECRET, "np", word as extern "C" fn() -> i64 as usize as u64, 0)?;
        Ok([api::portal_open("cap.count")?, api::portal_open("cap.revoke")?])
    };
    let Ok([count, revoke]) = made() else {
        return judge.check("a secret", false, || "not offered, or there are no capabilities".into());
    };
    judge.check("without one", try_it() == -errno::EACCES, || format!("{}", try_it()));
    let own = ask();
    judge.check("the first holder", own > 0 && ask() == -errno::EEXIST, || format!("{own}"));
    judge.check("the first holder opens", try_it() == 77, || format!("{}", try_it()));
    let used = || call_wide(count, [0; 5]).map_or(0, |(_, [used, ..])| used);
    // Under a tool one node more is in use from the first stranger on, however many come.
    stranger(judge, own, revoke);
    let before = used();
    judge.steadily(rounds, |judge| stranger(judge, own, revoke));
    judge.check("the dead hold nothing", used() == before, || format!("{before} nodes, then {}", used()));
}

fn stranger(judge: &mut Judge, own: i64, revoke: usize) {
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    let name = format!("s{}.{}", api::get_asid(), SERIAL.fetch_add(1, Relaxed));
    let Ok(child) = Child::run("/bin/stranger", &["stranger", "wait", &name]) else {
        return judge.check("a stranger", false, || "did not start".into());
    };
    let portals =
        ["", ".try", ".ask"].map(|end| judge.await_given(&format!("{name}{end}"), "k").unwrap_or(0));
    let [take, tries, asks] = portals;
    let says = |index| call(index, [0; 5]).unwrap_or(-999);
    judge.check("a stranger", says(tries) == -errno::EACCES, || format!("without: {}", says(tries)));
    judge.check("a stranger", says(asks) == -errno::EACCES, || format!("asks: {}", says(asks)));
    let forged = call(take, [own as u64 + 1]);
    let refused = matches!(forged, Err(broken) if status::code(broken.0) == status::CAPABILITY);
    judge.check("a forged one", refused, || format!("{forged:?}"));
    let taken = call(take, [own as u64]);
    judge.check("passed on", matches!(taken, Ok(1..)), || format!("{taken:?}"));
    judge.check("with one", says(tries) == 77, || format!("{}", says(tries)));
    let revoked = call(revoke, [own as u64]);
    judge.check("revoked", revoked == Ok(0) && says(tries) == -errno::EACCES, || {
        format!("{revoked:?}, {}", says(tries))
    });
    // It dies with one.
    let again = call(take, [own as u64]);
    judge.check("once more", again.is_ok() && says(tries) == 77, || format!("{again:?}"));
    let _ = child.kill();
    let _ = child.wait();
    for index in portals {
        let _ = api::portal_close(index, 1);
    }
}

/// What arrives is this domain's name for it.
extern "C" fn take(name: u64) -> i64 {
    name as i64
}

pub fn wait(name: &str) -> i64 {
    let entries: [(&str, &str, u64); 3] = [
        (".try", "np", try_it as extern "C" fn() -> i64 as usize as u64),
        (".ask", "np", ask as extern "C" fn() -> i64 as usize as u64),
        ("", "npk", take as extern "C" fn(u64) -> i64 as usize as u64),
    ];
    for (end, spec, entry) in entries {
        if api::portal_register(&format!("{name}{end}"), spec, entry, 0).is_err() {
            return 98;
        }
    }
    loop {
        let _ = api::hrsleep(u64::MAX >> 1);
    }
}

//! Argument letters that components register: the rate limiter's `T`, and the rogue's `Z`.
//!
//! `hostile templates [ROUNDS]` has the rogue (`rogue.rs`) register good templates and bad ones, begin and
//! not finish, and die; and spends tokens until there are none, itself and by a stranger (`hostile token NAME
//! CALLS`), who ends with the number of calls that went through.

use crate::judge::Judge;
use alloc::format;
use alloc::string::String;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use pebble::abi::template::{Operation, Register, TemplateError, TemplateErrorKind};
use pebble::abi::{errno, map, status};
use pebble::api::{self, Errno};
use pebble::attack;
use pebble::portal::{Broken, MILLISECOND, call, time};
use pebble::process::Child;
use pebble::template::{self, Refused};

/// Calls that have arrived.
static CALLS: AtomicU64 = AtomicU64::new(0);

extern "C" fn same(word: u64) -> i64 {
    CALLS.fetch_add(1, Relaxed);
    word as i64
}

fn offer(name: &str, spec: &str) -> Result<u16, Errno> {
    let entry = same as extern "C" fn(u64) -> i64 as usize as u64;
    api::own_interface(name).map(|n| n as u16).or_else(|_| Ok(api::portal_register(name, spec, entry, 0)?))
}

fn once(name: &str, word: u64) -> Result<i64, Broken> {
    let index = api::portal_open(name).map_err(|_| Broken(status::CLOSED))?;
    let answer = call(index, [word]);
    let _ = api::portal_close(index, 1);
    answer
}

/// What has died comes back.
fn ask(name: &str, word: u64) -> Result<i64, Broken> {
    for _ in 0..1000 {
        match once(name, word) {
            Err(Broken(s)) if [status::DEAD, status::CLOSED].contains(&status::code(s)) => {
                let _ = api::hrsleep(time() + MILLISECOND);
            }
            answer => return answer,
        }
    }
    Err(Broken(u64::MAX))
}

/// A call in which the rogue must die.
fn fells(judge: &mut Judge, name: &str, word: u64) {
    let alive = ask("rogue.letter", b'k'.into());
    let answer = once(name, word).map_err(|Broken(s)| status::code(s));
    judge.check(name, alive == Ok(-errno::EACCES) && answer == Err(status::DEAD), || {
        format!("{word}: {alive:?}, {answer:?}")
    });
}

pub fn all(judge: &mut Judge, rounds: u32) {
    let own = |what: &str| format!("h{}.{what}", api::get_asid());
    let (plain, letters, tokens) = (own("plain"), own("letter"), own("token"));
    let made = [(&plain, "npY"), (&letters, "npZ"), (&tokens, "npT")].map(|(name, spec)| offer(name, spec));
    judge.check("interfaces", made.iter().all(Result::is_ok), || format!("{made:?}"));
    let unregistered = api::portal_open(&plain);
    judge.check("a letter that nobody has", unregistered == Err(errno::ENOPROTOOPT), || {
        format!("{unregistered:?}")
    });
    let early = api::portal_open(&letters);
    judge.check("a letter not registered yet", early == Err(errno::ENOPROTOOPT), || format!("{early:?}"));
    strangers(judge);
    judge.check("the first code", ask("rogue.offer", 0) == Ok(0), String::new);
    let Ok(open) = api::portal_open(&letters) else {
        return judge.check("a portal with the letter", false, || "not opened".into());
    };
    let Ok(limited) = api::portal_open(&tokens) else {
        return judge.check("a portal with a token", false, || "not opened".into());
    };
    // Supervisor and loader keep what they need to restart once.
    judge.steadily(rounds, |judge| {
        good(judge, open);
        bad(judge, open);
        unfinished(judge, open);
        deaths(judge, open, &letters);
        secret(judge);
        buckets(judge, limited, &tokens);
    });
    for index in [open, limited] {
        let _ = api::portal_close(index, 1);
    }
}

/// Programs register nothing, and no component another's letter.
fn strangers(judge: &mut Judge) {
    for letter in [b'T', b'Z', b'Q', b'k', b'w', 0] {
        let own = template::register(
            letter,
            &[Operation::AddNumber { to: Register::Word, a: Register::Word, number: 1 }],
        );
        judge.check("a program", own == Err(Refused::Errno(errno::EACCES)), || format!("{letter}: {own:?}"));
        if letter != b'Z' {
            let rogue = ask("rogue.letter", letter.into());
            judge.check("another's letter", rogue == Ok(-errno::EACCES), || format!("{letter}: {rogue:?}"));
        }
    }
}

/// What is open has the new code when the registration is done.
fn good(judge: &mut Judge, open: usize) {
    let asid = u64::from(api::get_asid());
    let refused = Err(Broken(status::letter(b'Z') | asid << 16));
    let _ = ask("rogue.note", 1000);
    for (n, word, wanted) in
        [(0, 5, Ok(6)), (1, 5, Ok(7)), (2, 5, Ok(1005)), (3, 5, Ok(8)), (3, 0, refused), (0, 5, Ok(6))]
    {
        let offered = ask("rogue.offer", n);
        let before = CALLS.load(Relaxed);
        let answer = call(open, [word]);
        let arrived = CALLS.load(Relaxed) - before;
        judge.check("a good template", offered == Ok(0) && answer == wanted, || {
            format!("{n}: {offered:?}, {answer:?}")
        });
        judge.check("what is refused", arrived == u64::from(wanted.is_ok()), || format!("{arrived} arrived"));
    }
}

/// Each mistake is named, with its place, and nothing changes.
fn bad(judge: &mut Judge, open: usize) {
    use TemplateErrorKind::{Access, Length, Skip, Written};
    for (n, at, kind) in [
        (10, 0, Access),
        (11, 2, Access),
        (12, 0, Access),
        (13, 1, Access),
        (14, 0, Access),
        (20, 1, Skip),
        (21, 0, Skip),
        (30, 0, Written(Register::Base)),
        (31, 0, Written(Register::Zero)),
        (32, 0, TemplateErrorKind::Operation),
        (33, 0, TemplateErrorKind::Operation),
        (34, 0, TemplateErrorKind::Operation),
        (35, 0, TemplateErrorKind::Operation),
        (36, 0, TemplateErrorKind::Operation),
        (37, 0, TemplateErrorKind::Operation),
        (38, 0, TemplateErrorKind::Operation),
        (39, 0, TemplateErrorKind::Operation),
        (40, 0, Length),
        (41, 32, Length),
        (42, 32, Length),
    ] {
        let answer = ask("rogue.offer", n);
        let told = answer.ok().and_then(|word| TemplateError::from_word((-word >> 16) as u64));
        judge.check("a bad template", told == Some(TemplateError { at, kind }), || {
            format!("{n}: {answer:?}, {told:?}")
        });
        let now = call(open, [5]);
        judge.check("a bad template changes nothing", now == Ok(6), || format!("{n}: {now:?}"));
    }
}

/// A registration that is never finished, or finished by the next instance.
fn unfinished(judge: &mut Judge, open: usize) {
    let none = ask("rogue.commit", 0);
    judge.check("nothing begun", none == Ok(-errno::EINVAL), || format!("{none:?}"));
    let begun = ask("rogue.begin", 0);
    let now = call(open, [5]);
    judge.check("begun only", begun == Ok(0) && now == Ok(6), || format!("{begun:?}, {now:?}"));
    fells(judge, "rogue.fall", 0);
    let rest = ask("rogue.commit", 0);
    judge.check("a draft ends with its domain", rest == Ok(-errno::EINVAL), || format!("{rest:?}"));
    let now = call(open, [5]);
    judge.check("and changes nothing", now == Ok(6), || format!("{now:?}"));
}

/// Portals with the letter go on, and so does the private data.
fn deaths(judge: &mut Judge, open: usize, name: &str) {
    let _ = ask("rogue.note", 70);
    let offered = ask("rogue.offer", 2);
    fells(judge, "rogue.fall", 0);
    let now = call(open, [5]);
    judge.check("portals go on", offered == Ok(0) && now == Ok(75), || format!("{offered:?}, {now:?}"));
    let opened = api::portal_open(name);
    let fresh = opened.map(|index| (call(index, [6]), api::portal_close(index, 1)));
    judge.check("others are opened", matches!(fresh, Ok((Ok(76), _))), || format!("{fresh:?}"));
    let _ = ask("rogue.note", 80);
    let now = call(open, [5]);
    judge.check("the next has the data", now == Ok(85), || format!("{now:?}"));
    let offered = ask("rogue.offer", 0);
    let now = call(open, [5]);
    judge.check("and the letter", offered == Ok(0) && now == Ok(6), || format!("{offered:?}, {now:?}"));
}

/// Private data is read by its component and by portal code alone.
fn secret(judge: &mut Judge) {
    for which in 0..3 {
        fells(judge, "rogue.peek", which);
    }
    for half in ["lower", "upper"] {
        let ended = Child::run("/bin/hostile", &["hostile", "peek", half]).and_then(|c| c.wait());
        judge.check("a program", matches!(ended, Ok(128..)), || format!("{ended:?}"));
    }
}

/// So many calls go through as there are tokens, each domain's own; then they come back.
fn buckets(judge: &mut Judge, limited: usize, name: &str) {
    let Ok(set) = api::portal_open("rate.set") else {
        return judge.check("rate.set", false, || "not opened".into());
    };
    let asid = u64::from(api::get_asid());
    let _ = call(set, [1000, 1000]);
    await_spent(judge, 0);
    judge.check("a limit", call(set, [5, 0]) == Ok(0), String::new);
    for n in 0..5 {
        let answer = call(limited, [n + 40]);
        judge.check("a token", answer == Ok(n as i64 + 40), || format!("call {n}: {answer:?}"));
    }
    let before = CALLS.load(Relaxed);
    let answer = call(limited, [40]);
    let refused = answer == Err(Broken(status::letter(b'T') | asid << 16));
    judge.check("no token", refused && CALLS.load(Relaxed) == before, || format!("{answer:?}"));
    await_spent(judge, 5);
    let stranger = Child::run("/bin/hostile", &["hostile", "token", name, "9"]).and_then(|c| c.wait());
    // Its number may have been another's before.
    judge.check("a stranger's own", matches!(stranger, Ok(1..=5)), || format!("{stranger:?}"));
    judge.check("a period's", call(set, [5, 2]) == Ok(0), String::new);
    await_spent(judge, 0);
    let answer = call(limited, [1]);
    judge.check("a token that came back", answer == Ok(1), || format!("{answer:?}"));
    let _ = call(set, [1000, 1000]);
    let _ = api::portal_close(set, 1);
}

fn await_spent(judge: &mut Judge, wanted: i64) {
    let spent = (0..500).map(|_| {
        let _ = api::hrsleep(time() + MILLISECOND);
        ask("rate.spent", api::get_asid().into())
    });
    let mut last = Ok(-1);
    let found = spent.into_iter().any(|spent| {
        last = spent;
        spent == Ok(wanted)
    });
    judge.check("tokens spent", found, || format!("{last:?}, not {wanted}"));
}

/// Must not come back.
pub fn peek(half: &str) -> i64 {
    attack::load(if half == "lower" { map::template_data_va(b'T') } else { map::template_va(b'T') });
    0
}

/// Ends with the number of calls that went through.
pub fn spend(name: &str, calls: u64) -> i64 {
    let Ok(index) = api::portal_open_as(name, "npT") else { return 99 };
    (0..calls).filter(|n| call(index, [*n]) == Ok(*n as i64)).count() as i64
}

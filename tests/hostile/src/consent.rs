//! Exporters that ask for what the opener has not given, and accomplices that give what is not theirs.
//!
//! `hostile consent [ROUNDS]` starts an exporter (`hostile ask NAME`) for each attack: its specifications
//! take stacks, preserved registers and pages, and its `peek` reads any address, so it dies where it has
//! nothing. The accomplices (`hostile accomplice KIND NAME`) run below each of the tools, and open for their
//! controllers.

use crate::judge::Judge;
use alloc::format;
use alloc::string::String;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use pebble::abi::consent::Letters;
use pebble::abi::specification::Reason;
use pebble::abi::{errno, link, map, status, sys};
use pebble::api::{self, Errno, Opened, PortalError};
use pebble::attack;
use pebble::portal::{Broken, MILLISECOND, call, time};
use pebble::process::Child;

/// What an exporter offers, and the first letter that a stranger may not have.
const OFFERED: [(&str, Option<char>); 16] = [
    ("np", None),
    ("nf", None),
    ("npi", None),
    ("npcabdh", None),
    ("npii>4", None),
    ("sp", Some('s')),
    ("sm", Some('s')),
    ("nm", Some('m')),
    ("npw", Some('w')),
    ("npr", Some('r')),
    ("npo", Some('o')),
    ("npt", Some('t')),
    ("npg", Some('g')),
    ("npw16", Some('w')),
    ("npk", Some('k')),
    ("npiT", Some('T')),
];

/// The tools, as they are called before a program.
const TOOLS: [&[&str]; 4] = [&["count"], &["trace"], &["chroot", "/"], &["sandbox", "--allow", "*"]];

fn open(name: &str, letters: &str) -> Result<usize, Errno> {
    Ok(api::portal_open_with(name, Letters::of(letters))?.index)
}

pub fn all(judge: &mut Judge, rounds: u32) {
    let round = |judge: &mut Judge| {
        exporter(judge, "a stranger's stack letter", |judge, name| {
            let _ = api::portal_open(&format!("{name}.sm"));
            unseen(judge, "opening", name, own_stack());
        });
        exporter(judge, "letters", letters);
        exporter(judge, "a portal that is given", |judge, name| {
            let given = asked(&format!("{name}.give"));
            judge.check("giving", given == Some(-errno::EPROTOTYPE), || format!("{given:?}"));
            unseen(judge, "given", name, own_stack());
        });
        closing(judge);
        controllers(judge);
        chains(judge);
    };
    judge.steadily(rounds, round);
}

/// Each is refused by its name, and had by who gives it.
fn letters(judge: &mut Judge, name: &str) {
    let exporter = asked(&format!("{name}.who")).unwrap_or(0) as u16;
    for (spec, missing) in OFFERED {
        let interface = format!("{name}.{}", plain(spec));
        let close = |opened: Opened| api::portal_close(opened.index, 1);
        let refused = missing.map(|letter| {
            let why = status::refused(letter as u8, exporter, api::get_asid());
            PortalError::Refused(Broken(why))
        });
        let opened = api::portal_open_with(&interface, Letters::NONE);
        judge.check(spec, opened.err() == refused, || format!("gives nothing: {opened:?}"));
        let _ = opened.map(close);
        // All but the one that it takes.
        let others = "smwrotgkABCDEFGHIJKLMNOPQRSTUVWXYZ".replace(missing.unwrap_or(' '), "");
        let opened = api::portal_open_with(&interface, Letters::of(&others));
        judge.check(spec, opened.err() == refused, || format!("gives others: {opened:?}"));
        let _ = opened.map(close);
        let opened = api::portal_open_with(&interface, Letters::of(spec));
        let good = match opened {
            Ok(opened) => opened.spec.as_str() == spec,
            // In a system that has no code for it.
            Err(PortalError::Specification(asks, error)) => {
                let letter = spec.as_bytes().get(usize::from(error.at)).copied();
                error.reason == Reason::NoTemplate && asks == exporter && letter == error.letter
            }
            Err(_) => false,
        };
        judge.check(spec, good, || format!("gives it: {opened:?}"));
        let _ = opened.map(close);
    }
    let interface = format!("{name}.npi");
    let expected = api::portal_open_as(&interface, "npw").map_err(Errno::from);
    judge.check("another specification", expected == Err(errno::EPROTO), || format!("{expected:?}"));
    let expected = api::portal_open_as(&interface, "npi").map(|index| api::portal_close(index, 1));
    judge.check("this specification", expected == Ok(Ok(0)), || format!("{expected:?}"));
    // No set of letters; a register that was never written.
    let [a, b, c] = link::pack::<3>(&interface).unwrap_or_default();
    for wild in [-1i64 as u64, map::stack_top(1, 0), map::CODE_VA, 1] {
        let opened = call(sys::SYS_PORTAL_OPEN, [a, b, c, wild]);
        let good = opened == Ok(-errno::EINVAL) || wild == 1 && opened.is_ok_and(|index| index > 0);
        judge.check("no letters", good, || format!("{wild:#x}: {opened:?}"));
        let _ = opened.map(|index| api::portal_close(index as usize, 1));
    }
}

/// The specification as far as it can be part of a name.
fn plain(spec: &str) -> String {
    spec.split('>').next().unwrap_or_default().to_ascii_lowercase()
}

/// An address that every exporter that sees this domain's stacks can read.
fn own_stack() -> u64 {
    map::stack_top(api::get_asid(), map::FIRST_STACK) - 8
}

fn fresh(what: &str) -> String {
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    format!("{what}{}.{}", api::get_asid(), SERIAL.fetch_add(1, Relaxed))
}

/// One call without words.
fn asked(name: &str) -> Option<i64> {
    let index = api::portal_open(name).ok()?;
    let answer = call(index, []).ok();
    let _ = api::portal_close(index, 1);
    answer
}

/// Runs `work` with the name of a new exporter.
fn exporter(judge: &mut Judge, what: &str, work: impl FnOnce(&mut Judge, &str)) {
    let name = fresh("c");
    with(judge, what, &["hostile", "ask", &name], &name, |judge, _| work(judge, &name));
}

/// Runs `work` while a program runs, from when it has registered `ready` on.
fn with(
    judge: &mut Judge,
    what: &str,
    arguments: &[&str],
    ready: &str,
    work: impl FnOnce(&mut Judge, Child),
) {
    let Ok(child) = Child::run(&format!("/bin/{}", arguments[0]), arguments) else {
        return judge.check(what, false, || "it did not start".into());
    };
    let open = judge.await_portal(ready);
    if let Some(index) = open {
        work(judge, child);
        let _ = api::portal_close(index, 1);
    }
    let _ = child.kill();
    let ended = child.wait();
    judge.check(what, open.is_some(), || format!("it did not come up, and ended with {ended:?}"));
}

/// The exporter, asked to read there, dies of it.
fn unseen(judge: &mut Judge, what: &str, name: &str, address: u64) {
    let peek = api::portal_open(&format!("{name}.peek"));
    let read = peek.map(|index| (call(index, [address]), api::portal_close(index, 1)));
    judge.check(what, matches!(read, Ok((Err(_), _))), || format!("it reads {address:#x}: {read:?}"));
}

fn seen(judge: &mut Judge, what: &str, name: &str, address: u64) {
    let peek = api::portal_open(&format!("{name}.peek"));
    let read = peek.map(|index| (call(index, [address]), api::portal_close(index, 1)));
    judge.check(what, matches!(read, Ok((Ok(_), _))), || format!("it cannot read {address:#x}: {read:?}"));
}

/// What was given ends with the last portal by which it was given, also while a call is under way.
fn closing(judge: &mut Judge) {
    static NAP: AtomicU64 = AtomicU64::new(0);
    static WOKE: AtomicU64 = AtomicU64::new(0);
    extern "C" fn naps(_: u64) {
        let answer = call(NAP.load(Relaxed) as usize, []);
        WOKE.store(if answer == Ok(0) { 1 } else { 2 }, Relaxed);
    }
    exporter(judge, "closing", |judge, name| {
        let portals = [(); 2].map(|()| open(&format!("{name}.sm"), "sm"));
        judge.check("both give", portals.iter().all(Result::is_ok), || format!("{portals:?}"));
        let [first, second] = portals.map(|portal| portal.unwrap_or(0));
        seen(judge, "both", name, own_stack());
        let _ = api::portal_close(first, 1);
        seen(judge, "one", name, own_stack());
        let _ = api::portal_close(second, 1);
        unseen(judge, "none", name, own_stack());
    });
    exporter(judge, "closing in a call", |judge, name| {
        let nap = open(&format!("{name}.nap"), "sm").unwrap_or(0);
        NAP.store(nap as u64, Relaxed);
        WOKE.store(0, Relaxed);
        let _ = api::thread_create(naps, 0, 0);
        let until = |done: &dyn Fn() -> bool| {
            (0..1000).any(|_| done() || api::hrsleep(time() + MILLISECOND).is_err())
        };
        until(&|| asked(&format!("{name}.napping")) == Some(1));
        let closed = api::portal_close(nap, 1);
        asked(&format!("{name}.wake"));
        until(&|| WOKE.load(Relaxed) != 0);
        let woke = WOKE.load(Relaxed);
        judge.check("the call goes on", woke == 1 && closed.is_ok(), || format!("{woke}, {closed:?}"));
        unseen(judge, "after the call", name, own_stack());
    });
}

/// What a controlled program opens costs its controller nothing.
fn controllers(judge: &mut Judge) {
    for tool in TOOLS {
        for kind in ["opens", "owns"] {
            let name = fresh("c");
            let ready = format!("{name}.ready");
            let line = [tool, &["hostile", "accomplice", kind, &name]].concat();
            let watch = |judge: &mut Judge, controller: Child| {
                let stack = map::stack_top(controller.0, map::FIRST_STACK) - 8;
                unseen(judge, &format!("{} {kind}", tool[0]), &name, stack);
            };
            if kind == "owns" {
                with(judge, tool[0], &line, &ready, watch);
            } else {
                with(judge, tool[0], &["hostile", "ask", &name], &name, |judge, _| {
                    with(judge, tool[0], &line, &ready, watch);
                });
            }
        }
        for kind in ["smash", "spoil"] {
            exporter(judge, tool[0], |judge, name| {
                let line = [tool, &["hostile", "accomplice", kind, name]].concat();
                let ended = Child::run(&format!("/bin/{}", tool[0]), &line).and_then(|child| child.wait());
                judge.check(&format!("{} {kind}", tool[0]), ended == Ok(0), || format!("{ended:?}"));
            });
        }
    }
}

/// A peer that has been given stacks does not give them on.
fn chains(judge: &mut Judge) {
    for first in ["peer", "judge"] {
        exporter(judge, "chain", |judge, last| {
            let peer = fresh("p");
            with(judge, "chain", &["hostile", "lead", &peer, last], &peer, |judge, _| {
                let go = || asked(&format!("{peer}.go"));
                let (went, opened);
                if first == "peer" {
                    went = go();
                    opened = open(&format!("{peer}.sm"), "sm");
                } else {
                    opened = open(&format!("{peer}.sm"), "sm");
                    went = go();
                }
                let refused = if first == "peer" {
                    went == Some(0) && opened == Err(errno::EPROTOTYPE)
                } else {
                    went == Some(-errno::EPROTOTYPE) && opened.is_ok()
                };
                judge.check("the chain ends", refused, || format!("{first}: {went:?}, {opened:?}"));
                unseen(judge, first, last, own_stack());
                let _ = opened.map(|index| api::portal_close(index, 1));
            });
        });
    }
}

// --- the others --------------------------------------------------------------------------------

fn forever() -> i64 {
    loop {
        let _ = api::hrsleep(u64::MAX >> 1);
    }
}

extern "C" fn nothing() -> i64 {
    0
}

extern "C" fn who() -> i64 {
    api::get_asid().into()
}

extern "C" fn peek(address: u64) -> i64 {
    (attack::read(address) >> 1) as i64
}

static NAPPING: AtomicU64 = AtomicU64::new(0);

/// Until somebody calls `wake`.
extern "C" fn nap() -> i64 {
    NAPPING.store(1, Relaxed);
    while NAPPING.load(Relaxed) == 1 {
        let _ = api::hrsleep(time() + MILLISECOND);
    }
    0
}

extern "C" fn napping() -> i64 {
    NAPPING.load(Relaxed) as i64
}

extern "C" fn wake() -> i64 {
    NAPPING.store(2, Relaxed);
    0
}

static GIVEN: AtomicU64 = AtomicU64::new(0);

/// Puts a portal that takes the stack into the table of whoever calls.
extern "C" fn give() -> i64 {
    api::portal_create(GIVEN.load(Relaxed), 1, 0)
        .map_or_else(|error| -Errno::from(error), |index| index as i64)
}

type Plain = extern "C" fn() -> i64;

fn offer(name: &str, what: &str, spec: &str, entry: Plain) -> Result<u16, Errno> {
    let (letters, results) = spec.split_once('>').unwrap_or((spec, "0"));
    let results = results.parse().unwrap_or(0);
    Ok(api::portal_register(&format!("{name}.{}", plain(what)), letters, entry as usize as u64, results)?)
}

fn offer_peek(name: &str) -> Result<u16, Errno> {
    let entry = peek as extern "C" fn(u64) -> i64 as usize as u64;
    Ok(api::portal_register(&format!("{name}.peek"), "npi", entry, 0)?)
}

pub fn ask(name: &str) -> i64 {
    let made = || -> Result<u16, Errno> {
        for (spec, _) in OFFERED {
            let number = offer(name, spec, spec, nothing)?;
            if spec == "sm" {
                GIVEN.store(number.into(), Relaxed);
            }
        }
        offer(name, "smash", "sm", attack::smash)?;
        offer(name, "spoil", "nm", attack::spoil)?;
        offer(name, "nap", "sm", nap)?;
        offer(name, "napping", "np", napping)?;
        offer(name, "wake", "np", wake)?;
        offer(name, "give", "np", give)?;
        offer(name, "who", "np", who)?;
        offer_peek(name)?;
        Ok(api::portal_register(name, "np", nothing as Plain as usize as u64, 0)?)
    };
    match made() {
        Ok(_) => forever(),
        Err(error) => error.number(),
    }
}

/// A peer that others give their stacks to, and that gives its own to the next.
pub fn lead(name: &str, next: &str) -> i64 {
    static NEXT: pebble::sync::Lock<String> = pebble::sync::Lock::new(String::new());
    extern "C" fn go() -> i64 {
        let next = NEXT.lock().clone();
        open(&next, "sm").map_or_else(|error| -error, |_| 0)
    }
    *NEXT.lock() = format!("{next}.sm");
    let made = offer(name, "sm", "sm", nothing)
        .and_then(|_| offer(name, "go", "np", go))
        .and_then(|_| Ok(api::portal_register(name, "np", nothing as Plain as usize as u64, 0)?));
    if made.is_err() { 98 } else { forever() }
}

/// Below a controller.
pub fn conspire(kind: &str, name: &str) -> i64 {
    match kind {
        "opens" => {
            let _ = open(&format!("{name}.sm"), "sm").map(|index| call(index, []));
        }
        "owns" => {
            let made = offer(name, "sm", "sm", nothing).and_then(|_| offer_peek(name));
            let _ = made.map(|_| open(&format!("{name}.sm"), "sm").map(|index| call(index, [])));
        }
        _ => {
            let _ = open(&format!("{name}.{kind}"), "sm").map(|index| call(index, []));
            return 0;
        }
    }
    let entry = nothing as Plain as usize as u64;
    if api::portal_register(&format!("{name}.ready"), "np", entry, 0).is_err() { 98 } else { forever() }
}

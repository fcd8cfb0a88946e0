//! Calls whose time is over, into servers that do not come back by themselves.
//!
//! `hostile late [ROUNDS]` starts each server, calls it with a time limit, more often than it has stacks or
//! window slots, and counts what is lost afterwards. What must never happen: another call of the same thread
//! ends with the limited one.

use crate::judge::Judge;
use crate::kinds::{ALL, End};
use alloc::format;
use alloc::string::String;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use pebble::abi::status;
use pebble::api;
use pebble::buffer::{Buffer, Window};
use pebble::call_within;
use pebble::portal::{Broken, MILLISECOND, call, time};
use pebble::process::Child;
use pebble::within::Watch;

/// More calls than a server has stacks.
const CALLS: usize = 6;
/// A limit that is never over.
const LONG: u64 = 10_000 * MILLISECOND;

pub fn all(judge: &mut Judge, rounds: u32) {
    let round = |judge: &mut Judge| {
        for kind in ALL.iter().filter(|kind| kind.end == End::Runs) {
            stubborn(judge, kind.name);
        }
        forged(judge);
        slow(judge);
        nested(judge);
        crowded(judge);
    };
    judge.steadily(rounds, round);
}

fn fresh(what: &str) -> String {
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    format!("{what}{}.{}", api::get_asid(), SERIAL.fetch_add(1, Relaxed))
}

/// A server, and portals to its interfaces: those with these endings.
fn server<const N: usize>(
    judge: &mut Judge,
    arguments: &[&str],
    name: &str,
    ends: [&str; N],
) -> Option<(Child, [usize; N])> {
    let child = Child::run("/bin/hostile", arguments).ok();
    let portals = ends.map(|end| judge.await_given(&format!("{name}{end}"), "w").unwrap_or(0));
    let good = child.filter(|_| portals.iter().all(|index| *index != 0));
    judge.check("a server", good.is_some(), || format!("{arguments:?} did not come up"));
    good.map(|child| (child, portals))
}

fn end(child: Child, portals: &[usize]) {
    let _ = child.kill();
    let _ = child.wait();
    for index in portals {
        let _ = api::portal_close(*index, 1);
    }
}

fn late(answer: Result<i64, Broken>, child: Child) -> bool {
    answer == Err(Broken(status::TIMEOUT | u64::from(child.0) << 16))
}

/// It loops, sleeps or waits for ever: each call ends, in time, with its name.
fn stubborn(judge: &mut Judge, kind: &str) {
    let name = fresh("late");
    let Some((child, portals)) = server(judge, &["hostile", "serve", kind, &name], &name, [""]) else {
        return;
    };
    for _ in 0..CALLS {
        let before = time();
        let answer = call_within(2 * MILLISECOND, portals[0], [1, 2, 3, 4, 5]);
        let took = time() - before;
        judge.check(kind, late(answer, child), || format!("the call returned {answer:?}"));
        judge.check(kind, took < 1000 * MILLISECOND, || format!("it took {took} ticks"));
    }
    end(child, &portals);
}

/// Below a limit that is not over it says that it is: the caller hears that it has died of that.
fn forged(judge: &mut Judge) {
    for kind in ["late-gate", "late-index", "late-after"] {
        let name = fresh("forged");
        let Some((child, portals)) = server(judge, &["hostile", "serve", kind, &name], &name, [""]) else {
            return;
        };
        let answer = call_within(LONG, portals[0], [0; 5]);
        let dead = answer == Err(Broken(status::dead(child.0)));
        judge.check(kind, dead, || format!("the call returned {answer:?}"));
        end(child, &portals);
    }
}

/// Answers in time or late, whatever is asked; what it is asked without a limit it always answers.
fn slow(judge: &mut Judge) {
    let name = fresh("slow");
    let ends = ["", ".patient", ".window", ".count", ".sleep"];
    let Some((child, portals)) = server(judge, &["hostile", "slow", &name], &name, ends) else { return };
    let [slow, patient, window, count, sleep] = portals;
    let mut ended = 0;
    // The limit passes before, while and after the call returns.
    for n in 0..60 {
        let answer =
            call_within(MILLISECOND / 5 + n * (MILLISECOND / 100), slow, [MILLISECOND / 2, 0, 0, 0, 0]);
        ended += u64::from(late(answer, child));
        judge.check("slow", answer == Ok(42) || late(answer, child), || format!("{answer:?}"));
        let answer = call(slow, [300]);
        judge.check("no other call ends", answer == Ok(42), || format!("{answer:?}"));
    }
    let answer = call_within(1000 * MILLISECOND, slow, [MILLISECOND, 0, 0, 0, 0]);
    judge.check("in time", answer == Ok(42), || format!("{answer:?}"));
    let answer = call(sleep, [3 * MILLISECOND]);
    judge.check("no later call ends", answer == Ok(0), || format!("{answer:?}"));
    for _ in 0..CALLS {
        let answer = call_within(MILLISECOND, patient, [0; 5]);
        ended += u64::from(late(answer, child));
        judge.check("waits for a lock", late(answer, child), || format!("{answer:?}"));
    }
    ended += windows(judge, child, window);
    // A wait of its own, and of a server of the image: what these answer is an interruption.
    if let Ok(semaphore) = api::sem_create_patient(0) {
        let answer = call_within(MILLISECOND, semaphore, [0; 5]);
        let timeout = matches!(answer, Err(broken) if status::code(broken.0) == status::TIMEOUT);
        judge.check("waits itself", timeout, || format!("{answer:?}"));
        let _ = api::portal_close(semaphore, 2);
    }
    // It has been told of each.
    let told = (0..200).find(|_| {
        let _ = api::hrsleep(time() + MILLISECOND);
        call(count, [0; 5]) == Ok(ended as i64)
    });
    judge.check("it is told", told.is_some(), || format!("{ended} times, but {:?}", call(count, [0; 5])));
    end(child, &portals);
}

/// More than it has slots for; the page is the caller's again each time.
fn windows(judge: &mut Judge, child: Child, portal: usize) -> u64 {
    let Ok(buffer) = Buffer::new(1) else {
        judge.check("a buffer", false, || "no memory".into());
        return 0;
    };
    let (mut ended, mut touched) = (0, 0);
    for n in 0..150 {
        let _ = buffer.window().set_word(0, n);
        let answer = call_within(MILLISECOND / 2, portal, [buffer.address(), 0, 0, 0, 0]);
        ended += u64::from(late(answer, child));
        let kept = buffer.window().word(0);
        // The time may be over before the server has begun.
        let good = late(answer, child) && (kept == Ok(n) || kept == Ok(n + 1));
        touched += u32::from(kept == Ok(n + 1));
        judge.check("holds a window", good, || format!("{answer:?}, {kept:?}"));
    }
    judge.check("holds windows", touched > 120, || format!("only {touched}"));
    ended
}

/// A limit within a limit: the outer one is shorter, then the inner one.
fn nested(judge: &mut Judge) {
    let (inner, outer) = (fresh("in"), fresh("out"));
    let Some((callee, portals)) = server(judge, &["hostile", "slow", &inner], &inner, [""]) else { return };
    let Some((relay, through)) = server(judge, &["hostile", "relay", &outer, &inner], &outer, [""]) else {
        return end(callee, &portals);
    };
    for _ in 0..CALLS {
        let answer = call_within(MILLISECOND, through[0], [LONG, LONG, 0, 0, 0]);
        judge.check("the outer one ends", late(answer, relay), || format!("{answer:?}"));
        let answer = call_within(LONG, through[0], [MILLISECOND, LONG, 0, 0, 0]);
        judge.check("the inner one ends", answer == Ok(i64::from(callee.0)), || format!("{answer:?}"));
        // The inner limit that ended with the outer one is forgotten.
        let answer = call(through[0], [LONG, 2 * MILLISECOND]);
        judge.check("neither ends", answer == Ok(42), || format!("{answer:?}"));
    }
    end(relay, &through);
    end(callee, &portals);
}

/// All stacks of the server are taken: the call ends before it has begun.
fn crowded(judge: &mut Judge) {
    static GUESTS: AtomicU64 = AtomicU64::new(0);
    static PORTAL: AtomicU64 = AtomicU64::new(0);
    extern "C" fn guest(_: u64) {
        let _ = call_within(20 * MILLISECOND, PORTAL.load(Relaxed) as usize, [u64::MAX >> 1, 0, 0, 0, 0]);
        GUESTS.fetch_sub(1, Relaxed);
    }
    let name = fresh("full");
    let Some((child, portals)) = server(judge, &["hostile", "slow", &name], &name, ["", ".sleep"]) else {
        return;
    };
    PORTAL.store(portals[1] as u64, Relaxed);
    for _ in 0..CALLS {
        GUESTS.fetch_add(1, Relaxed);
        if api::thread_create(guest, 0, 0).is_err() {
            GUESTS.fetch_sub(1, Relaxed);
        }
    }
    let _ = api::hrsleep(time() + 2 * MILLISECOND);
    let answer = call_within(2 * MILLISECOND, portals[0], [300, 0, 0, 0, 0]);
    judge.check("no stack is free", late(answer, child), || format!("{answer:?}"));
    for _ in 0..1000 {
        if GUESTS.load(Relaxed) == 0 {
            break;
        }
        let _ = api::hrsleep(time() + MILLISECOND);
    }
    judge.check("all come back", GUESTS.load(Relaxed) == 0, || format!("{} do not", GUESTS.load(Relaxed)));
    let answer = call(portals[0], [300]);
    judge.check("stacks are free again", answer == Ok(42), || format!("{answer:?}"));
    end(child, &portals);
}

// --- the servers -----------------------------------------------------------------------------

static TOLD: AtomicU64 = AtomicU64::new(0);
static LOCK: AtomicU64 = AtomicU64::new(0);
static INNER: AtomicU64 = AtomicU64::new(0);

extern "C" fn compute(ticks: u64) -> i64 {
    let until = time().saturating_add(ticks);
    while time() < until {
        core::hint::spin_loop();
    }
    42
}

extern "C" fn patient() -> i64 {
    let _ = api::sem_wait(LOCK.load(Relaxed) as usize);
    0
}

extern "C" fn window(address: u64) -> i64 {
    if let Ok(window) = Window::page(address) {
        let _ = window.word(0).and_then(|word| window.set_word(0, word + 1));
    }
    compute(u64::MAX >> 1)
}

extern "C" fn count() -> i64 {
    TOLD.load(Relaxed) as i64
}

extern "C" fn sleep(ticks: u64) -> i64 {
    api::hrsleep(time().saturating_add(ticks)).map_or_else(|error| -error, |_| 0)
}

/// Who had the inner call when its time was over, or what it has answered.
extern "C" fn relay(limit: u64, ticks: u64) -> i64 {
    match call_within(limit, INNER.load(Relaxed) as usize, [ticks, 0, 0, 0, 0]) {
        Ok(value) => value,
        Err(broken) if status::code(broken.0) == status::TIMEOUT => status::domain(broken.0).into(),
        Err(_) => -1,
    }
}

fn offer(name: &str, spec: &str, entry: u64) -> bool {
    api::portal_register(name, spec, entry, 0).is_ok()
}

pub fn serve(name: &str) -> i64 {
    let (Ok(watch), Ok(lock)) = (Watch::new(), api::sem_create_patient(0)) else { return 98 };
    LOCK.store(lock as u64, Relaxed);
    let entries: [(&str, &str, u64); 5] = [
        (".patient", "np", patient as extern "C" fn() -> i64 as usize as u64),
        (".window", "npw", window as extern "C" fn(u64) -> i64 as usize as u64),
        (".count", "np", count as extern "C" fn() -> i64 as usize as u64),
        (".sleep", "npi", sleep as extern "C" fn(u64) -> i64 as usize as u64),
        ("", "npi", compute as extern "C" fn(u64) -> i64 as usize as u64),
    ];
    if !entries.iter().all(|(end, spec, entry)| offer(&format!("{name}{end}"), spec, *entry)) {
        return 98;
    }
    loop {
        if watch.wait().is_ok() {
            TOLD.fetch_add(1, Relaxed);
        }
    }
}

pub fn serve_through(name: &str, inner: &str) -> i64 {
    let Ok(index) = api::portal_open(inner) else { return 98 };
    INNER.store(index as u64, Relaxed);
    if !offer(name, "npii", relay as extern "C" fn(u64, u64) -> i64 as usize as u64) {
        return 98;
    }
    loop {
        let _ = api::hrsleep(u64::MAX >> 1);
    }
}

/// Calls itself, until it has no stack left.
extern "C" fn descend() -> i64 {
    call(INNER.load(Relaxed) as usize, [0; 5]).unwrap_or(-1)
}

extern "C" fn who() -> i64 {
    api::get_asid().into()
}

pub fn serve_deep(name: &str) -> i64 {
    let offered = offer(name, "np", descend as extern "C" fn() -> i64 as usize as u64)
        && offer(&format!("{name}.who"), "np", who as extern "C" fn() -> i64 as usize as u64);
    let Ok(index) = api::portal_open(name) else { return 98 };
    INNER.store(index as u64, Relaxed);
    while offered {
        let _ = api::hrsleep(u64::MAX >> 1);
    }
    98
}

/// Calls a server that calls itself, which somebody else has started, perhaps under tools. The limits
/// (`first` ticks, then `step` more each) end it at the bottom, or wherever it or a controller of its is by
/// then.
pub fn dive(judge: &mut Judge, name: &str, [first, step, count]: [u64; 3]) {
    let portals = ["", ".who"].map(|end| judge.await_portal(&format!("{name}{end}")));
    let [Some(deep), Some(who)] = portals else {
        return judge.check("a server", false, || format!("{name} did not come up"));
    };
    let server = call(who, [0; 5]).unwrap_or_default() as u16;
    for n in 0..count {
        // Odd instructions, as limits are ticks of a hundred.
        for _ in 0..n % 50 {
            core::hint::spin_loop();
        }
        let limit = first + n * step;
        let before = time();
        let answer = call_within(limit, deep, [0; 5]);
        let took = time() - before;
        judge.check("calls itself", late(answer, Child(server)), || format!("after {limit}: {answer:?}"));
        judge.check("in time", took < limit + 500 * MILLISECOND, || format!("after {limit}: {took} ticks"));
        let answer = call(who, [0; 5]);
        judge.check("stacks are free again", answer == Ok(server.into()), || format!("{answer:?}"));
    }
}

//! Calls and faults where a thread's invocation stack is nearly full: whoever has filled it dies or is
//! refused, and nobody else.
//!
//! A trusted server's portals refuse a call for which there is no room, so no server dies of it; and the
//! portal that asks a fault handler is one. `hostile depth [ROUNDS]` starts `abyss`, a program in C whose
//! domains use floating point, so that their frames are the longest, at each depth around the limit. There it
//! faults at a page whose handler faults in turn, and so on; opens an interface whose policy does so; or
//! calls each server.

use crate::judge::Judge;
use alloc::format;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use pebble::abi::errno;
use pebble::abi::fault::Cause;
use pebble::api;
use pebble::process::Child;

const ABYSS: &str = "/bin/abyss";
/// Words by which a program can fill its part of the invocation stack, to the last and beyond.
const DEPTHS: core::ops::RangeInclusive<u32> = 196..=244;
/// Of those, so many that there is room for a single call.
const LAST: u32 = 238;
/// Statuses of a program that has died of a load from nowhere; of a full invocation stack.
const FAULT: i64 = Cause::Load.status() as i64;
const FULL: i64 = Cause::InvocationOverflow.status() as i64;

pub fn all(judge: &mut Judge, rounds: u32) {
    for depth in DEPTHS {
        touch(judge, depth);
        servers(judge, depth);
    }
    DEPTHS.step_by(4).for_each(|depth| policy(judge, depth));
    // Each way once more, with everything counted.
    judge.steadily(rounds, |judge| {
        touch(judge, LAST);
        servers(judge, LAST);
        policy(judge, LAST - 4);
    });
}

fn name() -> alloc::string::String {
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    format!("a{}.{}", api::get_asid(), SERIAL.fetch_add(1, Relaxed))
}

/// A program that serves until it is killed, once its interface is there.
fn server(judge: &mut Judge, arguments: &[&str], ready: &str) -> Option<Child> {
    let child = Child::run(ABYSS, arguments).ok()?;
    let portal = judge.await_portal(ready);
    let _ = portal.map(|index| api::portal_close(index, 1));
    Some(child)
}

fn end(children: impl IntoIterator<Item = Option<Child>>) {
    for child in children.into_iter().flatten() {
        let _ = child.kill();
        let _ = child.wait();
    }
}

fn fall(depth: u32, act: &str, to: &str) -> Result<i64, api::Errno> {
    Child::run(ABYSS, &["abyss", "fall", &format!("{depth}"), act, to]).and_then(|child| child.wait())
}

/// A handler's handler.
fn touch(judge: &mut Judge, depth: u32) {
    let names = [name(), name()];
    let [first, second] = &names;
    let last = server(judge, &["abyss", "handle", second], second);
    let nearest = server(judge, &["abyss", "handle", first, second], first);
    let ended = fall(depth, "touch", first);
    let good = matches!(ended, Ok(FAULT | FULL));
    judge.check("touch", good, || format!("at {depth}: ended with {ended:?}"));
    end([nearest, last]);
}

/// A policy that faults where a handler is asked, who faults.
fn policy(judge: &mut Judge, depth: u32) {
    let names = [name(), name(), name()];
    let [policy, first, second] = &names;
    let last = server(judge, &["abyss", "handle", second], second);
    let nearest = server(judge, &["abyss", "handle", first, second], first);
    let keeper = Child::run(ABYSS, &["abyss", "policy", policy, first]).ok();
    // Guarded from now on.
    let guarded = (0..1000).any(|_| {
        let _ = api::hrsleep(pebble::portal::time() + pebble::portal::MILLISECOND);
        api::portal_open(&format!("{policy}.up")).map(|index| api::portal_close(index, 1)).is_ok()
    });
    let ended = fall(depth, "open", &format!("{policy}.kept"));
    judge.check("policy", guarded && matches!(ended, Ok(0 | FULL)), || {
        format!("at {depth}: {guarded}, ended with {ended:?}")
    });
    let open = api::portal_open(&format!("{policy}.kept"));
    judge.check("policy", matches!(open, Err(errno::EACCES | errno::ENOENT | errno::EBUSY)), || {
        format!("at {depth}: {open:?}")
    });
    end([keeper, nearest, last]);
}

/// What servers call in turn fits above what a program can fill.
fn servers(judge: &mut Judge, depth: u32) {
    let ended = fall(depth, "servers", "");
    judge.check("servers", matches!(ended, Ok(0 | FULL)), || format!("at {depth}: ended with {ended:?}"));
}

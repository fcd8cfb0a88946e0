//! `escape KIND`: what a controlled program may try in order to be rid of its controller, or to leave
//! something behind. Ends with status 7 if it was refused all that it must be refused.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use pebble::abi::{map, sys};
use pebble::control::{self, Answer};
use pebble::portal::{MILLISECOND, call, time};
use pebble::process::Child;
use pebble::{api, attack, io, println};

pebble::program!(main);
pebble::handler!(through = pass);
pebble::handler!(leaves = leave);
pebble::handler!(breaks = fault);

fn pass(index: usize, p: [u64; 5]) -> Answer {
    control::pass(index, p)
}

/// Ends the controller in the midst of a call of its child.
fn leave(_: usize, _: [u64; 5]) -> Answer {
    api::exit(7)
}

fn fault(_: usize, _: [u64; 5]) -> Answer {
    attack::load(0);
    0.into()
}

const REFUSED: i64 = 7;

/// Gives up all it has by index, opens again, and looks whether what it gets is real.
fn close() -> i64 {
    let mut closed = 0;
    for index in sys::FIRST_FREE + sys::FILE_PORTALS..map::TABLE_ENTRIES {
        closed += u32::from(api::portal_close(index, 1).is_ok());
    }
    for index in 0..sys::FIRST_FREE {
        if api::portal_close(index, 1).is_ok() {
            return 1;
        }
    }
    for _ in 0..100 {
        let Ok(index) = api::portal_open("vm.stats") else { return 2 };
        if call(index, []).is_err() || api::portal_close(index, 1).is_err() {
            return 3;
        }
    }
    // Nothing of the controller's lay there.
    if closed == 0 { REFUSED } else { 4 }
}

/// Every index in the words of calls that take one.
fn forge() -> i64 {
    let held = api::sem_create(0).unwrap_or(0);
    for index in 0..=map::TABLE_ENTRIES as u64 {
        let own = index == held as u64;
        let published = call(sys::SYS_SEM_PUBLISH, [index, 0x6567_726f_6600 | index % 8 | 0x30, 0, 0]);
        let removed = call(sys::SYS_PORTAL_REMOVE, [index, 1]);
        if !own && published.is_ok_and(|n| n >= 0) || removed.is_ok_and(|n| n >= 0) {
            println!("index {index}: {published:?} {removed:?}");
            return 1;
        }
        for control in [1, 7, 60] {
            let made = call(sys::SYS_CONTROL, [2 | control << 16 | index << 32, 0x6d6e, 0, map::IMAGE_VA]);
            if made.is_ok_and(|n| n >= 0) {
                return 2;
            }
        }
    }
    REFUSED
}

/// Calls through every index, each in a copy of its own, which dies of it or does not.
fn calls() -> i64 {
    let console = sys::FIRST_FREE..sys::FIRST_FREE + sys::FILE_PORTALS;
    let gone = |index: usize| console.contains(&index) || index == sys::SYS_HRSLEEP || index == sys::RETURN;
    for index in (0..64).chain(160..224).chain(4090..4100).filter(|index| !gone(*index)) {
        match control::fork(through) {
            Ok(0) => {
                let _ = call(index, [0; 5]);
                api::exit(3);
            }
            Ok(child) => {
                println!("{index}");
                let _ = Child(child).wait();
            }
            Err(_) => return 1,
        }
    }
    REFUSED
}

/// Copies and programs that it does not wait for.
fn children() -> i64 {
    for _ in 0..4 {
        match control::fork(through) {
            Ok(0) => loop {
                let _ = api::hrsleep(time() + MILLISECOND / 10);
            },
            Ok(_) => {}
            Err(_) => return 1,
        }
    }
    let _ = Child::load("/bin/escape");
    REFUSED
}

extern "C" fn sleeper(_: u64) {
    let _ = api::hrsleep(u64::MAX >> 1);
}

fn exhaust() -> i64 {
    let counts = [
        (0..5000).take_while(|_| api::portal_open("vm.stats").is_ok()).count(),
        (0..5000).take_while(|_| api::sem_create(0).is_ok()).count(),
        (0..5000).take_while(|_| api::thread_create(sleeper, 0, 0).is_ok()).count(),
        (0..5000)
            .take_while(|n| {
                let name = alloc::format!("escape{}.{n}", api::get_asid());
                api::portal_register(&name, "np", map::IMAGE_VA, 0).is_ok()
            })
            .count(),
        (0..5000).take_while(|_| api::sbrk(1 << 16).is_ok()).count(),
    ];
    // Each has an end.
    if counts.iter().all(|count| *count < 5000) { REFUSED } else { 1 }
}

/// A controller within the controller, that does not come back from its handler.
fn handler(handler: control::Entry) -> i64 {
    match control::fork(handler) {
        Ok(0) => loop {
            api::yield_now();
        },
        Ok(child) => Child(child).wait().map_or(1, |_| REFUSED),
        Err(_) => 2,
    }
}

/// All others.
fn kill() -> i64 {
    let own = api::get_asid();
    for domain in (0..map::MAX_DOMAINS as u16).filter(|domain| *domain != own) {
        if Child(domain).kill().is_ok() {
            return 1;
        }
    }
    REFUSED
}

static ROUNDS: AtomicU64 = AtomicU64::new(0);

/// Ends while its threads are in calls.
extern "C" fn caller(_: u64) {
    loop {
        api::yield_now();
        ROUNDS.fetch_add(1, Relaxed);
    }
}

fn exit() -> i64 {
    for _ in 0..4 {
        let _ = api::thread_create(caller, 0, 0);
    }
    while ROUNDS.load(Relaxed) < 100 {
        let _ = api::hrsleep(time() + MILLISECOND / 10);
    }
    REFUSED
}

fn main() -> i64 {
    // The console's four portals come first, so all know where.
    println!("escape");
    let kind = io::args().nth(1);
    match kind.as_deref() {
        Some("close") => close(),
        Some("forge") => forge(),
        Some("calls") => calls(),
        Some("children") => children(),
        Some("exhaust") => exhaust(),
        Some("handler-exit") => handler(leaves),
        Some("handler-fault") => handler(breaks),
        Some("kill") => kill(),
        Some("exit") => exit(),
        Some("fault") => {
            attack::load(0);
            1
        }
        _ => 2,
    }
}

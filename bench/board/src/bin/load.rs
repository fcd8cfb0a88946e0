//! How long interrupts stay off, and what a yield costs, while twelve domains (`hog.rs`) do all that they can
//! against it.
//!
//! `irqs_off.hostile`: the most urgent thread of all sleeps until random times; how late it runs is the rest
//! of whatever path with interrupts off was under way, and the way of the timer's interrupt through the
//! scheduler to user level. The least lateness of all is that way alone. Each sample is the larger of the two
//! parts: that least, and what is left of the lateness, which is at least the path that was under way.
//! `yield.hostile`: two threads that are more urgent than the hogs yield to each other, while somebody waits
//! for a stack of each of the twelve. `irqs_off.moving`: the same as the first, while a server is replaced
//! besides, and a program born and killed, time and again (`mover.rs`). The way is shorter there at times, so
//! what is left of the lateness is an upper bound.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

#[path = "../calibrate.rs"]
mod calibrate;

use alloc::vec::Vec;
use calibrate::{PER_TICK, calibrate};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use pebble::abi::{map::TIME_HZ, sys};
use pebble::api;
use pebble::io::{self, File};
use pebble::portal::{COUNTED, MILLISECOND, call_once as call, counter, time, timed_call};
use pebble::power::Power;
use pebble_bench::{ROUNDS, Samples, least};

pebble::import! {
    START = "semaphore.start";
    PRIORITY = "scheduler.priority";
    THREAD_INFO = "scheduler.thread_info";
    MOVE = "semaphore.move";
    MOVED = "mover.done";
}
pebble::component!(main);

const HOGS: u64 = 12;
/// No server is as urgent: the clock's keeper, who ends late calls, would only be in the way.
const MOST: u64 = 31;
const POWER: Power = Power::new(0);
/// Bounds of the random delay, in ticks.
const DELAY: (u64, u64) = (TIME_HZ / 1_000_000 * 2, TIME_HZ / 1_000_000 * 40);
/// States of `scheduler.thread_info`.
const FREE: u64 = 0;
const STACK: u64 = 6;

static STOP: AtomicBool = AtomicBool::new(false);

fn emit(console: &File, id: &str, samples: Samples) {
    let _ = console.write(alloc::format!("@bench {}\n", samples.row(id, COUNTED)).as_bytes());
}

extern "C" fn partner(_: u64) {
    while !STOP.load(Relaxed) {
        api::yield_now();
    }
}

fn main() -> i64 {
    let Ok(console) = io::open("/dev/console") else { return 1 };
    let offset = calibrate();
    let _ = PRIORITY.call([api::get_thread_id().into(), MOST]);
    for _ in 0..HOGS {
        let _ = call(START.index() + 1, []);
    }
    // Until somebody waits for a stack of each, and then some.
    while count(STACK) < HOGS {
        let _ = api::hrsleep(time() + MILLISECOND);
    }
    let _ = api::hrsleep(time() + 10 * MILLISECOND);
    emit(&console, "irqs_off.hostile", lateness(offset));
    let threads = 256 - count(FREE);
    let wanted = count(STACK);
    let mut yields = Samples::new(2, least(counter));
    let started = api::thread_create(partner, 0, MOST as u8).is_ok();
    for _ in 0..ROUNDS {
        yields.add(timed_call(sys::SYS_YIELD, [0; 5]));
    }
    STOP.store(true, Relaxed);
    if started && wanted >= HOGS {
        emit(&console, "yield.hostile", yields);
    }
    moving(&console, offset);
    let _ = console.write(alloc::format!("load: {threads} threads, {wanted} wait for stacks\n").as_bytes());
    let _ = console.write(b"@bench end\n");
    let _ = api::hrsleep(time() + 10 * MILLISECOND);
    POWER.off(0);
    0
}

/// The row is for nothing if nothing has moved meanwhile.
fn moving(console: &File, offset: u64) {
    let _ = call(MOVE.index() + 1, []);
    let _ = api::hrsleep(time() + 10 * MILLISECOND);
    let before = MOVED.call([]);
    let late = lateness(offset);
    let after = MOVED.call([]);
    if matches!((&before, &after), (Ok(before @ 0..), Ok(after)) if *after > before + 2) {
        return emit(console, "irqs_off.moving", late);
    }
    let _ = console.write(alloc::format!("load: moved {before:?} and {after:?}\n").as_bytes());
}

/// Threads in this state.
fn count(state: u64) -> u64 {
    let is = |tid: &u64| matches!(THREAD_INFO.call_wide([*tid]), Ok((0, more)) if more[0] & 0xff == state);
    (0..256).filter(is).count() as u64
}

fn lateness(offset: u64) -> Samples {
    let (mut late, mut samples) = (Vec::with_capacity(ROUNDS), Samples::new(1, least(counter)));
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for _ in 0..ROUNDS {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let due = time() + DELAY.0 + random % (DELAY.1 - DELAY.0);
        let _ = api::hrsleep(due);
        late.push(counter() - (due * PER_TICK).wrapping_add(offset));
    }
    let least = late.iter().copied().min().unwrap_or(0);
    late.iter().for_each(|late| samples.add((late - least).max(least)));
    samples
}

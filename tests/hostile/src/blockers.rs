//! Programs that wait for what never comes, or is somebody else's, with as many threads as they may have:
//! `hostile block WHAT THREADS`.
//!
//! Whatever they wait in must go on serving everybody else: the test types commands meanwhile.

use alloc::format;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use pebble::abi::{status, sys};
use pebble::api;
use pebble::io::{self, File};
use pebble::portal::{MILLISECOND, call_wide_once, time};
use pebble::process::Child;

/// What the threads wait in.
static FILE: AtomicU64 = AtomicU64::new(0);
static CHILD: AtomicU64 = AtomicU64::new(0);

fn file() -> File {
    File(FILE.load(Relaxed) as usize)
}

fn for_ever() -> ! {
    loop {
        let _ = api::hrsleep(u64::MAX >> 1);
    }
}

extern "C" fn reads(_: u64) {
    while file().read(&mut [0; 32]).is_ok() {}
    for_ever()
}

extern "C" fn writes(_: u64) {
    while file().write(&[b'x'; 32]).is_ok() {}
    for_ever()
}

extern "C" fn waits(_: u64) {
    let _ = Child(CHILD.load(Relaxed) as u16).wait();
    for_ever()
}

/// Loads a large program, and again: each time the loader is somebody's for a while.
extern "C" fn loads(_: u64) {
    loop {
        if let Ok(child) = Child::load("/bin/hostile") {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Lets others go on for a moment, and then computes for ever: whatever they hold, they hold it still.
extern "C" fn ambushes(moment: u64) {
    let _ = api::hrsleep(time() + (5 + moment) * MILLISECOND);
    loop {
        core::hint::spin_loop();
    }
}

/// Is told to wait, and never comes back: what it would have been woken for is others'.
extern "C" fn stays_away(_: u64) {
    let answer = call_wide_once(FILE.load(Relaxed) as usize + sys::FILE_READ, [32]);
    match answer {
        Err(broken) if status::code(broken.0) == status::WAIT => for_ever(),
        _ => stays_away(0),
    }
}

/// An open end of a new pipe; the other end is open too, if `both`, and never used.
fn pipe(side: char, both: bool) -> Option<File> {
    let create = api::portal_open("pipe.create").ok()?;
    let token = pebble::portal::call(create, []).ok().filter(|token| *token > 0)?;
    let end = |side| io::open(&format!("/pipe/{token:016x}/{side}")).ok();
    if both {
        end(if side == 'r' { 'w' } else { 'r' })?;
    }
    end(side)
}

/// Wants what is typed for others: says itself that it is in front, by every file of the console's that it
/// can open, and for the numbers of all; reads meanwhile.
pub fn front() -> i64 {
    let Ok(file) = io::open("/dev/console") else { return 97 };
    FILE.store(file.0 as u64, Relaxed);
    if api::thread_create(steals, 0, 0).is_err() {
        return 99;
    }
    loop {
        if let Ok(control) = io::open("/dev/console/ctl") {
            for domain in 1..256 {
                let _ = control.write(format!("front {domain}").as_bytes());
            }
            control.close();
        }
        // A child may have the number of whom the shell has just let go.
        if let Ok(child) = Child::run("/bin/hostile", &["hostile", "block", "read", "1"]) {
            let _ = api::hrsleep(time() + 20 * MILLISECOND);
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

extern "C" fn steals(_: u64) {
    while let Ok(count) = file().read(&mut [0; 32]) {
        pebble::println!("front: got {count} bytes");
    }
    for_ever()
}

pub fn block(what: &str, threads: u64) -> i64 {
    let open = |file: Option<File>| file.map(|file| FILE.store(file.0 as u64, Relaxed)).is_some();
    let entry: extern "C" fn(u64) = match what {
        "read" if open(io::open("/dev/console").ok()) => reads,
        "away" if open(io::open("/dev/console").ok()) => stays_away,
        "empty" if open(pipe('r', true)) => reads,
        "full" if open(pipe('w', true)) => writes,
        "load" => loads,
        "ambush" => ambushes,
        "wait" => match Child::run("/bin/hostile", &["hostile", "block", "sleep", "0"]) {
            Ok(child) => {
                CHILD.store(child.0.into(), Relaxed);
                waits
            }
            Err(_) => return 97,
        },
        "sleep" => for_ever(),
        _ => return 98,
    };
    if !(0..threads).all(|n| api::thread_create(entry, n, 0).is_ok()) {
        return 99;
    }
    for_ever()
}

/// Gives pages back, which the idle thread zeroes, and soon after, each time a little later, wants the VM
/// manager's lock, just when somebody begins to compute who is more urgent than the idle thread, which may
/// have the lock. Prints how long it waited at most.
pub fn idle(rounds: u64) -> i64 {
    const PERIOD: u64 = 2 * MILLISECOND;
    const LENGTH: u64 = MILLISECOND;
    const PAGES: i64 = 512 * 4096;
    let start = time() + 100 * PERIOD;
    let [at, period, length] = [start, PERIOD, LENGTH].map(|ticks| format!("{ticks}"));
    let Ok(beat) = Child::run("/bin/beat", &["beat", &at, &period, &length]) else { return 97 };
    let mut longest = 0;
    for n in 0..rounds {
        let at = start + n * PERIOD;
        let _ = api::hrsleep(at - 5000 + n);
        if api::sbrk(PAGES).and_then(|_| api::sbrk(-PAGES)).is_err() {
            return 99;
        }
        let _ = api::hrsleep(at);
        let began = time();
        let _ = api::sbrk(0);
        longest = longest.max(time() - began);
    }
    let _ = beat.kill();
    let _ = beat.wait();
    pebble::println!("waited for {longest} ticks at most");
    0
}

/// Programs that block and die, one after the other, for so many milliseconds.
pub fn block_and_die(what: &str, milliseconds: u64) -> i64 {
    let until = time() + milliseconds * MILLISECOND;
    while time() < until {
        let Ok(child) = Child::run("/bin/hostile", &["hostile", "block", what, "20"]) else { return 97 };
        let _ = api::hrsleep(time() + 5 * MILLISECOND);
        let _ = child.kill();
        let _ = child.wait();
    }
    0
}

//! Controllers within controllers: `nest N` makes a chain of N copies, each of which passes on what the next
//! one calls; the innermost does what programs do. `nest under PROGRAM ..` runs a program under control and
//! counts its calls. `nest forks N` makes so many copies one after the other, each of which ends at once,
//! with a status of its own. `nest threads N` does the same with threads.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use pebble::abi::{map::TIME_HZ, sys};
use pebble::control::{self, Answer};
use pebble::portal::time;
use pebble::process::Child;
use pebble::{api, io, println};

pebble::program!(main);
pebble::handler!(pass = count);

static CALLS: AtomicU64 = AtomicU64::new(0);

fn count(index: usize, p: [u64; 5]) -> Answer {
    CALLS.fetch_add(1, Relaxed);
    control::pass(index, p)
}

static SIGNAL: AtomicU64 = AtomicU64::new(0);

extern "C" fn thread(semaphore: u64) {
    SIGNAL.store(42, Relaxed);
    let _ = api::sem_post(semaphore as usize);
}

/// What programs do; an error names the step.
fn work(level: u64) -> Result<(), &'static str> {
    let memory: Vec<u8> = alloc::vec![7; 300_000];
    if memory.iter().any(|b| *b != 7) {
        return Err("memory");
    }
    let semaphore = api::sem_create(0).map_err(|_| "sem_create")?;
    for _ in 0..8 {
        SIGNAL.store(0, Relaxed);
        api::thread_create(thread, semaphore as u64, 0).map_err(|_| "thread_create")?;
        api::sem_wait(semaphore).map_err(|_| "sem_wait")?;
        if SIGNAL.load(Relaxed) != 42 {
            return Err("thread");
        }
    }
    api::portal_close(semaphore, 2).map_err(|_| "portal_close")?;
    for _ in 0..40 {
        let file = io::open("/bin/hello").map_err(|_| "open")?;
        let mut bytes = [0; 32];
        if file.read(&mut bytes) != Ok(32) || &bytes[..4] != b"\x7fELF" {
            return Err("read");
        }
        file.close();
    }
    let stats = api::portal_open("vm.stats").map_err(|_| "portal_open")?;
    match pebble::portal::call_wide(stats, [0; 5]) {
        Ok((0, [free, all, ..])) if 0 < free && free < all => {}
        _ => return Err("vm.stats"),
    }
    println!("level {level}: domain {}, all is well", api::get_asid());
    Ok(())
}

fn level(now: u64, last: u64) -> i64 {
    if now == last {
        return match work(now) {
            Ok(()) => 0,
            Err(step) => {
                println!("level {now}: {step} failed");
                1
            }
        };
    }
    match control::fork(pass) {
        Ok(0) => {
            CALLS.store(0, Relaxed);
            api::exit(level(now + 1, last))
        }
        Ok(child) => {
            let status = Child(child).wait();
            if now == 0 {
                println!("{} calls, {status:?}", CALLS.load(Relaxed));
            }
            status.unwrap_or(99)
        }
        Err(error) => {
            println!("level {now}: fork: {error}");
            1
        }
    }
}

fn forks(count: u64) -> Result<(), String> {
    for n in 0..count {
        let status = (n % 100) as i64;
        match control::fork(pass) {
            Ok(0) => api::exit(status),
            Ok(child) => match Child(child).wait() {
                Ok(ended) if ended == status => {}
                other => return Err(format!("copy {n} ended with {other:?}, not {status}")),
            },
            Err(error) => return Err(format!("copy {n}: {error}")),
        }
    }
    Ok(())
}

/// Half of them return from their function, the others ask to end.
fn threads(count: u64) -> Result<(), String> {
    extern "C" fn ends(semaphore: u64) {
        let _ = api::sem_post((semaphore >> 1) as usize);
        if semaphore & 1 == 1 {
            let _ = pebble::portal::call(sys::SYS_THREAD_EXIT, []);
        }
    }
    let failed = |n, error| format!("thread {n}: {error}");
    let semaphore = api::sem_create(0).map_err(|error| failed(0, error))?;
    for n in 0..count {
        let made = api::thread_create(ends, (semaphore as u64) << 1 | n & 1, 0);
        made.and_then(|_| api::sem_wait(semaphore)).map_err(|error| failed(n, error))?;
        // It has yet to end.
        let _ = api::hrsleep(time() + TIME_HZ / 1000);
    }
    Ok(())
}

/// What comes of a job of this program itself.
fn told(outcome: Result<(), String>) -> i64 {
    outcome.map_or_else(
        |what| {
            println!("{what}");
            1
        },
        |()| 0,
    )
}

fn under(arguments: &[&str]) -> i64 {
    let run = || {
        let child = Child::load(arguments[0])?;
        for argument in arguments {
            child.argument(argument)?;
        }
        control::control(child.0, pass)?;
        child.start()?;
        child.wait()
    };
    match run() {
        Ok(status) => {
            println!("{} calls, status {status}", CALLS.load(Relaxed));
            0
        }
        Err(error) => {
            println!("{}: {error}", arguments[0]);
            1
        }
    }
}

fn main() -> i64 {
    let arguments: Vec<String> = io::args().collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.get(1..) {
        Some(["under", rest @ ..]) if !rest.is_empty() => under(rest),
        Some(["forks", count]) => told(forks(count.parse().unwrap_or(1))),
        Some(["threads", count]) => told(threads(count.parse().unwrap_or(1))),
        Some([depth]) => level(0, depth.parse().unwrap_or(1)),
        _ => 2,
    }
}

//! The judge: starts the clients, replaces servers under them, and compares what everybody has counted.
//!
//! A component of the image, since those may import what policy gives to nobody else. `judge.run` is a call
//! of the program `replace-test`; what is found is one line on the console, after lines `FAILED ...`.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

#[path = "../load.rs"]
mod load;
#[path = "../restart.rs"]
mod restart;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use pebble::abi::link::pack;
use pebble::abi::{errno, map};
use pebble::api::{self, Errno};
use pebble::heap;
use pebble::io::{self, File};
use pebble::portal::time;
use pebble::process::Child;
use pebble_replace_test::{CLIENTS, Job};

pebble::import! {
    REPLACE = "process.replace";
    VM = "vm.stats";
    PM = "pm.stats";
    COUNT = "counter.count";
}
pebble::export!("judge.run", "npii", run: fn(u64, u64));
pebble::export!("judge.tick", "npi", tick: fn(u64));
pebble::export!("judge.enter", "np", enter);
pebble::export!("judge.leave", "np", leave);
pebble::export!("judge.report", "npiiiii", report: fn(u64, u64, u64, u64, u64));
pebble::component!(main);

const MILLISECOND: u64 = map::TIME_HZ / 1000;

static STOP: AtomicBool = AtomicBool::new(false);
/// Who is where at most one may be.
static INSIDE: AtomicU64 = AtomicU64::new(0);
static TICKS: [AtomicU64; CLIENTS] = [const { AtomicU64::new(0) }; CLIENTS];
/// Calls counted, marks written (or deaths seen), failures, kinds of failures.
static REPORTS: [[AtomicU64; 4]; CLIENTS] = [const { [const { AtomicU64::new(0) }; 4] }; CLIENTS];
/// What is to be done; its rounds; the outcome.
static JOB: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];
/// Semaphores of the judge's thread and of who waits for it; 0 until made.
static WORK: AtomicUsize = AtomicUsize::new(0);
static DONE: AtomicUsize = AtomicUsize::new(0);

fn main() -> i64 {
    let shared = api::sem_create(1).and_then(|shared| api::sem_publish(shared, "judge.sem"));
    let (Ok(_), Ok(done), Ok(work)) = (shared, api::sem_create(0), api::sem_create(0)) else { return 1 };
    DONE.store(done, SeqCst);
    WORK.store(work, SeqCst);
    loop {
        if api::sem_wait(work).is_ok() {
            let good = work_on(JOB[0].load(SeqCst), JOB[1].load(SeqCst));
            JOB[2].store((!good).into(), SeqCst);
            let _ = api::sem_post(done);
        }
    }
}

fn work_on(job: u64, rounds: u64) -> bool {
    let (Some(job), Ok(console)) = (Job::of(job), io::open("/dev/console")) else { return false };
    let mut judge = Judge { console, failures: 0 };
    match job {
        Job::Load => load::load(&mut judge, rounds),
        Job::Schedulers => load::schedulers(&mut judge, rounds),
        Job::Refused => load::refused(&mut judge, rounds),
        Job::Restart => restart::restart(&mut judge, rounds),
        Job::Policy => restart::policy(&mut judge),
    }
    judge.console.close();
    judge.failures == 0
}

extern "C" fn run(job: u64, rounds: u64) -> i64 {
    while WORK.load(SeqCst) == 0 {
        pause(MILLISECOND);
    }
    JOB[0].store(job, SeqCst);
    JOB[1].store(rounds, SeqCst);
    let _ = api::sem_post(WORK.load(SeqCst));
    match api::sem_wait(DONE.load(SeqCst)) {
        Ok(_) => JOB[2].load(SeqCst) as i64,
        Err(error) => -error,
    }
}

/// A client lives; 0 as long as it is to go on.
extern "C" fn tick(client: u64) -> i64 {
    if let Some(ticks) = TICKS.get(client as usize) {
        ticks.fetch_add(1, SeqCst);
    }
    STOP.load(SeqCst).into()
}

extern "C" fn enter() -> i64 {
    INSIDE.fetch_add(1, SeqCst) as i64
}

extern "C" fn leave() -> i64 {
    INSIDE.fetch_sub(1, SeqCst) as i64
}

extern "C" fn report(client: u64, a: u64, b: u64, c: u64, d: u64) -> i64 {
    let Some(report) = REPORTS.get(client as usize) else { return -errno::EINVAL };
    report.iter().zip([a, b, c, d]).for_each(|(to, word)| to.store(word, SeqCst));
    0
}

fn pause(ticks: u64) {
    let _ = api::hrsleep(time() + ticks);
}

/// Pages that are free or in servers' heaps, domains, threads; portals, code bytes, semaphores, interfaces;
/// what servers have allocated and not freed.
type Resources = [u64; 8];

fn resources() -> Resources {
    // First, since the first time it opens portals.
    let [live, heaps] = heap::told_in_all();
    let words = |import: &pebble::link::Import| import.call_wide([]).map_or([0; 4], |(_, more)| more);
    let ([free, _, domains, threads], [portals, code, semaphores, interfaces]) = (words(&VM), words(&PM));
    [free + heaps, domains, threads, portals, code, semaphores, interfaces, live]
}

/// Pages that servers may keep for good after a peak: a stack has three, and one more is made when more
/// callers than ever are in a server at once. A page lost with each death, successor or refusal is more in
/// all but the shortest of these tests.
const KEPT: u64 = 8;

/// A thread that waits goes on behind the code of the portal through which it began to, however often that
/// has been compiled anew since: the largest such portal.
const CODE: u64 = 512;

fn same(before: Resources, after: Resources) -> bool {
    let [free, _, threads, _, code, ..] = after;
    before[1..4] == after[1..4]
        && before[5..] == after[5..]
        && before[0].saturating_sub(free) <= KEPT
        && code.abs_diff(before[4]) <= CODE * threads
}

/// What there is when nobody is being buried any more.
fn rest() -> Resources {
    let mut seen = resources();
    for _ in 0..50 {
        pause(30 * MILLISECOND);
        let before = core::mem::replace(&mut seen, resources());
        if seen == before {
            break;
        }
    }
    seen
}

pub struct Judge {
    console: File,
    failures: u64,
}

impl Judge {
    fn say(&self, line: &str) {
        let _ = self.console.write(line.as_bytes());
        let _ = self.console.write(b"\n");
    }

    fn check(&mut self, good: bool, what: impl FnOnce() -> String) {
        if !good {
            self.failures += 1;
            self.say(&format!("\nFAILED {}", what()));
        }
    }

    /// Starts the clients and waits until each has called.
    fn start(&mut self, kind: Option<&str>) -> Vec<Child> {
        STOP.store(false, SeqCst);
        TICKS.iter().for_each(|t| t.store(0, SeqCst));
        REPORTS.iter().flatten().for_each(|r| r.store(0, SeqCst));
        let mut children = Vec::new();
        for n in 0..CLIENTS {
            let number = format!("{n}");
            let words = ["load-client", &number, kind.unwrap_or_default()];
            match Child::run("/bin/load-client", &words[..2 + usize::from(kind.is_some())]) {
                Ok(child) => children.push(child),
                Err(error) => self.check(false, || format!("client {n}: {error}")),
            }
        }
        self.let_call(1);
        children
    }

    /// Waits until each client has gone on for so many turns.
    fn let_call(&mut self, turns: u64) {
        let before: Vec<u64> = TICKS.iter().map(|t| t.load(SeqCst)).collect();
        let all = (0..20_000).any(|_| {
            pause(MILLISECOND / 10);
            TICKS.iter().zip(&before).all(|(now, before)| now.load(SeqCst) >= before + turns)
        });
        self.check(all, || "not every client calls".into());
    }

    /// Stops them; what they report: calls, and marks or deaths.
    fn stop(&mut self, children: &[Child]) -> Vec<[u64; 2]> {
        STOP.store(true, SeqCst);
        for child in children {
            let ended = child.wait();
            self.check(matches!(ended, Ok(0 | 1)), || format!("a client ended with {ended:?}"));
        }
        let mut told = Vec::new();
        for (n, report) in REPORTS.iter().enumerate() {
            let [calls, counted, failures, kinds] = [0, 1, 2, 3].map(|i: usize| report[i].load(SeqCst));
            self.check(failures == 0 && calls > 0, || {
                format!("client {n}: {failures} of {calls} calls and more, kinds {kinds:#x}")
            });
            told.push([calls, counted]);
        }
        told
    }

    /// Nothing is lost; burials take a moment.
    fn settles(&self, before: Resources) -> bool {
        (0..200).any(|_| {
            let same = same(before, resources());
            if !same {
                pause(5 * MILLISECOND);
            }
            same
        })
    }

    fn compare(&mut self, before: Resources) {
        let settled = self.settles(before);
        self.check(settled, || format!("leaks: before {before:?}, after {:?}", resources()));
    }
}

/// A component gets a successor out of this file.
fn replace(server: &str, path: &str) -> Result<u64, Errno> {
    let [a, b] = pack::<2>(server).ok_or(errno::ENAMETOOLONG)?;
    let [c, d, e] = pack::<3>(path).ok_or(errno::ENAMETOOLONG)?;
    api::answer(REPLACE.call([a, b, c, d, e]))
}

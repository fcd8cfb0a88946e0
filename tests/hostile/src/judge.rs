//! Starts hostile components and judges what comes of it.

use crate::kinds::{ALL, End, Kind};
use alloc::format;
use alloc::string::String;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use pebble::abi::consent::Letters;
use pebble::abi::{status, sys};
use pebble::api;
use pebble::attack;
use pebble::heap;
use pebble::portal::{MILLISECOND, call, call_wide, time};
use pebble::println;
use pebble::process::Child;

/// Rounds before anything is counted.
const WARM_UP: u32 = 2;

/// What must be the same before and after: pages that are free or in servers' heaps, which do not shrink;
/// domains, threads; portals, code bytes, semaphores, interfaces; what servers have allocated and not freed.
pub type Resources = [u64; 8];

pub struct Judge {
    vm: usize,
    pm: usize,
    passed: u32,
    failed: u32,
}

pub fn all(rounds: u32) -> i64 {
    with_judge(|judge| {
        judge.registers();
        judge.steadily(rounds, Judge::round);
    })
}

/// Only what has to do with windows: `windows.rs`.
pub fn windows(which: &str, rounds: u32) -> i64 {
    with_judge(|judge| crate::windows::all(judge, which, rounds))
}

fn with_judge(judges: impl FnOnce(&mut Judge)) -> i64 {
    let (Ok(vm), Ok(pm)) = (api::portal_open("vm.stats"), api::portal_open("pm.stats")) else { return 1 };
    let mut judge = Judge { vm, pm, passed: 0, failed: 0 };
    // Opens what it looks through, before anybody opens anything else.
    judge.resources();
    judges(&mut judge);
    println!("hostile: {} passed, {} failed", judge.passed, judge.failed);
    i64::from(judge.failed != 0)
}

/// Calls with a time limit: `late.rs`.
pub fn late(rounds: u32) -> i64 {
    with_judge(|judge| crate::late::all(judge, rounds))
}

/// A server that calls itself: `late.rs`.
pub fn dive(name: &str, limits: [u64; 3]) -> i64 {
    with_judge(|judge| crate::late::dive(judge, name, limits))
}

/// Pages lent to the servers of files and pipes: `streams.rs`.
pub fn streams(rounds: u32) -> i64 {
    with_judge(|judge| crate::streams::all(judge, rounds))
}

/// Pages that go through pipes: `flips.rs`.
pub fn flips(rounds: u32) -> i64 {
    with_judge(|judge| crate::flips::all(judge, rounds))
}

/// Faults by address range: `pages.rs`.
pub fn pages(rounds: u32) -> i64 {
    with_judge(|judge| crate::pages::all(judge, rounds))
}

/// Domains, threads, portals, semaphores and interfaces that there are when all is quiet.
pub fn count() -> i64 {
    with_judge(|judge| {
        let [_, domains, threads, portals, _, semaphores, interfaces, _] = judge.rest();
        println!("{domains} {threads} {portals} {semaphores} {interfaces}");
    })
}

/// Whether any do come.
pub fn pages_come() -> i64 {
    with_judge(crate::pages::come)
}

/// Full invocation stacks: `depth.rs`.
pub fn depth(rounds: u32) -> i64 {
    with_judge(|judge| crate::depth::all(judge, rounds))
}

/// What opening gives away: `consent.rs`.
pub fn consent(rounds: u32) -> i64 {
    with_judge(|judge| crate::consent::all(judge, rounds))
}

/// What others put into one's table: `gifts.rs`.
pub fn gifts(rounds: u32) -> i64 {
    with_judge(|judge| crate::gifts::all(judge, rounds))
}

/// Who may open: `guards.rs`.
pub fn guards(rounds: u32) -> i64 {
    with_judge(|judge| crate::guards::all(judge, rounds))
}

/// Broken and hostile program files: `files.rs`.
pub fn files(rounds: u32) -> i64 {
    with_judge(|judge| crate::files::all(judge, rounds))
}

/// No memory for files: `fill.rs`.
pub fn fill(first: usize, keep: bool) -> i64 {
    with_judge(|judge| crate::fill::all(judge, first, keep))
}

/// Names by capability: `secrets.rs`.
pub fn secrets(rounds: u32) -> i64 {
    with_judge(|judge| crate::secrets::all(judge, rounds))
}

/// Files by capability: `paths.rs`.
pub fn paths(rounds: u32) -> i64 {
    with_judge(|judge| crate::paths::all(judge, rounds))
}

/// Devices by capability: `devices.rs`.
pub fn devices(rounds: u32) -> i64 {
    with_judge(|judge| crate::devices::all(judge, rounds))
}

/// Argument letters: `templates.rs`.
pub fn templates(rounds: u32) -> i64 {
    with_judge(|judge| crate::templates::all(judge, rounds))
}

impl Judge {
    pub fn resources(&self) -> Resources {
        let [live, heaps] = heap::told_in_all();
        let words = |index| call_wide(index, [0; 5]).map_or([0; 4], |(_, more)| more);
        let ([free, _, domains, threads], [portals, code, semaphores, interfaces]) =
            (words(self.vm), words(self.pm));
        [free + heaps, domains, threads, portals, code, semaphores, interfaces, live]
    }

    /// So many rounds, and nothing is lost. What servers keep for good after a peak (pages for stacks and
    /// tables) is not; a leak comes again.
    pub fn steadily(&mut self, rounds: u32, mut round: impl FnMut(&mut Judge)) {
        // The first line of a program opens portals: what fails later must not look like a leak as well.
        println!("{rounds} rounds");
        (0..WARM_UP).for_each(|_| round(self));
        for tries_left in (0..5).rev() {
            let before = self.rest();
            (0..rounds).for_each(|_| round(self));
            let after = self.settled(before);
            if tries_left == 0 || before[0] == after[0] || before[1..] != after[1..] {
                return self.nothing_leaks(before);
            }
        }
    }

    fn nothing_leaks(&mut self, before: Resources) {
        let after = self.settled(before);
        self.check("nothing leaks", before == after, || format!("before {before:?}, after {after:?}"));
    }

    /// What there is when nobody is being buried any more.
    pub fn rest(&self) -> Resources {
        let mut seen = self.resources();
        for _ in 0..50 {
            let before = core::mem::replace(&mut seen, self.later());
            if seen == before {
                break;
            }
        }
        seen
    }

    fn later(&self) -> Resources {
        let _ = api::hrsleep(time() + 30 * MILLISECOND);
        self.resources()
    }

    /// Burials take a moment.
    pub fn settled(&self, wanted: Resources) -> Resources {
        for _ in 0..200 {
            if self.resources() == wanted {
                break;
            }
            let _ = api::hrsleep(time() + 5 * MILLISECOND);
        }
        self.resources()
    }

    pub fn check(&mut self, what: &str, good: bool, otherwise: impl FnOnce() -> String) {
        if good {
            self.passed += 1;
        } else {
            self.failed += 1;
            println!("FAILED {what}: {}", otherwise());
        }
    }

    /// An answer.
    pub fn same(&mut self, what: &str, said: i64, wanted: i64) {
        self.check(what, said == wanted, || format!("{said}, not {wanted}"));
    }

    fn round(&mut self) {
        for kind in ALL {
            self.program(kind);
            self.server(kind);
        }
    }

    /// Nothing but arguments and results crosses, in either direction, and a `p` callee cannot spoil
    /// preserved registers.
    fn registers(&mut self) {
        let name = format!("mirror{}", api::get_asid());
        let Ok(child) = Child::run("/bin/hostile", &["hostile", "mirror", &name]) else {
            return self.check("registers", false, || "the mirror did not start".into());
        };
        let portal = self.await_portal(&name);
        let seen = attack::call_and_look(portal.unwrap_or(0));
        self.check("registers in the callee", seen.value == 0, || format!("not zero: {:#x}", seen.value));
        self.check("registers in the caller", seen.leaked == 0, || format!("not zero: {:#x}", seen.leaked));
        self.check("preserved registers", seen.lost == 0, || format!("lost: {:#x}", seen.lost));
        for (what, portal) in [("short-circuit", sys::SYS_GET_ASID), ("scheduler", sys::SYS_YIELD)] {
            let seen = attack::call_and_look(portal);
            // A short-circuit portal leaves alone what is the caller's.
            let leaked = if portal == sys::SYS_GET_ASID { seen.leaked & 1 << 3 } else { seen.leaked };
            self.check(what, leaked == 0 && seen.lost == 0 && seen.status == 0, || {
                format!("{leaked:#x} {:#x}", seen.lost)
            });
        }
        let _ = portal.map(|index| api::portal_close(index, 1));
        let _ = child.kill();
        let _ = child.wait();
    }

    pub fn await_portal(&self, name: &str) -> Option<usize> {
        self.await_given(name, "")
    }

    /// A portal that may take these letters.
    pub fn await_given(&self, name: &str, letters: &str) -> Option<usize> {
        (0..1000).find_map(|_| {
            let _ = api::hrsleep(time() + MILLISECOND / 5);
            api::portal_open_with(name, Letters::of(letters)).ok().map(|opened| opened.index)
        })
    }

    /// As a program of its own.
    fn program(&mut self, kind: &Kind) {
        let what = format!("do {}", kind.name);
        let child = match Child::run("/bin/hostile", &["hostile", "do", kind.name]) {
            Ok(child) => child,
            Err(error) => return self.check(&what, false, || format!("did not start: {error}")),
        };
        if kind.end == End::Runs {
            let _ = api::hrsleep(time() + 3 * MILLISECOND);
            let _ = child.kill();
        }
        let ended = child.wait();
        let good = match (kind.end, ended) {
            (End::Fault, Ok(status)) => status > 128 && status != 137,
            (End::Runs, Ok(status)) => status == 137,
            (End::Status(wanted), Ok(status)) => status == wanted,
            (_, Err(_)) => false,
        };
        self.check(&what, good, || format!("ended with {ended:?}"));
    }

    /// As a server, inside our call: we must get control back, with an error that names it, and our registers
    /// as they were.
    fn server(&mut self, kind: &Kind) {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let what = format!("serve {}", kind.name);
        let name = format!("victim{}.{}", api::get_asid(), SERIAL.fetch_add(1, Relaxed));
        let child = match Child::run("/bin/hostile", &["hostile", "serve", kind.name, &name]) {
            Ok(child) => child,
            Err(error) => return self.check(&what, false, || format!("did not start: {error}")),
        };
        let Some(portal) = self.await_portal(&name) else {
            let _ = child.kill();
            let _ = child.wait();
            return self.check(&what, false, || "never came up".into());
        };
        // What runs for ever is killed while it has our call.
        let killer = (kind.end == End::Runs).then(|| api::thread_create(kill_soon, child.0.into(), 0));
        let answer = call(portal, [1, 2, 3, 4, 5]);
        let named = matches!(answer, Err(broken) if status::domain(broken.0) == child.0 && status::code(broken.0) == status::DEAD);
        let _ = killer;
        if answer.is_ok() {
            // Nothing has stopped it: it would serve on.
            let _ = child.kill();
        }
        let ended = child.wait();
        let later = call(portal, [0; 5]);
        let closed = matches!(later, Err(broken) if status::domain(broken.0) == child.0);
        let _ = api::portal_close(portal, 1);
        self.check(&what, named && closed && ended.is_ok(), || {
            format!("the call returned {answer:?}, the next one {later:?}, the server ended with {ended:?}")
        });
    }
}

extern "C" fn kill_soon(asid: u64) {
    let _ = api::hrsleep(time() + 3 * MILLISECOND);
    let _ = Child(asid as u16).kill();
}

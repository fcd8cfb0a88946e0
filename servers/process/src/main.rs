//! The process server's component: entries around the library.
//!
//! The table's lock is never held across a call to another server but the scheduler. The loader's lock is
//! taken before the table's. No entry waits here for what only others' doing brings: who waits for a child,
//! or for the loader, is parked.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

mod components;
mod interpose;
mod kept;
mod loader;
mod replacement;
mod report;
mod services;
mod undertaker;

use loader::Why;
use pebble::abi::map::MAX_DOMAINS;
use pebble::abi::{errno, sys};
use pebble::api::{self, Errno};
use pebble::link::More;
use pebble::sync::Lock;
use pebble::wait::{Parking, leave};
use pebble::words::{Asid, VirtAddr, Word};
use pebble_process::startup;
use pebble_process::table::{Farewell, Table};
use services::{WAKE, WILL_WAKE};

pebble::interfaces!();
pebble::component!(main);

static TABLE: Lock<Table> = Lock::new(Table::new());

/// Who waits for which child.
static WAITING: Parking<MAX_DOMAINS> = Parking::new(&WILL_WAKE, &WAKE);

/// Where lines go, and the standard files of programs that a component of the image starts.
const CONSOLE: &str = "/dev/console";

/// The first thread: the undertaker.
fn main() -> i64 {
    TABLE.prepare();
    WAITING.prepare();
    loader::prepare();
    replacement::prepare();
    // Nobody shall find the table empty.
    let mut table = TABLE.lock();
    for (domain, name) in components::prepare() {
        table.boot(domain, name);
    }
    drop(table);
    let _ = api::thread_create(reaper, 0, 0);
    undertaker::run()
}

/// A running program whose last thread has exited has ended, unless it offers something.
fn end_if_idle(domain: Asid) {
    if !services::active(domain) && TABLE.lock().exit(domain, 0).is_ok() {
        services::signal();
    }
}

/// The second: frees exited threads. It is more urgent than programs, which make threads as fast as they
/// like: it looks at nobody but whose thread it was.
extern "C" fn reaper(_: u64) {
    loop {
        let Some(home) = services::reap() else { continue };
        let runs = TABLE.lock().runs(home);
        if runs {
            end_if_idle(home);
        }
    }
}

fn answer<T: Word>(result: Result<T, Errno>) -> i64 {
    result.map_or_else(|error| -error, |value| value.word() as i64)
}

fn done(result: Result<(), Errno>) -> i64 {
    answer(result.map(|()| 0u64))
}

/// Who asks: the controlled domain that the caller serves, if it does. Children are that one's.
fn asker(caller: Asid) -> Asid {
    services::subject().ok().and_then(|subject| subject.served).unwrap_or(caller)
}

extern "C" fn spawn(caller: Asid, a: u64, b: u64, c: u64, d: u64, e: u64) -> i64 {
    answer(loader::spawn(asker(caller), [a, b, c, d, e]))
}

/// The child with the number of bytes, and whose they are, in bits 16 and up.
extern "C" fn argument(caller: Asid, child: u64, a: u64, b: u64, c: u64, d: u64) -> i64 {
    let caller = asker(caller);
    done(TABLE.lock().argument(caller, Asid(child & 0xffff), &[a, b, c, d], child >> 16))
}

/// The child with the file's number in bits 16 and up.
extern "C" fn stdio(caller: Asid, child: u64, a: u64, b: u64, c: u64, d: u64) -> i64 {
    let caller = asker(caller);
    done(TABLE.lock().stdio(caller, Asid(child & 0xffff), child >> 16, [a, b, c, d, 0]))
}

extern "C" fn start(caller: Asid, child: Asid) -> i64 {
    done(loader::start(asker(caller), child.number().into()))
}

extern "C" fn wait(caller: Asid, child: Asid) -> i64 {
    let (caller, child) = (asker(caller), Asid::from(child.number()));
    let mut table = TABLE.lock();
    let Some(outcome) = table.wait(caller, child) else {
        WAITING.enter(child.get() as usize);
        drop(table);
        leave()
    };
    drop(table);
    answer(outcome.map(|Farewell { status, free }| {
        if free {
            services::free(child);
        }
        u64::from(status)
    }))
}

extern "C" fn share(caller: Asid, domain: Asid, percent: u64) -> i64 {
    let caller = asker(caller);
    let most = TABLE.lock().may_share(caller, domain, percent);
    answer(most.and_then(|percent| services::share(domain, percent)))
}

extern "C" fn kill(caller: Asid, domain: Asid) -> i64 {
    let caller = asker(caller);
    let result = TABLE.lock().kill(caller, domain);
    services::signal();
    done(result)
}

/// The caller's domain is dead when this returns, so that nobody returns. An error number in the status's
/// upper half: what it said is lost. Who has stopped reading a pipe need not be told so.
extern "C" fn exit(caller: Asid, status: u64) -> i64 {
    let lost = Errno::new((status >> 32) as i64);
    if (1..4096).contains(&lost.number()) && lost != errno::EPIPE {
        let entry = TABLE.lock().list(caller).filter(|entry| entry.domain == caller);
        if let Some(entry) = entry {
            loader::refuse(&entry.path, Why::Unheard(lost));
        }
    }
    let result = TABLE.lock().exit(caller, status);
    services::signal();
    if result.is_ok() {
        // Not left to the undertaker, who may be busy. This thread's way back leads through the domain, so
        // its number is its own.
        services::kill(caller);
    }
    done(result)
}

/// A controlled child: a copy of the caller (`child` 0; `p3`: its stack), or one that it has spawned and not
/// started. Without a handler: starts a copy at address `p3`.
extern "C" fn control(caller: Asid, child: Asid, handler: VirtAddr, p3: VirtAddr, sp: VirtAddr) -> i64 {
    let child = Asid::from(child.number());
    answer(match (child, handler) {
        (Asid(0), _) => interpose::fork(caller, handler, p3),
        (_, VirtAddr(0)) => interpose::start(caller, child, p3, sp),
        _ => interpose::control(caller, child, handler),
    })
}

/// A controller asks for the child that it serves.
extern "C" fn on_behalf(index: u64, a: u64, b: u64, c: u64, d: u64, _: u64) -> i64 {
    let subject = match services::subject() {
        Ok(subject) => subject.domain,
        Err(error) => return -error,
    };
    match index as usize {
        sys::SYS_EXIT => exit(subject, a),
        sys::SYS_PROCESS => control(subject, Asid(a), VirtAddr(b), VirtAddr(c), VirtAddr(d)),
        _ => -errno::ENOSYS,
    }
}

/// The first domain from there: its name, state and parent, and all faults so far.
extern "C" fn list(from: Asid, _: u64, _: u64, _: u64, _: u64, _: u64, more: &mut More) -> i64 {
    let table = TABLE.lock();
    match table.list(from) {
        Some(entry) => {
            let [a, b] = startup::name(&entry.path);
            *more =
                [a, b, entry.state.number() | entry.parent.unwrap_or_default().get() << 16, table.faults()];
            entry.domain.get() as i64
        }
        None => -errno::ENOENT,
    }
}

/// The next bytes of the console's log, for whom the image has started: any program can start one whom the
/// rules name, and hear what it reads.
extern "C" fn log(caller: Asid, from: u64, _: u64, _: u64, _: u64, _: u64, more: &mut More) -> i64 {
    let allowed = TABLE.lock().may_replace(caller);
    answer(allowed.and_then(|()| services::log(from)).map(|(end, words)| {
        *more = words;
        end
    }))
}

/// A component's name, and whether its clients wait for another one when it dies.
extern "C" fn keep(a: u64, b: u64, keep: u64) -> i64 {
    done(replacement::keep([a, b, 0, 0, 0], keep != 0))
}

/// The next component that has died, once there is one: its domain; its name.
extern "C" fn death(_: u64, _: u64, _: u64, _: u64, _: u64, _: u64, more: &mut More) -> i64 {
    answer(replacement::next_death().map(|(domain, name)| {
        *more = [name[0], name[1], 0, 0];
        domain.get()
    }))
}

/// A component's name in two words, a path in three: the new domain.
extern "C" fn replace(caller: Asid, a: u64, b: u64, c: u64, d: u64, e: u64) -> i64 {
    let allowed = TABLE.lock().may_replace(caller);
    answer(allowed.and_then(|()| replacement::replace([a, b, 0, 0, 0], [c, d, e, 0, 0])))
}

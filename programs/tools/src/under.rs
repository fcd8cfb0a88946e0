//! Running a program under control, for tools that see each of its calls.
//!
//! **Problem.** The program must not be able to tell. The tables of a controller and of its child share their
//! indices, so whatever the controller has opened for itself would be a gap in the child's numbering.
//!
//! **Strategy.** [`prepare`] makes the tool a controller, whose own portals have indices that no program
//! reaches; then it opens all that the tool needs until its end. And in the list of processes a program under
//! control does not see the tool: its parent is the tool's parent.

use crate::calls::{self, Portals, Words};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use pebble::api::{self, Errno};
use pebble::control::{self, Answer, Entry};
use pebble::portal::call_wide;
use pebble::process::{self, Child};
use pebble::sync::Lock;
use pebble_abi::{errno, sys};

/// Its portals. Never held in a call.
pub static PORTALS: Lock<Portals> = Lock::new(Portals::new());
/// Whole lines, one after the other.
static LINES: Lock<()> = Lock::new(());
/// This domain, and its parent.
static SELF: AtomicUsize = AtomicUsize::new(0);
static PARENT: AtomicUsize = AtomicUsize::new(0);

/// Opens what a tool needs; `more` opens what this one needs besides.
pub fn prepare<T>(more: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    control::prepare_apart()?;
    // Memory now: a heap that grows later would do it in the midst of a call.
    process::prepare()?;
    let _ = pebble::io::standard(2);
    PORTALS.prepare();
    PORTALS.lock().set_behalf(control::behalf());
    LINES.prepare();
    let more = more()?;
    let list = api::portal_open("process.list")?;
    let asid = usize::from(api::get_asid());
    SELF.store(asid, Relaxed);
    if let Ok((_, [_, _, state, _])) = call_wide(list, [asid as u64, 0, 0, 0, 0]) {
        PARENT.store((state >> 16) as usize & 0xffff, Relaxed);
    }
    Ok(more)
}

/// Why a tool's program did not run: what could not be had, and what to do about it.
pub struct Failure {
    what: String,
    error: Errno,
}

impl Failure {
    pub fn new(what: impl Into<String>, error: Errno) -> Self {
        Failure { what: what.into(), error }
    }
}

impl From<Errno> for Failure {
    fn from(error: Errno) -> Self {
        Failure::new(error.text(), error)
    }
}

/// Runs a program with the tool's own standard files: its domain, and its exit status. `started` learns the
/// domain before it runs.
pub fn run(arguments: &[String], handler: Entry, started: impl FnOnce(u16)) -> Result<i64, Failure> {
    let name = arguments.first().ok_or(errno::EINVAL)?;
    let path = if name.contains('/') { name.clone() } else { format!("/bin/{name}") };
    let child = Child::load(&path).map_err(|error| not_loaded(&path, error))?;
    let make = || {
        for argument in arguments {
            child.argument(argument)?;
        }
        for variable in pebble::io::environment() {
            child.environment(&variable)?;
        }
        for n in 0..3 {
            child.stdio(n, &pebble::io::standard_path(n))?;
        }
        control::control(child.0, handler)?;
        started(child.0);
        child.start()
    };
    if let Err(error) = make() {
        let _ = child.kill();
        let _ = child.wait();
        return Err(Failure::new(format!("{path}: {error}"), error));
    }
    child.wait().map_err(Failure::from)
}

fn not_loaded(path: &str, error: Errno) -> Failure {
    let what = match error {
        errno::ENOENT => format!("{path}: no such program; 'ls /bin' lists those that there are"),
        _ => format!("{path}: {error}"),
    };
    Failure::new(what, error)
}

/// All interfaces that there are; of those without a name in the name server, what each program is born with.
pub fn interfaces() -> Result<Vec<String>, Errno> {
    let list = api::portal_open("name.list")?;
    let mut names: Vec<String> = sys::ALL.iter().map(|(_, name)| String::from(*name)).collect();
    let mut from = 0;
    while let Ok((0.., [a, b, c, owner])) = call_wide(list, [from, 0, 0, 0, 0]) {
        names.push(calls::text(&[a, b, c]));
        from = owner >> 16;
    }
    let _ = api::portal_close(list, 1);
    Ok(names)
}

/// The interface behind an index. Never asked while the portals are held: that is a call.
pub fn name(index: usize) -> String {
    let known = String::from(PORTALS.lock().name(index));
    if known != calls::NAMELESS {
        return known;
    }
    let Ok(words) = control::name(index) else { return known };
    let name = calls::text(&words);
    PORTALS.lock().set(index, name.clone());
    name
}

/// Goes on with a call, and learns from it.
pub fn pass(index: usize, name: &str, p: Words) -> Answer {
    let answer = match name {
        "process.list" => list(index, p),
        "vm.stats" => stats(index, p),
        _ => control::pass(index, p),
    };
    if answer.status == 0 {
        PORTALS.lock().learn(index, &p, answer.value);
    }
    answer
}

/// Without the tool, which is a domain with one thread of its own.
fn stats(index: usize, p: Words) -> Answer {
    let mut answer = control::pass(index, p);
    if answer.value == 0 {
        let [_, _, domains, threads, ..] = &mut answer.more;
        (*domains, *threads) = (domains.saturating_sub(1), threads.saturating_sub(1));
    }
    answer
}

/// Without the tool.
fn list(index: usize, mut p: Words) -> Answer {
    let mut answer = control::pass(index, p);
    let own = SELF.load(Relaxed) as i64;
    if answer.value == own {
        p[0] = own as u64 + 1;
        answer = control::pass(index, p);
    }
    if answer.value >= 0 && answer.more[2] >> 16 == own as u64 {
        answer.more[2] = answer.more[2] & 0xffff | (PARENT.load(Relaxed) as u64) << 16;
    }
    answer
}

/// A line, or several, on standard error.
pub fn say(text: &str) {
    let _whole = LINES.lock();
    if let Ok(file) = pebble::io::standard(2) {
        let _ = file.write(text.as_bytes());
    }
}

/// How a tool ends: with the status of its program, or a word on why that did not run.
pub fn end(tool: &str, result: Result<i64, Failure>) -> i64 {
    match result {
        Ok(status) => status,
        Err(Failure { what, error }) => {
            say(&format!("{tool}: {what}\n"));
            if error == errno::ENOENT { 127 } else { 126 }
        }
    }
}

/// How it is called.
pub fn usage(text: &str) -> i64 {
    say(&format!("usage: {text}\n"));
    2
}

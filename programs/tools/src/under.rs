//! Running a program under control, for tools that see each of its calls.
//!
//! **Problem.** The program must not be able to tell. The tables of a controller and of its child share their indices, so whatever
//! the controller opens for itself leaves a gap in the child's numbering, and a stub.
//!
//! **Strategy.** [`prepare`] takes the low indices, opens behind them all that the tool needs until its end, and gives the low ones back:
//! they are the program's, as if there were no controller. [`run`] takes away the stubs for the tool's own portals. And
//! in the list of processes a program under control does not see the tool: its parent is the tool's parent.

use crate::calls::{Portals, Words};
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

/// Indices that are left to the program.
const LOW: usize = 128;

/// Its portals. Never held in a call.
pub static PORTALS: Lock<Portals> = Lock::new(Portals::new());
/// Whole lines, one after the other.
static LINES: Lock<()> = Lock::new(());
/// This domain, and its parent.
static SELF: AtomicUsize = AtomicUsize::new(0);
static PARENT: AtomicUsize = AtomicUsize::new(0);

/// The tool's own portals: they lie above all that it has taken and given back.
pub struct Ready {
    own: core::ops::Range<usize>,
}

/// Opens what a tool needs; `more` opens what this one needs besides.
pub fn prepare<T>(more: impl FnOnce() -> Result<T, Errno>) -> Result<(Ready, T), Errno> {
    let mut low = Vec::new();
    for _ in 0..LOW {
        low.push(api::portal_open("vm.stats")?);
    }
    // Memory now: a heap that grows later would do it in the midst of a call.
    process::prepare()?;
    control::prepare()?;
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
    let first = low.iter().max().map_or(sys::FIRST_FREE, |last| last + 1);
    for index in low {
        api::portal_close(index, 1)?;
    }
    Ok((Ready { own: first..list + 1 }, more))
}

/// Runs a program with the tool's own standard files: its domain, and its exit status. `started` learns the domain before it runs.
pub fn run(
    ready: &Ready,
    arguments: &[String],
    handler: Entry,
    started: impl FnOnce(u16),
) -> Result<i64, Errno> {
    let name = arguments.first().ok_or(errno::EINVAL)?;
    let path = if name.contains('/') { name.clone() } else { format!("/bin/{name}") };
    let child = Child::load(&path)?;
    let make = || {
        for argument in arguments {
            child.argument(argument)?;
        }
        for n in 0..3 {
            child.stdio(n, &pebble::io::standard_path(n))?;
        }
        control::control(child.0, handler)?;
        for index in ready.own.clone() {
            control::create_child(child.0, index, "", 0, handler)?;
        }
        started(child.0);
        child.start()
    };
    if let Err(error) = make() {
        let _ = child.kill();
        let _ = child.wait();
        return Err(error);
    }
    child.wait()
}

/// The interface behind an index.
pub fn name(index: usize) -> String {
    PORTALS.lock().name(index).into()
}

/// Goes on with a call, and learns from it.
pub fn pass(index: usize, name: &str, p: Words) -> Answer {
    let answer = if name == "process.list" { list(index, p) } else { control::pass(index, p) };
    if answer.status == 0 {
        PORTALS.lock().learn(index, &p, answer.value);
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
pub fn end(tool: &str, result: Result<i64, Errno>) -> i64 {
    match result {
        Ok(status) => status,
        Err(error) => {
            say(&format!("{tool}: {}\n", errno::text(error)));
            if error == errno::ENOENT { 127 } else { 126 }
        }
    }
}

/// How it is called.
pub fn usage(text: &str) -> i64 {
    say(&format!("usage: {text}\n"));
    2
}

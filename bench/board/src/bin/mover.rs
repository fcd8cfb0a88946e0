//! Has a server replaced, and a program started and killed, over and over, while `load` measures what that
//! does to the paths with interrupts off: domains come and die, portals are compiled and re-aimed, names and
//! stacks change hands.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use core::sync::atomic::{AtomicI64, Ordering::Relaxed};
use pebble::abi::errno;
use pebble::abi::link::pack;
use pebble::api::{self, Errno};
use pebble::portal::{MILLISECOND, call_once as call, time};
use pebble::process::Child;

pebble::import! {
    MOVE = "semaphore.move";
    REPLACE = "process.replace";
}
pebble::export!("mover.done", "np", done);
pebble::component!(main);

/// Replacements and deaths together, so far; or the error of the last attempt, negative.
static DONE: AtomicI64 = AtomicI64::new(0);

fn main() -> i64 {
    let _ = call(MOVE.index(), []);
    loop {
        match replace().and_then(|()| born_and_dead()) {
            Ok(()) => drop(DONE.fetch_add(1, Relaxed)),
            Err(error) => DONE.store(-error, Relaxed),
        }
        let _ = api::hrsleep(time() + MILLISECOND / 10);
    }
}

fn replace() -> Result<(), Errno> {
    let [a, b] = pack::<2>("trivial").ok_or(errno::ENAMETOOLONG)?;
    let [c, d, e] = pack::<3>("components/trivial").ok_or(errno::ENAMETOOLONG)?;
    api::answer(REPLACE.call([a, b, c, d, e])).map(|_| ())
}

fn born_and_dead() -> Result<(), Errno> {
    let child = Child::run("/bin/sleep", &["sleep", "1000"])?;
    child.kill()?;
    child.wait().map(drop)
}

extern "C" fn done() -> i64 {
    DONE.load(Relaxed)
}

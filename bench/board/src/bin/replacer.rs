//! Has servers replaced for the program `replacement`, which measures it: a component of the image, since
//! those may import what policy gives to nobody else.
//!
//! Its thread, the least urgent of all, does the replacing, so that it is the client's calls that interrupt
//! the replacement.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use core::sync::atomic::{AtomicI64, AtomicUsize, Ordering::SeqCst};
use pebble::abi::link::pack;
use pebble::abi::{errno, handover as ask};
use pebble::api::{self, Errno};
use pebble::portal::{call_once as call, timed_call};

pebble::import! {
    REPLACE = "process.replace";
    LEAVE = "scheduler.handover";
    TAKEOVER = "scheduler.takeover";
}
pebble::export!("replacer.begin", "np", begin);
pebble::export!("replacer.done", "np", done);
pebble::export!("replacer.schedule", "np", schedule);
pebble::export!("replacer.takeover", "np", takeover);
pebble::component!(main);

/// V begins a replacement; 0 until made.
static WORK: AtomicUsize = AtomicUsize::new(0);
/// Replacements made, or the error that ended them, negative.
static DONE: AtomicI64 = AtomicI64::new(0);

fn main() -> i64 {
    let Ok(work) = api::sem_create(0) else { return 1 };
    WORK.store(work, SeqCst);
    while api::sem_wait(work).is_ok() {
        match replace("trivial", "components/trivial") {
            Ok(()) => DONE.fetch_add(1, SeqCst),
            Err(error) => DONE.swap(-error, SeqCst),
        };
    }
    1
}

fn replace(server: &str, path: &str) -> Result<(), Errno> {
    let [a, b] = pack::<2>(server).ok_or(errno::ENAMETOOLONG)?;
    let [c, d, e] = pack::<3>(path).ok_or(errno::ENAMETOOLONG)?;
    api::answer(REPLACE.call([a, b, c, d, e])).map(|_| ())
}

extern "C" fn begin() -> i64 {
    call(WORK.load(SeqCst) + 1, []).unwrap_or(-errno::EIO)
}

extern "C" fn done() -> i64 {
    DONE.load(SeqCst)
}

/// The scheduler is replaced by its like.
extern "C" fn schedule() -> i64 {
    replace("scheduler", "components/scheduler").map_or_else(|error| -error, |()| 0)
}

/// The scheduler in charge takes over what lies in the shared data once more, as it did when it came into
/// office: instructions.
extern "C" fn takeover() -> i64 {
    let format = match LEAVE.call_wide([ask::LEAVE]) {
        Ok((format, _)) if format >= 0 => format as u64,
        Ok((error, _)) => return error,
        Err(_) => return -errno::EIO,
    };
    if TAKEOVER.call([ask::FINISH, format]) != Ok(0) {
        return -errno::EINVAL;
    }
    timed_call(TAKEOVER.index(), [ask::FINISH, format, 0, 0, 0]) as i64
}

//! Calls with a time limit.
//!
//! The clock notes the place on this thread's invocation stack, and the time. When that has passed, what the
//! call waits for is cut short, and all that lies above the place returns; this function then has the status
//! `TIMEOUT`, with the domain that had the call.

use crate::api;
use crate::client::clock;
use crate::portal::{Broken, call};
use crate::words::Ticks;
use core::sync::atomic::{AtomicUsize, Ordering};
use pebble_abi::{errno, status};

static BOUND: AtomicUsize = AtomicUsize::new(0);
static UNBOUND: AtomicUsize = AtomicUsize::new(0);

/// For components that import the clock's two portals, and cannot open them by name.
pub fn bind(bound: usize, unbound: usize) {
    BOUND.store(bound, Ordering::Relaxed);
    UNBOUND.store(unbound, Ordering::Relaxed);
}

/// Of domain 0: any other has closed the portal that was to be called.
const NO_CLOCK: u64 = status::CLOSED;

/// The call was not made, for want of a clock that keeps its time.
pub fn no_clock(broken: Broken) -> bool {
    broken.0 == NO_CLOCK || status::code(broken.0) == status::LIMITS
}

/// The portal of that name, opened once.
fn opened(place: &AtomicUsize, name: &str) -> Option<usize> {
    if place.load(Ordering::Relaxed) == 0 {
        place.store(api::portal_open(name).ok()?, Ordering::Relaxed);
    }
    Some(place.load(Ordering::Relaxed))
}

/// [`call`], but back after so many ticks at the latest; a trusted server finishes what it is doing first,
/// and its answer stands. Status `CLOSED` of domain 0: there is no clock that would keep the time, or it
/// keeps too many, and the call has not been made.
pub fn call_within(ticks: u64, index: usize, p: [u64; 5]) -> Result<i64, Broken> {
    let (bound, unbound) = opened(&BOUND, <clock::Bound>::NAME)
        .zip(opened(&UNBOUND, <clock::Unbound>::NAME))
        .ok_or(Broken(NO_CLOCK))?;
    let number = match clock::Bound(bound).call(Ticks(ticks)) {
        Ok(number @ 0..) => number as u64,
        Ok(error) if error == -errno::ETIMELIMITS => {
            return Err(Broken(status::LIMITS | u64::from(api::get_asid()) << 16));
        }
        Err(Broken(gone)) if !matches!(status::code(gone), status::CLOSED | status::DEAD) => {
            return Err(Broken(gone));
        }
        _ => return Err(Broken(NO_CLOCK)),
    };
    let result = call(index, p);
    // A clock that is being replaced must hear of it all the same: what comes next is not bounded.
    let late = loop {
        match clock::Unbound(unbound).call(number) {
            Err(broken) if broken.moved() => {}
            late => break late,
        }
    };
    match (result, late) {
        (Ok(value), Ok(late @ 1..)) if value == -errno::EINTR => {
            Err(Broken(status::TIMEOUT | (late as u64) << 16))
        }
        // Parked, until a server would have woken it; or waiting for one that was being replaced.
        (Err(Broken(cut)), Ok(1..)) if matches!(status::code(cut), status::INTERRUPTED | status::MOVED) => {
            Err(Broken(status::TIMEOUT | u64::from(status::domain(cut)) << 16))
        }
        _ => result,
    }
}

/// Whoever is told that threads are taken out of this domain: their calls' time was over while this domain
/// had them.
pub struct Watch(usize);

impl Watch {
    /// From now on; one at a time.
    pub fn new() -> Result<Watch, api::Errno> {
        let semaphore = api::sem_create(0)?;
        control(pebble_abi::control::WATCH, semaphore as u64)?;
        Ok(Watch(semaphore))
    }

    /// Waits for the next thread that is taken out.
    pub fn wait(&self) -> Result<u16, api::Errno> {
        api::sem_wait(self.0)?;
        control(pebble_abi::control::UNWOUND, 0).map(|thread| thread as u16)
    }
}

fn control(operation: u64, p2: u64) -> Result<u64, api::Errno> {
    api::answer(call(pebble_abi::sys::SYS_CONTROL, [operation, p2]))
}

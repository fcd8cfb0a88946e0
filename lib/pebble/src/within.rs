//! Calls with a time limit.
//!
//! The clock notes the place on this thread's invocation stack, and the time. When that has passed, what the call waits for is cut short, and
//! all that lies above the place returns; this function then has the status `TIMEOUT`, with the domain that had the call.

use crate::api;
use crate::portal::{Broken, call};
use core::sync::atomic::{AtomicUsize, Ordering};
use pebble_abi::status;

static BOUND: AtomicUsize = AtomicUsize::new(0);
static UNBOUND: AtomicUsize = AtomicUsize::new(0);

/// The portal of that name, opened once.
fn opened(place: &AtomicUsize, name: &str) -> Option<usize> {
    if place.load(Ordering::Relaxed) == 0 {
        place.store(api::portal_open(name).ok()?, Ordering::Relaxed);
    }
    Some(place.load(Ordering::Relaxed))
}

/// [`call`], but back after so many ticks at the latest; a trusted server finishes what it is doing first. Status `CLOSED` of
/// domain 0: there is no clock that would keep the time, and the call has not been made.
pub fn call_within(ticks: u64, index: usize, p: [u64; 5]) -> Result<i64, Broken> {
    let (bound, unbound) =
        opened(&BOUND, "clock.bound").zip(opened(&UNBOUND, "clock.unbound")).ok_or(Broken(status::CLOSED))?;
    let float = cfg!(target_feature = "d");
    match call(bound, [ticks, float.into()])? {
        place @ 0.. => {
            let result = call(index, p);
            // Too late to matter if this is what is unwound: the call is over.
            let _ = call(unbound, [place as u64]);
            result
        }
        _ => Err(Broken(status::CLOSED)),
    }
}

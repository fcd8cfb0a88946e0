//! Deadlines of calls: one thread that sleeps until the next, and poisons the instance whose time is over.
//!
//! Another thread may reset the instance before the call has got in at all: so it is poisoned again while the call lasts.

use crate::fault::Cause;
use crate::instance::{Shared, lock};
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

#[derive(Default)]
pub struct Calls {
    /// By time, then by number, so that no two are the same.
    next: BTreeMap<(Instant, u64), Weak<Shared>>,
    number: u64,
    running: bool,
}

static CALLS: Mutex<Option<Calls>> = Mutex::new(None);
static CHANGED: Condvar = Condvar::new();

pub type Held = MutexGuard<'static, Option<Calls>>;

/// Nobody arms, and the clock waits.
pub fn hold() -> Held {
    lock(&CALLS)
}

/// After so long a call that has not ended is ended once more.
const AGAIN: Duration = Duration::from_millis(10);

/// While it lives, the clock runs.
pub struct Armed((Instant, u64));

pub fn arm(shared: &Arc<Shared>, time: Duration) -> Armed {
    let mut guard = lock(&CALLS);
    let calls = guard.get_or_insert_with(Calls::default);
    calls.number += 1;
    let end = Instant::now() + time;
    let key = (end, calls.number);
    let first = calls.next.keys().next().is_none_or(|next| key < *next);
    calls.next.insert(key, Arc::downgrade(shared));
    if !calls.running {
        calls.running = std::thread::Builder::new().name("pebble-sfi-clock".into()).spawn(watch).is_ok();
    }
    if first {
        CHANGED.notify_one();
    }
    Armed(key)
}

impl Armed {
    /// The time is over, and the instance has been told.
    pub fn passed(&self) -> bool {
        lock(&CALLS).as_ref().is_some_and(|calls| !calls.next.contains_key(&self.0))
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        let Some(calls) = &mut *lock(&CALLS) else { return };
        if calls.next.remove(&self.0).is_none() {
            calls.next.retain(|(_, number), _| *number != self.0.1);
        }
    }
}

fn watch() {
    let mut guard = lock(&CALLS);
    loop {
        let now = Instant::now();
        let next = guard.as_ref().and_then(|calls| calls.next.keys().next().copied());
        match next {
            Some(key) if key.0 <= now => {
                // Under the lock: a call that ends now waits for its instance to be poisoned, not the next one.
                let Some(calls) = &mut *guard else { continue };
                let Some(shared) = calls.next.remove(&key) else { continue };
                if let Some(shared) = shared.upgrade() {
                    shared.poison(Cause::Deadline);
                }
                calls.next.insert((now + AGAIN, key.1), shared);
            }
            Some(key) => {
                guard = CHANGED.wait_timeout(guard, key.0 - now).unwrap_or_else(|e| e.into_inner()).0
            }
            None => guard = CHANGED.wait(guard).unwrap_or_else(|e| e.into_inner()),
        }
    }
}

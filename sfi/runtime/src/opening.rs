//! Constructors: what a module's global objects want done before its first call, as `dlopen` would.
//!
//! Problem: a reset makes the instance fresh while other threads want to call it, and none may come before
//! the constructors. Strategy: the thread that runs them closes the instance to all others. Those wait where
//! a thread makes its stack in an instance, since a reset has ended all stacks.

use crate::error::Error;
use crate::instance::{Out, Shared, lock};
use crate::portal::Portal;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// What all constructors of an instance may take together, unless somebody says otherwise.
pub const TIME: Duration = Duration::from_secs(10);

/// Who is running constructors.
#[derive(Default)]
pub struct Opening {
    by: Mutex<Option<ThreadId>>,
    over: Condvar,
}

/// While it lives, the instance is closed to other threads.
pub struct Closed<'a>(&'a Opening);

impl Opening {
    pub fn close(&self) -> Closed<'_> {
        *lock(&self.by) = Some(std::thread::current().id());
        Closed(self)
    }

    fn is_closed(&self) -> bool {
        lock(&self.by).is_some_and(|thread| thread != std::thread::current().id())
    }
}

impl Shared {
    /// Its stacks, when nobody else runs constructors; or when those have been ended, so that every call is.
    pub fn open_stacks(&self) -> MutexGuard<'_, Out> {
        const LOOK: Duration = Duration::from_millis(10);
        loop {
            let stacks = self.stacks();
            // It is closed by who holds the stacks.
            if !self.opening.is_closed() || self.poisoned().is_some() {
                return stacks;
            }
            drop(stacks);
            let by = lock(&self.opening.by);
            if by.is_some() {
                drop(self.opening.over.wait_timeout(by, LOOK));
            }
        }
    }
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        *lock(&self.0.by) = None;
        self.0.over.notify_all();
    }
}

/// Runs the module's constructors, once in the life of its memory.
pub fn construct(shared: &Arc<Shared>, time: Duration) -> Result<(), Error> {
    let end = Instant::now() + time;
    for slot in &shared.module.constructors {
        let portal = Portal::into_slot(shared, *slot)?;
        let left = end.saturating_duration_since(Instant::now());
        portal.call_within(left, &[0; 3]).map_err(|e| Error::Constructor(Box::new(e)))?;
    }
    Ok(())
}

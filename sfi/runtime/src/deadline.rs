//! Deadlines of calls: one thread that sleeps until the next, and ends the calls of the instance whose time
//! is over.
//!
//! Time is the clock's, or what the processor has given the calling thread: on a busy machine the former ends
//! calls that have hardly begun, and only the former ends one that waits. A thread cannot have more of the
//! processor than time passes, so its clock is looked at when the rest of its limit could be used up.
//!
//! Another thread may reset the instance before the call has got in at all: so it is ended again while the
//! call lasts. The call may be in another domain: [`crate::ending`] finds it there.
//!
//! Invariant: nobody who cancels gives up because the lock is taken. A signal handler that has interrupted
//! the thread which has the lock cannot wait for it, and leaves its word with that thread.

use crate::ending::Hunt;
use crate::fault::Cause;
use crate::instance::{Shared, lock};
use crate::thread::{self, Clock};
use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

/// How long a call may take. A [`Duration`] is one by the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    pub clock: Option<Duration>,
    /// Processor time of the calling thread. A call that waits uses none.
    pub processor: Option<Duration>,
}

impl Limit {
    pub const fn clock(time: Duration) -> Limit {
        Limit { clock: Some(time), processor: None }
    }

    pub const fn processor(time: Duration) -> Limit {
        Limit { clock: None, processor: Some(time) }
    }

    /// Whichever is over first.
    pub const fn or_clock(self, time: Duration) -> Limit {
        Limit { clock: Some(time), ..self }
    }

    pub const fn is_none(self) -> bool {
        self.clock.is_none() && self.processor.is_none()
    }
}

impl From<Duration> for Limit {
    fn from(time: Duration) -> Limit {
        Limit::clock(time)
    }
}

/// Of the clock, or none.
impl From<Option<Duration>> for Limit {
    fn from(clock: Option<Duration>) -> Limit {
        Limit { clock, processor: None }
    }
}

/// After so long a call that has not ended is ended once more, and looked for.
const AGAIN: Duration = Duration::from_millis(10);
/// The same while it is in another domain; and between two looks at a thread's own clock.
const SOON: Duration = Duration::from_millis(1);

struct Call {
    shared: Weak<Shared>,
    /// None if it is over already: a cancellation.
    end: Option<End>,
    hunt: Option<Hunt>,
    /// The next look.
    when: Instant,
    /// The thread, by its number, and where on its stack.
    by: Option<(u32, u64)>,
}

struct End {
    clock: Option<Instant>,
    processor: Option<(Clock, Duration)>,
}

impl End {
    fn new(limit: Limit) -> End {
        let own = Clock::own();
        End {
            clock: limit.clock.and_then(|time| Instant::now().checked_add(time)),
            processor: limit.processor.map(|time| (own, own.now().saturating_add(time))),
        }
    }

    /// When to look; none if it is over.
    fn next(&self, now: Instant) -> Option<Instant> {
        const LONG: Duration = Duration::from_secs(1 << 30);
        let mut next = now + LONG;
        if let Some(end) = self.clock {
            next = next.min(Some(end).filter(|end| *end > now)?);
        }
        if let Some((clock, end)) = self.processor {
            let left = end.checked_sub(clock.now()).filter(|left| !left.is_zero())?;
            next = next.min(now + left.clamp(SOON, LONG));
        }
        Some(next)
    }
}

impl Call {
    fn cancelled(shared: Weak<Shared>) -> Call {
        Call { shared, end: None, hunt: Some(Hunt::default()), when: Instant::now(), by: None }
    }

    /// When to look again; none if there is nothing to look for. What is kept is dropped when nothing is
    /// held.
    fn look(&mut self, now: Instant, kept: &mut Vec<Arc<Shared>>) -> Option<Instant> {
        let shared = self.shared.upgrade()?;
        if let Some(end) = &self.end {
            if let Some(when) = end.next(now).filter(|_| self.hunt.is_none()) {
                kept.push(shared);
                return Some(when);
            }
            shared.end(Cause::Deadline);
        }
        let seen = self.hunt.get_or_insert_default().look(&shared);
        let wanted = self.end.is_some() || seen.outstanding && shared.ended().is_some();
        kept.push(shared);
        kept.extend(seen.kept);
        wanted.then(|| now + if seen.elsewhere { SOON } else { AGAIN })
    }
}

#[derive(Default)]
pub struct Calls {
    calls: HashMap<u64, Call>,
    /// By time, then by number.
    next: BTreeSet<(Instant, u64)>,
    number: u64,
    running: bool,
}

static CALLS: Mutex<Option<Calls>> = Mutex::new(None);
static CHANGED: Condvar = Condvar::new();

thread_local! {
    /// This thread has the lock, or is about to have it.
    static HOLDS: Cell<bool> = const { Cell::new(false) };
}

/// What interrupted such a thread: instances that it has cancelled.
static LATER: [AtomicPtr<Shared>; 64] = [const { AtomicPtr::new(ptr::null_mut()) }; 64];

/// The lock. Who gives it up sees to what was left for later.
pub struct Held(Option<MutexGuard<'static, Option<Calls>>>);

/// Nobody arms, and the clock waits.
pub fn hold() -> Held {
    HOLDS.set(true);
    Held(Some(lock(&CALLS)))
}

impl Held {
    /// In a child of the process, which has neither the calls nor the clock.
    pub fn forget(&mut self) {
        self.calls().into_iter().for_each(|calls| *calls = None);
    }

    fn calls(&mut self) -> Option<&mut Option<Calls>> {
        self.0.as_deref_mut()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        loop {
            drop(self.0.take());
            HOLDS.set(false);
            let Some(shared) = LATER.iter().find_map(taken) else { return };
            HOLDS.set(true);
            self.0 = Some(lock(&CALLS));
            // Without a clock the calls come back when they do.
            let _ = add(self, Call::cancelled(shared));
        }
    }
}

fn taken(place: &AtomicPtr<Shared>) -> Option<Weak<Shared>> {
    let shared = place.swap(ptr::null_mut(), SeqCst);
    // SAFETY: what is there is `Weak::into_raw`'s, and is taken once.
    (!shared.is_null()).then(|| unsafe { Weak::from_raw(shared) })
}

/// While it lives, the clock runs.
pub struct Armed(u64);

/// From now on, for a function whose frame has this place.
pub fn arm(shared: &Arc<Shared>, limit: Limit, place: *const u8) -> io::Result<Armed> {
    let end = End::new(limit);
    let now = Instant::now();
    let when = end.next(now).unwrap_or(now);
    let by = thread::with(|thread| (thread.number, place as u64));
    add(&mut hold(), Call { shared: Arc::downgrade(shared), end: Some(end), hunt: None, when, by }).map(Armed)
}

/// Limits of calls that never come back are nobody's.
pub fn forget(left: impl Fn(u32, u64) -> bool) {
    let mut held = hold();
    let Some(calls) = held.calls().and_then(Option::as_mut) else { return };
    let numbers = calls.calls.iter().filter(|(_, call)| call.by.is_some_and(|(thread, at)| left(thread, at)));
    let numbers: Vec<u64> = numbers.map(|(number, _)| *number).collect();
    let gone: Vec<Call> = numbers.into_iter().filter_map(|number| calls.remove(number)).collect();
    // What goes, goes when the lock is free.
    drop(held);
    gone.into_iter().filter_map(|call| call.hunt).for_each(|mut hunt| drop(hunt.give_up()));
}

/// The calls of an instance are to end, which has been poisoned: sees to those that are in other domains.
pub fn hunt(shared: &Arc<Shared>) {
    let outstanding = shared.stacks_now().is_none_or(|out| out.stacks.iter().any(|given| given.mark.busy()));
    if !outstanding {
        return;
    }
    let shared = Arc::downgrade(shared);
    if !HOLDS.get() {
        // Without a clock the calls come back when they do.
        return drop(add(&mut hold(), Call::cancelled(shared)));
    }
    let shared = shared.into_raw().cast_mut();
    let free =
        |place: &AtomicPtr<Shared>| place.compare_exchange(ptr::null_mut(), shared, SeqCst, SeqCst).is_ok();
    if !LATER.iter().any(free) {
        // SAFETY: nobody else has got it.
        drop(unsafe { Weak::from_raw(shared) });
    }
}

fn add(held: &mut Held, call: Call) -> io::Result<u64> {
    let Some(calls) = held.calls() else { return Err(io::ErrorKind::Other.into()) };
    let calls = calls.get_or_insert_with(Calls::default);
    if !calls.running {
        std::thread::Builder::new().name("pebble-sfi-clock".into()).spawn(watch)?;
        calls.running = true;
    }
    calls.number += 1;
    let number = calls.number;
    let first = calls.next.first().is_none_or(|next| call.when < next.0);
    calls.next.insert((call.when, number));
    calls.calls.insert(number, call);
    if first {
        CHANGED.notify_one();
    }
    Ok(number)
}

impl Calls {
    fn remove(&mut self, number: u64) -> Option<Call> {
        let call = self.calls.remove(&number)?;
        self.next.remove(&(call.when, number));
        Some(call)
    }
}

impl Armed {
    /// Stops the clock. Whether the time was over, and the instance has been told.
    pub fn passed(self) -> bool {
        self.stop()
    }

    fn stop(&self) -> bool {
        // What goes, goes when the lock is free.
        let call = hold().calls().and_then(Option::as_mut).and_then(|calls| calls.remove(self.0));
        let Some(mut hunt) = call.and_then(|call| call.hunt) else { return false };
        hunt.give_up();
        true
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        self.stop();
    }
}

fn watch() {
    // Nothing interrupts it, so it needs not say that it has the lock.
    // SAFETY: an empty set may be filled; the mask is this thread's.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &all, ptr::null_mut());
    }
    let mut guard = lock(&CALLS);
    loop {
        let now = Instant::now();
        let first = guard.as_ref().and_then(|calls| calls.next.first().copied());
        match first {
            Some((when, number)) if when <= now => {
                // Under the lock: a call that ends now waits for its instance to be poisoned, not the next
                // one.
                let mut kept = Vec::new();
                if let Some(calls) = &mut *guard
                    && let Some(mut call) = calls.remove(number)
                {
                    match call.look(now, &mut kept) {
                        Some(when) => {
                            call.when = when;
                            calls.next.insert((when, number));
                            calls.calls.insert(number, call);
                        }
                        None => kept.extend(call.hunt.iter_mut().flat_map(Hunt::give_up)),
                    }
                }
                drop(guard);
                drop(kept);
                guard = lock(&CALLS);
            }
            Some((when, _)) => {
                guard = CHANGED.wait_timeout(guard, when - now).unwrap_or_else(|e| e.into_inner()).0
            }
            None => guard = CHANGED.wait(guard).unwrap_or_else(|e| e.into_inner()),
        }
    }
}

//! The clock's component: entries around the library, one lock, the idle thread and the keeper.
//!
//! A late call is ended under the lock, so that its thread, if it is back by then, waits in `unbound` until that is over: what is
//! unwound is the bounded call or nothing. Order of locks: clock, then portal manager; the latter never calls the clock.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use core::sync::atomic::{AtomicU64, Ordering};
use pebble::abi::{errno, map};
use pebble::api::{self, Errno};
use pebble::handover::{self, Fixed, Handover};
use pebble::mmio::Mmio;
use pebble::portal;
use pebble::sync::Lock;
use pebble_clock::bounds::{BOUND_BYTES, MAX_BOUNDS};
use pebble_clock::{Bound, Bounds, TIME_HIGH, TIME_LOW, combine, level, nanoseconds};

pebble::import! {
    IDLE = "nucleus.idle";
    TOP = "nucleus.top";
    ABORT = "scheduler.thread_abort";
    PRIORITY = "scheduler.priority";
}
pebble::export!("clock.nanoseconds", "np", uptime);
pebble::export!("clock.wall", "np", wall);
pebble::export!("clock.bound", "npadii", bound: fn(u64, u64, u64, u64));
pebble::export!("clock.unbound", "npadi", unbound: fn(u64, u64, u64));
pebble::replaceable!(CLOCK: Clock, Fixed::new(), "clock.handover", "clock.takeover");
pebble::component!(main);

const RTC: Mmio = Mmio::new(0, 0x1000);
/// Of the keeper: late calls are ended in time whoever else is busy.
const KEEPER_PRIORITY: u8 = 30;
/// The keeper sleeps until then when there is no bound: a year.
const LONG: u64 = map::TIME_HZ * 60 * 60 * 24 * 365;

struct Clock {
    bounds: Bounds,
    keeper: Keeper,
    /// The portal by which calls are unwound, opened with the first bound.
    unwind: usize,
}

#[derive(PartialEq, Eq)]
enum Keeper {
    None,
    /// It sleeps until this time.
    Thread(u16, u64),
}

static CLOCK: Lock<Clock> = Lock::new(Clock { bounds: Bounds::new(), keeper: Keeper::None, unwind: 0 });

/// The idle thread: lowest priority, always ready.
fn main() -> i64 {
    // Before it is the idle thread: a successor gets ready even if others never pause.
    handover::ready();
    let mut clock = CLOCK.own();
    if clock.bounds.first().is_some() {
        let _ = clock.start();
    }
    drop(clock);
    // The domain's priority is the keeper's. Not before the lock is given up: it would be kept for as long as others do not pause.
    let _ = PRIORITY.call([api::get_thread_id().into(), 0]);
    loop {
        let _ = IDLE.call([0; 5]);
    }
}

impl Clock {
    /// Makes the keeper, if there is none.
    fn start(&mut self) -> Result<(), Errno> {
        if self.unwind == 0 {
            self.unwind = api::portal_open("pm.unwind")?;
        }
        if self.keeper == Keeper::None {
            let thread = api::thread_create(keep, 0, KEEPER_PRIORITY)?;
            // It will look for itself.
            self.keeper = Keeper::Thread(thread, 0);
        }
        Ok(())
    }

    /// Ends what is late. When to look again.
    fn end_late(&mut self) -> u64 {
        let now = portal::time();
        while let Some(bound) = self.bounds.due(now) {
            let _ = portal::call(self.unwind, [bound.thread, bound.level]);
            let _ = ABORT.call([bound.thread]);
        }
        self.bounds.first().unwrap_or(now + LONG)
    }
}

extern "C" fn keep(_: u64) {
    loop {
        let mut clock = CLOCK.own();
        let until = clock.end_late();
        clock.keeper = Keeper::Thread(api::get_thread_id(), until);
        drop(clock);
        // Cut short when an earlier bound is made; one made just now has set the time back.
        let _ = api::hrsleep(until.min(SOONER.swap(u64::MAX, Ordering::AcqRel)));
    }
}

/// A time before which the keeper, on its way to sleep, must look again.
static SOONER: AtomicU64 = AtomicU64::new(u64::MAX);

extern "C" fn bound(domain: u64, thread: u64, ticks: u64, float: u64) -> i64 {
    let top = TOP.call([]).unwrap_or(0) as u64;
    let until = portal::time().saturating_add(ticks);
    let level = level(top, domain, float != 0);
    let mut clock = CLOCK.lock();
    let made = clock.start().and_then(|()| clock.bounds.add(Bound { until, thread, level }));
    if let Err(error) = made {
        return -error;
    }
    if let Keeper::Thread(keeper, wakes) = &mut clock.keeper
        && until < *wakes
    {
        *wakes = until;
        SOONER.fetch_min(until, Ordering::AcqRel);
        let _ = ABORT.call([u64::from(*keeper)]);
    }
    level as i64
}

/// 0, or `-ENOENT` when the time has passed.
extern "C" fn unbound(domain: u64, thread: u64, level: u64) -> i64 {
    if level >> 16 != domain {
        return -errno::EINVAL;
    }
    if CLOCK.lock().bounds.remove(thread, level) { 0 } else { -errno::ENOENT }
}

impl Handover for Clock {
    type Bytes = Fixed<{ MAX_BOUNDS * BOUND_BYTES }>;

    fn save(&self, _: u64, bytes: &mut Self::Bytes) -> Result<u64, Errno> {
        self.bounds.save(|part| handover::Bytes::append(bytes, part))?;
        Ok(1)
    }

    fn load(&mut self, format: u64, bytes: &[u8]) -> Result<(), Errno> {
        if format == 1 { self.bounds.load(bytes) } else { Err(errno::EINVAL) }
    }
}

extern "C" fn uptime() -> i64 {
    nanoseconds(portal::time()) as i64
}

extern "C" fn wall() -> i64 {
    let low = RTC.read32(TIME_LOW);
    combine(low, RTC.read32(TIME_HIGH)) as i64
}

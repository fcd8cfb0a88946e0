//! The clock's component: entries around the library, one lock, and the keeper, the component's own thread.
//!
//! A late call is ended under the lock, so that its thread, if it is back by then, waits in `unbound` until
//! that is over: what is unwound is the bounded call or nothing. Order of locks: clock, then portal manager;
//! the latter calls the clock without its own.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use pebble::abi::{errno, map};
use pebble::api::{self, Errno};
use pebble::handover::{self, Fixed, Handover};
use pebble::mmio::Mmio;
use pebble::portal;
use pebble::sync::Lock;
use pebble::words::{Asid, ThreadId, Ticks};
use pebble_clock::bounds::{BOUND_BYTES, FORMAT, MAX_BOUNDS};
use pebble_clock::{Bound, Bounds, nanoseconds, rtc};

pebble::import! {
    CALL_SITE: pm::CallSite;
    UNWIND: pm::Unwind;
    ABORT: scheduler::ThreadAbort;
}
pebble::interfaces!();
pebble::replaceable!(CLOCK: Clock, Fixed::new());
pebble::component!(main);

const RTC: Mmio = Mmio::new(0, &map::DEVICE_RTC.registers[0]);
/// [`Clock::wakes`] while the keeper waits for the first bound. It does not sleep then: a lone sleeper is
/// what the scheduler wakes fastest.
const NEVER: u64 = u64::MAX;

/// A thread that is late is looked at again after so many ticks: ten milliseconds.
const AGAIN: u64 = map::TIME_HZ / 100;

/// A program that is late, and in a section of its own, is looked at again after so many ticks (a
/// millisecond), so often.
const SOON: u64 = map::TIME_HZ / 1000;
const PATIENCE: u8 = 100;

struct Clock {
    bounds: Bounds,
    /// When the keeper wakes; 0: it will look before it sleeps.
    wakes: u64,
}

static CLOCK: Lock<Clock> = Lock::new(Clock { bounds: Bounds::new(), wakes: 0 });
/// The keeper's thread, and the semaphore on which it waits for the first bound; both there before it first
/// looks.
static KEEPER: AtomicU64 = AtomicU64::new(0);
static BELL: AtomicUsize = AtomicUsize::new(0);

/// The keeper: ends late calls, in time whoever else is busy.
fn main() -> i64 {
    CLOCK.prepare();
    let Ok(bell) = api::sem_create(0) else { return 1 };
    BELL.store(bell, Ordering::Release);
    KEEPER.store(api::get_thread_id().into(), Ordering::Release);
    handover::ready();
    loop {
        let mut clock = CLOCK.own();
        let until = clock.end_late();
        clock.wakes = until;
        drop(clock);
        let _ = match until {
            NEVER => api::sem_wait(bell),
            // Cut short when an earlier bound is made; one made just now has set the time back.
            _ => api::hrsleep(until.min(SOONER.swap(u64::MAX, Ordering::AcqRel))),
        };
    }
}

impl Clock {
    /// Ends what is late. When to look again.
    fn end_late(&mut self) -> u64 {
        let (now, own) = (portal::time(), u64::from(api::get_asid()));
        while let Some(bound) = self.bounds.due(now, now + AGAIN) {
            let thread = ThreadId(bound.thread.into());
            let hurried = u64::from(bound.spared >= PATIENCE) << 32;
            let site = u64::from(bound.top) | u64::from(bound.domain) << 16;
            // An error: the thread is not in that call. Nor is it while it is here, on its way back or not
            // yet there.
            match UNWIND.call(thread, site | hurried) {
                Ok(ended @ 1..) if ended as u64 & 0xffff != own => {
                    bound.ended(ended as u8);
                    let _ = ABORT.call(thread, ended as u64 >> 16);
                }
                Ok(error) if error == -errno::EAGAIN => bound.spare(now + SOON),
                _ => {}
            }
        }
        self.bounds.first().unwrap_or(NEVER)
    }
}

/// A time before which the keeper, on its way to sleep, must look again.
static SOONER: AtomicU64 = AtomicU64::new(u64::MAX);

/// Where the caller stands, and who it is, whoever passes its calls on: offset of the invocation stack's top
/// word, domain << 16, family << 32.
fn call_site() -> Result<u64, Errno> {
    match CALL_SITE.call() {
        Ok(site @ 1..) => Ok(site as u64),
        Ok(error) => Err(Errno::of(error)),
        Err(_) => Err(errno::EIO),
    }
}

extern "C" fn bound(thread: ThreadId, ticks: Ticks) -> i64 {
    let site = match call_site() {
        Ok(site) => site,
        Err(error) => return -error,
    };
    let (top, domain, family) = (site as u16, (site >> 16) as u8, (site >> 32) as u8);
    let until = portal::time().saturating_add(ticks.0);
    let mut clock = CLOCK.lock();
    let number = match clock.bounds.add(Bound {
        until,
        thread: thread.0 as u8,
        top,
        domain,
        family,
        ..Bound::default()
    }) {
        Ok(number) => number,
        Err(error) => return -error,
    };
    if until < clock.wakes {
        if core::mem::replace(&mut clock.wakes, until) == NEVER {
            let _ = api::sem_post(BELL.load(Ordering::Acquire));
        } else {
            SOONER.fetch_min(until, Ordering::AcqRel);
            let _ = ABORT.call(ThreadId(KEEPER.load(Ordering::Acquire)), 0);
        }
    }
    number as i64
}

/// 0, or who had the call when its time was over; `-ENOENT`: no such bound.
extern "C" fn unbound(thread: ThreadId, number: u64) -> i64 {
    let domain = (call_site().unwrap_or_default() >> 16) as u8;
    CLOCK.lock().bounds.remove(thread.0 as u8, domain, number).map_or(-errno::ENOENT, |late| late as i64)
}

extern "C" fn gone(domain: Asid) -> i64 {
    CLOCK.lock().bounds.gone(domain.0 as u8);
    0
}

impl Handover for Clock {
    type Bytes = Fixed<{ MAX_BOUNDS * BOUND_BYTES }>;

    fn save(&self, _: u64, bytes: &mut Self::Bytes) -> Result<u64, Errno> {
        self.bounds.save(|part| handover::Bytes::append(bytes, part))?;
        Ok(FORMAT)
    }

    fn load(&mut self, format: u64, bytes: &[u8]) -> Result<(), Errno> {
        if format == FORMAT { self.bounds.load(bytes) } else { Err(errno::EINVAL) }
    }
}

extern "C" fn uptime() -> i64 {
    nanoseconds(portal::time()) as i64
}

extern "C" fn wall() -> i64 {
    let _alone = rtc::ONE_AT_A_TIME.then(|| CLOCK.lock());
    rtc::nanoseconds(Chip) as i64
}

struct Chip;

impl rtc::Registers for Chip {
    #[inline(always)]
    fn read(&self, offset: usize) -> u32 {
        RTC.read32(offset)
    }

    fn read_byte(&self, offset: usize) -> u8 {
        RTC.read8(offset)
    }

    fn write_byte(&self, offset: usize, value: u8) {
        RTC.write8(offset, value);
    }
}

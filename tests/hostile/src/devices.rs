//! A device that is given to drivers by capability, and what they do with it.
//!
//! `hostile devices` is a supervisor: it has the first capability for the clock chip by the system's rules
//! (`tests/systems/secret.toml`), and starts drivers (`stranger drive NAME`) to which it passes one, weaker
//! or stronger; some of them die with an interrupt that they have not acknowledged.

use crate::judge::Judge;
use crate::tokens::{derive, take_back, used, word};
use alloc::format;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use pebble::abi::capability::{INTERRUPT, REGISTERS};
use pebble::abi::errno;
use pebble::api::{self, Errno};
use pebble::device::{self, Interrupt};
use pebble::mmio::Mmio;
use pebble::portal::call;
use pebble::process::Child;
use pebble::sync::Lock;

/// Goldfish real-time clock: nanoseconds, an alarm.
const CLOCK: &str = "rtc";
const TIME_LOW: usize = 0x00;
const TIME_HIGH: usize = 0x04;
const ALARM_LOW: usize = 0x08;
const ALARM_HIGH: usize = 0x0c;
const ALARM_ENABLED: usize = 0x10;
const CLEAR_INTERRUPT: usize = 0x1c;

const NO: i64 = errno::EACCES.word();

fn time(clock: &Mmio) -> u64 {
    let low = clock.read32(TIME_LOW);
    u64::from(low) | u64::from(clock.read32(TIME_HIGH)) << 32
}

/// The registers, once they are there.
static REGISTERS_SEEN: Lock<Option<Mmio>> = Lock::new(None);

/// Asks for the registers: whether they tell a time.
extern "C" fn look() -> i64 {
    word(device::registers(CLOCK).map(|clock| {
        *REGISTERS_SEEN.lock() = Some(clock);
        u64::from(time(&clock) > 0)
    }))
}

/// Index of the interrupt's portals, once this is its driver.
static LINE: AtomicUsize = AtomicUsize::new(0);

extern "C" fn claim() -> i64 {
    word(Interrupt::open(CLOCK).map(|line| {
        LINE.store(line.0, Relaxed);
        0
    }))
}

/// Sets the alarm and waits for it. What comes before its time is left from another driver.
fn ring() -> Result<(Mmio, Interrupt), Errno> {
    let clock = (*REGISTERS_SEEN.lock()).ok_or(errno::EBADF)?;
    let line = Interrupt(LINE.load(Relaxed));
    let at = time(&clock) + 1_000_000;
    clock.write32(ALARM_HIGH, (at >> 32) as u32);
    clock.write32(ALARM_LOW, at as u32);
    clock.write32(ALARM_ENABLED, 1);
    loop {
        line.wait()?;
        if time(&clock) >= at {
            return Ok((clock, line));
        }
        clock.write32(CLEAR_INTERRUPT, 1);
        line.acknowledge()?;
    }
}

/// Three alarms.
extern "C" fn drive() -> i64 {
    let once = || {
        let (clock, line) = ring()?;
        clock.write32(CLEAR_INTERRUPT, 1);
        line.acknowledge().map(|_| ())
    };
    word((0..3).try_for_each(|_| once()).map(|()| 3))
}

/// One, which it does not acknowledge.
extern "C" fn leave() -> i64 {
    word(ring().map(|_| 1))
}

extern "C" fn ask() -> i64 {
    word(device::capability(CLOCK))
}

extern "C" fn take(name: u64) -> i64 {
    name as i64
}

const CALLS: [(&str, extern "C" fn() -> i64); 5] =
    [(".look", look), (".claim", claim), (".drive", drive), (".leave", leave), (".ask", ask)];

pub fn all(judge: &mut Judge, rounds: u32) {
    let without = [look(), claim()];
    judge.check("without one", without == [NO; 2], || format!("{without:?}"));
    let unknown = word(device::registers("no-such-device").map(|_| 0));
    judge.check("no such device", unknown == -errno::ENOENT, || format!("{unknown}"));
    let own = ask();
    judge.check("the first holder", own > 0 && ask() == -errno::EEXIST, || format!("{own}"));
    let seen = [look(), look()];
    judge.check("the first holder", seen == [1; 2], || format!("{seen:?}"));
    let own = own as u64;
    drivers(judge, own);
    judge.rest();
    let before = used();
    judge.steadily(rounds, |judge| drivers(judge, own));
    judge.rest();
    judge.same("the dead hold nothing", used() as i64, before as i64);
}

/// A driver's portals.
struct Driver {
    child: Child,
    calls: [usize; CALLS.len()],
    take: usize,
}

impl Driver {
    fn new(judge: &mut Judge) -> Option<Driver> {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let name = format!("d{}.{}", api::get_asid(), SERIAL.fetch_add(1, Relaxed));
        let child = Child::run("/bin/stranger", &["stranger", "drive", &name]).ok()?;
        let open = |end: &str| judge.await_given(&format!("{name}{end}"), "k").unwrap_or(0);
        Some(Driver { child, calls: CALLS.map(|(end, _)| open(end)), take: open("") })
    }

    /// What its call answers.
    fn says(&self, entry: &str) -> i64 {
        let n = CALLS.iter().position(|(end, _)| end[1..] == *entry).unwrap_or(0);
        call(self.calls[n], []).unwrap_or(-999)
    }

    fn takes(&self, name: u64) -> bool {
        call(self.take, [name]).unwrap_or(-999) > 0
    }

    fn end(self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for index in self.calls.into_iter().chain([self.take]) {
            let _ = api::portal_close(index, 1);
        }
    }
}

/// One that may less and less, one beside it, and one after it.
fn drivers(judge: &mut Judge, own: u64) {
    let (Some(first), Some(second)) = (Driver::new(judge), Driver::new(judge)) else {
        return judge.check("a driver", false, || "did not start".into());
    };
    for entry in ["look", "claim", "ask"] {
        judge.same(entry, first.says(entry), NO);
    }
    let weak = derive(own, REGISTERS);
    judge.same("registers alone", first.takes(weak).into(), 1);
    judge.same("registers alone", first.says("look"), 1);
    judge.same("registers alone, interrupt", first.says("claim"), NO);
    judge.same("revoked", take_back(weak), 0);
    judge.same("revoked", first.says("look"), NO);
    let weak = derive(own, INTERRUPT);
    judge.same("interrupt alone", second.takes(weak).into(), 1);
    judge.same("interrupt alone, registers", second.says("look"), NO);
    judge.same("interrupt alone", second.says("claim"), 0);
    let all = derive(own, REGISTERS | INTERRUPT);
    judge.same("both", first.takes(all).into(), 1);
    judge.same("the interrupt has a driver", first.says("claim"), -errno::EBUSY);
    second.end();
    judge.rest();
    judge.same("its driver has died", first.says("claim"), 0);
    judge.same("both", first.says("look"), 1);
    judge.same("a driver", first.says("drive"), 3);
    judge.same("a driver that leaves an interrupt", first.says("leave"), 1);
    first.end();
    judge.rest();
    let Some(next) = Driver::new(judge) else {
        return judge.check("the next driver", false, || "did not start".into());
    };
    judge.same("the next driver", next.takes(all).into(), 1);
    let said = [next.says("look"), next.says("claim"), next.says("drive")];
    judge.check("the next driver", said == [1, 0, 3], || format!("{said:?}"));
    judge.same("taken back from the dead, too", take_back(weak), 0);
    judge.same("taken back", take_back(all), 0);
    judge.same("taken back", next.says("look"), NO);
    judge.same("what it has stays with it", next.says("drive"), 3);
    next.end();
}

pub fn wait(name: &str) -> i64 {
    let register = |end: &str, spec, entry| api::portal_register(&format!("{name}{end}"), spec, entry, 0);
    let calls = CALLS.iter().try_for_each(|(end, f)| register(end, "np", *f as usize as u64).map(|_| ()));
    let take = register("", "npk", take as extern "C" fn(u64) -> i64 as usize as u64);
    if calls.is_err() || take.is_err() {
        return 98;
    }
    loop {
        let _ = api::hrsleep(u64::MAX >> 1);
    }
}

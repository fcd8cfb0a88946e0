//! The device server's component: entries around [`Devices`], one lock.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use core::sync::atomic::{AtomicBool, Ordering::SeqCst};
use pebble::abi::capability::{DEVICE, INTERRUPT, REGISTERS};
use pebble::abi::link::{NAMELEN, unpack};
use pebble::abi::map::{PAGE, READ, WRITE};
use pebble::abi::{errno, map};
use pebble::api::{self, Errno};
use pebble::link::{Import, More};
use pebble::policy::{self, Who};
use pebble::region;
use pebble::sync::Lock;
use pebble::wait::{self, Parking};
use pebble::words::Asid;
use pebble_device::Devices;

pebble::import! {
    MAP_FOREIGN = "vm.map_foreign";
    ENABLE = "irq.enable";
    ACK = "irq.ack";
    WHOSE = "pm.whose";
    RIGHTS = "name.rights";
    FIRST = "name.first";
    // Of the first devices of the manifest, those that have an interrupt: made by the image builder.
    IRQ0 = "?semaphore.device0";
    IRQ1 = "?semaphore.device1";
    IRQ2 = "?semaphore.device2";
    IRQ3 = "?semaphore.device3";
    IRQ4 = "?semaphore.device4";
    IRQ5 = "?semaphore.device5";
    IRQ6 = "?semaphore.device6";
    IRQ7 = "?semaphore.device7";
    WILL_WAKE = "scheduler.will_wake";
    WAKE = "scheduler.wake";
}
// The portals of an interrupt, in this order.
pebble::interfaces!();
pebble::component!(main);

/// No thread of its own.
fn main() -> i64 {
    0
}

static IRQS: [&Import; map::MAX_DEVICES] = [&IRQ0, &IRQ1, &IRQ2, &IRQ3, &IRQ4, &IRQ5, &IRQ6, &IRQ7];

/// Whether a thread waits here for the device's interrupt; no second one does, so none needs more than one
/// stack of this component's.
static TAKEN: [AtomicBool; map::MAX_DEVICES] = [const { AtomicBool::new(false) }; map::MAX_DEVICES];
/// The others, by device.
static PARKING: Parking<{ map::MAX_DEVICES }> = Parking::new(&WILL_WAKE, &WAKE);

static DEVICES: Lock<Option<Devices>> = Lock::new(None);

/// One request, after reading the boot information at the first.
fn request<R>(work: impl FnOnce(&mut Devices) -> Result<R, Errno>) -> Result<R, Errno> {
    let mut devices = DEVICES.lock();
    if devices.is_none() {
        DEVICES.prepare();
        PARKING.prepare();
        let policy = pebble_boot::beginning(region::boot_info()).map_err(|_| errno::EIO)?;
        *devices = Some(Devices::new(policy));
    }
    devices.as_mut().ok_or(errno::EIO).and_then(work)
}

fn word(outcome: Result<u64, Errno>) -> i64 {
    outcome.map_or_else(|error| -error, |value| value as i64)
}

fn ask<const N: usize>(service: &Import, p: [u64; N]) -> Result<u64, Errno> {
    api::answer(service.call(p))
}

/// The device of that name, if the client has this right to it. It is the client who gets it: a controller
/// that calls for itself shows what it holds itself, whomever it serves meanwhile.
fn device(client: Asid, name: [u64; 3], right: u16) -> Result<usize, Errno> {
    let mut bytes = [0; NAMELEN];
    let len = unpack(&name, &mut bytes);
    let name = core::str::from_utf8(&bytes[..len]).unwrap_or("");
    let (at, about) = request(|devices| devices.find(name))?;
    let who = Who { subject: client, ..policy::whose(&WHOSE)? };
    let rights = policy::rights(&RIGHTS, who, DEVICE, about)?;
    if rights & right == 0 { Err(errno::EACCES) } else { Ok(at) }
}

/// Address and bytes of the registers, in the caller.
extern "C" fn registers(client: Asid, a: u64, b: u64, c: u64, _: u64, _: u64, more: &mut More) -> i64 {
    let mapped = device(client, [a, b, c], REGISTERS).and_then(|at| {
        let registers = request(|devices| devices.registers(at))?;
        let pages = registers.bytes.div_ceil(PAGE) << 16 | READ | WRITE;
        match ask(&MAP_FOREIGN, [client.get(), registers.va.get(), registers.pa.get(), pages]) {
            // Nothing else is ever mapped there: it has them.
            Ok(_) | Err(errno::EEXIST) => Ok(registers),
            Err(error) => Err(error),
        }
    });
    word(mapped.map(|registers| {
        *more = [registers.va.get(), registers.bytes, 0, 0];
        0
    }))
}

/// Two portals, to wait and to acknowledge, in the caller's table.
extern "C" fn interrupt(client: Asid, a: u64, b: u64, c: u64) -> i64 {
    word(device(client, [a, b, c], INTERRUPT).and_then(|at| {
        let source = request(|devices| {
            devices.claim(at, client)?;
            devices.source(at)
        })?;
        let wait = api::own_interface("device.wait");
        let made = wait.and_then(|wait| Ok(api::portal_create(wait, 2, at as u64)?));
        let index = made.or_else(|error| request(|devices| devices.release(at).and(Err(error))))?;
        ask(&ENABLE, [source])?;
        Ok(index as u64)
    }))
}

extern "C" fn capability(client: Asid, a: u64, b: u64, c: u64) -> i64 {
    let mut bytes = [0; NAMELEN];
    let len = unpack(&[a, b, c], &mut bytes);
    let name = core::str::from_utf8(&bytes[..len]).unwrap_or("");
    let about = request(|devices| devices.find(name));
    word(about.and_then(|(_, about)| policy::first(&FIRST, client, DEVICE, about)))
}

/// Until the next interrupt; cut short when the caller's domain dies, or the driver's.
extern "C" fn await_interrupt(at: u64) -> i64 {
    let at = at as usize;
    let Some(irq) = IRQS.get(at).filter(|irq| irq.bound()) else { return -errno::EBADF };
    if TAKEN[at].swap(true, SeqCst) {
        PARKING.enter(at);
        // Whoever has gone before that wakes nobody.
        if TAKEN[at].swap(true, SeqCst) {
            wait::leave();
        }
    }
    let driver = request(|devices| devices.driver(at));
    let heard = api::sem_wait(irq.index());
    TAKEN[at].store(false, SeqCst);
    PARKING.wake(at);
    let still = driver.is_ok() && request(|devices| devices.driver(at)) == driver;
    word(if still { heard } else { Err(errno::EBADF) })
}

extern "C" fn ack(at: u64) -> i64 {
    word(request(|devices| devices.source(at as usize)).and_then(|source| ask(&ACK, [source])))
}

/// The domain is dead.
extern "C" fn gone(domain: Asid) -> i64 {
    let devices = request(|devices| Ok(devices.gone(domain))).unwrap_or_default();
    for (at, source) in devices {
        // Somebody else's thread may have been in the driver.
        if TAKEN[at].load(SeqCst) {
            let _ = api::sem_post(IRQS[at].index());
        }
        // Or it would be silent for the next driver.
        let _ = ask(&ACK, [source]);
    }
    0
}

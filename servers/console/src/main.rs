//! The console's component: entries around [`Console`], one lock, and the driver's thread.
//!
//! Who waits is woken after the lock is given up, and so finds it free.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use pebble::abi::{errno, map, sys::SEEK_READY};
use pebble::api::{self, Errno};
use pebble::handover::{self, Bytes, Handover, Pages};
use pebble::io::FilePortals;
use pebble::link::More;
use pebble::mmio::Mmio;
use pebble::sync::{Guard, Lock};
use pebble::wait::{self, Parking};
use pebble::words::Asid;
use pebble_console::{Console, FORMAT, QUEUES, Queue, Read, Registers, Write};

pebble::import! {
    DEVICE = "semaphore.uart";
    FAMILY: pm::Family;
    ENABLE = "irq.enable";
    ACKNOWLEDGE = "irq.ack";
    WILL_WAKE = "scheduler.will_wake";
    WAKE = "scheduler.wake";
}
// The four portals of an open console, in the order of `sys::FILE_READ` and its fellows.
pebble::interfaces!();
pebble::replaceable!(CONSOLE: Served, Pages::new());
pebble::component!(main);

/// The UART's registers, which lie byte by byte.
struct Uart(Mmio);

impl Registers for Uart {
    fn read(&mut self, offset: usize) -> u8 {
        self.0.read8(offset)
    }

    fn write(&mut self, offset: usize, value: u8) {
        self.0.write8(offset, value);
    }
}

/// Those that wait, by [`Queue`].
static PARKING: Parking<QUEUES> = Parking::new(&WILL_WAKE, &WAKE);
static CONSOLE: Lock<Served> =
    Lock::new(Served(Console::new(Uart(Mmio::new(0, &map::DEVICE_UART.registers[0])))));

struct Served(Console<Uart>);

impl Handover for Served {
    type Bytes = Pages;

    fn save(&self, _: u64, bytes: &mut Pages) -> Result<u64, Errno> {
        if self.0.save(&mut |part| bytes.append(part)) { Ok(FORMAT) } else { Err(errno::ENOMEM) }
    }

    /// The driver's thread too: it must not take the successor's interrupts.
    fn wake(&mut self) {
        self.0.dismiss(&mut |queue| PARKING.wake(queue as usize));
        let _ = api::sem_post(DEVICE.index());
    }

    fn load(&mut self, format: u64, bytes: &[u8]) -> Result<(), Errno> {
        self.0.load(format, bytes)
    }
}
/// The driver: moves bytes whenever the device says so.
fn main() -> i64 {
    CONSOLE.prepare();
    PARKING.prepare();
    handover::ready();
    CONSOLE.own().0.init();
    let source = [map::DEVICE_UART.interrupt.into(), 0, 0, 0, 0];
    let _ = ENABLE.call(source);
    // What came while nobody was in charge.
    service();
    let _ = ACKNOWLEDGE.call(source);
    loop {
        if DEVICE.call([0; 5]) == Ok(0) {
            service();
            let _ = ACKNOWLEDGE.call(source);
        }
    }
}

/// What an operation calls to wake the waiters of a queue.
type Waker<'a> = &'a mut dyn FnMut(Queue);

/// The device has something to say.
fn service() {
    operate_in(CONSOLE.own(), |console, wake| console.service(wake));
}

/// One operation of a client's call.
fn operate<R>(work: impl FnOnce(&mut Console<Uart>, &mut Waker) -> R) -> R {
    operate_in(CONSOLE.lock(), work)
}

/// One operation under the lock, then the wake-ups that it asked for.
fn operate_in<R>(
    mut console: Guard<'_, Served>,
    work: impl FnOnce(&mut Console<Uart>, &mut Waker) -> R,
) -> R {
    let mut wakes = [false; QUEUES];
    let mut note: Waker = &mut |queue| wakes[queue as usize] = true;
    let result = work(&mut console.0, &mut note);
    drop(console);
    (0..QUEUES).filter(|queue| wakes[*queue]).for_each(|queue| PARKING.wake(queue));
    result
}

extern "C" fn read(control: u64, max: u64, _: u64, _: u64, _: u64, _: u64, more: &mut More) -> i64 {
    let read = operate(|console, wake| {
        let read = console.read(control, max, wake);
        if let Read::Block(queue) = read {
            PARKING.enter(queue as usize);
        }
        read
    });
    match read {
        Read::Data { count, words } => {
            *more = words;
            count as i64
        }
        Read::Block(_) => wait::leave(),
        Read::Failed(error) => -error,
    }
}

extern "C" fn write(control: u64, count: u64, a: u64, b: u64, c: u64, d: u64) -> i64 {
    let written = operate(|console, wake| {
        let written = console.write(control, count, [a, b, c, d], wake);
        if let Write::Block(queue) = written {
            PARKING.enter(queue as usize);
        }
        written
    });
    match written {
        Write::Done(count) => count as i64,
        Write::Block(_) => wait::leave(),
        Write::Failed(error) => -error,
    }
}

/// A terminal has no place to move to; but it can say which calls would wait.
extern "C" fn seek(control: u64, _: u64, whence: u64) -> i64 {
    match whence {
        SEEK_READY => operate(|console, wake| console.ready(control, wake)) as i64,
        _ => -errno::EINVAL,
    }
}

extern "C" fn close(control: u64) -> i64 {
    operate(|console, wake| console.close(control, wake));
    0
}

static PORTALS: FilePortals = FilePortals::new("console.read");

extern "C" fn open(client: u64, a: u64, b: u64, c: u64, d: u64, e: u64) -> i64 {
    let Ok(family @ 0..=255) = FAMILY.call(Asid(client)) else { return -errno::ESRCH };
    let control = match CONSOLE.lock().0.open(client as u16, family as u8, [a, b, c, d, e]) {
        Ok(control) => control,
        Err(error) => return -error,
    };
    PORTALS.create(control).map_or_else(
        |error| {
            close(control);
            -error
        },
        |index| index as i64,
    )
}

/// The domain is dead.
extern "C" fn gone(asid: u64, a: u64, b: u64) -> i64 {
    operate(|console, wake| console.gone(asid as u16, [a, b], wake));
    0
}

extern "C" fn log(from: u64, _: u64, _: u64, _: u64, _: u64, _: u64, more: &mut More) -> i64 {
    let (end, words) = CONSOLE.lock().0.log.read(from);
    *more = words;
    end as i64
}

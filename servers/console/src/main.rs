//! The console's component: entries around [`Console`], one lock, and the driver's thread.
//!
//! V comes after the lock is given up, so who is woken finds it free. The semaphores are made by the driver's thread before
//! anything else; who reads or writes earlier than that sleeps a little.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use pebble::abi::{errno, map};
use pebble::api::{self, Errno};
use pebble::handover::{self, Bytes, Handover};
use pebble::io::FilePortals;
use pebble::link::More;
use pebble::mmio::Mmio;
use pebble::portal;
use pebble::sync::{Guard, Lock};
use pebble_console::{Console, FORMAT, QUEUES, Queue, Read, Registers, Write};

pebble::import! {
    DEVICE = "semaphore.irq10";
    ENABLE = "irq.enable";
    ACKNOWLEDGE = "irq.ack";
}
// The four portals of an open console, in the order of `sys::FILE_READ` and its fellows.
pebble::export_wide!("console.read", "npci>4", read);
pebble::export!("console.write", "npciiiii", write: fn(u64, u64, u64, u64, u64, u64));
pebble::export!("console.seek", "npcii", seek: fn(u64, u64, u64));
pebble::export!("console.close", "npc", close: fn(u64));
pebble::export!("console.open", "npaiiiii", open: fn(u64, u64, u64, u64, u64, u64));
pebble::export!("console.gone", "npi", gone: fn(u64));
pebble::replaceable!(CONSOLE: Served, Vec::new(), "console.handover", "console.takeover");
pebble::tell_heap!("heap.console");
pebble::component!(main);

/// The UART's registers, which lie byte by byte on this board.
struct Uart(Mmio);

impl Registers for Uart {
    fn read(&mut self, offset: usize) -> u8 {
        self.0.read8(offset)
    }

    fn write(&mut self, offset: usize, value: u8) {
        self.0.write8(offset, value);
    }
}

static CONSOLE: Lock<Served> = Lock::new(Served(Console::new(Uart(Mmio::new(0, 0x1000)))));

struct Served(Console<Uart>);

impl Handover for Served {
    type Bytes = Vec<u8>;

    fn save(&self, _: u64, bytes: &mut Vec<u8>) -> Result<u64, Errno> {
        if self.0.save(|part| Bytes::append(bytes, part)) { Ok(FORMAT) } else { Err(errno::ENOMEM) }
    }

    /// The driver's thread too: it must not take the successor's interrupts.
    fn wake(&mut self) {
        self.0.dismiss(&mut |queue, count| {
            for _ in 0..count {
                let _ = api::sem_post(SEMAPHORES[queue as usize].load(Ordering::Relaxed));
            }
        });
        let _ = api::sem_post(DEVICE.index());
    }

    fn load(&mut self, format: u64, bytes: &[u8]) -> Result<(), Errno> {
        self.0.load(format, bytes)
    }
}
/// Indices of P.
static SEMAPHORES: [AtomicUsize; QUEUES] = [const { AtomicUsize::new(0) }; QUEUES];
static READY: AtomicBool = AtomicBool::new(false);

/// The driver: moves bytes whenever the device says so.
fn main() -> i64 {
    for index in &SEMAPHORES {
        match api::sem_create(0) {
            Ok(made) => index.store(made, Ordering::Relaxed),
            Err(error) => panic!("no semaphore: {}", errno::text(error)),
        }
    }
    CONSOLE.prepare();
    READY.store(true, Ordering::Release);
    handover::ready();
    CONSOLE.own().0.init();
    let source = [map::IRQ_UART.into(), 0, 0, 0, 0];
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
type Waker<'a> = &'a mut dyn FnMut(Queue, u16);

/// The device has something to say.
fn service() {
    operate_in(CONSOLE.own(), |console, wake| console.service(wake));
}

/// One operation of a client's call.
fn operate<R>(work: impl FnOnce(&mut Console<Uart>, &mut Waker) -> R) -> R {
    operate_in(CONSOLE.lock(), work)
}

/// One operation under the lock, then the V that it asked for.
fn operate_in<R>(
    mut console: Guard<'_, Served>,
    work: impl FnOnce(&mut Console<Uart>, &mut Waker) -> R,
) -> R {
    let mut wakes = [0; QUEUES];
    let mut count: Waker = &mut |queue, count| wakes[queue as usize] += count;
    let result = work(&mut console.0, &mut count);
    drop(console);
    for (semaphore, count) in SEMAPHORES.iter().zip(wakes) {
        for _ in 0..count {
            let _ = api::sem_post(semaphore.load(Ordering::Relaxed));
        }
    }
    result
}

/// Sleeps in the queue; fails when the thread's domain has died meanwhile.
fn wait(queue: Queue) -> Result<(), Errno> {
    if api::sem_wait(SEMAPHORES[queue as usize].load(Ordering::Relaxed)).is_ok() {
        return Ok(());
    }
    CONSOLE.lock().0.give_up(queue);
    Err(errno::EINTR)
}

#[inline]
fn until_ready() {
    while !READY.load(Ordering::Acquire) {
        let _ = api::hrsleep(portal::time() + map::TIME_HZ / 1000);
    }
}

extern "C" fn read(control: u64, max: u64, _: u64, _: u64, _: u64, _: u64, more: &mut More) -> i64 {
    until_ready();
    loop {
        match operate(|console, wake| console.read(control, max, wake)) {
            Read::Data { count, words } => {
                *more = words;
                return count as i64;
            }
            Read::Block(queue) => {
                if let Err(error) = wait(queue) {
                    return -error;
                }
            }
            Read::Failed(error) => return -error,
        }
    }
}

extern "C" fn write(control: u64, count: u64, a: u64, b: u64, c: u64, d: u64) -> i64 {
    until_ready();
    loop {
        match operate(|console, wake| console.write(control, count, [a, b, c, d], wake)) {
            Write::Done(count) => return count as i64,
            Write::Block(queue) => {
                if let Err(error) = wait(queue) {
                    return -error;
                }
            }
            Write::Failed(error) => return -error,
        }
    }
}

/// A terminal has no place to move to.
extern "C" fn seek(_: u64, _: u64, _: u64) -> i64 {
    -errno::EINVAL
}

extern "C" fn close(control: u64) -> i64 {
    operate(|console, wake| console.close(control, wake));
    0
}

static PORTALS: FilePortals = FilePortals::new("console.read");

extern "C" fn open(client: u64, a: u64, b: u64, c: u64, d: u64, e: u64) -> i64 {
    let control = match CONSOLE.lock().0.open(client as u16, [a, b, c, d, e]) {
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
extern "C" fn gone(asid: u64) -> i64 {
    operate(|console, wake| console.gone(asid as u16, wake));
    0
}

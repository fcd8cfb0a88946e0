//! The interrupt dispatcher's component: portals around the board's controller.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use pebble::abi::{errno, handover as ask, map, sys};
use pebble::link::More;
use pebble::mmio::Mmio;
use pebble::portal::tail;
use pebble_arch::{Arch, Native};
use pebble_interrupt_dispatcher::{Registers, controller};

pebble::import! {
    fixed "scheduler.tick";
    fixed "scheduler.irq";
}
pebble::interfaces!();
pebble::component!(main);

/// As the board has mapped them.
struct Ranges;

impl Ranges {
    #[inline(always)]
    fn at(&self, range: usize) -> Mmio {
        Mmio::new(0, &map::DEVICE_INTERRUPTS.registers[range])
    }
}

impl Registers for Ranges {
    #[inline(always)]
    fn read(&self, range: usize, offset: usize) -> u32 {
        self.at(range).read32(offset)
    }

    #[inline(always)]
    fn write(&self, range: usize, offset: usize, value: u32) {
        self.at(range).write32(offset, value);
    }

    #[inline(always)]
    fn read_byte(&self, range: usize, offset: usize) -> u8 {
        self.at(range).read8(offset)
    }

    #[inline(always)]
    fn write_byte(&self, range: usize, offset: usize, value: u8) {
        self.at(range).write8(offset, value);
    }
}

/// Exclusive: no thread of its own.
fn main() -> i64 {
    0
}

extern "C" fn entry(cause: u64) -> i64 {
    if Native::is_timer(cause) {
        tail(sys::SCHEDULER_TICK, []);
    }
    match controller::claim(Ranges) {
        // Nothing pending after all: let the scheduler return to whoever runs.
        0 => tail(sys::SCHEDULER_TICK, []),
        source => tail(sys::SCHEDULER_IRQ, [source.into()]),
    }
}

extern "C" fn enable(source: u64) -> i64 {
    if controller::enable(Ranges, source) { 0 } else { -errno::EINVAL }
}

extern "C" fn ack(source: u64) -> i64 {
    if controller::complete(Ranges, source) { 0 } else { -errno::EINVAL }
}

/// All state is the controller's: two instances may be called at once, and there is nothing to hand over.
extern "C" fn handover(what: u64, _: u64, _: u64, _: u64, _: u64, _: u64, _: &mut More) -> i64 {
    if what == ask::LEAVE { 1 } else { 0 }
}

extern "C" fn takeover(what: u64, _: u64, _: u64, _: u64, _: u64) -> i64 {
    if what == ask::WAITS { 1 } else { 0 }
}

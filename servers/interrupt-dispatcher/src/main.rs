//! The interrupt dispatcher's component: PLIC registers and portals around the library.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use pebble::abi::{errno, handover as ask, sys};
use pebble::link::More;
use pebble::mmio::Mmio;
use pebble::portal::tail;
use pebble_interrupt_dispatcher::{Action, action, enable_bit, plic};

pebble::import! {
    fixed "scheduler.tick";
    fixed "scheduler.irq";
}
pebble::export!("irq.entry", "nmi", entry: fn(u64));
pebble::export!("irq.enable", "nmi", enable: fn(u64));
pebble::export!("irq.ack", "nmi", ack: fn(u64));
pebble::export_wide!("irq.handover", "nmiii>4", handover);
pebble::export!("irq.takeover", "nmiiiii", takeover: fn(u64));
pebble::component!(main);

const PRIORITY: Mmio = Mmio::new(plic::PRIORITY_PAGE, 0x1000);
const ENABLE: Mmio = Mmio::new(plic::ENABLE_PAGE, 0x1000);
const CONTEXT: Mmio = Mmio::new(plic::CONTEXT_PAGE, 0x1000);

/// Exclusive: no thread of its own.
fn main() -> i64 {
    0
}

extern "C" fn entry(cause: u64) -> i64 {
    if action(cause) == Action::Tick {
        tail(sys::SCHEDULER_TICK, []);
    }
    match CONTEXT.read32(plic::CLAIM) {
        // Nothing pending after all: let the scheduler return to whoever runs.
        0 => tail(sys::SCHEDULER_TICK, []),
        source => tail(sys::SCHEDULER_IRQ, [source.into()]),
    }
}

extern "C" fn enable(source: u64) -> i64 {
    let Some((word, bit)) = enable_bit(source) else { return -errno::EINVAL };
    PRIORITY.write32(source as usize * 4, 1);
    CONTEXT.write32(plic::THRESHOLD, 0);
    ENABLE.write32(word, ENABLE.read32(word) | bit);
    0
}

extern "C" fn ack(source: u64) -> i64 {
    if enable_bit(source).is_none() {
        return -errno::EINVAL;
    }
    CONTEXT.write32(plic::CLAIM, source as u32);
    0
}

/// All state is the PLIC's: two instances may be called at once, and there is nothing to hand over.
extern "C" fn handover(what: u64, _: u64, _: u64, _: u64, _: u64, _: u64, _: &mut More) -> i64 {
    if what == ask::LEAVE { 1 } else { 0 }
}

extern "C" fn takeover(what: u64) -> i64 {
    if what == ask::WAITS { 1 } else { 0 }
}

//! The clock's component.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use pebble::mmio::Mmio;
use pebble::portal;
use pebble_clock::{TIME_HIGH, TIME_LOW, combine, nanoseconds};

pebble::import! {
    IDLE = "nucleus.idle";
}
pebble::export!("clock.nanoseconds", "np", uptime);
pebble::export!("clock.wall", "np", wall);
pebble::component!(main);

const RTC: Mmio = Mmio::new(0, 0x1000);

/// The idle thread: lowest priority, always ready.
fn main() -> i64 {
    loop {
        let _ = IDLE.call([0; 5]);
    }
}

extern "C" fn uptime() -> i64 {
    nanoseconds(portal::time()) as i64
}

extern "C" fn wall() -> i64 {
    let low = RTC.read32(TIME_LOW);
    combine(low, RTC.read32(TIME_HIGH)) as i64
}

#![no_std]
#![no_main]
#![forbid(unsafe_code)]
use pebble::mmio::Mmio;
use pebble::portal::{call, instructions};
use core::fmt::Write;
pebble::import! { SM0 = "slice-server.sm0"; SM4 = "slice-server.sm4"; NP4 = "slice-server.np4"; ADD = "slice-server.add"; SEM = "semaphore.test"; }
pebble::component!(main);
const UART: Mmio = Mmio::new(0, 0x1000);
struct Out;
impl Write for Out { fn write_str(&mut self, s: &str) -> core::fmt::Result { for b in s.bytes() { UART.write8(0, b); } Ok(()) } }
fn time(name: &str, index: usize) {
    let mut best = u64::MAX;
    let mut base = u64::MAX;
    for _ in 0..100 {
        let a = instructions();
        let b = instructions();
        base = base.min(b - a);
        let a = instructions();
        let _ = call(index, [1, 2, 3, 4, 5]);
        let b = instructions();
        best = best.min(b - a);
    }
    let _ = writeln!(Out, "{name}: {} (base {base})", best - base);
}
fn main() -> i64 {
    let _ = writeln!(Out, "hello from domain {} thread {}", pebble::api::get_asid(), pebble::api::get_thread_id());
    let _ = writeln!(Out, "2+3 = {:?}", ADD.call([2, 3, 0, 0, 0]));
    time("asid", 3);
    time("hrtime", 5);
    time("sm0", SM0.index());
    time("sm4", SM4.index());
    time("np4", NP4.index());
    time("V", SEM.index() + 1);
    time("P", SEM.index());
    time("yield", 6);
    let t = pebble::portal::time();
    let _ = pebble::api::hrsleep(t + 1000);
    let _ = writeln!(Out, "slept {}", pebble::portal::time() - t);
    let _ = call(99, [0; 5]);
    0
}

#![no_std]
#![no_main]
#![forbid(unsafe_code)]
pebble::export!("self.sm0", "sm", null);
pebble::export!("self.sm4", "smiiii", null);
pebble::export!("self.np4", "npiiii", null);
pebble::export!("self.add", "npii", add: fn(u64, u64));
pebble::component!(main);
fn main() -> i64 { 0 }
extern "C" fn null() -> i64 { 0 }
extern "C" fn add(a: u64, b: u64) -> i64 { (a + b) as i64 }

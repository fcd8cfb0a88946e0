//! What the start-up page has of strings: the program's arguments, and behind them its environment.

use alloc::string::String;
use alloc::vec::Vec;

use pebble_abi::link::Startup;

use crate::region::STARTUP;

/// The strings one after the other, as far as the page goes.
struct Strings(u64);

impl Iterator for Strings {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let end = (Startup::ARGS + Startup::ARGS_MAX) as u64;
        let mut text = Vec::new();
        while self.0 < end {
            let byte = STARTUP.read8(self.0);
            self.0 += 1;
            if byte == 0 {
                break;
            }
            text.push(byte);
        }
        Some(String::from_utf8_lossy(&text).into_owned())
    }
}

/// The program's arguments, the name first.
pub fn args() -> impl Iterator<Item = String> {
    Strings(Startup::ARGS as u64).take(count())
}

/// Its environment: `NAME=value` each.
pub fn environment() -> impl Iterator<Item = String> {
    Strings(Startup::ARGS as u64).skip(count()).take_while(|text| !text.is_empty())
}

fn count() -> usize {
    STARTUP.read(Startup::ARGC as u64) as usize
}

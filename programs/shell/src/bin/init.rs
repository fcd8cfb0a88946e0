//! The first program's parent: keeps a shell on the console, and ends the system when the shell has been told
//! to end.
//!
//! A shell that dies is started again, with a line that says so. One that exits takes the machine with it:
//! its status is what the board is powered off with.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use pebble::abi::map::TIME_HZ;
use pebble::power::{LAST_WORDS, Power, TAKES_STATUS};
use pebble::process::Child;
use pebble::{api, io, portal};

pebble::component!(main);

const SHELL: &str = "/bin/shell";
/// The status of a shell that did not exit of its own.
const DIED: i64 = 128;

const POWER: Power = Power::new(0);

fn main() -> i64 {
    loop {
        match Child::run(SHELL, &[SHELL]).and_then(|shell| shell.wait()) {
            Ok(status) if status < DIED => power_off(status as u32),
            Ok(status) => say(&format!("init: the shell died with status {status}; starting another\n")),
            Err(error) => {
                say(&format!("init: {SHELL}: {error}\n"));
                power_off(1);
            }
        }
        pause();
    }
}

fn say(text: &str) {
    if let Ok(console) = io::open("/dev/console") {
        let _ = console.write(text.as_bytes());
        console.close();
    }
}

/// A tenth of a second.
fn pause() {
    let _ = api::hrsleep(portal::time() + TIME_HZ / 10);
}

fn power_off(status: u32) {
    if !TAKES_STATUS {
        say(&format!("{LAST_WORDS}{status}\n"));
    }
    // What has been written is still on its way out.
    pause();
    POWER.off(status);
}

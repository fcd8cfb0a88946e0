//! The first program's parent: keeps a shell on the console, and ends the system when the shell has been told
//! to end.
//!
//! A shell that dies is started again, with a line that says so. One that exits takes the machine with it:
//! its status is the emulator's, through the board's test device.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use pebble::abi::{errno, map::TIME_HZ};
use pebble::mmio::Mmio;
use pebble::process::Child;
use pebble::{api, io, portal};

pebble::component!(main);

const SHELL: &str = "/bin/shell";
/// The status of a shell that did not exit of its own.
const DIED: i64 = 128;

/// The board's test device: a write ends the emulator.
const POWER: Mmio = Mmio::new(0, 0x1000);
const SUCCESS: u32 = 0x5555;
const FAILURE: u32 = 0x3333;

fn main() -> i64 {
    loop {
        match Child::run(SHELL, &[SHELL]).and_then(|shell| shell.wait()) {
            Ok(status) if status < DIED => power_off(status as u32),
            Ok(status) => say(&format!("init: the shell died with status {status}; starting another\n")),
            Err(error) => {
                say(&format!("init: {SHELL}: {}\n", errno::text(error)));
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
    // What has been written is still on its way out.
    pause();
    POWER.write32(0, if status == 0 { SUCCESS } else { status << 16 | FAILURE });
}

//! Powering the board off.
//!
//! Problem: whoever has started a system in an emulator wants to know how it ended, and not every board has a
//! way to say so. Strategy: where the device takes a status, it gets that; elsewhere ([`TAKES_STATUS`]) the
//! last line on the console says it, which is up to the caller: [`LAST_WORDS`] and the number.

use crate::mmio::Mmio;
use pebble_abi::map;

enum Kind {
    /// A test device, by which the emulator exits with a status.
    SifiveTest,
    /// A register that resets the board, which ends an emulator that must not start it again.
    Softres,
}

const KIND: Kind = match map::DEVICE_POWER.kind.as_bytes() {
    b"sifive-test" => Kind::SifiveTest,
    b"softres" => Kind::Softres,
    _ => panic!("there is no driver for the board's device `power`"),
};
pub const TAKES_STATUS: bool = matches!(KIND, Kind::SifiveTest);
pub const LAST_WORDS: &str = "power: status ";

const SUCCESS: u32 = 0x5555;
const FAILURE: u32 = 0x3333;
const RESET: u32 = 0x42;

pub struct Power(Mmio);

impl Power {
    /// `before`: pages of devices that the manifest names before it.
    pub const fn new(before: usize) -> Self {
        Power(Mmio::new(before, &map::DEVICE_POWER.registers[0]))
    }

    /// A moment later nothing runs any more.
    pub fn off(&self, status: u32) {
        let word = match KIND {
            Kind::SifiveTest if status == 0 => SUCCESS,
            Kind::SifiveTest => status << 16 | FAILURE,
            Kind::Softres => RESET,
        };
        self.0.write32(0, word);
    }
}

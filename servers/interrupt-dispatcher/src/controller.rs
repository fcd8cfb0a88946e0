//! The board's interrupt controller. There is a module for each kind; all have the same functions, and that
//! of the board is chosen when the component is compiled.

mod i8259;
mod plic;

use crate::Registers;
use pebble_abi::map;

enum Kind {
    Plic,
    I8259,
}

const KIND: Kind = match map::DEVICE_INTERRUPTS.kind.as_bytes() {
    b"plic" => Kind::Plic,
    b"i8259" => Kind::I8259,
    _ => panic!("there is no driver for the board's device `interrupts`"),
};

/// The device that wants attention; it cannot interrupt again until that is complete. 0: none.
#[inline(always)]
pub fn claim(registers: impl Registers) -> u32 {
    match KIND {
        Kind::Plic => plic::claim(registers),
        Kind::I8259 => i8259::claim(registers),
    }
}

/// Whether there is such a source, which can interrupt from now on.
#[inline(always)]
pub fn enable(registers: impl Registers, source: u64) -> bool {
    match KIND {
        Kind::Plic => plic::enable(registers, source),
        Kind::I8259 => i8259::enable(registers, source),
    }
}

/// Whether there is such a source, which has had its attention.
#[inline(always)]
pub fn complete(registers: impl Registers, source: u64) -> bool {
    match KIND {
        Kind::Plic => plic::complete(registers, source),
        Kind::I8259 => i8259::complete(registers, source),
    }
}

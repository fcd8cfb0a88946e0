//! The interrupt dispatcher: which device was it?
//!
//! The interrupt portal has saved everything and enters here, with interrupts off. The timer goes on to the
//! scheduler's `tick`, a device to its `irq`, through tail portals: the scheduler returns straight to
//! whatever thread runs next. A device's interrupt stays claimed at the board's controller, so it cannot
//! repeat, until its driver says `ack`.
//!
//! Semaphore `n` belongs to source `n`.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod controller;

/// The controller's registers, 32 bits each or bytes, by the range of the board's in which they are and their
/// offset there.
pub trait Registers {
    fn read(&self, range: usize, offset: usize) -> u32;
    fn write(&self, range: usize, offset: usize, value: u32);
    fn read_byte(&self, range: usize, offset: usize) -> u8;
    fn write_byte(&self, range: usize, offset: usize, value: u8);
}

//! Devices for drivers that are programs, by name: from the device server, where the rules of the system let
//! them.
//!
//! What a driver has stays with it until its domain ends. It uses its registers as a component does, waits
//! for its interrupt, serves the device, and acknowledges; the next interrupt comes only then. The first may
//! be left from the driver before.

use crate::api::{Errno, answer};
use crate::client::device;
use crate::mmio::Mmio;
use crate::process::Lazy;
use pebble_abi::errno;
use pebble_abi::link::pack;

static REGISTERS: device::Registers<Lazy> = device::Registers::lazy();
static INTERRUPT: device::Interrupt<Lazy> = device::Interrupt::lazy();
static CAPABILITY: device::Capability<Lazy> = device::Capability::lazy();

fn words(name: &str) -> Result<[u64; 3], Errno> {
    pack(name).ok_or(errno::ENAMETOOLONG)
}

/// The registers, mapped into this domain; once they are, the same again.
pub fn registers(name: &str) -> Result<Mmio, Errno> {
    let (_, [address, bytes, ..]) = REGISTERS.call(words(name)?)?;
    Mmio::granted(address, bytes).ok_or(errno::EFAULT)
}

/// A first capability for the device, for those whom the rules name as holders: this domain's name for it.
pub fn capability(name: &str) -> Result<u64, Errno> {
    CAPABILITY.call(words(name)?)
}

/// The interrupt of a device: index of the first of its portals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt(pub usize);

impl Interrupt {
    /// Becomes its driver; -EBUSY while there is another.
    pub fn open(name: &str) -> Result<Interrupt, Errno> {
        INTERRUPT.call(words(name)?).map(|index| Interrupt(index as usize))
    }

    /// Until the next one.
    pub fn wait(self) -> Result<u64, Errno> {
        answer(device::Wait(self.0).call())
    }

    /// The device has been served.
    pub fn acknowledge(self) -> Result<u64, Errno> {
        answer(device::Ack(self.0 + 1).call())
    }
}

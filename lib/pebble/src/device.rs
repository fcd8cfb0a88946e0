//! Devices for drivers that are programs, by name: from the device server, where the rules of the system let them.
//!
//! What a driver has stays with it until its domain ends. It uses its registers as a component does, waits for its interrupt, serves the device,
//! and acknowledges; the next interrupt comes only then. The first may be left from the driver before.

use crate::api::Errno;
use crate::mmio::Mmio;
use crate::portal::{call, call_wide};
use crate::process::Lazy;
use pebble_abi::errno;
use pebble_abi::link::pack;

static REGISTERS: Lazy = Lazy::new("device.registers");
static INTERRUPT: Lazy = Lazy::new("device.interrupt");
static CAPABILITY: Lazy = Lazy::new("device.capability");

fn words(name: &str) -> Result<[u64; 5], Errno> {
    let [a, b, c] = pack::<3>(name).ok_or(errno::ENAMETOOLONG)?;
    Ok([a, b, c, 0, 0])
}

/// The registers, mapped into this domain; once they are, the same again.
pub fn registers(name: &str) -> Result<Mmio, Errno> {
    match call_wide(REGISTERS.index()?, words(name)?) {
        Ok((0, [address, bytes, ..])) => Mmio::granted(address, bytes).ok_or(errno::EFAULT),
        Ok((error, _)) => Err(-error),
        Err(_) => Err(errno::EIO),
    }
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
        answer(self.0)
    }

    /// The device has been served.
    pub fn acknowledge(self) -> Result<u64, Errno> {
        answer(self.0 + 1)
    }
}

fn answer(index: usize) -> Result<u64, Errno> {
    match call(index, []) {
        Ok(value) if value >= 0 => Ok(value as u64),
        Ok(error) => Err(-error),
        Err(_) => Err(errno::EIO),
    }
}

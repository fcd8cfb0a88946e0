//! The device server: registers and interrupts of devices, for drivers that are programs.
//!
//! Problem: a component of the image has its devices by the manifest, mapped before anything runs; a driver
//! that a supervisor starts, and starts again, has none. Strategy: the manifest names the devices that there
//! are besides (`[[device]]`), and rules say who may have them, as a rule by capability. This server knows
//! the devices, the name server the rules; the VM manager maps registers, the interrupt dispatcher and the
//! scheduler do what they do for every driver.
//!
//! Invariants:
//! * each device has a place of its own, the same in all domains, where nothing else ever is;
//! * an interrupt has one driver at a time, until that dies; what it has not acknowledged then is
//!   acknowledged for it;
//! * with the driver's domain its mappings and portals go: nothing here outlives it.
//!
//! | interface | operation |
//! |---|---|
//! | `device.registers` (caller, name) | [`Devices::registers`]: mapped into the caller |
//! | `device.interrupt` (caller, name) | [`Devices::claim`]; two portals in the caller's table, `device.wait` and `device.ack` |
//! | `device.capability` (caller, name) | a first capability, from the name server |
//! | `device.gone` (process server: domain) | [`Devices::gone`] |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use core::num::NonZeroU16;
use pebble_abi::errno::{self, Errno};
use pebble_abi::map::{self, PAGE};
use pebble_abi::words::{Asid, PhysAddr, VirtAddr};
use pebble_boot::rules::{Patterns, RuleSet};
use pebble_boot::{Device, Policy};

/// Where the registers of a device are, for whoever has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    /// In the driver's domain, and in memory.
    pub va: VirtAddr,
    pub pa: PhysAddr,
    pub bytes: u64,
}

struct Known {
    device: Device,
    va: VirtAddr,
    /// Domain that has its interrupt.
    driver: Option<NonZeroU16>,
}

/// The devices of a system, in the manifest's order.
pub struct Devices {
    devices: Vec<Known>,
    rules: Patterns,
}

impl Devices {
    pub fn new((policy, devices): (Policy, Vec<Device>)) -> Self {
        let mut va = map::DEVICES_VA;
        let mut next = |device: &Device| {
            let here = VirtAddr(va);
            va += device.bytes.next_multiple_of(PAGE);
            here
        };
        let known = |device| Known { va: next(&device), device, driver: None };
        Devices {
            devices: devices.into_iter().map(known).collect(),
            rules: Patterns::of(&policy.rules, pebble_abi::capability::DEVICE),
        }
    }

    /// The position of the device called so, and the rules about it.
    pub fn find(&self, name: &str) -> Result<(usize, RuleSet), Errno> {
        let at = self.devices.iter().position(|d| d.device.name == name).ok_or(errno::ENOENT)?;
        Ok((at, self.rules.about(name)))
    }

    pub fn registers(&self, at: usize) -> Result<Registers, Errno> {
        let known = self.devices.get(at).ok_or(errno::ENOENT)?;
        Ok(Registers { va: known.va, pa: PhysAddr(known.device.at), bytes: known.device.bytes })
    }

    /// Source of its interrupt.
    pub fn source(&self, at: usize) -> Result<u64, Errno> {
        let known = self.devices.get(at).ok_or(errno::EBADF)?;
        if known.device.irq == 0 { Err(errno::ENOENT) } else { Ok(known.device.irq.into()) }
    }

    /// The domain becomes the one that has the interrupt.
    pub fn claim(&mut self, at: usize, domain: Asid) -> Result<(), Errno> {
        self.source(at)?;
        let driver = &mut self.devices[at].driver;
        if driver.is_some() {
            return Err(errno::EBUSY);
        }
        *driver = NonZeroU16::new(domain.number());
        Ok(())
    }

    /// What the domain could not be given after all.
    pub fn release(&mut self, at: usize) -> Result<(), Errno> {
        self.devices.get_mut(at).ok_or(errno::EBADF)?.driver = None;
        Ok(())
    }

    /// Who has its interrupt.
    pub fn driver(&self, at: usize) -> Result<Option<NonZeroU16>, Errno> {
        self.devices.get(at).map(|known| known.driver).ok_or(errno::EBADF)
    }

    /// The domain is dead: the positions of devices whose interrupts it had, with the sources.
    pub fn gone(&mut self, domain: Asid) -> Vec<(usize, u64)> {
        let its = |d: &Known| d.driver.is_some_and(|driver| driver.get() == domain.number());
        let its = self.devices.iter_mut().enumerate().filter(|(_, d)| its(d));
        its.map(|(at, d)| {
            d.driver = None;
            (at, d.device.irq.into())
        })
        .collect()
    }
}

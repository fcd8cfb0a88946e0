//! The raw wrapper of device registers.

use pebble_abi::map;

/// Registers of a device that the manifest granted, mapped page by page from `map::DEVICE_VA`; or that a
/// program was given.
#[derive(Clone, Copy)]
pub struct Mmio {
    base: usize,
    len: usize,
}

impl Mmio {
    /// `before`: pages of devices that the manifest names before it.
    pub const fn new(before: usize, registers: &map::Registers) -> Self {
        let page = (before + registers.page) * map::PAGE as usize;
        Mmio { base: map::DEVICE_VA as usize + page + registers.offset, len: registers.bytes }
    }

    /// The pages that the device server has mapped; none, if they are not where it maps them.
    pub(crate) fn granted(address: u64, bytes: u64) -> Option<Self> {
        let inside = address >= map::DEVICES_VA && bytes <= map::DEVICES_END.saturating_sub(address);
        inside.then_some(Mmio { base: address as usize, len: bytes as usize })
    }

    fn at(&self, offset: usize, size: usize) -> usize {
        assert!(offset.is_multiple_of(size) && offset + size <= self.len, "register outside the device");
        self.base + offset
    }

    pub fn read8(&self, offset: usize) -> u8 {
        // SAFETY: inside the device's pages, which hold no Rust object.
        unsafe { (self.at(offset, 1) as *const u8).read_volatile() }
    }

    pub fn write8(&self, offset: usize, value: u8) {
        // SAFETY: as in `read8`.
        unsafe { (self.at(offset, 1) as *mut u8).write_volatile(value) }
    }

    #[inline]
    pub fn read32(&self, offset: usize) -> u32 {
        // SAFETY: as in `read8`.
        unsafe { (self.at(offset, 4) as *const u32).read_volatile() }
    }

    #[inline]
    pub fn write32(&self, offset: usize, value: u32) {
        // SAFETY: as in `read8`.
        unsafe { (self.at(offset, 4) as *mut u32).write_volatile(value) }
    }
}

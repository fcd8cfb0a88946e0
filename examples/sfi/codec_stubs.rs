// Made from codec.h by `pebble sfi stubs`: change that, not this.

use pebble_sfi_runtime::{CallError, Error, Extent, Instance, Lent, Limit, Portal, Region};
use std::ffi::{CStr, CString};

/// The functions of `codec.h` in an instance.
pub struct Codec {
    /// Of each call: none, unless it is set.
    pub limit: Limit,
    instance_: Instance,
    checksum: Portal,
    pack: Portal,
    unpack: Portal,
    mean: Portal,
    knows: Portal,
    describe: Portal,
    halvings: Portal,
    watch: Portal,
}

impl TryFrom<&Instance> for Codec {
    type Error = Error;

    /// Opens the portals.
    fn try_from(instance: &Instance) -> Result<Codec, Error> {
        Ok(Codec {
            limit: Limit::default(),
            instance_: instance.clone(),
            checksum: instance.portal_over("checksum", "npri", &[Extent::counted(0, 1, 1)])?,
            pack: instance.portal_over("pack", "smriwi", &[Extent::counted(0, 1, 1), Extent::counted(2, 3, 1)])?,
            unpack: instance.portal_over("unpack", "smriwi", &[Extent::counted(0, 1, 1), Extent::counted(2, 3, 1)])?,
            mean: instance.portal_over("mean", "smriw", &[Extent::counted(0, 1, 8), Extent::bytes(2, 8)])?,
            knows: instance.portal_over("knows", "smr", &[Extent::text(0)])?,
            describe: instance.portal("describe", "smi")?,
            halvings: instance.portal("halvings", "smi")?,
            watch: instance.portal_over("watch", "smo", &[Extent::bytes(0, 8)])?,
        })
    }
}

impl Codec {
    /// `checksum_t checksum(const void *bytes, size_t count)`, by `npri`.
    pub fn checksum(&self, bytes: &[u8]) -> Result<u32, CallError> {
        let count = bytes.len();
        let bytes = Lent::read(bytes)?;
        self.checksum.call_within(self.limit, &[bytes.word(), count as u64]).map(|value| value as u32)
    }

    /// `long pack(const uint8_t *from, size_t count, uint8_t *to, size_t room)`, by `smriwi`.
    pub fn pack(&self, from: &[u8], to: &mut [u8]) -> Result<i64, CallError> {
        let count = from.len();
        let room = to.len();
        let from = Lent::read(from)?;
        let to = Lent::write(to)?;
        self.pack.call_within(self.limit, &[from.word(), count as u64, to.word(), room as u64]).map(|value| value as i64)
    }

    /// `long unpack(const uint8_t *from, size_t count, uint8_t *to, size_t room)`, by `smriwi`.
    pub fn unpack(&self, from: &[u8], to: &mut [u8]) -> Result<i64, CallError> {
        let count = from.len();
        let room = to.len();
        let from = Lent::read(from)?;
        let to = Lent::write(to)?;
        self.unpack.call_within(self.limit, &[from.word(), count as u64, to.word(), room as u64]).map(|value| value as i64)
    }

    /// `void mean(const double *samples, uint32_t count, double *result)`, by `smriw`.
    pub fn mean(&self, samples: &[f64], result: &mut [f64; 1]) -> Result<(), CallError> {
        let count = u32::try_from(samples.len()).map_err(|_| CallError::Lengths)?;
        let samples = Lent::read(samples)?;
        let result = Lent::write(result)?;
        self.mean.call_within(self.limit, &[samples.word(), count as u64, result.word()]).map(drop)
    }

    /// `bool knows(const char *format)`, by `smr`.
    pub fn knows(&self, format: &CStr) -> Result<bool, CallError> {
        let format = Lent::text(format)?;
        self.knows.call_within(self.limit, &[format.word()]).map(|value| value & 0xff != 0)
    }

    /// `const char *describe(int level)`, by `smi`.
    pub fn describe(&self, level: i32) -> Result<CString, CallError> {
        let at = self.describe.call_within(self.limit, &[level as u64])?;
        self.instance_.text(at, 1048576)
    }

    /// `uint32_t halvings(uint32_t length)`, by `smi`.
    pub fn halvings(&self, length: u32) -> Result<u32, CallError> {
        self.halvings.call_within(self.limit, &[length as u64]).map(|value| value as u32)
    }

    /// `void watch(uint64_t *calls)`, by `smo`.
    pub fn watch(&self, calls: &Region) -> Result<(), CallError> {
        self.watch.call_within(self.limit, &[calls.address()]).map(drop)
    }
}

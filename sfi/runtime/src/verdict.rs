//! The verifier's word on a module. Nothing becomes executable without it, and no function of this crate goes
//! round it.

use crate::elf::{Image, Level};
use crate::error::LoadError;
use crate::module::Module;
use pebble_sfi_verify as verifier;
use std::ops::Range;

/// What the verifier found out about accepted code, and what it needs to answer questions about return sites.
pub struct Verdict {
    /// Some instruction can change rounding modes or exception masks.
    pub control: bool,
    /// There are x87 instructions, or some that unmask what has been flagged before: an exception may wait.
    pub x87: bool,
    /// Some result may depend on how the process rounds.
    pub float: bool,
    /// Where the first instruction is that reads a clock of the processor's.
    pub timer: Option<u32>,
    scratch: Vec<u64>,
    /// Parts of the file.
    text: Range<usize>,
    rodata: Range<usize>,
    facts: Range<usize>,
    labels: Range<usize>,
    exports: Vec<u32>,
    ftab_bytes: u32,
}

pub use verifier::Site;

fn level(level: Level) -> verifier::Level {
    match level {
        Level::Write => verifier::Level::Write,
        Level::Full => verifier::Level::Full,
    }
}

/// Where a part of the file lies in it.
fn place(file: &[u8], part: &[u8]) -> Range<usize> {
    let at = (part.as_ptr() as usize).wrapping_sub(file.as_ptr() as usize);
    if part.is_empty() { 0..0 } else { at..at + part.len() }
}

/// What the verifier is asked about an image; `exports` are its entries.
pub fn to_verify<'a>(image: &'a Image, exports: &'a [u32]) -> verifier::Module<'a> {
    verifier::Module {
        level: level(image.level),
        text: image.text_bytes,
        text_at: image.text.start,
        ftab_size: image.ftab_bytes,
        rodata: image.rodata_bytes,
        rodata_at: image.rodata.start,
        data: image.data.clone(),
        facts: image.facts,
        labels: image.labels,
        exports,
        imports: image.imports.len() as u32,
    }
}

/// `image` is what was found in `file`.
pub fn verify(file: &[u8], image: &Image) -> Result<Verdict, LoadError> {
    let exports: Vec<u32> = image.exports.iter().map(|e| e.entry).collect();
    let mut scratch = vec![0; verifier::scratch_words(image.text_bytes.len())];
    let module = to_verify(image, &exports);
    let summary = verifier::verify(&module, &mut scratch).map_err(|r| LoadError::Refused(r.to_string()))?;
    scratch.truncate(summary.scratch_used(image.text_bytes.len()));
    scratch.shrink_to_fit();
    Ok(Verdict {
        control: summary.fp_control,
        x87: summary.x87 || summary.fp_control,
        float: summary.float || summary.x87 || summary.fp_control,
        timer: summary.timer,
        scratch,
        text: place(file, image.text_bytes),
        rodata: place(file, image.rodata_bytes),
        facts: place(file, image.facts),
        labels: place(file, image.labels),
        ftab_bytes: image.ftab_bytes,
        exports,
    })
}

impl Verdict {
    /// Preserved registers that a call may leave changed: all, since a fault may come while a function has
    /// changed what it would have put back, and the caller's registers are whole after a fault too. Saving
    /// them costs less than a nanosecond.
    pub fn touched_by(&self, _entry: u32) -> u16 {
        1 << 3 | 0xf << 12
    }

    /// Code at an address of the module, which is `self`'s.
    pub fn code<'a>(&self, module: &'a Module, at: u64, bytes: usize) -> Option<&'a [u8]> {
        let from = at.checked_sub(module.text.start.into())? as usize;
        module.bytes.get(self.text.clone())?.get(from..from.checked_add(bytes)?)
    }

    /// What the code knows around a return site of the module, which is `self`'s.
    pub fn site(&self, module: &Module, at: u32) -> Option<Site> {
        let part = |range: &Range<usize>| module.bytes.get(range.clone()).unwrap_or_default();
        let judged = verifier::Module {
            level: level(module.level),
            text: part(&self.text),
            text_at: module.text.start,
            ftab_size: self.ftab_bytes,
            rodata: part(&self.rodata),
            rodata_at: module.rodata_begin(),
            data: module.data_range(),
            facts: part(&self.facts),
            labels: part(&self.labels),
            exports: &self.exports,
            imports: module.imports.len() as u32,
        };
        verifier::site(&judged, &self.scratch, at)
    }
}

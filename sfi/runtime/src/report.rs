//! File and line of an address, from the module's own debug information. Never in the signal handler.

use addr2line::Context;
use gimli::{EndianRcSlice, RunTimeEndian};
use object::{Object, ObjectSection};
use std::rc::Rc;

/// The source of the instruction at a segment offset. Malformed debug information is none.
pub fn line(file: &[u8], at: u64) -> Option<(String, u32)> {
    let object = object::File::parse(file).ok()?;
    let load = |id: gimli::SectionId| -> Result<_, gimli::Error> {
        let data = object.section_by_name(id.name()).and_then(|s| s.data().ok()).unwrap_or_default();
        Ok(EndianRcSlice::new(Rc::from(data), RunTimeEndian::Little))
    };
    let dwarf = gimli::Dwarf::load(load).ok()?;
    let context = Context::from_dwarf(dwarf).ok()?;
    let location = context.find_location(at).ok()??;
    Some((location.file?.to_string(), location.line?))
}

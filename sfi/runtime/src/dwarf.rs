//! Debug information that has moved: a module's own speaks of offsets in a segment, a debugger of addresses in the process.
//!
//! Everything is read and written anew, since addresses are all over it, in forms that differ by compiler. What cannot be read is left out: then
//! the debugger knows symbols, and no lines.

use gimli::write::{Address, Dwarf, EndianVec, Sections};
use gimli::{EndianSlice, LittleEndian};
use object::{Object, ObjectSection};

/// Sections with their contents.
pub type Moved = Vec<(&'static str, Vec<u8>)>;

pub fn moved(file: &[u8], base: u64) -> Option<Moved> {
    let object = object::File::parse(file).ok()?;
    let mut all = moved_lines(&object, base).unwrap_or_default();
    let frames = object.section_by_name(FRAMES).and_then(|s| s.data().ok()).unwrap_or_default();
    all.extend(moved_frames(frames.to_vec(), base).map(|data| (FRAMES, data)));
    Some(all)
}

/// All but call frame information.
fn moved_lines(object: &object::File, base: u64) -> Option<Moved> {
    let load = |id: gimli::SectionId| -> Result<_, gimli::Error> {
        let data = object.section_by_name(id.name()).and_then(|s| s.data().ok()).unwrap_or_default();
        Ok(EndianSlice::new(data, LittleEndian))
    };
    let read = gimli::Dwarf::load(load).ok()?;
    let mut dwarf =
        Dwarf::from(&read, &|address| Some(Address::Constant(address.wrapping_add(base)))).ok()?;
    let mut sections = Sections::new(EndianVec::new(LittleEndian));
    dwarf.write(&mut sections).ok()?;
    let mut all = Moved::new();
    let kept = sections.for_each(|id, data| {
        if !data.slice().is_empty() {
            all.push((id.name(), data.slice().to_vec()));
        }
        Ok::<(), gimli::write::Error>(())
    });
    kept.ok().map(|()| all)
}

const FRAMES: &str = ".debug_frame";

/// Call frame information, whose only addresses are where each function begins. None if it is not of the form that the linker leaves.
fn moved_frames(mut data: Vec<u8>, base: u64) -> Option<Vec<u8>> {
    let mut at = 0;
    while at < data.len() {
        let word = |at: usize| Some(u32::from_le_bytes(data.get(at..at + 4)?.try_into().ok()?));
        let (length, what) = (word(at)?, word(at + 4)?);
        let place = at + 8..at + 16;
        at = at.checked_add(4 + length as usize)?;
        // Neither what functions have in common, nor functions that the linker has left out.
        let begin = u64::from_le_bytes(data.get(place.clone())?.try_into().ok()?);
        if what != u32::MAX && begin != 0 {
            data.get_mut(place)?.copy_from_slice(&begin.wrapping_add(base).to_le_bytes());
        }
    }
    Some(data)
}

/// An ELF file's bytes with these sections instead of all debug information that it had.
pub fn replace(mut file: Vec<u8>, sections: Moved) -> Option<Vec<u8>> {
    const HEADER: usize = 64;
    const PROGBITS: u32 = 1;
    let number = |file: &[u8], at: usize, bytes: usize| {
        let mut word = [0; 8];
        word[..bytes].copy_from_slice(file.get(at..at + bytes)?);
        usize::try_from(u64::from_le_bytes(word)).ok()
    };
    let (headers, count, names) = (number(&file, 40, 8)?, number(&file, 60, 2)?, number(&file, 62, 2)?);
    let mut table = file.get(headers..headers.checked_add(count * HEADER)?)?.to_vec();
    let place = |table: &[u8], i: usize| {
        Some((number(table, i * HEADER + 24, 8)?, number(table, i * HEADER + 32, 8)?))
    };
    let (at, bytes) = place(&table, names)?;
    let mut texts = file.get(at..at.checked_add(bytes)?)?.to_vec();
    for i in 0..count {
        let name = texts.get(number(&table, i * HEADER, 4)?..)?;
        if name.starts_with(b".debug_") {
            // Of no type: it is none.
            table[i * HEADER + 4..i * HEADER + 8].fill(0);
        }
    }
    let append = |file: &mut Vec<u8>, data: &[u8]| {
        file.resize(file.len().next_multiple_of(8), 0);
        let at = file.len();
        file.extend(data);
        at as u64
    };
    for (name, data) in &sections {
        let mut header = [0; HEADER];
        header[..4].copy_from_slice(&(texts.len() as u32).to_le_bytes());
        header[4..8].copy_from_slice(&PROGBITS.to_le_bytes());
        header[24..32].copy_from_slice(&append(&mut file, data).to_le_bytes());
        header[32..40].copy_from_slice(&(data.len() as u64).to_le_bytes());
        header[48..56].copy_from_slice(&1u64.to_le_bytes());
        texts.extend(name.bytes().chain([0]));
        table.extend(header);
    }
    let header = table.get_mut(names * HEADER..(names + 1) * HEADER)?;
    header[24..32].copy_from_slice(&append(&mut file, &texts).to_le_bytes());
    header[32..40].copy_from_slice(&(texts.len() as u64).to_le_bytes());
    let all = append(&mut file, &table);
    file.get_mut(40..48)?.copy_from_slice(&all.to_le_bytes());
    file.get_mut(60..62)?.copy_from_slice(&((table.len() / HEADER) as u16).to_le_bytes());
    Some(file)
}

//! Debug information that has moved: a module's own speaks of offsets in a segment, a debugger of addresses
//! in the process.
//!
//! Problem: addresses are all over it, in forms that differ by compiler, and it is the module's: no byte of
//! it may end the host. Strategy: every address has eight bytes in its place, so the file's copy is changed
//! where it is, section by section, and nothing gets longer. What a section says that is not understood ends
//! its own part of the work: then the debugger knows less. Ranges and locations that are relative to a unit
//! stay as they are, since what they are relative to has moved.

use crate::lines::{Bytes, Program, Step};
use gimli::{AttributeValue, DebugAbbrev, DebugInfo, EndianSlice, LittleEndian};
use object::{Object, ObjectSection};
use std::collections::HashMap;
use std::rc::Rc;

/// Units that are read, and attributes of them, for one instance; what is beyond keeps its addresses.
const MOST_UNITS: usize = 1 << 16;
const MOST_ATTRIBUTES: usize = 1 << 26;

/// Offsets of addresses in a section.
type Places = Vec<usize>;

/// Moves all addresses of the debug information in `out`, a copy of the file, up to `base`.
pub fn move_in(file: &[u8], out: &mut [u8], base: u64) {
    let Ok(object) = object::File::parse(file) else { return };
    let section = |name: &str| object.section_by_name(name).and_then(|s| s.data().ok()).unwrap_or_default();
    let info = |data: &[u8]| units(data, section(".debug_abbrev"));
    let all: [(&str, &dyn Fn(&[u8]) -> Places); 9] = [
        (".debug_info", &info),
        (".debug_line", &lines),
        (".debug_addr", &addresses),
        (".debug_aranges", &aranges),
        (".debug_ranges", &|data| pairs(data, false)),
        (".debug_loc", &|data| pairs(data, true)),
        (".debug_rnglists", &|data| lists(data, &RANGES, 0)),
        (".debug_loclists", &|data| {
            lists(data, &LOCATIONS, 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8)
        }),
        (".debug_frame", &frames),
    ];
    for (name, find) in all {
        let Some((from, _)) = object.section_by_name(name).and_then(|s| s.file_range()) else { continue };
        for place in find(section(name)) {
            let at = (from as usize).saturating_add(place);
            if let Some(word) =
                out.get_mut(at..at.saturating_add(8)).and_then(|w| <&mut [u8; 8]>::try_from(w).ok())
            {
                *word = u64::from_le_bytes(*word).wrapping_add(base).to_le_bytes();
            }
        }
    }
}

/// Attributes that are addresses, and variables that lie at one.
fn units(info: &[u8], abbreviations: &[u8]) -> Places {
    let mut places = Places::new();
    let read = DebugInfo::new(info, LittleEndian);
    let table = DebugAbbrev::new(abbreviations, LittleEndian);
    let mut known = HashMap::new();
    let (mut all, mut left) = (read.units(), MOST_ATTRIBUTES);
    for _ in 0..MOST_UNITS {
        let Ok(Some(unit)) = all.next() else { break };
        let at = unit.debug_abbrev_offset();
        let shared = match known.get(&at) {
            Some(shared) => Rc::clone(shared),
            None => {
                let Ok(own) = unit.abbreviations(&table) else { continue };
                Rc::clone(known.entry(at).or_insert(Rc::new(own)))
            }
        };
        let Some(begin) = unit.offset().as_debug_info_offset().map(|offset| offset.0) else { continue };
        let _ = entries(&unit, &shared, begin, &mut left, &mut places);
    }
    places
}

type Unit<'a> = gimli::UnitHeader<EndianSlice<'a, LittleEndian>>;

/// Of one unit, which begins at an offset of the section.
fn entries(
    unit: &Unit,
    abbreviations: &gimli::Abbreviations,
    begin: usize,
    left: &mut usize,
    places: &mut Places,
) -> Option<()> {
    const OPERATION_ADDRESS: u8 = 3;
    let mut entries = unit.entries_raw(abbreviations, None).ok()?;
    while !entries.is_empty() {
        let Some(abbreviation) = entries.read_abbreviation().ok()? else { continue };
        for specification in abbreviation.attributes() {
            *left = left.checked_sub(1)?;
            let from = begin.checked_add(entries.next_offset().0)?;
            let attribute = entries.read_attribute(*specification).ok()?;
            let to = begin.checked_add(entries.next_offset().0)?;
            match attribute.raw_value() {
                AttributeValue::Addr(_) if to - from == 8 => places.push(from),
                AttributeValue::Exprloc(gimli::Expression(bytes)) | AttributeValue::Block(bytes) => {
                    if bytes.len() >= 9 && bytes.first() == Some(&OPERATION_ADDRESS) {
                        places.push(to.checked_sub(bytes.len())? + 1);
                    }
                }
                _ => {}
            }
        }
    }
    Some(())
}

fn lines(section: &[u8]) -> Places {
    let (mut places, mut begin) = (Places::new(), 0);
    while let Some((end, program)) = Program::at(section, begin) {
        begin = end;
        let Some(program) = program else { continue };
        places.extend(program.steps().filter_map(|step| match step {
            Step::Address(at, _) => Some(at),
            _ => None,
        }));
    }
    places
}

/// Runs `read` on each table of a section that begins with its length.
fn tables(section: &[u8], mut read: impl FnMut(&mut Bytes, usize) -> Option<()>) {
    let mut at = 0;
    loop {
        let mut bytes = Bytes::new(section, at);
        let Some((end, offsets)) = bytes.length() else { return };
        let mut table = Bytes::new(&section[..end], bytes.at);
        let _ = read(&mut table, offsets);
        at = end;
    }
}

fn addresses(section: &[u8]) -> Places {
    let mut places = Places::new();
    tables(section, |table, _| {
        (table.number(4)? == 5 | 8 << 16).then_some(())?;
        places.extend((table.at..(table.all.len() + 1).saturating_sub(8)).step_by(8));
        Some(())
    });
    places
}

fn aranges(section: &[u8]) -> Places {
    let mut places = Places::new();
    tables(section, |table, offsets| {
        // The pairs are aligned to their length from the begin of the table.
        let begin = table.at - if offsets == 8 { 12 } else { 4 };
        table.take(2 + offsets)?;
        (table.number(2)? == 8).then_some(())?;
        table.at = begin + (table.at - begin).next_multiple_of(16);
        while let Some(address) = table.number(8) {
            if (address, table.number(8)?) != (0, 0) {
                places.push(table.at - 16);
            }
        }
        Some(())
    });
    places
}

/// Of version 4: pairs relative to a unit, but for those that say relative to what from there on. Behind each
/// of a location is what it is.
fn pairs(section: &[u8], located: bool) -> Places {
    let (mut places, mut bytes) = (Places::new(), Bytes::new(section, 0));
    while let (Some(first), Some(second)) = (bytes.number(8), bytes.number(8)) {
        match (first, second) {
            (u64::MAX, _) => places.push(bytes.at - 8),
            (0, 0) => {}
            _ if located => {
                let length = bytes.number(2).unwrap_or(0) as usize;
                if bytes.take(length).is_none() {
                    break;
                }
            }
            _ => {}
        }
    }
    places
}

/// What the entries of lists hold, by their kind: `a`ddresses and `n`umbers.
const RANGES: [&str; 8] = ["", "n", "nn", "nn", "nn", "a", "aa", "an"];
const LOCATIONS: [&str; 9] = ["", "n", "nn", "nn", "nn", "", "a", "aa", "an"];

/// Of version 5; `located` are the kinds behind which what there is comes.
fn lists(section: &[u8], kinds: &[&str], located: u16) -> Places {
    let mut places = Places::new();
    tables(section, |table, offsets| {
        (table.number(4)? == 5 | 8 << 16).then_some(())?;
        let count = table.number(4)? as usize;
        table.take(count.checked_mul(offsets)?)?;
        while let Some(kind) = table.byte() {
            for letter in kinds.get(usize::from(kind))?.bytes() {
                if letter == b'a' {
                    places.push(table.at);
                    table.take(8)?;
                } else {
                    table.unsigned()?;
                }
            }
            if located >> kind & 1 == 1 {
                let length = usize::try_from(table.unsigned()?).ok()?;
                table.take(length)?;
            }
        }
        Some(())
    });
    places
}

/// Call frame information, whose only addresses are where each function begins.
fn frames(section: &[u8]) -> Places {
    let mut places = Places::new();
    tables(section, |table, _| {
        let what = table.number(4)?;
        let at = table.at;
        // Neither what functions have in common, nor functions that the linker has left out.
        if what != u64::from(u32::MAX) && table.number(8)? != 0 {
            places.push(at);
        }
        Some(())
    });
    places
}

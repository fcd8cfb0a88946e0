//! File and line of an address, from the module's own debug information. Never in the signal handler.
//!
//! Problem: the information is the module's too, and most ways to read it let a few bytes stand for as much memory and time as they like. Strategy: line
//! programs alone, each read once, in the order of their section, with no more kept than the row before.

use gimli::{
    AttributeValue, DebugLine, DebugLineOffset, DebugLineStr, DebugStr, EndianSlice, LineProgramHeader,
};
use gimli::{LittleEndian, Section};
use object::{Object, ObjectSection};

/// Bytes of a program's lists of directories and files, and of one name: what is longer is left out.
const MOST_LISTED: u64 = 1 << 20;
const MOST_NAMED: usize = 4096;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// What names files.
struct Texts<'a> {
    lines: DebugLineStr<Slice<'a>>,
    all: DebugStr<Slice<'a>>,
}

/// The source of the instruction at a segment offset. Malformed debug information is none.
pub fn line(file: &[u8], at: u64) -> Option<(String, u32)> {
    let object = object::File::parse(file).ok()?;
    let section = |name: &str| object.section_by_name(name).and_then(|s| s.data().ok()).unwrap_or_default();
    let slice = |id: gimli::SectionId| EndianSlice::new(section(id.name()), LittleEndian);
    let texts = Texts {
        lines: slice(gimli::SectionId::DebugLineStr).into(),
        all: slice(gimli::SectionId::DebugStr).into(),
    };
    let mut rest = section(DebugLine::<Slice>::section_name());
    while let Some((program, listed)) = first(rest) {
        if listed <= MOST_LISTED
            && let Some(found) = find(program, at, &texts)
        {
            return Some(found);
        }
        rest = &rest[program.len()..];
    }
    None
}

/// The first program of a section, and how long its lists are.
fn first(section: &[u8]) -> Option<(&[u8], u64)> {
    let number = |at: usize, bytes: usize| {
        let bytes = section.get(at..at + bytes)?;
        Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    };
    let (begin, size) = if number(0, 4)? == u64::from(u32::MAX) { (12, 8) } else { (4, 4) };
    let length = usize::try_from(number(begin - size, size)?).ok()?;
    let program = section.get(..begin.checked_add(length)?)?;
    // Version 5 has two bytes more before the length of what is listed.
    let at = begin + if number(begin, 2)? < 5 { 2 } else { 4 };
    Some((program, number(at, size)?))
}

fn find<'a>(program: &'a [u8], at: u64, texts: &Texts<'a>) -> Option<(String, u32)> {
    let program = DebugLine::new(program, LittleEndian).program(DebugLineOffset(0), 8, None, None).ok()?;
    let mut rows = program.rows();
    let mut before: Option<(u64, u64, u32)> = None;
    while let Some((header, row)) = rows.next_row().ok()? {
        if let Some((_, file, line)) = before.filter(|(from, ..)| (*from..row.address()).contains(&at)) {
            return Some((path(header, file, texts)?, line));
        }
        let line = row.line().and_then(|line| u32::try_from(line.get()).ok());
        let known = line.filter(|_| !row.end_sequence());
        before = known.map(|line| (row.address(), row.file_index(), line));
    }
    None
}

/// A file's name behind its directory's, behind that of the compilation, as far as they are not whole.
fn path<'a>(header: &LineProgramHeader<Slice<'a>>, file: u64, texts: &Texts<'a>) -> Option<String> {
    let text = |value: AttributeValue<Slice<'a>>| match value {
        AttributeValue::String(text) => Some(text),
        AttributeValue::DebugLineStrRef(at) => texts.lines.get_str(at).ok(),
        AttributeValue::DebugStrRef(at) => texts.all.get_str(at).ok(),
        _ => None,
    };
    let file = header.file(file)?;
    let own = Some(file.directory_index()).filter(|own| *own != 0);
    let directories = [Some(0), own].map(|at| at.and_then(|at| header.directory(at)));
    let mut path = String::new();
    for part in directories.into_iter().flatten().chain([file.path_name()]) {
        let part = text(part).filter(|part| part.len() <= MOST_NAMED)?.to_string_lossy();
        if part.contains(char::is_control) {
            return None;
        }
        match part.starts_with('/') {
            true => path.clear(),
            false if !path.is_empty() => path.push('/'),
            false => {}
        }
        path += &part;
    }
    Some(path)
}

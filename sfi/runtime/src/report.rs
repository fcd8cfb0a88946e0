//! File and line of an address, from the module's own debug information. Never in the signal handler.
//!
//! Problem: the information is the module's too, as much as a file can hold, and most ways to read it let a
//! few bytes stand for as much memory and time as they like; but a fault is described within the time of a
//! call. Strategy: line programs alone, the likely ones first by the address that each begins with, and no
//! more than so many programs and so many of their steps for one question, whatever there is.

use crate::lines::{Program, Row, Step};
use gimli::{
    AttributeValue, DebugLine, DebugLineOffset, DebugLineStr, DebugStr, EndianSlice, LineProgramHeader,
};
use gimli::{LittleEndian, Section};
use object::{Object, ObjectSection};

/// Bytes of a program's lists of directories and files, and of one name: what is longer is left out.
const MOST_LISTED: u64 = 1 << 18;
const MOST_NAMED: usize = 4096;
/// Programs that are looked at, steps of them that are taken, and steps in which a program must set its first
/// address.
const MOST_PROGRAMS: usize = 1 << 14;
const MOST_STEPS: usize = 1 << 18;
const FIRST_STEPS: usize = 8;

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
    let lines = section(DebugLine::<Slice>::section_name());
    let (program, row) = find(lines, at)?;
    let texts = Texts {
        lines: slice(gimli::SectionId::DebugLineStr).into(),
        all: slice(gimli::SectionId::DebugStr).into(),
    };
    let whole = lines.get(program.begin..program.end)?;
    let read = DebugLine::new(whole, LittleEndian).program(DebugLineOffset(0), 8, None, None).ok()?;
    Some((path(read.header(), row.file, &texts)?, u32::try_from(row.line).ok().filter(|line| *line > 0)?))
}

/// The program that knows the address, and its row.
fn find(section: &[u8], at: u64) -> Option<(Program<'_>, Row)> {
    let mut programs = Vec::new();
    let mut begin = 0;
    while programs.len() < MOST_PROGRAMS
        && let Some((end, program)) = Program::at(section, begin)
    {
        begin = end;
        let Some(program) = program.filter(|program| program.listed <= MOST_LISTED) else { continue };
        let first = program.steps().take(FIRST_STEPS).find_map(|step| match step {
            Step::Address(_, address) => Some(address),
            _ => None,
        });
        // How far below, and those that say nothing or lie above behind all others.
        programs.push((first.filter(|first| *first <= at).map_or(u64::MAX, |first| at - first), program));
    }
    programs.sort_by_key(|(below, _)| *below);
    let mut steps = MOST_STEPS;
    programs.into_iter().find_map(|(_, program)| {
        let row = row(&program, at, &mut steps)?;
        Some((program, row))
    })
}

fn row(program: &Program, at: u64, steps: &mut usize) -> Option<Row> {
    let mut before: Option<Row> = None;
    for step in program.steps() {
        *steps = steps.checked_sub(1)?;
        let Step::Row(row) = step else { continue };
        if let Some(found) = before.filter(|before| (before.address..row.address).contains(&at)) {
            return Some(found);
        }
        before = Some(row).filter(|row| !row.end_sequence);
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

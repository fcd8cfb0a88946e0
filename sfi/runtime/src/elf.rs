//! The module file: an ELF file of the form in `docs/src/fault-domains.md`, and nothing else.
//!
//! Problem: the file is the attacker's. Strategy: every number is read through [`Bytes`], which knows the
//! offset it reads at, so each refusal names its byte; every count is checked against the size of the file
//! before it is used, so nothing is long or cyclic. Nothing here makes a file safe: the verifier judges code,
//! tables and facts; this module says where they are.

use crate::error::Malformed;
use crate::layout::{MAX_IMPORTS, MODULE, MODULE_END, PAGE, page_up};
use std::ops::Range;

type Result<T> = std::result::Result<T, Malformed>;

fn bad<T>(offset: u64, reason: &'static str) -> Result<T> {
    Err(Malformed { offset, reason })
}

/// Checked reads from the file.
#[derive(Clone, Copy)]
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn slice(self, at: u64, bytes: u64, reason: &'static str) -> Result<&'a [u8]> {
        let end = at.checked_add(bytes).and_then(|end| usize::try_from(end).ok());
        match (usize::try_from(at), end) {
            (Ok(at), Some(end)) => self.0.get(at..end).ok_or(Malformed { offset: at as u64, reason }),
            _ => bad(at, reason),
        }
    }

    fn array<const N: usize>(self, at: u64) -> Result<[u8; N]> {
        let bytes = self.slice(at, N as u64, "the file ends here")?;
        bytes.try_into().map_err(|_| Malformed { offset: at, reason: "the file ends here" })
    }

    fn u16(self, at: u64) -> Result<u16> {
        self.array(at).map(u16::from_le_bytes)
    }
    fn u32(self, at: u64) -> Result<u32> {
        self.array(at).map(u32::from_le_bytes)
    }
    fn u64(self, at: u64) -> Result<u64> {
        self.array(at).map(u64::from_le_bytes)
    }
}

/// A segment of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Segment {
    flags: u32,
    /// In memory.
    at: u64,
    end: u64,
    /// In the file.
    file: Range<u64>,
}

/// A section that is not loaded.
#[derive(Clone, Copy, Debug)]
struct Section<'a> {
    /// In the file.
    at: u64,
    /// In memory.
    address: u64,
    bytes: &'a [u8],
}

/// A function that the host may call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    pub name: String,
    /// Its code, a segment offset.
    pub entry: u32,
    /// Its portal specification, perhaps empty.
    pub spec: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    pub name: String,
    pub slot: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    pub name: String,
    pub at: u32,
    pub size: u32,
}

/// Protection level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Stores and jumps are confined.
    Write,
    /// Loads too.
    Full,
}

/// Template of the thread-local variables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    pub at: u32,
    pub file_bytes: u32,
    pub bytes: u32,
    pub align: u32,
}

/// A parsed module. Addresses are segment offsets.
#[derive(Clone, Debug)]
pub struct Image<'a> {
    pub level: Level,
    pub ftab: u32,
    pub ftab_bytes: u32,
    pub text: Range<u32>,
    pub rodata: Range<u32>,
    /// To the end of the image, with `.bss`.
    pub data: Range<u32>,
    pub tls: Tls,
    pub exports: Vec<Export>,
    pub imports: Vec<Import>,
    pub symbols: Vec<Symbol>,
    pub facts: &'a [u8],
    pub labels: &'a [u8],
    /// The whole `.pbl.module`, as the verifier wants it.
    pub header: &'a [u8],
    /// The bytes of text, read-only data and initialized data.
    pub text_bytes: &'a [u8],
    pub rodata_bytes: &'a [u8],
    pub data_bytes: &'a [u8],
    /// Words that become base + addend: place and addend.
    pub relocations: Vec<(u32, u32)>,
    /// Slots of the functions that run before all others, in order; none in programs, which run their own.
    pub constructors: Vec<u32>,
}

const PHDR: u64 = 56;
const SHDR: u64 = 64;
const MAX_SEGMENTS: u16 = 16;
const MAX_SECTIONS: u16 = 4096;
const PT_LOAD: u32 = 1;
const PT_INTERP: u32 = 3;
const SHT_NOBITS: u32 = 8;
const R_X86_64_RELATIVE: u64 = 8;
/// What programs export.
const START: &str = "_start";
const MAGIC: u32 = 0x4d4c_4250;

impl<'a> Image<'a> {
    pub fn parse(file: &'a [u8]) -> Result<Image<'a>> {
        let file = Bytes(file);
        let segments = segments(file)?;
        let [text, rodata, data] = &segments;
        let sections = Sections::find(file)?;
        let Some(header) = sections.module else {
            return bad(0, "there is no section .pbl.module: link with 'pebble sfi ld'");
        };
        let h = Bytes(header.bytes);
        let here = |e: Malformed| Malformed { offset: header.at + e.offset, ..e };
        let word = |at: u64| h.u32(at).map_err(here);
        let wrong = |at: u64, reason| bad::<Image>(header.at + at, reason);
        if word(0)? != MAGIC {
            return wrong(0, "this is not a module header");
        }
        if word(4)? & 0xffff != 1 {
            return wrong(4, "this version of the module format is not known");
        }
        let level = match word(4)? >> 16 {
            1 => Level::Write,
            2 => Level::Full,
            _ => return wrong(6, "this is not a protection level"),
        };
        let (ftab, ftab_bytes) = (word(8)?, word(12)?);
        let range = |at: u64, segment: &Segment, bytes: u64, reason| -> Result<Range<u32>> {
            let (begin, end) = (word(at)?, word(at + 4)?);
            if begin == end && u64::from(end) <= MODULE_END && u64::from(end).is_multiple_of(PAGE) {
                return Ok(begin..end);
            }
            let inside =
                u64::from(begin) == segment.at && begin < end && u64::from(end) <= segment.at + bytes;
            if inside { Ok(begin..end) } else { bad(header.at + at, reason) }
        };
        let length = |s: &Segment| s.file.end - s.file.start;
        let code = range(16, text, length(text), "text is not in the executable segment")?;
        let constants = range(24, rodata, length(rodata), "read-only data are not in their segment")?;
        let variables = range(32, data, data.end - data.at, "writable data are not in their segment")?;
        if !ftab_bytes.is_power_of_two() || ftab_bytes < 64 || ftab < MODULE as u32 || ftab != code.start {
            return wrong(8, "the table of functions is not at the begin of text");
        }
        if u64::from(ftab) != text.at || code.len() < ftab_bytes as usize {
            return wrong(16, "text does not begin with the table of functions");
        }
        let tls = tls(&word, header.at, rodata, data)?;
        let mut all = Names(4 * file.0.len() as u64);
        let (exports, imports) = names(h, header.at, &code, &mut all)?;
        let bytes = |s: &Segment, range: &Range<u32>| {
            if range.is_empty() {
                return Ok(&[][..]);
            }
            let from = s.file.start + (u64::from(range.start).saturating_sub(s.at));
            let most = s.file.end.saturating_sub(from);
            file.slice(from, (range.len() as u64).min(most), "the file ends in this segment")
        };
        let relocations = relocations(sections.rela, &variables, length(data))?;
        let constructors = match exports.iter().any(|export| export.name == START) {
            true => Vec::new(),
            false => constructors(sections.constructors, &relocations, ftab..ftab + ftab_bytes)?,
        };
        Ok(Image {
            level,
            ftab,
            ftab_bytes,
            text_bytes: bytes(text, &code)?,
            rodata_bytes: bytes(rodata, &constants)?,
            data_bytes: bytes(data, &variables)?,
            relocations,
            constructors,
            symbols: symbols(sections.symbols, sections.strings, &mut all)?,
            facts: sections.facts.map_or(&[], |s| s.bytes),
            labels: sections.labels.map_or(&[], |s| s.bytes),
            header: header.bytes,
            text: code,
            rodata: constants,
            data: variables,
            tls,
            exports,
            imports,
        })
    }

    /// End of what is mapped from the file.
    pub fn end(&self) -> u32 {
        self.data.end.max(self.rodata.end).max(self.text.end)
    }
}

/// Whether a file that begins so can be a module: what is told apart before the rest is read.
pub fn header(begin: &[u8]) -> Result<()> {
    let file = Bytes(begin);
    if file.slice(0, 7, "the file is too short")? != [0x7f, b'E', b'L', b'F', 2, 1, 1] {
        return bad(0, "not a little-endian 64-bit ELF file");
    }
    if file.u16(16)? != 3 || file.u16(18)? != 62 {
        return bad(16, "not a position-independent x86-64 file");
    }
    Ok(())
}

/// Text, read-only data, data, in this order; the latter two may be missing. Behind all three there may be
/// one more that is executable: what a system runs that takes the file for a program. It is nobody's here:
/// nothing maps or reads it.
fn segments(file: Bytes) -> Result<[Segment; 3]> {
    header(file.0)?;
    let (at, size, count) = (file.u64(32)?, file.u16(54)?, file.u16(56)?);
    if u64::from(size) != PHDR || count > MAX_SEGMENTS {
        return bad(54, "impossible size or number of program headers");
    }
    let mut out: [Segment; 3] = Default::default();
    let mut found = 0;
    let mut end = MODULE;
    for i in 0..u64::from(count) {
        let at = at.checked_add(i * PHDR).ok_or(Malformed { offset: 32, reason: "impossible place" })?;
        file.slice(at, PHDR, "program headers beyond the end of the file")?;
        let kind = file.u32(at)?;
        if kind == PT_INTERP {
            return bad(at, "a module has no interpreter");
        }
        if kind != PT_LOAD {
            continue;
        }
        let flags = file.u32(at + 4)? & 7;
        if found == 3 && flags == 5 {
            found = 4;
            continue;
        }
        let (offset, begin) = (file.u64(at + 8)?, file.u64(at + 16)?);
        let (bytes, memory) = (file.u64(at + 32)?, file.u64(at + 40)?);
        file.slice(offset, bytes, "a segment beyond the end of the file")?;
        let place = match flags {
            5 => 0,
            4 => 1,
            6 => 2,
            _ => return bad(at + 4, "a segment is rx, r or rw"),
        };
        if place < found || (place > 0 && found == 0) {
            return bad(at, "segments must be: one rx, then at most one r, then at most one rw");
        }
        found = place + 1;
        if begin % PAGE != 0
            || begin < end
            || memory < bytes
            || memory > MODULE_END
            || begin > MODULE_END - memory
        {
            return bad(at + 16, "a segment is misplaced, overlaps the one before, or does not fit");
        }
        if place < 2 && memory != bytes {
            return bad(at + 40, "only writable data may be longer than the file");
        }
        end = page_up(begin + memory);
        out[place] = Segment { flags, at: begin, end: begin + memory, file: offset..offset + bytes };
    }
    if found == 0 { bad(32, "there is no executable segment") } else { Ok(out) }
}

#[derive(Default)]
struct Sections<'a> {
    module: Option<Section<'a>>,
    facts: Option<Section<'a>>,
    labels: Option<Section<'a>>,
    rela: Option<Section<'a>>,
    symbols: Option<Section<'a>>,
    strings: Option<Section<'a>>,
    constructors: Option<Section<'a>>,
}

impl<'a> Sections<'a> {
    fn find(file: Bytes<'a>) -> Result<Sections<'a>> {
        let (at, size) = (file.u64(40)?, file.u16(58)?);
        let (count, names) = (file.u16(60)?, file.u16(62)?);
        if u64::from(size) != SHDR || count > MAX_SECTIONS || names >= count {
            return bad(58, "impossible size or number of section headers");
        }
        file.slice(at, SHDR * u64::from(count), "section headers beyond the end of the file")?;
        let section = |i: u16| -> Result<Section<'a>> {
            let header = at + u64::from(i) * SHDR;
            let (from, mut bytes) = (file.u64(header + 24)?, file.u64(header + 32)?);
            if file.u32(header + 4)? == SHT_NOBITS {
                bytes = 0;
            }
            let bytes = file.slice(from, bytes, "a section beyond the end of the file")?;
            Ok(Section { at: from, address: file.u64(header + 16)?, bytes })
        };
        let names = section(names)?;
        let mut out = Sections::default();
        for i in 0..count {
            let name = file.u32(at + u64::from(i) * SHDR)?;
            let place = match text(names, name)? {
                ".pbl.module" => &mut out.module,
                ".pbl.facts" => &mut out.facts,
                ".pbl.labels" => &mut out.labels,
                ".rela.dyn" => &mut out.rela,
                ".symtab" => &mut out.symbols,
                ".strtab" => &mut out.strings,
                ".init_array" => &mut out.constructors,
                _ => continue,
            };
            if place.is_some() {
                return bad(at + u64::from(i) * SHDR, "this section is there twice");
            }
            *place = Some(section(i)?);
        }
        Ok(out)
    }
}

/// The NUL-terminated text at an offset of a section.
fn text<'a>(section: Section<'a>, at: u32) -> Result<&'a str> {
    let offset = section.at + u64::from(at);
    let rest = section.bytes.get(at as usize..).unwrap_or_default();
    let most = rest.get(..rest.len().min(4096)).unwrap_or_default();
    let Some(end) = most.iter().position(|b| *b == 0) else {
        return bad(offset, "a name without an end");
    };
    match std::str::from_utf8(&most[..end]) {
        // It may be printed.
        Ok(name) if name.contains(char::is_control) => bad(offset, "a name with control characters"),
        Ok(name) => Ok(name),
        Err(_) => bad(offset, "a name that is not UTF-8"),
    }
}

/// How long names may be together: they can share their bytes, so a short file could have long ones without
/// end.
struct Names(u64);

impl Names {
    fn own(&mut self, section: Section, at: u32) -> Result<String> {
        let name = text(section, at)?;
        match self.0.checked_sub(name.len() as u64) {
            Some(left) => self.0 = left,
            None => return bad(section.at, "names that are much longer together than the file"),
        }
        Ok(name.into())
    }
}

fn tls(word: &impl Fn(u64) -> Result<u32>, header: u64, rodata: &Segment, data: &Segment) -> Result<Tls> {
    let tls = Tls { at: word(40)?, file_bytes: word(44)?, bytes: word(48)?, align: word(52)? };
    if tls.bytes == 0 {
        return Ok(Tls::default());
    }
    let from = u64::from(tls.at);
    let inside =
        |s: &Segment| from >= s.at && from + u64::from(tls.file_bytes) <= s.at + (s.file.end - s.file.start);
    let fits = tls.file_bytes <= tls.bytes && tls.bytes <= 1 << 20;
    if !fits
        || !tls.align.is_power_of_two()
        || tls.align > 4096
        || (tls.file_bytes > 0 && !inside(rodata) && !inside(data))
    {
        return bad(header + 40, "the template of thread-local variables is misplaced or too long");
    }
    Ok(tls)
}

fn names(h: Bytes, header: u64, code: &Range<u32>, all: &mut Names) -> Result<(Vec<Export>, Vec<Import>)> {
    let here = |e: Malformed| Malformed { offset: header + e.offset, ..e };
    let word = |at: u64| h.u32(at).map_err(here);
    let whole = Section { at: header, address: 0, bytes: h.0 };
    let (exports, imports) = (u64::from(word(56)?), u64::from(word(60)?));
    let size = 64 + exports * 16 + imports * 8;
    h.slice(64, size - 64, "more exports and imports than the section holds").map_err(here)?;
    if imports > u64::from(MAX_IMPORTS) {
        return bad(header + 60, "too many imports");
    }
    let mut out = (Vec::with_capacity(exports as usize), Vec::with_capacity(imports as usize));
    for at in (0..exports).map(|i| 64 + i * 16) {
        let entry = word(at + 4)?;
        if !code.contains(&entry) {
            return bad(header + at + 4, "an export outside the text");
        }
        let (name, spec) = (all.own(whole, word(at)?)?, all.own(whole, word(at + 8)?)?);
        out.0.push(Export { name, entry, spec });
    }
    for at in (0..imports).map(|i| 64 + exports * 16 + i * 8) {
        out.1.push(Import { name: all.own(whole, word(at)?)?, slot: word(at + 4)? });
    }
    Ok(out)
}

fn relocations(rela: Option<Section>, data: &Range<u32>, in_file: u64) -> Result<Vec<(u32, u32)>> {
    let Some(section) = rela else { return Ok(Vec::new()) };
    if section.bytes.len() % 24 != 0 {
        return bad(section.at, "relocations of an impossible length");
    }
    let bytes = Bytes(section.bytes);
    let end = (u64::from(data.start) + in_file).min(u64::from(data.end));
    let mut out = Vec::with_capacity(section.bytes.len() / 24);
    for at in (0..section.bytes.len() as u64).step_by(24) {
        let wrong = |reason| bad(section.at + at, reason);
        let (place, info, addend) = (bytes.u64(at)?, bytes.u64(at + 8)?, bytes.u64(at + 16)?);
        if info != R_X86_64_RELATIVE {
            return wrong("only relative relocations are allowed");
        }
        if place < u64::from(data.start) || place > end.saturating_sub(8) {
            return wrong("a relocation outside the initialized writable data");
        }
        let (Ok(place), Ok(addend)) = (u32::try_from(place), u32::try_from(addend)) else {
            return wrong("a relocation that points out of the segment");
        };
        out.push((place, addend));
    }
    Ok(out)
}

/// The functions whose addresses the section holds, as slots: every slot is a function's entry, whatever else
/// the module says.
fn constructors(section: Option<Section>, relocations: &[(u32, u32)], ftab: Range<u32>) -> Result<Vec<u32>> {
    let Some(section) = section else { return Ok(Vec::new()) };
    let words = section.address..section.address.saturating_add(section.bytes.len() as u64);
    let inside = relocations.iter().filter(|(place, _)| words.contains(&u64::from(*place)));
    let mut found: Vec<(u32, u32)> = inside.copied().collect();
    found.sort_unstable();
    if found.iter().any(|(_, slot)| !ftab.contains(slot) || slot % 8 != 0) {
        return bad(section.at, "a constructor is a slot of the table of functions");
    }
    Ok(found.into_iter().map(|(_, slot)| slot).collect())
}

/// Functions, sorted by address, for those who explain a fault.
fn symbols(table: Option<Section>, strings: Option<Section>, all: &mut Names) -> Result<Vec<Symbol>> {
    let (Some(table), Some(strings)) = (table, strings) else { return Ok(Vec::new()) };
    if table.bytes.len() % 24 != 0 {
        return bad(table.at, "symbols of an impossible length");
    }
    let bytes = Bytes(table.bytes);
    let mut out = Vec::new();
    for at in (0..table.bytes.len() as u64).step_by(24) {
        let (info, section) = (bytes.array::<1>(at + 4)?[0], bytes.u16(at + 6)?);
        let (value, size) = (bytes.u64(at + 8)?, bytes.u64(at + 16)?);
        let function = matches!(info & 15, 0 | 2) && section != 0;
        let (Ok(value), Ok(size)) = (u32::try_from(value), u32::try_from(size)) else { continue };
        let name = all.own(strings, bytes.u32(at)?)?;
        if function && !name.is_empty() && u64::from(value) >= MODULE && !name.starts_with(".L") {
            let name = name.strip_suffix("$code").unwrap_or(&name);
            out.push(Symbol { name: name.into(), at: value, size });
        }
    }
    out.sort_by(|a, b| (a.at, b.size, &a.name).cmp(&(b.at, a.size, &b.name)));
    Ok(out)
}

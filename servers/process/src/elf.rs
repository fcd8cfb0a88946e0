//! Program files: ELF, checked to the last field before anything is made of them.
//!
//! **Problem.** The file comes from a stranger. What is loaded must be exactly what a domain may hold: pages
//! inside the image range, each with the rights of one segment, none writable and executable at once.
//!
//! **Strategy.** [`Image::parse`] checks everything and only then answers; the image borrows its bytes from
//! the file. Section headers decide no more than where the import and export records are; the addresses in
//! these must lie in *segments*, that is, in what is going to be in memory.
//!
//! **Invariants** of an [`Image`]: segments are page-aligned, in ascending order, disjoint, not empty, inside
//! `IMAGE_VA..HEAP_END`, and together no more than the page limit; the entry lies in an executable one; every
//! import's slot is an aligned word in a writable one, or 0; every export's entry lies in an executable one.

use alloc::vec::Vec;
use core::fmt;
use object::elf::{self, FileHeader64, ProgramHeader64, SectionHeader64};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, Sym};
use object::{LittleEndian as LE, SectionIndex};
use pebble_abi::errno::{self, Errno};
use pebble_abi::link;
use pebble_abi::map::{HEAP_END, IMAGE_VA, PAGE};
use pebble_arch::Arch;

/// Most segments of a program.
pub const MAX_SEGMENTS: usize = 16;
/// Most sections of a file.
pub const MAX_SECTIONS: usize = 4096;
/// Most imports, and most exports, of a program.
pub const MAX_IMPORTS: usize = 256;
pub const MAX_EXPORTS: usize = 64;

/// What is wrong with a file, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// At this offset of the file.
    File { offset: u64, what: &'static str },
    /// At this address of the program.
    Memory { address: u64, what: &'static str },
    /// No memory to read it.
    NoMemory,
}

impl Problem {
    /// The error that the caller gets.
    pub const fn errno(self) -> Errno {
        match self {
            Problem::NoMemory => errno::ENOMEM,
            _ => errno::ENOEXEC,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::File { offset, what } => write!(f, "offset {offset:#x}: {what}"),
            Problem::Memory { address, what } => write!(f, "address {address:#x}: {what}"),
            Problem::NoMemory => errno::ENOMEM.fmt(f),
        }
    }
}

const fn file(offset: u64, what: &'static str) -> Problem {
    Problem::File { offset, what }
}

/// Pages with the same rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    pub address: u64,
    pub pages: u64,
    /// What its first bytes are; the rest is zero.
    pub bytes: &'a [u8],
    /// Where they are in the file.
    pub offset: u64,
    /// Size in memory, in bytes: what may be referred to.
    pub size: u64,
    pub write: bool,
    pub execute: bool,
}

impl Segment<'_> {
    pub const fn end(&self) -> u64 {
        self.address + self.pages * PAGE
    }

    /// Nobody writes to it, and it is pages of the file as they are. In the last one, what follows in the file
    /// follows here.
    pub const fn is_of_file(&self) -> bool {
        !self.write && self.bytes.len() as u64 == self.size && self.offset.is_multiple_of(PAGE)
    }

    /// Does it hold `len` bytes at `address`?
    fn holds(&self, address: u64, len: u64) -> bool {
        address >= self.address
            && address - self.address <= self.size
            && len <= self.size - (address - self.address)
    }
}

/// An interface that the program calls, and where it wants the portal's index; 0: nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Import<'a> {
    pub name: &'a str,
    pub slot: u64,
    /// They are opened in this order.
    pub order: u64,
}

/// An interface that the program offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Export<'a> {
    pub name: &'a str,
    pub spec: &'a str,
    pub entry: u64,
    /// Interfaces are numbered in this order.
    order: u64,
}

/// A program that may be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image<'a> {
    pub entry: u64,
    /// Uses floating-point registers.
    pub float: bool,
    pub segments: Vec<Segment<'a>>,
    pub imports: Vec<Import<'a>>,
    pub exports: Vec<Export<'a>>,
    /// Its manifest, if it brings one.
    pub manifest: Option<&'a [u8]>,
}

impl<'a> Image<'a> {
    /// Checks a file; `page_limit` bounds what it may occupy.
    pub fn parse<A: Arch>(data: &'a [u8], page_limit: u64) -> Result<Self, Problem> {
        let header = header(data)?;
        if header.e_machine(LE).0 != A::ELF_MACHINE {
            return Err(file(18, "not for this processor"));
        }
        let segments = segments(header, data, page_limit)?;
        let entry = header.e_entry(LE);
        if !A::is_aligned(entry) || !segments.iter().any(|s| s.execute && s.holds(entry, 2)) {
            return Err(Problem::Memory { address: entry, what: "the entry lies in no executable segment" });
        }
        let imports = imports(header, data, &segments)?;
        let exports = exports(header, data, &segments)?;
        let float = A::uses_float(header.e_flags(LE).0).map_err(|what| file(48, what))?;
        let manifest = manifest(header, data)?;
        Ok(Image { entry, float, segments, imports, exports, manifest })
    }

    /// First address after the image: where the heap begins.
    pub fn end(&self) -> u64 {
        self.segments.last().map_or(IMAGE_VA, Segment::end)
    }
}

/// The header of an executable, of whatever processor.
fn header(data: &[u8]) -> Result<&FileHeader64<LE>, Problem> {
    let header = FileHeader64::<LE>::parse(data).map_err(|_| file(0, "no 64-bit ELF header"))?;
    if header.endian().is_err() {
        return Err(file(5, "not little-endian"));
    }
    if header.e_type(LE) != elf::ET_EXEC {
        return Err(file(16, "not an executable with fixed addresses"));
    }
    Ok(header)
}

fn segments<'a>(
    header: &FileHeader64<LE>,
    data: &'a [u8],
    page_limit: u64,
) -> Result<Vec<Segment<'a>>, Problem> {
    let headers =
        header.program_headers(LE, data).map_err(|_| file(32, "the program headers lie outside the file"))?;
    let mut segments: Vec<Segment> = Vec::new();
    segments.try_reserve_exact(headers.len().min(MAX_SEGMENTS)).map_err(|_| Problem::NoMemory)?;
    let mut pages = 0;
    for (n, p) in headers.iter().enumerate() {
        let at = header.e_phoff(LE).saturating_add((n * size_of::<ProgramHeader64<LE>>()) as u64);
        match p.p_type(LE) {
            elf::PT_LOAD if p.p_memsz(LE) > 0 || p.p_filesz(LE) > 0 => {}
            elf::PT_INTERP | elf::PT_DYNAMIC => return Err(file(at, "needs a dynamic linker")),
            _ => continue,
        }
        if segments.len() == MAX_SEGMENTS {
            return Err(file(at, "too many segments"));
        }
        let segment = segment(p, data, at)?;
        pages += segment.pages;
        if pages > page_limit {
            return Err(Problem::Memory {
                address: segment.address,
                what: "the program needs too many pages",
            });
        }
        // In its place: they are few, and a sort of the library takes 4 KiB of stack.
        segments.insert(segments.partition_point(|s| s.address <= segment.address), segment);
    }
    if let Some(pair) = segments.windows(2).find(|pair| pair[0].end() > pair[1].address) {
        return Err(Problem::Memory { address: pair[1].address, what: "two segments share a page" });
    }
    Ok(segments)
}

/// One `PT_LOAD` header, which stands at `at` in the file.
fn segment<'a>(p: &ProgramHeader64<LE>, data: &'a [u8], at: u64) -> Result<Segment<'a>, Problem> {
    let (address, size) = (p.p_vaddr(LE), p.p_memsz(LE));
    let fail = |what| Err(Problem::Memory { address, what });
    if address % PAGE != 0 {
        return fail("a segment that does not begin with a page");
    }
    if !(IMAGE_VA..=HEAP_END).contains(&address) || size > HEAP_END - address {
        return fail("a segment outside the range of images");
    }
    if p.p_filesz(LE) > size {
        return fail("a segment with more bytes in the file than in memory");
    }
    let flags = p.p_flags(LE).0;
    let (write, execute) = (flags & elf::PF_W.0 != 0, flags & elf::PF_X.0 != 0);
    if write && execute {
        return fail("a segment that is writable and executable");
    }
    let bytes = p.data(LE, data).map_err(|()| file(at, "a segment that reaches beyond the file"))?;
    let (pages, offset) = (size.div_ceil(PAGE), p.p_offset(LE));
    Ok(Segment { address, pages, bytes, offset, size, write, execute })
}

/// The section of this name. As much of a section's own name is looked at: to find its end would be to read
/// the whole file for each, if there is none, while everybody else waits for the loader.
fn named<'a>(
    header: &FileHeader64<LE>,
    data: &'a [u8],
    name: &str,
) -> Result<Option<&'a SectionHeader64<LE>>, Problem> {
    let outside = file(40, "the section headers lie outside the file");
    let sections = header.section_headers(LE, data).map_err(|_| outside)?;
    if sections.len() > MAX_SECTIONS {
        return Err(file(60, "too many sections"));
    }
    if sections.is_empty() {
        return Ok(None);
    }
    let names = header.shstrndx(LE, data).ok().and_then(|at| sections.get(at as usize)).ok_or(outside)?;
    let names = names.data(LE, data).map_err(|_| outside)?;
    let called = |s: &&SectionHeader64<LE>| {
        let rest = names.get(s.sh_name(LE) as usize..).and_then(|own| own.strip_prefix(name.as_bytes()));
        rest.is_some_and(|rest| rest.first() == Some(&0))
    };
    Ok(sections.iter().find(called))
}

/// The text of the manifest's section.
fn manifest<'a>(header: &FileHeader64<LE>, data: &'a [u8]) -> Result<Option<&'a [u8]>, Problem> {
    let Some(section) = named(header, data, link::MANIFEST)? else { return Ok(None) };
    let bytes = section
        .data(LE, data)
        .map_err(|_| file(section.sh_offset(LE), "the manifest lies outside the file"))?;
    Ok(Some(bytes))
}

/// Records of one section: where in the file they begin, and their bytes.
fn records<'a>(
    header: &FileHeader64<LE>,
    data: &'a [u8],
    section: &str,
    record: usize,
    most: usize,
) -> Result<(u64, &'a [u8]), Problem> {
    let Some(section) = named(header, data, section)? else { return Ok((0, &[])) };
    let (offset, size) = (section.sh_offset(LE), section.sh_size(LE));
    if size % record as u64 != 0 {
        return Err(file(offset, "no whole import or export records"));
    }
    if size / record as u64 > most as u64 {
        return Err(file(offset, "too many imports or exports"));
    }
    let bytes = section.data(LE, data);
    bytes.map(|bytes| (offset, bytes)).map_err(|_| file(offset, "import or export records outside the file"))
}

/// The number that stands there.
fn word(record: &[u8], at: usize) -> u64 {
    record.get(at..).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn imports<'a>(
    header: &FileHeader64<LE>,
    data: &'a [u8],
    segments: &[Segment<'a>],
) -> Result<Vec<Import<'a>>, Problem> {
    let (offset, records) = records(header, data, link::IMPORTS, link::IMPORT_BYTES, MAX_IMPORTS)?;
    let mut imports = Vec::new();
    imports.try_reserve_exact(records.len() / link::IMPORT_BYTES).map_err(|_| Problem::NoMemory)?;
    for (record, at) in records.chunks_exact(link::IMPORT_BYTES).zip((offset..).step_by(link::IMPORT_BYTES)) {
        let slot = word(record, link::IMPORT_SLOT);
        if slot != 0 && !(slot.is_multiple_of(8) && segments.iter().any(|s| s.write && s.holds(slot, 8))) {
            return Err(Problem::Memory {
                address: slot,
                what: "an import's index goes into no writable word",
            });
        }
        let name = text(&record[..link::NAMELEN]).filter(|name| !name.is_empty());
        let name = name.ok_or(file(at, "an import's name is no text"))?;
        let order = word(record, link::IMPORT_ORDER);
        let place = imports.partition_point(|i: &Import| i.order <= order);
        imports.insert(place, Import { name, slot, order });
    }
    Ok(imports)
}

fn exports<'a>(
    header: &FileHeader64<LE>,
    data: &'a [u8],
    segments: &[Segment<'a>],
) -> Result<Vec<Export<'a>>, Problem> {
    let (offset, records) = records(header, data, link::EXPORTS, link::EXPORT_BYTES, MAX_EXPORTS)?;
    let mut exports = Vec::new();
    exports.try_reserve_exact(records.len() / link::EXPORT_BYTES).map_err(|_| Problem::NoMemory)?;
    for (record, at) in records.chunks_exact(link::EXPORT_BYTES).zip((offset..).step_by(link::EXPORT_BYTES)) {
        let fail = |what| file(at, what);
        let (name, rest) = record.split_at(link::NAMELEN);
        let name = text(name).filter(|n| !n.is_empty()).ok_or(fail("an export's name is no text"))?;
        let spec = text(&rest[..link::SPECLEN]).ok_or(fail("an export's specification is no text"))?;
        let entry = word(record, link::EXPORT_ENTRY);
        if !segments.iter().any(|s| s.execute && s.holds(entry, 2)) {
            return Err(fail("an export's entry lies in no executable segment"));
        }
        let order = word(record, link::EXPORT_ORDER);
        let place = exports.partition_point(|e: &Export| e.order <= order);
        exports.insert(place, Export { name, spec, entry, order });
    }
    Ok(exports)
}

/// The bytes before the first zero.
fn text(bytes: &[u8]) -> Option<&str> {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    core::str::from_utf8(&bytes[..end]).ok()
}

/// The function that an address belongs to, and how far behind its beginning the address is: the symbol that
/// covers it, or else the last one before it in the same section.
pub fn symbol(data: &[u8], address: u64) -> Option<(&str, u64)> {
    let header = header(data).ok()?;
    let sections = header.sections(LE, data).ok()?;
    let section = sections.enumerate().skip(1).find_map(|(index, s)| {
        let inside = address.checked_sub(s.sh_addr(LE)).is_some_and(|offset| offset < s.sh_size(LE));
        (inside && s.sh_flags(LE).0 & elf::SHF_EXECINSTR.0 != 0).then_some(index)
    })?;
    let symbols = sections.symbols(LE, data, elf::SHT_SYMTAB).ok()?;
    let named = symbols.iter().filter(|s| {
        s.st_type() == elf::STT_FUNC
            && s.st_value(LE) <= address
            && SectionIndex(s.st_shndx(LE).0.into()) == section
    });
    let covers = |s: &elf::Sym64<LE>| address - s.st_value(LE) < s.st_size(LE);
    let best = named.max_by_key(|s| (covers(s), s.st_value(LE)))?;
    let name = core::str::from_utf8(symbols.symbol_name(LE, best).ok()?).ok()?;
    Some((name, address - best.st_value(LE)))
}

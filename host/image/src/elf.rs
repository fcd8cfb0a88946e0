//! Reading component ELF files: segments, exports, imports, symbols.

use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSection, ObjectSymbol};
use pebble_abi::{link, map};
use pebble_arch::{Arch, Processor};
use std::fmt;

#[derive(Clone, Debug)]
pub struct Segment {
    pub va: u64,
    pub bytes: Vec<u8>,
    /// Size in memory; the rest is zero.
    pub size: u64,
    pub write: bool,
    pub execute: bool,
}

#[derive(Clone, Debug)]
pub struct Export {
    pub name: String,
    pub spec: String,
    pub entry: u64,
}

/// An import record: its name, and where its index goes, if anywhere.
#[derive(Clone, Debug)]
pub struct Import {
    pub name: String,
    pub slot: Option<u64>,
}

#[derive(Clone, Debug)]
pub struct Component {
    pub entry: u64,
    pub float: bool,
    pub segments: Vec<Segment>,
    pub exports: Vec<Export>,
    pub imports: Vec<Import>,
    /// Function symbols: address, name; sorted.
    pub symbols: Vec<(u64, String)>,
}

#[derive(Debug)]
pub enum ElfError {
    Parse(object::Error),
    /// Not for this processor, or not for what it has.
    Foreign {
        processor: Processor,
        what: &'static str,
    },
    Segment {
        va: u64,
        what: &'static str,
    },
    Record {
        section: &'static str,
        what: &'static str,
    },
}

impl fmt::Display for ElfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ElfError::Parse(e) => write!(f, "not a readable ELF file: {e}"),
            ElfError::Foreign { processor, what } => write!(f, "{what} ({processor})"),
            ElfError::Segment { va, what } => write!(f, "segment at {va:#x}: {what}"),
            ElfError::Record { section, what } => write!(f, "section {section}: {what}"),
        }
    }
}

impl std::error::Error for ElfError {}

impl From<object::Error> for ElfError {
    fn from(e: object::Error) -> Self {
        ElfError::Parse(e)
    }
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk::<8>().map_or(0, |b| u64::from_le_bytes(*b))
}

impl Component {
    pub fn parse<A: Arch>(data: &[u8]) -> Result<Component, ElfError> {
        let header = object::elf::FileHeader64::<Endianness>::parse(data)?;
        let endian = header.endian()?;
        let foreign = |what| ElfError::Foreign { processor: A::PROCESSOR, what };
        if header.e_machine(endian).0 != A::ELF_MACHINE {
            return Err(foreign("not for this processor"));
        }
        let float = A::uses_float(header.e_flags(endian).0).map_err(foreign)?;
        let mut segments = Vec::new();
        for p in header.program_headers(endian, data)? {
            if p.p_type(endian) != object::elf::PT_LOAD || p.p_memsz(endian) == 0 {
                continue;
            }
            let va = p.p_vaddr(endian);
            let fail = |what| ElfError::Segment { va, what };
            let size = p.p_memsz(endian);
            let bytes = p.data(endian, data).map_err(|()| fail("reaches beyond the file"))?.to_vec();
            let flags = p.p_flags(endian);
            segments.push(Segment {
                va,
                bytes,
                size,
                write: flags.0 & object::elf::PF_W.0 != 0,
                execute: flags.0 & object::elf::PF_X.0 != 0,
            });
        }
        let file = object::read::elf::ElfFile64::<Endianness>::parse(data)?;
        let records = |section, bytes, order| -> Result<Vec<&[u8]>, ElfError> {
            let data = file.section_by_name(section).map_or(Ok(&[][..]), |section| section.data())?;
            if data.len() % bytes != 0 {
                return Err(ElfError::Record { section, what: "not a whole number of records" });
            }
            let mut records: Vec<_> = data.chunks(bytes).collect();
            records.sort_by_key(|record| word(&record[order..]));
            Ok(records)
        };
        let exports = records(link::EXPORTS, link::EXPORT_BYTES, link::EXPORT_ORDER)?
            .into_iter()
            .map(|r| Export {
                name: text(&r[..link::NAMELEN]),
                spec: text(&r[link::NAMELEN..link::EXPORT_ENTRY]),
                entry: word(&r[link::EXPORT_ENTRY..]),
            })
            .collect();
        let imports = records(link::IMPORTS, link::IMPORT_BYTES, link::IMPORT_ORDER)?
            .into_iter()
            .map(|r| Import {
                name: text(&r[..link::NAMELEN]),
                slot: Some(word(&r[link::IMPORT_SLOT..])).filter(|slot| *slot != 0),
            })
            .collect();
        let mut symbols: Vec<(u64, String)> = file
            .symbols()
            .filter(|s| s.kind() == object::SymbolKind::Text && s.size() > 0)
            .filter_map(|s| Some((s.address(), s.name().ok()?.to_string())))
            .collect();
        symbols.sort();
        Ok(Component { entry: header.e_entry(endian), float, segments, exports, imports, symbols })
    }

    /// Checks that segments lie where a domain's image may be.
    pub fn check_user(&self) -> Result<(), ElfError> {
        for s in &self.segments {
            let fail = |what| ElfError::Segment { va: s.va, what };
            if s.write && s.execute {
                return Err(fail("both writable and executable"));
            }
            if s.va < map::IMAGE_VA || s.va.checked_add(s.size).is_none_or(|end| end > map::HEAP_END) {
                return Err(fail("outside the image range of a domain"));
            }
            if s.va % map::PAGE != 0 {
                return Err(fail("not page-aligned"));
            }
        }
        Ok(())
    }

    /// First page after the image.
    pub fn end(&self) -> u64 {
        self.segments
            .iter()
            .map(|s| (s.va + s.size).next_multiple_of(map::PAGE))
            .max()
            .unwrap_or(map::IMAGE_VA)
    }
}

/// Address of a symbol of an ELF file, of whatever kind.
pub fn symbol(data: &[u8], name: &str) -> Option<u64> {
    let file = object::read::elf::ElfFile64::<Endianness>::parse(data).ok()?;
    file.symbols().find(|s| s.name() == Ok(name)).map(|s| s.address())
}

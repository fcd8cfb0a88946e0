//! As much of ELF64 as the linking step needs: sections by name, symbols, patching a section in place.

#[derive(Debug)]
pub enum Error {
    /// Not an ELF64 little-endian file, or cut short at this offset.
    Malformed(usize),
    NoSection(&'static str),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Malformed(at) => write!(f, "malformed ELF file at offset {at:#x}"),
            Error::NoSection(name) => write!(f, "no section {name}"),
        }
    }
}

#[derive(Debug, Clone)]
pub struct Section {
    pub name: String,
    pub kind: u32,
    pub address: u64,
    pub offset: usize,
    pub size: usize,
    pub link: usize,
}

#[derive(Debug)]
pub struct Elf {
    pub bytes: Vec<u8>,
    pub sections: Vec<Section>,
}

fn word(bytes: &[u8], at: usize, len: usize) -> Result<u64, Error> {
    let part = at.checked_add(len).and_then(|end| bytes.get(at..end)).ok_or(Error::Malformed(at))?;
    Ok(part.iter().rev().fold(0, |v, b| v << 8 | u64::from(*b)))
}

fn text(bytes: &[u8], at: usize) -> Result<String, Error> {
    let rest = bytes.get(at..).ok_or(Error::Malformed(at))?;
    let end = rest.iter().position(|b| *b == 0).ok_or(Error::Malformed(at))?;
    Ok(String::from_utf8_lossy(&rest[..end]).into_owned())
}

impl Elf {
    pub fn parse(bytes: Vec<u8>) -> Result<Elf, Error> {
        if bytes.get(..6) != Some(b"\x7fELF\x02\x01") {
            return Err(Error::Malformed(0));
        }
        let table = word(&bytes, 40, 8)? as usize;
        let count = word(&bytes, 60, 2)? as usize;
        let names = word(&bytes, 62, 2)? as usize;
        let mut sections = Vec::new();
        for i in 0..count {
            let at = table + 64 * i;
            sections.push(Section {
                name: (word(&bytes, at, 4)? as usize).to_string(),
                kind: word(&bytes, at + 4, 4)? as u32,
                address: word(&bytes, at + 16, 8)?,
                offset: word(&bytes, at + 24, 8)? as usize,
                size: word(&bytes, at + 32, 8)? as usize,
                link: word(&bytes, at + 40, 4)? as usize,
            });
        }
        let base = sections.get(names).ok_or(Error::Malformed(62))?.offset;
        for s in &mut sections {
            let at = base + s.name.parse::<usize>().map_err(|_| Error::Malformed(base))?;
            s.name = text(&bytes, at)?;
        }
        Ok(Elf { bytes, sections })
    }

    pub fn section(&self, name: &'static str) -> Result<&Section, Error> {
        self.sections.iter().find(|s| s.name == name).ok_or(Error::NoSection(name))
    }

    /// The bytes of a section; none if there is no such section or it takes no room in the file.
    pub fn contents(&self, name: &'static str) -> &[u8] {
        match self.section(name) {
            Ok(s) if s.kind != 8 => self.bytes.get(s.offset..s.offset + s.size).unwrap_or(&[]),
            _ => &[],
        }
    }

    /// Names and values of the defined symbols.
    pub fn symbols(&self) -> Result<Vec<(String, u64)>, Error> {
        const SYMTAB: u32 = 2;
        let mut out = Vec::new();
        for s in self.sections.iter().filter(|s| s.kind == SYMTAB) {
            let strings = self.sections.get(s.link).ok_or(Error::Malformed(s.offset))?.offset;
            for at in (s.offset..s.offset + s.size).step_by(24) {
                if word(&self.bytes, at + 6, 2)? != 0 {
                    let name = text(&self.bytes, strings + word(&self.bytes, at, 4)? as usize)?;
                    out.push((name, word(&self.bytes, at + 8, 8)?));
                }
            }
        }
        Ok(out)
    }

    /// Program headers: type, address, size in the file, size in memory, alignment, flags.
    pub fn segments(&self) -> Result<Vec<[u64; 6]>, Error> {
        let table = word(&self.bytes, 32, 8)? as usize;
        let count = word(&self.bytes, 56, 2)? as usize;
        (0..count)
            .map(|i| {
                let at = table + 56 * i;
                Ok([
                    word(&self.bytes, at, 4)?,
                    word(&self.bytes, at + 16, 8)?,
                    word(&self.bytes, at + 32, 8)?,
                    word(&self.bytes, at + 40, 8)?,
                    word(&self.bytes, at + 48, 8)?,
                    word(&self.bytes, at + 4, 4)?,
                ])
            })
            .collect()
    }
}

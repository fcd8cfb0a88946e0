//! As much of ELF64 as the linking step needs: sections by name, symbols, patching a section in place.
//!
//! Problem: objects come from any compiler, and may be cut short or damaged. Strategy: every place and size
//! that a header names is compared with the file before it is used, and a refusal names the byte that says
//! so. Invariant: the range of a section lies in the file.

use std::ops::Range;

#[derive(Debug)]
pub enum Error {
    /// What is wrong with what this byte of the file says.
    Malformed(usize, &'static str),
    NoSection(&'static str),
    /// This section has less room than what goes into it.
    NoRoom(&'static str),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Malformed(at, what) => {
                write!(f, "malformed ELF file, byte {at:#x}: {what}; compile or link it again")
            }
            Error::NoSection(name) => write!(f, "no section {name}"),
            Error::NoRoom(name) => write!(f, "too little room in section {name}: let no object have one"),
        }
    }
}

#[derive(Debug, Clone)]
pub struct Section {
    pub name: String,
    pub kind: u32,
    pub address: u64,
    pub size: usize,
    /// Its bytes in the file; none if it has only room in memory.
    pub range: Range<usize>,
    /// The section that belongs to it, and the byte that says so.
    link: (usize, usize),
}

#[derive(Debug)]
pub struct Elf {
    pub bytes: Vec<u8>,
    pub sections: Vec<Section>,
}

/// A section that takes no room in the file: `SHT_NULL`, `SHT_NOBITS`.
const BARE: [u32; 2] = [0, 8];
const SYMTAB: u32 = 2;
const SYMBOL: usize = 24;

fn word(bytes: &[u8], at: usize, len: usize) -> Result<u64, Error> {
    let part = at.checked_add(len).and_then(|end| bytes.get(at..end));
    let part = part.ok_or(Error::Malformed(at.min(bytes.len()), "the file ends here"))?;
    Ok(part.iter().rev().fold(0, |v, b| v << 8 | u64::from(*b)))
}

/// The bytes that the word at `field` begins, if they are in the file.
fn place(bytes: &[u8], field: usize, size: u64, what: &'static str) -> Result<Range<usize>, Error> {
    let at = word(bytes, field, 8)?;
    let end = at.checked_add(size).filter(|end| *end <= bytes.len() as u64);
    end.map(|end| at as usize..end as usize).ok_or(Error::Malformed(field, what))
}

/// The NUL-terminated name in `names` that the word at `field` leads to.
fn text(bytes: &[u8], field: usize, names: &Range<usize>) -> Result<String, Error> {
    let from = word(bytes, field, 4)? as usize;
    let rest = bytes.get(names.clone()).and_then(|names| names.get(from..)).unwrap_or_default();
    let end = rest.iter().position(|b| *b == 0);
    let end = end.ok_or(Error::Malformed(field, "this name is not in its section"))?;
    Ok(String::from_utf8_lossy(&rest[..end]).into_owned())
}

impl Elf {
    pub fn parse(bytes: Vec<u8>) -> Result<Elf, Error> {
        if bytes.get(..6) != Some(b"\x7fELF\x02\x01") {
            return Err(Error::Malformed(0, "this is not a little-endian 64-bit ELF file"));
        }
        let count = word(&bytes, 60, 2)?;
        let table = place(&bytes, 40, 64 * count, "the section headers are not in the file")?;
        let mut sections = Vec::new();
        for at in table.clone().step_by(64) {
            let kind = word(&bytes, at + 4, 4)? as u32;
            let size = word(&bytes, at + 32, 8)?;
            let range = match BARE.contains(&kind) {
                true => 0..0,
                false => place(&bytes, at + 24, size, "this section is not in the file")?,
            };
            let link = (word(&bytes, at + 40, 4)? as usize, at + 40);
            let address = word(&bytes, at + 16, 8)?;
            sections.push(Section { name: String::new(), kind, address, size: size as usize, range, link });
        }
        let names = sections.get(word(&bytes, 62, 2)? as usize);
        let names = names.ok_or(Error::Malformed(62, "there is no such section of names"))?.range.clone();
        for (section, at) in sections.iter_mut().zip(table.step_by(64)) {
            section.name = text(&bytes, at, &names)?;
        }
        Ok(Elf { bytes, sections })
    }

    pub fn section(&self, name: &'static str) -> Result<&Section, Error> {
        self.sections.iter().find(|s| s.name == name).ok_or(Error::NoSection(name))
    }

    /// The bytes of a section; none if there is no such section or it takes no room in the file.
    pub fn contents(&self, name: &'static str) -> &[u8] {
        self.section(name).map_or(&[], |s| &self.bytes[s.range.clone()])
    }

    /// The same, to be changed.
    pub fn contents_mut(&mut self, name: &'static str) -> &mut [u8] {
        let range = self.section(name).map_or(0..0, |s| s.range.clone());
        &mut self.bytes[range]
    }

    /// Puts `bytes` into the header, which is there as soon as the file is parsed.
    pub fn mark(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Puts `bytes` at the begin of a section.
    pub fn patch(&mut self, name: &'static str, bytes: &[u8]) -> Result<(), Error> {
        self.section(name)?;
        let room = self.contents_mut(name).get_mut(..bytes.len()).ok_or(Error::NoRoom(name))?;
        room.copy_from_slice(bytes);
        Ok(())
    }

    /// Names and values of the defined symbols.
    pub fn symbols(&self) -> Result<Vec<(String, u64)>, Error> {
        let mut out = Vec::new();
        for s in self.sections.iter().filter(|s| s.kind == SYMTAB) {
            let (link, field) = s.link;
            let strings = self.sections.get(link);
            let strings = strings.ok_or(Error::Malformed(field, "there is no such section of names"))?;
            for at in s.range.clone().step_by(SYMBOL) {
                if word(&self.bytes, at + 6, 2)? != 0 {
                    let name = text(&self.bytes, at, &strings.range)?;
                    out.push((name, word(&self.bytes, at + 8, 8)?));
                }
            }
        }
        Ok(out)
    }

    /// Program headers: type, address, size in the file, size in memory, alignment, flags.
    pub fn segments(&self) -> Result<Vec<[u64; 6]>, Error> {
        let count = word(&self.bytes, 56, 2)?;
        let table = place(&self.bytes, 32, 56 * count, "the program headers are not in the file")?;
        let header = |at: usize| {
            Ok([
                word(&self.bytes, at, 4)?,
                word(&self.bytes, at + 16, 8)?,
                word(&self.bytes, at + 32, 8)?,
                word(&self.bytes, at + 40, 8)?,
                word(&self.bytes, at + 48, 8)?,
                word(&self.bytes, at + 4, 4)?,
            ])
        };
        table.step_by(56).map(header).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// An object file with code, data, names and `.bss`, as the linking step gets them.
    fn object(test: &str) -> Vec<u8> {
        let dir = std::env::temp_dir().join(format!("pebble-sfi-elf-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let (source, object) = (dir.join("a.s"), dir.join("a.o"));
        let text = ".globl main$code\nmain$code: ret\n.data\nword: .quad word\n.bss\nroom: .skip 64\n\
            .section .pbl.facts\n.skip 40\n.section .pbl.export,\"\"\n.asciz \"f=sm\"\n";
        std::fs::write(&source, text).unwrap();
        let made = Command::new("clang-19").arg("-c").arg(&source).arg("-o").arg(&object).status().unwrap();
        assert!(made.success());
        let bytes = std::fs::read(&object).unwrap();
        std::fs::remove_dir_all(&dir).unwrap();
        bytes
    }

    /// Everything that the linking step does with a file.
    fn read(bytes: Vec<u8>) -> Result<usize, Error> {
        let elf = Elf::parse(bytes)?;
        for name in [".text", ".bss", ".pbl.facts", ".pbl.export"] {
            elf.contents(name);
        }
        Ok(elf.symbols()?.len() + elf.segments()?.len())
    }

    /// The byte that an error names.
    fn named(error: &Error) -> usize {
        let text = error.to_string();
        let (_, rest) = text.split_once("byte 0x").expect("an error names a byte");
        let (at, why) = rest.split_once(": ").expect("and says what is wrong there");
        assert!(!why.is_empty());
        usize::from_str_radix(at, 16).unwrap()
    }

    #[test]
    fn an_object_is_read() {
        let elf = Elf::parse(object("read")).unwrap();
        assert_eq!(elf.contents(".pbl.export"), b"f=sm\0");
        assert_eq!((elf.contents(".pbl.facts").len(), elf.contents(".bss").len()), (40, 0));
        let symbols = elf.symbols().unwrap();
        assert!(symbols.contains(&("main$code".into(), 0)) && symbols.iter().any(|(n, _)| n == "room"));
    }

    #[test]
    fn shorter_files_are_refused_at_a_byte_that_they_have() {
        let file = object("shorter");
        for length in 0..file.len() {
            let error = read(file[..length].to_vec()).expect_err("a part of an object");
            assert!(named(&error) <= length, "{length}: {error}");
        }
    }

    /// Offsets, sizes and counts that are far too large, or lead back to the header.
    const FAR: [u64; 8] = [!0, !63, 1 << 63, 1 << 32, 0xffff_ffff, 0xffff, 0, 64];

    #[test]
    fn changed_files_are_read_or_refused_at_a_byte_that_they_have() {
        let file = object("changed");
        let mut seed = 0x2545_f491_4f6c_dd1du64;
        let mut below = |most: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed as usize % most
        };
        let sections = word(&file, 40, 8).unwrap() as usize;
        let (mut refused, cases) = (0, 200_000);
        for case in 0..cases {
            let mut changed = file.clone();
            for _ in 0..1 + below(3) {
                let at = match below(3) {
                    0 => below(64),
                    1 => sections + below(file.len() - sections),
                    _ => below(file.len()),
                };
                let bytes = [1, 2, 4, 8][below(4)].min(file.len() - at);
                let value = if below(2) == 0 { FAR[below(8)] } else { below(1 << 16) as u64 };
                changed[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
            }
            if let Err(error) = read(changed) {
                refused += 1;
                assert!(named(&error) <= file.len(), "case {case}: {error}");
            }
        }
        assert!(refused > cases / 10 && refused < cases, "{refused} of {cases}");
    }
}

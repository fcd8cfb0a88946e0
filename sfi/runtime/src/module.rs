//! A module: a file that has been parsed and verified, its code sealed, ready for any number of instances.

use crate::elf::{self, Export, Image, Import, Level, Symbol, Tls};
use crate::error::{Error, LoadError, Malformed};
use crate::layout::*;
use crate::os;
use crate::verdict::{self, Verdict};
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

/// Of an ELF file.
const HEADER: u64 = 64;
/// As much as an image may have, and as much again for symbols and debug information.
const MAX_FILE: u64 = 2 * MODULE_END;

/// Addresses are segment offsets.
pub struct Module {
    pub name: String,
    pub level: Level,
    /// Loaded bytes from `begin` on, sealed.
    file: OwnedFd,
    begin: u64,
    pub text: Range<u32>,
    rodata: Range<u32>,
    data: Range<u32>,
    /// End of what the file holds of `data`.
    data_file_end: u64,
    tls: Tls,
    tls_template: Vec<u8>,
    pub exports: Vec<Export>,
    pub imports: Vec<Import>,
    pub symbols: Vec<Symbol>,
    relocations: Vec<(u32, u32)>,
    /// Slots of what runs before anything else of a fresh instance.
    pub constructors: Vec<u32>,
    pub verdict: Verdict,
    /// The file itself, for debug information and for the verifier's answers about return sites.
    pub bytes: Arc<[u8]>,
}

impl Module {
    pub fn open(path: &Path) -> Result<Arc<Module>, LoadError> {
        Module::load(&path.display().to_string(), Module::read(path)?)
    }

    /// The bytes of a file that may be a module. Its begin and its size are judged first: what is anything
    /// else, or endless, is not read.
    pub fn read(path: &Path) -> Result<Vec<u8>, LoadError> {
        let mut file = File::open(path).map_err(LoadError::Read)?;
        let mut bytes = Vec::new();
        file.by_ref().take(HEADER).read_to_end(&mut bytes).map_err(LoadError::Read)?;
        elf::header(&bytes)?;
        let size = file.metadata().map_err(LoadError::Read)?.len();
        if size <= MAX_FILE {
            file.take(MAX_FILE).read_to_end(&mut bytes).map_err(LoadError::Read)?;
        }
        if size.max(bytes.len() as u64) > MAX_FILE {
            let reason = "the file is larger than any module; take out debug information";
            return Err(Malformed { offset: MAX_FILE, reason }.into());
        }
        Ok(bytes)
    }

    /// Parses, verifies, seals. `name` is what faults call it.
    pub fn load(name: &str, bytes: Vec<u8>) -> Result<Arc<Module>, LoadError> {
        let bytes: Arc<[u8]> = bytes.into();
        let image = Image::parse(&bytes)?;
        let verdict = verdict::verify(&bytes, &image)?;
        let begin = u64::from(image.ftab);
        let data_file_end = u64::from(image.data.start) + image.data_bytes.len() as u64;
        let parts = [
            (image.text.start, image.text_bytes),
            (image.rodata.start, image.rodata_bytes),
            (image.data.start, image.data_bytes),
        ];
        let end =
            parts.iter().filter(|(_, b)| !b.is_empty()).map(|(at, b)| u64::from(*at) + b.len() as u64).max();
        let size = page_up(end.unwrap_or(begin) - begin);
        let file = os::memory_file(c"pebble-sfi-module", size).map_err(LoadError::System)?;
        for (at, part) in parts.into_iter().filter(|(_, part)| !part.is_empty()) {
            write_at(&file, u64::from(at) - begin, part)?;
        }
        os::seal(&file).map_err(LoadError::System)?;
        let tls_template = template(&image);
        let module = Module {
            name: name.into(),
            level: image.level,
            file,
            begin,
            text: image.text.clone(),
            rodata: image.rodata.clone(),
            data: image.data.clone(),
            data_file_end,
            tls: image.tls,
            tls_template,
            exports: image.exports,
            imports: image.imports,
            symbols: image.symbols,
            relocations: image.relocations,
            constructors: image.constructors,
            verdict,
            bytes: bytes.clone(),
        };
        Ok(Arc::new(module))
    }

    pub fn tls(&self) -> Tls {
        self.tls
    }

    pub fn tls_template(&self) -> &[u8] {
        &self.tls_template
    }

    pub fn export(&self, name: &str) -> Result<&Export, Error> {
        self.exports.iter().find(|e| e.name == name).ok_or_else(|| Error::NoExport(name.into()))
    }

    /// Pages of code, as offsets in the segment.
    pub fn text_pages(&self) -> Range<u64> {
        u64::from(self.text.start)..page_up(u64::from(self.text.end))
    }

    /// Where the heap begins.
    pub fn end(&self) -> u64 {
        page_up(u64::from(self.data.end.max(self.rodata.end).max(self.text.end)))
    }

    /// Bytes of all pages of the image.
    pub fn bytes_mapped(&self) -> u64 {
        let parts = [&self.text, &self.rodata, &self.data];
        parts.into_iter().map(|part| page_up(u64::from(part.end)).saturating_sub(u64::from(part.start))).sum()
    }

    pub fn data_range(&self) -> Range<u32> {
        self.data.clone()
    }

    pub fn rodata_begin(&self) -> u32 {
        self.rodata.start
    }

    pub fn data(&self) -> Range<u64> {
        u64::from(self.data.start)..u64::from(self.data.end)
    }

    /// Maps the module into the segment at `base`. Code was verified before it came into the file, and cannot
    /// change there.
    pub fn map(&self, base: u64) -> std::io::Result<()> {
        let pages = self.text_pages();
        let map = |pages: Range<u64>, prot, copied: bool| {
            if pages.is_empty() {
                return Ok(());
            }
            let (at, bytes) = (base + pages.start, page_up(pages.end) - pages.start);
            let offset = pages.start - self.begin;
            match copied {
                true => os::copied(at, bytes, prot, &self.file, offset),
                false => os::shared(at, bytes, prot, &self.file, offset),
            }
        };
        map(pages, os::PROT_READ | os::PROT_EXEC, false)?;
        map(u64::from(self.rodata.start)..u64::from(self.rodata.end), os::PROT_READ, false)?;
        let writable = os::PROT_READ | os::PROT_WRITE;
        let data = self.data();
        if !data.is_empty() {
            let from_file =
                if self.data_file_end > data.start { page_up(self.data_file_end) } else { data.start };
            map(data.start..from_file, writable, true)?;
            if page_up(data.end) > from_file {
                os::anonymous(base + from_file, page_up(data.end) - from_file, writable)?;
            }
        }
        for (place, addend) in &self.relocations {
            let word = (base + u64::from(*place)) as *mut u64;
            // SAFETY: the parser keeps relocations inside the file's part of the writable data, which has
            // just been mapped.
            unsafe { word.write_unaligned(base + u64::from(*addend)) };
        }
        Ok(())
    }

    /// The function at an offset, and how far into it.
    pub fn function(&self, at: u32) -> Option<(&str, u32)> {
        let after = self.symbols.partition_point(|s| s.at <= at);
        let symbol = self.symbols.get(after.checked_sub(1)?)?;
        Some((&symbol.name, at - symbol.at))
    }
}

fn template(image: &Image) -> Vec<u8> {
    let tls = image.tls;
    let part = |range: &Range<u32>, bytes: &[u8]| {
        let from = tls.at.checked_sub(range.start)? as usize;
        bytes.get(from..from + tls.file_bytes as usize).map(<[u8]>::to_vec)
    };
    let found = part(&image.data, image.data_bytes).or_else(|| part(&image.rodata, image.rodata_bytes));
    found.unwrap_or_default()
}

fn write_at(file: &OwnedFd, mut at: u64, mut bytes: &[u8]) -> Result<(), LoadError> {
    while !bytes.is_empty() {
        // SAFETY: a descriptor of ours and a live slice.
        let n =
            unsafe { libc::pwrite(file.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), at as libc::off_t) };
        match n {
            -1 => return Err(LoadError::System(std::io::Error::last_os_error())),
            n => {
                at += n as u64;
                bytes = bytes.get(n as usize..).unwrap_or_default();
            }
        }
    }
    Ok(())
}

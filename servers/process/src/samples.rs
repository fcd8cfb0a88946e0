//! Program files for tests, here and on the machine: a good one, and one for each thing that can be wrong,
//! with what must be said of it.
//!
//! All are made of the good one, by a few bytes that are changed or by a cut.

use crate::PAGE_LIMIT;
use crate::elf::Problem;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use pebble_abi::errno::{self, Errno};
use pebble_abi::link::{
    EXPORT_BYTES, EXPORT_ENTRY, EXPORTS, IMPORT_BYTES, IMPORT_SLOT, IMPORTS, MANIFEST, NAMELEN,
};
use pebble_abi::map::{HEAP_END, IMAGE_VA, PAGE};
use pebble_abi::specification::{Reason, SpecificationError};
use pebble_arch::Arch;

/// The processor that they are for: on the host, where tests read them too, the first.
#[cfg(target_os = "none")]
type Here = pebble_arch::Native;
#[cfg(not(target_os = "none"))]
type Here = pebble_arch::Riscv64;

pub const TEXT: u64 = IMAGE_VA;
pub const DATA: u64 = IMAGE_VA + 2 * PAGE;
/// Where things are in the file.
pub const PHDRS: usize = 64;
pub const TEXT_AT: usize = 0x200;
pub const DATA_AT: usize = 0x300;
const IMPORT_AT: usize = DATA_AT + 16;
const SYMBOLS_AT: usize = 0x400;
const STRINGS_AT: usize = 0x500;
pub const SHDRS: usize = 0x600;

pub fn put(file: &mut [u8], at: usize, bytes: &[u8]) {
    file[at..at + bytes.len()].copy_from_slice(bytes);
}

pub fn put64(file: &mut [u8], at: usize, values: &[u64]) {
    for (n, value) in values.iter().enumerate() {
        put(file, at + n * 8, &value.to_le_bytes());
    }
}

/// `n`-th program header: type, flags, offset, address, bytes in the file and in memory.
fn program(file: &mut [u8], n: usize, kind: u32, flags: u32, [offset, address, filesz, memsz]: [u64; 4]) {
    let at = PHDRS + n * 56;
    put(file, at, &kind.to_le_bytes());
    put(file, at + 4, &flags.to_le_bytes());
    put64(file, at + 8, &[offset, address, address, filesz, memsz, PAGE]);
}

/// `n`-th section header: name's offset, type, flags, address, offset, size, linked section, entry size.
fn section(file: &mut [u8], n: usize, [name, kind, flags, address, offset, size, link, entry]: [u64; 8]) {
    let at = SHDRS + n * 64;
    put(file, at, &(name as u32).to_le_bytes());
    put(file, at + 4, &(kind as u32).to_le_bytes());
    put64(file, at + 8, &[flags, address, offset, size]);
    put(file, at + 40, &(link as u32).to_le_bytes());
    put64(file, at + 48, &[8, entry]);
}

fn names() -> String {
    format!("\0.text\0{IMPORTS}\0{EXPORTS}\0.symtab\0.strtab\0main\0loop\0{MANIFEST}\0")
}

/// Where a name begins among the names.
fn name(text: &str) -> u64 {
    names().find(&format!("\0{text}\0")).map_or(0, |at| at as u64 + 1)
}

/// Text (256 bytes, the first instruction of which is none), an empty segment, data (64 bytes, 2 pages in
/// memory), where an import record stands, too.
pub fn good() -> Vec<u8> {
    let mut f = vec![0; SHDRS + 6 * 64];
    put(&mut f, 0, b"\x7fELF\x02\x01\x01");
    put(&mut f, 16, &[2, 0, 0, 0, 1, 0, 0, 0]);
    put(&mut f, 18, &Here::ELF_MACHINE.to_le_bytes());
    put64(&mut f, 24, &[TEXT + 0x10, PHDRS as u64, SHDRS as u64]);
    put(&mut f, 48, &Here::ELF_FLAGS.to_le_bytes());
    put(&mut f, 52, &[64, 0, 56, 0, 3, 0, 64, 0, 6, 0, 5, 0]);
    program(&mut f, 0, 1, 5, [TEXT_AT as u64, TEXT, 256, 256]);
    program(&mut f, 1, 1, 4, [0, IMAGE_VA + PAGE, 0, 0]);
    program(&mut f, 2, 1, 6, [DATA_AT as u64, DATA, 64, 2 * PAGE]);
    put(&mut f, IMPORT_AT, b"clock.wall");
    put64(&mut f, IMPORT_AT + IMPORT_SLOT, &[DATA + 64]);
    let names = names();
    put(&mut f, STRINGS_AT, names.as_bytes());
    let size = names.len() as u64;
    section(&mut f, 1, [name(".text"), 1, 6, TEXT, TEXT_AT as u64, 256, 0, 0]);
    section(&mut f, 2, [name(IMPORTS), 1, 0, 0, IMPORT_AT as u64, IMPORT_BYTES as u64, 0, 0]);
    section(&mut f, 3, [name(EXPORTS), 1, 0, 0, DATA_AT as u64, 0, 0, 0]);
    section(&mut f, 4, [name(".symtab"), 2, 0, 0, SYMBOLS_AT as u64, 72, 5, 24]);
    section(&mut f, 5, [name(".strtab"), 3, 0, 0, STRINGS_AT as u64, size, 0, 0]);
    for (n, (text, value, size)) in
        [("main", TEXT + 0x10, 0x20u64), ("loop", TEXT + 0x40, 0)].into_iter().enumerate()
    {
        let at = SYMBOLS_AT + (n + 1) * 24;
        put(&mut f, at, &(name(text) as u32).to_le_bytes());
        put(&mut f, at + 4, &[0x12, 0, 1, 0]);
        put64(&mut f, at + 8, &[value, size]);
    }
    f
}

/// An export record where the import was.
pub fn server() -> Vec<u8> {
    let mut f = good();
    put64(&mut f, SHDRS + 2 * 64 + 32, &[0]);
    put64(&mut f, SHDRS + 3 * 64 + 32, &[EXPORT_BYTES as u64]);
    put(&mut f, DATA_AT, &[0; EXPORT_BYTES]);
    put(&mut f, DATA_AT, b"shop.open");
    put(&mut f, DATA_AT + NAMELEN, b"npaii>2");
    put64(&mut f, DATA_AT + EXPORT_ENTRY, &[TEXT + 0x40, 7]);
    f
}

/// With a manifest where the symbols were.
fn with_manifest(text: &[u8]) -> Vec<u8> {
    let mut f = good();
    put(&mut f, SYMBOLS_AT, text);
    section(&mut f, 4, [name(MANIFEST), 1, 0, 0, SYMBOLS_AT as u64, text.len() as u64, 0, 0]);
    f
}

/// Word of a program header.
const fn field(n: usize, word: usize) -> usize {
    PHDRS + n * 56 + word * 8
}

/// Files that are no programs, and why not.
pub fn broken() -> Vec<(Vec<u8>, Problem)> {
    let file = |offset, what| Problem::File { offset, what };
    let memory = |address, what| Problem::Memory { address, what };
    let no_header = file(0, "no 64-bit ELF header");
    let no_programs = file(32, "the program headers lie outside the file");
    let no_sections = file(40, "the section headers lie outside the file");
    let no_entry = |address| memory(address, "the entry lies in no executable segment");
    let outside = |address| memory(address, "a segment outside the range of images");
    let no_records = |at| file(at as u64, "no whole import or export records");
    let no_word = |address| memory(address, "an import's index goes into no writable word");
    let no_name = file(IMPORT_AT as u64, "an import's name is no text");
    let beyond = |n| file(field(n, 0) as u64, "a segment that reaches beyond the file");
    let changed: &[(usize, &[u8], Problem)] = &[
        (0, b"\x7fELG", no_header),
        (4, &[1], no_header),
        (5, &[2], file(5, "not little-endian")),
        (16, &[3], file(16, "not an executable with fixed addresses")),
        (18, &[62], file(18, "not for this processor")),
        (24, &[0; 8], no_entry(0)),
        (24, &[0xff; 8], no_entry(u64::MAX)),
        (24, &[0x11], no_entry(TEXT + 0x11)),
        (24, &DATA.to_le_bytes(), no_entry(DATA)),
        (24, &(TEXT + 0x100).to_le_bytes(), no_entry(TEXT + 0x100)),
        (32, &[0xff; 8], no_programs),
        (56, &[0xf0, 0xff], no_programs),
        (40, &[0xff; 8], no_sections),
        (48, &Here::ELF_FLAGS_REFUSED.0.to_le_bytes(), file(48, Here::ELF_FLAGS_REFUSED.1)),
        (field(1, 0), &[3], file(PHDRS as u64 + 56, "needs a dynamic linker")),
        (field(1, 0), &[2], file(PHDRS as u64 + 56, "needs a dynamic linker")),
        (field(0, 0) + 4, &[7], memory(TEXT, "a segment that is writable and executable")),
        (field(0, 2), &[8], memory(TEXT + 8, "a segment that does not begin with a page")),
        (field(2, 2), &TEXT.to_le_bytes(), memory(TEXT, "two segments share a page")),
        (field(2, 2), &HEAP_END.to_le_bytes(), outside(HEAP_END)),
        (field(2, 2), &(IMAGE_VA - PAGE).to_le_bytes(), outside(IMAGE_VA - PAGE)),
        (field(2, 2), &PAGE.wrapping_neg().to_le_bytes(), outside(PAGE.wrapping_neg())),
        (field(2, 5), &[0xff; 8], outside(DATA)),
        (field(2, 5), &DATA.wrapping_neg().to_le_bytes(), outside(DATA)),
        (field(2, 5), &(PAGE * PAGE_LIMIT).to_le_bytes(), memory(DATA, "the program needs too many pages")),
        (field(2, 4), &[0xff, 0xff], memory(DATA, "a segment with more bytes in the file than in memory")),
        (field(2, 1), &[0xff; 8], beyond(2)),
        (field(0, 1), &(SHDRS as u64 + 6 * 64).to_le_bytes(), beyond(0)),
        (SHDRS + 3 * 64 + 32, &[64], no_records(DATA_AT)),
        // What stands there is an import record.
        (SHDRS + 3 * 64 + 32, &[56], file(DATA_AT as u64, "an export's name is no text")),
        (SHDRS + 2 * 64 + 32, &[33], no_records(IMPORT_AT)),
        (
            SHDRS + 2 * 64 + 32,
            &(257 * IMPORT_BYTES as u64).to_le_bytes(),
            file(IMPORT_AT as u64, "too many imports or exports"),
        ),
        (
            SHDRS + 2 * 64 + 24,
            &(SHDRS as u64 + 6 * 64).to_le_bytes(),
            file(SHDRS as u64 + 6 * 64, "import or export records outside the file"),
        ),
        (IMPORT_AT + IMPORT_SLOT, &[4], no_word(DATA + 4)),
        (IMPORT_AT + IMPORT_SLOT, &TEXT.to_le_bytes(), no_word(TEXT)),
        (IMPORT_AT + IMPORT_SLOT, &(DATA + 2 * PAGE).to_le_bytes(), no_word(DATA + 2 * PAGE)),
        (IMPORT_AT + IMPORT_SLOT, &[0xf8; 8], no_word(u64::from_le_bytes([0xf8; 8]))),
        (IMPORT_AT, &[0xff], no_name),
        (IMPORT_AT, &[0], no_name),
    ];
    let changed = changed.iter().map(|(at, bytes, problem)| (good(), *at, *bytes, *problem));
    let export = |what| file(DATA_AT as u64, what);
    let exports: &[(usize, &[u8], Problem)] = &[
        (EXPORT_ENTRY, &DATA.to_le_bytes(), export("an export's entry lies in no executable segment")),
        (EXPORT_ENTRY, &[0xff; 8], export("an export's entry lies in no executable segment")),
        (NAMELEN, &[0xff; 8], export("an export's specification is no text")),
        (0, &[0; 8], export("an export's name is no text")),
    ];
    let exports = exports.iter().map(|(at, bytes, problem)| (server(), DATA_AT + at, *bytes, *problem));
    let mut files: Vec<_> = changed
        .chain(exports)
        .map(|(mut f, at, bytes, problem)| {
            put(&mut f, at, bytes);
            (f, problem)
        })
        .collect();
    for (length, problem) in [
        (0, no_header),
        (63, no_header),
        (100, no_programs),
        (TEXT_AT + 10, beyond(0)),
        (DATA_AT + 10, beyond(2)),
        (SHDRS + 10, no_sections),
    ] {
        files.push((good()[..length].to_vec(), problem));
    }
    let mut far = with_manifest(b"pages = 5");
    put64(&mut far, SHDRS + 4 * 64 + 24, &[u64::MAX - 4]);
    files.push((far, file(u64::MAX - 4, "the manifest lies outside the file")));
    files
}

/// A program with this import, the error that it gets, and what is said.
pub fn wanting((import, error): (&str, Errno)) -> (Vec<u8>, Errno, String) {
    let mut f = good();
    put(&mut f, IMPORT_AT, &[0; NAMELEN]);
    put(&mut f, IMPORT_AT, import.as_bytes());
    (f, error, format!("import {import}: {error}"))
}

/// Programs that want what they cannot have: the error, and what is said.
pub fn refused() -> Vec<(Vec<u8>, Errno, String)> {
    let mut files = Vec::new();
    for (text, says) in [
        (&b"pages = 0"[..], "line 1: pages is a number from 1 to 4096"),
        (b"\npages", "line 2: not of the form 'key = number'"),
        (b"pages = 5\npages = 5", "line 2: pages is there twice"),
        (b"cpu = 101", "line 1: cpu is a number from 1 to 100"),
        (b"pages = 9\n\xff\xfe", "line 2: no text"),
    ] {
        files.push((with_manifest(text), errno::ENOEXEC, format!("manifest, {says}")));
    }
    files.extend([("no.such.name", errno::ENOENT), ("vm.map", errno::EACCES)].map(wanting));
    let stack = SpecificationError { letter: Some(b'z'), ..SpecificationError::new(Reason::BadStack, 0) };
    for (at, bytes, export, error, why) in [
        (0, "file.open", "file.open", errno::EEXIST, errno::EEXIST.text().into()),
        (0, "file.evil", "file.evil", errno::EACCES, errno::EACCES.text().into()),
        (NAMELEN, "zz", "shop.open", errno::EINVAL, format!("{stack}")),
    ] {
        let mut f = server();
        put(&mut f, DATA_AT + at, bytes.as_bytes());
        files.push((f, error, format!("export {export}: {why}")));
    }
    files
}

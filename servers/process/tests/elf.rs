//! Program files: a good one, one for each thing that can be wrong, and whatever else bytes can be.

use pebble_abi::link::{EXPORT_BYTES, EXPORT_ENTRY, EXPORTS, IMPORTS, NAMELEN};
use pebble_abi::map::{HEAP_END, IMAGE_VA, PAGE};
use pebble_process::elf::{Image, Import, Problem, symbol};
use proptest::prelude::*;

const LIMIT: u64 = 64;
const TEXT: u64 = IMAGE_VA;
const DATA: u64 = IMAGE_VA + 2 * PAGE;
/// Where things are in the file.
const PHDRS: usize = 64;
const TEXT_AT: usize = 0x200;
const DATA_AT: usize = 0x300;
const SYMBOLS_AT: usize = 0x400;
const STRINGS_AT: usize = 0x500;
const SHDRS: usize = 0x600;

fn put(file: &mut [u8], at: usize, bytes: &[u8]) {
    file[at..at + bytes.len()].copy_from_slice(bytes);
}

fn put64(file: &mut [u8], at: usize, values: &[u64]) {
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

/// Text (256 bytes), an empty segment, data (64 bytes with one import record, 2 pages in memory).
fn good() -> Vec<u8> {
    let mut f = vec![0; SHDRS + 6 * 64];
    put(&mut f, 0, b"\x7fELF\x02\x01\x01");
    put(&mut f, 16, &[2, 0, 243, 0, 1, 0, 0, 0]);
    put64(&mut f, 24, &[TEXT + 0x10, PHDRS as u64, SHDRS as u64]);
    put(&mut f, 48, &[5, 0, 0, 0, 64, 0, 56, 0, 3, 0, 64, 0, 6, 0, 5, 0]);
    program(&mut f, 0, 1, 5, [TEXT_AT as u64, TEXT, 256, 256]);
    program(&mut f, 1, 1, 4, [0, IMAGE_VA + PAGE, 0, 0]);
    program(&mut f, 2, 1, 6, [DATA_AT as u64, DATA, 64, 2 * PAGE]);
    put(&mut f, TEXT_AT, &[0x13; 256]);
    put(&mut f, DATA_AT + 16, b"clock.wall");
    let names = format!("\0.text\0{IMPORTS}\0{EXPORTS}\0.symtab\0.strtab\0main\0loop\0");
    put(&mut f, STRINGS_AT, names.as_bytes());
    let name = |text: &str| names.find(&format!("\0{text}\0")).map_or(0, |at| at as u64 + 1);
    let size = names.len() as u64;
    section(&mut f, 1, [name(".text"), 1, 6, TEXT, TEXT_AT as u64, 256, 0, 0]);
    section(&mut f, 2, [name(IMPORTS), 1, 3, DATA + 16, DATA_AT as u64 + 16, 32, 0, 0]);
    section(&mut f, 3, [name(EXPORTS), 1, 2, DATA, DATA_AT as u64, 0, 0, 0]);
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

#[test]
fn a_good_file_is_taken_as_it_is() {
    let file = good();
    let image = Image::parse(&file, LIMIT).unwrap();
    assert_eq!((image.entry, image.float, image.end()), (TEXT + 0x10, true, DATA + 2 * PAGE));
    let shape: Vec<_> =
        image.segments.iter().map(|s| (s.address, s.pages, s.bytes.len(), s.write, s.execute)).collect();
    assert_eq!(shape, [(TEXT, 1, 256, false, true), (DATA, 2, 64, true, false)]);
    assert_eq!(image.imports, [Import { name: "clock.wall", slot: DATA + 16 + NAMELEN as u64 }]);
}

/// An export record where the import was.
fn server() -> Vec<u8> {
    let mut f = good();
    put64(&mut f, SHDRS + 2 * 64 + 32, &[0]);
    put64(&mut f, SHDRS + 3 * 64 + 32, &[EXPORT_BYTES as u64]);
    put(&mut f, DATA_AT, &[0; EXPORT_BYTES]);
    put(&mut f, DATA_AT, b"shop.open");
    put(&mut f, DATA_AT + NAMELEN, b"npaii>2");
    put64(&mut f, DATA_AT + EXPORT_ENTRY, &[TEXT + 0x40, 7]);
    f
}

#[test]
fn exports_are_read_and_checked() {
    let file = server();
    let image = Image::parse(&file, LIMIT).unwrap();
    let [export] = image.exports.as_slice() else { panic!("{:?}", image.exports) };
    assert_eq!((export.name, export.spec, export.entry), ("shop.open", "npaii>2", TEXT + 0x40));
    for (at, bytes, what) in [
        (EXPORT_ENTRY, DATA.to_le_bytes(), "an export's entry lies in no executable segment"),
        (NAMELEN, [0xff; 8], "an export's specification is no text"),
        (0, [0; 8], "an export's name is no text"),
    ] {
        let mut file = server();
        put(&mut file, DATA_AT + at, &bytes);
        assert_eq!(Image::parse(&file, LIMIT), Err(Problem::Memory { address: DATA, what }));
    }
}

/// Which word of which header.
fn field(n: usize, word: usize) -> usize {
    PHDRS + n * 56 + word * 8
}

#[test]
fn each_fault_of_a_file_is_named_with_its_place() {
    let file = |offset, what| Problem::File { offset, what };
    let memory = |address, what| Problem::Memory { address, what };
    let cases: &[(usize, &[u8], Problem)] = &[
        (0, b"\x7fELG", file(0, "no 64-bit ELF header")),
        (4, &[1], file(0, "no 64-bit ELF header")),
        (5, &[2], file(5, "not little-endian")),
        (16, &[3], file(16, "not an executable with fixed addresses")),
        (18, &[62], file(18, "not for RISC-V")),
        (24, &[0x11], memory(TEXT + 0x11, "the entry lies in no executable segment")),
        (24, &DATA.to_le_bytes(), memory(DATA, "the entry lies in no executable segment")),
        (24, &(TEXT + 0x100).to_le_bytes(), memory(TEXT + 0x100, "the entry lies in no executable segment")),
        (32, &[0xff; 8], file(32, "the program headers lie outside the file")),
        (40, &[0xff; 8], file(40, "the section headers lie outside the file")),
        (48, &[7], file(48, "needs quad-precision floating point")),
        (field(1, 0), &[3], file(PHDRS as u64 + 56, "needs a dynamic linker")),
        (field(1, 0), &[2], file(PHDRS as u64 + 56, "needs a dynamic linker")),
        (field(0, 0) + 4, &[7], memory(TEXT, "a segment that is writable and executable")),
        (field(0, 2), &[8], memory(TEXT + 8, "a segment that does not begin with a page")),
        (field(2, 2), &TEXT.to_le_bytes(), memory(TEXT, "two segments share a page")),
        (field(2, 2), &HEAP_END.to_le_bytes(), memory(HEAP_END, "a segment outside the range of images")),
        (
            field(2, 2),
            &(IMAGE_VA - PAGE).to_le_bytes(),
            memory(IMAGE_VA - PAGE, "a segment outside the range of images"),
        ),
        (field(2, 5), &[0xff; 8], memory(DATA, "a segment outside the range of images")),
        (field(2, 5), &(PAGE * LIMIT).to_le_bytes(), memory(DATA, "the program needs too many pages")),
        (field(2, 4), &[0xff, 0xff], memory(DATA, "a segment with more bytes in the file than in memory")),
        (field(2, 1), &[0xff; 8], file(PHDRS as u64 + 112, "a segment that reaches beyond the file")),
        (SHDRS + 3 * 64 + 32, &[64], memory(DATA, "no whole import or export records")),
        // What stands there is the end of an import record.
        (SHDRS + 3 * 64 + 32, &[56], memory(DATA, "an export's name is no text")),
        (SHDRS + 2 * 64 + 32, &[33], memory(DATA + 16, "no whole import or export records")),
        (SHDRS + 2 * 64 + 16, &[12], memory(DATA + 12, "no whole import or export records")),
        (SHDRS + 2 * 64 + 33, &[0x80], memory(DATA + 16, "too many imports or exports")),
        (
            SHDRS + 2 * 64 + 16,
            &(DATA + PAGE * 2 - 16).to_le_bytes(),
            memory(DATA + PAGE * 2 - 16, "import or export records outside the segments"),
        ),
        (
            SHDRS + 2 * 64 + 16,
            &(DATA + 48).to_le_bytes(),
            memory(DATA + 48, "import or export records without names"),
        ),
        (DATA_AT + 16, &[0xff], memory(DATA + 16, "an import's name is no text")),
        (DATA_AT + 16, &[0], memory(DATA + 16, "an import's name is no text")),
    ];
    for (at, bytes, problem) in cases {
        let mut f = good();
        put(&mut f, *at, bytes);
        assert_eq!(Image::parse(&f, LIMIT), Err(*problem), "byte {at:#x}");
        assert_eq!(problem.errno(), pebble_abi::errno::ENOEXEC);
    }
    let shown = memory(0x1000, "two segments share a page").to_string();
    assert_eq!(shown, "address 0x1000: two segments share a page");
}

#[test]
fn functions_are_found_by_the_addresses_in_them() {
    let f = good();
    assert_eq!(symbol(&f, TEXT), None);
    assert_eq!(symbol(&f, TEXT + 0x10), Some(("main", 0)));
    assert_eq!(symbol(&f, TEXT + 0x2f), Some(("main", 0x1f)));
    assert_eq!(symbol(&f, TEXT + 0x44), Some(("loop", 4)));
    assert_eq!(symbol(&f, TEXT + 0x100), None);
    assert_eq!(symbol(&f, DATA), None);
}

/// The promises of [`Image`].
fn check(image: &Image) {
    assert!(image.segments.windows(2).all(|pair| pair[0].end() <= pair[1].address));
    assert!(image.segments.iter().map(|s| s.pages).sum::<u64>() <= LIMIT);
    for s in &image.segments {
        assert!(s.address % PAGE == 0 && s.pages > 0 && s.address >= IMAGE_VA && s.end() <= HEAP_END);
        assert!(!(s.write && s.execute) && s.bytes.len() as u64 <= s.size && s.size <= s.pages * PAGE);
    }
    assert!(image.segments.iter().any(|s| s.execute && (s.address..s.end()).contains(&image.entry)));
    for i in &image.imports {
        assert!(
            i.slot % 8 == 0 && image.segments.iter().any(|s| s.address <= i.slot && i.slot + 8 <= s.end())
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn random_bytes_are_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..2048), elf in any::<bool>(), address: u64) {
        if elf && bytes.len() >= 64 {
            bytes[..64].copy_from_slice(&good()[..64]);
        }
        if let Ok(image) = Image::parse(&bytes, LIMIT) {
            check(&image);
        }
        let _ = symbol(&bytes, address);
    }

    #[test]
    fn mutated_files_are_refused_or_keep_the_promises(
        bytes in prop::collection::vec((0usize..SHDRS + 6 * 64, any::<u8>()), 1..6),
        words in prop::collection::vec((0usize..(SHDRS + 6 * 64) / 8, prop_oneof![
            any::<u64>(),
            (0u64..8).prop_map(u64::wrapping_neg),
            (0u64..0x9000).prop_map(|n| IMAGE_VA + n / 8 * 8),
            Just(HEAP_END), 0u64..0x1000,
        ]), 0..3),
        length in prop_oneof![3 => Just(usize::MAX), 1 => 0usize..SHDRS + 6 * 64],
        address in TEXT..DATA,
    ) {
        let mut f = good();
        for (at, value) in words {
            put64(&mut f, at * 8, &[value]);
        }
        for (at, value) in bytes {
            f[at] = value;
        }
        f.truncate(length);
        if let Ok(image) = Image::parse(&f, LIMIT) {
            check(&image);
        }
        let _ = symbol(&f, address);
    }
}

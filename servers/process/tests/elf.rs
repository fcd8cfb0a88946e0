//! Program files: a good one, one for each thing that can be wrong, and whatever else bytes can be.

use pebble_abi::link::{IMPORT_BYTES, IMPORT_ORDER};
use pebble_abi::map::{HEAP_END, IMAGE_VA, PAGE};
use pebble_arch::Riscv64;
use pebble_process::elf::{Image, Import, MAX_SECTIONS, Problem, Segment, symbol};
use pebble_process::samples::{DATA, SHDRS, TEXT, broken, good, put, put64, refused, server};
use proptest::prelude::*;

const LIMIT: u64 = pebble_process::PAGE_LIMIT;

#[test]
fn a_good_file_is_taken_as_it_is() {
    let file = good();
    let image = Image::parse::<Riscv64>(&file, LIMIT).unwrap();
    assert_eq!((image.entry, image.float, image.end()), (TEXT + 0x10, true, DATA + 2 * PAGE));
    let shape: Vec<_> =
        image.segments.iter().map(|s| (s.address, s.pages, s.bytes.len(), s.write, s.execute)).collect();
    assert_eq!(shape, [(TEXT, 1, 256, false, true), (DATA, 2, 64, true, false)]);
    assert_eq!(image.imports, [Import { name: "clock.wall", slot: DATA + 64, order: 0 }]);
}

#[test]
fn imports_are_in_their_order() {
    let mut file = good();
    let at = file.len();
    put64(&mut file, SHDRS + 2 * 64 + 24, &[at as u64, 3 * IMPORT_BYTES as u64]);
    for (name, order) in [(b"c", 7), (b"a", 0), (b"b", 7)] {
        let at = file.len();
        file.resize(at + IMPORT_BYTES, 0);
        put(&mut file, at, name);
        put64(&mut file, at + IMPORT_ORDER, &[order]);
    }
    let image = Image::parse::<Riscv64>(&file, LIMIT).unwrap();
    assert_eq!(image.imports.iter().map(|import| import.name).collect::<String>(), "acb");
}

#[test]
fn exports_are_read_and_checked() {
    let file = server();
    let image = Image::parse::<Riscv64>(&file, LIMIT).unwrap();
    let [export] = image.exports.as_slice() else { panic!("{:?}", image.exports) };
    assert_eq!((export.name, export.spec, export.entry), ("shop.open", "npaii>2", TEXT + 0x40));
}

#[test]
fn each_fault_of_a_file_is_named_with_its_place() {
    for (n, (file, problem)) in broken().into_iter().enumerate() {
        assert_eq!(Image::parse::<Riscv64>(&file, LIMIT), Err(problem), "file {n}");
        assert_eq!(problem.errno(), pebble_abi::errno::ENOEXEC);
    }
    for (n, (file, ..)) in refused().into_iter().enumerate() {
        assert!(
            Image::parse::<Riscv64>(&file, LIMIT).is_ok(),
            "file {n}: what it wants is refused, not what it is"
        );
    }
    let shown = Problem::Memory { address: 0x1000, what: "two segments share a page" }.to_string();
    assert_eq!(shown, "address 0x1000: two segments share a page");
}

#[test]
fn a_file_has_so_many_sections_at_most() {
    for (count, problem) in [(MAX_SECTIONS, None), (MAX_SECTIONS + 1, Some("too many sections"))] {
        let mut f = good();
        f.resize(SHDRS + count * 64, 0);
        put(&mut f, 60, &(count as u16).to_le_bytes());
        let refused = Image::parse::<Riscv64>(&f, LIMIT).err();
        assert_eq!(refused, problem.map(|what| Problem::File { offset: 60, what }));
    }
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
        let holds = |s: &Segment| s.write && s.address <= i.slot && i.slot + 8 <= s.end();
        assert!(i.slot == 0 || i.slot % 8 == 0 && image.segments.iter().any(holds));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn random_bytes_are_refused(
        mut bytes in prop::collection::vec(any::<u8>(), 0..2048),
        elf in any::<bool>(),
        address: u64,
    ) {
        if elf && bytes.len() >= 64 {
            bytes[..64].copy_from_slice(&good()[..64]);
        }
        if let Ok(image) = Image::parse::<Riscv64>(&bytes, LIMIT) {
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
        if let Ok(image) = Image::parse::<Riscv64>(&f, LIMIT) {
            check(&image);
        }
        let _ = symbol(&f, address);
    }
}

//! Bad files: an error that says what and where, never a panic.

mod common;

use pebble_sfi_runtime::{Image, LoadError, Module};

/// xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % most.max(1)
    }
}

#[test]
fn every_shorter_file_is_refused_with_its_byte() {
    let file = common::build("basic", 1);
    for length in 0..file.len() {
        if let Err(error) = Image::parse(&file[..length]) {
            assert!(error.offset <= file.len() as u64 && !error.reason.is_empty());
        } else {
            panic!("{length} of {} bytes are no module", file.len());
        }
    }
    assert!(Image::parse(&file).is_ok());
    let error = Module::load("empty", Vec::new()).err().map(|e| e.to_string());
    assert_eq!(error.as_deref(), Some("not a module: byte 0x0: the file is too short"));
}

/// A file that is endless, or larger than any module, is refused by its begin or its size: reading it would
/// never end, or fill memory.
#[test]
fn what_cannot_be_a_module_is_not_read() {
    let refused = |path: &std::path::Path| Module::open(path).err().expect("no module").to_string();
    let elf = "not a module: byte 0x0: not a little-endian 64-bit ELF file";
    assert_eq!(refused("/dev/zero".as_ref()), elf);
    let path = std::env::temp_dir().join(format!("pebble-sfi-large-{}", std::process::id()));
    let large = |begin: &[u8]| {
        std::fs::write(&path, begin).expect("a file");
        let file = std::fs::OpenOptions::new().write(true).open(&path).expect("the file");
        file.set_len(5 << 30).expect("a file with a hole");
        refused(&path)
    };
    assert_eq!(large(b""), elf);
    let file = common::build("basic", 1);
    assert!(large(&file).contains("byte 0x100000000: the file is larger than any module"));
    std::fs::write(&path, &file).expect("a file");
    let read = Module::read(&path).expect("a module");
    std::fs::remove_file(&path).expect("the file");
    assert!(read == file);
}

/// The module with other contents of a section.
fn with_section(file: &[u8], name: &str, contents: &[u8]) -> Vec<u8> {
    let word = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().expect("eight bytes")) as usize;
    let (headers, count, names) = (word(40), file[60] as usize, file[62] as usize);
    let texts = &file[word(headers + 64 * names + 24)..];
    let named =
        |header: usize| texts[word(header) & 0xffff_ffff..].starts_with(format!("{name}\0").as_bytes());
    let header = (0..count).map(|i| headers + 64 * i).find(|header| named(*header)).expect("the section");
    let mut out = [file, contents].concat();
    out[header + 24..header + 32].copy_from_slice(&(file.len() as u64).to_le_bytes());
    out[header + 32..header + 40].copy_from_slice(&(contents.len() as u64).to_le_bytes());
    out
}

/// Names are printed, in the lines that say what a fault was.
#[test]
fn names_are_one_line() {
    let file = common::build("basic", 1);
    let at = file.windows(5).rposition(|five| five == b"\0add\0").expect("a name");
    for byte in [b'\n', b'\x1b', 0x7f] {
        let mut file = file.clone();
        file[at + 2] = byte;
        let reason = Image::parse(&file).err().map(|error| error.reason);
        assert_eq!(reason, Some("a name with control characters"), "{byte:#x}");
    }
}

/// Thousands of names may be one, which is stored once.
#[test]
fn names_are_not_much_longer_than_their_file() {
    let file = common::build("basic", 1);
    let long = [b"\0", &[b'x'; 4000][..], b"\0"].concat();
    let count = 20_000u32;
    // Name, kind, section, a place in text, a size.
    let symbol = [&1u32.to_le_bytes()[..], &[2, 0, 1, 0], &0x2_0040u64.to_le_bytes(), &8u64.to_le_bytes()];
    let symbols = with_section(&file, ".strtab", &long);
    let symbols = with_section(&symbols, ".symtab", &symbol.concat().repeat(count as usize));
    let reason = |file: &[u8]| Image::parse(file).err().map(|error| error.reason);
    assert_eq!(reason(&symbols), Some("names that are much longer together than the file"));
    // Exports with the name, each of the first slot, and without a specification.
    let header = file.windows(4).position(|four| four == 0x4d4c_4250u32.to_le_bytes()).expect("a header");
    let texts = 64 + 16 * count;
    let export = [texts + 1, 0x2_0000, texts, 0].map(u32::to_le_bytes).concat();
    let mut exports = [&file[header..header + 64], &export.repeat(count as usize), &long].concat();
    exports[56..64].copy_from_slice(&u64::from(count).to_le_bytes());
    let exports = with_section(&file, ".pbl.module", &exports);
    assert_eq!(reason(&exports), Some("names that are much longer together than the file"));
}

/// Offsets, sizes and counts that are far too large, equal, or lead back to where they stand.
const FAR: [u64; 8] = [!0, !7, 1 << 63, 1 << 32, 0xffff_ffff, 0xffff, 0, 64];

/// A file that was never a module: noise, noise behind a good header, or tables that are huge or contain
/// themselves.
fn senseless(module: &[u8], random: &mut Random) -> Vec<u8> {
    let mut file = module.to_vec();
    let word = |at: usize| u64::from_le_bytes(module[at..at + 8].try_into().expect("eight bytes")) as usize;
    let (programs, sections) = (word(32), word(40));
    let kind = random.below(4);
    match kind {
        0 => file.truncate(random.below(4096)),
        1 => {}
        // a table's place: far away, in the header, in itself, in the other table
        2 => {
            let to =
                [FAR[random.below(8)], programs as u64, sections as u64, random.below(module.len()) as u64];
            let at = [32, 40, sections + 64 * random.below(12) + 24][random.below(3)];
            file[at..at + 8].copy_from_slice(&to[random.below(4)].to_le_bytes());
        }
        // any field of any header: its own place, or what no file has
        _ => {
            let header = if random.below(2) == 0 {
                programs + 56 * random.below(4)
            } else {
                sections + 64 * random.below(12)
            };
            let at = (header + 4 * random.below(16)).min(module.len() - 8);
            let to = if random.below(2) == 0 { at as u64 } else { FAR[random.below(8)] };
            let bytes = if random.below(2) == 0 { 4 } else { 8 };
            file[at..at + bytes].copy_from_slice(&to.to_le_bytes()[..bytes]);
        }
    }
    if kind < 2 {
        let from = (random.below(3) * 32).min(file.len());
        file[from..].fill_with(|| random.below(256) as u8);
    }
    file
}

/// As many cases as the changed files, and the same word for the whole of it.
#[test]
fn senseless_files_are_refused_with_byte_and_reason() {
    let files = [common::build("basic", 1), common::build("jumps", 2)];
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut refused = 0;
    for case in 0..cases() {
        let file = senseless(&files[case % 2], &mut random);
        if let Err(error) = Image::parse(&file) {
            refused += 1;
            assert!(
                !error.reason.is_empty() && error.to_string().contains(&format!("{:#x}", error.offset)),
                "{error}"
            );
        }
    }
    assert!(refused * 2 > cases(), "{refused}");
}

/// The whole of it takes `PEBBLE_FUZZ=1000000`.
fn cases() -> usize {
    std::env::var("PEBBLE_FUZZ").ok().and_then(|n| n.parse().ok()).unwrap_or(50_000)
}

#[test]
fn changed_files_never_panic() {
    let cases = cases();
    let files = [common::build("basic", 1), common::build("jumps", 2)];
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut accepted, mut refused) = (0, 0);
    // Headers, tables, and only then the rest are where a parser goes wrong.
    let interesting = [0, 1, 2, 3, 7, 8, 0x7f, 0x80, 0xff];
    for case in 0..cases {
        let mut file = files[case % 2].clone();
        let tail = file.len() - 2048;
        for _ in 0..1 + random.below(4) {
            let at = match random.below(4) {
                0 => random.below(64 + 3 * 56),
                1 => tail + random.below(2048),
                2 => 0x3000 + random.below(file.len() - 0x3000),
                _ => random.below(file.len()),
            };
            match random.below(4) {
                0 => file[at] ^= 1 << random.below(8),
                1 => file[at] = interesting[random.below(interesting.len())],
                2 => file[at] = random.below(256) as u8,
                _ => {
                    let end = (at + 8).min(file.len());
                    file[at..end].fill(if random.below(2) == 0 { 0 } else { 0xff });
                }
            }
        }
        if random.below(50) == 0 {
            file.truncate(random.below(file.len()));
        }
        match Image::parse(&file) {
            Ok(_) => accepted += 1,
            Err(error) => {
                refused += 1;
                assert!(!error.to_string().is_empty());
            }
        }
        // Loading verifies too, and maps what was accepted.
        let loaded = (case % 16 == 0).then(|| Module::load("changed", file));
        if let Some(Err(LoadError::System(e))) = loaded {
            panic!("{e}");
        }
    }
    assert!(accepted > 0 && refused > 0, "{accepted} {refused}");
}

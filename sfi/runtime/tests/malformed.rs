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

/// The whole of it takes `PEBBLE_FUZZ=1000000`.
#[test]
fn changed_files_never_panic() {
    let cases = std::env::var("PEBBLE_FUZZ").ok().and_then(|n| n.parse().ok()).unwrap_or(50_000);
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

//! The second checker's word on linked modules: `judge FILE|DIRECTORY...` looks at each module that is there,
//! and fails if the verifier accepts one that the second checker refuses.

use pebble_sfi_runtime::{Image, to_verify};
use pebble_sfi_second::{Cache, check};
use pebble_sfi_verify::{scratch_words, verify};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// Files below a path, without what links lead to.
fn files(path: &Path, found: &mut Vec<PathBuf>) {
    let Ok(kind) = path.symlink_metadata().map(|data| data.file_type()) else { return };
    if kind.is_dir() {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.for_each(|entry| files(&entry.path(), found));
    } else if kind.is_file() {
        found.push(path.to_path_buf());
    }
}

fn main() -> ExitCode {
    let mut found = vec![];
    std::env::args().skip(1).for_each(|path| files(Path::new(&path), &mut found));
    found.sort();
    let (mut judged, mut wrong, mut cache) = (0, 0, Cache::default());
    for path in found {
        let bytes = std::fs::read(&path).unwrap_or_default();
        let Ok(image) = Image::parse(&bytes) else { continue };
        let exports: Vec<u32> = image.exports.iter().map(|export| export.entry).collect();
        let module = to_verify(&image, &exports);
        let Ok(summary) = verify(&module, &mut vec![0; scratch_words(module.text.len())]) else { continue };
        judged += 1;
        let begin = Instant::now();
        let why = match check(&module, &mut cache) {
            Ok(findings) if findings.within(&summary) => {
                let (reached, of) = (findings.instructions, summary.instructions);
                let time = begin.elapsed().as_millis();
                println!("{}: {reached} of {of} instructions are reached ({time} ms)", path.display());
                continue;
            }
            Ok(findings) => format!("{findings:x?} is not within {summary:x?}"),
            Err(refusal) => refusal.to_string(),
        };
        wrong += 1;
        println!("{}: accepted by the verifier, refused by the second checker: {why}", path.display());
    }
    println!("{judged} modules judged, {wrong} refused");
    if judged > 0 && wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

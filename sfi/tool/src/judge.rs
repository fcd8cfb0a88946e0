//! `pebble sfi verify`: what the runtime would say of a file, and how fast the verifier says it.

use pebble_sfi_runtime::{Image, Level, LoadError, Module, source_line, to_verify};
use pebble_sfi_verify as verifier;
use std::path::Path;
use std::time::Instant;

/// Text that is judged for the measurement, in bytes.
const ENOUGH: usize = 64 << 20;

pub const USAGE: &str = "usage: pebble sfi verify FILE...
  says of each module whether the runtime would accept it, or which rule is broken where, and how fast that was found;
  exit code 1 if one is refused";

/// Judges each file; one that is refused makes the command fail.
pub fn command(files: &[String]) -> Result<(), String> {
    if files.iter().any(|a| a == "--help" || a == "-h") {
        println!("{USAGE}");
        return Ok(());
    }
    if files.is_empty() {
        return Err(USAGE.into());
    }
    let mut refused = 0;
    for file in files {
        let bytes = match Module::read(Path::new(file)) {
            Ok(bytes) => bytes,
            Err(LoadError::Read(e)) => return Err(format!("{file}: {e}")),
            Err(error) => {
                refused += 1;
                println!("{file}: refused: {error}");
                continue;
            }
        };
        match Module::load(file, bytes.clone()) {
            Ok(module) => {
                let level = if module.level == Level::Write { "write" } else { "full" };
                let text = module.text.len();
                let timer = if module.verdict.timer.is_some() { "; reads a timer" } else { "" };
                println!(
                    "{file}: accepted at level {level}: {text} bytes of code, {} exports, {} imports, {:.0} \
                     MB/s{timer}",
                    module.exports.len(),
                    module.imports.len(),
                    rate(&bytes)
                );
            }
            Err(LoadError::Refused(why)) => {
                refused += 1;
                println!("{file}: refused: {why}{}", place(&bytes, &why));
            }
            Err(error) => {
                refused += 1;
                println!("{file}: refused: {error}");
            }
        }
    }
    if refused == 0 { Ok(()) } else { Err(format!("{refused} of {} files refused", files.len())) }
}

/// Megabytes of code a second: the quickest of many rounds.
fn rate(file: &[u8]) -> f64 {
    let Ok(image) = Image::parse(file) else { return 0.0 };
    let exports: Vec<u32> = image.exports.iter().map(|e| e.entry).collect();
    let module = to_verify(&image, &exports);
    let mut scratch = vec![0; verifier::scratch_words(image.text_bytes.len())];
    let mut best = f64::INFINITY;
    for _ in 0..(ENOUGH / image.text_bytes.len().max(1)).clamp(3, 1000) {
        let begin = Instant::now();
        if verifier::verify(&module, &mut scratch).is_err() {
            return 0.0;
        }
        best = best.min(begin.elapsed().as_secs_f64());
    }
    image.text_bytes.len() as f64 / 1e6 / best
}

/// Puts in where branches lead, which the verifier must be told.
pub fn label(file: Vec<u8>) -> Result<Vec<u8>, String> {
    let image = Image::parse(&file).map_err(|e| e.to_string())?;
    let exports: Vec<u32> = image.exports.iter().map(|e| e.entry).collect();
    let labels = pebble_sfi_labels::find(&to_verify(&image, &exports));
    pebble_sfi_labels::attach(file, &labels).ok_or_else(|| "there is no section .pbl.labels".into())
}

/// What the runtime would say of a module that has just been linked, if it would refuse it.
pub fn refusal(file: &[u8], no_timer: bool) -> Option<String> {
    let image = Image::parse(file).map_err(|e| e.to_string());
    let judged = image.and_then(|image| {
        let exports: Vec<u32> = image.exports.iter().map(|e| e.entry).collect();
        let mut scratch = vec![0; verifier::scratch_words(image.text_bytes.len())];
        let verdict = verifier::verify(&to_verify(&image, &exports), &mut scratch);
        match verdict.map_err(|e| e.to_string())?.timer.filter(|_| no_timer) {
            Some(at) => Err(format!(
                "{at:#x}: it reads a clock of the processor's, and -fpbl-no-timer says that nothing does"
            )),
            None => Ok(()),
        }
    });
    judged.err().map(|why| format!("{why}{}", place(file, &why)))
}

/// ` (in function+offset at file:line)` for the address that a refusal begins with.
fn place(file: &[u8], why: &str) -> String {
    let address =
        why.split(':').next().and_then(|a| u32::from_str_radix(a.trim_start_matches("0x"), 16).ok());
    let (Some(at), Ok(image)) = (address, Image::parse(file)) else { return String::new() };
    let line =
        source_line(file, at.into()).map_or(String::new(), |(file, line)| format!(" at {file}:{line}"));
    let symbol = image.symbols.iter().filter(|s| s.at <= at).max_by_key(|s| s.at);
    symbol.map_or(String::new(), |s| format!(" (in {}+{:#x}{line})", s.name, at - s.at))
}

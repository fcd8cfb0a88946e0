//! How fast the verifier is: `rate MODULE...` judges each module again and again, and prints MB of text a
//! second. `RATE_ROUNDS=n` judges it n times only: under callgrind, the difference of two counts is what one
//! verdict takes.

use pebble_sfi_verify::{Level, Module, Summary, scratch_words, site, verify};
use std::time::Instant;

fn num(bytes: &[u8], at: usize, size: usize) -> usize {
    bytes[at..at + size].iter().rev().fold(0, |n, b| n << 8 | *b as usize)
}

fn c_string(bytes: &[u8]) -> &[u8] {
    bytes.split(|b| *b == 0).next().unwrap_or_default()
}

/// Offset in the file, size and address of a section of an ELF64 file.
fn section(elf: &[u8], name: &str) -> Option<(usize, usize, usize)> {
    let header = |i: usize| &elf[num(elf, 40, 8) + 64 * i..];
    let names = num(header(num(elf, 62, 2)), 24, 8);
    let found =
        (0..num(elf, 60, 2)).find(|i| c_string(&elf[names + num(header(*i), 0, 4)..]) == name.as_bytes())?;
    let h = header(found);
    Some((num(h, 24, 8), num(h, 32, 8), num(h, 16, 8)))
}

fn main() {
    for path in std::env::args().skip(1) {
        let elf = std::fs::read(&path).expect("a readable file");
        let (at, size, _) = section(&elf, ".pbl.module").expect("a module");
        let head = &elf[at..at + size];
        let word = |i: usize| num(head, i, 4);
        let part = |from: usize, to: usize| {
            // the loaded segments: file offset of an address
            let table = num(&elf, 32, 8);
            for i in 0..num(&elf, 56, 2) {
                let h = &elf[table + 56 * i..];
                let (kind, offset, address, size) =
                    (num(h, 0, 4), num(h, 8, 8), num(h, 16, 8), num(h, 32, 8));
                if kind == 1 && address <= from && to <= address + size {
                    return &elf[offset + from - address..offset + to - address];
                }
            }
            &[]
        };
        let facts = section(&elf, ".pbl.facts").map_or(&[][..], |(at, size, _)| &elf[at..at + size]);
        let labels = section(&elf, ".pbl.labels").map_or(&[][..], |(at, size, _)| &elf[at..at + size]);
        let exports: Vec<u32> = (0..word(56)).map(|i| word(64 + 16 * i + 4) as u32).collect();
        let module = Module {
            level: if head[6] == 1 { Level::Write } else { Level::Full },
            text: part(word(16), word(20)),
            text_at: word(16) as u32,
            ftab_size: word(12) as u32,
            rodata: part(word(24), word(28)),
            rodata_at: word(24) as u32,
            data: word(32) as u32..word(36) as u32,
            facts,
            labels,
            exports: &exports,
            imports: word(60) as u32,
        };
        let mut scratch = vec![0; scratch_words(module.text.len())];
        let mut best: Option<(f64, Summary)> = None;
        let rounds = std::env::var("RATE_ROUNDS").ok().and_then(|n| n.parse().ok());
        for _ in 0..rounds.unwrap_or((64 << 20) / module.text.len().max(1) + 8) {
            let begin = Instant::now();
            match verify(&module, &mut scratch) {
                Ok(summary) => {
                    let time = begin.elapsed().as_secs_f64();
                    best = Some(best.map_or((time, summary), |(t, _)| (t.min(time), summary)));
                }
                Err(refusal) => {
                    println!("{path}: {refusal}");
                    break;
                }
            }
        }
        if let Some((time, summary)) = best {
            let rate = module.text.len() as f64 / 1e6 / time;
            println!("{path}: {} bytes, {rate:.0} MB/s, {summary:?}", module.text.len());
            if rounds.is_some() {
                continue; // for those who count instructions
            }
            let begin = Instant::now();
            let sites = (module.text_at..module.text_at + module.text.len() as u32)
                .filter(|at| site(&module, &scratch, *at).is_some())
                .count();
            println!(
                "  {sites} return sites, {:.0} ns a look-up",
                begin.elapsed().as_nanos() as f64 / module.text.len() as f64
            );
        }
    }
}

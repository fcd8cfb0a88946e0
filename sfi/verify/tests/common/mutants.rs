//! Mutants of modules that the verifier accepts.

use super::emulator::{Cache, Rng, starts};
use super::{Built, assemble, module_file, scratch_dir};
use pebble_sfi_verify::Level;
use std::path::Path;

/// Accepted modules to start from, and everything that mutation may put in.
pub struct Seeds {
    pub modules: Vec<Built>,
    pub pool: Vec<Vec<u8>>,
}

fn cut(built: &Built, cache: &mut Cache) -> Vec<Vec<u8>> {
    let marks = starts(built, cache);
    let mut at: Vec<_> = (0..marks.len()).filter(|i| marks[*i]).collect();
    at.push(marks.len());
    at.windows(2).map(|w| built.text[w[0]..w[1]].to_vec()).collect()
}

fn corpus(kinds: &[&str], cache: &mut Cache) -> Seeds {
    let mut seeds = Seeds { modules: vec![], pool: vec![] };
    let dir = scratch_dir("fuzz");
    for kind in kinds {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(kind);
        let mut paths: Vec<_> = std::fs::read_dir(from).unwrap().map(|e| e.unwrap().path()).collect();
        paths.sort();
        for path in paths {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let built = assemble(&dir, &format!("{kind}-{name}"), &std::fs::read_to_string(&path).unwrap());
            seeds.pool.extend(cut(&built, cache));
            seeds.modules.push(built);
        }
    }
    seeds.pool.sort();
    seeds.pool.dedup();
    seeds
}

/// The corpus that is accepted, or the modules that `FUZZ_MODULES` names, and what escapes are made of.
pub fn seeds(cache: &mut Cache) -> Seeds {
    let mut seeds = corpus(&["pass"], cache);
    // `FUZZ_MODULES`: rewritten compiler-made modules, instead of the corpus
    let files = std::env::var("FUZZ_MODULES").unwrap_or_default();
    for (i, path) in files.split_whitespace().enumerate() {
        if i == 0 {
            seeds.modules.clear();
        }
        let built = module_file(Path::new(path));
        built.verify().unwrap();
        seeds.pool.extend(cut(&built, cache));
        seeds.modules.push(built);
    }
    // what escapes are made of, too
    let escapes = assemble(&scratch_dir("fuzz"), "pool", include_str!("../corpus/pool.s"));
    seeds.pool.extend(cut(&escapes, cache));
    seeds
}

/// A number from the environment.
pub fn number(name: &str, or: u64) -> u64 {
    std::env::var(name).map_or(or, |n| n.parse().expect(name))
}

/// Changes a few things: most cases stay close to code that is accepted.
pub fn mutate(built: &mut Built, pool: &[Vec<u8>], cache: &mut Cache, rng: &mut Rng) {
    for _ in 0..1 + rng.below(3) {
        let marks = starts(built, cache);
        let at: Vec<_> = (0..marks.len()).filter(|i| marks[*i]).collect();
        let i = rng.below(at.len());
        let (from, to) = (at[i], at.get(i + 1).copied().unwrap_or(marks.len()));
        let byte = from + rng.below(to - from);
        match rng.below(14) {
            0 => built.text[byte] ^= 1 << rng.below(8),
            1 => built.text[byte] = rng.next() as u8,
            // drop an instruction
            2 | 3 => built.text[from..to].fill(0x90),
            // put another in its place, padded or cutting the next one short
            4..=7 => {
                let new = &pool[rng.below(pool.len())];
                let room = if rng.below(4) == 0 { marks.len() - from } else { to - from };
                if new.len() <= room {
                    built.text[from..from + new.len()].copy_from_slice(new);
                    let end = (from + new.len()).max(to);
                    built.text[from + new.len()..end].fill(0x90);
                }
            }
            // two change places
            8 if i + 2 < at.len() => built.text[from..at[i + 2]].rotate_left(to - from),
            // registers: ModRM, or the operand behind it
            9 => {
                let at = (from + 1 + rng.below(2)).min(to - 1);
                built.text[at] ^= (rng.next() & 0x3f) as u8;
            }
            10 if !built.rodata.is_empty() => {
                let at = rng.below(built.rodata.len());
                built.rodata[at] ^= 1 << rng.below(8);
            }
            11 if !built.facts.is_empty() => {
                let at = rng.below(built.facts.len());
                built.facts[at] ^= 1 << rng.below(8);
            }
            12 if !built.facts.is_empty() => {
                let at = rng.below(built.facts.len() / 20) * 20;
                built.facts.drain(at..at + 20);
            }
            13 => record(built, from, rng),
            _ => built.level = if rng.below(2) == 0 { Level::Full } else { Level::Write },
        }
    }
    // mostly the labels of what it is now; else those of what it was, or lies
    match rng.below(12) {
        0 => {}
        1 => {
            built.relabel();
            let at = rng.below(built.labels.len());
            built.labels[at] = built.labels[at].wrapping_add(rng.next() as u8 % 16).wrapping_sub(8);
        }
        2 => {
            built.relabel();
            let at = rng.below(built.labels.len());
            built.labels.insert(at, rng.below(8) as u8);
        }
        _ => built.relabel(),
    }
}

/// A new record, with facts as they might be.
fn record(built: &mut Built, at: usize, rng: &mut Rng) {
    let address = built.text_at + at as u32;
    let mut records: Vec<Vec<u8>> = built.facts.chunks(20).map(|c| c.to_vec()).collect();
    let mut new = address.to_le_bytes().to_vec();
    let depth = rng.below(3) as u32;
    new.extend((depth << 28 | rng.next() as u32 & ((1 << (4 * depth)) - 1) & 0x55).to_le_bytes());
    new.extend((-8 * rng.below(3) as i32).to_le_bytes());
    for _ in 0..3 {
        new.extend((1u16 << rng.below(16) & 0xffcf).to_le_bytes());
    }
    new.extend([0, 0]);
    let key = |r: &Vec<u8>| u32::from_le_bytes([r[0], r[1], r[2], r[3]]);
    records.retain(|r| key(r) != address);
    records.push(new);
    records.sort_by_key(key);
    built.facts = records.concat();
}

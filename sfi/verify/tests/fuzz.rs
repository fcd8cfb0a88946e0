//! Differential fuzzing: modules are mutated, and every one that the verifier accepts runs in a hostile
//! emulator, which must not see it write, read (at full) or go outside.

mod common;

use common::emulator::{Cache, Rng, Tally, execute};
use common::mutants::{mutate, number, seeds};
use common::scratch_dir;
use pebble_sfi_verify::{scratch_words, verify};

fn fuzz(cases: u64, seed: u64) -> Tally {
    let mut cache = Cache::default();
    let seeds = seeds(&mut cache);
    let mut rng = Rng(seed);
    let mut tally = Tally::default();
    let mut scratch = vec![0; scratch_words(1 << 16)];
    while tally.cases < cases {
        let mut built = seeds.modules[rng.below(seeds.modules.len())].clone();
        mutate(&mut built, &seeds.pool, &mut cache, &mut rng);
        tally.cases += 1;
        let Ok(summary) = verify(&built.module(), &mut scratch) else { continue };
        tally.accepted += 1;
        if let Some(why) = execute(&built, summary.changes, &mut cache, &mut rng, &mut tally) {
            let dir = scratch_dir("escapes");
            std::fs::write(dir.join("text.bin"), &built.text).unwrap();
            panic!("case {}, {:?}: {why}\nfacts {:02x?}", tally.cases, built.level, built.facts);
        }
    }
    println!("{tally:?}");
    tally
}

/// 10^5 cases; the whole of it is
/// `PEBBLE_FUZZ=10000000 FUZZ_SEED=1 cargo test --release -p pebble-sfi-verify --test fuzz -- --nocapture`.
#[test]
fn accepted_modules_never_escape() {
    let seed = number("FUZZ_SEED", 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let tally = fuzz(number("PEBBLE_FUZZ", 100_000), seed);
    assert!(tally.accepted * 100 > tally.cases * 15, "{tally:?}");
    assert!(tally.returned * 100 > tally.runs * 20, "{tally:?}");
}

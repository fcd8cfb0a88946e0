//! The verifier against the second checker: what the one accepts, the other accepts, and it can refuse.

mod common;

use common::emulator::{Cache, Rng};
use common::mutants::{mutate, number, seeds};
use common::{Built, assemble, module_file, scratch_dir};
use pebble_sfi_second as second;
use pebble_sfi_verify::{Summary, scratch_words, verify};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

/// What the second checker has against a module that the verifier accepts.
fn objection(built: &Built, summary: &Summary, cache: &mut second::Cache) -> Option<String> {
    match second::check(&built.module(), cache) {
        Ok(findings) if findings.within(summary) => None,
        Ok(findings) => Some(format!("{findings:x?} is not within {summary:x?}")),
        Err(refusal) => Some(refusal.to_string()),
    }
}

fn corpus(kind: &str) -> Vec<(String, Built)> {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(kind);
    let dir = scratch_dir("second");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(from).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    let build = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let built = assemble(&dir, &format!("{kind}-{name}"), &std::fs::read_to_string(&path).unwrap());
        (name, built)
    };
    paths.into_iter().map(build).collect()
}

/// The corpus, and linked modules: `SECOND_MODULES="FILE..."`.
#[test]
fn accepts_what_the_verifier_accepts() {
    let files = std::env::var("SECOND_MODULES").unwrap_or_default();
    let linked = files.split_whitespace().map(|file| (file.to_string(), module_file(Path::new(file))));
    let (mut wrong, mut cache) = (vec![], second::Cache::default());
    for (name, built) in corpus("pass").into_iter().chain(linked) {
        let summary = built.verify().unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
        if let Some(why) = objection(&built, &summary, &mut cache) {
            wrong.push(format!("{name}: {why}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each escape of the corpus breaks the rule that stands in `second.txt`; what stands there as accepted does
/// no harm: nothing reaches it, or only an encoding, a label or a record is wrong. `SECOND_BLESS=1` writes
/// the file anew.
#[test]
fn refuses_escapes() {
    let (mut cache, mut said, mut seen) = (second::Cache::default(), String::new(), BTreeSet::new());
    for (name, built) in corpus("fail") {
        let verdict = second::check(&built.module(), &mut cache).map_err(|refusal| refusal.rule);
        seen.extend(verdict.err());
        said.push_str(
            &verdict.map_or_else(|rule| format!("{name} {rule:?}\n"), |_| format!("{name} accepted\n")),
        );
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/second.txt");
    if std::env::var_os("SECOND_BLESS").is_some() {
        std::fs::write(&golden, &said).unwrap();
    }
    let golden = std::fs::read_to_string(&golden).unwrap_or_default();
    let changed: Vec<_> = said.lines().filter(|line| !golden.lines().any(|was| was == *line)).collect();
    assert!(changed.is_empty(), "{}", changed.join("\n"));
    let unseen: Vec<_> = second::Rule::ALL.iter().filter(|rule| !seen.contains(rule)).collect();
    assert_eq!(unseen, [&second::Rule::Layout], "`refuses_other_parts` has that one");
}

/// What no assembly says: parts that overlap, and less told to the portals than is so.
#[test]
fn refuses_other_parts() {
    let mut cache = second::Cache::default();
    let dir = scratch_dir("second");
    let built =
        assemble(&dir, "parts", "main:\n    movl $1, %ebx\n    fld1\n    fldcw (%rbp)\n    rdtsc\n    ret\n");
    let summary = built.verify().unwrap();
    let findings = second::check(&built.module(), &mut cache).unwrap();
    assert!(findings.within(&summary) && findings.changes == 1 << 3 && findings.x87 && findings.fp_control);
    assert!(!findings.within(&Summary { changes: 0, ..summary }));
    assert!(!findings.within(&Summary { x87: false, ..summary }));
    assert!(!findings.within(&Summary { fp_control: false, ..summary }));
    assert!(!findings.within(&Summary { timer: None, ..summary }));
    let changes: [fn(&mut Built); 5] = [
        |built| built.ftab_size = 96,
        |built| built.text_at = 0x4_0000,
        |built| built.data.start = built.text_at,
        |built| built.data.end = 0x8000_0001,
        |built| built.rodata_at = built.text_at,
    ];
    for change in changes {
        let mut built = built.clone();
        change(&mut built);
        let refusal = second::check(&built.module(), &mut cache).unwrap_err();
        assert_eq!(refusal.rule, second::Rule::Layout);
    }
}

/// A million mutants; `SECOND_CASES` says how many, `FUZZ_SEED` which, `FUZZ_MODULES` of what. One that the
/// verifier refuses is not looked at.
#[test]
fn accepts_accepted_mutants() {
    let cases = number("SECOND_CASES", 1_000_000);
    let mut instructions = Cache::default();
    let seeds = seeds(&mut instructions);
    let mut cache = second::Cache::default();
    let mut rng = Rng(number("FUZZ_SEED", 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let most = seeds.modules.iter().map(|built| built.text.len()).max().unwrap();
    let mut scratch = vec![0; scratch_words(most)];
    let mut accepted = 0u64;
    for case in 0..cases {
        let mut built = seeds.modules[rng.below(seeds.modules.len())].clone();
        mutate(&mut built, &seeds.pool, &mut instructions, &mut rng);
        let Ok(summary) = verify(&built.module(), &mut scratch) else { continue };
        accepted += 1;
        if let Some(why) = objection(&built, &summary, &mut cache) {
            std::fs::write(scratch_dir("second").join("text.bin"), &built.text).unwrap();
            panic!("case {case}, {:?}: {why}\nfacts {:02x?}", built.level, built.facts);
        }
    }
    let _ = writeln!(
        std::io::stderr(),
        "note: {accepted} of {cases} mutants accepted by the verifier, and by the second checker"
    );
    assert!(accepted * 100 > cases * 15, "{accepted} of {cases}");
}

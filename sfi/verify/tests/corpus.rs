//! The corpora: assembly that must be accepted, and escapes that must be refused for the right reason at the
//! right place.

mod common;

use common::emulator::{Cache, Rng, Tally, execute};
use std::io::Write;
use std::path::Path;

fn cases(kind: &str) -> Vec<(String, String)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(kind);
    let mut cases: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "s"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect();
    cases.sort();
    cases
}

#[test]
fn pass() {
    let dir = common::scratch_dir("pass");
    let mut wrong = vec![];
    for (name, source) in cases("pass") {
        let built = common::assemble(&dir, &name, &source);
        if let Err(refusal) = built.verify() {
            wrong.push(format!("{name}: {refusal}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn fail() {
    let dir = common::scratch_dir("fail");
    let all = cases("fail");
    assert!(all.len() >= 60, "only {} escapes", all.len());
    let mut wrong = vec![];
    let (mut cache, mut rng, mut tally) = (Cache::default(), Rng(77), Tally::default());
    let (mut seen, count) = (0, all.len());
    for (name, source) in all {
        let built = common::assemble(&dir, &name, &source);
        let words: Vec<_> = source.lines().next().unwrap().split_whitespace().collect();
        let [_, "fail", rule, label] = words[..] else { panic!("{name}: first line") };
        let at = *built.symbols.get(label).unwrap_or_else(|| panic!("{name}: no label {label}"));
        let mut escapes = |_| execute(&built, 0, &mut cache, &mut rng, &mut tally).is_some();
        seen += (0..200).any(&mut escapes) as usize;
        match built.verify() {
            Ok(_) => wrong.push(format!("{name}: accepted, not {rule} at {at:#x}")),
            Err(refusal) if refusal.rule.name() == rule && refusal.at == at => {}
            Err(refusal) => wrong.push(format!("{name}: not {rule} at {at:#x}, but {refusal}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // run without the verifier, most of them do escape: the fuzzer's emulator has eyes
    let _ = writeln!(
        std::io::stderr(),
        "note: {count} hand-written escapes refused, each by its rule at its address; without the verifier \
         {seen} are seen to escape"
    );
    assert!(seen * 5 > count * 2, "{seen} of {count}");
}

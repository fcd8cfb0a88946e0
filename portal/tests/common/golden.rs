//! Golden files: what is made of a case is what was blessed.
//!
//! A folder has the whole text of the cases that a reader learns most from. Of all others it has a line each,
//! in `others.txt`: name, bytes of code, and a hash of the text. `BLESS=1` writes the folder anew; read the
//! difference before committing it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// What is made of one case: its name, the bytes of its code, and the text.
pub struct Made {
    pub name: String,
    pub bytes: usize,
    pub text: String,
}

const OTHERS: &str = "others.txt";

/// Compares with the folder `tests/golden/WHERE`, in which the cases `shown` have files of their own.
pub fn compare(place: &str, shown: &[&str], all: impl IntoIterator<Item = Made>) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(place);
    let (mut files, mut others, mut names) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
    for made in all {
        assert!(names.insert(made.name.clone()), "two cases are called {}", made.name);
        if shown.contains(&&*made.name) {
            files.insert(format!("{}.txt", made.name), made.text);
        } else {
            let line = format!("{} {:016x}", made.bytes, hash(made.text.as_bytes()));
            others.insert(made.name.clone(), (line, made.text));
        }
    }
    let missing: Vec<_> = shown.iter().filter(|name| !names.contains(**name)).collect();
    assert!(missing.is_empty(), "no cases: {missing:?}");
    let mut table = String::new();
    for (name, (line, _)) in &others {
        let _ = writeln!(table, "{name} {line}");
    }
    files.insert(OTHERS.into(), table);
    match std::env::var_os("BLESS") {
        Some(_) => bless(&dir, &files),
        None => differ(&dir, &files, &others),
    }
}

fn bless(dir: &Path, files: &BTreeMap<String, String>) {
    let _ = fs::remove_dir_all(dir);
    fs::create_dir_all(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    for (file, text) in files {
        fs::write(dir.join(file), text).unwrap_or_else(|e| panic!("{file}: {e}"));
    }
}

/// Fails with the names of those that differ, after their texts.
fn differ(dir: &Path, files: &BTreeMap<String, String>, others: &BTreeMap<String, (String, String)>) {
    let read = |path: PathBuf| fs::read_to_string(path).unwrap_or_default();
    let mut differing = Vec::new();
    let blessed = read(dir.join(OTHERS));
    for (name, (line, text)) in others {
        if !blessed.lines().any(|known| known == format!("{name} {line}")) {
            eprintln!("--- {name} would be now:\n{text}");
            differing.push(name.clone());
        }
    }
    for (file, text) in files.iter().filter(|(file, text)| read(dir.join(file)) != **text) {
        if file != OTHERS {
            eprintln!("--- {file} would be now:\n{text}");
        }
        differing.push(file.clone());
    }
    let there = fs::read_dir(dir).into_iter().flatten().flatten();
    let there = there.map(|entry| entry.file_name().to_string_lossy().into_owned());
    differing.extend(there.filter(|file| !files.contains_key(file)));
    assert!(differing.is_empty(), "differ, or belong to no case: {differing:?}; BLESS=1 accepts them");
}

/// FNV-1a: the same everywhere.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3))
}

//! Golden files: the intermediate representation and the code of one portal of every shape.
//!
//! `BLESS=1 cargo test -p pebble-portal --test golden` writes them anew; read the difference before committing it.

mod common;

use common::cases::{self, Case};
use pebble_portal::isa::riscv64::decode::decode;
use pebble_portal::{Shape, ir};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

fn describe(case: &Case) -> Result<String, std::fmt::Error> {
    let code = case.compile();
    let lowered = ir::lower(&case.spec, case.shape, &case.connection);
    let mut out = String::new();
    let c = &case.connection;
    match case.shape {
        Shape::Call | Shape::Wait(_) | Shape::Signal(_) | Shape::Tail => {
            writeln!(out, "{:?} \"{}\"", case.shape, case.spec)?;
        }
        shape => writeln!(out, "{shape:?}")?,
    }
    for (name, domain) in [("caller", c.caller), ("callee", c.callee)] {
        // Most portals need not know how a domain's memory is lent.
        writeln!(out, "{name} {}", format!("{domain:x?}").replace(", l1: 0, windows: 0", ""))?;
    }
    writeln!(
        out,
        "frame {} words, call {} instructions, {} bytes in all\n",
        code.frame_words,
        code.call_words,
        code.len()
    )?;
    for (name, ops) in [("call", &lowered.call), ("return", &lowered.ret)] {
        for op in ops {
            // Few portals are stubs.
            let op = op.to_string().replace(", stub: false", "");
            writeln!(out, "{name:6} {op}")?;
        }
    }
    writeln!(out)?;
    let pool_end = code.ret_at.map_or(code.len(), usize::from);
    for (i, word) in code.words.iter().enumerate() {
        let at = i * 4;
        if at >= usize::from(code.call_words) * 4 && at < pool_end {
            if at >= usize::from(code.pool_at) && at % 8 == 0 {
                let high = code.words.get(i + 1).copied().unwrap_or_default();
                writeln!(out, "{at:4x}: .dword {:#x}", u64::from(high) << 32 | u64::from(*word))?;
            }
            continue;
        }
        match decode(*word) {
            Some(insn) => writeln!(out, "{at:4x}: {insn}")?,
            None => writeln!(out, "{at:4x}: .word {word:#010x}")?,
        }
    }
    Ok(out)
}

#[test]
fn portals_are_as_blessed() {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let bless = std::env::var_os("BLESS").is_some();
    let mut names = BTreeSet::new();
    let mut differing = Vec::new();
    for case in cases::all() {
        let file = format!("{}.txt", case.name);
        let path = dir.join(&file);
        let text = describe(&case).expect("text");
        if bless {
            fs::write(&path, &text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        } else if fs::read_to_string(&path).ok().as_deref() != Some(text.as_str()) {
            eprintln!("--- {file} would be now:\n{text}");
            differing.push(file.clone());
        }
        assert!(names.insert(file), "two cases are called {}", case.name);
    }
    for entry in fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())).flatten() {
        let file = entry.file_name().into_string().expect("a file name in UTF-8");
        if !names.contains(&file) {
            if bless {
                fs::remove_file(entry.path()).unwrap_or_else(|e| panic!("{file}: {e}"));
            } else {
                differing.push(file);
            }
        }
    }
    assert!(differing.is_empty(), "differ, or belong to no case: {differing:?}; BLESS=1 accepts them");
}

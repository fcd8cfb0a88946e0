//! The seam: no file outside the rooms for processors and boards speaks their words.
//!
//! A port is a few files in such rooms. A word of a processor elsewhere is where the next port would break;
//! so the list of such files is empty, and this keeps it so.

use std::fs;
use std::path::{Component, Path};

use anyhow::{Context, Result, ensure};

use crate::tools::Tools;

/// Words of processors and boards, in whatever case.
const WORDS: [&str; 12] =
    ["sv39", "satp", "sepc", "scause", "stvec", "sret", "sstatus", "plic", "riscv", "rv64", "mips", "malta"];
/// Files that are looked into.
const KINDS: [&str; 4] = ["rs", "c", "h", "S"];
/// Folders with this name, and files with this stem, are the room of a processor.
const PROCESSORS: [&str; 3] = ["riscv64", "mips64", "x86_64"];
/// Rooms besides: of boards, of tests.
const ROOMS: [&str; 3] = ["boards", "servers/interrupt-dispatcher/src/controller", "host/cli/src/test"];
/// Also rooms of tests, wherever they are.
const TESTS: &str = "tests";
/// What is no source of the project's.
const OTHERS: [&str; 2] = ["target", ".git"];

/// Whether the file, by its path in the project, may say what it wants.
fn in_a_room(path: &Path) -> bool {
    let named = |part: Component| {
        let name = Path::new(part.as_os_str()).file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        PROCESSORS.contains(&name) || part.as_os_str() == TESTS
    };
    ROOMS.iter().any(|room| path.starts_with(room) || path.with_extension("") == Path::new(room))
        || path.components().any(named)
}

/// The first of the words in a text, with its line.
fn spoken(text: &str) -> Option<(usize, &str)> {
    let lines = text.lines().enumerate();
    lines.map(|(n, line)| (n + 1, line)).find_map(|(n, line)| {
        let mut words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.find(|word| WORDS.iter().any(|known| word.eq_ignore_ascii_case(known))).map(|word| (n, word))
    })
}

fn look(root: &Path, folder: &Path, found: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(root.join(folder)).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let (path, name) = (folder.join(entry.file_name()), entry.file_name());
        if OTHERS.iter().any(|other| name == *other) || in_a_room(&path) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            look(root, &path, found)?;
        } else if path.extension().is_some_and(|kind| KINDS.iter().any(|known| kind == *known)) {
            let bytes = fs::read(root.join(&path)).with_context(|| path.display().to_string())?;
            let text = String::from_utf8_lossy(&bytes);
            found.extend(spoken(&text).map(|(line, word)| format!("{}:{line}: {word}", path.display())));
        }
    }
    Ok(())
}

pub fn is_kept(tools: &Tools) -> Result<()> {
    let mut found = Vec::new();
    look(&tools.root, Path::new(""), &mut found)?;
    found.sort();
    let list = found.join("\n  ");
    ensure!(found.is_empty(), "words of a processor or a board outside their rooms (seam.rs):\n  {list}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_are_known_and_words_found() {
        for room in
            ["arch/src/riscv64.rs", "arch/src/riscv64/elf.rs", "portal/tests/isa.rs", "tests/hostile/x.rs"]
        {
            assert!(in_a_room(Path::new(room)), "{room}");
        }
        for room in ["servers/interrupt-dispatcher/src/controller.rs", "host/cli/src/test/seam.rs"] {
            assert!(in_a_room(Path::new(room)), "{room}");
        }
        for open in ["arch/src/lib.rs", "servers/vm/src/space.rs", "host/image/src/riscv.rs"] {
            assert!(!in_a_room(Path::new(open)), "{open}");
        }
        assert_eq!(spoken("riscv64 satp_x\n// the SATP, here"), Some((2, "SATP")));
        assert_eq!(spoken("csrw satp, zero"), Some((1, "satp")));
        assert_eq!(spoken("a mipser"), None);
    }
}

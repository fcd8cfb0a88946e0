//! The files that Linux starts with: the program that measures, and the one that it starts.
//!
//! **Problem.** A C library and a shell would be measured along. **Strategy.** Two static programs without
//! any, compiled from `bench/linux/` by the compiler that Pebble's own C programs are compiled by, in an
//! archive of the format that images have, too. **Invariants.** They are compiled anew when a source or the
//! command differs ([`stamp`]).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::kernel;
use crate::archive::Archive;
use crate::stamp;
use crate::tools::{Tools, run_quietly};

const FLAGS: &[&str] = &[
    "-O2",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-ffreestanding",
    "-fno-builtin",
    "-fno-stack-protector",
    "-nostdlib",
    "-static",
];
/// The first program of the system is called like this; all sources but those of others are its.
const INIT: &str = "init";
/// What it starts to measure that.
const SMALL: &str = "small";

pub fn sources(tools: &Tools) -> PathBuf {
    tools.root.join("bench/linux")
}

/// What of them knows the processor.
fn machine(tools: &Tools) -> PathBuf {
    sources(tools).join(tools.board.processor.name())
}

/// The archive.
pub fn packed(tools: &Tools) -> Result<PathBuf> {
    let folder = sources(tools);
    let entries = fs::read_dir(&folder).with_context(|| tools.shown(&folder))?;
    let mut files: Vec<_> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.push(machine(tools).join("machine.h"));
    files.sort();
    let [init, small] = [INIT, SMALL].map(|program| compile(tools, program, &files));
    let path = kernel::place(tools).join("initramfs");
    fs::write(&path, archive(&fs::read(init?)?, &fs::read(small?)?)).with_context(|| tools.shown(&path))?;
    Ok(path)
}

fn archive(init: &[u8], small: &[u8]) -> Vec<u8> {
    let mut archive = Archive::default();
    archive.add(INIT, init);
    archive.add(SMALL, small);
    archive.finish()
}

/// A program, of its sources among these files.
fn compile(tools: &Tools, program: &str, files: &[PathBuf]) -> Result<PathBuf> {
    let product = kernel::place(tools).join(program);
    let mut command = Command::new(tools.llvm("clang")?);
    command.arg(format!("--target={}-linux-gnu", tools.board.processor.name())).args(FLAGS);
    command.arg("-I").arg(machine(tools)).arg(format!("--ld-path={}", tools.llvm("ld.lld")?.display()));
    command.arg("-o").arg(&product).args(files.iter().filter(|file| is_of(program, file)));
    if !stamp::is_fresh(&product, &command) {
        stamp::withdraw(&product)?;
        run_quietly(&mut command, &format!("compiling {program} for Linux"))?;
        stamp::set(&product, &command, files)?;
    }
    Ok(product)
}

fn is_of(program: &str, file: &Path) -> bool {
    let small = file.file_stem().is_some_and(|stem| stem == SMALL);
    file.extension().is_some_and(|extension| extension == "c") && small == (program == SMALL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_finds_its_first_program() {
        let bytes = archive(b"one", b"two");
        assert_eq!(bytes.len() % 4, 0);
        let (header, rest) = bytes.split_at(110);
        // Magic, inode, mode: a regular file that may be run.
        assert!(header.starts_with(b"07070100000001000081ed"));
        assert!(rest.starts_with(b"init\0"));
        let read = pebble_file::Archive::parse(&bytes).unwrap();
        let contents = |path| read.contents(read.lookup(path).unwrap()).unwrap();
        assert_eq!(contents("small"), pebble_file::Contents::File(b"two"));
    }

    #[test]
    fn each_program_has_its_sources() {
        let of = |program| move |file: &&&str| is_of(program, Path::new(file));
        let files = ["a/init.c", "a/row.c", "a/row.h", "a/rows.toml", "a/small.c"];
        assert_eq!(files.iter().filter(of(INIT)).collect::<Vec<_>>(), [&"a/init.c", &"a/row.c"]);
        assert_eq!(files.iter().filter(of(SMALL)).collect::<Vec<_>>(), [&"a/small.c"]);
    }
}

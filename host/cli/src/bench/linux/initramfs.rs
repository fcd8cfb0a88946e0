//! The files that Linux starts with: the program that measures, and those that it starts.
//!
//! **Problem.** A C library and a shell would be measured along. **Strategy.** Two static programs without
//! any, compiled from `bench/linux/` by the compiler that Pebble's own C programs are compiled by, in an
//! archive of the format that images have, too. Where whole programs are measured, they are those of
//! `examples/ports` with Debian's C library ([`sysroot`]), and Debian's shell. **Invariants.** They are
//! compiled anew when a source or the command differs ([`stamp`]).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::debian;
use super::sysroot;
use crate::archive::Archive;
use crate::tools::{Tools, run_quietly};
use crate::{lock, stamp, ui};

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
/// The same, where a shell finds it under the name that it has in Pebble.
const NOTHING: &str = "bin/nothing";
/// Whole programs: where they are, and which component of the project each is.
const PROGRAMS: [(&str, &str); 3] = [
    ("bin/lua", "examples/ports/lua"),
    ("bin/sqlite3", "examples/ports/sqlite"),
    ("bin/minigzip", "examples/ports/minigzip"),
];
const SHELL: &str = "bin/sh";
/// What they work on, by name in both places.
const WORK: (&str, &str, [&str; 2]) = ("share/macro", "bench/macro", ["prepare.lua", "words.lua"]);

pub fn sources(tools: &Tools) -> PathBuf {
    tools.root.join("bench/linux")
}

/// What of them knows the processor.
fn machine(tools: &Tools) -> PathBuf {
    sources(tools).join(tools.board.processor.name())
}

/// The archive.
pub fn packed(tools: &Tools) -> Result<PathBuf> {
    let _alone = lock::builds(tools)?;
    let folder = sources(tools);
    let entries = fs::read_dir(&folder).with_context(|| tools.shown(&folder))?;
    let mut files: Vec<_> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.push(machine(tools).join("machine.h"));
    files.sort();
    let small = compile(tools, SMALL, &files)?;
    let mut packed: Vec<(String, PathBuf)> = vec![
        (INIT.into(), compile(tools, INIT, &files)?),
        (SMALL.into(), small.clone()),
        (NOTHING.into(), small),
        (SHELL.into(), sysroot::shell(tools)),
    ];
    let target = sysroot::target(tools)?;
    ui::progress("building", "programs for Linux");
    for (name, component) in PROGRAMS {
        packed.push((name.into(), target.built(tools, component)?));
    }
    let (there, here, names) = WORK;
    packed.extend(names.map(|name| (format!("{there}/{name}"), tools.root.join(here).join(name))));
    let read = |(name, path): (String, PathBuf)| {
        let bytes = fs::read(&path).with_context(|| tools.shown(&path))?;
        Ok((name, bytes))
    };
    let packed = packed.into_iter().map(read).collect::<Result<Vec<_>>>()?;
    let path = debian::place(tools).join("initramfs");
    fs::write(&path, archive(&packed)).with_context(|| tools.shown(&path))?;
    Ok(path)
}

/// Linux makes no directory by itself: each comes before the first file in it.
fn archive(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut archive = Archive::default();
    let mut folders: Vec<&str> = Vec::new();
    for (path, bytes) in files {
        for folder in path.match_indices('/').map(|(end, _)| &path[..end]) {
            if !folders.contains(&folder) {
                archive.add_folder(folder);
                folders.push(folder);
            }
        }
        archive.add(path, bytes);
    }
    archive.finish()
}

/// A program, of its sources among these files.
fn compile(tools: &Tools, program: &str, files: &[PathBuf]) -> Result<PathBuf> {
    let product = debian::place(tools).join(program);
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

    fn packed(files: [(&str, &str); 3]) -> Vec<u8> {
        archive(&files.map(|(path, text)| (path.into(), text.into())))
    }

    #[test]
    fn linux_finds_its_first_program() {
        let bytes = packed([("init", "one"), ("small", "two"), ("a/b/c", "three")]);
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
    fn a_directory_comes_once_and_before_its_files() {
        let bytes = packed([("a/x", "one"), ("a/b/y", "two"), ("a/b/z", "three")]);
        let at = |name: &[u8]| -> Vec<_> {
            let places = bytes.windows(name.len()).enumerate();
            places.filter(|(_, place)| *place == name).map(|(at, _)| at).collect()
        };
        let [a, x, b, y] = [at(b"a\0"), at(b"a/x\0"), at(b"a/b\0"), at(b"a/b/y\0")];
        assert_eq!([a.len(), x.len(), b.len(), y.len()], [1; 4]);
        assert!(a < x && x < b && b < y);
        // The mode of a directory.
        assert!(bytes[a[0] - 110..].starts_with(b"07070100000001000041ed"));
    }

    #[test]
    fn each_program_has_its_sources() {
        let of = |program| move |file: &&&str| is_of(program, Path::new(file));
        let files = ["a/init.c", "a/row.c", "a/row.h", "a/rows.toml", "a/small.c"];
        assert_eq!(files.iter().filter(of(INIT)).collect::<Vec<_>>(), [&"a/init.c", &"a/row.c"]);
        assert_eq!(files.iter().filter(of(SMALL)).collect::<Vec<_>>(), [&"a/small.c"]);
    }
}

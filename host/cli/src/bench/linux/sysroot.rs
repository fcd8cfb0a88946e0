//! What programs of Linux are built with, and the shell that starts them.
//!
//! **Problem.** Whole programs need the C library that people run them with, which this machine has only for
//! itself. **Strategy.** Headers, start files and static libraries of Debian's packages for the board's
//! processor, unpacked side by side; the compiler is the one for components in C. The shell is ready-made.
//! **Invariants.** They are fetched once; the file that names the packages is written last, and what other
//! packages made is fetched anew.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::debian::{Debian, place};
use crate::native::Target;
use crate::tools::Tools;
use crate::ui;

/// Packages, and what of them is kept.
const PACKAGES: [(&str, &str); 4] = [
    ("libc6-dev", "./usr/*"),
    ("linux-libc-dev", "./usr/*"),
    ("libgcc-14-dev", "./usr/lib/*"),
    ("busybox-static", "./usr/bin/busybox"),
];
/// As components in C are compiled (`lib/c/flags.toml`), as far as that is not for a system without Linux.
const COMPILE: [&str; 4] = ["-O2", "-march=rv64gc", "-fno-pic", "-fno-stack-protector"];
/// What changes if the packages do.
const LIBRARIES: [&str; 2] = ["libc.a", "libm.a"];

fn root(tools: &Tools) -> PathBuf {
    place(tools).join("sysroot")
}

/// Sees to it that all is there.
pub fn fetched(debian: &mut Debian) -> Result<()> {
    let tools = debian.tools;
    let (root, note) = (root(tools), place(tools).join("sysroot.packages"));
    let packages = PACKAGES.map(|(package, files)| format!("{package} {files}\n")).concat();
    if fs::read_to_string(&note).is_ok_and(|old| old == packages) && root.exists() {
        return Ok(());
    }
    let _ = fs::remove_file(&note);
    let _ = fs::remove_dir_all(&root);
    ui::progress("fetching", "Debian's C library and a shell, 12 MB: once, into target/linux");
    for (package, files) in PACKAGES {
        debian.extract(package, files, &root)?;
    }
    fs::write(&note, packages).with_context(|| tools.shown(&note))
}

/// A shell, as Debian ships it.
pub fn shell(tools: &Tools) -> PathBuf {
    root(tools).join("usr/bin/busybox")
}

/// Static programs for that C library.
pub fn target(tools: &Tools) -> Result<Target> {
    let (root, triple) = (root(tools), format!("{}-linux-gnu", tools.board.processor.name()));
    let common = [format!("--target={triple}"), format!("--sysroot={}", root.display())];
    let linker = format!("--ld-path={}", tools.llvm("ld.lld")?.display());
    let with =
        |own: &[&str]| common.iter().map(String::as_str).chain(own.iter().copied()).map(Into::into).collect();
    Ok(Target {
        name: "Linux".into(),
        place: place(tools).join("programs"),
        compile: with(&COMPILE),
        link: with(&["-static", &linker]),
        libraries: LIBRARIES.map(|name| root.join("usr/lib").join(&triple).join(name)).to_vec(),
    })
}

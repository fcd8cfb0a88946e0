//! The C library of the native side: musl, as Debian's archive has it, built by the compiler and options that
//! fault domains' library is built with.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use pebble_debian::Archive;

use crate::compile;
use crate::place::Place;
use crate::side::CLANG;

/// What `./configure` would write, but for the processor.
const CONFIGURATION: &str = "\
ARCH = x86_64
SUBARCH =
ASMSUBARCH =
srcdir = .
exec_prefix = $(prefix)
bindir = $(prefix)/bin
libdir = $(prefix)/lib
includedir = $(prefix)/include
syslibdir = /lib
AR = llvm-ar-19
RANLIB = llvm-ranlib-19
CFLAGS = -O2 -w
CFLAGS_C99FSE = -std=c99 -ffreestanding -nostdinc
CFLAGS_AUTO = -fno-builtin
OPTIMIZE_GLOBS = internal/*.c malloc/*.c string/*.c
MALLOC_DIR = mallocng
";

/// Where the library is installed: `include` and `lib`.
pub fn native(place: &Place) -> Result<PathBuf> {
    let install = place.target.join("musl/native");
    if install.join("lib/libc.a").exists() {
        return Ok(install);
    }
    let source = source(place)?;
    let build = place.target.join("musl/build");
    if build.exists() {
        fs::remove_dir_all(&build)?;
    }
    compile::run(Command::new("cp").arg("-r").arg(&source).arg(&build))?;
    let compiler = format!("CC = {CLANG} --target=x86_64-linux-musl\nprefix = {}\n", install.display());
    fs::write(build.join("config.mak"), format!("{CONFIGURATION}{compiler}"))?;
    let targets = ["lib/libc.a", "lib/crt1.o", "install-headers", "install-libs", "SHARED_LIBS="];
    compile::run(Command::new("make").current_dir(&build).arg("-s").args(targets)).context("musl")?;
    Ok(install)
}

/// musl's sources, unpacked.
fn source(place: &Place) -> Result<PathBuf> {
    let archive = Archive {
        package: "musl=1.2.3-1".into(),
        suite: None,
        archive: "musl_1.2.3.orig.tar.gz".into(),
        directory: "musl-1.2.3".into(),
        only: Vec::new(),
        sha256: "7d5b0b6062521e4627e099e4c9dc8248d32a30285e959b7eecaa780cf8cfd4a4".into(),
    };
    pebble_debian::unpack(&place.debian(), &archive, &place.target.join("musl"))
}

//! The C library, made for a processor from Debian's source package.
//!
//! **Problem.** No distribution has picolibc for every processor, and each has another version of it.
//! **Strategy.** One recipe, `lib/c/picolibc.toml`: where the sources are, and how meson builds them; the
//! processor adds its flags. **Invariants.** It is made once for a processor, in `target/c/picolibc`, and
//! anew when recipe or flags change; what was interrupted is not taken for whole ([`stamp`]).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use pebble_debian::Archive;
use serde::Deserialize;

use crate::tools::{Tools, in_path, missing, run_quietly};
use crate::{stamp, ui};

#[derive(Deserialize)]
struct Recipe {
    options: Vec<String>,
    flags: Vec<String>,
    source: Archive,
}

/// The directory with `include` and `lib/libc.a`: for this processor, compiled with these flags, of what
/// meson calls its family.
pub fn built(tools: &Tools, machine: &[String], family: &str) -> Result<PathBuf> {
    let description = tools.root.join("lib/c/picolibc.toml");
    let text = fs::read_to_string(&description).with_context(|| tools.shown(&description))?;
    let recipe: Recipe = toml::from_str(&text).with_context(|| tools.shown(&description))?;
    let place = tools.target().join("c/picolibc").join(tools.board.processor.name());
    let (build, installed, cross) = (place.join("build"), place.join("picolibc"), place.join("cross.ini"));
    let library = installed.join("lib/libc.a");

    let program = |name: &str| in_path(name).ok_or_else(|| missing(name));
    let sources = tools.target().join("c/sources/picolibc");
    let mut setup = Command::new(program("meson")?);
    setup.arg("setup").arg(&build).arg(sources.join(&recipe.source.directory));
    setup.arg("--cross-file").arg(&cross).args(&recipe.options);
    let told = cross_file(tools, machine, &recipe.flags, family)?;
    let as_told = fs::read_to_string(&cross).is_ok_and(|old| old == told);
    if as_told && stamp::is_fresh(&library, &setup) {
        return Ok(installed);
    }

    ui::progress("building", &format!("the C library for {}: once, about a minute", tools.board.processor));
    pebble_debian::unpack(&tools.target().join("debian"), &recipe.source, &sources)?;
    for old in [&build, &installed] {
        let _ = fs::remove_dir_all(old);
    }
    fs::create_dir_all(&installed).with_context(|| tools.shown(&installed))?;
    fs::write(&cross, told).with_context(|| tools.shown(&cross))?;
    run_quietly(&mut setup, "preparing the C library")?;
    run_quietly(Command::new(program("ninja")?).arg("-C").arg(&build), "building the C library")?;
    let mut install = Command::new(program("meson")?);
    install.args(["install", "--quiet", "--no-rebuild", "-C"]).arg(&build).env("DESTDIR", &installed);
    run_quietly(&mut install, "installing the C library")?;
    stamp::set(&library, &setup, &[description, cross])?;
    Ok(installed)
}

/// What meson must know of compiler and processor.
fn cross_file(tools: &Tools, machine: &[String], flags: &[String], family: &str) -> Result<String> {
    let quoted = |words: &mut dyn Iterator<Item = String>| {
        words.map(|word| format!("'{word}'")).collect::<Vec<_>>().join(", ")
    };
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let compiler = [path(&tools.llvm("clang")?)];
    let words = quoted(&mut compiler.iter().chain(machine).chain(flags).cloned());
    let mut file = format!("[binaries]\nc = [{words}]\n");
    for (name, tool) in [("ar", "llvm-ar"), ("nm", "llvm-nm"), ("strip", "llvm-strip"), ("ld", "ld.lld")] {
        file += &format!("{name} = '{}'\n", path(&tools.llvm(tool)?));
    }
    file += &format!("\n[host_machine]\nsystem = 'none'\ncpu_family = '{family}'\ncpu = '{family}'\n");
    Ok(file + "endian = 'little'\n\n[properties]\nskip_sanity_check = true\n")
}

//! Builds a component written in C: every `*.c` in its directory, with the files of `lib/c`, against picolibc.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::tools::{Tools, run_quietly};
use crate::ui;

/// Compiler flags of every component in C.
const FLAGS: &[&str] = &[
    "--target=riscv64-unknown-elf",
    "-march=rv64gc",
    "-mabi=lp64d",
    "-mcmodel=medany",
    "-O2",
    "-g",
    "-Wall",
    "-ffunction-sections",
    "-fdata-sections",
];
const PICOLIBC: &str = "/usr/lib/picolibc/riscv64-unknown-elf";

/// Builds the component in `dir`; returns the name of its program, that of the directory, and its ELF file.
pub fn build(tools: &Tools, dir: &Path) -> Result<(String, PathBuf)> {
    let name = dir.file_name().and_then(|name| name.to_str()).context("a component needs a directory")?;
    let out = tools.target().join("c").join(name);
    let lib = tools.root.join("lib/c");
    let sources: Vec<PathBuf> = [sources(dir)?, sources(&lib)?].concat();
    ensure!(!sources.is_empty(), "{} has no C source", tools.shown(dir));
    fs::create_dir_all(&out)?;

    let elf = out.join(name);
    if up_to_date(&elf, &[dir, &lib])? {
        return Ok((name.into(), elf));
    }
    let mut objects = Vec::new();
    for source in &sources {
        let object = out.join(source.file_name().unwrap_or_default()).with_added_extension("o");
        let mut clang = Command::new(tools.llvm("clang")?);
        clang.args(FLAGS).arg("-isystem").arg(Path::new(PICOLIBC).join("include"));
        clang.arg("-I").arg(&lib).arg("-c").arg(source).arg("-o").arg(&object);
        run_quietly(&mut clang, &format!("compiling {}", tools.shown(source)))?;
        objects.push(object);
    }
    let mut lld = Command::new(tools.llvm("ld.lld")?);
    lld.args(["--gc-sections", "-static", "-T"]).arg(lib.join("component.ld")).args(&objects);
    lld.arg("-L").arg(Path::new(PICOLIBC).join("lib/rv64imafdc/lp64d")).arg("-lc").arg("-o").arg(&elf);
    run_quietly(&mut lld, &format!("linking {name}"))?;
    ui::progress("built", &format!("{name} ({} with symbols)", ui::bytes(fs::metadata(&elf)?.len())));
    Ok((name.into(), elf))
}

fn sources(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(dir).with_context(|| dir.display().to_string())?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "c" || e == "S"));
    files.sort();
    Ok(files)
}

/// Is `elf` newer than every file in `dirs`?
fn up_to_date(elf: &Path, dirs: &[&Path]) -> Result<bool> {
    let Ok(built) = fs::metadata(elf).and_then(|m| m.modified()) else { return Ok(false) };
    for dir in dirs {
        for entry in fs::read_dir(dir).with_context(|| dir.display().to_string())? {
            if entry?.metadata()?.modified()? >= built {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

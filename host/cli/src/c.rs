//! Builds components written in C. How is said in `lib/c/flags.toml`, explained in `lib/c/README.md`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::tools::{Tools, program, run_quietly};
use crate::ui;

/// The command lines, with `{name}` where a value goes.
#[derive(Deserialize)]
struct Flags {
    picolibc: String,
    libgcc: Vec<String>,
    cc: Vec<String>,
    /// Further ones for our own runtime.
    strict: Vec<String>,
    runtime: Vec<String>,
    ld: Vec<String>,
    libs: Vec<String>,
}

/// Builds C components; the runtime that all share is compiled once.
pub struct Compiler<'a> {
    tools: &'a Tools,
    flags: Flags,
    include: PathBuf,
    libgcc: String,
    runtime: Vec<PathBuf>,
    /// Nothing that is older than this is up to date.
    newest: SystemTime,
}

impl<'a> Compiler<'a> {
    pub fn new(tools: &'a Tools) -> Result<Self> {
        let lib = tools.root.join("lib/c");
        let path = lib.join("flags.toml");
        let text = fs::read_to_string(&path).with_context(|| tools.shown(&path))?;
        let flags: Flags = toml::from_str(&text).with_context(|| tools.shown(&path))?;
        let include = tools.target().join("c/include");
        write_if_changed(&include.join("pebble.h"), pebble_header::header().as_bytes())?;
        let libgcc = path_from(&flags.libgcc)?;
        let newest = newest(&lib)?.max(newest(&include)?);
        let mut compiler = Compiler { tools, flags, include, libgcc, runtime: Vec::new(), newest };
        for source in compiler.flags.runtime.clone() {
            let source = PathBuf::from(compiler.fill(&source));
            let object = compiler.compile(&source, "runtime", compiler.newest, true)?;
            compiler.runtime.push(object);
        }
        Ok(compiler)
    }

    /// Builds the component whose source is this file, or all `.c` and `.S` files in this directory.
    pub fn build(&self, source: &Path) -> Result<PathBuf> {
        let name = source.file_stem().and_then(|name| name.to_str()).context("no name")?;
        let sources = if source.is_dir() { sources_in(source)? } else { vec![source.to_path_buf()] };
        ensure!(!sources.is_empty(), "{} has no C source", self.tools.shown(source));
        let newest = self.newest.max(newest(source)?);
        let objects: Result<Vec<_>> = sources.iter().map(|s| self.compile(s, name, newest, false)).collect();
        let elf = self.out(name).join(name);
        if is_older(&elf, newest) {
            self.link(&objects?, &elf)?;
            ui::progress("built", &format!("{name} ({} with symbols)", ui::bytes(fs::metadata(&elf)?.len())));
        }
        Ok(elf)
    }

    fn out(&self, name: &str) -> PathBuf {
        self.tools.target().join("c").join(name)
    }

    fn compile(&self, source: &Path, name: &str, newest: SystemTime, strict: bool) -> Result<PathBuf> {
        let dir = self.out(name);
        let file = source.file_name().context("no name")?;
        let object = dir.join(format!("{}.o", file.to_string_lossy()));
        if !is_older(&object, newest) {
            return Ok(object);
        }
        fs::create_dir_all(&dir)?;
        let mut clang = Command::new(self.tools.llvm("clang")?);
        clang.args(self.flags.cc.iter().map(|flag| self.fill(flag)));
        if strict {
            clang.args(&self.flags.strict);
        }
        clang.arg("-c").arg(source).arg("-o").arg(&object);
        // The compiler's warnings are for the author: always shown.
        let status = clang.status().with_context(|| program(&clang))?;
        ensure!(status.success(), "{} does not compile", self.tools.shown(source));
        Ok(object)
    }

    fn link(&self, objects: &[PathBuf], elf: &Path) -> Result<()> {
        let mut lld = Command::new(self.tools.llvm("ld.lld")?);
        lld.args(self.flags.ld.iter().map(|flag| self.fill(flag))).args(objects);
        for lib in &self.flags.libs {
            match lib.as_str() {
                "{runtime}" => lld.args(&self.runtime),
                _ => lld.arg(self.fill(lib)),
            };
        }
        run_quietly(lld.arg("-o").arg(elf), &format!("linking {}", self.tools.shown(elf)))
    }

    fn fill(&self, flag: &str) -> String {
        flag.replace("{root}", &self.tools.root.to_string_lossy())
            .replace("{include}", &self.include.to_string_lossy())
            .replace("{picolibc}", &self.flags.picolibc)
            .replace("{libgcc}", &self.libgcc)
    }
}

/// What a command prints.
fn path_from(words: &[String]) -> Result<String> {
    let (name, arguments) = words.split_first().context("flags.toml: libgcc is empty")?;
    let output =
        Command::new(name).args(arguments).output().with_context(|| format!("cannot start {name}"))?;
    ensure!(output.status.success(), "{} failed", words.join(" "));
    Ok(String::from_utf8(output.stdout)?.trim().into())
}

pub fn write_if_changed(path: &Path, bytes: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    fs::write(path, bytes).with_context(|| path.display().to_string())
}

fn sources_in(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = fs::read_dir(dir)?.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "c" || e == "S"));
    files.sort();
    Ok(files)
}

/// When this file, or any file in this directory, was changed last.
fn newest(path: &Path) -> Result<SystemTime> {
    let shown = || path.display().to_string();
    let mut newest = fs::metadata(path).and_then(|m| m.modified()).with_context(shown)?;
    if path.is_dir() {
        for entry in fs::read_dir(path).with_context(shown)? {
            newest = newest.max(entry?.metadata()?.modified()?);
        }
    }
    Ok(newest)
}

fn is_older(path: &Path, than: SystemTime) -> bool {
    fs::metadata(path).and_then(|m| m.modified()).map_or(true, |time| time < than)
}

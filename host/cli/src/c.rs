//! Builds components written in C and C++. How is said in `lib/c/flags.toml`, explained in `lib/c/README.md`.
//!
//! What is built for a file of a system's archive lies in `target/c/systems/SYSTEM/FILE`: no other component
//! has that name, whatever its source is called. It is made anew when contents, flags or compiler differ
//! ([`stamp`]).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::build::cargo_artifacts;
use crate::sources::{Language, Unit};
use crate::tools::{Tools, program, run_quietly};
use crate::{picolibc, sources, stamp, ui};

/// The command lines, with `{name}` where a value goes.
#[derive(Deserialize)]
struct Flags {
    cc: Vec<String>,
    /// Beside these, for C and for C++.
    c: Vec<String>,
    cxx: Vec<String>,
    /// Further ones for our own runtime.
    strict: Vec<String>,
    runtime: Vec<String>,
    ld: Vec<String>,
    libs: Vec<String>,
}

/// What the processor adds.
#[derive(Deserialize)]
struct Processor {
    machine: Vec<String>,
    linker: Vec<String>,
    /// What the C library's build calls it.
    family: String,
    rust_target: String,
}

/// Builds the C components of a system; the runtime that all share is compiled once.
pub struct Compiler<'a> {
    tools: &'a Tools,
    flags: Flags,
    processor: Processor,
    folder: PathBuf,
    include: PathBuf,
    picolibc: PathBuf,
    malloc: PathBuf,
    runtime: Vec<PathBuf>,
    /// The library of C++, once a component has wanted it: where its sources are, and its objects.
    cxx_root: OnceLock<PathBuf>,
    cxx: OnceLock<Vec<PathBuf>>,
    /// Where components go.
    out: PathBuf,
    /// How each source was compiled, for editors.
    commands: Mutex<BTreeMap<PathBuf, Vec<String>>>,
}

impl<'a> Compiler<'a> {
    /// For the system of this name ([`Tools::system_name`]).
    pub fn new(tools: &'a Tools, system: &str) -> Result<Self> {
        let lib = tools.root.join("lib/c");
        let folder = lib.join(tools.board.processor.name());
        let flags: Flags = read(tools, &lib.join("flags.toml"))?;
        let processor: Processor = read(tools, &folder.join("flags.toml"))?;
        let include = tools.made().join("c/include");
        let processor_header = folder.join("processor.h");
        let board = pebble_header::Board {
            time_hz: tools.board.time_hz,
            abort: tools.isa.abort,
            processor: &fs::read_to_string(&processor_header)
                .with_context(|| tools.shown(&processor_header))?,
        };
        write_if_changed(&include.join("pebble.h"), pebble_header::header(&board).as_bytes())?;
        write_if_changed(&include.join("pebble-interfaces.h"), interfaces(tools)?.as_bytes())?;
        let picolibc = picolibc::built(tools, &processor.machine, &processor.family)?;
        let malloc = heap(tools, &processor.rust_target)?;
        let all = tools.made().join("c");
        let out = all.join("systems").join(system);
        let runtime = Vec::new();
        let mut compiler = Compiler {
            tools,
            flags,
            processor,
            folder,
            include,
            picolibc,
            malloc,
            runtime,
            cxx_root: OnceLock::new(),
            cxx: OnceLock::new(),
            out,
            commands: Mutex::default(),
        };
        for source in compiler.flags.runtime.clone() {
            let unit = Unit::alone(Path::new(&compiler.fill(&source)), &compiler.flags.strict);
            let object = compiler.compile(&unit, &all.join("runtime"))?;
            compiler.runtime.push(object);
        }
        Ok(compiler)
    }

    /// Builds the component at this path of the archive, out of a file or a directory ([`sources`]).
    pub fn build(&self, source: &Path, path: &str) -> Result<PathBuf> {
        let sources = sources::find(self.tools, source)?;
        let dir = self.out.join(path.trim_start_matches('/'));
        let cxx = if sources.in_cxx() { self.cxx()? } else { &[] };
        let objects = self.compile_all(&sources.units, &dir.join("objects"))?;
        let mut libraries = self.compile_all(&sources.libraries, &dir.join("objects"))?;
        libraries.extend_from_slice(cxx);
        let name = dir.file_name().context("no name")?;
        let elf = dir.join(name);
        if self.link(&objects, &libraries, &elf)? {
            let size = ui::bytes(fs::metadata(&elf)?.len());
            ui::progress("built", &format!("{} ({size} with symbols)", name.to_string_lossy()));
        }
        Ok(elf)
    }

    /// What the compiler says about a source, as strict as with the project's own; nothing if it likes it.
    pub fn says(&self, source: &Path) -> Result<String> {
        let mut clang = Command::new(self.tools.llvm("clang")?);
        clang.args(self.filled(&self.flags.cc)).args(&self.flags.c).args(&self.flags.strict);
        let output = clang.arg("-fsyntax-only").arg(source).output().with_context(|| program(&clang))?;
        Ok(String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// The objects of the library of C++, compiled for the first component that is in C++.
    fn cxx(&self) -> Result<&[PathBuf]> {
        if let Some(objects) = self.cxx.get() {
            return Ok(objects);
        }
        let from = self.tools.root.join("lib/c/cxx");
        let root = sources::root(self.tools, &from)?;
        self.cxx_root.get_or_init(|| root);
        let place = self.tools.made().join("c/cxx");
        if !place.exists() {
            ui::progress("building", "the library of C++: once, about two minutes");
        }
        let objects = self.compile_all(&sources::find(self.tools, &from)?.units, &place)?;
        Ok(self.cxx.get_or_init(|| objects))
    }

    /// The objects of sources, in their order, one at a time on each processor.
    fn compile_all(&self, units: &[Unit], dir: &Path) -> Result<Vec<PathBuf>> {
        let (next, objects) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
        let worker = || {
            while let Some((at, unit)) =
                Some(next.fetch_add(1, Relaxed)).and_then(|at| Some((at, units.get(at)?)))
            {
                let object = self.compile(unit, dir);
                if object.is_err() {
                    next.fetch_max(units.len(), Relaxed);
                }
                objects.lock().unwrap_or_else(PoisonError::into_inner).insert(at, object);
            }
        };
        let workers = thread::available_parallelism().map_or(1, usize::from).min(units.len());
        thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(worker))));
        objects.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
    }

    /// The object of a source, below this directory.
    fn compile(&self, unit: &Unit, dir: &Path) -> Result<PathBuf> {
        let (source, object) = (&unit.file, dir.join(&unit.object));
        let rule = object.with_extension("d");
        let dir = object.parent().context("no name")?;
        let own = match unit.language {
            Language::C => &self.flags.c,
            Language::Cxx => &self.flags.cxx,
        };
        let mut clang = Command::new(self.tools.llvm("clang")?);
        clang.args(self.filled(own)).args(self.filled(&self.flags.cc)).args(&unit.options);
        clang.args(["-MD", "-MF"]).arg(&rule).arg("-c").arg(source).arg("-o").arg(&object);
        let words = [clang.get_program()].into_iter().chain(clang.get_args());
        let words = words.map(|word| word.to_string_lossy().into_owned()).collect();
        self.commands.lock().unwrap_or_else(PoisonError::into_inner).insert(source.into(), words);
        if stamp::is_fresh(&object, &clang) {
            return Ok(object);
        }
        fs::create_dir_all(dir)?;
        stamp::withdraw(&object)?;
        // The compiler's warnings are for the author: always shown.
        let status = clang.status().with_context(|| program(&clang))?;
        ensure!(status.success(), "{} does not compile", self.tools.shown(source));
        let rule = fs::read_to_string(&rule).with_context(|| self.tools.shown(&rule))?;
        stamp::set(&object, &clang, &stamp::dependencies(&rule))?;
        Ok(object)
    }

    /// Tells editors how the sources were compiled, in `target/compile_commands.json` beside those of other
    /// systems; `.clangd` says where that is.
    pub fn note_commands(&self) -> Result<()> {
        #[derive(Serialize, Deserialize)]
        struct Entry {
            directory: PathBuf,
            file: PathBuf,
            arguments: Vec<String>,
        }
        let path = self.tools.made_at_home().join("compile_commands.json");
        let known = fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let mut all: Vec<Entry> = known.unwrap_or_default();
        let commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|entry| !commands.contains_key(&entry.file) && entry.file.exists());
        all.extend(commands.iter().map(|(file, arguments)| Entry {
            directory: self.tools.home.clone(),
            file: file.clone(),
            arguments: arguments.clone(),
        }));
        write_if_changed(&path, &serde_json::to_vec_pretty(&all)?)
    }

    /// Whether there was anything to link.
    fn link(&self, objects: &[PathBuf], libraries: &[PathBuf], elf: &Path) -> Result<bool> {
        let mut lld = Command::new(self.tools.llvm("ld.lld")?);
        lld.args(self.filled(&self.flags.ld)).args(objects);
        if !libraries.is_empty() {
            lld.arg("--start-lib").args(libraries).arg("--end-lib");
        }
        for lib in &self.flags.libs {
            match lib.as_str() {
                "{runtime}" => lld.args(&self.runtime),
                _ => lld.arg(self.fill(lib)),
            };
        }
        lld.arg("-o").arg(elf);
        if stamp::is_fresh(elf, &lld) {
            return Ok(false);
        }
        // Objects, libraries and the linker's script are those arguments that are files.
        let files = lld
            .get_args()
            .map(PathBuf::from)
            .filter(|path| path != elf && path.is_file())
            .collect::<Vec<_>>();
        stamp::withdraw(elf)?;
        run_quietly(&mut lld, &format!("linking {}", self.tools.shown(elf)))?;
        stamp::set(elf, &lld, &files)?;
        Ok(true)
    }

    /// Flags, with those of the processor where they are wanted.
    fn filled(&self, flags: &[String]) -> Vec<String> {
        let mut all = Vec::new();
        for flag in flags {
            match flag.as_str() {
                "{machine}" => all.extend(self.processor.machine.iter().cloned()),
                "{linker}" => all.extend(self.processor.linker.iter().cloned()),
                _ => all.push(self.fill(flag)),
            }
        }
        all
    }

    fn fill(&self, flag: &str) -> String {
        flag.replace("{root}", &self.tools.root.to_string_lossy())
            .replace("{include}", &self.include.to_string_lossy())
            .replace("{picolibc}", &self.picolibc.to_string_lossy())
            .replace("{processor}", &self.folder.to_string_lossy())
            .replace("{malloc}", &self.malloc.to_string_lossy())
            .replace(
                "{cxx}",
                &self.cxx_root.get().map_or_else(Default::default, |root| root.to_string_lossy()),
            )
    }
}

/// The header with the stubs of the servers' interfaces.
fn interfaces(tools: &Tools) -> Result<String> {
    Ok(pebble_interface::c::header(&pebble_interface::all(&tools.root)?))
}

fn read<T: serde::de::DeserializeOwned>(tools: &Tools, path: &Path) -> Result<T> {
    let text = fs::read_to_string(path).with_context(|| tools.shown(path))?;
    toml::from_str(&text).with_context(|| tools.shown(path))
}

/// The archive with the heap of C components, which is written in Rust.
fn heap(tools: &Tools, target: &str) -> Result<PathBuf> {
    let mut cargo = tools.cross_cargo_for(target)?;
    cargo_artifacts(cargo.args(["-p", "pebble-malloc"]), |_| ()).context("lib/c/malloc does not build")?;
    Ok(tools.cross_made(target).join("libpebble_malloc.a"))
}

pub fn write_if_changed(path: &Path, bytes: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    fs::write(path, bytes).with_context(|| path.display().to_string())
}

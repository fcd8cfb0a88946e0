//! Programs out of sources: every translation unit by itself, then the link, with whatever compiler a side
//! uses.
//!
//! An executable is made anew when a command, a file of ours or the compiler has changed; the packages'
//! sources cannot.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result, bail};

use crate::manifest::{HOME, Program};
use crate::place::Place;
use crate::source::Sources;

/// How a side compiles and links.
#[derive(Clone, Debug)]
pub struct Compiler {
    /// The command with the options of every translation unit.
    pub compile: Vec<String>,
    /// The command that links, before the objects.
    pub link: Vec<String>,
    /// And what follows them.
    pub libraries: Vec<String>,
    /// Files that change with the compiler, where its commands do not.
    pub made_from: Vec<PathBuf>,
}

impl Compiler {
    /// A compiler that does everything itself, as `CC` of other projects' builds.
    pub fn plain(cc: &str) -> Self {
        let command = words(cc);
        let mut compile = command.clone();
        compile.push("-O2".into());
        Compiler { compile, link: command, libraries: vec!["-lm".into()], made_from: vec![] }
    }
}

/// What is compiled for a program and how, apart from the compiler.
pub struct Units {
    pub sources: Vec<PathBuf>,
    pub options: Vec<String>,
}

pub fn units(place: &Place, sources: &Sources, program: &Program) -> Result<Units> {
    let home = place.root.join(HOME);
    let mut files = vec![place.root.join(program.driver())];
    let mut options = vec!["-w".to_string(), format!("-I{}", home.join("programs").display())];
    options.extend(program.define.iter().map(|define| format!("-D{define}")));
    options.extend(program.include.iter().map(|dir| format!("-I{}", home.join(dir).display())));
    for part in &program.from {
        let root = sources.root(part)?;
        options.extend(part.include.iter().map(|dir| format!("-I{}", root.join(dir).display())));
        files.extend(sources.files(part)?);
    }
    Ok(Units { sources: files, options })
}

/// Compiles and links a program into `directory`; returns the executable and whether anything had to be done.
pub fn build(
    place: &Place,
    sources: &Sources,
    program: &Program,
    compiler: &Compiler,
    directory: &Path,
) -> Result<PathBuf> {
    let units = units(place, sources, program)?;
    let directory = directory.join(&program.name);
    let executable = directory.join(&program.name);
    let stamp = directory.join("stamp");
    let fingerprint = fingerprint(place, program, compiler, &units);
    if executable.exists() && fs::read_to_string(&stamp).is_ok_and(|old| old == fingerprint) {
        return Ok(executable);
    }
    fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
    let mut objects = Vec::new();
    for (i, source) in units.sources.iter().enumerate() {
        let stem = source.file_stem().unwrap_or_default().to_string_lossy();
        let object = directory.join(format!("{i:02}-{stem}.o"));
        let mut command = command(&compiler.compile);
        command.args(&units.options).arg("-c").arg(source).arg("-o").arg(&object);
        run(&mut command)?;
        objects.push(object);
    }
    let mut link = command(&compiler.link);
    link.args(&objects).args(&compiler.libraries).arg("-o").arg(&executable);
    run(&mut link)?;
    fs::write(stamp, fingerprint)?;
    Ok(executable)
}

/// The words of a command line without quotes.
pub fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_string).collect()
}

/// A command from its words.
pub fn command(words: &[String]) -> Command {
    let mut command = Command::new(words.first().map_or("false", String::as_str));
    command.args(words.get(1..).unwrap_or_default());
    command
}

/// Runs a tool; what it says is told only when it fails.
pub fn run(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said: String = said.lines().take(30).map(|line| format!("\n  {line}")).collect();
        bail!("{}: {command:?}{said}", output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn fingerprint(place: &Place, program: &Program, compiler: &Compiler, units: &Units) -> String {
    let mut hasher = DefaultHasher::new();
    format!("{compiler:?}{:?}{:?}", units.sources, units.options).hash(&mut hasher);
    let home = place.root.join(HOME);
    let mut ours = vec![place.root.join(program.driver())];
    let rooms = ["programs".to_string()];
    for room in rooms.iter().chain(&program.include) {
        let entries = fs::read_dir(home.join(room)).into_iter().flatten().flatten();
        ours.extend(entries.map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "h")));
    }
    ours.sort();
    ours.extend_from_slice(&compiler.made_from);
    for file in ours {
        fs::read(&file).unwrap_or_default().hash(&mut hasher);
    }
    for tool in compiler.compile.first().into_iter().chain(compiler.link.first()) {
        changed(&which(tool)).hash(&mut hasher);
    }
    format!("{:016x}", hasher.finish())
}

/// When a file was last changed, in nanoseconds.
fn changed(path: &Path) -> u128 {
    let time = fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    time.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map_or(0, |since| since.as_nanos())
}

/// A program as the shell would find it.
pub fn which(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|directory| directory.join(name)).find(|p| p.is_file());
    if name.contains('/') { PathBuf::from(name) } else { found.unwrap_or_else(|| PathBuf::from(name)) }
}

//! Which sources a C component is made of, and how.
//!
//! **Problem.** A program that exists already is more than a directory of `.c` files: some of them belong to
//! other programs, one is made by a script, and all want a macro. **Strategy.** A directory with a
//! `component.toml` says so ([`Description`]); the sources themselves may come from Debian, unchanged. They
//! are unpacked and prepared in `target/c/sources`, anew when the description changes. **Invariant.** What is
//! in that place is whole: the description is noted there last.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use pebble_debian::Archive;
use serde::Deserialize;

use crate::tools::{Tools, run_quietly};

const DESCRIPTION: &str = "component.toml";

/// What `component.toml` says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    /// Where `sources` are; without it, in the directory itself.
    debian: Option<Archive>,
    /// Lines for the shell that make what is missing, in the directory of the sources; `$HERE` is the
    /// component's.
    #[serde(default)]
    prepare: Vec<String>,
    /// Compiled beside the `.c` and `.S` files that lie with the description.
    #[serde(default)]
    sources: Vec<String>,
    /// For the compiler, after those for all components.
    #[serde(default)]
    options: Vec<String>,
}

/// What is compiled for a component.
pub struct Sources {
    pub files: Vec<PathBuf>,
    pub options: Vec<String>,
}

/// Of a file, of all `.c` and `.S` files in a directory, or as its description says.
pub fn find(tools: &Tools, from: &Path) -> Result<Sources> {
    if !from.is_dir() {
        return Ok(Sources { files: vec![from.to_path_buf()], options: vec![] });
    }
    let description = from.join(DESCRIPTION);
    let sources = match description.exists() {
        true => described(tools, from).with_context(|| tools.shown(&description))?,
        false => Sources { files: sources_in(from)?, options: vec![] },
    };
    ensure!(!sources.files.is_empty(), "{} has no C source", tools.shown(from));
    let names: BTreeSet<_> = sources.files.iter().filter_map(|file| file.file_name()).collect();
    ensure!(names.len() == sources.files.len(), "{}: two sources have one name", tools.shown(from));
    Ok(sources)
}

fn described(tools: &Tools, from: &Path) -> Result<Sources> {
    let from = &from.canonicalize()?;
    let text = fs::read_to_string(from.join(DESCRIPTION))?;
    let description: Description = toml::from_str(&text)?;
    let root = match &description.debian {
        Some(archive) => prepared(tools, from, &text, &description, archive)?,
        None => from.to_path_buf(),
    };
    let mut files = sources_in(from)?;
    files.extend(description.sources.iter().map(|name| root.join(name)));
    let missing = files.iter().find(|file| !file.is_file());
    ensure!(missing.is_none(), "there is no source {}", missing.map_or("".into(), |file| tools.shown(file)));
    let include = [from, &root].map(|directory| format!("-I{}", directory.display()));
    Ok(Sources { files, options: include.into_iter().chain(description.options).collect() })
}

/// The directory of the sources, with all that is made before they are compiled.
fn prepared(
    tools: &Tools,
    from: &Path,
    text: &str,
    description: &Description,
    archive: &Archive,
) -> Result<PathBuf> {
    let name = from.strip_prefix(&tools.root).or(from.strip_prefix("/"))?;
    let place = tools.target().join("c/sources").join(name);
    let (root, note) = (place.join(&archive.directory), place.join(DESCRIPTION));
    if fs::read_to_string(&note).is_ok_and(|old| old == text) {
        return Ok(root);
    }
    if place.exists() {
        fs::remove_dir_all(&place).with_context(|| tools.shown(&place))?;
    }
    pebble_debian::unpack(&tools.target().join("debian"), archive, &place)?;
    for line in &description.prepare {
        let mut shell = Command::new("sh");
        run_quietly(shell.args(["-ec", line]).current_dir(&root).env("HERE", from), line)?;
    }
    fs::write(&note, text).with_context(|| tools.shown(&note))?;
    Ok(root)
}

fn sources_in(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = fs::read_dir(dir)?.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "c" || e == "S"));
    files.sort();
    Ok(files)
}

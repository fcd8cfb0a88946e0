//! Which sources a component in C or C++ is made of, and how.
//!
//! **Problem.** A program that exists already is more than a directory of `.c` files: some of them belong to
//! other programs, one is made by a script, and all want a macro. **Strategy.** A directory with a
//! `component.toml` says so ([`description`]); the sources themselves may come from Debian, or from a package
//! for Rust or Python ([`package`]), unchanged. They are unpacked and prepared in `target/c/sources`, anew
//! when the description changes. **Invariants.** What is in that place is whole: the description is noted
//! there last. Each source has an object of its own, whatever the sources are called.

pub mod description;
mod package;
mod select;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, ensure};

use self::description::{Description, NAME, Origin};
use crate::tools::{Tools, run_quietly};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Or assembler.
    C,
    Cxx,
}

/// By the name; `None`: it is no source.
pub fn language(file: &Path) -> Option<Language> {
    match file.extension()?.to_str()? {
        "c" | "S" => Some(Language::C),
        "cc" | "cpp" | "cxx" | "C" => Some(Language::Cxx),
        _ => None,
    }
}

/// One source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    pub file: PathBuf,
    pub language: Language,
    /// Where its object goes, below the component's place.
    pub object: PathBuf,
    pub options: Vec<String>,
}

impl Unit {
    /// A source by itself.
    pub fn alone(file: &Path, options: &[String]) -> Self {
        unit(file, file.parent().unwrap_or(file), "", options)
    }
}

/// What is compiled for a component.
#[derive(Default)]
pub struct Sources {
    pub units: Vec<Unit>,
    /// Linked as far as they are used.
    pub libraries: Vec<Unit>,
}

impl Sources {
    pub fn in_cxx(&self) -> bool {
        self.units.iter().chain(&self.libraries).any(|unit| unit.language == Language::Cxx)
    }
}

/// Of a file, of all sources in a directory, or as its description says.
pub fn find(tools: &Tools, from: &Path) -> Result<Sources> {
    let sources = match from {
        file if !file.is_dir() => of_files(vec![file.into()], file.parent().unwrap_or(file)),
        _ if from.join(NAME).exists() => described(tools, from, &mut Vec::new())?.0,
        _ => of_files(sources_in(from), from),
    };
    ensure!(!sources.units.is_empty(), "{} has no C or C++ source", tools.shown(from));
    Ok(sources)
}

fn of_files(files: Vec<PathBuf>, root: &Path) -> Sources {
    let units = files.iter().map(|file| unit(file, root, "", &[])).collect();
    Sources { units, libraries: vec![] }
}

fn sources_in(directory: &Path) -> Vec<PathBuf> {
    select::listed(directory).into_iter().filter(|file| language(file).is_some()).collect()
}

/// Its object lies as it does itself, below `folder`.
fn unit(file: &Path, root: &Path, folder: &str, options: &[String]) -> Unit {
    let mut object = Path::new(folder).join(file.strip_prefix(root).unwrap_or(file)).into_os_string();
    object.push(".o");
    let language = language(file).unwrap_or(Language::C);
    Unit { file: file.into(), language, object: object.into(), options: options.to_vec() }
}

/// Where the sources of a component that has a description are.
pub fn root(tools: &Tools, from: &Path) -> Result<PathBuf> {
    prepared(tools, from, &Description::read(from)?)
}

/// The sources, and what those who use them as a library look for headers in. `users`: who is being described
/// already.
fn described(tools: &Tools, from: &Path, users: &mut Vec<PathBuf>) -> Result<(Sources, Vec<String>)> {
    let from = &from.canonicalize().with_context(|| tools.shown(from))?;
    let description = Description::read(from)?;
    let root = prepared(tools, from, &description)?;
    let mut include = vec![format!("-I{}", from.display()), format!("-I{}", root.display())];
    for entry in &description.include {
        let found =
            [&root, from].map(|base| base.join(entry.get_ref())).into_iter().find(|path| path.is_dir());
        let missing = || {
            let places = format!("{} nor {}", root.display(), from.display());
            description.error("include", entry, format!("is no folder in {places}: correct it"))
        };
        include.push(format!("-I{}", found.ok_or_else(missing)?.display()));
    }
    let mut sources = Sources::default();
    let mut options = include.clone();
    users.push(from.clone());
    for entry in &description.libraries {
        let place = from.join(entry.get_ref());
        let canonical = place.canonicalize().unwrap_or_default();
        let wrong = match () {
            () if !place.join(NAME).is_file() => Some("is no folder with a component.toml: name one"),
            () if users.contains(&canonical) => Some("uses this component itself: take one of the two out"),
            () => None,
        };
        if let Some(wrong) = wrong {
            return Err(description.error("libraries", entry, wrong));
        }
        let (library, theirs) = described(tools, &place, users)?;
        options.extend(theirs);
        let below = |mut unit: Unit| {
            unit.object =
                Path::new("libraries").join(canonical.file_name().unwrap_or_default()).join(unit.object);
            unit
        };
        sources.libraries.extend(library.units.into_iter().chain(library.libraries).map(below));
    }
    users.pop();
    options.extend(description.defines.iter().map(|define| format!("-D{}", define.get_ref())));
    options.extend(description.options.iter().cloned());
    let own = sources_in(from).into_iter().map(|file| (file, from, "here"));
    let files = select::files(&description, &root)?.into_iter().map(|file| (file, &root, "sources"));
    for (file, base, folder) in own.chain(files) {
        let mut unit = unit(&file, base, folder, &options);
        unit.options.extend_from_slice(match unit.language {
            Language::C => &description.cflags,
            Language::Cxx => &description.cxxflags,
        });
        if !sources.units.iter().any(|other| other.file == unit.file) {
            sources.units.push(unit);
        }
    }
    Ok((sources, include))
}

/// The directory of the sources, with all that is made before they are compiled.
fn prepared(tools: &Tools, from: &Path, description: &Description) -> Result<PathBuf> {
    let name = from.strip_prefix(&tools.root).or(from.strip_prefix("/"))?;
    let place = tools.target().join("c/sources").join(name);
    let note = place.join(NAME);
    let root = match &description.origin {
        Origin::Here => return Ok(from.to_path_buf()),
        Origin::Debian(archive) => place.join(&archive.directory),
        Origin::Package(_, package) => place.join(package.unpacked()),
    };
    // Systems for two boards may be built side by side.
    static ONE: Mutex<()> = Mutex::new(());
    let _alone = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    if fs::read_to_string(&note).is_ok_and(|old| old == description.text) {
        return Ok(root);
    }
    if place.exists() {
        fs::remove_dir_all(&place).with_context(|| tools.shown(&place))?;
    }
    match &description.origin {
        Origin::Here => {}
        Origin::Debian(archive) => {
            pebble_debian::unpack(&tools.target().join("debian"), archive, &place)?;
        }
        Origin::Package(registry, package) => package::unpack(tools, *registry, package, &place)?,
    }
    for line in &description.prepare {
        let (line, mut shell) = (line.get_ref(), Command::new("sh"));
        run_quietly(shell.args(["-ec", line]).current_dir(&root).env("HERE", from), line)?;
    }
    fs::write(&note, &description.text).with_context(|| tools.shown(&note))?;
    Ok(root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_of_one_name_have_an_object_each() {
        let object = |file: &str, folder| unit(Path::new(file), Path::new("/root"), folder, &[]).object;
        assert_eq!(object("/root/a/x.c", "sources"), Path::new("sources/a/x.c.o"));
        assert_ne!(object("/root/a/x.c", "sources"), object("/root/b/x.c", "sources"));
        assert_ne!(object("/root/a/x.c", "sources"), object("/root/a/x.cc", "sources"));
        assert_ne!(object("/root/x.c", "here"), object("/root/x.c", "sources"));
    }

    #[test]
    fn a_name_tells_the_language() {
        for (name, wanted) in [
            ("a.c", Some(Language::C)),
            ("a.S", Some(Language::C)),
            ("a.cc", Some(Language::Cxx)),
            ("a.b.cxx", Some(Language::Cxx)),
            ("a.h", None),
            ("c", None),
        ] {
            assert_eq!(language(Path::new(name)), wanted, "{name}");
        }
    }
}

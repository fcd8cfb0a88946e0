//! What servers export, described once: `servers/<name>/interface.toml`.
//!
//! **Problem.** An interface is said in many places: in the export's record, in the function behind it, in
//! every call, in the manual. Where it is said twice it will once be said differently, and no compiler sees a
//! caller's word that lands in the wrong argument.
//!
//! **Strategy.** One file for each server says name, specification, arguments, results, errors and meaning.
//! It is read and checked here ([`parse`]); from it come the export records ([`glue`]), the callers' stubs in
//! Rust and C ([`rust`], [`c`]), and the manual's tables ([`manual`]).
//!
//! **Invariants.** What is wrong is refused with file, line and interface, and with what to do about it;
//! nothing panics. An [`Interface`] that exists has a specification that parses, and for each of its letters
//! exactly one argument, or a part of one.
#![forbid(unsafe_code)]

pub mod c;
pub mod glue;
pub mod kind;
pub mod manual;
pub mod parse;
pub mod rust;
pub mod words;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

pub use kind::Kind;
use pebble_portal::spec::Spec;

/// What a server's description is called.
pub const FILE: &str = "interface.toml";

/// What a server exports.
#[derive(Debug)]
pub struct Server {
    /// The name of its folder.
    pub folder: String,
    pub about: String,
    /// In the order of their numbers.
    pub interfaces: Vec<Interface>,
}

/// One entry point.
#[derive(Clone, Debug)]
pub struct Interface {
    /// `server.method`.
    pub name: String,
    pub spec: Spec,
    /// The function behind it.
    pub entry: String,
    /// It decides which thread goes on.
    pub switches: bool,
    /// Who may open it.
    pub from: String,
    /// For each letter of the specification, in order.
    pub arguments: Vec<Argument>,
    /// What the value means; empty: nothing.
    pub result: String,
    /// Further result words.
    pub more: Vec<Argument>,
    /// Name of the error, and when it comes.
    pub errors: Vec<(String, String)>,
    pub meaning: String,
    /// Where it is described.
    pub at: Place,
}

/// A word, or some that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    pub name: String,
    pub kind: Kind,
    pub note: String,
    /// Supplied by the portal, not by the caller.
    pub by_portal: bool,
}

/// A line of a description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub file: String,
    pub line: usize,
}

/// What is wrong with a description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub at: Place,
    /// Empty: it concerns the whole file.
    pub interface: String,
    pub what: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}", self.file),
            line => write!(f, "{}:{line}", self.file),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Error { at, interface, what } = self;
        if interface.is_empty() { write!(f, "{at}: {what}") } else { write!(f, "{at}: {interface}: {what}") }
    }
}

impl std::error::Error for Error {}

impl Interface {
    /// What callers in Rust and C call it: `clock.bound` is `bound` of `clock`, `heap.name` is `name` of
    /// `heap`.
    pub fn parts(&self) -> (&str, &str) {
        self.name.split_once('.').unwrap_or(("", &self.name))
    }

    /// What the caller passes.
    pub fn passed(&self) -> impl Iterator<Item = &Argument> {
        self.arguments.iter().filter(|argument| !argument.by_portal)
    }
}

/// The description in a folder, if there is one.
pub fn load(root: &Path, folder: &Path) -> Result<Option<Server>, Error> {
    let path = root.join(folder).join(FILE);
    let shown = folder.join(FILE).display().to_string();
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    match std::fs::read_to_string(&path) {
        Ok(text) => parse::server(&shown, &name, &text).map(Some),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::of_file(&shown, error)),
    }
}

/// Where servers are: those of every system, and those that `./pebble new` makes.
pub const ROOMS: [&str; 2] = ["servers", "programs"];

/// All servers that export something, by room and name; each interface is one server's.
pub fn all(root: &Path) -> Result<Vec<Server>, Error> {
    let mut servers = Vec::new();
    for room in ROOMS {
        servers.extend(of_room(root, room)?);
    }
    unique(servers.iter().flat_map(|server| &server.interfaces))?;
    Ok(servers)
}

/// Those of one room, by name.
pub fn of_room(root: &Path, room: &str) -> Result<Vec<Server>, Error> {
    let entries = std::fs::read_dir(root.join(room)).map_err(|error| Error::of_file(room, error))?;
    let folder = |entry: std::fs::DirEntry| Path::new(room).join(entry.file_name());
    let mut folders: Vec<PathBuf> = entries.flatten().map(folder).collect();
    folders.retain(|folder| root.join(folder).is_dir());
    folders.sort();
    folders.iter().filter_map(|folder| load(root, folder).transpose()).collect()
}

/// The project's root: the first folder upwards that has the library's common descriptions.
pub fn root(from: &Path) -> Option<&Path> {
    from.ancestors().find(|folder| folder.join(parse::COMMON).exists())
}

/// No name twice.
fn unique<'a>(interfaces: impl Iterator<Item = &'a Interface>) -> Result<(), Error> {
    let mut seen: BTreeMap<&str, &Place> = BTreeMap::new();
    for interface in interfaces {
        if let Some(other) = seen.insert(&interface.name, &interface.at) {
            return Err(interface.wrong(format!("is described at {other} already: choose another name")));
        }
    }
    Ok(())
}

impl Interface {
    fn wrong(&self, what: String) -> Error {
        Error { at: self.at.clone(), interface: self.name.clone(), what }
    }
}

impl Error {
    fn of_file(file: &str, what: impl fmt::Display) -> Self {
        let at = Place { file: file.into(), line: 0 };
        Error { at, interface: String::new(), what: what.to_string() }
    }
}

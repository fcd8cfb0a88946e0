//! The archive as a tree of files and directories.
//!
//! Strategy: a list of nodes sorted by normal path (no `/` at either end, none doubled); the root's path is
//! empty. Directories that the archive does not list, but whose files it does, are there as well, and that of
//! the files in memory. The text of a directory is made when the archive is read, so that to read it is the
//! same as to read a file.
//!
//! Invariants: paths are distinct; each but the root has its parent in the list, and that is a directory.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use pebble_abi::errno::{self, Errno};
use pebble_abi::link::PATHLEN;

use crate::newc::Records;
use crate::path::Path;
use crate::ram::PREFIX;

/// What is wrong with an archive, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchiveError {
    /// In bytes from the start of the archive.
    pub offset: usize,
    pub problem: Problem,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    Truncated,
    Magic,
    Number,
    Name,
    HardLink,
    Type,
    Path,
    TooLong,
    Twice,
    NotDirectory,
}

impl fmt::Display for ArchiveError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let problem = match self.problem {
            Problem::Truncated => "the archive ends in the middle of a record",
            Problem::Magic => "no record of the format newc (070701) starts here",
            Problem::Number => "not a number of eight hexadecimal digits",
            Problem::Name => "a file name that is not zero-terminated UTF-8",
            Problem::HardLink => "a file with several links",
            Problem::Type => "neither a file nor a directory",
            Problem::Path => "a path with an empty component, or `.` or `..` in it",
            Problem::TooLong => "a path that is too long to be opened",
            Problem::Twice => "a path that the archive has already",
            Problem::NotDirectory => "a path through something that is not a directory",
        };
        write!(f, "archive offset {}: {problem}", self.offset)
    }
}

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents<'a> {
    File(&'a [u8]),
    /// Its listing.
    Directory(&'a str),
}

impl<'a> Contents<'a> {
    pub fn bytes(self) -> &'a [u8] {
        match self {
            Contents::File(bytes) => bytes,
            Contents::Directory(text) => text.as_bytes(),
        }
    }
}

struct Node<'a> {
    path: &'a str,
    /// None: a directory.
    data: Option<&'a [u8]>,
    has_pages: bool,
    listing: String,
}

pub struct Archive<'a> {
    nodes: Vec<Node<'a>>,
}

impl<'a> Archive<'a> {
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ArchiveError> {
        let mut archive = Archive { nodes: Vec::new() };
        let mut records = Vec::new();
        for record in Records::new(bytes) {
            let record = record?;
            let path = normal(record.path).ok_or(error_at(record.offset, Problem::Path))?;
            if path.len() >= PATHLEN {
                return Err(error_at(record.offset, Problem::TooLong));
            }
            if !(path.is_empty() && record.data.is_none()) {
                // In order, so that a directory comes before what is in it. The library's sort needs more
                // stack than this server has.
                let before = |(other, _): &(&str, _)| *other <= path;
                records.insert(records.partition_point(before), (path, record));
            }
        }
        archive.insert("", None, false);
        for (path, record) in &records {
            let error = |problem| error_at(record.offset, problem);
            if archive.find(path).is_some() {
                return Err(error(Problem::Twice));
            }
            for (end, _) in path.match_indices('/') {
                match archive.find(&path[..end]) {
                    Some(at) if archive.nodes[at].data.is_some() => return Err(error(Problem::NotDirectory)),
                    Some(_) => {}
                    None => archive.insert(&path[..end], None, false),
                }
            }
            archive.insert(path, record.data, record.has_pages);
        }
        // What is in it is not the archive's, but who looks for it should find it.
        let memory = PREFIX.trim_end_matches('/');
        if archive.find(memory).is_none() {
            archive.insert(memory, None, false);
        }
        archive.list();
        Ok(archive)
    }

    /// Finds a path as a client spells it, from the root; `.` and `..` are followed, a `/` at the end asks
    /// for a directory. Returns the number of the node.
    pub fn lookup(&self, path: &str) -> Result<usize, Errno> {
        let mut normal = Path::ROOT;
        for component in path.split('/') {
            // Before each component, an empty one at the end included, there must be a directory.
            let here = self.find(normal.as_str()).ok_or(errno::ENOENT)?;
            if self.nodes[here].data.is_some() {
                return Err(errno::ENOTDIR);
            }
            match component {
                "" | "." => {}
                ".." => normal.leave(),
                name => normal.enter(name).ok_or(errno::ENAMETOOLONG)?,
            }
        }
        self.find(normal.as_str()).ok_or(errno::ENOENT)
    }

    /// The contents of a node that [`lookup`](Self::lookup) returned.
    pub fn contents(&self, node: usize) -> Option<Contents<'_>> {
        let node = self.nodes.get(node)?;
        Some(node.data.map_or(Contents::Directory(&node.listing), Contents::File))
    }

    /// The contents of a file in whose pages nothing else is.
    pub fn pages(&self, node: usize) -> Option<&'a [u8]> {
        self.nodes.get(node).filter(|node| node.has_pages)?.data
    }

    /// Whether this normal path is that of a directory.
    pub fn is_directory(&self, path: &str) -> bool {
        self.find(path).is_some_and(|at| self.nodes[at].data.is_none())
    }

    fn find(&self, path: &str) -> Option<usize> {
        self.nodes.binary_search_by_key(&path, |node| node.path).ok()
    }

    /// `path` must be new.
    fn insert(&mut self, path: &'a str, data: Option<&'a [u8]>, has_pages: bool) {
        let at = self.nodes.partition_point(|node| node.path < path);
        self.nodes.insert(at, Node { path, data, has_pages, listing: String::new() });
    }

    /// Writes each node into the listing of its parent.
    fn list(&mut self) {
        for at in 1..self.nodes.len() {
            let Node { path, data, .. } = self.nodes[at];
            let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
            if let Some(parent) = self.find(parent) {
                let listing = &mut self.nodes[parent].listing;
                listing.push_str(name);
                listing.push_str(if data.is_none() { "/\n" } else { "\n" });
            }
        }
    }
}

fn error_at(offset: usize, problem: Problem) -> ArchiveError {
    ArchiveError { offset, problem }
}

/// A path of the archive without what means nothing: `./` or `/` before it, `/` after it.
fn normal(path: &str) -> Option<&str> {
    let path = path.strip_prefix("./").or(path.strip_prefix('/')).unwrap_or(path);
    let path = path.strip_suffix('/').unwrap_or(path);
    match path {
        "" | "." => Some(""),
        _ if path.split('/').any(|c| matches!(c, "" | "." | "..")) => None,
        _ => Some(path),
    }
}

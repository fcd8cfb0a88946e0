//! What a program finds in its start-up page (`pebble_abi::link::Startup`), and what it is called.

use alloc::vec::Vec;
use pebble_abi::call::IO_BYTES;
use pebble_abi::errno::{self, Errno};
use pebble_abi::link::{self, Startup};

/// A path as calls carry it.
pub type Path = [u64; link::PATHLEN / 8];

/// Arguments, environment and standard files, gathered before a program starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gathered {
    /// Paths of the files 0, 1 and 2.
    pub stdio: [Path; 3],
    /// Zero-terminated strings, the last perhaps not finished yet.
    arguments: Vec<u8>,
    /// Where among them the environment begins; 0: there is none.
    environment: usize,
}

impl Gathered {
    pub fn new(stdio: [Path; 3]) -> Self {
        Gathered { stdio, arguments: Vec::new(), environment: 0 }
    }

    /// `count` more bytes of arguments, or of the environment, which comes behind whole arguments.
    pub fn append(&mut self, words: &[u64; IO_BYTES / 8], count: u64) -> Result<(), Errno> {
        let environment = count & Startup::ENVIRONMENT != 0;
        let whole = self.arguments.last() == Some(&0);
        if environment != (self.environment != 0) && !(environment && whole) {
            return Err(errno::EINVAL);
        }
        let count = usize::try_from(count & !Startup::ENVIRONMENT)
            .ok()
            .filter(|n| (1..=IO_BYTES).contains(n))
            .ok_or(errno::EINVAL)?;
        // A zero behind the last stays free.
        if self.arguments.len() + count > Startup::ARGS_MAX - 1 {
            return Err(errno::E2BIG);
        }
        self.arguments.try_reserve(count).map_err(|_| errno::ENOMEM)?;
        if environment && self.environment == 0 {
            self.environment = self.arguments.len();
        }
        self.arguments.extend(words.iter().flat_map(|w| w.to_le_bytes()).take(count));
        Ok(())
    }

    /// The arguments are delivered.
    pub fn forget_arguments(&mut self) {
        self.arguments = Vec::new();
    }

    /// The words of the page that are not zero: offset, word. A program without arguments gets its path as
    /// the first; `end` is where its heap begins.
    pub fn words(&self, path: &Path, end: u64) -> impl Iterator<Item = (u64, u64)> {
        let own = match self.environment {
            0 => &self.arguments[..],
            end => &self.arguments[..end],
        };
        let unfinished = own.last().is_some_and(|b| *b != 0);
        let strings = own.iter().filter(|b| **b == 0).count() + usize::from(unfinished);
        let default = if strings == 0 { &path[..] } else { &[] };
        let files = [Startup::STDIN, Startup::STDOUT, Startup::STDERR].into_iter().zip(&self.stdio);
        let at = |offset: usize| move |(n, word): (usize, u64)| ((offset + n * 8) as u64, word);
        let arguments = self.arguments.chunks(8).map(word).chain(default.iter().copied());
        [(Startup::ARGC as u64, strings.max(1) as u64), (Startup::BREAK as u64, end)]
            .into_iter()
            .chain(files.flat_map(move |(offset, path)| path.iter().copied().enumerate().map(at(offset))))
            .chain(arguments.enumerate().map(at(Startup::ARGS)))
    }
}

/// The path with something appended, if that is short enough.
pub fn with_ending(path: &Path, ending: &str) -> Option<Path> {
    let mut bytes = [0; link::PATHLEN];
    let len = link::unpack(path, &mut bytes);
    let name = core::str::from_utf8(&bytes[..len]).ok()?;
    link::pack(&alloc::format!("{name}{ending}"))
}

/// Up to eight bytes, the missing ones zero.
pub fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// A text as a path; cut off where that ends.
pub fn path(text: &str) -> Path {
    let mut path = Path::default();
    for (to, bytes) in path.iter_mut().zip(text.as_bytes().chunks(8)) {
        *to = word(bytes);
    }
    path
}

/// The last part of a path, in the two words of a name.
pub fn name(path: &Path) -> [u64; 2] {
    with_parts(path, |_, last| words(last))
}

/// What the rules of the system call the program of this file: its name, with `ram/` before it if its file is
/// one that programs make. Else whoever can write a file would be whom the rules trust.
pub fn name_for_rules(path: &Path) -> [u64; 2] {
    with_parts(
        path,
        |first, last| if first == b"ram" { words(&[b"ram/", last].concat()) } else { words(last) },
    )
}

/// Calls `work` with where a path leads, its first part, and how it ends.
fn with_parts<R>(path: &Path, work: impl FnOnce(&[u8], &[u8]) -> R) -> R {
    let mut bytes = [0; link::PATHLEN];
    let len = link::unpack(path, &mut bytes);
    let (mut first, mut last, mut depth) = (&[][..], &[][..], 0_usize);
    for part in bytes[..len].split(|b| *b == b'/') {
        last = part;
        match part {
            b"" | b"." => {}
            b".." => depth = depth.saturating_sub(1),
            part => {
                if depth == 0 {
                    first = part;
                }
                depth += 1;
            }
        }
    }
    work(first, last)
}

/// As much of it as two words hold.
fn words(name: &[u8]) -> [u64; 2] {
    core::array::from_fn(|n| word(name.chunks(8).nth(n).unwrap_or_default()))
}

//! Files that are no programs, and programs that want what they cannot have.
//!
//! `hostile files [ROUNDS]` writes each of [`pebble_process::samples`] to `/ram`, tries to start it, and
//! prints what the process server must have said of it on the console, as a line `wanted ...`. `hostile
//! files-write FIRST` leaves some of those that are no programs there, from this one on, as `/ram/broken0`
//! and so on, for whoever wants to try them elsewhere; `hostile files-remove FIRST` removes them. It prints
//! how many there are.

use crate::judge::Judge;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use pebble::abi::errno;
use pebble::abi::link::pack;
use pebble::api::Errno;
use pebble::io;
use pebble::println;
use pebble::process::{Child, Lazy};
use pebble_process::samples::{broken, good, refused, wanting};

static REMOVE: Lazy = Lazy::new("file.remove");

pub fn all(judge: &mut Judge, rounds: u32) {
    let files = broken().into_iter().map(|(file, problem)| {
        let says = format!("not a program: {problem}");
        (file, problem.errno(), says)
    });
    let files: Vec<_> = files.chain(refused()).collect();
    judge.steadily(rounds, |judge| {
        for (n, (file, error, says)) in files.iter().enumerate() {
            let path = format!("/ram/file{n}");
            let started = with_file(&path, file, || Child::load(&path).map(|child| child.0));
            judge.check(&path, started == Err(*error), || format!("{started:?}, {says}"));
            println!("wanted process: {path}: {says}");
        }
        pretend(judge);
        // The one that all were made of starts, and ends with its first instruction, which is none, or where
        // its zeroes end.
        let path = "/ram/good";
        let ended = with_file(path, &good(), || Child::run(path, &[path]).and_then(|child| child.wait()));
        judge.check(path, matches!(ended, Ok(129..137 | 139)), || format!("{ended:?}"));
    });
}

/// Files called as what the rules trust, and started by paths of which some do not look like theirs.
fn pretend(judge: &mut Judge) {
    for (name, import, spellings) in [
        ("process", "vm.map_foreign", ["/ram/process", "ram//process", "/bin/.././ram/process"]),
        ("shell", "process.replace", ["/ram/shell", "../ram/shell", "/ram/../ram/shell"]),
        ("supervisor", "process.keep", ["/ram/supervisor", "./ram/supervisor", "//bin/..//ram//supervisor"]),
    ] {
        let (file, error, says) = wanting((import, errno::EACCES));
        for path in spellings {
            let started =
                with_file(&format!("/ram/{name}"), &file, || Child::load(path).map(|child| child.0));
            judge.check(path, started == Err(error), || format!("{started:?}, {says}"));
            println!("wanted process: {path}: {says}");
        }
    }
}

fn with_file<R>(path: &str, bytes: &[u8], work: impl FnOnce() -> Result<R, Errno>) -> Result<R, Errno> {
    write(path, bytes)?;
    let result = work();
    remove(path)?;
    result
}

fn write(path: &str, bytes: &[u8]) -> Result<(), Errno> {
    let file = io::create(path)?;
    let written = file.write(bytes);
    file.close();
    written.map(|_| ())
}

fn remove(path: &str) -> Result<(), Errno> {
    REMOVE.call(pack::<5>(path).ok_or(errno::ENAMETOOLONG)?).map(|_| ())
}

/// As many at once as a family may leave there, and fewer.
const SOME: usize = 16;

pub fn leave(first: usize) -> i64 {
    each(first, |path, bytes| write(path, bytes))
}

pub fn take_away(first: usize) -> i64 {
    each(first, |path, _| remove(path))
}

fn each(first: usize, work: impl Fn(&str, &[u8]) -> Result<(), Errno>) -> i64 {
    let path = |n: usize| -> String { format!("/ram/broken{n}") };
    let files = broken();
    let some = files.iter().enumerate().skip(first).take(SOME);
    let failed = some.filter(|(n, (file, _))| work(&path(*n), file).is_err()).count();
    println!("{} files", broken().len());
    i64::from(failed != 0)
}

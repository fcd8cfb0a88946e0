//! `chroot DIRECTORY PROGRAM ARGUMENTS`: the program's paths begin at the directory, and nothing above it
//! exists for the program. The program itself is found as always; the console and pipes are no files.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use pebble::abi::{errno, link};
use pebble::api::Errno;
use pebble::control::Answer;
use pebble::io;
use pebble::sync::Lock;
use pebble_tools::under::Failure;
use pebble_tools::{rules, under};

pebble::program!(main);
pebble::handler!(entry = redirect);

static DIRECTORY: Lock<String> = Lock::new(String::new());

/// Whose words are a path of the file server.
const PATHS: [&str; 8] = [
    "file.open",
    "file.create",
    "file.make",
    "file.remove",
    "file.rename",
    "file.rename_to",
    "file.capability",
    "process.spawn",
];

fn redirect(index: usize, p: [u64; 5]) -> Answer {
    let name = under::name(index);
    if !PATHS.contains(&name.as_str()) {
        return under::pass(index, &name, p);
    }
    // No path leads nowhere, here as elsewhere.
    let mut bytes = [0; link::PATHLEN];
    let len = link::unpack(&p, &mut bytes);
    let Some(path) = core::str::from_utf8(&bytes[..len]).ok().filter(|path| !path.is_empty()) else {
        return (-errno::ENOENT).into();
    };
    let path = rules::inside(&DIRECTORY.lock(), path);
    match path.and_then(|path| link::pack::<5>(&path)) {
        Some(words) => under::pass(index, &name, words),
        None => (-errno::ENAMETOOLONG).into(),
    }
}

/// A path that ends in a slash opens directories alone.
fn is_directory(path: &str) -> Result<(), Errno> {
    io::open(&format!("{}/", path.trim_end_matches('/'))).map(io::File::close)
}

fn describe(error: Errno) -> &'static str {
    if error == errno::ENOENT { "no such directory" } else { error.text() }
}

fn main() -> i64 {
    let arguments: Vec<String> = io::args().skip(1).collect();
    if arguments.len() < 2 {
        return under::usage("chroot DIRECTORY PROGRAM [ARGUMENT...]");
    }
    let Some(directory) = rules::inside("", &arguments[0]) else {
        return under::end(
            "chroot",
            Err(Failure::new(format!("{}: too long a path", arguments[0]), errno::ENAMETOOLONG)),
        );
    };
    if let Err(error) = is_directory(&directory) {
        let what = format!("{}: {}; 'ls /' lists what there is", arguments[0], describe(error));
        return under::end("chroot", Err(Failure::new(what, error)));
    }
    *DIRECTORY.lock() = directory;
    let prepared = under::prepare(|| {
        DIRECTORY.prepare();
        Ok(())
    });
    let result = prepared.and_then(|()| under::run(&arguments[1..], entry, |_| ()));
    under::end("chroot", result)
}

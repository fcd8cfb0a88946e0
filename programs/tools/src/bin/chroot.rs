//! `chroot DIRECTORY PROGRAM ARGUMENTS`: the program's paths begin at the directory, and nothing above it exists for the program. The program itself is found
//! as always; the console and pipes are no files.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;
use pebble::abi::{errno, link};
use pebble::control::Answer;
use pebble::sync::Lock;
use pebble_tools::{calls, rules, under};

pebble::program!(main);
pebble::handler!(entry = redirect);

static DIRECTORY: Lock<String> = Lock::new(String::new());

fn redirect(index: usize, p: [u64; 5]) -> Answer {
    let name = under::name(index);
    if !matches!(name.as_str(), "file.open" | "file.create" | "file.remove" | "process.spawn") {
        return under::pass(index, &name, p);
    }
    let path = rules::inside(&DIRECTORY.lock(), &calls::text(&p));
    match path.and_then(|path| link::pack::<5>(&path)) {
        Some(words) => under::pass(index, &name, words),
        None => (-errno::ENAMETOOLONG).into(),
    }
}

fn main() -> i64 {
    let arguments: Vec<String> = pebble::io::args().skip(1).collect();
    if arguments.len() < 2 {
        return under::usage("chroot DIRECTORY PROGRAM [ARGUMENT...]");
    }
    let Some(directory) = rules::inside("", &arguments[0]) else {
        return under::end("chroot", Err(errno::ENAMETOOLONG));
    };
    *DIRECTORY.lock() = directory;
    let prepared = under::prepare(|| {
        DIRECTORY.prepare();
        Ok(())
    });
    let result = prepared.and_then(|(ready, ())| under::run(&ready, &arguments[1..], entry, |_| ()));
    under::end("chroot", result)
}

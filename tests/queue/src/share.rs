//! `share PERCENT PROGRAM [ARGUMENTS]`: runs a program that gets no more of the processor.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use pebble::api::{self, Errno};
use pebble::process::Child;
use pebble::{eprintln, io};

pebble::import! {
    SHARE = "process.share";
}
pebble::program!(main);

fn main() -> i64 {
    let words: Vec<String> = io::args().collect();
    let [_, percent, program, ..] = &words[..] else { return usage() };
    let Ok(percent @ 1..=100) = percent.parse::<u64>() else { return usage() };
    match run(percent, program, &words[2..]) {
        Ok(status) => status,
        Err(error) => {
            eprintln!("share: {program}: {error}");
            1
        }
    }
}

fn usage() -> i64 {
    eprintln!("usage: share PERCENT PROGRAM [ARGUMENTS], 1 to 100 percent");
    2
}

fn run(percent: u64, program: &str, arguments: &[String]) -> Result<i64, Errno> {
    let child = Child::load(&format!("/bin/{program}"))?;
    let made = limit(&child, percent, arguments).and_then(|()| child.start());
    if made.is_err() {
        let _ = child.kill();
    }
    let status = child.wait();
    made.and(status)
}

fn limit(child: &Child, percent: u64, arguments: &[String]) -> Result<(), Errno> {
    api::answer(SHARE.call([child.0.into(), percent]))?;
    arguments.iter().try_for_each(|argument| child.argument(argument))?;
    (0..3).try_for_each(|n| child.stdio(n, "/dev/console"))
}

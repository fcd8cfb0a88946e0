//! `replace-test JOB ROUNDS`: has the judge do a job, under a client's name, since policy lets the judge
//! alone replace servers.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;
use pebble::{eprintln, io};
use pebble_replace_test::Job;

pebble::import! {
    RUN = "judge.run";
}
pebble::program!(main);

fn main() -> i64 {
    let words: Vec<String> = io::args().collect();
    let [_, job, rounds] = &words[..] else { return usage() };
    match (Job::parse(job), rounds.parse::<u64>()) {
        (Some(job), Ok(rounds)) => RUN.call([job.number(), rounds]).unwrap_or(3),
        _ => usage(),
    }
}

fn usage() -> i64 {
    eprintln!("usage: replace-test load|schedulers|refused|restart|policy ROUNDS");
    2
}

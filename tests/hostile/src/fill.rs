//! Files in memory until there is no more of it.
//!
//! `hostile fill N keep` takes what its family may have, from the N-th file on, and leaves it to nobody; the
//! last, `hostile fill N`, finds no room, asks the file server for all that needs some, and takes everything
//! away: it may refuse, but not die of it, for nobody brings it back.

use crate::judge::Judge;
use alloc::format;
use alloc::string::String;
use pebble::abi::errno;
use pebble::abi::link::pack;
use pebble::api::Errno;
use pebble::io;
use pebble::process::Lazy;

static REMOVE: Lazy = Lazy::new("file.remove");

/// As many as there can be, and their names as long.
const FILES: usize = 64;

fn path(n: usize) -> String {
    format!("/ram/{n:0>34}")
}

/// A file that grows until it may not.
fn grow(n: usize) -> Result<(), Errno> {
    let file = io::create(&path(n))?;
    let refused = loop {
        if let Err(error) = file.write(&[n as u8; 1024]) {
            break error;
        }
    };
    file.close();
    Err(refused)
}

pub fn all(judge: &mut Judge, first: usize, keep: bool) {
    for n in first..FILES {
        let refused = grow(n);
        let known = matches!(refused, Err(errno::ENOMEM | errno::ENOSPC | errno::ERAM));
        judge.check("a file that grows", known, || format!("file {n}: {refused:?}"));
    }
    let listed = io::open("/ram").and_then(|directory| directory.read(&mut [0; 32]));
    judge.check("the directory", listed == Ok(32), || format!("{listed:?}"));
    for n in (0..FILES).filter(|_| !keep) {
        let removed = pack::<5>(&path(n)).map(|words| REMOVE.call(words));
        judge
            .check("removed", matches!(removed, Some(Ok(_) | Err(errno::ENOENT))), || format!("{removed:?}"));
    }
    let opened = io::open("/bin/hello").map(io::File::close);
    judge.check("the file server lives", opened.is_ok(), || format!("{opened:?}"));
}

//! `whole WHAT ID`: programs that people run, on data of `/share/macro/prepare.lua`, from the call that starts
//! the first to the end of the last. Prints a row.
//!
//! The same programs, from the same sources, do the same on Linux (`bench/linux/macro.c`).
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use pebble::abi::errno;
use pebble::api::Errno;
use pebble::client::pipe;
use pebble::io;
use pebble::portal::{COUNTED, counter};
use pebble::println;
use pebble::process::{self, Child, Lazy};
use pebble_bench::{Samples, least};

pebble::program!(main);

static CREATE: pipe::Create<Lazy> = pipe::Create::lazy();

/// The warm-up, and the samples.
const ROUNDS: usize = 1 + 5;
const TEXT: &str = "/ram/text";
const OUT: &str = "/ram/out";
const DATABASE: &str = "/ram/db";

/// A program with its arguments.
type Command = &'static [&'static str];

/// Programs in a row, each of which reads what the one before writes. The first reads a file, the last writes one.
struct Work {
    name: &'static str,
    input: &'static str,
    commands: &'static [Command],
}

const ALL: [Work; 4] = [
    Work { name: "lua", input: "/dev/console", commands: &[&["lua", "/share/macro/words.lua", TEXT]] },
    Work { name: "sqlite", input: "/ram/load.sql", commands: &[&["sqlite3", DATABASE]] },
    Work { name: "gzip", input: TEXT, commands: &[&["minigzip"], &["minigzip", "-d"], &["minigzip"]] },
    Work { name: "spawn", input: "/ram/spawn.sh", commands: &[&["shell"]] },
];

fn started(command: Command, input: &str, output: &str) -> Result<Child, Errno> {
    let child = Child::load(&format!("/bin/{}", command[0]))?;
    for argument in command {
        child.argument(argument)?;
    }
    for (n, path) in [input, output, "/dev/console"].into_iter().enumerate() {
        child.stdio(n, path)?;
    }
    child.start()?;
    Ok(child)
}

impl Work {
    /// Runs it once.
    fn run(&self) -> Result<(), Errno> {
        let (mut input, mut children) = (String::from(self.input), Vec::new());
        let last = self.commands.len() - 1;
        for (n, command) in self.commands.iter().enumerate() {
            let (output, next) = if n == last {
                (String::from(OUT), String::new())
            } else {
                let token = CREATE.call()?;
                (format!("/pipe/{token:016x}/w"), format!("/pipe/{token:016x}/r"))
            };
            children.push(started(command, &input, &output)?);
            input = next;
        }
        for child in children {
            ended_well(child)?;
        }
        Ok(())
    }

    fn measure(&self) -> Result<Samples, Errno> {
        let mut samples = Samples::of_few(least(counter));
        for _ in 0..ROUNDS {
            // What the round before has left is not its work.
            for path in [OUT, DATABASE] {
                let _ = io::remove(path);
            }
            io::create(OUT)?.close();
            let before = counter();
            self.run()?;
            samples.add(counter() - before);
        }
        Ok(samples)
    }
}

fn ended_well(child: Child) -> Result<(), Errno> {
    if child.wait()? == 0 { Ok(()) } else { Err(errno::EIO) }
}

/// The data, unless an earlier row has made it.
fn prepare() -> Result<(), Errno> {
    process::prepare()?;
    match io::open(TEXT) {
        Ok(file) => {
            file.close();
            Ok(())
        }
        Err(_) => ended_well(Child::run("/bin/lua", &["lua", "/share/macro/prepare.lua"])?),
    }
}

fn main() -> i64 {
    let arguments: Vec<String> = io::args().collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let work = arguments.get(1).and_then(|name| ALL.iter().find(|work| work.name == *name));
    let (Some(work), [_, _, id]) = (work, &arguments[..]) else {
        pebble::eprintln!("usage: whole lua|sqlite|gzip|spawn ID");
        return 2;
    };
    match prepare().and_then(|()| work.measure()) {
        Ok(samples) => {
            println!("@bench {}", samples.row(id, COUNTED));
            0
        }
        Err(error) => {
            pebble::eprintln!("whole: {id}: {error}");
            1
        }
    }
}

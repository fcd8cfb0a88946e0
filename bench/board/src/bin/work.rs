//! `work WHAT ID`: whole operations, as a program asks for them of files, pipes and the process server.
//! Prints a row.
//!
//! Each is defined so that a program of another system can do the same (`bench/linux/` does): so many bytes
//! are read or written, however many calls that takes; a file has 64 KB and lies in memory; a program is
//! started with standard files, and waited for.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;
use core::hint::black_box;
use core::mem::MaybeUninit;
use pebble::abi::{errno, map};
use pebble::api::{self, Errno};
use pebble::client::{pipe, vm};
use pebble::control::{self, Answer};
use pebble::io::{self, File, Page};
use pebble::portal::{COUNTED, MILLISECOND, counter, time};
use pebble::println;
use pebble::process::{self, Child, Lazy};
use pebble::words::VirtAddr;
use pebble_bench::{ROUNDS, Samples, WARM_UP, least};

pebble::program!(main);
pebble::handler!(handler = pass);

static CREATE: pipe::Create<Lazy> = pipe::Create::lazy();
static ABANDON: pipe::Abandon<Lazy> = pipe::Abandon::lazy();
static HIDE: vm::Hide<Lazy> = vm::Hide::lazy();

const FILE: &str = "/ram/bench";
/// One of the archive, of as many pages.
const FIXED: &str = "/share/block";
/// Its size, and what a sample of a pipe moves.
const BLOCK: usize = 64 << 10;
/// Rounds of what takes millions of instructions, and of what takes thousands.
const FEW: usize = WARM_UP + 100;
const SOME: usize = WARM_UP + 1000;
const READING: u64 = 1;
const PAGE: usize = map::PAGE as usize;
/// So many pages a first thread's stack can grow by.
const TOUCHED: usize = 240;
/// More than half of what the VM manager keeps zeroed.
const ZEROED: usize = 9 << 20;
/// What it zeroes them in, if nothing else runs: ticks.
const REST: u64 = 20 * MILLISECOND;

fn samples(per: usize) -> Samples {
    Samples::new(per as u32, least(counter))
}

/// The file, which has been written.
fn file() -> Result<File, Errno> {
    let file = io::create(FILE)?;
    file.write(&alloc::vec![0; BLOCK])?;
    Ok(file)
}

/// So many bytes after the other; going back to the beginning is not counted. `per`: what the row is about.
fn blocks(
    rounds: usize,
    bytes: usize,
    per: usize,
    each: fn(&File, &mut [u8]) -> Result<(), Errno>,
) -> Result<Samples, Errno> {
    let file = file()?;
    let (mut buffer, mut samples, mut left) = (alloc::vec![0; bytes], samples(per), 0);
    for _ in 0..rounds {
        if left < bytes {
            file.seek(0, 0)?;
            left = BLOCK;
        }
        let before = counter();
        each(&file, &mut buffer)?;
        samples.add(counter() - before);
        left -= bytes;
    }
    file.close();
    io::remove(FILE)?;
    Ok(samples)
}

fn open_close() -> Result<Samples, Errno> {
    file()?.close();
    let mut samples = samples(1);
    for _ in 0..SOME {
        let before = counter();
        let file = io::open(FILE)?;
        file.close();
        samples.add(counter() - before);
    }
    io::remove(FILE)?;
    Ok(samples)
}

/// Files open at once: more than the portal manager remembers portals of.
const OPEN: usize = 50;

/// The same, where the portals of no other file are left.
fn open_new() -> Result<Samples, Errno> {
    file()?.close();
    let mut samples = samples(1);
    let mut open = Vec::with_capacity(OPEN);
    for _ in 0..FEW / OPEN {
        for _ in 0..OPEN {
            let before = counter();
            let file = io::open(FILE)?;
            open.push((file, counter() - before));
        }
        for (file, opening) in open.drain(..) {
            let before = counter();
            file.close();
            samples.add(opening + counter() - before);
        }
    }
    io::remove(FILE)?;
    Ok(samples)
}

/// A file of the archive is shown, a byte of each page is read, and it is hidden again.
fn map_fixed() -> Result<Samples, Errno> {
    let file = io::open(FIXED)?;
    let mut samples = samples(BLOCK);
    for _ in 0..SOME {
        let before = counter();
        let bytes = file.shown()?;
        for byte in bytes.iter().step_by(PAGE) {
            black_box(*byte);
        }
        let hidden = HIDE.call(VirtAddr(bytes.as_ptr() as u64), (BLOCK / PAGE) as u64)?;
        samples.add(counter() - before);
        if bytes.len().div_ceil(PAGE) != BLOCK / PAGE || hidden != 0 {
            return Err(errno::EIO);
        }
    }
    file.close();
    Ok(samples)
}

/// A pipe: the path for a writer, and the end to read from.
fn pipe() -> Result<(String, File), Errno> {
    let token = CREATE.call()?;
    let Ok(from) = io::open(&alloc::format!("/pipe/{token:016x}/r")) else {
        let _ = ABANDON.call(token, READING);
        return Err(errno::EIO);
    };
    Ok((alloc::format!("/pipe/{token:016x}/w"), from))
}

/// A program that writes there.
fn writer(path: &str, arguments: &[&str], to: &str) -> Result<Child, Errno> {
    let writer = Child::load(path)?;
    for word in arguments {
        writer.argument(word)?;
    }
    writer.stdio(0, "/dev/console")?;
    writer.stdio(1, to)?;
    writer.stdio(2, "/dev/console")?;
    writer.start()?;
    Ok(writer)
}

/// Another instance of this program, which writes so many bytes a call until nobody reads them any more.
fn producer(how: &str, bytes: &str) -> Result<(Child, File), Errno> {
    let (to, from) = pipe()?;
    Ok((writer("/bin/work", &["work", how, bytes], &to)?, from))
}

/// From one that writes as many bytes a call as are read here. A sample has all that both do until 64 KB have
/// arrived.
fn stream(bytes: &str) -> Result<Samples, Errno> {
    let (writer, from) = producer("produce", bytes)?;
    let mut buffer = alloc::vec![0; size(bytes)?];
    let mut samples = samples(BLOCK);
    for _ in 0..FEW {
        let before = counter();
        for _ in 0..BLOCK / buffer.len() {
            from.read_exact(&mut buffer)?;
        }
        samples.add(counter() - before);
    }
    from.close();
    writer.wait()?;
    Ok(samples)
}

/// The same of 64 KB at a time, in pages that change places: a byte of each is written by the one program and
/// read by the other.
fn flip() -> Result<Samples, Errno> {
    let (writer, from) = producer("flip-out", "")?;
    let mut pages = alloc::vec![Page::ZERO; BLOCK / PAGE];
    let mut samples = samples(BLOCK);
    for _ in 0..FEW {
        let before = counter();
        let mut done = 0;
        while done < pages.len() {
            match from.read_flip(&mut pages[done..])? {
                0 => return Err(errno::EPIPE),
                bytes => done += bytes / PAGE,
            }
        }
        if pages.iter().any(|page| black_box(page.0[0]) != WRITTEN) {
            return Err(errno::EIO);
        }
        samples.add(counter() - before);
        pages.iter_mut().for_each(|page| page.0[0] = 0);
    }
    from.close();
    writer.wait()?;
    Ok(samples)
}

const WRITTEN: u8 = 7;

/// The other end.
fn flip_out() -> i64 {
    let mut pages = alloc::vec![Page::ZERO; BLOCK / PAGE];
    let Ok(to) = io::standard(1) else { return 1 };
    loop {
        pages.iter_mut().for_each(|page| page.0[0] = WRITTEN);
        if to.write_flip(&mut pages).is_err() {
            return 0;
        }
    }
}

fn size(bytes: &str) -> Result<usize, Errno> {
    bytes.parse().ok().filter(|bytes| (1..=ZEROED).contains(bytes)).ok_or(errno::EINVAL)
}

/// The other end of [`producer`].
fn produce(bytes: &str) -> i64 {
    let Ok(bytes) = size(bytes).map(|bytes| alloc::vec![0u8; bytes]) else { return 2 };
    let Ok(to) = io::standard(1) else { return 1 };
    while to.write(&bytes).is_ok() {}
    0
}

fn spawn() -> Result<Samples, Errno> {
    process::prepare()?;
    let mut samples = samples(1);
    for _ in 0..FEW {
        let before = counter();
        Child::run("/bin/nothing", &["nothing"])?.wait()?;
        samples.add(counter() - before);
    }
    Ok(samples)
}

/// From the request to start a program to the first instruction of its `main`; or from there, where it writes
/// 8 bytes into a pipe, to the return of the call that waits for its end.
fn spawn_parts(of: fn([u64; 3]) -> u64) -> Result<Samples, Errno> {
    process::prepare()?;
    let mut samples = samples(1);
    for _ in 0..FEW {
        let (to, from) = pipe()?;
        let before = counter();
        writer("/bin/instant", &["instant"], &to)?.wait()?;
        let after = counter();
        let mut began = [0; 8];
        from.read_exact(&mut began)?;
        from.close();
        samples.add(of([before, u64::from_le_bytes(began), after]));
    }
    Ok(samples)
}

fn pass(index: usize, p: [u64; 5]) -> Answer {
    control::pass(index, p)
}

/// A copy of this program that ends at once, and its end.
fn fork_wait() -> Result<Samples, Errno> {
    process::prepare()?;
    control::prepare()?;
    let mut samples = samples(1);
    for _ in 0..FEW {
        let before = counter();
        let child = control::fork(handler)?;
        if child == 0 {
            api::exit(0);
        }
        Child(child).wait()?;
        samples.add(counter() - before);
    }
    Ok(samples)
}

/// The first touch of pages of the stack, from the top down.
#[inline(never)]
fn first_touch() -> Samples {
    let mut samples = samples(1);
    let mut stack = [const { MaybeUninit::<u8>::uninit() }; TOUCHED * PAGE];
    for page in stack.chunks_mut(PAGE).rev() {
        let before = counter();
        black_box(page[0].write(1));
        samples.add(counter() - before);
    }
    samples
}

/// The same when this program and another have taken every page that the idle thread has zeroed, which is as
/// much as one may have.
fn first_touch_dirty() -> Result<Samples, Errno> {
    let (other, from) = producer("produce", &alloc::format!("{ZEROED}"))?;
    from.read_exact(&mut [0])?;
    let own = black_box(alloc::vec![0u8; ZEROED]);
    let samples = first_touch();
    drop(own);
    from.close();
    other.wait()?;
    Ok(samples)
}

fn main() -> i64 {
    let arguments: Vec<String> = io::args().collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // How many zeroed pages were left would otherwise depend on what waited for the console before.
    let _ = api::hrsleep(time() + REST);
    let (outcome, id) = match arguments[..] {
        [_, "read-1", id] => (blocks(ROUNDS, 1, 1, File::read_exact), id),
        [_, "read-4k", id] => (blocks(SOME, 4096, 4096, File::read_exact), id),
        [_, "read-64k", id] => (blocks(FEW, BLOCK, BLOCK, File::read_exact), id),
        [_, "write-4k", id] => (blocks(SOME, 4096, 4096, |file, bytes| file.write(bytes)), id),
        [_, "map", id] => (map_fixed(), id),
        [_, "open-close", id] => (open_close(), id),
        [_, "open-new", id] => (open_new(), id),
        [_, "pipe-4k", id] => (stream("4096"), id),
        [_, "pipe-64k", id] => (stream("65536"), id),
        [_, "flip", id] => (flip(), id),
        [_, "spawn", id] => (spawn(), id),
        [_, "spawn-main", id] => (spawn_parts(|[before, began, _]| began - before), id),
        [_, "spawn-end", id] => (spawn_parts(|[_, began, after]| after - began), id),
        [_, "fork-wait", id] => (fork_wait(), id),
        [_, "fault-zero", id] => (Ok(first_touch()), id),
        [_, "fault-dirty", id] => (first_touch_dirty(), id),
        [_, "produce", bytes] => return produce(bytes),
        [_, "flip-out", ""] => return flip_out(),
        _ => {
            pebble::eprintln!(
                "usage: work read-1|read-4k|read-64k|write-4k|map|open-close|open-new|pipe-4k|pipe-64k|flip|\
                 spawn|spawn-main|spawn-end|fork-wait|fault-zero|fault-dirty ID"
            );
            return 2;
        }
    };
    match outcome {
        Ok(samples) => {
            println!("@bench {}", samples.row(id, COUNTED));
            0
        }
        Err(error) => {
            pebble::eprintln!("work: {id}: {error}");
            1
        }
    }
}

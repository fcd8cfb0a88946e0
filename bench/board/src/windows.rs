//! Windows, pages that move, copies of the same, capabilities: what they add to a call.
//!
//! The other side is `lent.rs`. Its portals are opened at run time, since only then do the VM manager's
//! tables for windows exist.

use crate::Bench;
use alloc::format;
use pebble::abi::errno;
use pebble::abi::map::PAGE;
use pebble::api::{self, Errno};
use pebble::buffer::{self, Buffer, ReceiveWindow};
use pebble::portal::{call_once as call, timed_call};
use pebble_bench::ROUNDS;

pebble::import! {
    CREATE: cap::Create;
    REVOKE: cap::Revoke;
}

/// Kind of a capability that means nothing; what it may be used for is not asked.
const KIND: u64 = 300;
const TRANSFER: u64 = 1 << 16;

pub fn all(bench: &Bench) {
    if let Err(error) = try_all(bench) {
        bench.say(&format!("windows: {error}"));
    }
}

fn open(name: &str) -> Result<usize, Errno> {
    api::portal_open(&format!("lent.{name}"))
}

/// A portal whose call must succeed, so that nothing is measured that does not work.
fn tried(bench: &Bench, name: &str, word: u64) -> Result<usize, Errno> {
    let index = open(name)?;
    match call(index, [word]) {
        Ok(value) if value >= 0 => {}
        answer => bench.say(&format!("{name}: {answer:?}")),
    }
    Ok(index)
}

fn try_all(bench: &Bench) -> Result<(), Errno> {
    for pages in [1, 2, 512] {
        let own = Buffer::new(pages)?;
        let number = if pages == 1 { alloc::string::String::new() } else { format!("{pages}") };
        for state in ["sm", "np"] {
            for (what, name) in [("untouched", "w"), ("touched", "w-t"), ("ro", "r")] {
                let (letter, touched) = name.split_at(1);
                let index = tried(bench, &format!("{state}{letter}{number}{touched}"), own.address())?;
                let mut samples = bench.samples(2);
                for _ in 0..ROUNDS {
                    samples.add(timed_call(index, [own.address(), 0, 0, 0, 0]));
                }
                bench.emit(&format!("window.{state}.{what}.{pages}"), samples);
            }
        }
    }
    tears(bench, 1, "4k")?;
    tears(bench, 16, "64k")?;
    capabilities(bench)
}

/// The same pages go there and come back, in calls of their own; then a callee copies as many that were lent
/// to it.
fn tears(bench: &Bench, pages: usize, size: &str) -> Result<(), Errno> {
    let own = Buffer::new(pages)?;
    let copy = tried(bench, &format!("copy{pages}"), own.address())?;
    let mut samples = bench.samples(1);
    for _ in 0..ROUNDS {
        samples.add(timed_call(copy, [own.address(), 0, 0, 0, 0]));
    }
    bench.emit(&format!("copy.{size}"), samples);

    // A single page that goes is never a buffer's.
    let place: ReceiveWindow = buffer::receive_window(pages)?;
    let mut from = if pages == 1 {
        // A page of the heap that nothing else lies in.
        let bytes = alloc::vec![0u8; 2 * PAGE as usize].leak();
        (bytes.as_ptr() as u64).next_multiple_of(PAGE)
    } else {
        let address = own.address();
        own.gone();
        address
    };
    let (take, give) = (open(&format!("take{pages}"))?, open(&format!("give{pages}"))?);
    let (mut write, mut read) = (bench.samples(1), bench.samples(1));
    for round in 0..=ROUNDS {
        if round == 0 {
            // Whether it works is asked once.
            let there = call(take, [from]);
            let back = call(give, [place.address()]);
            if (there, back) != (Ok(0), Ok(0)) {
                bench.say(&format!("tear {size}: {there:?}, {back:?}"));
            }
            from = place.address();
            continue;
        }
        write.add(timed_call(take, [from, 0, 0, 0, 0]));
        read.add(timed_call(give, [place.address(), 0, 0, 0, 0]));
    }
    bench.emit(&format!("tear.write.{size}"), write);
    bench.emit(&format!("tear.read.{size}"), read);
    Ok(())
}

/// What has been passed is revoked after each call: the table is not for ten thousand.
fn capabilities(bench: &Bench) -> Result<(), Errno> {
    let name = CREATE.call(KIND, 1, TRANSFER).map_err(|_| errno::EIO)?;
    let index = tried(bench, "cap", name as u64)?;
    let mut samples = bench.samples(2);
    for _ in 0..ROUNDS {
        let _ = REVOKE.call(name as u64);
        samples.add(timed_call(index, [name as u64, 0, 0, 0, 0]));
    }
    bench.emit("cap.pass", samples);
    Ok(())
}

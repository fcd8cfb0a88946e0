//! `faultinject N[:ERROR] PROGRAM ARGUMENTS`: the program's n-th call fails, without having been made. Calls
//! that end the program do not count.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use pebble::api::Errno;
use pebble::control::Answer;
use pebble_tools::{calls, rules, under};

pebble::program!(main);
pebble::handler!(entry = inject);

static CALLS: AtomicU64 = AtomicU64::new(0);
static WHICH: AtomicU64 = AtomicU64::new(0);
static ERROR: AtomicI64 = AtomicI64::new(0);

fn inject(index: usize, p: [u64; 5]) -> Answer {
    let name = under::name(index);
    if rules::ENDS.contains(&name.as_str()) || CALLS.fetch_add(1, Relaxed) + 1 != WHICH.load(Relaxed) {
        return under::pass(index, &name, p);
    }
    let error = Errno::new(ERROR.load(Relaxed));
    let (call, which) = (calls::call(&name, &p), WHICH.load(Relaxed));
    under::say(&format!("faultinject: call {which}, {call}: {}\n", calls::error(error)));
    (-error).into()
}

fn main() -> i64 {
    let arguments: Vec<String> = pebble::io::args().skip(1).collect();
    let Some((which, error)) =
        arguments.first().and_then(|a| rules::fault(a)).filter(|_| arguments.len() > 1)
    else {
        return under::usage(
            "faultinject N[:ERROR] PROGRAM [ARGUMENT...], where N counts from 1 and ERROR is as EIO, or a \
             number",
        );
    };
    WHICH.store(which, Relaxed);
    ERROR.store(error.number(), Relaxed);
    let result = under::prepare(|| Ok(())).and_then(|()| under::run(&arguments[1..], entry, |_| ()));
    let made = CALLS.load(Relaxed);
    if result.is_ok() && made < which {
        under::say(&format!("faultinject: only {made} calls were made\n"));
    }
    under::end("faultinject", result)
}

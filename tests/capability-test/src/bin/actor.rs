//! An actor: holds capabilities, and does with them what the driver says.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use pebble::abi::{errno, status};
use pebble::link::More;
use pebble::{api, portal};
use pebble_capability_test::{ACTORS, Step};

pebble::import! {
    CREATE: cap::Create;
    DERIVE: cap::Derive;
    USE: cap::Use;
    REVOKE: cap::Revoke;
    DROP: cap::Drop;
    LOOK: cap::Look;
}
pebble::export_wide!("self.do", "npiiii>4", act);
pebble::export!("self.receive", "npk", receive: fn(u64));
pebble::component!(main);

/// Portals to the others' `receive`, opened at first use.
static RECEIVERS: [AtomicUsize; ACTORS] = [const { AtomicUsize::new(0) }; ACTORS];

fn main() -> i64 {
    0
}

/// What arrives is this domain's name for it.
extern "C" fn receive(name: u64) -> i64 {
    name as i64
}

fn receiver(to: u64) -> Result<usize, api::Errno> {
    let slot = RECEIVERS.get(to as usize).ok_or(errno::EINVAL)?;
    if slot.load(Relaxed) == 0 {
        slot.store(api::portal_open(&alloc::format!("actor{to}.receive"))?, Relaxed);
    }
    Ok(slot.load(Relaxed))
}

fn pass(name: u64, to: u64) -> i64 {
    let index = match receiver(to) {
        Ok(index) => index,
        Err(error) => return -error,
    };
    match portal::call(index, [name]) {
        Ok(name) => name,
        Err(broken) if status::code(broken.0) == status::CAPABILITY => -errno::EACCES,
        Err(_) => -errno::EIO,
    }
}

extern "C" fn act(step: u64, a: u64, b: u64, c: u64, _: u64, _: u64, more: &mut More) -> i64 {
    let Some(step) = Step::numbered(step) else { return -errno::EINVAL };
    let answer = match step {
        Step::Create => CREATE.call(a, b, c),
        Step::Derive => DERIVE.call(a, b),
        Step::Pass => Ok(pass(a, b)),
        Step::Use => USE.call(a, b),
        Step::Revoke => REVOKE.call(a),
        Step::Drop => DROP.call(a),
        Step::Look => LOOK.call(a).map(|(value, words)| {
            *more = words;
            value
        }),
    };
    answer.unwrap_or(-errno::EIO)
}

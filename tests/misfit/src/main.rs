//! Not run: whether it builds is the test (`./pebble test interfaces`). Without a feature it does.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use pebble::link::More;
use pebble::words::{Asid, ThreadId, Ticks, VirtAddr};

pebble::interfaces!();
pebble::component!(main);

fn main() -> i64 {
    0
}

#[cfg(not(any(
    feature = "type",
    feature = "fewer",
    feature = "more",
    feature = "result",
    feature = "missing"
)))]
extern "C" fn plain(_: Asid, _: ThreadId, _: u64) -> i64 {
    0
}

#[cfg(feature = "type")]
extern "C" fn plain(_: Asid, _: Asid, _: Ticks) -> i64 {
    0
}

#[cfg(feature = "fewer")]
extern "C" fn plain(_: Asid, _: ThreadId) -> i64 {
    0
}

#[cfg(feature = "more")]
extern "C" fn plain(_: Asid, _: ThreadId, _: Ticks, _: u64) -> i64 {
    0
}

#[cfg(feature = "result")]
extern "C" fn plain(_: Asid, _: ThreadId, _: Ticks) -> u32 {
    0
}

#[cfg(not(feature = "wide"))]
extern "C" fn wide(_: Asid, _: VirtAddr, _: u64, _: u64, _: u64, _: u64, _: &mut More) -> i64 {
    0
}

/// The third word has no letter, and so no type.
#[cfg(feature = "wide")]
extern "C" fn wide(_: Asid, _: VirtAddr, _: Ticks, _: u64, _: u64, _: u64, _: &mut More) -> i64 {
    0
}

#[repr(C)]
struct Decision(i64, i64);

#[cfg(not(feature = "decides"))]
extern "C" fn switching(_: ThreadId) -> Decision {
    Decision(0, 0)
}

#[cfg(feature = "decides")]
extern "C" fn switching(_: ThreadId) -> i64 {
    0
}

/// What the features take the use from.
#[allow(dead_code)]
type Used = (Asid, ThreadId, Ticks, VirtAddr, Decision);

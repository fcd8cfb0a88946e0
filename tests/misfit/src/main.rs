//! Not run: whether it builds is the test (`./pebble test interfaces`). Without a feature it does.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use pebble::client::clock;
use pebble::link::More;
use pebble::words::{Asid, ThreadId, Ticks, VirtAddr};

pebble::interfaces!();
pebble::component!(main);

/// A caller, through a portal whose index it knows.
fn main() -> i64 {
    let bound = clock::Bound(0_usize);
    #[cfg(not(any(feature = "call-type", feature = "call-more", feature = "call-fewer")))]
    let answer = bound.call(Ticks(1));
    #[cfg(feature = "call-type")]
    let answer = bound.call(Asid(1));
    #[cfg(feature = "call-more")]
    let answer = bound.call(Ticks(1), 0);
    #[cfg(feature = "call-fewer")]
    let answer = bound.call();
    answer.unwrap_or(0)
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

#[cfg(feature = "export-words")]
pebble::export!("self.by-hand", "npii", by_hand: fn(u64));
#[cfg(feature = "export-letter")]
pebble::export!("self.by-hand", "npz", by_hand: fn(u64));
#[cfg(not(any(feature = "export-words", feature = "export-letter")))]
pebble::export!("self.by-hand", "npi", by_hand: fn(u64));

extern "C" fn by_hand(_: u64) -> i64 {
    0
}

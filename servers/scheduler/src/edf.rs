//! The scheduler's component: entries around the library (`entries.rs`), here with deadlines before
//! priorities.
//!
//! Every entry takes the time, asks the library, programs the timer if that must change, and leaves the
//! decision to the switching wrapper (`pebble::interface!`). What has a quick way tries that first; the long
//! way is a function of its own, reached by a jump, so the quick one needs no stack. The library is told of
//! the boot threads at the first entry.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

const EDF: bool = true;

include!("entries.rs");

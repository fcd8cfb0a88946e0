//! Confined code computes what native code does: thousands of programs that nobody here has written, on both
//! sides.
//!
//! Problem: a mistake of the rewriter that the verifier accepts is silent. Strategy: random programs without
//! undefined behaviour ([`csmith`]), and the execution tests of GCC's torture suite ([`torture`]), are
//! compiled natively and confined, and must print and return the same. What a generator never writes, though
//! compilers make special code of it, [`twist`] puts into its programs, and [`bytes`] has all instructions
//! that name a high byte. Many programs go into one executable ([`batch`]), and each [`combination`] of
//! compiler, optimisation, level and options gets some.
//!
//! [`build`](batch::Batch::build) makes modules for whoever wants many that a real compiler made.
#![forbid(unsafe_code)]

pub mod batch;
pub mod bytes;
pub mod combination;
pub mod csmith;
pub mod run;
pub mod torture;
pub mod twist;

pub use pebble_sfi_bench::place::Place;

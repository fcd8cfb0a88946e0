//! Calls of the servers' interfaces, by name and with typed words: a module for each server, made of the
//! descriptions (`interface.toml`).
//!
//! A stub is a portal, however the caller has it: imported, opened at first use, or an index.
//!
//! ```ignore
//! pebble::import! {
//!     UNWIND: pm::Unwind;
//! }
//! static BOUND: clock::Bound<Lazy> = clock::Bound::lazy();
//!
//! UNWIND.call(ThreadId(3), site)?;
//! BOUND.call(Ticks(1000))?;
//! clock::Unbound(index).call(number)?;
//! ```

include!(concat!(env!("OUT_DIR"), "/clients.rs"));

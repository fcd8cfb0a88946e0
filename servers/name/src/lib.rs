//! The name server: which interface has which name, and which domain may open it.
//!
//! Strategy: the names are a chained hash table over an array that grows, so a look-up reads one short chain
//! and compares three words. The policy ([`pebble_boot::rules`]) is answered by one AND: each interface keeps
//! the set of rules that are about it, each domain the set of rules that speak of it; the first rule in both
//! decides. Of files and devices their servers know the first set, and ask.
//!
//! Invariants:
//! * A name belongs to at most one interface; it is free again once its domain has withdrawn it or died.
//! * An empty registry is all zero but for its array's address.
//! * `used` slots are exactly those reachable from a chain head; all others hang on the free list.
//! * The rules are matched when a name comes up or a domain is introduced, never during a look-up.
//!
//! | interface | operation |
//! |---|---|
//! | `name.lookup` (portal manager) | [`Registry::lookup`] |
//! | `name.register` (portal manager) | [`Registry::register`] |
//! | `name.withdraw` (portal manager: a dead domain) | [`Registry::gone`] |
//! | `name.rights`, `name.first` (servers of files and devices) | [`Registry::says`], [`Registry::first`] |
//! | `name.list` (all) | [`Registry::list`] |
//! | `name.domain` (process server, at birth) | [`Registry::domain`] |
//!
//! At start the component gives [`Registry::policy`] the rules of the boot information, then registers what
//! the image builder has registered already. All operations run under the one lock of the component; none
//! blocks.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod registry;

pub use registry::{CAPACITY, Entry, Error, MAX_PER_DOMAIN, Name, Registry};

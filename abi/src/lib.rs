//! The one constants file: everything that two parts of Pebble must agree on.
//!
//! The nucleus, the portal compiler, the servers, the component library, the image builder and the
//! generated `pebble.h` all take their numbers from here; nothing is kept in step by hand.
//!
//! * [`map`] where things are, in a domain and in the nucleus
//! * [`thread`] the thread block and its invocation stack
//! * [`call`] the calling convention of a portal
//! * [`sys`] the portals that every domain has, with their fixed indices
//! * [`control`] interposition, [`consent`] what the opener of a portal gives
//! * [`specification`] what is wrong with a specification
//! * [`link`] the records by which a component says what it exports and imports
//! * [`capability`] the capability table
//! * [`fault`] why a domain dies
//! * [`share`] who may have how much of what is scarce
//! * [`scheduler`] what the scheduler is told at boot
//! * [`words`] what a word of a call means
//! * [`status`] transport errors, [`errno`] the errors of servers
//!
//! What the image builder tells the first servers is the crate `pebble-boot`, which needs an allocator.
#![no_std]
#![forbid(unsafe_code)]

pub mod call;
pub mod capability;
pub mod consent;
pub mod control;
pub mod errno;
pub mod fault;
pub mod handover;
pub mod link;
pub mod map;
pub mod scheduler;
pub mod share;
pub mod specification;
pub mod status;
pub mod sys;
pub mod template;
pub mod thread;
pub mod words;

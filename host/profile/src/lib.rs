//! Where a guest's instructions go: by domain, by portal, by function.
//!
//! Problem: who makes a system faster must see where its instructions go, and on this system that is a matter
//! of domains and of the portals between them, of which an emulator knows nothing. Strategy: a plug-in of the
//! emulator (`host/plugin`) tells a [`Recorder`] which pieces of code run, and which words privileged code
//! loads and stores. That is enough to follow each thread through its portals ([`flow`]). At the end there is
//! a [`Recording`], numbers without names; the host tool knows these ([`Names`]) and makes of both a
//! [`table`], a [`flame`] graph and a [`trace`].
//!
//! Every instruction counts once, and in one place: the sum of any of the outputs is the number of
//! instructions that the guest has executed.
#![forbid(unsafe_code)]

mod counts;
pub mod flame;
pub mod flow;
mod fold;
mod mips64;
mod processor;
mod recorder;
mod recording;
mod riscv64;
mod short;
pub mod table;
pub mod trace;

pub use fold::{Fold, Row};
pub use processor::{Meaning, Processor, Region};
pub use recorder::{Code, Recorder, Scope};
pub use recording::{Block, BlockId, Domain, DomainId, Event, Names, Node, NodeId, Recording, Short};

//! Fault domains: untrusted native code inside this process, behind a wall made of its own instructions.
//!
//! [`Module::open`] parses and verifies a file, [`Imports::link`] gives it what it imports, [`Instance::new`]
//! makes a fresh memory for it, [`Instance::portal`] opens a door to one of its functions, and
//! [`Portal::call`] goes through. Whatever the module does, the call comes back: with its value or with a
//! [`Fault`] that says who, where and why. The memory map and what each part may rely on are in
//! `docs/src/fault-domains.md`.
//!
//! `unsafe` is allowed here, as nowhere else on this side of the wall; each use says why it is right.

mod arena;
mod back;
mod capi;
mod check;
mod deadline;
mod debugger;
mod dwarf;
mod elf;
mod ending;
mod error;
mod fault;
mod fence;
mod fork;
mod guard;
mod imports;
mod instance;
mod layout;
mod left;
mod lines;
mod longjmp;
mod memory;
mod module;
mod net;
mod opening;
mod os;
mod pieces;
mod policy;
mod portal;
mod record;
mod region;
mod report;
mod run;
mod slots;
mod space;
mod stage;
mod sys;
mod thread;
mod trap;
mod unwind;
mod verdict;
mod wait;
mod window;

pub use deadline::Limit;
#[doc(hidden)]
pub use deadline::hold as hold_deadlines;
pub use debugger::{moved_file, name_instances};
pub use elf::{Export, Image, Import, Level, Symbol};
pub use error::{Error, LoadError, Malformed};
pub use fault::{CallError, Cause, Fault, take_fault};
pub use fence::raise as raise_fence;
pub use imports::{Caller, Imports, Linked};
pub use instance::Instance;
pub use module::Module;
pub use os::forget_files;
pub use policy::Policy;
pub use portal::{Entry, Outcome, Portal};
pub use region::Region;
pub use report::line as source_line;
pub use run::{RunError, run, run_module};
pub use slots::segment_at_zero;
pub use stage::{Lent, Plain};
pub use sys::system_calls;
pub use thread::status;
pub use trap::{handle, leave_handlers_alone};
pub use verdict::to_verify;
pub use window::Extent;

/// Instances alive, for those who watch for leaks.
pub fn instances() -> usize {
    slots::existing().map_or(0, slots::Slots::in_use)
}

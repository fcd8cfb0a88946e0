//! The thread block: one supervisor-only page a thread.
//!
//! The first words keep the registers of a thread that does not run. The invocation stack starts at
//! [`FRAMES`] and grows upwards. The processor knows the address of its top word while the thread runs. The
//! top word of each frame is the address of the return code that undoes it; the rest of the frame lies below
//! that word. The portal table of the domain in which the thread runs needs no word: it is mapped at
//! `map::TABLE_VA` by the domain's own page table. The stack used for interrupts is that of the interrupt
//! dispatcher, which runs with interrupts off, so one serves all threads.
//!
//! A program's portal raises an exception, and pushes nothing, once the top is at or above
//! [`INVOCATION_LIMIT`]; a server's refuses the call with status `FULL` once it is at or above
//! [`INVOCATION_RESERVE`]. The largest frames (a call, an exception, an interrupt, in this order, one on the
//! other) fit between that and the end of the page: `portal/tests/depth.rs` adds them up.

/// Saved address of the invocation stack's top word, while the thread does not run.
pub const SAVED_TOP: u64 = 0;
/// Saved registers that the calling convention preserves, the thread pointer the last.
pub const SAVED_REGS: u64 = 8;
/// Home domain of the thread, for whoever reads thread blocks.
pub const HOME: u64 = 0x70;
/// Bottom word of the invocation stack: the thread's end.
pub const FRAMES: u64 = 0x80;
/// Top words below this offset may be pushed upon by portals of programs: bit 11 of the address is the check.
pub const INVOCATION_LIMIT: u64 = 0x800;
/// The same for portals of the image's domains: bits 11 and 10 together.
pub const INVOCATION_RESERVE: u64 = 0xc00;

/// Bits of the thread pointer that are not 0 while the thread is in a section of its domain's code that
/// should not be unwound half-way, since it holds a lock: libraries count in them. An address of thread-local
/// variables has none of them. The domain is believed for a while, see `servers/clock`.
pub const SECTION: u64 = 15;

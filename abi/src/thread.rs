//! The thread block: one supervisor-only page a thread.
//!
//! The first words keep the registers of a thread that does not run. The invocation stack starts at [`FRAMES`] and
//! grows upwards. `sscratch` holds the address of its top word while the thread runs. The top word of
//! each frame is the address of the return code that undoes it; the rest of the frame lies below
//! that word. The portal table of the domain in which the thread runs needs no word: it is mapped at
//! `map::TABLE_VA` by the domain's own page table. The stack used for interrupts is that of the interrupt
//! dispatcher, which runs with interrupts off, so one serves all threads.
//!
//! A program's portal raises an exception, and pushes nothing, once the top is at or above [`INVOCATION_LIMIT`]; a server's refuses the call with
//! status `FULL` once it is at or above [`INVOCATION_RESERVE`]. The largest frames (a call, an exception, an interrupt, in this order, one on the
//! other) fit between that and the end of the page: `portal/tests/depth.rs` adds them up.

/// Saved address of the invocation stack's top word, while the thread does not run.
pub const SAVED_TOP: u64 = 0;
/// Saved preserved registers `s0`-`s11`, then `tp`.
pub const SAVED_REGS: u64 = 8;
pub const SAVED_REGS_COUNT: usize = 13;
/// Home domain of the thread, for whoever reads thread blocks.
pub const HOME: u64 = 0x70;
/// Bottom word of the invocation stack: the thread's end.
pub const FRAMES: u64 = 0x80;
/// Top words below this offset may be pushed upon by portals of programs: bit 11 of the address is the check.
pub const INVOCATION_LIMIT: u64 = 0x800;
/// The same for portals of the image's domains: bits 11 and 10 together.
pub const INVOCATION_RESERVE: u64 = 0xc00;

/// Words of the frame of an interrupt or exception, counted from its lowest.
///
/// Words 0..=29 hold `x1, x2, x4..=x31` (`x3`, `gp`, belongs to the nucleus).
pub const TRAP_PC: usize = 30;
pub const TRAP_SPACE: usize = 31;
/// Stack descriptor that the handler's return gives back (exceptions only); of a wait for a stack the cause of the trap that lacks it.
pub const TRAP_DESC: usize = 32;
/// That of a portal call.
pub const CAUSE_CALL: u64 = 8;
pub const TRAP_RET: usize = 33;
pub const TRAP_WORDS: usize = 34;
/// The frame of a domain that uses floating point has `f0`-`f31` and `fcsr` below the words above.
pub const TRAP_FLOAT_WORDS: usize = 33;

/// Bits of `tp` that are not 0 while the thread is in a section of its domain's code that should not be unwound half-way, since it holds a lock:
/// libraries count in them. An address of thread-local variables has none of them. The domain is believed for a while, see `servers/clock`.
pub const SECTION: u64 = 15;

/// Word of a trap frame that holds register `x`; `x0` and `gp` have none.
pub const fn trap_word(x: usize) -> usize {
    if x < 3 { x - 1 } else { x - 2 }
}

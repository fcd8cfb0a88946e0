//! The second checker: judges modules of fault domains again, in the tests only.
//!
//! Problem: the verifier is trusted, and its tests were written with its algorithm in mind. So somebody else
//! is asked, who shares nothing with it but the contract (`docs/src/fault-domains.md`) and the type that
//! holds a module. Strategy: another decoder (`op`, over iced-x86), and another algorithm: abstract
//! interpretation by a worklist over the control flow (`walk`) from the slots and exports to a fixpoint, over
//! values of registers (`state`), with the rules for one instruction in `step`. Neither labels nor facts are
//! read: what they would say is found anew. Sequences are not recognised by their order: a masked number, a
//! table's entry and a code address are values of their own, so what may stand between the instructions does
//! not matter.
//!
//! What it does not judge: code that no flow reaches; whether labels and facts are well formed; encodings
//! without effect that the verifier is stricter about (prefixes that mean nothing, distances between the
//! parts of a sequence); `Summary::float`; `site`.
//!
//! Invariants kept: whatever the verifier accepts, this accepts, or one of the two is wrong; no panic on any
//! input.
#![forbid(unsafe_code)]

mod op;
mod state;
mod step;
mod walk;

pub use op::Cache;
pub use walk::check;

use core::fmt;
use pebble_sfi_verify::Summary;

/// Why a module is refused, and at which segment offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub at: u32,
    pub rule: Rule,
}

/// The rules of the contract that are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// The parts of the module overlap, or the ftab is none.
    Layout,
    /// No instruction, or one that processors disagree about.
    Undefined,
    /// An instruction that leaves the process, reads its layout or changes what portals rely on.
    Forbidden,
    /// `rsp` outside `call`, `ret`, `push`, `pop`.
    StackPointer,
    /// `rbp` changes in a way that is not known.
    DataStackPointer,
    /// `rbp` went down by more than a page and is not touched.
    Untouched,
    /// Depth of the return stack.
    Depth,
    /// `rbp` above its value at entry, too far below, or not back at a return.
    Delta,
    /// A store that may leave the segment.
    Store,
    /// A load that may leave the segment, at level full.
    Load,
    /// `fs`, or `gs` in a way that is not confined.
    Segment,
    /// A branch, export or slot that leads out of the text.
    Target,
    /// Two ways arrive with different depths or deltas.
    Join,
    /// A branch, or two ways that meet, while `rbp` is dynamic or pushed.
    Dynamic,
    /// An indirect jump or call by a value that is no code address.
    Indirect,
    /// A jump table or slot table outside its section.
    Table,
    /// Not the portal-table entry of an import.
    Import,
    /// The code runs past its end.
    FallsOff,
    /// Two instructions that are reached share bytes.
    Overlap,
}

impl Rule {
    pub const ALL: [Rule; 19] = {
        use Rule::*;
        [
            Layout,
            Undefined,
            Forbidden,
            StackPointer,
            DataStackPointer,
            Untouched,
            Depth,
            Delta,
            Store,
            Load,
            Segment,
            Target,
            Join,
            Dynamic,
            Indirect,
            Table,
            Import,
            FallsOff,
            Overlap,
        ]
    };
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}: {:?}", self.at, self.rule)
    }
}

/// What was found in a module that is accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Preserved registers that a call may change, as in `Summary`.
    pub changes: u16,
    pub x87: bool,
    pub fp_control: bool,
    /// A clock of the processor's is read.
    pub timer: bool,
    /// Instructions that are reached.
    pub instructions: u32,
}

impl Findings {
    /// Whether the verifier has told the portals at least as much.
    pub fn within(&self, summary: &Summary) -> bool {
        self.changes & !summary.changes == 0
            && self.x87 <= summary.x87
            && self.fp_control <= summary.fp_control
            && self.timer <= summary.timer.is_some()
            && self.instructions <= summary.instructions
    }
}

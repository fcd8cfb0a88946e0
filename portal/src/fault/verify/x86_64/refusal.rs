//! Why a portal between a process and its fault domains is refused.

use core::fmt;

/// Why a portal is refused, at which byte of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub at: usize,
    pub reason: Reason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    NotAllowed,
    Branch,
    Endless,
    Pool,
    Memory,
    SegmentBase,
    Inside,
    Room,
    Depth,
    Call,
    Frame,
    DataStack,
    Argument(u8),
    Hidden(u8),
    Vectors,
    Status,
    Outstanding,
    StackPointer,
    Preserved(u8),
    Result,
    Record,
    Queue,
    Control,
    Changed,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "offset {:#x}: {:?}", self.at, self.reason)
    }
}

impl core::error::Error for Refusal {}

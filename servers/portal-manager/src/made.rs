//! The portal code that is made while the system runs.

use crate::arena::{Arena, Run};
use crate::births::Births;
use crate::forms::Forms;
use crate::reopening::Reopening;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Code in limbo is looked through once there are so many runs that were not there the last time.
pub(crate) const LIMBO: usize = 48;

pub(crate) struct Made {
    pub arena: Arena,
    /// Code that some thread may still return through; as many of it were found to be needed the last time.
    pub limbo: Vec<Run>,
    pub kept: usize,
    /// Some of it shares stacks: who sees them sees them until it has gone.
    pub shared: bool,
    /// Common code, by entry: what the image has is never freed.
    pub common_runs: Vec<(u16, [Run; 2])>,
    /// Common code through which calls leave a server that is being replaced; 0: not made yet.
    pub moved: u64,
    /// Common code that answers -EBADF: where closed portals lead.
    pub closed: u64,
    /// What new domains get.
    pub births: Births,
    /// What may be wanted again, before it is in limbo.
    pub reopening: Reopening,
    /// Where a portal is made; none while that goes on.
    pub forms: Option<Box<Forms>>,
}

impl Made {
    /// Behind so many bytes that the image has used. `none`: where an index leads that is not held.
    pub fn new(used: u32, none: u64) -> Self {
        Made {
            arena: Arena::new(used),
            limbo: Vec::with_capacity(2 * LIMBO),
            kept: 0,
            shared: false,
            common_runs: Vec::new(),
            moved: 0,
            closed: none,
            births: Births::default(),
            reopening: Reopening::default(),
            forms: Some(Box::default()),
        }
    }
}

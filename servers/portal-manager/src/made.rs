//! The portal code that is made while the system runs.

use crate::Machine;
use crate::arena::{Arena, Run};
use crate::births::Births;
use crate::forms::{Constant, Forms};
use crate::interfaces::Written;
use crate::reopening::Reopening;
use alloc::boxed::Box;
use alloc::vec::Vec;
use pebble_abi::errno::{self, Errno};
use pebble_arch::Arch;
use pebble_portal::hardware::{CompileError, Connection, Shape};

/// Why there is no portal.
pub(crate) enum Failure {
    Compiling(CompileError),
    Placing(Errno),
}

impl From<Errno> for Failure {
    fn from(error: Errno) -> Self {
        Failure::Placing(error)
    }
}

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
    /// What portals are copies of.
    pub forms: Box<Forms>,
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
            forms: Box::default(),
        }
    }
    /// A portal that the verifier has accepted in its place, and where its constant is.
    pub fn make<A: Arch>(
        &mut self,
        machine: &mut impl Machine,
        written: Written,
        shape: Shape,
        c: &Connection,
    ) -> Result<(Run, Constant), Failure> {
        let Made { arena, forms, .. } = self;
        let form = forms.of(written, shape, c, A::PROCESSOR).map_err(Failure::Compiling)?;
        let (form, constant) = form.ok_or(errno::EINVAL)?;
        let doubles = form.doubles().len();
        let run = arena.place(machine, doubles)?;
        let placed = form.place(&mut machine.site(run.at.into(), doubles), shape, c, A::PROCESSOR);
        if placed.is_err() {
            arena.give(run);
            return Err(Failure::Placing(errno::EINVAL));
        }
        Ok((run, constant))
    }
}

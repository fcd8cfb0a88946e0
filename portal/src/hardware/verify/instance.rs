//! A portal is an instance of a form that was verified.
//!
//! Problem: a form is verified once, and every portal of it must be as good.
//! Strategy: a portal is a [form](crate::hardware::instance::Form) but for the form's holes; all other words were
//! read back where it lies when they were [copied](crate::hardware::instance::Site::copy). Each hole is read
//! there, too, and must have what this connection has for it, which is found here, and not asked of who has
//! filled it in.

use super::{Reason, Refusal};
use crate::Processor;
use crate::hardware::hole::Hole;
use crate::hardware::instance::Place;
use crate::hardware::{Connection, Shape};
use pebble_abi::map;

/// Accepts what lies there, a copy of `form`, if each of these holes is filled as it must be.
// It is done in the midst of making a portal: a call's arguments cost a tenth of it.
#[inline(always)]
pub fn instance(
    form: &[u64],
    holes: &[Place],
    word: impl Fn(usize) -> u64,
    standing: &Standing,
) -> Result<(), Refusal> {
    for Place { at, hole } in holes {
        let at = usize::from(*at);
        if word(at) != standing.0[*hole as usize].wrapping_add(form[at] & 0xffff_ffff) {
            return Err(Refusal { at: at * 8, reason: Reason::Hole(*hole) });
        }
    }
    Ok(())
}

/// What stands for each hole in one connection, in the order of [`Hole::ALL`].
pub struct Standing([u64; Hole::ALL.len()]);

impl Standing {
    pub fn of(c: &Connection, shape: Shape, processor: Processor) -> Self {
        let (caller, callee) = (&c.caller, &c.callee);
        let [from, to] = [caller.asid, callee.asid].map(u64::from);
        let semaphore = match shape {
            Shape::Wait(id) | Shape::Signal(id) => map::semaphore_va(id.into()),
            _ => 0,
        };
        Standing([
            caller.space,
            callee.space,
            c.entry,
            c.constant,
            c.index.into(),
            if c.subject != 0 { c.subject.into() } else { from },
            from,
            to,
            callee.fixed_stack,
            caller.l1,
            processor.root_va(caller.space),
            caller.windows,
            callee.windows,
            map::stack_queue_va(callee.asid),
            c.counter.map_or(0, |id| map::counter_va(id.into())),
            semaphore,
            from << 16,
            to << 16,
            from << 16 | to << 32 | u64::from(c.index) << 48,
        ])
    }

    /// The frame is of another portal between these two.
    pub fn describe(&mut self, caller: u16, callee: u16, index: u16) {
        self.0[Hole::Description as usize] =
            u64::from(caller) << 16 | u64::from(callee) << 32 | u64::from(index) << 48;
    }
}

//! A portal is an instance of a form that was verified.
//!
//! Problem: a form is verified once, and every portal of it must be as good.
//! Strategy: one double word after the other is compared. They are the same, or the form has a symbol there and
//! the portal what this connection has for it, which is asked for here, and not of who has filled it in.
//!
//! * Nothing else differs, be it code or a constant.

use super::{Reason, Refusal};
use crate::Processor;
use crate::hardware::hole::Hole;
use crate::hardware::{Connection, Shape};
use pebble_abi::map;

/// Accepts `portal` as that of this connection, if `form` was accepted for its specification, shape and
/// domains. Both are [double words](crate::hardware::Code::doubles).
pub fn instance(
    form: impl ExactSizeIterator<Item = u64>,
    portal: &[u64],
    shape: Shape,
    connection: &Connection,
    processor: Processor,
) -> Result<(), Refusal> {
    let length = form.len();
    for (i, (form, double)) in form.zip(portal).enumerate() {
        let hole = Hole::of(form);
        let wanted = match hole {
            None => form,
            Some(hole) => stands_for(hole, shape, connection, processor).wrapping_add(form & 0xffff_ffff),
        };
        if *double != wanted {
            return Err(Refusal { at: i * 8, reason: hole.map_or(Reason::Unlike, Reason::Hole) });
        }
    }
    if portal.len() == length {
        return Ok(());
    }
    Err(Refusal { at: portal.len().min(length) * 8, reason: Reason::Unlike })
}

/// Apart: nearly all words are no holes, and all are looked at.
#[inline(never)]
fn stands_for(hole: Hole, shape: Shape, c: &Connection, processor: Processor) -> u64 {
    let (caller, callee) = (&c.caller, &c.callee);
    match hole {
        Hole::CallerSpace => caller.space,
        Hole::CalleeSpace => callee.space,
        Hole::Entry => c.entry,
        Hole::Constant => c.constant,
        Hole::Index => c.index.into(),
        Hole::Told if c.subject != 0 => c.subject.into(),
        Hole::Told | Hole::Caller => caller.asid.into(),
        Hole::Callee => callee.asid.into(),
        Hole::FixedStack => callee.fixed_stack,
        Hole::Table => caller.l1,
        Hole::Root => processor.root_va(caller.space),
        Hole::CallerWindows => caller.windows,
        Hole::CalleeWindows => callee.windows,
        Hole::Queue => map::stack_queue_va(callee.asid),
        Hole::Counter => c.counter.map_or(0, |id| map::counter_va(id.into())),
        Hole::Semaphore => match shape {
            Shape::Wait(id) | Shape::Signal(id) => map::semaphore_va(id.into()),
            _ => 0,
        },
        Hole::Refused => u64::from(caller.asid) << 16,
        Hole::Blamed => u64::from(callee.asid) << 16,
        Hole::Description => {
            u64::from(caller.asid) << 16 | u64::from(callee.asid) << 32 | u64::from(c.index) << 48
        }
    }
}

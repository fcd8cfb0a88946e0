//! A portal is an instance of a form that was verified.
//!
//! Problem: a form is verified once, and every portal of it must be as good.
//! Strategy: two double words after two are compared. They are the same, or the form has a symbol there and
//! the portal what this connection has for it, which is asked for here, and not of who has filled it in.
//!
//! * Nothing else differs, be it code or a constant.

use super::{Reason, Refusal};
use crate::Processor;
use crate::hardware::hole::Hole;
use crate::hardware::{Connection, Shape};
use pebble_abi::map;
use pebble_arch::{mips64, riscv64};

/// Accepts `words` as the portal of this connection, if `form` was accepted for its specification, shape and
/// domains.
pub fn instance(
    form: &[u32],
    words: &[u32],
    shape: Shape,
    connection: &Connection,
    processor: Processor,
) -> Result<(), Refusal> {
    if form.len() != words.len() {
        return Err(Refusal { at: words.len() * 4, reason: Reason::Unlike });
    }
    let (forms, last) = form.as_chunks();
    let (portal, end) = words.as_chunks();
    // Nearly all words are no holes, and every portal is looked through: what holes need is apart.
    for (i, ([low, high], word)) in forms.iter().zip(portal).enumerate() {
        let right = match Hole::of(*high) {
            None => [*low, *high] == *word,
            Some(hole) => filled(hole, *low, shape, connection, processor) == *word,
        };
        if !right {
            let reason = Hole::of(*high).map_or(Reason::Unlike, Reason::Hole);
            return Err(Refusal { at: i * 8, reason });
        }
    }
    if last == end { Ok(()) } else { Err(Refusal { at: words.len() * 4 - 4, reason: Reason::Unlike }) }
}

/// What must be in the hole, `low` behind what its symbol stands for.
#[inline(never)]
fn filled(hole: Hole, low: u32, shape: Shape, connection: &Connection, processor: Processor) -> [u32; 2] {
    let value = stands_for(hole, shape, connection, processor).wrapping_add(low.into());
    [value as u32, (value >> 32) as u32]
}

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
        Hole::Root if processor == Processor::Mips64 => mips64::paging::root_va(caller.space),
        Hole::Root => riscv64::paging::root_va(caller.space),
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

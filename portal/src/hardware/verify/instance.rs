//! A portal is an instance of a form that was verified.
//!
//! Problem: a form is verified once, and every portal of it must be as good.
//! Strategy: one double word after the other is compared. They are the same, or the form has a symbol there and
//! the portal what this connection has for it, which is asked for here, and not of who has filled it in.
//!
//! * Nothing else differs, be it code or a constant.
//! * As many differ as the form has symbols: none is left.

use super::{Reason, Refusal};
use crate::Processor;
use crate::hardware::hole::Hole;
use crate::hardware::{Connection, Shape};
use pebble_abi::map;

/// How many symbols a form has: in so many double words its portals differ from it.
pub fn symbols(form: impl Iterator<Item = u64>) -> usize {
    form.filter(|double| Hole::of(*double).is_some()).count()
}

/// Accepts `portal` as that of this connection, if `form` was accepted for its specification, shape and
/// domains, and has so many [`symbols`]. Both are [double words](crate::hardware::Code::doubles).
// Two callers that matter: a call's arguments cost a tenth of it.
#[inline(always)]
pub fn instance(
    form: impl ExactSizeIterator<Item = u64> + Clone,
    symbols: usize,
    portal: &[u64],
    shape: Shape,
    connection: &Connection,
    processor: Processor,
) -> Result<(), Refusal> {
    let (length, mut filled) = (form.len(), 0);
    let standing = standing(shape, connection, processor);
    for (i, (form, double)) in form.clone().zip(portal).enumerate() {
        // Nearly all are the same.
        if form == *double {
            continue;
        }
        let Some(hole) = Hole::of(form) else { return Err(Refusal { at: i * 8, reason: Reason::Unlike }) };
        if *double != standing[hole as usize].wrapping_add(form & 0xffff_ffff) {
            return Err(Refusal { at: i * 8, reason: Reason::Hole(hole) });
        }
        filled += 1;
    }
    if portal.len() != length {
        return Err(Refusal { at: portal.len().min(length) * 8, reason: Reason::Unlike });
    }
    if filled == symbols { Ok(()) } else { Err(left(form, portal)) }
}

/// The symbol that stands in the portal still.
#[cold]
fn left(form: impl Iterator<Item = u64>, portal: &[u64]) -> Refusal {
    let mut same = form.zip(portal).enumerate().filter(|(_, (form, double))| form == *double);
    let left = same.find_map(|(i, (form, _))| Some((i, Hole::of(form)?)));
    left.map_or(Refusal { at: 0, reason: Reason::Unlike }, |(i, hole)| Refusal {
        at: i * 8,
        reason: Reason::Hole(hole),
    })
}

/// What stands for each hole in this connection, in the order of [`Hole::ALL`].
fn standing(shape: Shape, c: &Connection, processor: Processor) -> [u64; Hole::ALL.len()] {
    let (caller, callee) = (&c.caller, &c.callee);
    let [from, to] = [caller.asid, callee.asid].map(u64::from);
    let semaphore = match shape {
        Shape::Wait(id) | Shape::Signal(id) => map::semaphore_va(id.into()),
        _ => 0,
    };
    [
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
    ]
}

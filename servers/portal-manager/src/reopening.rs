//! Portals that are opened again soon after they were closed.
//!
//! **Problem.** Programs open and close files all the time, and get portals that differ from those just closed
//! in a constant alone. To copy a form, to check the copy and to place it, and to look for threads in what was
//! closed, is most of what opening a file costs. **Strategy.** Of the portals that were made last all is
//! remembered that their code comes from. The code of one that is closed waits here, before it goes into limbo;
//! when the same portal is wanted in the same entry of the same table, it is there again, with another
//! constant.
//!
//! **Invariants.**
//! * A portal's code comes from its [`Source`], its entry and its constant, and from nothing else. Where the
//!   first two are the same, the code is the same but for the word where its verified form has the constant's
//!   symbol.
//! * What is remembered of an entry is of the code that was made for it last. While the entry has code in that
//!   place, it is that code.
//! * Code that is closed is here, or in limbo, or its place is free. No way back has a constant: a thread that
//!   returns finds what it has left. One that was interrupted on its way in takes the new constant, as if it
//!   had come later.

use crate::arena::Run;
use crate::forms::Constant;
use crate::manager::{Domain, Goal, Manager, Slot};
use crate::replacement::NOBODY;
use crate::{Interface, Machine};
use alloc::vec::Vec;
use pebble_arch::Arch;
use pebble_portal::hardware::Domain as View;
use pebble_portal::hardware::instance::Site;
use pebble_portal::spec::Stack;

/// As many portals are remembered, each in the place that its entry decides.
pub(crate) const PLACES: usize = 64;

/// What the code of a portal to an interface comes from, beside its entry and its constant. Not copied where
/// it is only compared.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Source<D> {
    /// The specification.
    text: [u64; 2],
    caller: D,
    callee: D,
    entry: u64,
    counter: Option<u16>,
    stub: bool,
}

struct Known {
    index: u16,
    source: Source<View>,
    /// Where the code is; none: the entry has other code now.
    run: Run,
    constant: Constant,
    closed: bool,
}

/// What the code for a slot comes from; of some kinds only.
fn source<'a>(
    domains: &'a [Domain],
    interfaces: &'a [Interface],
    asid: u16,
    slot: &Slot,
) -> Option<Source<&'a View>> {
    let Goal::Interface(n) = slot.goal else { return None };
    let Interface { asid: callee, entry, spec, name, text, .. } = interfaces.get(usize::from(n))?;
    let view = |asid: u16| domains.get(usize::from(asid)).map(|d| &d.view);
    let (caller, callee) = (view(asid)?, view(*callee).filter(|_| ![0, NOBODY].contains(callee))?);
    // In code of calls into an exclusive domain its successor is named, where threads wait; stacks are seen as
    // long as there is code that shares them; domains below are told another specification.
    let stays = !callee.exclusive && spec.stack == Stack::New && slot.subject.is_none();
    let (counter, stub) = (slot.counter, name.is_empty());
    stays.then_some(Source { text: *text, caller, callee, entry: *entry, counter, stub })
}

impl Source<&View> {
    fn is(&self, other: &Source<View>) -> bool {
        let Source { text, caller, callee, entry, counter, stub } = other;
        *self == Source { text: *text, caller, callee, entry: *entry, counter: *counter, stub: *stub }
    }

    #[inline(always)]
    fn copied(self) -> Source<View> {
        let Source { text, caller, callee, entry, counter, stub } = self;
        Source { text, caller: *caller, callee: *callee, entry, counter, stub }
    }
}

impl Known {
    /// The code, if it is closed. It is not here any more.
    fn leave(&mut self) -> Option<Run> {
        let run = core::mem::take(&mut self.run);
        core::mem::take(&mut self.closed).then_some(run)
    }
}

/// [`PLACES`] of them. Not an array: it would be on the stack at first.
pub(crate) struct Reopening(Vec<Option<Known>>);

impl Default for Reopening {
    fn default() -> Self {
        let mut places = Vec::new();
        places.resize_with(PLACES, || None);
        Reopening(places)
    }
}

/// Neighbours in a table do not meet, nor do the first portals of neighbours.
fn place(asid: u16, index: u16) -> usize {
    (usize::from(asid) * 12 + usize::from(index)) % PLACES
}

impl Reopening {
    fn of(&mut self, asid: u16, index: u16) -> Option<&mut Known> {
        let known = self.0.get_mut(place(asid, index))?.as_mut()?;
        (known.source.caller.asid == asid && known.index == index).then_some(known)
    }

    /// The entry is closed. Whether its code stays here.
    pub fn close(&mut self, asid: u16, index: u16, run: Run) -> bool {
        let known = self.of(asid, index).filter(|known| run.len > 0 && known.run.at == run.at);
        known.map(|known| known.closed = true).is_some()
    }

    /// The code was made for the entry just now. What was closed in that place is returned.
    #[inline(always)]
    fn remember(&mut self, index: u16, source: Source<&View>, run: Run, constant: Constant) -> Option<Run> {
        let place = self.0.get_mut(place(source.caller.asid, index))?;
        let before = place.as_mut().and_then(Known::leave);
        *place = Some(Known { index, source: source.copied(), run, constant, closed: false });
        before
    }

    /// What is closed in this place, and not here any more.
    pub fn give_up(&mut self, place: usize) -> Option<Run> {
        self.0.get_mut(place)?.as_mut().filter(|known| known.closed)?.leave()
    }
}

impl<A: Arch> Manager<A> {
    /// The entry is about to get code: that which it had last, if it serves again. If not, it is not
    /// remembered.
    pub(crate) fn reopen(
        &mut self,
        machine: &mut impl Machine,
        asid: u16,
        index: u16,
        slot: &Slot,
    ) -> Option<Run> {
        let Manager { domains, interfaces, made, .. } = self;
        let known = made.reopening.of(asid, index)?;
        let run = known.leave()?;
        if !source(domains, interfaces, asid, slot).is_some_and(|source| source.is(&known.source)) {
            self.bury(run);
            return None;
        }
        known.run = run;
        if let Constant::At(at) = known.constant {
            machine.site(u64::from(run.at) + u64::from(at) * 8, 1).set(0, slot.constant);
        }
        Some(run)
    }

    /// This code was made for the entry just now. Who opens portals by name, which have no constant, hardly
    /// ever does it twice.
    #[inline(always)]
    pub(crate) fn remember(&mut self, asid: u16, index: u16, slot: &Slot, run: Run, constant: Constant) {
        if slot.constant == 0 || constant == Constant::Unknown {
            return;
        }
        let Manager { domains, interfaces, made, .. } = self;
        let Some(source) = source(domains, interfaces, asid, slot) else { return };
        if let Some(before) = made.reopening.remember(index, source, run, constant) {
            self.bury(before);
        }
    }
}

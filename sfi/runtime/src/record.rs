//! The record at the end of a return stack, and stacks themselves.
//!
//! A stack of a thread in an instance is two: the return stack, outside the segment, and the data stack with
//! the thread-local variables, inside. Portals read and write the record's fields by their offsets in
//! `pebble_portal::fault::record`.

use crate::arena;
use crate::error::{Error, system};
use crate::instance::Shared;
use crate::layout::*;
use crate::os;
use crate::slots::{self, Slots};
use crate::thread::{self, Thread, Words};
use pebble_portal::fault::record;

/// No segment base has this upper half: nothing equals a dead record.
pub const DEAD: u32 = u32::MAX;

/// A return stack's mark. Whoever makes one vouches that the stack is mapped, as every stack once made is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(pub u64);

impl Mark {
    fn word(self, field: i32) -> *mut u64 {
        (self.0 as i64 + i64::from(record::from_mark(field))) as *mut u64
    }

    pub fn get(self, field: i32) -> u64 {
        // SAFETY: the record of a mapped stack; its words are plain memory, changed by the owning thread or
        // while nobody is in it.
        unsafe { self.word(field).read_volatile() }
    }

    pub fn set(self, field: i32, value: u64) {
        // SAFETY: as in `get`.
        unsafe { self.word(field).write_volatile(value) }
    }

    pub fn slot(self) -> u32 {
        self.get(record::SLOT) as u32
    }

    pub fn kill(self) {
        self.set_slot(DEAD);
    }

    pub fn revive(self, base: u64) {
        self.set_slot((base >> 32) as u32);
    }

    /// The thread's number beside it stays.
    fn set_slot(self, upper: u32) {
        // SAFETY: as in `get`; portals read these four bytes whenever they like.
        unsafe { self.word(record::SLOT).cast::<u32>().write_volatile(upper) }
    }

    /// The thread of this stack is on its way in or out.
    pub fn moving(self) -> bool {
        // SAFETY: the words are the thread's, which cannot end without the lock of the instance's stacks,
        // held by whoever asks.
        let words = unsafe { &*(self.get(record::WORDS) as *const Words) };
        words.moving(Mark(self.get(record::HOME)))
    }

    /// A word of the return stack itself.
    pub fn peek(self, at: u64) -> Option<u64> {
        let begin = self.0 - (RETURN_STACK - 1) + PAGE;
        // SAFETY: between the guard page and the record, aligned: mapped since the stack was made.
        (at >= begin && at + 8 <= self.0 && at.is_multiple_of(8))
            .then(|| unsafe { (at as *const u64).read_volatile() })
    }

    pub fn poke(self, at: u64, value: u64) {
        if self.peek(at).is_some() {
            // SAFETY: as in `peek`.
            unsafe { (at as *mut u64).write_volatile(value) }
        }
    }

    /// The frame of the call that entered at `top`: what the stack pointer is behind the call, and where in
    /// portal code that is. Called in the signal handler too.
    pub fn frame(self, top: u64) -> Option<(u64, u64)> {
        let site = self.peek(top.checked_sub(16)?)?;
        if arena::contains(site) {
            return Some((top - 8, site));
        }
        // Across, the caller's return stack pointer lies between.
        slots::existing()?.return_stack(site)?;
        let site = self.peek(top - 24)?;
        arena::contains(site).then_some((top - 16, site))
    }

    /// Who made the call that entered at `top`, if a domain did: its stack, the stack pointer that it has
    /// published, and where the call into that stack entered. Called in the signal handler too.
    pub fn caller(self, top: u64) -> Option<(Mark, u64, u64)> {
        let published = self.peek(top.checked_sub(16)?)?;
        slots::existing()?.return_stack(published)?;
        let caller = Mark(published | (RETURN_STACK - 1));
        Some((caller, published, caller.peek(published + 8)?))
    }

    /// The stacks of the call that runs on this one and of those between domains that wait for it, from the
    /// innermost. Called in the signal handler too.
    pub fn calls(self) -> impl Iterator<Item = Mark> {
        let first = Some((self, self.get(record::TOP)));
        let calls = std::iter::successors(first, |(mark, top)| {
            mark.caller(*top).map(|(caller, _, top)| (caller, top))
        });
        calls.map(|(mark, _)| mark)
    }

    /// This home and the stacks of the thread's part of the queue.
    pub fn family(self) -> impl Iterator<Item = Mark> {
        let next = |mark: &Mark| Some(Mark(mark.get(record::SIBLING))).filter(|next| next.0 != 0);
        std::iter::successors(Some(self), next)
    }

    /// A call into this stack has not come back.
    pub fn busy(self) -> bool {
        let bottom = self.get(record::BOTTOM);
        self.frame(bottom).is_some() || self.get(record::TOP) != bottom
    }

    /// The instance of a stack with an outstanding call.
    pub fn instance(self) -> &'static Shared {
        // SAFETY: whoever asks has seen a call into the stack that has not come back, and that keeps the
        // instance.
        unsafe { &*(self.get(record::INSTANCE) as *const Shared) }
    }
}

/// A stack that an instance has given to a thread.
#[derive(Clone, Copy, Debug)]
pub struct Given {
    pub mark: Mark,
    pub data: u32,
}

/// Takes a return stack of the slot, mapped.
pub fn take_return_stack(slots: &Slots, slot: u32) -> Result<Mark, Error> {
    let place = slots.slots.get(slot as usize).ok_or(Error::NoSlot)?;
    let mut place = place.lock().unwrap_or_else(|e| e.into_inner());
    let stack = match place.unused.last() {
        Some(stack) => *stack,
        None if place.made == MAX_STACKS => return Err(Error::NoStack),
        None => place.made,
    };
    let mark = Mark(slots.mark(slot, stack));
    map_return_stack(mark)?;
    if place.unused.pop().is_none() {
        place.made += 1;
    }
    Ok(mark)
}

/// Makes a return stack of a place that is its user's; what was there is gone.
pub fn map_return_stack(mark: Mark) -> Result<(), Error> {
    let guard = mark.0 - (RETURN_STACK - 1);
    let made = os::stack(guard + PAGE, RETURN_STACK - PAGE).and_then(|()| os::vacate(guard, PAGE));
    made.map_err(system("making a return stack"))?;
    // Its thread's current mark may be here already, and a zero would be a segment's.
    mark.kill();
    Ok(())
}

/// Gives a return stack back to its slot, dead.
pub fn give_return_stack(slots: &Slots, slot: u32, mark: Mark) {
    retire(slots, slot, mark);
    give_place(slots, slot, mark);
}

/// The place of a return stack that is dead, or that whoever ends the instance in the slot has still to
/// retire, before the slot has another.
pub fn give_place(slots: &Slots, slot: u32, mark: Mark) {
    if let Some(place) = slots.slots.get(slot as usize) {
        place.lock().unwrap_or_else(|e| e.into_inner()).unused.push(slots.stack(slot, mark.0));
    }
}

/// Nobody comes to this stack any more, but for the comparison that finds its record dead.
pub fn retire(slots: &Slots, slot: u32, mark: Mark) {
    if !slots.retire(slot, mark.0) {
        mark.kill();
        shrink(mark);
    }
}

/// What lies below the pages near the record is not kept while its user's instance is reset.
pub fn shrink(mark: Mark) {
    let begin = mark.0 - (RETURN_STACK - 1) + PAGE;
    os::discard(begin, RETURN_STACK - 2 * PAGE);
}

/// Maps data stack `index` and fills in its thread-local variables. The top of the stack below them.
pub fn make_data_stack(shared: &Shared, index: u32) -> Result<u64, Error> {
    let end = data_stack_end(shared, index);
    os::stack(end - DATA_STACK + PAGE, DATA_STACK - PAGE).map_err(system("making a data stack"))?;
    let tls = shared.module.tls();
    let mut top = end;
    if tls.bytes > 0 {
        top = end - u64::from(tls.bytes).next_multiple_of(u64::from(tls.align));
        shared.poke(top - shared.base, shared.module.tls_template())?;
    }
    Ok(top & !63)
}

pub fn data_stack_end(shared: &Shared, index: u32) -> u64 {
    shared.base + DATA_STACKS_END - u64::from(index) * DATA_STACK
}

/// Fills in the record of a stack for a thread in an instance.
pub fn furnish(mark: Mark, shared: &Shared, thread: &Thread, home: Mark, data_top: u64, data_limit: u64) {
    let top = mark.0 + 1 - record::BYTES as u64;
    // Words that a portal has not written yet must not look like an outstanding call.
    (1..=4).for_each(|i| mark.poke(top - i * 8, 0));
    let words = [
        (record::TOP, top),
        (record::BOTTOM, top),
        (record::DATA, data_top),
        (record::DATA_BOTTOM, data_top),
        (record::DATA_LIMIT, data_limit),
        (record::HOME, home.0),
        (record::QUEUE, 0),
        (record::LINKS, if mark == home { thread.links(shared.slot) } else { 0 }),
        (record::DOMAIN, shared as *const Shared as u64),
        (record::THREAD, thread as *const Thread as u64),
        (record::INSTANCE, shared as *const Shared as u64),
        (record::WORDS, thread::words() as *const Words as u64),
        (record::STACK_LIMIT, thread.stack_limit),
        (record::SIBLING, 0),
        (record::SLOT, shared.base >> 32 | u64::from(thread.number) << 32),
    ];
    words.into_iter().for_each(|(field, value)| mark.set(field, value));
}

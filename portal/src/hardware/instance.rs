//! Forms that were verified, and the portals that are made of them.
//!
//! Problem: what was compiled and verified once serves every connection of its kind, and nothing that was not
//! verified may ever be entered.
//! Strategy: whoever has a [`Form`] has one that the verifier accepted, for nobody can make another, or change
//! it. A portal is written where it will be executed: the form is copied there and read back, each hole is
//! filled with what the connection has for it, and the verifier reads each hole there, against what it finds by
//! itself.
//!
//! * No draft of a portal lies between: all words but the holes are the form's, and were seen where they lie.
//! * All holes of a form are known, so none is left open.
//! * What the verifier refuses nobody is led to; it was never anybody's.

use super::hole::{Hole, Values};
use super::verify::{self, Reason, Refusal, Room, Standing};
use super::{Code, Connection, Domain, MAX_WORDS, Shape};
use crate::{Processor, Spec};
use alloc::vec::Vec;
use core::ops::Range;
use core::slice;

/// Where portals are written, by double words from the place's beginning.
pub trait Site {
    /// From the beginning on; whether each was read back there as it is.
    fn copy(&mut self, doubles: &[u64]) -> bool;
    fn set(&mut self, at: usize, double: u64);
    fn get(&self, at: usize) -> u64;
}

impl Site for Vec<u64> {
    fn copy(&mut self, doubles: &[u64]) -> bool {
        self[..doubles.len()].copy_from_slice(doubles);
        self[..doubles.len()] == *doubles
    }

    fn set(&mut self, at: usize, double: u64) {
        self[at] = double;
    }

    fn get(&self, at: usize) -> u64 {
        self[at]
    }
}

/// A symbol of a form: which double word it is, and what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub at: u16,
    pub hole: Hole,
}

/// What the verifier has accepted; or nothing.
#[derive(Default)]
pub struct Form {
    doubles: Vec<u64>,
    holes: Vec<Place>,
}

impl Form {
    /// No form, but memory for any.
    pub fn spacious() -> Self {
        Form { doubles: Vec::with_capacity(MAX_WORDS / 2), holes: Vec::with_capacity(MAX_WORDS / 2) }
    }

    /// Becomes that which was compiled, if the verifier accepts it; if not, nothing.
    pub fn accept(
        &mut self,
        room: &mut Room,
        code: &Code,
        spec: &Spec,
        shape: Shape,
        c: &Connection,
        processor: Processor,
    ) -> Result<(), Refusal> {
        self.doubles.clear();
        self.holes.clear();
        verify::form_in(room, &code.words, spec, shape, c, processor)?;
        self.doubles.extend(code.doubles());
        let symbol = |(at, double): (u16, &u64)| Some(Place { at, hole: Hole::of(*double)? });
        self.holes.extend((0..).zip(&self.doubles).filter_map(symbol));
        Ok(())
    }

    /// The same once more, in no more memory than it takes; none without memory.
    pub fn try_clone(&self) -> Option<Form> {
        let mut form = Form::default();
        form.doubles.try_reserve_exact(self.doubles.len()).ok()?;
        form.holes.try_reserve_exact(self.holes.len()).ok()?;
        form.doubles.extend_from_slice(&self.doubles);
        form.holes.extend_from_slice(&self.holes);
        Some(form)
    }

    pub fn doubles(&self) -> &[u64] {
        &self.doubles
    }

    pub fn holes(&self) -> &[Place] {
        &self.holes
    }

    /// Writes the portal of this connection. Whoever is refused leads nobody there.
    pub fn place(
        &self,
        site: &mut impl Site,
        shape: Shape,
        c: &Connection,
        processor: Processor,
    ) -> Result<(), Refusal> {
        let Form { doubles, holes } = self;
        copy(doubles, site)?;
        fill(doubles, holes, site, &Values::of(c, shape, processor));
        verify::instance(doubles, holes, |at| site.get(at), &Standing::of(c, shape, processor))
    }
}

/// All words, of which those stay that are no holes.
#[inline(always)]
fn copy(form: &[u64], site: &mut impl Site) -> Result<(), Refusal> {
    if site.copy(form) { Ok(()) } else { Err(Refusal { at: 0, reason: Reason::Unlike }) }
}

/// Each of these holes.
#[inline(always)]
fn fill(form: &[u64], holes: &[Place], site: &mut impl Site, values: &Values) {
    for place in holes {
        let at = usize::from(place.at);
        site.set(at, values.stands_for(place.hole, form[at]));
    }
}

/// Portals of one caller, one behind the other, for callers of one kind: of calls, neither counted nor for
/// anybody else. Of their holes those are left that the caller decides.
#[derive(Default)]
pub struct Block {
    doubles: Vec<u64>,
    holes: Vec<Place>,
    parts: Vec<Part>,
}

/// What differs between the portals of one caller.
struct Part {
    callee: u16,
    index: u16,
    /// Its holes.
    holes: Range<u16>,
}

impl Block {
    /// One more portal of this connection, whoever's it will be: its double words in the block. It begins where
    /// the last one's `unit` ends. `None`: there is no memory for it, or the verifier refuses it; then the block is
    /// of no use any more.
    pub fn add(
        &mut self,
        form: &Form,
        unit: usize,
        c: &Connection,
        processor: Processor,
    ) -> Option<Range<usize>> {
        if c.counter.is_some() || c.subject != 0 {
            return None;
        }
        let (first, from) = (self.doubles.len(), self.holes.len() as u16);
        let room = form.doubles.len().next_multiple_of(unit);
        self.doubles.try_reserve(room).ok()?;
        self.holes.try_reserve(form.holes.len()).ok()?;
        self.parts.try_reserve(1).ok()?;
        let end = u16::try_from(first + room).ok()?;
        let values = Values::of(c, Shape::Call, processor);
        let standing = Standing::of(c, Shape::Call, processor);
        self.doubles.extend_from_slice(&form.doubles);
        for place in &form.holes {
            let at = first + usize::from(place.at);
            if place.hole.is_callers() {
                self.holes.push(Place { at: at as u16, hole: place.hole });
            } else {
                self.doubles[at] = values.stands_for(place.hole, self.doubles[at]);
                let filled = |at: usize| self.doubles[first + at];
                verify::instance(&form.doubles, slice::from_ref(place), filled, &standing).ok()?;
            }
        }
        self.doubles.resize(end.into(), 0);
        let holes = from..self.holes.len() as u16;
        self.parts.push(Part { callee: c.callee.asid, index: c.index, holes });
        Some(first..first + form.doubles.len())
    }

    pub fn doubles(&self) -> &[u64] {
        &self.doubles
    }

    /// Writes all of this caller's portals. Whoever is refused leads nobody there.
    pub fn place(&self, site: &mut impl Site, caller: &Domain, processor: Processor) -> Result<(), Refusal> {
        let Block { doubles, holes, parts } = self;
        copy(doubles, site)?;
        let c = Connection { caller: *caller, ..Connection::default() };
        let mut values = Values::of(&c, Shape::Call, processor);
        let mut standing = Standing::of(&c, Shape::Call, processor);
        parts.iter().try_for_each(|part| {
            let holes = &holes[usize::from(part.holes.start)..usize::from(part.holes.end)];
            values.describe(caller.asid, part.callee, part.index);
            fill(doubles, holes, site, &values);
            standing.describe(caller.asid, part.callee, part.index);
            verify::instance(doubles, holes, |at| site.get(at), &standing)
        })
    }
}

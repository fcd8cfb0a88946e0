//! Forms of portals: what was compiled and verified once serves every connection of its kind.
//!
//! **Problem.** To compile and verify a portal takes ten thousand instructions, and nearly all portals that
//! are opened are like others that were opened before: the same specification between domains of one kind.
//! **Strategy.** The [form](pebble_portal::hardware::hole) is kept. A portal is a copy of it with its holes
//! filled, and the verifier compares the two, word by word, before the portal is placed.
//!
//! * A form is kept only if the verifier has accepted it.
//! * Forms name no domain: whose connection a form was made for makes no difference.
//! * A template may be registered anew, so a specification with letters of servers has no form here.
//! * There are [`MOST`] at most. Whoever opens what nobody else does makes others compile again, and no more.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::mem;
use pebble_portal::hardware::hole::{Facts, Hole, Values};
use pebble_portal::hardware::{Code, CompileError, Connection, Shape, form_into, verify};
use pebble_portal::{Processor, Spec};

/// A form has some 700 bytes.
const MOST: usize = 40;

/// What makes a form: two connections that agree in this have the same.
#[derive(Clone, PartialEq, Eq)]
struct Kind {
    /// [`Facts::bits`], and above them which shape: a semaphore's number is no part of it.
    facts: u32,
    spec: Spec,
}

struct Form {
    kind: Kind,
    words: Box<[u32]>,
    /// Where its symbols are.
    holes: Box<[u16]>,
}

/// Where portals are made: a server's stacks are short.
#[derive(Default)]
pub(crate) struct Forms {
    /// The one that was used last is the first.
    kept: Vec<Form>,
    /// The portal that was made last.
    pub code: Code,
    form: Code,
    room: verify::Room,
}

impl Forms {
    /// Makes a portal, in [`Forms::code`]. Whether the verifier agrees.
    pub fn make(
        &mut self,
        spec: &Spec,
        shape: Shape,
        c: &Connection,
        processor: Processor,
    ) -> Result<bool, CompileError> {
        let values = Values::of(c, shape, processor);
        let Some(facts) = kept(spec, shape, &Facts::of(c)) else {
            let right = self.form(spec, shape, c, processor)?;
            self.code.words.clear();
            let fits = self.code.words.try_extend_from_slice(&self.form.words).is_ok();
            self.code.fill(&values);
            return Ok(right && fits && self.is_instance(None, shape, c, processor));
        };
        let at = match self.kept.iter().position(|form| form.kind.facts == facts && form.kind.spec == *spec) {
            Some(at) => at,
            None if !self.form(spec, shape, c, processor)? => return Ok(false),
            None => self.keep(Kind { facts, spec: spec.clone() }),
        };
        // Seldom far: what is opened now is opened again.
        self.kept[..=at].rotate_right(1);
        let form = &self.kept[0];
        self.code.words.clear();
        let fits = self.code.words.try_extend_from_slice(&form.words).is_ok();
        for hole in &form.holes {
            let at = usize::from(*hole);
            if let Some([low, high]) = self.code.words.get_mut(at..at + 2).and_then(|w| w.first_chunk_mut())
                && let Some(value) = values.fill(*low, *high)
            {
                (*low, *high) = (value as u32, (value >> 32) as u32);
            }
        }
        Ok(fits && self.is_instance(Some(0), shape, c, processor))
    }

    /// Of the form at this place, or of the one that was compiled last.
    fn is_instance(&self, at: Option<usize>, shape: Shape, c: &Connection, processor: Processor) -> bool {
        let form = at.map_or(&self.form.words[..], |at| &self.kept[at].words);
        verify::instance(form, &self.code.words, shape, c, processor).is_ok()
    }

    /// Compiles and verifies a form.
    fn form(
        &mut self,
        spec: &Spec,
        shape: Shape,
        c: &Connection,
        processor: Processor,
    ) -> Result<bool, CompileError> {
        self.form.clear();
        form_into(spec, shape, c, processor, &mut self.form)?;
        Ok(verify::form_in(&mut self.room, &self.form.words, spec, shape, c, processor).is_ok())
    }

    /// The form that was compiled last, in place of the one that was not used for longest.
    fn keep(&mut self, kind: Kind) -> usize {
        let words: Box<[u32]> = self.form.words.as_slice().into();
        let pairs = words.as_chunks::<2>().0.iter().zip((0..).step_by(2));
        let holes = pairs.filter(|([_, high], _)| Hole::of(*high).is_some()).map(|(_, at)| at).collect();
        let form = Form { kind, words, holes };
        if self.kept.len() < MOST {
            self.kept.push(form);
        } else if let Some(last) = self.kept.last_mut() {
            drop(mem::replace(last, form));
        }
        self.kept.len() - 1
    }
}

/// The facts and the shape, of portals whose form is kept.
fn kept(spec: &Spec, shape: Shape, facts: &Facts) -> Option<u32> {
    let shape = match shape {
        Shape::Call => 1,
        Shape::Wait(_) => 2,
        Shape::Signal(_) => 3,
        Shape::Tail => 4,
        _ => return None,
    };
    let letters = spec.templates().next().is_some();
    (!letters).then_some(facts.bits() | shape << Facts::BITS)
}

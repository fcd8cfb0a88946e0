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
//! * There are [`MOST`] at most. One that is used moves one place to the front, a new one comes into the
//!   middle: whoever opens what nobody else does takes no place of those that everybody uses.

use alloc::boxed::Box;
use alloc::vec::Vec;
use arrayvec::ArrayVec;
use pebble_portal::hardware::hole::{Facts, Hole, Values};
use pebble_portal::hardware::verify::{self, instance, symbols};
use pebble_portal::hardware::{Code, CompileError, Connection, MAX_WORDS, Shape, form_into};
use pebble_portal::{Processor, Spec};

/// A form has some 700 bytes.
const MOST: usize = 40;

/// Two connections of one kind, with the same specification, have the same form.
struct Form {
    spec: Spec,
    doubles: Vec<u64>,
    /// Where its symbols are.
    holes: Vec<u16>,
    constant: Constant,
}

/// The double word of a portal where its constant is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Constant {
    /// It has none.
    None,
    At(u16),
    /// Not known, or more than one.
    #[default]
    Unknown,
}

impl Constant {
    fn of(doubles: &[u64], holes: &[u16]) -> Self {
        let is =
            |at: &&u16| doubles.get(usize::from(**at)).copied().and_then(Hole::of) == Some(Hole::Constant);
        let mut places = holes.iter().filter(is);
        match (places.next(), places.next()) {
            (None, _) => Constant::None,
            (Some(at), None) if doubles[usize::from(*at)] == Hole::Constant.symbol() => Constant::At(*at),
            _ => Constant::Unknown,
        }
    }
}

/// The forms that are kept, and where portals are made.
#[derive(Default)]
pub(crate) struct Forms {
    kept: Vec<Form>,
    /// Kinds and numbers of the kept, those that are used much in front.
    order: ArrayVec<(u32, u8), MOST>,
    draft: Box<Draft>,
}

/// Not on the stack: a server's are short.
#[derive(Default)]
struct Draft {
    /// The form that was compiled last, the portal that was made last.
    form: Code,
    portal: ArrayVec<u64, { MAX_WORDS / 2 }>,
    constant: Constant,
    room: verify::Room,
}

impl Forms {
    /// Makes a portal, in [`Forms::portal`]. Whether the verifier agrees.
    pub fn make(
        &mut self,
        spec: &Spec,
        shape: Shape,
        c: &Connection,
        processor: Processor,
    ) -> Result<bool, CompileError> {
        let kind = kind(spec, shape, &Facts::of(c));
        let kept = match kind.and_then(|kind| self.find(kind, spec)) {
            None if !self.form(spec, shape, c, processor)? => return Ok(false),
            None => kind.and_then(|kind| self.keep(kind, spec)),
            kept => kept,
        };
        // Not before: the stack must suffice for compiling too.
        let values = Values::of(c, shape, processor);
        let Draft { form, portal, constant, .. } = &mut *self.draft;
        portal.clear();
        let Some(kept) = kept else {
            *constant = Constant::Unknown;
            portal.extend(form.doubles().map(|double| values.fill(double).unwrap_or(double)));
            let symbols = symbols(form.doubles());
            return Ok(instance(form.doubles(), symbols, portal, shape, c, processor).is_ok());
        };
        let form = &self.kept[usize::from(kept)];
        *constant = form.constant;
        let fits = portal.try_extend_from_slice(&form.doubles).is_ok();
        for at in &form.holes {
            if let Some(hole) = portal.get_mut(usize::from(*at)) {
                *hole = values.fill(*hole).unwrap_or(*hole);
            }
        }
        Ok(fits
            && instance(form.doubles.iter().copied(), form.holes.len(), portal, shape, c, processor).is_ok())
    }

    /// The portal that was made last.
    pub fn portal(&self) -> &[u64] {
        &self.draft.portal
    }

    /// The form of such a portal, made anew if others have taken its place; none where none is kept.
    pub fn of(&mut self, spec: &Spec, shape: Shape, c: &Connection, processor: Processor) -> Option<&[u64]> {
        let kind = kind(spec, shape, &Facts::of(c))?;
        let kept = match self.find(kind, spec) {
            None if self.form(spec, shape, c, processor) == Ok(true) => self.keep(kind, spec),
            kept => kept,
        }?;
        Some(&self.kept[usize::from(kept)].doubles)
    }

    /// Where its constant is.
    pub fn constant(&self) -> Constant {
        self.draft.constant
    }

    /// The number of such a form, if it is kept.
    #[inline(never)]
    fn find(&mut self, kind: u32, spec: &Spec) -> Option<u8> {
        let is = |(k, n): &(u32, u8)| *k == kind && self.kept[usize::from(*n)].spec == *spec;
        let at = self.order.iter().position(is)?;
        let (_, found) = self.order[at];
        if let Some(before) = at.checked_sub(1) {
            self.order.swap(at, before);
        }
        Some(found)
    }

    /// Compiles and verifies a form.
    #[inline(never)]
    fn form(
        &mut self,
        spec: &Spec,
        shape: Shape,
        c: &Connection,
        processor: Processor,
    ) -> Result<bool, CompileError> {
        let Draft { form, room, .. } = &mut *self.draft;
        form.clear();
        form_into(spec, shape, c, processor, form)?;
        Ok(verify::form_in(room, &form.words, spec, shape, c, processor).is_ok())
    }

    /// Keeps the form that was compiled last, in place of the one behind all others, and in the middle. Its
    /// number; without memory for it, it is not kept.
    #[inline(never)]
    fn keep(&mut self, kind: u32, spec: &Spec) -> Option<u8> {
        let mut doubles = Vec::new();
        if doubles.try_reserve_exact(self.draft.form.words.len().div_ceil(2)).is_err()
            || self.kept.len() < MOST && self.kept.try_reserve(1).is_err()
        {
            return None;
        }
        doubles.extend(self.draft.form.doubles());
        let places = || (0..).zip(&doubles).filter(|(_, double)| Hole::of(**double).is_some());
        let mut holes = Vec::new();
        holes.try_reserve_exact(places().count()).ok()?;
        holes.extend(places().map(|(at, _)| at));
        let constant = Constant::of(&doubles, &holes);
        let form = Form { spec: spec.clone(), doubles, holes, constant };
        if self.kept.len() < MOST {
            self.order.push((kind, self.kept.len() as u8));
            self.kept.push(form);
        } else if let Some((last_kind, last)) = self.order.last_mut() {
            *last_kind = kind;
            self.kept[usize::from(*last)] = form;
        }
        let middle = self.order.len() / 2;
        let behind = self.order.get_mut(middle..)?;
        behind.rotate_right(1);
        behind.first().map(|(_, number)| *number)
    }
}

/// What makes a form, beside the specification: the facts, and above them which shape. A semaphore's number is
/// no part of it. `None`: such forms are not kept.
#[inline(always)]
fn kind(spec: &Spec, shape: Shape, facts: &Facts) -> Option<u32> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use pebble_abi::map;
    use pebble_arch::{Arch, Mips64, Riscv64};
    use pebble_portal::hardware::{Domain, compile};

    const PROCESSORS: [(Processor, fn(u16, u64) -> u64); 2] =
        [(Processor::Riscv64, Riscv64::space), (Processor::Mips64, Mips64::space)];

    fn domain(asid: u16, space: fn(u16, u64) -> u64, bits: u32) -> Domain {
        let is = |n: u32| bits & 1 << n != 0;
        let page = |n: u64| map::direct(0x8200_0000 + (u64::from(asid) * 2 + n) * map::PAGE);
        Domain {
            asid,
            space: space(asid, 0x8100_0000 + u64::from(asid) * map::PAGE),
            float: is(0),
            exclusive: is(1),
            fixed_stack: if is(1) { map::stack_top(asid, 0) } else { 0 },
            l1: if is(2) { page(0) } else { 0 },
            windows: if is(3) { page(1) } else { 0 },
            trusted: is(4) && !is(0),
        }
    }

    fn spec(text: &str) -> Spec {
        Spec::parse(text).expect("a good specification")
    }

    /// Whatever was made before, a portal is what is compiled for it alone, and so is a refusal.
    #[test]
    fn a_kept_form_gives_what_compiling_gives() {
        let specs = ["sm", "npcii", "smcii", "npw", "npg2", "nm=o", "npadh=c", "sfi", "nmb", "npr300>6"];
        for (processor, space) in PROCESSORS {
            let mut forms = Forms::default();
            let mut seed = 0x9e37_79b9_7f4a_7c15u64;
            let mut next = |n: u64| {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (seed >> 33) % n
            };
            let mut refused = 0;
            for _ in 0..4000 {
                let spec = spec(specs[next(specs.len() as u64) as usize]);
                let (caller, callee) = (2 + next(4) as u16, 7 + next(4) as u16);
                let c = Connection {
                    caller: domain(caller, space, next(32) as u32),
                    callee: domain(callee, space, next(32) as u32),
                    entry: 0x10_0000 + next(1 << 20) * 4,
                    index: next(4096) as u16,
                    constant: next(1 << 40),
                    counter: [None, Some(next(256) as u16)][next(2) as usize],
                    keeps_status: next(8) == 0,
                    subject: [0, 12][next(2) as usize],
                    ..Connection::default()
                };
                let id = next(1000) as u16;
                let shape = match (next(8), spec.windows().next()) {
                    (0, None) => Shape::Wait(id),
                    (1, None) => Shape::Signal(id),
                    (2, None) => Shape::Tail,
                    _ => Shape::Call,
                };
                let made = forms.make(&spec, shape, &c, processor);
                match compile(&spec, shape, &c, processor) {
                    Ok(code) if made == Ok(true) => {
                        assert_eq!(forms.portal(), code.doubles().collect::<Vec<u64>>(), "{spec}")
                    }
                    // What the compiler makes of odd connections the verifier may refuse, kept or not.
                    Ok(_) => {
                        assert_eq!(made, Ok(false), "{spec}");
                        assert_eq!(Forms::default().make(&spec, shape, &c, processor), Ok(false), "{spec}");
                        refused += 1;
                    }
                    Err(error) => assert_eq!(made, Err(error), "{spec}"),
                }
            }
            assert!(refused < 2000 && forms.kept.len() == MOST, "{refused} refused");
        }
    }

    #[test]
    fn what_is_opened_often_stays_and_what_is_not_goes() {
        let (processor, space) = PROCESSORS[0];
        let c = Connection {
            caller: domain(2, space, 0),
            callee: domain(3, space, 0),
            entry: 0x10_0000,
            ..Connection::default()
        };
        let mut forms = Forms::default();
        let often = spec("npcii");
        for results in 1..=6 {
            for words in 0..=5 {
                let seldom = |state| spec(&format!("n{state}{}>{results}", "i".repeat(words)));
                for spec in [&often, &seldom('m'), &seldom('p')] {
                    assert_eq!(forms.make(spec, Shape::Call, &c, processor), Ok(true));
                }
            }
        }
        assert_eq!(forms.kept.len(), MOST);
        assert!(forms.kept.iter().any(|form| form.spec == often));
        assert!(!forms.kept.iter().any(|form| form.spec == spec("nm>1")));
    }

    #[test]
    fn letters_of_servers_have_no_form() {
        let facts = Facts::default();
        assert!(kind(&spec("npi"), Shape::Call, &facts).is_some());
        assert!(kind(&spec("npk"), Shape::Call, &facts).is_none());
        assert!(kind(&spec("npT"), Shape::Call, &facts).is_none());
    }
}

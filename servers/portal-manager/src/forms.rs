//! Forms of portals: what was compiled and verified once serves every connection of its kind.
//!
//! **Problem.** To compile and verify a portal takes ten thousand instructions, and nearly all portals that
//! are opened are like others that were opened before: the same specification between domains of one kind.
//! **Strategy.** The [form](pebble_portal::hardware::instance) is kept. A portal is a copy of it with its holes
//! filled, and the verifier looks at each of them, before anybody is led to the portal.
//!
//! * Forms name no domain: whose connection a form was made for makes no difference.
//! * A template may be registered anew, so a specification with letters of servers has no form here.
//! * There are [`MOST`] at most. One that is used moves one place to the front, a new one comes into the
//!   middle: whoever opens what nobody else does takes no place of those that everybody uses.

use crate::interfaces::Written;
use alloc::boxed::Box;
use alloc::vec::Vec;
use arrayvec::ArrayVec;
use pebble_portal::hardware::hole::{Facts, Hole};
use pebble_portal::hardware::instance::Form;
use pebble_portal::hardware::verify;
use pebble_portal::hardware::{Code, CompileError, Connection, Shape, form_into};
use pebble_portal::{Processor, Spec};

/// A form has some 700 bytes.
const MOST: usize = 40;

/// A form that is kept: two connections of one kind, with the same specification, have the same.
struct Kept {
    text: [u64; 2],
    form: Form,
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
    fn of(form: &Form) -> Self {
        let mut places = form.holes().iter().filter(|place| place.hole == Hole::Constant);
        match (places.next(), places.next()) {
            (None, _) => Constant::None,
            (Some(place), None) if form.doubles()[usize::from(place.at)] == Hole::Constant.symbol() => {
                Constant::At(place.at)
            }
            _ => Constant::Unknown,
        }
    }
}

/// The forms that are kept, and where new ones are made.
#[derive(Default)]
pub(crate) struct Forms {
    kept: Vec<Kept>,
    /// Kinds and numbers of the kept, those that are used much in front.
    order: ArrayVec<(u32, u8), MOST>,
    draft: Box<Draft>,
}

/// Not on the stack: a server's are short.
struct Draft {
    /// What was compiled last, and accepted last.
    code: Code,
    form: Form,
    room: verify::Room,
}

impl Default for Draft {
    fn default() -> Self {
        Draft { code: Code::default(), form: Form::spacious(), room: verify::Room::default() }
    }
}

impl Forms {
    /// The form of such a portal, and where its constant is. None, if the verifier accepts none.
    #[inline(always)]
    pub fn of(
        &mut self,
        Written { spec, text, lettered }: Written,
        shape: Shape,
        c: &Connection,
        processor: Processor,
    ) -> Result<Option<(&Form, Constant)>, CompileError> {
        let kind = if lettered { None } else { kind(shape, &Facts::of(c)) };
        let kept = match kind.and_then(|kind| self.find(kind, text)) {
            None if !self.make(spec, shape, c, processor)? => return Ok(None),
            None => kind.and_then(|kind| self.keep(kind, text)),
            kept => kept,
        };
        Ok(Some(match kept {
            Some(n) => {
                let Kept { form, constant, .. } = &self.kept[usize::from(n)];
                (form, *constant)
            }
            None => (&self.draft.form, Constant::Unknown),
        }))
    }

    /// The number of such a form, if it is kept.
    fn find(&mut self, kind: u32, text: [u64; 2]) -> Option<u8> {
        let is = |(k, n): &(u32, u8)| {
            // Word by word: `==` would compare bytes.
            let its = self.kept[usize::from(*n)].text;
            *k == kind && its[0] == text[0] && its[1] == text[1]
        };
        let at = self.order.iter().position(is)?;
        let (_, found) = self.order[at];
        if let Some(before) = at.checked_sub(1) {
            self.order.swap(at, before);
        }
        Some(found)
    }

    /// Compiles and verifies a form. Whether the verifier accepts it.
    // Its frame is gone before a portal is placed.
    #[inline(never)]
    fn make(
        &mut self,
        spec: &Spec,
        shape: Shape,
        c: &Connection,
        processor: Processor,
    ) -> Result<bool, CompileError> {
        let Draft { code, form, room } = &mut *self.draft;
        code.clear();
        form_into(spec, shape, c, processor, code)?;
        Ok(form.accept(room, code, spec, shape, c, processor).is_ok())
    }

    /// Keeps the form that was made last, in place of the one behind all others, and in the middle. Its number;
    /// without memory for it, it is not kept.
    #[inline(never)]
    fn keep(&mut self, kind: u32, text: [u64; 2]) -> Option<u8> {
        if self.kept.len() < MOST {
            self.kept.try_reserve(1).ok()?;
        }
        let form = self.draft.form.try_clone()?;
        let constant = Constant::of(&form);
        let new = Kept { text, form, constant };
        if self.kept.len() < MOST {
            self.order.push((kind, self.kept.len() as u8));
            self.kept.push(new);
        } else if let Some((last_kind, last)) = self.order.last_mut() {
            *last_kind = kind;
            self.kept[usize::from(*last)] = new;
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
fn kind(shape: Shape, facts: &Facts) -> Option<u32> {
    let shape = match shape {
        Shape::Call => 1,
        Shape::Wait(_) => 2,
        Shape::Signal(_) => 3,
        Shape::Tail => 4,
        _ => return None,
    };
    Some(facts.bits() | shape << Facts::BITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interfaces::text;
    use alloc::format;
    use alloc::vec;
    use pebble_abi::map;
    use pebble_arch::{Arch, Mips64, Riscv64};
    use pebble_portal::hardware::template::{Template, capability};
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

    /// The portal; `None`: the verifier refuses it.
    fn made(
        forms: &mut Forms,
        spec: &Spec,
        shape: Shape,
        c: &Connection,
        processor: Processor,
    ) -> Result<Option<Vec<u64>>, CompileError> {
        Ok(forms.of(Written::of(spec), shape, c, processor)?.and_then(|(form, _)| {
            let mut portal = vec![0; form.doubles().len()];
            form.place(&mut portal, shape, c, processor).ok().map(|()| portal)
        }))
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
                let portal = made(&mut forms, &spec, shape, &c, processor);
                match compile(&spec, shape, &c, processor) {
                    Ok(code) if matches!(portal, Ok(Some(_))) => {
                        assert_eq!(portal, Ok(Some(code.doubles().collect())), "{spec}")
                    }
                    // What the compiler makes of odd connections the verifier may refuse, kept or not.
                    Ok(_) => {
                        assert_eq!(portal, Ok(None), "{spec}");
                        let alone = made(&mut Forms::default(), &spec, shape, &c, processor);
                        assert_eq!(alone, Ok(None), "{spec}");
                        refused += 1;
                    }
                    Err(error) => assert_eq!(portal, Err(error), "{spec}"),
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
                    assert!(matches!(made(&mut forms, spec, Shape::Call, &c, processor), Ok(Some(_))));
                }
            }
        }
        assert_eq!(forms.kept.len(), MOST);
        assert!(forms.kept.iter().any(|form| form.text == text(&often)));
        assert!(!forms.kept.iter().any(|form| form.text == text(&spec("nm>1"))));
    }

    #[test]
    fn letters_of_servers_have_no_form() {
        assert!(!Written::of(&spec("npi")).lettered);
        let (processor, space) = PROCESSORS[0];
        let templates = [b'k', b'T'].map(|letter| Template { letter, ..capability::template() });
        let c = Connection {
            caller: domain(2, space, 0),
            callee: domain(3, space, 0),
            entry: 0x10_0000,
            templates: &templates,
            ..Connection::default()
        };
        let mut forms = Forms::default();
        for text in ["npk", "npiT"] {
            let _ = made(&mut forms, &spec(text), Shape::Call, &c, processor);
            assert!(forms.kept.is_empty(), "{text}");
        }
        assert!(matches!(made(&mut forms, &spec("npi"), Shape::Call, &c, processor), Ok(Some(_))));
        assert_eq!(forms.kept.len(), 1);
    }
}

//! A portal is its form with every hole filled as its connection says, and nothing else.
//!
//! For every shape on every processor: what is placed is what is compiled, whatever lay there before; each hole
//! that is filled wrongly is refused, and the refusal names it.

mod common;

use common::cases::{self, Case, PROCESSORS};
use pebble_portal::hardware::hole::{Hole, Values};
use pebble_portal::hardware::instance::{Block, Form, Site};
use pebble_portal::hardware::verify::{Reason, Refusal, Room, Standing, instance};
use pebble_portal::hardware::{Connection, Domain, Shape};

/// A case with its form and its portal.
struct Filled {
    case: Case,
    form: Form,
    portal: Vec<u64>,
}

impl Filled {
    fn all() -> impl Iterator<Item = Filled> {
        let every = PROCESSORS.into_iter().flat_map(|on| cases::all().into_iter().map(move |c| c.on(on)));
        every.map(|case| {
            let (mut form, Case { spec, shape, connection, processor, .. }) = (Form::spacious(), &case);
            form.accept(&mut Room::default(), &case.form(), spec, *shape, connection, *processor)
                .unwrap_or_else(|e| panic!("{}: {e}", case.name));
            let portal = case.compile().doubles().collect();
            Filled { case, form, portal }
        })
    }

    fn verdict(&self, portal: &[u64]) -> Result<(), Refusal> {
        let standing = Standing::of(&self.case.connection, self.case.shape, self.case.processor);
        instance(self.form.doubles(), self.form.holes(), |at| portal[at], &standing)
    }

    /// Where the form has symbols, and which.
    fn holes(&self) -> Vec<(usize, Hole)> {
        self.form.holes().iter().map(|place| (place.at.into(), place.hole)).collect()
    }

    fn place(&self, site: &mut impl Site) -> Result<(), Refusal> {
        self.form.place(site, self.case.shape, &self.case.connection, self.case.processor)
    }

    fn refuses_hole(&self, at: usize, hole: Hole, value: u64, what: &str) {
        if value == self.portal[at] {
            return;
        }
        let mut portal = self.portal.clone();
        portal[at] = value;
        let refused = Refusal { at: at * 8, reason: Reason::Hole(hole) };
        let verdict = self.verdict(&portal);
        assert_eq!(verdict, Err(refused), "{} ({:?}): {what}", self.case.name, self.case.processor);
    }
}

/// Memory in which one double word is not written: as what is copied, or as a hole that is filled.
struct Broken {
    memory: Vec<u64>,
    at: usize,
}

impl Site for Broken {
    fn copy(&mut self, doubles: &[u64]) -> bool {
        let kept = self.memory[self.at];
        self.memory.copy(doubles);
        if Hole::of(doubles[self.at]).is_none() {
            self.memory[self.at] = kept;
        }
        self.memory[..doubles.len()] == *doubles
    }

    fn set(&mut self, at: usize, double: u64) {
        if at != self.at {
            self.memory.set(at, double);
        }
    }

    fn get(&self, at: usize) -> u64 {
        self.memory.get(at)
    }
}

/// What was there before: never what is right.
fn garbage(portal: &[u64], behind: usize) -> Vec<u64> {
    portal.iter().map(|double| !double).chain(std::iter::repeat_n(!0, behind)).collect()
}

#[test]
fn what_is_filled_rightly_passes() {
    for p in Filled::all() {
        assert_eq!(p.verdict(&p.portal), Ok(()), "{}", p.case.name);
    }
}

#[test]
fn no_hole_is_filled_with_anything_else() {
    for p in Filled::all() {
        for (at, hole) in p.holes() {
            let right = p.portal[at];
            for bit in 0..64 {
                p.refuses_hole(at, hole, right ^ 1 << bit, "a bit");
            }
            for (value, what) in [
                (p.form.doubles()[at], "left open"),
                (0, "zero"),
                (u64::MAX, "ones"),
                (right.wrapping_add(8), "the next word"),
                (right.wrapping_sub(8), "the word before"),
                (right.swap_bytes(), "bytes turned"),
            ] {
                p.refuses_hole(at, hole, value, what);
            }
        }
    }
}

/// What belongs into another hole of the same portal.
#[test]
fn holes_are_not_mistaken_for_each_other() {
    for p in Filled::all() {
        for (at, hole) in p.holes() {
            for (other, _) in p.holes() {
                p.refuses_hole(at, hole, p.portal[other], "another hole's");
            }
        }
    }
}

/// What would be right for another connection: each of its parts changed, one at a time.
#[test]
fn no_hole_is_filled_for_another_connection() {
    for p in Filled::all() {
        let c = p.case.connection;
        let other = |d: Domain| Domain {
            asid: d.asid ^ 8,
            space: d.space ^ 1 << 20,
            fixed_stack: d.fixed_stack ^ 1 << 16,
            l1: d.l1 ^ 1 << 16,
            windows: d.windows ^ 1 << 16,
            ..d
        };
        let shape = match p.case.shape {
            Shape::Wait(id) => Shape::Wait(id ^ 1),
            Shape::Signal(id) => Shape::Signal(id ^ 1),
            same => same,
        };
        let others = [
            Connection { caller: other(c.caller), ..c },
            Connection { callee: other(c.callee), ..c },
            Connection { caller: c.callee, callee: c.caller, ..c },
            Connection { entry: c.entry ^ 4, ..c },
            Connection { index: c.index ^ 1, ..c },
            Connection { constant: c.constant ^ 1, ..c },
            Connection { counter: c.counter.map(|n| n ^ 1), ..c },
            Connection { subject: c.subject ^ 1, ..c },
        ];
        for wrong in others.into_iter().map(|c| (c, p.case.shape)).chain([(c, shape)]) {
            let values = Values::of(&wrong.0, wrong.1, p.case.processor);
            for (at, hole) in p.holes() {
                let value = values.fill(p.form.doubles()[at]).expect("a hole");
                p.refuses_hole(at, hole, value, "another connection's");
            }
        }
    }
}

#[test]
fn what_is_placed_is_what_is_compiled() {
    for p in Filled::all() {
        let mut site = garbage(&p.portal, 3);
        assert_eq!(p.place(&mut site), Ok(()), "{}", p.case.name);
        let (placed, behind) = site.split_at(p.portal.len());
        assert_eq!(placed, p.portal, "{} ({:?})", p.case.name, p.case.processor);
        assert_eq!(behind, [!0; 3], "{}: nothing behind it is written", p.case.name);
    }
}

/// The verifier looks at what lies there, not at what was to be written.
#[test]
fn a_hole_that_was_not_written_is_seen() {
    for p in Filled::all() {
        for (at, hole) in p.holes() {
            let mut site = Broken { memory: garbage(&p.portal, 0), at };
            let refused = Refusal { at: at * 8, reason: Reason::Hole(hole) };
            assert_eq!(p.place(&mut site), Err(refused), "{}: {hole:?}", p.case.name);
        }
    }
}

/// Nor does anything else differ, be it code or a constant.
#[test]
fn a_word_that_was_not_copied_is_seen() {
    for p in Filled::all() {
        let holes = p.holes();
        for at in (0..p.portal.len()).filter(|at| holes.iter().all(|(hole, _)| hole != at)) {
            let mut site = Broken { memory: garbage(&p.portal, 0), at };
            let refused = Refusal { at: 0, reason: Reason::Unlike };
            assert_eq!(p.place(&mut site), Err(refused), "{}: {at}", p.case.name);
        }
    }
}

/// A form knows all of its symbols, so none is left open.
#[test]
fn every_symbol_is_a_hole() {
    for p in Filled::all() {
        let symbols = p.form.doubles().iter().enumerate();
        let symbols: Vec<_> = symbols.filter_map(|(at, double)| Some((at, Hole::of(*double)?))).collect();
        assert_eq!(p.holes(), symbols, "{}", p.case.name);
    }
}

/// What is refused leaves no form behind, be it that of before.
#[test]
fn nothing_is_made_of_what_is_refused() {
    let mut room = Room::default();
    for mut p in Filled::all() {
        let Case { spec, shape, connection, processor, .. } = p.case.clone();
        let mut code = p.case.form();
        code.words[0] ^= 1 << 30;
        if p.form.accept(&mut room, &code, &spec, shape, &connection, processor).is_err() {
            assert!(p.form.doubles().is_empty() && p.form.holes().is_empty(), "{}", p.case.name);
        } else {
            panic!("{}: a first instruction that was changed", p.case.name);
        }
    }
}

/// Portals of one caller in a block are those that are compiled one by one.
#[test]
fn a_block_is_the_portals_of_its_caller() {
    const UNIT: usize = 8;
    let calls = |p: &Filled| {
        let c = &p.case.connection;
        p.case.shape == Shape::Call && c.counter.is_none() && c.subject == 0 && !c.caller.exclusive
    };
    let mut tried = 0;
    for p in Filled::all().filter(calls) {
        let Case { spec, connection: c, processor, .. } = p.case.clone();
        let mut block = Block::default();
        let others = [3, 40, 7].map(|index| Connection { index, entry: c.entry + 4 * u64::from(index), ..c });
        let parts = others.each_ref().map(|c| block.add(&p.form, UNIT, c, processor).expect("room"));
        let caller = Domain { asid: 77, space: cases::space(processor, 77), ..c.caller };
        let mut site = garbage(block.doubles(), 1);
        assert_eq!(block.place(&mut site, &caller, processor), Ok(()), "{}", p.case.name);
        for (c, part) in others.into_iter().zip(parts) {
            let case = Case { spec: spec.clone(), connection: Connection { caller, ..c }, ..p.case.clone() };
            let portal: Vec<u64> = case.compile().doubles().collect();
            assert!(part.start.is_multiple_of(UNIT));
            assert_eq!(site[part], portal, "{} ({processor:?})", p.case.name);
        }
        assert_eq!(site.last(), Some(&!0));
        let callers = p.holes().into_iter().filter(|(_, hole)| hole.is_callers());
        for at in callers.map(|(at, _)| at) {
            let mut site = Broken { memory: garbage(block.doubles(), 0), at };
            let refusal = block.place(&mut site, &caller, processor);
            assert_eq!(refusal.map_err(|r| r.at), Err(at * 8), "{}", p.case.name);
        }
        tried += 1;
    }
    assert!(tried > 40, "{tried} kinds of call");
}

/// Who counts calls, or calls for another, is in no block.
#[test]
fn a_block_has_plain_calls() {
    let p = Filled::all().find(|p| p.case.shape == Shape::Call).expect("a call");
    let (c, processor) = (p.case.connection, p.case.processor);
    for c in [Connection { counter: Some(1), ..c }, Connection { subject: 9, ..c }] {
        assert!(Block::default().add(&p.form, 8, &c, processor).is_none());
    }
}

/// Else the tests above would say nothing of some.
#[test]
fn every_hole_is_in_some_portal_of_every_processor() {
    for processor in PROCESSORS {
        let found: Vec<Hole> = Filled::all()
            .filter(|p| p.case.processor == processor)
            .flat_map(|p| p.holes())
            .map(|(_, hole)| hole)
            .collect();
        for hole in Hole::ALL {
            assert!(found.contains(&hole), "no portal of {processor:?} has a hole for {hole:?}");
        }
    }
}

//! A portal is its form with every hole filled as its connection says, and nothing else.
//!
//! For every shape on every processor: what is right passes; each hole that is filled wrongly, and each other
//! word that differs in a bit, is refused, and the refusal names it.

mod common;

use common::cases::{self, Case, PROCESSORS};
use pebble_portal::hardware::hole::{Hole, Values};
use pebble_portal::hardware::verify::{Reason, Refusal, instance, symbols};
use pebble_portal::hardware::{Connection, Domain, Shape};
use std::collections::BTreeSet;

/// A case with its form and its portal.
struct Filled {
    case: Case,
    form: Vec<u64>,
    portal: Vec<u64>,
}

impl Filled {
    fn all() -> impl Iterator<Item = Filled> {
        let every = PROCESSORS.into_iter().flat_map(|on| cases::all().into_iter().map(move |c| c.on(on)));
        every.map(|case| {
            let (form, portal) = (case.form().doubles().collect(), case.compile().doubles().collect());
            Filled { case, form, portal }
        })
    }

    fn verdict(&self, portal: &[u64]) -> Result<(), Refusal> {
        let form = self.form.iter().copied();
        instance(
            form.clone(),
            symbols(form),
            portal,
            self.case.shape,
            &self.case.connection,
            self.case.processor,
        )
    }

    /// Where the form has symbols, and which.
    fn holes(&self) -> Vec<(usize, Hole)> {
        self.form.iter().enumerate().filter_map(|(at, double)| Some((at, Hole::of(*double)?))).collect()
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
                (p.form[at], "left open"),
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
                let value = values.fill(p.form[at]).expect("a hole");
                p.refuses_hole(at, hole, value, "another connection's");
            }
        }
    }
}

#[test]
fn nothing_else_may_differ() {
    for p in Filled::all() {
        let holes: BTreeSet<usize> = p.holes().into_iter().map(|(at, _)| at).collect();
        for at in (0..p.form.len()).filter(|at| !holes.contains(at)) {
            for bit in 0..64 {
                let mut portal = p.portal.clone();
                portal[at] ^= 1 << bit;
                let refused = Err(Refusal { at: at * 8, reason: Reason::Unlike });
                assert_eq!(p.verdict(&portal), refused, "{}: bit {bit}", p.case.name);
            }
        }
        let longer: Vec<u64> = p.portal.iter().copied().chain([0]).collect();
        for portal in [&longer[..], &p.portal[..p.portal.len() - 1], &[]] {
            assert!(p.verdict(portal).is_err(), "{}: {} double words", p.case.name, portal.len());
        }
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

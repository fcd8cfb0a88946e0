//! Templates: what `check` accepts does nothing but what templates may, and what it refuses it names.

mod common;

use common::{Rng, cases};
use pebble_abi::map;
use pebble_portal::hardware::template::Condition::{self, *};
use pebble_portal::hardware::template::Operation::{self, *};
use pebble_portal::hardware::template::Register::{self, *};
use pebble_portal::hardware::template::{Template, TemplateErrorKind, capability, decode};

fn with(operations: &[Operation]) -> Template {
    cases::registered(b'Q', operations)
}

fn refused(operations: &[Operation]) -> (usize, TemplateErrorKind) {
    let error = with(operations).check().expect_err("an error");
    (error.at, error.kind)
}

const fn copy(to: Register, from: Register) -> Operation {
    AddNumber { to, a: from, number: 0 }
}

const fn load(at: Register, offset: i16) -> Operation {
    Load { to: Word, at, offset }
}

const fn skip(count: u8) -> Operation {
    Skip { a: Word, condition: Equal, b: Zero, count }
}

#[test]
fn the_capability_template_is_accepted() {
    assert_eq!(capability::template().check(), Ok(()));
    assert!(cases::templates().iter().all(|t| t.check().is_ok()));
}

#[test]
fn what_templates_may_not_is_named() {
    use TemplateErrorKind::{Access, Data, Length, Letter, Written};
    let index = |left, right| [ShiftLeft { to: A, a: Word, by: left }, ShiftRight { to: A, a: A, by: right }];
    let place = Add { to: A, a: A, b: Base };
    let ([wide, wider], [odd, odder]) = (index(51, 48), index(52, 52));
    let cases: [(&[Operation], usize, TemplateErrorKind); 13] = [
        (&[], 0, Length),
        (&[load(Word, 0)], 0, Access),
        (&[load(Base, 2047)], 0, Access),
        (&[load(Base, -8)], 0, Access),
        (&[load(Zero, 8)], 0, Access),
        // Not masked; masked too widely; not aligned; what was masked on one way only.
        (&[Add { to: A, a: Word, b: Base }, Store { from: Zero, at: A, offset: 0 }], 1, Access),
        (&[wide, wider, place, load(A, 0)], 3, Access),
        (&[odd, odder, place, load(A, 0)], 3, Access),
        (
            &[AndNumber { to: A, a: Word, number: 0x7f8 }, skip(1), copy(A, Word), place, load(A, 0)],
            4,
            Access,
        ),
        (&[copy(Base, Word)], 0, Written(Base)),
        (&[Pages { to: Zero, number: 1 }], 0, Written(Zero)),
        (&[skip(2), copy(Word, A)], 0, TemplateErrorKind::Skip),
        (&[copy(Word, A), skip(0)], 1, TemplateErrorKind::Skip),
    ];
    for (operations, at, kind) in cases {
        assert_eq!(refused(operations), (at, kind), "{operations:?}");
    }
    let good = with(&[load(Base, 2040)]);
    assert_eq!(good.check(), Ok(()));
    for bad in [
        Template { data: map::PHYS_VA, ..good.clone() },
        Template { data: good.data + 8, ..good.clone() },
        Template { data_bits: 17, ..good.clone() },
    ] {
        assert_eq!(bad.check().map_err(|e| e.kind), Err(Data));
    }
    assert_eq!(Template { letter: b'w', ..good }.check().map_err(|e| e.kind), Err(Letter));
}

fn holds(a: u64, condition: Condition, b: u64) -> bool {
    let (a, b) = (a as i64, b as i64);
    match condition {
        Equal => a == b,
        Unequal => a != b,
        Less => a < b,
        Greater => a >= b,
    }
}

/// Runs a template that `check` has accepted: no access leaves the private data, and it ends.
fn run(t: &Template, rng: &mut Rng) {
    let mut x: [u64; 7] = core::array::from_fn(|_| rng.next());
    (x[Zero as usize], x[Base as usize]) = (0, t.data);
    let mut at = 0;
    let inside = |address: u64| {
        assert!(address >= t.data && address + 8 <= t.data + (1 << t.data_bits), "{address:#x}");
    };
    while at < t.operations.len() {
        let of = |register: Register| x[register as usize];
        at += 1;
        let (to, value) = match t.operations[at - 1] {
            Load { to, at, offset } => {
                inside(of(at).wrapping_add(offset as u64));
                (to, rng.next())
            }
            Store { at, offset, .. } => {
                inside(of(at).wrapping_add(offset as u64));
                continue;
            }
            Add { to, a, b } => (to, of(a).wrapping_add(of(b))),
            Subtract { to, a, b } => (to, of(a).wrapping_sub(of(b))),
            AddNumber { to, a, number } => (to, of(a).wrapping_add(number as u64)),
            AndNumber { to, a, number } => (to, of(a) & number as u64),
            Pages { to, number } => (to, (number as u64) << 12),
            ShiftLeft { to, a, by } => (to, of(a) << by),
            ShiftRight { to, a, by } => (to, of(a) >> by),
            Skip { a, condition, b, count } => {
                at += if holds(of(a), condition, of(b)) { usize::from(count) } else { 0 };
                continue;
            }
            Refuse { a, condition, b } if holds(of(a), condition, of(b)) => return,
            Refuse { .. } => continue,
        };
        x[to as usize] = value;
    }
}

/// Every bit of the capability template's words flipped: no operation, refused, or as harmless as any.
#[test]
fn damaged_templates_stay_within_their_data() {
    let mut rng = Rng(0x7e3a);
    let good = capability::template();
    let (mut refused, mut accepted) = (0, 0);
    for _ in 0..20_000 {
        let mut words: Vec<u32> = good.operations.iter().map(|o| o.encode()).collect();
        for _ in 0..=rng.below(3) {
            let at = rng.below(words.len());
            words[at] ^= 1 << rng.below(32);
        }
        let damaged = decode(&words).map(|operations| Template { operations, ..good.clone() });
        match damaged.and_then(|t| t.check().map(|()| t)) {
            Ok(t) => {
                accepted += 1;
                (0..8).for_each(|_| run(&t, &mut rng));
            }
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 1000 && accepted > 1000, "{refused} refused, {accepted} accepted");
}

fn free(rng: &mut Rng) -> Register {
    [Word, A, B, Caller, Callee][rng.below(5)]
}

/// An index below `2^bits`, a multiple of 8, of whatever is in `from`.
fn index(to: Register, from: Register, bits: u8) -> [Operation; 2] {
    [ShiftLeft { to, a: from, by: 64 - bits + 3 }, ShiftRight { to, a: to, by: 64 - bits }]
}

/// Good templates of one kind or another, of up to 20 operations.
fn sample(rng: &mut Rng) -> Vec<Operation> {
    let mut operations = Vec::new();
    for _ in 0..1 + rng.below(4) {
        let (a, b) = (free(rng), free(rng));
        let offset = rng.below(256) as i16 * 8;
        operations.extend(match rng.below(5) {
            0 => vec![Load { to: a, at: Base, offset }],
            1 => vec![Store { from: a, at: Base, offset }],
            2 => {
                let [low, high] = index(a, b, 4 + rng.below(9) as u8);
                let place = Add { to: a, a, b: Base };
                vec![forget(b), low, high, place, Load { to: b, at: a, offset: 0 }]
            }
            3 => vec![
                Skip { a, condition: Less, b, count: 1 },
                AddNumber { to: a, a: b, number: rng.below(2000) as i16 },
            ],
            _ => vec![forget(a), Pages { to: b, number: rng.below(4096) as i16 - 2048 }],
        });
    }
    operations
}

/// Nothing is known of it from here on.
const fn forget(x: Register) -> Operation {
    Subtract { to: x, a: x, b: x }
}

/// What a component might smuggle in: each kind, at any place of any good template, at least 200 times.
#[test]
fn mutants_that_touch_what_they_may_not_are_refused() {
    use TemplateErrorKind::{Access, Written};
    type Mutate = fn(&mut Rng) -> Vec<Operation>;
    fn before(r: &mut Rng) -> i16 {
        -8 * (1 + r.below(256) as i16)
    }
    fn behind(r: &mut Rng) -> i16 {
        r.below(256) as i16 * 8
    }
    let kinds: [(&str, TemplateErrorKind, Mutate); 14] = [
        ("store before the data", Access, |r| vec![Store { from: free(r), at: Base, offset: before(r) }]),
        ("load before the data", Access, |r| vec![Load { to: free(r), at: Base, offset: before(r) }]),
        ("store at any address", Access, |r| {
            let x = free(r);
            vec![forget(x), Store { from: free(r), at: x, offset: behind(r) }]
        }),
        ("load at any address", Access, |r| {
            let x = free(r);
            vec![forget(x), Load { to: free(r), at: x, offset: behind(r) }]
        }),
        ("load at no address", Access, |r| vec![Load { to: free(r), at: Zero, offset: behind(r) }]),
        ("half aligned", Access, |r| {
            let offset = (behind(r) + 1 + r.below(7) as i16) & 2047;
            vec![Load { to: free(r), at: Base, offset }]
        }),
        ("index not masked", Access, |r| {
            let x = free(r);
            vec![forget(x), Add { to: x, a: x, b: Base }, Store { from: free(r), at: x, offset: 0 }]
        }),
        ("index masked too widely", Access, |r| {
            let x = free(r);
            let [low, high] = index(x, x, 13 + r.below(40) as u8);
            let place = Add { to: x, a: x, b: Base };
            vec![forget(x), low, high, place, Store { from: free(r), at: x, offset: 0 }]
        }),
        ("index not aligned", Access, |r| {
            let x = free(r);
            let low = ShiftLeft { to: x, a: x, by: 52 + r.below(3) as u8 };
            let (high, place) = (ShiftRight { to: x, a: x, by: 52 }, Add { to: x, a: x, b: Base });
            vec![forget(x), low, high, place, Load { to: free(r), at: x, offset: 0 }]
        }),
        ("index changed", Access, |r| {
            let x = free(r);
            let [low, high] = index(x, x, 12);
            let by = AddNumber { to: x, a: x, number: 1 + r.below(2000) as i16 };
            let place = Add { to: x, a: x, b: Base };
            vec![forget(x), low, high, place, by, Store { from: free(r), at: x, offset: 0 }]
        }),
        ("beyond what the index leaves", Access, |r| {
            let x = free(r);
            let [low, high] = index(x, x, 12);
            let place = Add { to: x, a: x, b: Base };
            let offset = 8 * (1 + r.below(255) as i16);
            vec![forget(x), low, high, place, Load { to: free(r), at: x, offset }]
        }),
        ("base written", Written(Base), |r| vec![AddNumber { to: Base, a: Base, number: behind(r) }]),
        ("nothing written", Written(Zero), |r| vec![Load { to: Zero, at: Base, offset: behind(r) }]),
        ("skip beyond the end", TemplateErrorKind::Skip, |r| {
            vec![Skip { a: free(r), condition: Equal, b: free(r), count: 64 + r.below(190) as u8 }]
        }),
    ];
    let mut rng = Rng(0x1e77e5);
    for (what, kind, mutate) in kinds {
        for n in 0..250 {
            let mut operations = sample(&mut rng);
            assert_eq!(with(&operations).check(), Ok(()), "a sample: {operations:?}");
            // Where the sample does not skip: what is known there is then what the mutant says.
            let skips = |at: &usize| matches!(operations[at - 1], Skip { .. });
            let places: Vec<usize> = (0..=operations.len()).filter(|at| *at == 0 || !skips(at)).collect();
            let at = places[rng.below(places.len())];
            let mutant = mutate(&mut rng);
            let last = at + mutant.len() - 1;
            operations.splice(at..at, mutant);
            let error = with(&operations).check().expect_err(what);
            assert_eq!((error.at, error.kind), (last, kind), "{what} {n}: {operations:?}");
        }
    }
}

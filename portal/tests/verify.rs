//! The verifier accepts what the compiler makes, and nothing that differs from it in meaning.
//!
//! Mutants are made from one portal of every shape, instruction by instruction. A mutant that means the same
//! as its original is never made, or skipped with its reason; so each one left must be refused.

mod common;

use common::Rng;
use common::cases::{self, Case};
use common::words::{Kind, Mips, Rv, Words};
use core::marker::PhantomData;
use pebble_abi::status;
use pebble_portal::Processor;
use pebble_portal::hardware::instance::Form;
use pebble_portal::hardware::verify::{Room, Standing};
use pebble_portal::hardware::{Code, Connection, Domain, Shape, Short, verify};
use proptest::prelude::*;

const PER_KIND: usize = 200;

/// Of words with symbols in them.
fn verdict(case: &Case, words: &[u32]) -> Result<(), String> {
    verify::form(words, &case.spec, case.shape, &case.connection, case.processor).map_err(|e| e.to_string())
}

/// Whether what was made for one portal passes for another.
fn passes(made: &Case, claimed: &Case) -> bool {
    let portal: Vec<u64> = made.compile().doubles().collect();
    let standing = Standing::of(&claimed.connection, claimed.shape, claimed.processor);
    // If such a form is accepted for what is claimed, what was made is a copy of it but for its holes.
    let instance = |code: &Code| {
        let mut form = Form::spacious();
        let Case { spec, shape, connection, processor, .. } = claimed;
        if form.accept(&mut Room::default(), code, spec, *shape, connection, *processor).is_err() {
            return false;
        }
        let hole = |at: usize| form.holes().iter().any(|place| usize::from(place.at) == at);
        let alike = form.doubles().iter().zip(&portal).enumerate();
        form.doubles().len() == portal.len()
            && alike.into_iter().all(|(at, (form, double))| hole(at) || form == double)
            && verify::instance(form.doubles(), form.holes(), |at| portal[at], &standing).is_ok()
    };
    instance(&made.form()) || instance(&claimed.form())
}

fn accepted(case: &Case, words: &[u32]) -> bool {
    verdict(case, words).is_ok()
}

/// With windows and templates, or without: semaphores have none.
fn spec(windows: bool) -> impl Strategy<Value = String> {
    let plain = prop::sample::select(vec!["i", "c", "=", "a", "b", "d", "h"]).prop_map(String::from);
    let letter = prop::sample::select(vec!["w", "r", "o", "t", "g"]);
    let window = (letter, prop_oneof![Just(1), 2..=512u16])
        .prop_map(|(l, n)| if n > 1 { format!("{l}{n}") } else { l.into() });
    let template = prop::sample::select(vec!["k", "T", "L"]).prop_map(String::from);
    let arg =
        if windows { prop_oneof![2 => plain, 2 => window, 1 => template].boxed() } else { plain.boxed() };
    let results = prop_oneof![Just(String::new()), (1..=6u8).prop_map(|n| format!(">{n}"))];
    let text = (
        prop::sample::select(vec!["s", "n"]),
        prop::sample::select(vec!["m", "p", "f"]),
        prop::collection::vec(arg, 0..=6),
        results,
    )
        .prop_map(|(stack, state, args, results)| format!("{stack}{state}{}{results}", args.concat()));
    text.prop_filter("within the limits of the language", |text| pebble_portal::Spec::parse(text).is_ok())
}

fn connection() -> impl Strategy<Value = Connection<'static>> {
    let domain = |asid| {
        (any::<bool>(), any::<bool>()).prop_map(move |(float, exclusive)| Domain {
            trusted: asid % 3 == 0 && !float,
            ..cases::domain(asid, float, exclusive)
        })
    };
    let domains = (1u16..128, 128u16..256).prop_flat_map(move |(a, b)| (domain(a), domain(b)));
    let constant = prop_oneof![any::<u64>(), any::<i32>().prop_map(|v| v as u64), (0..4096u64)];
    (domains, 0x1_0000..0x4000_0000u64, 0..4096u16, constant, prop::option::of(0..256u16)).prop_map(
        |((caller, callee), entry, index, constant, counter)| {
            let entry = entry & !1;
            // Exclusive domains call no others.
            let callee = cases::domain(callee.asid, callee.float, callee.exclusive || caller.exclusive);
            Connection { entry, index, constant, counter, ..cases::connect(caller, callee) }
        },
    )
}

/// Between domains that lend.
fn lending() -> impl Strategy<Value = Connection<'static>> {
    connection().prop_map(|c| {
        let lends = |d: Domain| {
            let Domain { l1, windows, .. } = cases::lender(d.asid, d.float);
            Domain { l1, windows, exclusive: false, fixed_stack: 0, ..d }
        };
        let templates = cases::templates();
        Connection { caller: lends(c.caller), callee: lends(c.callee), templates, ..c }
    })
}

fn shape() -> impl Strategy<Value = Shape> {
    prop_oneof![3 => Just(Shape::Call), 1 => (0..1024u16).prop_map(Shape::Wait), 1 => (0..1024u16).prop_map(Shape::Signal)]
}

fn processor() -> impl Strategy<Value = Processor> {
    prop::sample::select(cases::PROCESSORS.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_compiled_is_accepted(
        on in processor(),
        spec in spec(false),
        shape in shape(),
        connection in connection(),
    ) {
        let case = Case::new("random", &spec, shape, connection).on(on);
        prop_assert_eq!(verdict(&case, &case.form().words), Ok(()));
        prop_assert!(passes(&case, &case));
    }

    #[test]
    fn windows_are_accepted(on in processor(), spec in spec(true), connection in lending()) {
        let case = Case::new("random", &spec, Shape::Call, connection).on(on);
        prop_assert_eq!(verdict(&case, &case.form().words), Ok(()));
        prop_assert!(passes(&case, &case));
    }

    #[test]
    fn windows_of_another_connection_are_refused(
        on in processor(),
        spec in spec(true),
        one in lending(),
        other in lending(),
    ) {
        let made = Case::new("made", &spec, Shape::Call, one).on(on);
        let claimed = Case::new("claimed", &spec, Shape::Call, other).on(on);
        prop_assert!(!passes(&made, &claimed));
    }

    #[test]
    fn windows_of_another_specification_are_refused(
        on in processor(),
        spec in spec(true),
        other in spec(true),
        connection in lending(),
    ) {
        let made = Case::new("made", &spec, Shape::Call, connection).on(on);
        let claimed = Case::new("claimed", &other, Shape::Call, connection).on(on);
        if claimed.form() != made.form() {
            prop_assert!(!passes(&made, &claimed), "{} passes for {}", spec, other);
        }
    }

    /// A portal made for one connection does not pass for another.
    #[test]
    fn another_connection_is_refused(
        on in processor(),
        spec in spec(false),
        shape in shape(),
        one in connection(),
        other in connection(),
    ) {
        let made = Case::new("made", &spec, shape, one).on(on);
        let claimed = Case::new("claimed", &spec, shape, other).on(on);
        prop_assert!(!passes(&made, &claimed));
    }

    /// A portal made for one specification passes for another only where both mean the same code.
    #[test]
    fn another_specification_is_refused(
        on in processor(),
        spec in spec(false),
        other in spec(false),
        shape in shape(),
        connection in connection(),
    ) {
        let made = Case::new("made", &spec, shape, connection).on(on);
        let claimed = Case::new("claimed", &other, shape, connection).on(on);
        if claimed.form() != made.form() {
            prop_assert!(!passes(&made, &claimed), "{} passes for {}", spec, other);
        }
    }

    #[test]
    fn random_words_never_panic(
        on in processor(),
        words in prop::collection::vec(any::<u32>(), 0..80),
        spec in spec(false),
        shape in shape(),
        connection in connection(),
    ) {
        prop_assert!(!accepted(&Case::new("random", &spec, shape, connection).on(on), &words));
    }

    /// Behind good code, too.
    #[test]
    fn damaged_portals_never_panic(
        on in processor(),
        which in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u32>()), 1..4),
        length in any::<prop::sample::Index>(),
    ) {
        let cases = cases::all();
        let case = &which.get(&cases).clone().on(on);
        let mut words = case.form().words.to_vec();
        for (at, bits) in damage {
            let at = at.index(words.len());
            words[at] ^= bits & bits.rotate_left(7);
        }
        let _ = accepted(case, &words);
        words.truncate(length.index(words.len()));
        let _ = accepted(case, &words);
    }
}

/// A test of mutants, for each processor.
macro_rules! on_each {
    ($($name:ident)*) => {
        mod riscv64 {
            $(#[test] fn $name() { super::$name::<super::Rv>(); })*
        }
        mod mips64 {
            $(#[test] fn $name() { super::$name::<super::Mips>(); })*
        }
    };
}

on_each! {
    no_part_is_missing
    every_shape_is_accepted
    inserting_nothing_is_accepted
    every_instruction_is_needed
    no_bit_may_flip
    stores_go_where_they_must
    loads_come_from_where_they_must
    branches_go_where_they_must
    control_registers_get_what_they_must
    computed_values_are_what_they_must_be
    the_pool_is_what_it_must_be
    nothing_may_be_added
    only_a_late_call_times_out
    a_status_is_kept_only_where_it_may_be
}

/// A portal cut short is refused wherever it is cut.
fn no_part_is_missing<W: Words>() {
    for p in Portal::<W>::all() {
        for length in 0..p.code.words.len() {
            let words = &p.code.words[..length];
            assert!(
                length >= p.call && p.pool == p.ret || !p.accepts(words),
                "{} cut to {length}",
                p.case.name
            );
        }
    }
}

/// One portal and where its parts are, in words.
struct Portal<W> {
    case: Case,
    code: Code,
    call: usize,
    pool: usize,
    ret: usize,
    end: usize,
    words: PhantomData<W>,
}

impl<W: Words> Portal<W> {
    fn new(case: Case) -> Self {
        let code = case.form();
        let ret = code.ret_at.map_or(code.words.len(), |at| usize::from(at) / 4);
        let end = ret + usize::from(code.ret_words);
        let (call, pool) = (usize::from(code.call_words), usize::from(code.pool_at) / 4);
        Portal { case, code, call, pool, ret, end, words: PhantomData }
    }

    fn all() -> impl Iterator<Item = Self> {
        cases::all().into_iter().map(|case| Portal::new(case.on(W::PROCESSOR)))
    }

    fn accepts(&self, words: &[u32]) -> bool {
        accepted(&self.case, words)
    }

    /// Those that are read word by word have no places for others.
    fn is_derived(&self) -> bool {
        !matches!(self.case.shape, Shape::Short(short) if W::word_by_word(short))
    }

    /// Whether an instruction before this one, in the same leg, has cleared register `x`.
    fn cleared(&self, at: usize, x: u8) -> bool {
        let leg = if at < self.call { 0..at } else { self.ret + 1..at };
        leg.into_iter().any(|i| W::clears(self.code.words[i]) == Some(x))
    }

    /// Whether an instruction put here would be part of a template, which is as it is: between what it is
    /// promised and its last one.
    fn in_template(&self, at: usize) -> bool {
        self.case.spec.templates().any(|(_, letter)| {
            let template = cases::templates().iter().find(|t| t.letter == letter).expect("a template");
            let (first, length) = W::template(template);
            let mut begins = (0..self.call).filter(|i| self.code.words[*i] == first);
            begins.any(|i| (i + 1..i + length).contains(&at))
        })
    }

    /// Whether an instruction put here would be within a sequence that is read word by word.
    fn in_sequence(&self, at: usize) -> bool {
        let (first, length) = W::SEQUENCE;
        (at.saturating_sub(length)..at).any(|i| i + length > at && length > 0 && self.code.words[i] == first)
    }

    /// Instructions with their positions.
    fn instructions(&self) -> impl Iterator<Item = (usize, u32, Kind)> {
        let words = self.code.words.iter().enumerate();
        let inside = words.filter(|(i, _)| *i < self.call || (self.ret..self.end).contains(i));
        inside.filter_map(|(i, word)| Some((i, *word, W::kind(*word)?)))
    }

    fn sites(&self, wanted: impl Fn(Kind) -> bool) -> Vec<usize> {
        self.instructions().filter(|(_, _, kind)| wanted(*kind)).map(|(i, ..)| i).collect()
    }

    /// Whether it is executed before a branch or jump that it stands behind.
    fn is_delayed(&self, at: usize) -> bool {
        let before = at.checked_sub(1).filter(|_| W::DELAYED > 0 && at != self.ret);
        before.is_some_and(|i| matches!(W::kind(self.code.words[i]), Some(Kind::Branch(_) | Kind::Jump)))
    }

    /// Where others can be put in.
    fn gaps(&self) -> Vec<usize> {
        let all = self.instructions().map(|(i, ..)| i);
        all.filter(|i| !self.is_delayed(*i)).collect()
    }

    /// First instruction of the slow ways out: what follows the exit into the callee, or else the last of
    /// the call leg.
    fn slow(&self) -> usize {
        let call = || self.instructions().filter(|(i, ..)| *i < self.call);
        let switch = call().filter(|(_, word, _)| W::switches(*word)).map(|(i, ..)| i).last();
        let mut leaves = call().filter(|(.., kind)| *kind == Kind::Leave).map(|(i, ..)| i + 1);
        match switch {
            Some(switch) => leaves.find(|i| *i > switch),
            None => leaves.last(),
        }
        .unwrap_or(self.call)
    }

    /// Whether a pool word is ever loaded, or describes the frame. The word before the description is there
    /// for the return leg, whether it loads it or not.
    fn means_something(&self, i: usize) -> bool {
        let (at, ret) = ((i - i % 2) as i64 * 4, self.ret as i64 * 4);
        let loads = |(j, word, kind)| {
            let base = if j >= self.ret { ret } else { 0 };
            kind == Kind::Load && W::reaches(word).is_some_and(|offset| offset + base == at)
        };
        at == ret - 8 || self.instructions().any(loads)
    }

    /// Two instructions put before instruction `at`, everything that counts distances corrected.
    fn insert(&self, at: usize, two: [u32; 2]) -> Vec<u32> {
        let mut words = self.code.words.to_vec();
        let moved = |x: usize| x + if x > at { 2 } else { 0 };
        for (i, word, kind) in self.instructions().filter(|(i, ..)| (at < self.call) == (*i < self.call)) {
            if let Kind::Branch(distance) = kind {
                let from = i + if i >= at { 2 } else { 0 };
                let target = moved((i as i64 + distance / 4) as usize);
                words[i] = W::with_distance(word, (target as i64 - from as i64) * 4);
            } else if let Some(offset) = W::reaches(word).filter(|offset| *offset > 0) {
                words[i] = W::with_number(word, offset + 8);
            } else if let Some(back) = W::comes_back(word).filter(|_| at + 2 <= i) {
                words[i] = W::with_number(word, back - 8);
            }
        }
        words.splice(at..at, two);
        words
    }

    /// Makes mutants of one kind until there are enough, and demands that all are refused. `mutate` changes
    /// the words, or says that the change would mean nothing.
    fn refuse(&self, kind: &str, sites: &[usize], mutate: impl Fn(&mut Rng, usize) -> Option<Vec<u32>>) {
        let mut rng = Rng(0x9e37_79b9_7f4a_7c15 ^ self.code.words.len() as u64);
        let mut made = 0;
        for turn in 0..PER_KIND * 20 {
            if sites.is_empty() || made >= PER_KIND.max(sites.len()) {
                return;
            }
            let site = sites[turn % sites.len()];
            if let Some(words) = mutate(&mut rng, site) {
                made += 1;
                assert!(!self.accepts(&words), "{}", self.difference(kind, &words));
            }
        }
        assert!(made >= PER_KIND, "{}: only {made} mutants of kind `{kind}`", self.case.name);
    }

    /// Like [`Portal::refuse`], for changes of one word.
    fn refuse_word(&self, kind: &str, sites: &[usize], mutate: impl Fn(&mut Rng, u32) -> u32) {
        self.refuse(kind, sites, |rng, i| {
            let mut words = self.code.words.to_vec();
            words[i] = mutate(rng, words[i]);
            (words[i] != self.code.words[i]).then_some(words)
        });
    }

    fn difference(&self, kind: &str, new: &[u32]) -> String {
        let old = &self.code.words;
        let i = old.iter().zip(new).position(|(a, b)| a != b).unwrap_or(old.len().min(new.len()));
        let text = |words: &[u32]| words.get(i).map_or_else(|| "nothing".into(), |word| W::text(*word));
        let name = &self.case.name;
        format!("{name}: `{kind}` accepted: at {:#x} `{}` in place of `{}`", i * 4, text(new), text(old))
    }
}

fn any_number(rng: &mut Rng) -> i64 {
    let number = rng.below(4096) as i64 - 2048;
    if rng.below(4) == 0 { number } else { number & !7 }
}

fn every_shape_is_accepted<W: Words>() {
    let refused = Portal::<W>::all()
        .filter_map(|p| verdict(&p.case, &p.code.words).err().map(|why| format!("{}: {why}", p.case.name)));
    let refused: Vec<_> = refused.collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

/// The other mutants are refused for what they do, not for where it is: with `nop`s in the same places all is
/// well.
fn inserting_nothing_is_accepted<W: Words>() {
    for p in Portal::<W>::all().filter(Portal::is_derived) {
        // What a thread's end comes to has a fixed place, and so has the error entry of the return leg.
        let first = if p.case.shape == Shape::ThreadExit { W::RAISED } else { 0 };
        let free =
            |i: &usize| !p.in_template(*i) && !p.in_sequence(*i) && !(p.ret..p.ret + W::ENTRIES).contains(i);
        for i in p.gaps().into_iter().filter(|i| *i >= first).filter(free) {
            let verdict = verdict(&p.case, &p.insert(i, [W::NOP; 2]));
            assert_eq!(verdict, Ok(()), "{} at {:#x}", p.case.name, i * 4);
        }
    }
}

/// Portals hold no instruction that could be left out, and the verifier knows what each is for.
fn every_instruction_is_needed<W: Words>() {
    for p in Portal::<W>::all() {
        for (i, word, _) in p.instructions().filter(|(i, word, _)| !(*word == W::NOP && p.is_delayed(*i))) {
            let mut words = p.code.words.to_vec();
            words[i] = W::NOP;
            assert!(!p.accepts(&words), "{}: `{}` at {:#x} left out", p.case.name, W::text(word), i * 4);
        }
    }
}

fn no_bit_may_flip<W: Words>() {
    for p in Portal::<W>::all() {
        for (i, word, kind) in p.instructions() {
            for bit in 0..32 {
                let mut words = p.code.words.to_vec();
                words[i] ^= 1 << bit;
                // To copy what is clear is to clear.
                if W::copies(words[i]).is_some_and(|x| p.cleared(i, x)) {
                    continue;
                }
                // So is a base that is clear.
                if kind == Kind::Load
                    && word == W::with_source(word, 0)
                    && (1..32).any(|x| words[i] == W::with_source(word, x) && p.cleared(i, x as u8))
                {
                    continue;
                }
                // Where nothing is done, computing what nobody looks at is nothing too.
                if word == W::NOP && matches!(W::kind(words[i]), Some(Kind::Other | Kind::Number)) {
                    continue;
                }
                assert!(!p.accepts(&words), "{}", p.difference("flipped bit", &words));
            }
        }
    }
}

fn stores_go_where_they_must<W: Words>() {
    for p in Portal::<W>::all() {
        let sites = p.sites(|kind| kind == Kind::Store);
        p.refuse_word("store offset", &sites, |rng, w| W::with_number(w, any_number(rng)));
        p.refuse_word("store base", &sites, |rng, w| W::with_source(w, rng.below(32)));
        p.refuse_word("stored register", &sites, |rng, w| W::with_second(w, rng.below(32)));
    }
}

fn loads_come_from_where_they_must<W: Words>() {
    for p in Portal::<W>::all() {
        let sites = p.sites(|kind| kind == Kind::Load);
        p.refuse_word("load offset", &sites, |rng, w| W::with_number(w, any_number(rng)));
        p.refuse("load base", &sites, |rng, i| {
            let mut words = p.code.words.to_vec();
            let base = rng.below(32);
            let was_zero = words[i] == W::with_source(words[i], 0);
            words[i] = W::with_source(words[i], base);
            // A base that is clear is as good as zero.
            (words[i] != p.code.words[i] && !(was_zero && p.cleared(i, base as u8))).then_some(words)
        });
        p.refuse_word("loaded register", &sites, |rng, w| W::with_result(w, rng.below(32)));
    }
}

fn branches_go_where_they_must<W: Words>() {
    for p in Portal::<W>::all() {
        let sites = p.sites(|kind| matches!(kind, Kind::Branch(_)));
        let length = p.code.words.len();
        let distance = |w, to: i64| W::with_distance(w, to * 4);
        p.refuse_word("branch target", &sites, |rng, w| distance(w, rng.below(2048) as i64 - 1024));
        p.refuse("near branch target", &sites, |rng, i| {
            let mut words = p.code.words.to_vec();
            let (old, new) = (W::kind(words[i]), rng.below(length) as i64);
            words[i] = distance(words[i], new);
            // By way of what does nothing.
            let from = usize::try_from(i as i64 + new).ok().filter(|_| new > 0);
            let same = from.zip(old).is_some_and(|(from, old)| match old {
                Kind::Branch(old) => {
                    let between = words.get(from..(i as i64 + old / 4) as usize);
                    between.is_some_and(|words| words.iter().all(|word| *word == W::NOP))
                }
                _ => false,
            });
            (words[i] != p.code.words[i] && !same).then_some(words)
        });
        p.refuse_word("backward branch", &sites, |rng, w| distance(w, -(rng.below(length) as i64)));
        p.refuse_word("tested register", &sites, |rng, w| {
            W::with_second(W::with_source(w, rng.below(32)), rng.below(32))
        });
        p.refuse("branch into the pool", &sites, |rng, i| {
            let mut words = p.code.words.to_vec();
            let target = p.pool + rng.below(p.ret - p.pool + 1);
            words[i] = distance(words[i], target as i64 - i as i64);
            Some(words)
        });
    }
}

fn control_registers_get_what_they_must<W: Words>() {
    for p in Portal::<W>::all() {
        let writes = p.sites(|kind| kind == Kind::WriteControl);
        let all = p.sites(|kind| matches!(kind, Kind::WriteControl | Kind::ReadControl));
        p.refuse_word("written register", &writes, |rng, w| W::with_operand(w, rng.below(32)));
        p.refuse_word("control register", &all, |rng, w| W::with_control(w, rng.below(32)));
        p.refuse_word("control operation", &all, |rng, w| W::with_operation(w, rng.below(8)));
    }
}

fn computed_values_are_what_they_must_be<W: Words>() {
    for p in Portal::<W>::all() {
        let sites = p.sites(|kind| kind == Kind::Number);
        p.refuse_word("number", &sites, |rng, w| W::with_number(w, any_number(rng)));
        p.refuse("source", &sites, |rng, i| {
            let mut words = p.code.words.to_vec();
            let source = rng.below(32);
            words[i] = W::with_source(words[i], source);
            // Clearing from a register that is clear is clearing.
            (words[i] != p.code.words[i] && !p.cleared(i, source as u8)).then_some(words)
        });
        p.refuse_word("destination", &sites, |rng, w| W::with_result(w, rng.below(32)));
        let upper = p.sites(|kind| kind == Kind::Upper);
        p.refuse_word("upper half", &upper, |rng, w| W::with_upper(w, rng.next() as u32));
    }
}

fn the_pool_is_what_it_must_be<W: Words>() {
    for p in Portal::<W>::all() {
        let all = (p.pool..p.ret).chain(p.end..p.code.words.len());
        let sites: Vec<usize> = all.filter(|i| p.means_something(*i)).collect();
        p.refuse_word("pool word", &sites, |rng, w| w ^ 1 << rng.below(32));
        p.refuse_word("other pool word", &sites, |rng, _| rng.next() as u32);
    }
}

fn nothing_may_be_added<W: Words>() {
    for p in Portal::<W>::all() {
        let exit = |i: &usize| matches!(W::kind(p.code.words[*i]), Some(Kind::Leave | Kind::Jump));
        // An exit right before an exit is the same exit.
        let sites: Vec<usize> = p.gaps().into_iter().filter(|i| !exit(i)).collect();
        p.refuse("added instruction", &sites, |rng, i| {
            let evil = W::ALONE[rng.below(W::ALONE.len())];
            let waits = p.case.shape == Shape::Short(Short::Idle) && evil == W::WAITS;
            // Waiting twice is waiting.
            (!waits).then(|| p.insert(i, [evil, W::NOP]))
        });
        p.refuse("added control write", &sites, |rng, i| {
            Some(p.insert(i, [W::control_write(rng.below(32), rng.below(4)), W::NOP]))
        });
        // Above a top that was not pushed, the slow ways may write what they like: nobody reads it.
        let (slow, call) = (p.slow(), p.call);
        let sites: Vec<usize> = sites.into_iter().filter(|i| *i < slow || *i >= call).collect();
        p.refuse("added store", &sites, |rng, i| {
            Some(p.insert(i, [W::store(rng.below(32), rng.below(32), any_number(rng)), W::NOP]))
        });
        p.refuse("added store to the frame", &sites, |rng, i| {
            let store = W::store(rng.below(32), W::TOP, rng.below(80) as i64 * 8 - 80);
            Some(p.insert(i, [store, W::NOP]))
        });
    }
}

/// Whoever says that a call's time is over looks whether it is marked so, and nobody else does.
fn only_a_late_call_times_out<W: Words>() {
    let [timeout, moved] = [status::TIMEOUT, status::MOVED].map(|code| {
        Case::new("leaves", "sm", Shape::Leave(code as u16), Connection::default()).on(W::PROCESSOR)
    });
    let says = |case: &Case, code: u64| -> Vec<u32> {
        case.form().words.iter().map(|word| W::with_status(*word, code)).collect()
    };
    for (case, own, other) in [(&timeout, status::TIMEOUT, &moved), (&moved, status::MOVED, &timeout)] {
        assert!(accepted(case, &says(case, own)), "what was compiled");
        assert!(!accepted(case, &says(other, own)), "{:?} with {own}", other.shape);
    }
}

/// A callee's own word for the status passes where the connection says so, and nowhere else.
fn a_status_is_kept_only_where_it_may_be<W: Words>() {
    for p in Portal::<W>::all().filter(|p| p.case.shape == Shape::Call) {
        let case = &p.case;
        let other = Connection { keeps_status: !case.connection.keeps_status, ..case.connection };
        let refusal = verify::form(&p.code.words, &case.spec, case.shape, &other, W::PROCESSOR);
        // And what is open to a controller ends with the call.
        let opens = case.spec.windows().any(|(_, window, _)| window == pebble_portal::spec::WindowKind::Open);
        let told = |r: verify::Refusal| opens || r.reason == verify::Reason::FirstOfReturn;
        assert!(refusal.is_err_and(told), "{}: {refusal:?}", case.name);
    }
}

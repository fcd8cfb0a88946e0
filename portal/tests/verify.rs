//! The verifier accepts what the compiler makes, and nothing that differs from it in meaning.
//!
//! Mutants are made from one portal of every shape, instruction by instruction. A mutant that means the same
//! as its original is never made, or skipped with its reason; so each one left must be refused.

mod common;

use common::Rng;
use common::cases::{self, Case};
use pebble_abi::status;
use pebble_portal::Processor;
use pebble_portal::hardware::template::Operation;
use pebble_portal::hardware::template::riscv64::register;
use pebble_portal::hardware::{Code, Connection, Domain, Shape, Short, verify};
use pebble_portal::isa::riscv64::decode::{Alu, CsrOp, Insn, decode};
use pebble_portal::isa::riscv64::encode::{slli, srli};
use proptest::prelude::*;

const NOP: u32 = 0x13;
const PER_KIND: usize = 200;

fn accepted(case: &Case, words: &[u32]) -> bool {
    verify::verify(words, &case.spec, case.shape, &case.connection, Processor::Riscv64).is_ok()
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_compiled_is_accepted(spec in spec(false), shape in shape(), connection in connection()) {
        let case = Case::new("random", &spec, shape, connection);
        let verdict = verify::verify(&case.compile().words, &case.spec, shape, &case.connection, Processor::Riscv64);
        prop_assert_eq!(verdict.map_err(|e| e.to_string()), Ok(()));
    }

    #[test]
    fn windows_are_accepted(spec in spec(true), connection in lending()) {
        let case = Case::new("random", &spec, Shape::Call, connection);
        let verdict = verify::verify(&case.compile().words, &case.spec, Shape::Call, &case.connection, Processor::Riscv64);
        prop_assert_eq!(verdict.map_err(|e| e.to_string()), Ok(()));
    }

    #[test]
    fn windows_of_another_connection_are_refused(spec in spec(true), one in lending(), other in lending()) {
        let made = Case::new("made", &spec, Shape::Call, one);
        let claimed = Case::new("claimed", &spec, Shape::Call, other);
        prop_assert!(!accepted(&claimed, &made.compile().words));
    }

    #[test]
    fn windows_of_another_specification_are_refused(spec in spec(true), other in spec(true), connection in lending()) {
        let made = Case::new("made", &spec, Shape::Call, connection).compile();
        let claimed = Case::new("claimed", &other, Shape::Call, connection);
        if claimed.compile() != made {
            prop_assert!(!accepted(&claimed, &made.words), "{} passes for {}", spec, other);
        }
    }

    /// A portal made for one connection does not pass for another.
    #[test]
    fn another_connection_is_refused(spec in spec(false), shape in shape(), one in connection(), other in connection()) {
        let made = Case::new("made", &spec, shape, one);
        let claimed = Case::new("claimed", &spec, shape, other);
        prop_assert!(!accepted(&claimed, &made.compile().words));
    }

    /// A portal made for one specification passes for another only where both mean the same code.
    #[test]
    fn another_specification_is_refused(spec in spec(false), other in spec(false), shape in shape(), connection in connection()) {
        let made = Case::new("made", &spec, shape, connection).compile();
        let claimed = Case::new("claimed", &other, shape, connection);
        if claimed.compile() != made {
            prop_assert!(!accepted(&claimed, &made.words), "{} passes for {}", spec, other);
        }
    }

    #[test]
    fn random_words_never_panic(
        words in prop::collection::vec(any::<u32>(), 0..80),
        spec in spec(false),
        shape in shape(),
        connection in connection(),
    ) {
        prop_assert!(!accepted(&Case::new("random", &spec, shape, connection), &words));
    }

    /// Behind good code, too.
    #[test]
    fn damaged_portals_never_panic(
        which in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u32>()), 1..4),
        length in any::<prop::sample::Index>(),
    ) {
        let cases = cases::all();
        let case = which.get(&cases);
        let mut words = case.compile().words.to_vec();
        for (at, bits) in damage {
            let at = at.index(words.len());
            words[at] ^= bits & bits.rotate_left(7);
        }
        let _ = accepted(case, &words);
        words.truncate(length.index(words.len()));
        let _ = accepted(case, &words);
    }
}

/// A portal cut short is refused wherever it is cut.
#[test]
fn no_part_is_missing() {
    for p in Portal::all() {
        for length in 0..p.code.words.len() {
            let words = &p.code.words[..length];
            assert!(
                length >= p.call && p.pool == p.ret || !accepted(&p.case, words),
                "{} cut to {length}",
                p.case.name
            );
        }
    }
}

/// One portal and where its parts are, in words.
struct Portal {
    case: Case,
    code: Code,
    call: usize,
    pool: usize,
    ret: usize,
}

impl Portal {
    fn new(case: Case) -> Self {
        let code = case.compile();
        let ret = code.ret_at.map_or(code.words.len(), |at| usize::from(at) / 4);
        let (call, pool) = (usize::from(code.call_words), usize::from(code.pool_at) / 4);
        Portal { case, code, call, pool, ret }
    }

    fn all() -> impl Iterator<Item = Portal> {
        cases::all().into_iter().map(Portal::new)
    }

    /// Whether an instruction before this one, in the same leg, has cleared register `x`.
    fn cleared(&self, at: usize, x: u8) -> bool {
        let clear = Insn::AluImm { op: Alu::Add, rd: x, rs1: 0, imm: 0 };
        let leg = if at < self.call { 0..at } else { self.ret + 1..at };
        self.instructions().any(|(i, insn)| leg.contains(&i) && insn == clear)
    }

    /// Whether an instruction put here would be part of a template, which is as it is: between what it is
    /// promised and its last one.
    fn in_template(&self, at: usize) -> bool {
        self.case.spec.templates().any(|(_, letter)| {
            let template = cases::templates().iter().find(|t| t.letter == letter).expect("a template");
            let first = match template.operations[0] {
                Operation::ShiftLeft { to, a, by } => slli(register(to), register(a), by.into()),
                Operation::ShiftRight { to, a, by } => srli(register(to), register(a), by.into()),
                other => panic!("{other:?} comes first"),
            };
            let begins = (0..self.call).filter(|i| self.code.words[*i] == first);
            begins.into_iter().any(|i| (i + 1..i + template.operations.len()).contains(&at))
        })
    }

    /// Instructions with their positions.
    fn instructions(&self) -> impl Iterator<Item = (usize, Insn)> {
        let words = self.code.words.iter().enumerate();
        words.filter(|(i, _)| *i < self.call || *i >= self.ret).filter_map(|(i, w)| Some((i, decode(*w)?)))
    }

    fn sites(&self, wanted: impl Fn(Insn) -> bool) -> Vec<usize> {
        self.instructions().filter(|(_, insn)| wanted(*insn)).map(|(i, _)| i).collect()
    }

    /// First instruction of the slow ways out: what follows the `sret` into the callee, or else the last of
    /// the call leg.
    fn slow(&self) -> usize {
        let switches = |(i, insn)| {
            matches!(insn, Insn::Csr { op: CsrOp::W, csr: 0x180, .. } if i < self.call).then_some(i)
        };
        let leaves = |(i, insn)| (insn == Insn::Sret && i < self.call).then_some(i + 1);
        let mut leaves = self.instructions().filter_map(leaves);
        match self.instructions().filter_map(switches).last() {
            Some(switch) => leaves.find(|i| *i > switch),
            None => leaves.last(),
        }
        .unwrap_or(self.call)
    }

    /// Whether a pool word is ever loaded, or describes the frame. The word before the description is there
    /// for the return leg, whether it loads it or not.
    fn means_something(&self, i: usize) -> bool {
        let at = (i - i % 2) as i64 * 4;
        let loads = |(j, insn)| match insn {
            Insn::Load { rs1: 3, imm, .. } => imm + if j >= self.ret { self.ret as i64 * 4 } else { 0 } == at,
            _ => false,
        };
        at == self.ret as i64 * 4 - 8 || self.instructions().any(loads)
    }

    /// Two instructions put before instruction `at`, everything that counts distances corrected.
    fn insert(&self, at: usize, two: [u32; 2]) -> Vec<u32> {
        let mut words = self.code.words.to_vec();
        if at < self.call {
            for (i, insn) in self.instructions().filter(|(i, _)| *i < self.call) {
                let moved = |x: usize| x + if x > at { 2 } else { 0 };
                match insn {
                    Insn::Branch { imm, .. } => {
                        let target = moved(i + imm as usize / 4);
                        let from = i + if i >= at { 2 } else { 0 };
                        words[i] = with_b_imm(words[i], (target - from) as i64 * 4);
                    }
                    Insn::Load { rs1: 3, imm, .. } => words[i] = with_i_imm(words[i], imm + 8),
                    Insn::AluImm { op: Alu::Add, rd: 7, rs1: 3, imm } => {
                        words[i] = with_i_imm(words[i], imm + 8)
                    }
                    _ => {}
                }
            }
        }
        // In the return leg distances are all that counts.
        for (i, insn) in self.instructions().filter(|(i, _)| at >= self.ret && *i >= self.ret) {
            let moved = |x: usize| x + if x > at { 2 } else { 0 };
            if let Insn::Branch { imm, .. } = insn {
                let from = i + if i >= at { 2 } else { 0 };
                words[i] = with_b_imm(words[i], (moved(i + imm as usize / 4) - from) as i64 * 4);
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
                assert!(
                    !accepted(&self.case, &words),
                    "{}: {}",
                    self.case.name,
                    difference(kind, &self.code.words, &words)
                );
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
}

fn difference(kind: &str, old: &[u32], new: &[u32]) -> String {
    let i = old.iter().zip(new).position(|(a, b)| a != b).unwrap_or(old.len().min(new.len()));
    let text = |words: &[u32]| match words.get(i).map(|w| (w, decode(*w))) {
        Some((_, Some(insn))) => insn.to_string(),
        Some((w, None)) => format!("{w:#010x}"),
        None => "nothing".into(),
    };
    format!("`{kind}` accepted: at {:#x} `{}` in place of `{}`", i * 4, text(new), text(old))
}

fn with_i_imm(word: u32, imm: i64) -> u32 {
    word & 0x000f_ffff | (imm as u32) << 20
}
fn with_s_imm(word: u32, imm: i64) -> u32 {
    let imm = imm as u32;
    word & 0x01ff_f07f | (imm >> 5 & 0x7f) << 25 | (imm & 31) << 7
}
fn with_b_imm(word: u32, imm: i64) -> u32 {
    let imm = imm as u32;
    word & 0x01ff_f07f
        | (imm >> 12 & 1) << 31
        | (imm >> 5 & 0x3f) << 25
        | (imm >> 1 & 15) << 8
        | (imm >> 11 & 1) << 7
}
fn with_rd(word: u32, x: usize) -> u32 {
    word & !(31 << 7) | (x as u32) << 7
}
fn with_rs1(word: u32, x: usize) -> u32 {
    word & !(31 << 15) | (x as u32) << 15
}
fn with_rs2(word: u32, x: usize) -> u32 {
    word & !(31 << 20) | (x as u32) << 20
}

fn any_imm(rng: &mut Rng) -> i64 {
    let imm = rng.below(4096) as i64 - 2048;
    if rng.below(4) == 0 { imm } else { imm & !7 }
}

const fn stores(insn: Insn) -> bool {
    matches!(insn, Insn::Store { .. } | Insn::Fsd { .. })
}
const fn loads(insn: Insn) -> bool {
    matches!(insn, Insn::Load { .. } | Insn::Fld { .. })
}

#[test]
fn every_shape_is_accepted() {
    for case in cases::all() {
        let code = case.compile();
        let verdict =
            verify::verify(&code.words, &case.spec, case.shape, &case.connection, Processor::Riscv64);
        assert_eq!(verdict.map_err(|e| e.to_string()), Ok(()), "{}", case.name);
    }
}

/// The other mutants are refused for what they do, not for where it is: with `nop`s in the same places all is
/// well.
#[test]
fn inserting_nothing_is_accepted() {
    // Those that are read word by word have no such places.
    let derived = |p: &Portal| !matches!(p.case.shape, Shape::Short(Short::Stacks(_)));
    for p in Portal::all().filter(derived) {
        // What a thread's end comes to is the third instruction.
        let first = if p.case.shape == Shape::ThreadExit { 2 } else { 0 };
        // The second instruction of the return leg is its error entry.
        for i in (first..p.call).chain(p.ret + 2..p.code.words.len()).filter(|i| !p.in_template(*i)) {
            assert!(accepted(&p.case, &p.insert(i, [NOP, NOP])), "{} at {:#x}", p.case.name, i * 4);
        }
    }
}

/// Portals hold no instruction that could be left out, and the verifier knows what each is for.
#[test]
fn every_instruction_is_needed() {
    for p in Portal::all() {
        for (i, insn) in p.instructions() {
            let mut words = p.code.words.to_vec();
            words[i] = NOP;
            assert!(!accepted(&p.case, &words), "{}: `{insn}` at {:#x} left out", p.case.name, i * 4);
        }
    }
}

#[test]
fn no_bit_may_flip() {
    for p in Portal::all() {
        for (i, insn) in p.instructions() {
            for bit in 0..32 {
                let mut words = p.code.words.to_vec();
                words[i] ^= 1 << bit;
                if let Some(Insn::AluImm { op: Alu::Add, rs1, imm: 0, .. }) = decode(words[i])
                    && p.cleared(i, rs1)
                {
                    continue;
                }
                // So is a base that is clear.
                if let (Insn::Load { rs1: 0, .. }, Some(Insn::Load { rs1, .. })) = (insn, decode(words[i]))
                    && words[i] == with_rs1(p.code.words[i], rs1.into())
                    && p.cleared(i, rs1)
                {
                    continue;
                }
                let now = difference("flipped bit", &p.code.words, &words);
                assert!(!accepted(&p.case, &words), "{}: {insn}: {now}", p.case.name);
            }
        }
    }
}

#[test]
fn stores_go_where_they_must() {
    for p in Portal::all() {
        let sites = p.sites(stores);
        p.refuse_word("store offset", &sites, |rng, w| with_s_imm(w, any_imm(rng)));
        p.refuse_word("store base", &sites, |rng, w| with_rs1(w, rng.below(32)));
        p.refuse_word("stored register", &sites, |rng, w| with_rs2(w, rng.below(32)));
    }
}

#[test]
fn loads_come_from_where_they_must() {
    for p in Portal::all() {
        let sites = p.sites(loads);
        p.refuse_word("load offset", &sites, |rng, w| with_i_imm(w, any_imm(rng)));
        p.refuse("load base", &sites, |rng, i| {
            let mut words = p.code.words.to_vec();
            let base = rng.below(32);
            let was_zero = words[i] == with_rs1(words[i], 0);
            words[i] = with_rs1(words[i], base);
            // A base that is clear is as good as zero.
            (words[i] != p.code.words[i] && !(was_zero && p.cleared(i, base as u8))).then_some(words)
        });
        p.refuse_word("loaded register", &sites, |rng, w| with_rd(w, rng.below(32)));
    }
}

#[test]
fn branches_go_where_they_must() {
    for p in Portal::all() {
        let sites = p.sites(|insn| matches!(insn, Insn::Branch { .. }));
        let length = p.code.words.len();
        p.refuse_word("branch target", &sites, |rng, w| with_b_imm(w, rng.below(2048) as i64 * 4 - 4096));
        p.refuse_word("near branch target", &sites, |rng, w| with_b_imm(w, rng.below(length) as i64 * 4));
        p.refuse_word("backward branch", &sites, |rng, w| with_b_imm(w, -(rng.below(length) as i64) * 4));
        p.refuse_word("odd branch target", &sites, |rng, w| {
            let Some(Insn::Branch { imm, .. }) = decode(w) else { unreachable!("a branch") };
            with_b_imm(w, imm + rng.below(512) as i64 * 4 + 2)
        });
        p.refuse_word("tested register", &sites, |rng, w| {
            with_rs2(with_rs1(w, rng.below(32)), rng.below(32))
        });
        p.refuse("branch into the pool", &sites, |rng, i| {
            let mut words = p.code.words.to_vec();
            let target = p.pool + rng.below(p.ret - p.pool + 1);
            words[i] = with_b_imm(words[i], (target as i64 - i as i64) * 4);
            Some(words)
        });
    }
}

#[test]
fn control_registers_get_what_they_must() {
    const CSRS: [u32; 15] = [
        0x003, 0x100, 0x104, 0x105, 0x106, 0x140, 0x141, 0x142, 0x143, 0x144, 0x14d, 0x180, 0xc01, 0x300,
        0x305,
    ];
    for p in Portal::all() {
        let writes = p.sites(|insn| matches!(insn, Insn::Csr { op, rs1, .. } if op == CsrOp::W || rs1 != 0));
        let all = p.sites(|insn| matches!(insn, Insn::Csr { .. }));
        p.refuse_word("written register", &writes, |rng, w| with_rs1(w, rng.below(32)));
        p.refuse_word("control register", &all, |rng, w| w & 0xf_ffff | CSRS[rng.below(CSRS.len())] << 20);
        p.refuse_word("control operation", &all, |rng, w| w & !0x7000 | (rng.below(8) as u32) << 12);
    }
}

#[test]
fn computed_values_are_what_they_must_be() {
    for p in Portal::all() {
        let immediate = p.sites(|insn| matches!(insn, Insn::AluImm { .. }));
        p.refuse_word("immediate", &immediate, |rng, w| with_i_imm(w, any_imm(rng)));
        p.refuse("source", &immediate, |rng, i| {
            let mut words = p.code.words.to_vec();
            let source = rng.below(32);
            words[i] = with_rs1(words[i], source);
            // Clearing from a register that is clear is clearing.
            (words[i] != p.code.words[i] && !p.cleared(i, source as u8)).then_some(words)
        });
        p.refuse_word("destination", &immediate, |rng, w| with_rd(w, rng.below(32)));
        let upper = p.sites(|insn| matches!(insn, Insn::Lui { .. }));
        p.refuse_word("upper immediate", &upper, |rng, w| w & 0xfff | (rng.next() as u32) << 12);
    }
}

#[test]
fn the_pool_is_what_it_must_be() {
    for p in Portal::all() {
        let sites: Vec<usize> = (p.pool..p.ret).filter(|i| p.means_something(*i)).collect();
        p.refuse_word("pool word", &sites, |rng, w| w ^ 1 << rng.below(32));
        p.refuse_word("other pool word", &sites, |rng, _| rng.next() as u32);
    }
}

#[test]
fn nothing_may_be_added() {
    // ecall, ebreak, sret, wfi, sfence.vma, fence.i, uret, mret, a jump over nothing, a call, compressed code
    const ALONE: [u32; 12] = [
        0x73,
        0x10_0073,
        0x1020_0073,
        0x1050_0073,
        0x1200_0073,
        0x100f,
        0x20_0073,
        0x3020_0073,
        0x0080_006f,
        0x0080_00ef,
        0x8082_8082,
        0,
    ];
    for p in Portal::all() {
        let exit = |i: usize| matches!(decode(p.code.words[i]), Some(Insn::Sret | Insn::Jalr { .. }));
        // An exit right before an exit is the same exit.
        let sites: Vec<usize> = p.instructions().map(|(i, _)| i).filter(|i| !exit(*i)).collect();
        p.refuse("added instruction", &sites, |rng, i| {
            let evil = ALONE[rng.below(ALONE.len())];
            let asked = match p.case.shape {
                Shape::Short(pebble_portal::hardware::Short::Idle) => 0x1050_0073,
                _ => 0,
            };
            // Waiting twice is waiting.
            (evil != asked || evil == 0).then(|| p.insert(i, [evil, NOP]))
        });
        p.refuse("added control write", &sites, |rng, i| {
            // stvec, scounteren, sip, a machine register: no portal writes them
            let csr = [0x105, 0x106, 0x144, 0x305][rng.below(4)];
            Some(p.insert(i, [csr << 20 | (rng.below(32) as u32) << 15 | 0x1073, NOP]))
        });
        // Above a top that was not pushed, the slow ways may write what they like: nobody reads it.
        let (slow, call) = (p.slow(), p.call);
        let sites: Vec<usize> = sites.into_iter().filter(|i| *i < slow || *i >= call).collect();
        p.refuse("added store", &sites, |rng, i| {
            let store = with_s_imm(with_rs2(with_rs1(0x3023, rng.below(32)), rng.below(32)), any_imm(rng));
            Some(p.insert(i, [store, NOP]))
        });
        p.refuse("added store to the frame", &sites, |rng, i| {
            let store =
                with_s_imm(with_rs2(with_rs1(0x3023, 6), rng.below(32)), rng.below(80) as i64 * 8 - 80);
            Some(p.insert(i, [store, NOP]))
        });
    }
}

/// Whoever says that a call's time is over looks whether it is marked so, and nobody else does.
#[test]
fn only_a_late_call_times_out() {
    let [timeout, moved] = [status::TIMEOUT, status::MOVED]
        .map(|code| Case::new("leaves", "sm", Shape::Leave(code as u16), Connection::default()));
    let says = |case: &Case, code: u64| -> Vec<u32> {
        let set = |w: &u32| match decode(*w) {
            Some(Insn::AluImm { op: Alu::Or, .. }) => with_i_imm(*w, code as i64),
            _ => *w,
        };
        case.compile().words.iter().map(set).collect()
    };
    for (case, own, other) in [(&timeout, status::TIMEOUT, &moved), (&moved, status::MOVED, &timeout)] {
        assert!(accepted(case, &says(case, own)), "what was compiled");
        assert!(!accepted(case, &says(other, own)), "{:?} with {own}", other.shape);
    }
}

/// A callee's own word for the status passes where the connection says so, and nowhere else.
#[test]
fn a_status_is_kept_only_where_it_may_be() {
    for case in cases::all().into_iter().filter(|case| case.shape == Shape::Call) {
        let other = Connection { keeps_status: !case.connection.keeps_status, ..case.connection };
        let refusal =
            verify::verify(&case.compile().words, &case.spec, case.shape, &other, Processor::Riscv64);
        // And what is open to a controller ends with the call.
        let opens = case.spec.windows().any(|(_, window, _)| window == pebble_portal::spec::Window::Open);
        let told = |r: verify::Refusal| opens || r.reason == verify::Reason::FirstOfReturn;
        assert!(refusal.is_err_and(told), "{}", case.name);
    }
}

//! The mips64 decoder and encoder against LLVM, which neither of them has seen; and portals, run.

mod common;

use common::cases::{self, Case};
use common::mips64::{AT, Exit, Machine};
use common::{MIPS64, Rng};
use pebble_abi::{map, status, sys, thread};
use pebble_arch::mips64::paging;
use pebble_arch::{Arch, Leaf, Mips64, Whose};
use pebble_portal::Processor;
use pebble_portal::hardware::{Code, Shape, Short};
use pebble_portal::isa::mips64::decode::{C0, Insn, REGISTERS, c0, decode};
use pebble_portal::isa::mips64::encode;
use std::collections::BTreeSet;

/// Mnemonics that the decoder must know, under all of the names that LLVM has for them.
const KNOWN: &str = "nop ehb lui addiu daddiu slti sltiu andi ori xori addu subu negu daddu dsubu dnegu and \
    or move xor nor not slt sltu movz movn sll srl sra dsll dsrl dsra dsll32 dsrl32 dsra32 dext dins lw lwu \
    ld sw sd b beq beqz bne bnez bltz bgez blez bgtz jr jalr mfc0 dmfc0 mtc0 dmtc0 mfhi mflo mthi mtlo di ei \
    tlbp tlbwi eret";

/// Random bits under every major opcode, with the fields that select an instruction often valid.
fn word(rng: &mut Rng) -> u32 {
    let mut word = rng.next() as u32;
    let clear = |rng: &mut Rng, word: u32, bits: u32| if rng.below(3) == 0 { word } else { word & !bits };
    match rng.below(8) {
        // Three registers, and a shift.
        0 => word = clear(rng, word & 0x03ff_ffff, 0x7c0),
        1 => word = clear(rng, word & 0x03ff_ffff, 0x3e0_0000),
        2 => {
            let unused = [0x1f_ffc0, 0x3ff_07c0, 0x1f_07c0, 0x3ff_ffc0][rng.below(4)];
            word = clear(rng, word & 0x03ff_ffff, unused);
        }
        // Register or immediate and branches on 0.
        3 => word = 1 << 26 | clear(rng, word & 0x03ff_ffff, 0x1e_0000),
        4 => word = clear(rng, word & 0x1fff_ffff, 0x1f_0000),
        // Coprocessor 0.
        5 => word = 0x4000_0000 | clear(rng, word & 0x01ff_ffff, 0x7f8),
        6 if rng.below(2) == 0 => {
            word = [0x4160_6000, 0x4160_6020, 0x4200_0000][rng.below(3)] | word & 0x1f_003f;
            word = clear(rng, word, 0x1f_001f);
        }
        6 => word = [0x4200_0002, 0x4200_0008, 0x4200_0018, 0, 0xc0][rng.below(5)],
        // Fields.
        _ if rng.below(2) == 0 => word = 0x7c00_0000 | word & 0x03ff_ffc7,
        _ => {}
    }
    word
}

/// A target as LLVM prints it, which thinks that addresses have 32 bits.
fn target(at: usize, distance: i64) -> String {
    format!("{:#x}", (at as u64).wrapping_add_signed(distance) as u32)
}

/// LLVM prints targets as addresses; ours are distances.
fn text(insn: Insn, at: usize) -> String {
    let text = insn.to_string();
    match insn {
        Insn::Branch { imm, .. } => {
            let (head, _) = text.rsplit_once(' ').expect("an operand");
            format!("{head} {}", target(at, imm))
        }
        _ => text,
    }
}

/// Words that LLVM disassembles under a known name, and that are none of portal code's: a field is not 0 that
/// must be (LLVM looks away), or a field has no bits, or all, or too many.
fn is_odd(word: u32, theirs: &str) -> bool {
    let (rt, function) = (word >> 16 & 31, word & 63);
    match theirs.split(' ').next().unwrap_or_default() {
        "jr" => function == 9,
        "jalr" => word >> 11 & 31 == 0,
        "dins" | "dext" => {
            let numbers: Vec<i32> = theirs.split(", ").skip(2).filter_map(|n| n.parse().ok()).collect();
            numbers[1] <= 0 || numbers.iter().sum::<i32>() > 64
        }
        "sll" => word >> 11 & 31 == 0 && rt | word >> 6 & 31 != 0,
        _ => false,
    }
}

#[test]
fn decoder_agrees_with_llvm() {
    let mut rng = Rng(0x5eed);
    let words: Vec<u32> = (0..40_000).map(|_| word(&mut rng)).collect();
    let known: BTreeSet<&str> = KNOWN.split_whitespace().collect();
    let mut seen = BTreeSet::new();
    for (i, (word, theirs)) in words.iter().zip(common::disassemble(&MIPS64, &words)).enumerate() {
        let mnemonic = theirs.split(' ').next().unwrap_or_default().to_owned();
        match decode(*word) {
            Some(insn) => {
                assert_eq!(text(insn, i * common::STRIDE), theirs, "{word:#010x}");
                seen.insert(mnemonic);
            }
            None => assert!(
                !known.contains(mnemonic.as_str()) || is_odd(*word, &theirs),
                "{word:#010x} is `{theirs}`, not decoded"
            ),
        }
    }
    let missing: Vec<_> = known.iter().filter(|m| !seen.contains(**m)).collect();
    assert!(missing.is_empty(), "never tried: {missing:?}");
}

/// Random operands of the encoder.
struct Operands(Rng);

impl Operands {
    fn reg(&mut self) -> u8 {
        self.0.below(32) as u8
    }
    fn imm(&mut self) -> i32 {
        self.0.below(0x1_0000) as i32 - 0x8000
    }
}

fn x(reg: u8) -> &'static str {
    REGISTERS[usize::from(reg)]
}

/// One instruction of every kind with random operands: the encoder's word, and what LLVM should read in it at
/// `at`.
fn encoded(o: &mut Operands, at: usize) -> Vec<(u32, String)> {
    let (a, b, c, imm) = (o.reg(), o.reg(), o.reg(), o.imm());
    // What LLVM has another name for.
    let c = if c == 0 { 1 } else { c };
    let b = if b == 0 { 31 } else { b };
    let a = if a == 0 { 7 } else { a };
    let logical = o.0.below(0x1_0000) as u32;
    let (by, short) = (o.0.below(64) as u32, o.0.below(32) as u32);
    let pos = o.0.below(64) as u32;
    let size = 1 + o.0.below((64 - pos as usize).min(63)) as u32;
    let distance = o.imm() * 4 + 4;
    let target = target(at, distance.into());
    let control = o.reg();
    let alu = |name: &str| format!("{name} {}, {}, {}", x(a), x(b), x(c));
    let immediate = |name: &str| format!("{name} {}, {}, {imm}", x(a), x(b));
    let bits = |name: &str| format!("{name} {}, {}, {logical}", x(a), x(b));
    let memory = |name: &str| format!("{name} {}, {imm}({})", x(a), x(b));
    let shift = |name: &str| {
        let wide = if by < 32 { "" } else { "32" };
        format!("{name}{wide} {}, {}, {}", x(a), x(b), by & 31)
    };
    let field = |name: &str| format!("{name} {}, {}, {pos}, {size}", x(a), x(b));
    let branch = |name: &str| format!("{name} {}, {target}", x(a));
    let one = |name: &str| format!("{name} {}", x(a));
    let c0 = |name: &str| format!("{name} {}, ${control}, 0", x(a));
    vec![
        (encode::lui(a, logical), format!("lui {}, {logical}", x(a))),
        (encode::daddiu(a, b, imm), immediate("daddiu")),
        (encode::sltiu(a, b, imm), immediate("sltiu")),
        (encode::andi(a, b, logical), bits("andi")),
        (encode::ori(a, b, logical), bits("ori")),
        (encode::xori(a, b, logical), bits("xori")),
        (encode::and(a, b, c), alu("and")),
        (encode::or(a, b, c), alu("or")),
        (encode::copy(a, b), format!("move {}, {}", x(a), x(b))),
        (encode::xor(a, b, c), alu("xor")),
        (encode::nor(a, b, c), alu("nor")),
        (encode::slt(a, b, c), alu("slt")),
        (encode::sltu(a, b, c), alu("sltu")),
        (encode::daddu(a, b, c), alu("daddu")),
        (encode::dsubu(a, b, c), alu("dsubu")),
        (encode::movz(a, b, c), alu("movz")),
        (encode::movn(a, b, c), alu("movn")),
        (encode::dsll(a, b, by), shift("dsll")),
        (encode::dsrl(a, b, by), shift("dsrl")),
        (encode::dsra(a, b, by), shift("dsra")),
        (encode::sll(a, b, short), format!("sll {}, {}, {short}", x(a), x(b))),
        (encode::dext(a, b, pos, size), field("dext")),
        (encode::dins(a, b, pos, size), field("dins")),
        (encode::ld(a, b, imm), memory("ld")),
        (encode::sd(a, b, imm), memory("sd")),
        (encode::jr(a), one("jr")),
        (
            encode::jalr(a, b),
            if a == 31 { format!("jalr {}", x(b)) } else { format!("jalr {}, {}", x(a), x(b)) },
        ),
        (encode::beq(a, b, distance), format!("beq {}, {}, {target}", x(a), x(b))),
        (encode::bne(a, b, distance), format!("bne {}, {}, {target}", x(a), x(b))),
        (encode::blez(a, distance), branch("blez")),
        (encode::bgtz(a, distance), branch("bgtz")),
        (encode::bltz(a, distance), branch("bltz")),
        (encode::bgez(a, distance), branch("bgez")),
        (encode::mfc0(a, control), c0("mfc0")),
        (encode::dmfc0(a, control), c0("dmfc0")),
        (encode::mtc0(a, control), c0("mtc0")),
        (encode::dmtc0(a, control), c0("dmtc0")),
        (encode::mfhi(a), one("mfhi")),
        (encode::mflo(a), one("mflo")),
        (encode::mthi(a), one("mthi")),
        (encode::mtlo(a), one("mtlo")),
        (encode::di(), "di".into()),
        (encode::ei(), "ei".into()),
        (encode::tlbp(), "tlbp".into()),
        (encode::tlbwi(), "tlbwi".into()),
        (encode::ehb(), "ehb".into()),
        (encode::eret(), "eret".into()),
        (encode::nop(), "nop".into()),
    ]
}

#[test]
fn encoder_agrees_with_llvm() {
    let mut operands = Operands(Rng(0xc0de));
    let kinds = encoded(&mut operands, 0).len();
    let expected: Vec<String> = {
        let source = include_str!("../src/isa/mips64/encode.rs");
        let names = source.lines().filter_map(|l| l.strip_prefix("pub fn "));
        names.map(|l| l.split('(').next().unwrap_or(l).replace("copy", "move")).collect()
    };
    let mut words = Vec::new();
    let mut texts = Vec::new();
    for _ in 0..400 {
        for i in 0..kinds {
            let (word, text) = encoded(&mut operands, words.len() * common::STRIDE).swap_remove(i);
            words.push(word);
            texts.push(text);
        }
    }
    for (i, theirs) in common::disassemble(&MIPS64, &words).into_iter().enumerate() {
        assert_eq!(texts[i], theirs, "{:#010x}", words[i]);
    }
    for name in expected {
        assert!(texts.iter().any(|t| t.split(' ').next() == Some(&name)), "encode::{name} is not tried here");
    }
}

/// A thread's block, and its first frame.
const THREAD: u16 = 9;
const TOP: u64 = map::thread_va(THREAD) + 0x100;
const RETURN: u64 = map::CODE_VA + 0x10_0000;

/// A thread of domain 5, in user mode, about to invoke a portal.
fn caller() -> Machine {
    let mut m = Machine::new();
    let block = map::thread_va(THREAD);
    m.memory.extend((0..map::PAGE / 8).map(|n| (block + n * 8, 0)));
    m.memory.insert(TOP, RETURN);
    m.memory.insert(RETURN - 8, 3 << 16 | 5 << 32);
    for domain in 0..map::MAX_DOMAINS as u16 {
        m.memory.insert(map::stack_queue_va(domain), map::STACKS_END);
    }
    m.memory.insert(map::STACKS_END, 0);
    m.memory.insert(map::STACKS_WANTED, 0);
    m.memory.insert(map::KDATA_VA + map::TIME_OFF, 0);
    // Portal tables: what there is goes on to its index.
    for domain in [5, 7] {
        let root = paging::root_va(cases::space(Processor::Mips64, domain));
        m.memory.insert(root + paging::ROOT_PORTALS, root + 0x100_0000);
        m.memory.extend((0..64).map(|n| (root + 0x100_0000 + n * 8, 0xf000 + n)));
    }
    m.space(5);
    m.c0.insert(c0::ERROR_EPC.0, TOP);
    m.x[27] = TOP;
    m
}

trait InSpace {
    fn space(&mut self, domain: u16);
    fn in_space(&self) -> u64;
    fn control(&self, register: C0) -> u64;
}

impl InSpace for Machine {
    fn space(&mut self, domain: u16) {
        let space = cases::space(Processor::Mips64, domain);
        self.c0.insert(c0::ENTRY_HI.0, space);
        self.c0.insert(c0::DESAVE.0, paging::root_va(space));
    }
    fn in_space(&self) -> u64 {
        self.control(c0::DESAVE) | self.control(c0::ENTRY_HI) & 0xff
    }
    fn control(&self, register: C0) -> u64 {
        self.c0.get(&register.0).copied().unwrap_or_default()
    }
}

fn call(spec: &str, windows: bool) -> (Case, Code) {
    let of =
        |domain| if windows { cases::lender(domain, false) } else { cases::domain(domain, false, false) };
    let case = Case::new(spec, spec, Shape::Call, cases::connect(of(5), of(7))).on(Processor::Mips64);
    let code = case.compile();
    (case, code)
}

/// A stack of domain 7.
fn give_stack(m: &mut Machine) -> u64 {
    let stack = map::stack_desc_va(3);
    m.memory.insert(map::stack_queue_va(7), stack);
    m.memory.insert(stack, map::STACKS_END);
    m.memory.insert(stack + 8, map::stack_top(7, 0));
    stack
}

const PRESERVED: [usize; 10] = [16, 17, 18, 19, 20, 21, 22, 23, 28, 30];

#[test]
fn a_call_enters_with_its_words_alone_and_comes_back() {
    let (case, code) = call("npiiii", false);
    let mut m = caller();
    let stack = give_stack(&mut m);
    let before = m.x;
    assert_eq!(m.run(&code, 0, 0), Exit::User);
    let mut expected = [0; 32];
    expected[4..8].copy_from_slice(&before[5..9]);
    (expected[29], expected[31]) = (map::stack_top(7, 0), map::GATE_VA);
    assert_eq!((m.x, m.hi, m.lo), (expected, 0, 0));
    assert_eq!((m.in_space(), m.control(c0::EPC)), (case.connection.callee.space, case.connection.entry));
    assert_eq!(m.memory[&map::stack_queue_va(7)], map::STACKS_END);
    let top = m.control(c0::ERROR_EPC);
    let back = usize::from(code.ret_at.expect("a return leg"));
    assert_eq!((top, m.memory[&top]), (TOP + u64::from(code.frame_words) * 8, AT + back as u64));

    // The callee has used every register; an error return keeps the status.
    for (from, status) in [(0, 0), (4, 0xbad)] {
        let mut m = Machine { memory: m.memory.clone(), c0: m.c0.clone(), ..Machine::new() };
        (m.x, m.x[27]) = (core::array::from_fn(|n| 0xbad0_0000 * u64::from(n != 0) + n as u64), top);
        m.x[3] = 0xbad;
        assert_eq!(m.run(&code, back + from, back), Exit::User);
        let mut expected = [0; 32];
        PRESERVED.iter().for_each(|x| expected[*x] = before[*x]);
        (expected[2], expected[3], expected[29], expected[31]) =
            (0xbad0_0002, status, before[29], before[31]);
        assert_eq!((m.x, m.hi, m.lo), (expected, 0, 0));
        assert_eq!((m.in_space(), m.control(c0::EPC)), (case.connection.caller.space, before[31]));
        assert_eq!(m.control(c0::ERROR_EPC), TOP);
        assert_eq!((m.memory[&map::stack_queue_va(7)], m.memory[&stack]), (stack, map::STACKS_END));
    }
}

#[test]
fn a_call_that_cannot_be_is_one_that_has_not_been() {
    let (_, code) = call("npiiii", false);
    // No stack: what waits finds the domain, and the caller's registers.
    let mut m = caller();
    let before = m.x;
    assert_eq!(m.run(&code, 0, 0), Exit::Jump(0xf000 + sys::NO_STACK as u64));
    assert_eq!((m.control(c0::DEPC), m.control(c0::ERROR_EPC), m.x[27]), (7, TOP, TOP));
    let kept = (4..13).chain(PRESERVED).chain([29, 31]);
    assert!(kept.into_iter().filter(|x| ![10, 11].contains(x)).all(|x| m.x[x] == before[x]));
    assert!([14, 15, 24, 25].iter().all(|x| m.x[*x] == 0));
    // The last stack is for who waits.
    let stack = give_stack(&mut m);
    m.memory.insert(stack, map::STACKS_WANTED);
    assert_eq!(m.run(&code, 0, 0), Exit::Jump(0xf000 + sys::NO_STACK as u64));
    assert_eq!(m.memory[&map::stack_queue_va(7)], stack);
    // No room.
    let mut m = caller();
    m.x[27] = map::thread_va(THREAD) + thread::INVOCATION_LIMIT;
    let before = m.x;
    assert_eq!(m.run(&code, 0, 0), Exit::Jump(0xf000 + sys::EXCEPTION as u64));
    assert_eq!((m.x[14], &m.x[1..14], &m.x[15..26]), (0, &before[1..14], &before[15..26]));
}

#[test]
fn a_trap_gives_every_register_back() {
    let handled = cases::connect(cases::domain(0, false, false), cases::domain(7, false, false));
    let case = Case::new("exception", "np", Shape::Exception, handled).on(Processor::Mips64);
    let code = case.compile();
    let mut m = caller();
    let stack = give_stack(&mut m);
    m.c0.extend([(c0::EPC.0, 0x1_4444), (c0::CAUSE.0, 2 << 2), (c0::BAD_VADDR.0, 0x55_5000)]);
    let (before, hi, lo) = (m.x, m.hi, m.lo);
    assert_eq!(m.run(&code, 0, 0), Exit::User);
    assert_eq!(m.x[4..10], [2 << 2, 0x55_5000, 0x1_4444, 5, THREAD.into(), before[12]]);
    let top = m.control(c0::ERROR_EPC);
    let back = usize::from(code.ret_at.expect("a return leg"));
    let (memory, c0) = (m.memory, m.c0);
    let mut m = Machine { memory, c0, ..Machine::new() };
    m.x = [7; 32];
    (m.x[0], m.x[27]) = (0, top);
    assert_eq!(m.run(&code, back, back), Exit::User);
    let mut expected = before;
    (expected[26], expected[27]) = (0, 0);
    assert_eq!((m.x, m.hi, m.lo), (expected, hi, lo));
    assert_eq!((m.control(c0::EPC), m.in_space()), (0x1_4444, cases::space(Processor::Mips64, 5)));
    assert_eq!((m.control(c0::ERROR_EPC), m.memory[&map::stack_queue_va(7)]), (TOP, stack));
    // What was no interrupt is the domain's exception, with nothing changed.
    let c = cases::connect(cases::domain(0, false, false), cases::domain(2, false, true));
    let code = Case::new("interrupt", "nm", Shape::Interrupt, c).on(Processor::Mips64).compile();
    let mut m = caller();
    m.c0.insert(c0::CAUSE.0, 8 << 2);
    assert_eq!(m.run(&code, 0, 0), Exit::Jump(0xf000 + sys::EXCEPTION as u64));
    assert_eq!((&m.x[..26], &m.x[28..]), (&before[..26], &before[28..]));
}

#[test]
fn time_goes_on_when_the_counter_turns() {
    let short = |short| {
        let c = cases::connect(cases::domain(5, false, false), cases::domain(7, false, false));
        Case::new("short", "sm", Shape::Short(short), c).on(Processor::Mips64).compile()
    };
    let (time, timer) = (short(Short::Time), short(Short::SetTimer));
    let last = map::KDATA_VA + map::TIME_OFF;
    for (before, count, now) in [
        (0, 5, 5),
        (0x7_ffff_fff0, 0xffff_fff0, 0x7_ffff_fff0),
        (0x7_ffff_fff0, 3, 0x8_0000_0003),
        (0x7_8000_0000, 0x7fff_ffff, 0x8_7fff_ffff),
    ] {
        let mut m = caller();
        m.memory.insert(last, before);
        m.c0.insert(c0::COUNT.0, count);
        assert_eq!(m.run(&time, 0, 0), Exit::User);
        assert_eq!((m.x[2], m.x[3], m.memory[&last]), (now, 0, now));
        assert!([14, 15, 26, 27].iter().all(|x| m.x[*x] == 0));
        for (at, ahead) in [
            (now + 5000, 5000),
            (now, 16),
            (now.saturating_sub(9), 16),
            (0, 16),
            (now + (1 << 31), 0x7fff_0000),
            (u64::MAX, 0x7fff_0000),
        ] {
            m.x[5] = at;
            assert_eq!(m.run(&timer, 0, 0), Exit::User);
            assert_eq!(
                m.control(c0::COMPARE) as u32,
                (count as u32).wrapping_add(ahead),
                "{at:#x} at {now:#x}"
            );
            assert!([2, 3, 14, 15, 26, 27].iter().all(|x| m.x[*x] == 0));
        }
    }
}

/// Physical addresses: the caller's tables, the page that it lends, and the entry of the callee's slot.
const LOWER: u64 = 0x300_0000;
const LENT: u64 = 0x300_5000;
const PLACE: u64 = map::direct(0x300_7000);

/// What `windows` says of a domain's slots, with one that is free; the page at 0x40_3000 is the caller's.
fn lend(m: &mut Machine, case: &Case, leaf: Leaf) -> u64 {
    let (caller, callee) = (&case.connection.caller, &case.connection.callee);
    let control = callee.windows;
    m.memory.extend((0..map::PAGE / 8).map(|n| (control + n * 8, 0)));
    let slot = control + map::WINDOW_PAGE_DESC;
    m.memory.insert(control + map::WINDOW_PAGES, slot);
    m.memory.insert(control + map::WINDOW_PAGES + map::WINDOW_APART, slot);
    m.memory.insert(slot + 8, map::WINDOWS_VA + 0x3000);
    m.memory.insert(slot + 16, PLACE);
    m.memory.insert(PLACE, 0);
    m.memory.insert(caller.windows + map::WINDOW_MOVED, 10);
    m.memory.insert(caller.l1 + 2 * 8, Mips64::table(LOWER));
    m.memory.insert(map::direct(LOWER) + 3 * 8, Mips64::leaf(LENT, leaf));
    slot
}

#[test]
fn a_window_meets_the_tlb_only_if_it_was_touched() {
    let shown = Leaf { whose: Whose::Borrowed, ..Leaf::USER_RW };
    let read = Leaf { write: false, ..shown };
    let code = Leaf { execute: true, ..Leaf::USER_RW };
    for (spec, own, shown) in
        [("npw", Leaf::USER_RW, shown), ("npr", Leaf::USER_RW, read), ("npr", code, read)]
    {
        for touched in [false, true] {
            let (case, code) = call(spec, true);
            let mut m = caller();
            give_stack(&mut m);
            let slot = lend(&mut m, &case, own);
            m.x[5] = 0x40_3123;
            assert_eq!(m.run(&code, 0, 0), Exit::User);
            assert_eq!(m.x[4], map::WINDOWS_VA + 0x3123);
            let leaf = m.memory[&PLACE];
            assert_eq!(leaf, Mips64::leaf(LENT, shown) | paging::UNTOUCHED);
            assert_eq!(m.memory[&(case.connection.callee.windows + map::WINDOW_PAGES)], 0);
            if touched {
                m.memory.insert(PLACE, leaf & !paging::UNTOUCHED);
            }
            let back = usize::from(code.ret_at.expect("a return leg"));
            m.x[27] = m.control(c0::ERROR_EPC);
            m.found = 6;
            assert_eq!(m.run(&code, back, back), Exit::User);
            assert_eq!((m.memory[&PLACE], m.in_space()), (0, case.connection.caller.space));
            assert_eq!(m.memory[&(case.connection.callee.windows + map::WINDOW_PAGES)], slot);
            let probed = vec![map::WINDOWS_VA + 0x2000 | 7; usize::from(touched)];
            assert_eq!(m.probed, probed);
            let written = vec![(6, !6 << 13, [0, 0]); usize::from(touched)];
            assert_eq!(m.written, written);
        }
    }
}

#[test]
fn what_is_not_the_callers_to_lend_is_refused() {
    let (case, code) = call("npw", true);
    let refused = |address: u64, leaf: Leaf| {
        let mut m = caller();
        give_stack(&mut m);
        lend(&mut m, &case, leaf);
        let root = paging::root_va(case.connection.caller.space);
        m.memory.insert(root + map::ROOT_WINDOWS, case.connection.callee.windows);
        let from = m.x[31];
        m.x[5] = address;
        assert_eq!(m.run(&code, 0, 0), Exit::User);
        let refused = m.control(c0::EPC) == from;
        if refused {
            let mut expected = [0; 32];
            PRESERVED.iter().chain(&[29, 31]).for_each(|x| expected[*x] = m.x[*x]);
            (expected[2], expected[3]) = (u64::MAX, status::WINDOW | 5 << 16);
            assert_eq!((m.x, m.control(c0::ERROR_EPC), m.memory[&PLACE]), (expected, TOP, 0));
        }
        refused
    };
    assert!(!refused(0x40_3000, Leaf::USER_RW));
    for leaf in
        [Leaf::USER_R, Leaf::FOREIGN_RW, Leaf::NUCLEUS_RW, Leaf { whose: Whose::Borrowed, ..Leaf::USER_RW }]
    {
        assert!(refused(0x40_3000, leaf), "{leaf:?}");
    }
    for address in [map::USER_END, u64::MAX, map::KERNEL_VA, 1 << 63 | 0x40_3000] {
        assert!(refused(address, Leaf::USER_RW), "{address:#x}");
    }
}

#[test]
fn a_torn_page_is_the_callers_no_more() {
    let (case, code) = call("npt", true);
    let mut m = caller();
    give_stack(&mut m);
    lend(&mut m, &case, Leaf::USER_RW);
    (m.x[5], m.found) = (0x40_3008, 2);
    assert_eq!(m.run(&code, 0, 0), Exit::User);
    assert_eq!((m.x[4], m.memory[&PLACE]), (map::WINDOWS_VA + 0x3008, Mips64::leaf(LENT, Leaf::USER_RW)));
    assert_eq!(m.memory[&(map::direct(LOWER) + 24)], 0);
    assert_eq!((m.probed, m.written), (vec![0x40_2000 | 5], vec![(2, !2 << 13, [0, 0])]));
    let moved = |windows| m.memory[&(windows + map::WINDOW_MOVED)];
    assert_eq!([moved(case.connection.callee.windows), moved(case.connection.caller.windows)], [1, 9]);
}

/// Closing a buffer forgets the whole domain, in the midst of which portal code finds itself again.
#[test]
fn a_buffer_is_forgotten_with_its_domain() {
    let (case, code) = call("npw4", true);
    let (caller_domain, callee) = (&case.connection.caller, &case.connection.callee);
    let mut m = caller();
    let stack = give_stack(&mut m);
    lend(&mut m, &case, Leaf::USER_RW);
    let slot = callee.windows + map::WINDOW_BUFFER_DESC;
    m.memory.insert(callee.windows + map::WINDOW_BUFFERS, slot);
    m.memory.extend([(slot + 8, map::BUFFERS_VA + 8 * map::BUFFER_STRIDE), (slot + 16, PLACE)]);
    m.memory.insert(PLACE + 8, 0);
    let entry = caller_domain.l1 + (map::BUFFERS_VA >> 21) * 8;
    m.memory.extend([(entry, Mips64::table(LOWER)), (entry + 8, Mips64::table(LOWER + 0x1000))]);
    m.memory.insert(map::direct(LOWER) + 4 * 8, 0);
    m.x[5] = map::BUFFERS_VA;
    assert_eq!(m.run(&code, 0, 0), Exit::User);
    assert_eq!(m.x[4], map::BUFFERS_VA + 8 * map::BUFFER_STRIDE);
    let shown = [m.memory[&PLACE], m.memory[&(PLACE + 8)]];
    assert_eq!(shown, [LOWER, LOWER + 0x1000].map(|pa| Mips64::marked(Mips64::table(pa), Whose::Borrowed)));
    let back = usize::from(code.ret_at.expect("a return leg"));
    (m.x[27], m.x[31]) = (m.control(c0::ERROR_EPC), 0);
    assert_eq!(m.run(&code, back, back), Exit::User);
    assert_eq!((m.flushed.clone(), m.memory[&PLACE], m.memory[&(PLACE + 8)]), (vec![7], 0, 0));
    assert_eq!((m.in_space(), m.control(c0::ERROR_EPC)), (caller_domain.space, TOP));
    assert_eq!(m.memory[&(callee.windows + map::WINDOW_BUFFERS)], slot);
    assert_eq!(m.memory[&map::stack_queue_va(7)], stack);
    assert!([1, 13, 14, 15, 24, 25, 26, 27].iter().all(|x| m.x[*x] == 0));
}

#[test]
fn what_a_g_call_was_promised_comes_with_its_return() {
    let (case, code) = call("npg", true);
    let (caller_domain, callee) = (&case.connection.caller, &case.connection.callee);
    let goal = map::direct(LOWER) + 259 * 8;
    let page = Mips64::leaf(LENT, Leaf::USER_RW);
    let wrong = Mips64::leaf(LENT, Leaf::USER_R);
    let failed = status::WINDOW | 7 << 16;
    for (left, status) in [(page, 0), (Mips64::WAITS, failed), (0, failed), (wrong, failed)] {
        let mut m = caller();
        give_stack(&mut m);
        let slot = lend(&mut m, &case, Leaf::USER_RW);
        m.memory.extend([(caller_domain.l1 + 216 * 8, Mips64::table(LOWER)), (goal, 0)]);
        m.x[5] = map::WINDOWS_VA + 259 * map::PAGE;
        assert_eq!(m.run(&code, 0, 0), Exit::User);
        assert_eq!((m.x[4], m.memory[&PLACE]), (map::WINDOWS_VA + 0x3000, Mips64::WAITS));
        assert_eq!(m.memory[&(slot + map::WINDOW_HOLDER)], slot);
        m.memory.insert(PLACE, left);
        m.memory.insert(callee.windows + map::WINDOW_MOVED, 4);
        let back = usize::from(code.ret_at.expect("a return leg"));
        (m.x[27], m.found) = (m.control(c0::ERROR_EPC), 1);
        assert_eq!(m.run(&code, back, back), Exit::User);
        let moves = left == page;
        assert_eq!((m.x[3], m.in_space()), (status, caller_domain.space), "{left:#x}");
        assert_eq!(m.memory[&goal], if moves { page } else { 0 });
        // What is no such page the callee keeps, and the slot with it.
        let (kept, free) = if left == wrong { (wrong, 0) } else { (0, slot) };
        assert_eq!((m.memory[&PLACE], m.memory[&(callee.windows + map::WINDOW_PAGES)]), (kept, free));
        let moved = [callee.windows, caller_domain.windows].map(|w| m.memory[&(w + map::WINDOW_MOVED)]);
        assert_eq!(moved, if moves { [3, 11] } else { [4, 10] });
        assert!([1, 13, 14, 15, 24, 25, 26, 27].iter().all(|x| m.x[*x] == 0));
    }
}

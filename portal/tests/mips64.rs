//! The mips64 decoder and encoder against LLVM, which neither of them has seen.

mod common;

use common::{MIPS64, Rng};
use pebble_portal::isa::mips64::decode::{Insn, REGISTERS, decode};
use pebble_portal::isa::mips64::encode;
use std::collections::BTreeSet;

/// Mnemonics that the decoder must know, under all of the names that LLVM has for them.
const KNOWN: &str = "nop ehb lui addiu daddiu slti sltiu andi ori xori addu subu negu daddu dsubu dnegu and or \
    move xor nor not slt sltu movz movn sll srl sra dsll dsrl dsra dsll32 dsrl32 dsra32 dext dins lw lwu ld sw \
    sd b beq beqz bne bnez bltz bgez blez bgtz jr jalr mfc0 dmfc0 mtc0 dmtc0 mfhi mflo mthi mtlo di ei tlbp \
    tlbwi eret";

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
        (encode::addiu(a, b, imm), immediate("addiu")),
        (encode::daddiu(a, b, imm), immediate("daddiu")),
        (encode::slti(a, b, imm), immediate("slti")),
        (encode::sltiu(a, b, imm), immediate("sltiu")),
        (encode::andi(a, b, logical), bits("andi")),
        (encode::ori(a, b, logical), bits("ori")),
        (encode::xori(a, b, logical), bits("xori")),
        (encode::subu(a, b, c), alu("subu")),
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
        (encode::lw(a, b, imm), memory("lw")),
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

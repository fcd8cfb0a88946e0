//! The rv64 decoder and encoder against LLVM, which neither of them has seen.

mod common;

use common::Rng;
use pebble_portal::isa::riscv64::decode::{self, Alu, CsrOp, Insn, REGISTERS, Width, decode};
use pebble_portal::isa::riscv64::encode;
use std::collections::BTreeSet;

/// Mnemonics (without aliases) that the decoder must know.
const KNOWN: &str = "lui auipc addi andi ori xori slti sltiu slli srli srai add sub and or xor sltu \
    lb lh lw ld lbu lhu lwu sb sh sw sd fld fsd fmv.d.x jal jalr beq bne blt bge bltu bgeu \
    csrrw csrrs csrrc csrrwi csrrsi csrrci ecall ebreak sret wfi sfence.vma fence.i";

/// CSRs that have a name in the disassembly, and one that has none in LLVM either.
const CSRS: [u32; 18] = [
    0x001, 0x002, 0x003, 0x100, 0x104, 0x105, 0x106, 0x140, 0x141, 0x142, 0x143, 0x144, 0x14d, 0x180, 0xc00,
    0xc01, 0xc02, 0x803,
];

/// Random bits under every major opcode, with the fields that select an instruction often valid.
fn word(rng: &mut Rng) -> u32 {
    const OPCODES: [u32; 14] =
        [0x03, 0x07, 0x0f, 0x13, 0x17, 0x23, 0x27, 0x33, 0x37, 0x53, 0x63, 0x67, 0x6f, 0x73];
    const SYSTEM: [u32; 6] = [0x73, 0x10_0073, 0x1020_0073, 0x1050_0073, 0x1200_0073, 0x12a5_8073];
    let opcode = OPCODES[rng.below(OPCODES.len())];
    let mut word = rng.next() as u32 & !0x7f | opcode;
    match opcode {
        0x0f if rng.below(2) == 0 => word = 0x100f,
        0x13 if rng.below(2) == 0 => word &= 0x43ff_ffff,
        0x33 => word = word & 0x01ff_ffff | [0, 0x20, 1, 5][rng.below(4)] << 25,
        0x53 if rng.below(2) == 0 => word = 0xf200_0053 | word & 0x000f_8f80,
        0x73 if rng.below(4) == 0 => word = SYSTEM[rng.below(SYSTEM.len())],
        0x73 => word = word & 0x000f_ffff | CSRS[rng.below(CSRS.len())] << 20,
        _ => {}
    }
    word
}

/// LLVM prints targets as addresses; ours are distances.
fn text(insn: Insn, at: usize) -> String {
    let text = insn.to_string();
    match insn {
        Insn::Jal { imm, .. } | Insn::Branch { imm, .. } => {
            let (head, _) = text.rsplit_once(' ').expect("an operand");
            format!("{head} {:#x}", (at as u64).wrapping_add_signed(imm))
        }
        _ => text,
    }
}

#[test]
fn decoder_agrees_with_llvm() {
    let mut rng = Rng(0x5eed);
    let words: Vec<u32> = (0..20_000).map(|_| word(&mut rng)).collect();
    let known: BTreeSet<&str> = KNOWN.split_whitespace().collect();
    let mut seen = BTreeSet::new();
    for (i, (word, theirs)) in words.iter().zip(common::disassemble(&common::RISCV64, &words)).enumerate() {
        let mnemonic = theirs.split(' ').next().unwrap_or_default().to_owned();
        match decode(*word) {
            Some(insn) => {
                assert_eq!(text(insn, i * common::STRIDE), theirs, "{word:#010x}");
                seen.insert(mnemonic);
            }
            None => assert!(!known.contains(mnemonic.as_str()), "{word:#010x} is `{theirs}`, not decoded"),
        }
    }
    let missing: Vec<_> = known.iter().filter(|m| !seen.contains(**m)).collect();
    assert!(missing.is_empty(), "never tried: {missing:?}");
}

/// The short cuts say what `decode` says.
#[test]
fn short_cuts_agree_with_the_decoder() {
    let mut rng = Rng(0xfa57);
    let mut tried = [0; 7];
    for _ in 0..200_000 {
        let mut word = word(&mut rng);
        match rng.below(12) {
            0 => word = word & 0xf80 | 0x13,
            1 => word = word & !0x707f | 0x3003,
            2 => word = word & !0x707f | 0x3023,
            3 => word = word & !0x707f | 0x13,
            4 => word = word & !0x7f | 0x37,
            5 => word = word & !0x7fff | 0x1073,
            6 => word = word & !0x307f | 0x63,
            _ => {}
        }
        let insn = decode(word);
        let mut tally = 0;
        let mut check = |name: &str, hit: bool, same: bool| {
            assert!(same, "`{name}` does not say of {word:#010x} what `decode` says: {insn:?}");
            tried[tally] += u32::from(hit);
            tally += 1;
        };
        let Some(insn) = insn else {
            assert!(decode::clears(word).is_none() && decode::adds(word).is_none(), "{word:#010x}");
            assert!(decode::loads_double(word).is_none() && decode::stores_double(word).is_none());
            assert!(decode::loads_upper(word).is_none() && decode::writes_csr(word).is_none());
            continue;
        };
        let clears = match insn {
            Insn::AluImm { op: Alu::Add, rd, rs1: 0, imm: 0 } => Some(rd),
            _ => None,
        };
        check("clears", clears.is_some(), decode::clears(word) == clears);
        let load = match insn {
            Insn::Load { width: Width::D, rd, rs1, imm } => Some((rd, rs1, imm)),
            _ => None,
        };
        check("loads_double", load.is_some(), decode::loads_double(word) == load);
        let store = match insn {
            Insn::Store { width: Width::D, rs2, rs1, imm } => Some((rs2, rs1, imm)),
            _ => None,
        };
        check("stores_double", store.is_some(), decode::stores_double(word) == store);
        let sum = match insn {
            Insn::AluImm { op: Alu::Add, rd, rs1, imm } => Some((rd, rs1, imm)),
            _ => None,
        };
        check("adds", sum.is_some(), decode::adds(word) == sum);
        let upper = match insn {
            Insn::Lui { rd, imm } => Some((rd, imm)),
            _ => None,
        };
        check("loads_upper", upper.is_some(), decode::loads_upper(word) == upper);
        let write = match insn {
            Insn::Csr { op: CsrOp::W, rd: 0, csr, rs1 } => Some((csr, rs1)),
            _ => None,
        };
        check("writes_csr", write.is_some(), decode::writes_csr(word) == write);
        let branch = matches!(insn, Insn::Branch { .. });
        check("branches", branch, decode::branches(word) == branch);
    }
    assert!(tried.iter().all(|n| *n > 1000), "{tried:?}");
}

#[test]
fn compressed_and_empty_words_are_nothing() {
    for word in [0, 1, 2, 0xffff_ffff, 0x8082, 0x0001_0001] {
        assert_eq!(decode(word), None, "{word:#x}");
    }
}

/// Random operands of the encoder.
struct Operands(Rng);

impl Operands {
    fn reg(&mut self) -> u8 {
        self.0.below(32) as u8
    }
    fn imm(&mut self) -> i32 {
        self.0.below(4096) as i32 - 2048
    }
    fn distance(&mut self) -> i32 {
        (self.0.below(4096) as i32 - 2048) * 2
    }
    fn csr(&mut self) -> u32 {
        CSRS[self.0.below(CSRS.len())]
    }
}

fn x(reg: u8) -> &'static str {
    REGISTERS[usize::from(reg)]
}

fn f(reg: u8) -> String {
    let name = |letter, n| format!("f{letter}{n}");
    match reg {
        0..8 => name('t', reg),
        8 | 9 => name('s', reg - 8),
        10..18 => name('a', reg - 10),
        18..28 => name('s', reg - 16),
        _ => name('t', reg - 20),
    }
}

fn csr_name(csr: u32) -> &'static str {
    const NAMES: [&str; 18] = [
        "fflags",
        "frm",
        "fcsr",
        "sstatus",
        "sie",
        "stvec",
        "scounteren",
        "sscratch",
        "sepc",
        "scause",
        "stval",
        "sip",
        "stimecmp",
        "satp",
        "cycle",
        "time",
        "instret",
        "2051",
    ];
    NAMES[CSRS.iter().position(|c| *c == csr).expect("a known number")]
}

/// One instruction of every kind with random operands: the encoder's word, and what LLVM should read in it at
/// `at`.
fn encoded(o: &mut Operands, at: usize) -> Vec<(u32, String)> {
    let (a, b, c, imm) = (o.reg(), o.reg(), o.reg(), o.imm());
    let (shift, upper, distance, csr) =
        (o.0.below(64) as u32, o.0.below(1 << 20) as u32, o.distance(), o.csr());
    let target = format!("{:#x}", (at as u64).wrapping_add_signed(i64::from(distance)));
    let registers = |name: &str, p: u8, q: u8, rest: &str| format!("{name} {}, {}, {rest}", x(p), x(q));
    let memory = |name: &str, p: &str, q: u8| format!("{name} {p}, {imm}({})", x(q));
    let control = |name: &str| format!("{name} {}, {}, {}", x(a), csr_name(csr), x(b));
    vec![
        (encode::lui(a, upper), format!("lui {}, {upper}", x(a))),
        (encode::addi(a, b, imm), registers("addi", a, b, &imm.to_string())),
        (encode::andi(a, b, imm), registers("andi", a, b, &imm.to_string())),
        (encode::ori(a, b, imm), registers("ori", a, b, &imm.to_string())),
        (encode::slli(a, b, shift), registers("slli", a, b, &shift.to_string())),
        (encode::srli(a, b, shift), registers("srli", a, b, &shift.to_string())),
        (encode::srai(a, b, shift), registers("srai", a, b, &shift.to_string())),
        (encode::add(a, b, c), registers("add", a, b, x(c))),
        (encode::sub(a, b, c), registers("sub", a, b, x(c))),
        (encode::xor(a, b, c), registers("xor", a, b, x(c))),
        (encode::or(a, b, c), registers("or", a, b, x(c))),
        (encode::ld(a, b, imm), memory("ld", x(a), b)),
        (encode::sd(a, b, imm), memory("sd", x(a), b)),
        (encode::fld(a, b, imm), memory("fld", &f(a), b)),
        (encode::fsd(a, b, imm), memory("fsd", &f(a), b)),
        (encode::fmv_d_x(a, b), format!("fmv.d.x {}, {}", f(a), x(b))),
        (encode::jalr(a, b, imm), memory("jalr", x(a), b)),
        (encode::beq(a, b, distance), registers("beq", a, b, &target)),
        (encode::bne(a, b, distance), registers("bne", a, b, &target)),
        (encode::blt(a, b, distance), registers("blt", a, b, &target)),
        (encode::bltu(a, b, distance), registers("bltu", a, b, &target)),
        (encode::bgeu(a, b, distance), registers("bgeu", a, b, &target)),
        (encode::bge(a, b, distance), registers("bge", a, b, &target)),
        (encode::csrrw(a, csr, b), control("csrrw")),
        (encode::csrrs(a, csr, b), control("csrrs")),
        (encode::csrrc(a, csr, b), control("csrrc")),
        (encode::sret(), "sret".into()),
        (encode::wfi(), "wfi".into()),
        (encode::sfence_vma(a, b), format!("sfence.vma {}, {}", x(a), x(b))),
    ]
}

#[test]
fn encoder_agrees_with_llvm() {
    let mut operands = Operands(Rng(0xc0de));
    let kinds = encoded(&mut operands, 0).len();
    let expected: Vec<String> = {
        let source = include_str!("../src/isa/riscv64/encode.rs");
        source
            .lines()
            .filter_map(|l| l.strip_prefix("pub fn "))
            .map(|l| l.split('(').next().unwrap_or(l).replace('_', "."))
            .collect()
    };
    let mut words = Vec::new();
    let mut texts = Vec::new();
    for _ in 0..200 {
        for i in 0..kinds {
            let (word, text) = encoded(&mut operands, words.len() * common::STRIDE).swap_remove(i);
            words.push(word);
            texts.push(text);
        }
    }
    for (i, theirs) in common::disassemble(&common::RISCV64, &words).into_iter().enumerate() {
        // LLVM has a name of its own for one word.
        let theirs = theirs.replace("unimp", "csrrw zero, cycle, zero");
        assert_eq!(texts[i], theirs, "{:#010x}", words[i]);
    }
    for name in expected {
        assert!(texts.iter().any(|t| t.split(' ').next() == Some(&name)), "encode::{name} is not tried here");
    }
}

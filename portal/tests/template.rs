//! Templates: what `check` accepts does nothing but what templates may, and what it refuses it names.

mod common;

use common::{Rng, cases};
use pebble_abi::map;
use pebble_portal::isa::riscv64::encode::*;
use pebble_portal::template::{BASE, Template, TemplateErrorKind, capability};

fn with(words: &[u32]) -> Template {
    let words = words.iter().copied().collect();
    Template { letter: b'T', status: 9, data: map::NUCLEUS_VA + 0x8_0000, data_bits: 12, words }
}

fn refused(words: &[u32]) -> (usize, TemplateErrorKind) {
    let error = with(words).check().expect_err("an error");
    (error.at, error.kind)
}

#[test]
fn the_capability_template_is_accepted() {
    assert_eq!(capability::template().check(), Ok(()));
    assert!(cases::templates().iter().all(|t| t.check().is_ok()));
}

#[test]
fn what_templates_may_not_is_named() {
    use TemplateErrorKind::*;
    let cases: [(&[u32], usize, TemplateErrorKind); 15] = [
        (&[], 0, Length),
        (&[ld(T2, T2, 0)], 0, Access),
        (&[ld(T2, BASE, 4096 - 2048 - 1)], 0, Access),
        (&[ld(T2, BASE, -8)], 0, Access),
        // Not masked; masked too widely; not aligned; what was masked on one way only.
        (&[add(T2, T2, BASE), sd(ZERO, T2, 0)], 1, Access),
        (&[slli(T2, T2, 51), srli(T2, T2, 48), add(T2, T2, BASE), ld(T2, T2, 0)], 3, Access),
        (&[slli(T2, T2, 52), srli(T2, T2, 52), add(T2, T2, BASE), ld(T2, T2, 0)], 3, Access),
        (
            &[andi(T6, T2, 0x7f8), beq(T2, ZERO, 8), addi(T6, T2, 0), add(T6, T6, BASE), ld(T2, T6, 0)],
            4,
            Access,
        ),
        (&[addi(BASE, T2, 0)], 0, Register(BASE)),
        (&[addi(SP, T2, 0)], 0, Register(SP)),
        (&[addi(T2, A1, 0)], 0, Register(A1)),
        (&[csrrs(T2, csr::SATP, ZERO)], 0, Instruction),
        (&[jalr(ZERO, T2, 0)], 0, Instruction),
        (&[beq(ZERO, ZERO, 12), addi(T2, T2, 1)], 0, Branch),
        (&[addi(T2, T2, 1), beq(ZERO, ZERO, -4)], 1, Branch),
    ];
    for (words, at, kind) in cases {
        assert_eq!(refused(words), (at, kind), "{words:08x?}");
    }
    let good = with(&[ld(T2, BASE, 2040)]);
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

/// Runs a template that `check` has accepted: no access leaves the private data, and it ends.
fn run(t: &Template, rng: &mut Rng) {
    use pebble_portal::isa::riscv64::decode::{Alu, Cond, Insn, decode};
    let mut x: [u64; 32] = core::array::from_fn(|_| rng.next());
    (x[0], x[usize::from(BASE)]) = (0, t.data);
    let mut at = 0;
    let inside = |address: u64| {
        assert!(address >= t.data && address + 8 <= t.data + (1 << t.data_bits), "{address:#x}");
    };
    while at < t.words.len() {
        let mut next = at + 1;
        let mut set = |rd: u8, value: u64| x[usize::from(rd)] = if rd == 0 { 0 } else { value };
        match decode(t.words[at]).expect("an instruction") {
            Insn::Lui { rd, imm } => set(rd, imm as u64),
            Insn::AluImm { op, rd, rs1, imm } => {
                let a = x[usize::from(rs1)];
                let value = match op {
                    Alu::Add => a.wrapping_add(imm as u64),
                    Alu::Sll => a << imm,
                    Alu::Srl => a >> imm,
                    Alu::And => a & imm as u64,
                    _ => rng.next(),
                };
                x[usize::from(rd)] = value;
            }
            Insn::Alu { op, rd, rs1, rs2 } => {
                let (a, b) = (x[usize::from(rs1)], x[usize::from(rs2)]);
                x[usize::from(rd)] = if op == Alu::Add { a.wrapping_add(b) } else { a.wrapping_sub(b) };
            }
            Insn::Load { rd, rs1, imm, .. } => {
                inside(x[usize::from(rs1)].wrapping_add(imm as u64));
                x[usize::from(rd)] = rng.next();
            }
            Insn::Store { rs1, imm, .. } => inside(x[usize::from(rs1)].wrapping_add(imm as u64)),
            Insn::Branch { cond, imm, .. } if cond == Cond::Eq || rng.below(2) == 0 => {
                if rng.below(2) == 0 {
                    next = at + imm as usize / 4;
                }
            }
            Insn::Branch { .. } => {}
            other => panic!("{other} in a template"),
        }
        assert!(next > at);
        at = next;
    }
}

/// Every bit of the capability template flipped: refused, or as harmless as any.
#[test]
fn damaged_templates_stay_within_their_data() {
    let mut rng = Rng(0x7e3a);
    let good = capability::template();
    let (mut refused, mut accepted) = (0, 0);
    for _ in 0..20_000 {
        let mut t = good.clone();
        for _ in 0..=rng.below(3) {
            let at = rng.below(t.words.len());
            t.words[at] ^= 1 << rng.below(32);
        }
        match t.check() {
            Ok(()) => {
                accepted += 1;
                (0..8).for_each(|_| run(&t, &mut rng));
            }
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 1000 && accepted > 1000, "{refused} refused, {accepted} accepted");
}

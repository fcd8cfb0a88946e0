//! Templates: what `check` accepts does nothing but what templates may, and what it refuses it names.

mod common;

use common::{Rng, cases};
use pebble_abi::map;
use pebble_portal::hardware::template::{BASE, Template, TemplateErrorKind, capability};
use pebble_portal::isa::riscv64::encode::*;

fn with(words: &[u32]) -> Template {
    cases::registered(b'Q', words)
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

/// Good templates of one kind or another, of up to 20 instructions.
fn sample(rng: &mut Rng) -> Vec<u32> {
    let mut words = Vec::new();
    for _ in 0..1 + rng.below(4) {
        let free = [T2, T6, A0, T4, T5];
        let [a, b] = [rng.below(5), rng.below(5)].map(|i| free[i]);
        let bits = 4 + rng.below(9) as u32;
        words.extend(match rng.below(5) {
            0 => vec![ld(a, BASE, rng.below(256) as i32 * 8)],
            1 => vec![sd(a, BASE, rng.below(256) as i32 * 8)],
            2 => vec![
                sub(b, b, b),
                slli(a, b, 64 - bits + 3),
                srli(a, a, 64 - bits),
                add(a, a, BASE),
                ld(b, a, 0),
            ],
            3 => vec![beq(a, b, 8), addi(a, b, rng.below(2000) as i32)],
            _ => vec![sub(a, a, b), lui(b, rng.below(1 << 20) as u32)],
        });
    }
    words
}

/// What a component might smuggle in: each kind, at any place of any good template, at least 200 times.
#[test]
fn mutants_that_touch_what_they_may_not_are_refused() {
    use TemplateErrorKind::*;
    type Mutate = fn(&mut Rng, usize) -> Vec<u32>;
    fn free(rng: &mut Rng) -> u8 {
        [T2, T6, A0, T4, T5][rng.below(5)]
    }
    /// Nothing is known of it from here on.
    fn forget(x: u8) -> u32 {
        sub(x, x, x)
    }
    fn foreign(rng: &mut Rng) -> u8 {
        [1, 2, 3, 4, 5, 6, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 27][rng.below(17)]
    }
    let kinds: [(&str, TemplateErrorKind, Mutate); 17] = [
        ("store before the data", Access, |r, _| vec![sd(free(r), BASE, -8 * (1 + r.below(256) as i32))]),
        ("load before the data", Access, |r, _| vec![ld(free(r), BASE, -8 * (1 + r.below(256) as i32))]),
        ("store at any address", Access, |r, _| {
            let x = free(r);
            vec![forget(x), sd(free(r), x, r.below(256) as i32 * 8)]
        }),
        ("load at any address", Access, |r, _| {
            let x = free(r);
            vec![forget(x), ld(free(r), x, r.below(256) as i32 * 8)]
        }),
        ("load at no address", Access, |r, _| vec![ld(free(r), ZERO, r.below(256) as i32 * 8)]),
        ("half aligned", Access, |r, _| {
            vec![ld(free(r), BASE, r.below(256) as i32 * 8 + 1 + r.below(7) as i32 & 2047)]
        }),
        ("index not masked", Access, |r, _| {
            let x = free(r);
            vec![forget(x), add(x, x, BASE), sd(free(r), x, 0)]
        }),
        ("index masked too widely", Access, |r, _| {
            let (x, bits) = (free(r), 13 + r.below(40) as u32);
            vec![
                forget(x),
                slli(x, x, 64 - bits + 3),
                srli(x, x, 64 - bits),
                add(x, x, BASE),
                sd(free(r), x, 0),
            ]
        }),
        ("index not aligned", Access, |r, _| {
            let (x, low) = (free(r), r.below(3) as u32);
            vec![forget(x), slli(x, x, 52 + low), srli(x, x, 52), add(x, x, BASE), ld(free(r), x, 0)]
        }),
        ("index changed", Access, |r, _| {
            let x = free(r);
            let by = addi(x, x, 1 + r.below(2000) as i32);
            vec![forget(x), slli(x, x, 55), srli(x, x, 52), add(x, x, BASE), by, sd(free(r), x, 0)]
        }),
        ("beyond what the index leaves", Access, |r, _| {
            let x = free(r);
            vec![
                forget(x),
                slli(x, x, 55),
                srli(x, x, 52),
                add(x, x, BASE),
                ld(free(r), x, 8 * (1 + r.below(255) as i32)),
            ]
        }),
        ("base written", Register(BASE), |r, _| vec![addi(BASE, BASE, 8 * r.below(200) as i32)]),
        ("branch backward", Branch, |r, at| vec![bne(free(r), free(r), -4 * r.below(at + 1) as i32)]),
        ("branch beyond the end", Branch, |r, _| vec![beq(free(r), free(r), 4 * (64 + r.below(300) as i32))]),
        ("jump", Instruction, |r, _| {
            if r.below(2) == 0 { vec![jalr(ZERO, free(r), 0)] } else { vec![jalr(1, free(r), 8)] }
        }),
        ("control register", Instruction, |r, _| {
            let number = [csr::SATP, csr::SEPC, csr::SSCRATCH, csr::SIE, csr::STVAL][r.below(5)];
            vec![if r.below(2) == 0 { csrrs(free(r), number, ZERO) } else { csrrw(ZERO, number, free(r)) }]
        }),
        ("privileged return", Instruction, |_, _| vec![sret()]),
    ];
    let mut rng = Rng(0x1e77e5);
    for (what, kind, mutate) in kinds {
        for n in 0..250 {
            let mut words = sample(&mut rng);
            assert_eq!(with(&words).check(), Ok(()), "a sample: {words:08x?}");
            // Where the sample does not branch across: what is known there is then what the mutant says.
            let places: Vec<usize> =
                (0..=words.len()).filter(|at| *at == 0 || !is_branch(words[at - 1])).collect();
            let at = places[rng.below(places.len())];
            let mutant = mutate(&mut rng, at);
            let last = at + mutant.len() - 1;
            words.splice(at..at, mutant);
            let error = with(&words).check().expect_err(what);
            assert_eq!((error.at, error.kind), (last, kind), "{what} {n}: {words:08x?}");
        }
    }
    // Registers of the caller's, in any place of any instruction.
    for n in 0..500 {
        let (x, y) = (foreign(&mut rng), free(&mut rng));
        let insn = match rng.below(7) {
            0 => addi(x, y, 1),
            1 => addi(y, x, 1),
            2 => add(y, y, x),
            3 => sd(x, BASE, 0),
            4 => ld(x, BASE, 0),
            5 => ld(y, x, 0),
            _ => bne(y, x, 8),
        };
        let mut words = sample(&mut rng);
        words.insert(0, insn);
        let error = with(&words).check().expect_err("a foreign register");
        assert_eq!((error.at, error.kind), (0, Register(x)), "{n}: {words:08x?}");
    }
}

fn is_branch(word: u32) -> bool {
    word & 0x7f == 0x63
}

//! Portals that are one sequence of instructions, and no other: the scheduler's steps with stack queues,
//! which alone follow links that lie in memory, and the setting of the clock.
//!
//! What the first do to the two lists of a domain, and that they touch no other memory, and when the clock
//! interrupts, tests find out by running them.

use super::*;
use crate::hardware::ir::Stacks;

const A1: u8 = 5;
const V0: u8 = 2;
const V1: u8 = 3;
const RA: u8 = 31;
/// Addresses of the queue's head and of what is kept; the two ends; stacks.
const HEAD: u8 = 13;
const KEPT: u8 = 14;
const END: u8 = 15;
const WANTED: u8 = 24;
const X: u8 = 25;
const Y: u8 = 1;

const fn set(rt: u8, rs: u8, imm: i64) -> Insn {
    Insn::AluImm { op: Alu::Daddu, rt, rs, imm }
}
const fn copy(rd: u8, rs: u8) -> Insn {
    Insn::Alu { op: Alu::Or, rd, rs, rt: 0 }
}
const fn alu(op: Alu, rd: u8, rs: u8, rt: u8) -> Insn {
    Insn::Alu { op, rd, rs, rt }
}
/// The queue is reached from `HEAD` like this; everything else is where its register says.
const QUEUE: i64 = map::STACK_QUEUES_OFF as i64 - map::STACKS_END_OFF as i64;
const fn offset(base: u8) -> i64 {
    if base == HEAD { QUEUE } else { 0 }
}
const fn load(rt: u8, base: u8) -> Insn {
    Insn::Load { width: Width::D, rt, base, imm: offset(base) }
}
const fn store(rt: u8, base: u8) -> Insn {
    Insn::Store { width: Width::D, rt, base, imm: offset(base) }
}
/// Over so many instructions, the one behind the branch among them.
const fn skip(cond: decode::Cond, rs: u8, rt: u8, instructions: i64) -> Insn {
    Insn::Branch { cond, rs, rt, imm: (instructions + 1) * 4 }
}
/// An address in two parts.
const fn upper(rt: u8, address: u64) -> Insn {
    Insn::Lui { rt, imm: (address as i64 - low(address)) as i32 as i64 }
}
const fn low(address: u64) -> i64 {
    address as i16 as i64
}

const FIRST: [Insn; 8] = [
    upper(END, map::STACKS_END),
    set(END, END, low(map::STACKS_END)),
    set(WANTED, END, map::STACKS_WANTED as i64 - map::STACKS_END as i64),
    Insn::AluImm { op: Alu::And, rt: HEAD, rs: A1, imm: map::MAX_DOMAINS as i64 - 1 },
    Insn::Shift { op: Shift::Dsll, rd: HEAD, rt: HEAD, by: 3 },
    alu(Alu::Daddu, KEPT, HEAD, WANTED),
    alu(Alu::Daddu, HEAD, HEAD, END),
    copy(V0, 0),
];
const KEEP: [Insn; 14] = [
    load(X, HEAD),
    alu(Alu::Sltu, Y, END, X),
    skip(decode::Cond::Eq, Y, 0, 7),
    Insn::Nop,
    load(Y, X),
    store(Y, HEAD),
    load(Y, KEPT),
    store(Y, X),
    store(X, KEPT),
    set(V0, 0, 1),
    load(X, HEAD),
    skip(decode::Cond::Ne, X, END, 2),
    Insn::Nop,
    store(WANTED, HEAD),
];
const OFFER: [Insn; 13] = [
    load(X, KEPT),
    alu(Alu::Sltu, Y, END, X),
    skip(decode::Cond::Eq, Y, 0, 10),
    Insn::Nop,
    load(Y, X),
    store(Y, KEPT),
    load(Y, HEAD),
    skip(decode::Cond::Ne, Y, WANTED, 2),
    Insn::Nop,
    copy(Y, END),
    store(Y, X),
    store(X, HEAD),
    set(V0, 0, 1),
];
const RELEASE: [Insn; 6] = [
    load(X, HEAD),
    skip(decode::Cond::Ne, X, WANTED, 4),
    load(Y, KEPT),
    store(Y, HEAD),
    store(END, KEPT),
    set(V0, 0, 1),
];
const SCRUBBED: [Insn; 6] =
    [copy(Y, 0), copy(HEAD, 0), copy(KEPT, 0), copy(END, 0), copy(WANTED, 0), copy(X, 0)];

const TIME: u64 = map::KDATA_VA + map::TIME_OFF;
const DATA: u8 = 14;
const COUNT: u8 = 15;
/// The time now, how far away the wanted one is, between 16 and 2^31 - 2^16; and `Compare`, once more if that
/// has passed in between.
const TIMER: [Insn; 27] = [
    upper(DATA, TIME),
    Insn::Mfc0 { rt: COUNT, from: c0::COUNT },
    Insn::Load { width: Width::D, rt: V0, base: DATA, imm: low(TIME) },
    alu(Alu::Dsubu, COUNT, COUNT, V0),
    Insn::Ext { rt: COUNT, rs: COUNT, pos: 0, size: 32 },
    alu(Alu::Daddu, V0, V0, COUNT),
    Insn::Store { width: Width::D, rt: V0, base: DATA, imm: low(TIME) },
    alu(Alu::Sltu, V1, V0, A1),
    alu(Alu::Dsubu, V0, A1, V0),
    alu(Alu::Movz, V0, 0, V1),
    set(DATA, 0, 16),
    alu(Alu::Sltu, V1, V0, DATA),
    alu(Alu::Movn, V0, DATA, V1),
    Insn::Lui { rt: DATA, imm: 0x7fff_0000 },
    alu(Alu::Sltu, V1, DATA, V0),
    alu(Alu::Movn, V0, DATA, V1),
    Insn::Mfc0 { rt: V1, from: c0::COUNT },
    alu(Alu::Daddu, V0, V0, V1),
    Insn::Mtc0 { rt: V0, to: c0::COMPARE },
    Insn::Mfc0 { rt: V1, from: c0::COUNT },
    alu(Alu::Dsubu, V0, V0, V1),
    Insn::Shift { op: Shift::Sll, rd: V0, rt: V0, by: 0 },
    skip(decode::Cond::Gtz, V0, 0, 2),
    set(V0, V1, 1 << 14),
    Insn::Mtc0 { rt: V0, to: c0::COMPARE },
    copy(DATA, 0),
    copy(COUNT, 0),
];

const LAST: [Insn; 6] = [
    copy(V1, 0),
    Insn::Dmtc0 { rt: RA, to: c0::EPC },
    copy(reg::CODE, 0),
    copy(reg::TOP, 0),
    Insn::Ehb,
    Insn::Eret,
];

/// The verdict about one of these; `None`: it is none.
pub(super) fn check(words: &[u32], short: Short) -> Option<Result<(), Refusal>> {
    let (first, body, then): (&[Insn], &[Insn], &[Insn]) = match short {
        Short::Stacks(Stacks::Keep) => (&FIRST, &KEEP, &SCRUBBED),
        Short::Stacks(Stacks::Offer) => (&FIRST, &OFFER, &SCRUBBED),
        Short::Stacks(Stacks::Release) => (&FIRST, &RELEASE, &SCRUBBED),
        Short::SetTimer => (&TIMER, &[copy(V0, 0)], &[]),
        _ => return None,
    };
    let wanted = || first.iter().chain(body).chain(then).chain(&LAST);
    let differs = words.iter().zip(wanted()).position(|(word, insn)| decode(*word) != Some(*insn));
    // Code ends at a double word.
    let (len, all) = (words.len(), wanted().count());
    let whole = len == all.next_multiple_of(2) && words.iter().skip(all).all(|word| *word == 0);
    Some(match differs.or((!whole).then_some(len.min(all))) {
        Some(n) => Err(Refusal { at: n * 4, reason: Reason::Effect }),
        None => Ok(()),
    })
}

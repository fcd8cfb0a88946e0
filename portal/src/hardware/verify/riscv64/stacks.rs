//! The scheduler's steps with stack queues ([`Stacks`]).
//!
//! They alone follow links that lie in memory, so nothing is derived here: each is this sequence of
//! instructions, and no other. What it does to the two lists of a domain, and that it touches no other
//! memory, a test finds out by running it.

use super::{Reason, Refusal};
use crate::hardware::ir::Stacks;
use crate::isa::riscv64::decode::{Alu, Cond, CsrOp, Insn, Width, decode};
use pebble_abi::map;

const RA: u8 = 1;
const GP: u8 = 3;
const A0: u8 = 10;
const A1: u8 = 11;
/// Addresses of the queue's head and of what is kept; the two ends; stacks.
const HEAD: u8 = 6;
const KEPT: u8 = 7;
const END: u8 = 28;
const WANTED: u8 = 29;
const X: u8 = 30;
const Y: u8 = 31;
const SEPC: u16 = 0x141;

const fn set(rd: u8, rs1: u8, imm: i64) -> Insn {
    Insn::AluImm { op: Alu::Add, rd, rs1, imm }
}
/// The queue is reached from `HEAD` like this; everything else is where its register says.
const QUEUE: i64 = map::STACK_QUEUES_OFF as i64 - map::STACKS_END_OFF as i64;
const fn offset(base: u8) -> i64 {
    if base == HEAD { QUEUE } else { 0 }
}
const fn load(rd: u8, rs1: u8) -> Insn {
    Insn::Load { width: Width::D, rd, rs1, imm: offset(rs1) }
}
const fn store(rs2: u8, rs1: u8) -> Insn {
    Insn::Store { width: Width::D, rs2, rs1, imm: offset(rs1) }
}
const fn skip(cond: Cond, rs1: u8, rs2: u8, instructions: i64) -> Insn {
    Insn::Branch { cond, rs1, rs2, imm: (instructions + 1) * 4 }
}

const FIRST: [Insn; 7] = [
    Insn::AluImm { op: Alu::And, rd: HEAD, rs1: A1, imm: map::MAX_DOMAINS as i64 - 1 },
    Insn::AluImm { op: Alu::Sll, rd: HEAD, rs1: HEAD, imm: 3 },
    Insn::Lui { rd: END, imm: map::STACKS_END as i64 },
    Insn::Lui { rd: WANTED, imm: map::STACKS_WANTED as i64 },
    Insn::Alu { op: Alu::Add, rd: KEPT, rs1: HEAD, rs2: WANTED },
    Insn::Alu { op: Alu::Add, rd: HEAD, rs1: HEAD, rs2: END },
    set(A0, 0, 0),
];
const KEEP: [Insn; 11] = [
    load(X, HEAD),
    skip(Cond::Geu, END, X, 6),
    load(Y, X),
    store(Y, HEAD),
    load(Y, KEPT),
    store(Y, X),
    store(X, KEPT),
    set(A0, 0, 1),
    load(X, HEAD),
    skip(Cond::Ne, X, END, 1),
    store(WANTED, HEAD),
];
const OFFER: [Insn; 10] = [
    load(X, KEPT),
    skip(Cond::Geu, END, X, 8),
    load(Y, X),
    store(Y, KEPT),
    load(Y, HEAD),
    skip(Cond::Ne, Y, WANTED, 1),
    set(Y, END, 0),
    store(Y, X),
    store(X, HEAD),
    set(A0, 0, 1),
];
const RELEASE: [Insn; 6] = [
    load(X, HEAD),
    skip(Cond::Ne, X, WANTED, 4),
    load(Y, KEPT),
    store(Y, HEAD),
    store(END, KEPT),
    set(A0, 0, 1),
];
const LAST: [Insn; 10] = [
    set(HEAD, 0, 0),
    set(KEPT, 0, 0),
    set(END, 0, 0),
    set(WANTED, 0, 0),
    set(X, 0, 0),
    set(Y, 0, 0),
    set(A1, 0, 0),
    Insn::Csr { op: CsrOp::W, rd: 0, csr: SEPC, rs1: RA },
    set(GP, 0, 0),
    Insn::Sret,
];

pub(super) fn check(words: &[u32], what: Stacks) -> Result<(), Refusal> {
    let body: &[Insn] = match what {
        Stacks::Keep => &KEEP,
        Stacks::Offer => &OFFER,
        Stacks::Release => &RELEASE,
    };
    let wanted = || FIRST.iter().chain(body).chain(&LAST);
    let differs = words.iter().zip(wanted()).position(|(word, insn)| decode(*word) != Some(*insn));
    // Code ends at a double word.
    let (len, all) = (words.len(), wanted().count());
    let whole = len == all.next_multiple_of(2) && words.iter().skip(all).all(|word| *word == 0);
    match differs.or((!whole).then_some(len.min(all))) {
        Some(n) => Err(Refusal { at: n * 4, reason: Reason::Effect }),
        None => Ok(()),
    }
}

//! mips64: which computation makes what of a value; registers by their numbers.

use super::super::leg::MAX_FRAME;
use super::*;
use pebble_abi::thread;

pub(super) mod reg {
    use super::Registers;

    pub const NUCLEUS: u32 = 3 << 26;
    pub const CODE: u8 = 26;
    pub const TOP: u8 = 27;
    /// Temporaries of portal code that have a fixed use.
    pub const T1: u8 = 13;
    pub const T2: u8 = 14;
    pub const T4: u8 = 24;
    pub const T5: u8 = 25;
    pub const T6: u8 = 1;
    const TEMPORARY: u32 = 15 << 12 | 3 << 24 | 1 << 1;
    const STACK_SCRATCH: u32 = 3 << 14 | 3 << 24;

    pub const ALL: Registers = Registers {
        link: 31,
        stack: 29,
        code: 26,
        nucleus: NUCLEUS,
        top: 27,
        index: 12,
        argument: 4,
        value: 2,
        status: 3,
        results: 6,
        scratch: 1 << T2,
        jump: 1 << T2,
        stack_scratch: STACK_SCRATCH,
        // With `$13`, `$3`, `$10`, `$11`.
        window_scratch: STACK_SCRATCH | 1 << T1 | 1 << 3 | 3 << 10,
        temporary: TEMPORARY,
        preserved: 0xff << 16 | 1 << 28 | 1 << 30,
        in_block: &[16, 17, 18, 19, 20, 21, 22, 23, 30, 28],
    };
}

/// Control registers at entry, by number; and what two of them are together.
pub(super) mod control {
    use super::{C0, Kind, Value};

    pub const fn of(C0(number, _): C0) -> Value {
        Value(Kind::Control, number as i32)
    }

    /// The domain: its root, and in the low bits its number.
    pub const SPACE: Value = Value(Kind::Control, 32);
}

/// What becomes of the name of a domain when its number is taken from it: the root alone.
pub(super) fn root(space: Value) -> Value {
    match space {
        Value(Kind::Pool, at) => Value(Kind::PoolRoot, at),
        control::SPACE => Value(Kind::Root, 0),
        _ => UNKNOWN,
    }
}

const PAGE_BITS: u8 = map::PAGE.trailing_zeros() as u8;
const THREAD_BITS: u8 = map::MAX_THREADS.trailing_zeros() as u8;
const DOMAIN_BITS: u8 = map::MAX_DOMAINS.trailing_zeros() as u8;
const LIMIT: i64 = thread::INVOCATION_LIMIT as i64;
const RESERVE: i64 = thread::INVOCATION_RESERVE as i64;
/// Of `Cause`: the kind of trap.
const TRAP_CODE: i64 = 0x7c;
/// Brings the late call's bit to the sign.
const LATE_SHIFT: i64 = paging::LATE.leading_zeros() as i64;
const ENTRY_HI: Value = control::of(c0::ENTRY_HI);
const DESAVE: Value = control::of(c0::DESAVE);
const THREAD_END: i32 = sys::THREAD_END as i32;

pub(super) fn alu_imm(v: &V, op: Alu, value: Value, imm: i64) -> Value {
    let Value(kind, n) = value;
    let known = match (op, kind) {
        (Alu::Daddu, Kind::ReturnCode) if n == 0 && imm == 4 => Value(Kind::Inside, 4),
        (Alu::Daddu, Kind::TableEntry) if n == THREAD_END && imm == RAISED.into() => {
            Value(Kind::Inside, RAISED)
        }
        (Alu::Daddu, _) => add_imm(value, imm),
        (Alu::Or, Kind::Const) => Value(kind, n | imm as i32),
        (Alu::And, Kind::Top) if n == 0 && imm == LIMIT => Value(Kind::Limit, 0),
        (Alu::And, Kind::Top) if n == 0 && imm == RESERVE => Value(Kind::Quarter, 0),
        (Alu::Xor, Kind::Quarter) if imm == RESERVE => Value(Kind::LastQuarter, 0),
        (Alu::And, Kind::Control) if value == Mips64::CAUSE && imm == TRAP_CODE => Value(Kind::TrapCode, 0),
        (Alu::And, Kind::Control) if value == ENTRY_HI && imm == paging::SPACE_ASID as i64 => {
            Value(Kind::Asid, 0)
        }
        _ => UNKNOWN,
    };
    if known == UNKNOWN { v.window_imm(op, value, imm) } else { known }
}

pub(super) fn alu(v: &V, op: Alu, a: Value, b: Value) -> Value {
    let known = match (op, a, b) {
        (Alu::Or, DESAVE, Value(Kind::Asid, _)) => control::SPACE,
        (Alu::Sltu, Value(Kind::HeadNext, _), _) if v.is(b, Hole::Queue.symbol()) => Value(Kind::NoStack, 0),
        // How much the counter is ahead of the lower half of the last time; both halves together.
        (Alu::Dsubu, _, Value(Kind::TimeBefore, _)) if a == control::of(c0::COUNT) => Value(Kind::Elapsed, 0),
        (Alu::Daddu, Value(Kind::TimeBefore, _), Value(Kind::Elapsed, 1)) => Value(Kind::TimeNow, 0),
        _ => UNKNOWN,
    };
    if known == UNKNOWN { v.window_alu(op, a, b) } else { known }
}

pub(super) fn shift(v: &V, op: Shift, value: Value, by: i64) -> Value {
    match (op, value, by) {
        (Shift::Dsll, Value(Kind::ReturnCode, 0), LATE_SHIFT) => Value(Kind::Late, 0),
        _ => v.window_shift(op, value, by),
    }
}

pub(super) fn ext(value: Value, pos: u8, size: u8) -> Value {
    let Value(kind, n) = value;
    let in_frame = (0..=MAX_FRAME as i32 * 8).contains(&n);
    match (kind, pos, size) {
        (Kind::Top, PAGE_BITS, THREAD_BITS) if in_frame => Value(Kind::ThreadId, 0),
        (Kind::Description, 16, 16) => Value(Kind::Origin, 0),
        (Kind::Elapsed, 0, 32) if n == 0 => Value(Kind::Elapsed, 1),
        _ => UNKNOWN,
    }
}

pub(super) fn ins(v: &V, s: &State, into: Value, from: Value, place: (u8, u8)) -> Value {
    let known = match (into, from, place) {
        // An address of a window becomes that of a page table too, which no name of a domain is.
        (control::SPACE | Value(Kind::Pool, _), ZERO, (0, DOMAIN_BITS)) => root(into),
        (Value(Kind::Top, 0), ZERO, (0, PAGE_BITS)) => Value(Kind::Block, 0),
        (Value(Kind::Const, n), ENTRY_HI, (16, DOMAIN_BITS)) if (0..1 << 11).contains(&n) => {
            Value(Kind::Leaving, n)
        }
        (Value(Kind::Const, n), _, (PAGE_BITS, THREAD_BITS))
            if from == own(reg::ALL.value) && i64::from(n) as u64 == map::THREADS_VA =>
        {
            Value(Kind::NextBlock, 0)
        }
        _ => UNKNOWN,
    };
    if known == UNKNOWN { v.window_ins(s, into, from, place) } else { known }
}

//! mips64: which computation makes what of a value; registers by their numbers.

use super::super::leg::MAX_FRAME;
use super::*;

pub(super) mod reg {
    use super::Registers;

    pub const NUCLEUS: u32 = 3 << 26;
    /// `$13` to `$15`, in which portal code computes.
    const SCRATCH: u32 = 7 << 13;
    const TEMPORARY: u32 = 15 << 12 | 3 << 24 | 1 << 1;

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
        scratch: SCRATCH,
        stack_scratch: SCRATCH | 1 << 24,
        window_scratch: TEMPORARY & !(1 << 12),
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
        Value(Kind::Const, n) => Value(Kind::Const, n & !(paging::SPACE_ASID as i32)),
        Value(Kind::Pool, at) => Value(Kind::Root, at),
        control::SPACE => Value(Kind::Root, -1),
        _ => UNKNOWN,
    }
}

const THREAD_BITS: u8 = map::MAX_THREADS.trailing_zeros() as u8;
const DOMAIN_MASK: i64 = paging::SPACE_ASID as i64;
const ENTRY_HI: Value = control::of(c0::ENTRY_HI);

pub(super) fn alu_imm(v: &V, s: &State, op: Alu, value: Value, imm: i64) -> Value {
    let Value(kind, n) = value;
    let known = match (op, kind) {
        (Alu::Daddu, _) => add_imm(value, imm),
        (Alu::Or, Kind::Const) => Value(kind, n | imm as i32),
        (Alu::Or, Kind::AsidHigh) if (0..1 << 11).contains(&imm) => Value(Kind::Leaving, imm as i32),
        (Alu::And, Kind::Control) if value == Mips64::CAUSE && imm == 0x7c => Value(Kind::TrapCode, 0),
        (Alu::And, Kind::Control) if value == ENTRY_HI && imm == DOMAIN_MASK => Value(Kind::Asid, 0),
        (Alu::And, Kind::Own) if n == 2 && imm == map::MAX_THREADS as i64 - 1 => Value(Kind::NextId, 0),
        _ => UNKNOWN,
    };
    if known == UNKNOWN { v.window_imm(s, op, value, imm) } else { known }
}

pub(super) fn alu(v: &V, s: &State, op: Alu, a: Value, b: Value) -> Value {
    let known = match (op, a, b) {
        (Alu::Daddu, Value(Kind::NextOffset, _), Value(Kind::Const, n)) if n as i64 as u64 == map::THREADS_VA => {
            Value(Kind::NextBlock, 0)
        }
        (Alu::Sltu, Value(Kind::HeadNext, _), _) if v.is(b, map::STACKS_END) => Value(Kind::NoStack, 0),
        // Of two times of 32 bits, how much later the second is; both below a turn.
        (Alu::Subu, _, Value(Kind::TimeBefore, _)) if a == control::of(c0::COUNT) => Value(Kind::Elapsed, 0),
        (Alu::Daddu, Value(Kind::TimeBefore, _), Value(Kind::Elapsed, 1)) => Value(Kind::TimeNow, 0),
        _ => UNKNOWN,
    };
    if known == UNKNOWN { v.window_alu(s, op, a, b) } else { known }
}

pub(super) fn shift(v: &V, s: &State, op: Shift, value: Value, by: i64) -> Value {
    let Value(kind, n) = value;
    let known = match (op, kind, by) {
        (Shift::Sll, Kind::ReturnCode, LATE_SHIFT) if n == 0 => Value(Kind::Late, 0),
        (Shift::Dsll, Kind::Asid, 16) => Value(Kind::AsidHigh, 0),
        (Shift::Dsll, Kind::NextId, 12) => Value(Kind::NextOffset, 0),
        _ => UNKNOWN,
    };
    if known == UNKNOWN { v.window_shift(s, op, value, by) } else { known }
}

pub(super) fn ext(v: &V, s: &State, value: Value, pos: u8, size: u8) -> Value {
    let Value(kind, n) = value;
    let in_frame = (0..=MAX_FRAME as i32 * 8).contains(&n);
    let known = match (kind, pos, size) {
        (Kind::Top, 12, THREAD_BITS) if in_frame => Value(Kind::ThreadId, 0),
        (Kind::Description, 16, 16) => Value(Kind::Origin, 0),
        (Kind::Elapsed, 0, 32) if n == 0 => Value(Kind::Elapsed, 1),
        _ => UNKNOWN,
    };
    if known == UNKNOWN { v.window_ext(s, value, pos, size) } else { known }
}

pub(super) fn ins(v: &V, s: &State, into: Value, from: Value, place: (u8, u8)) -> Value {
    let known = match (into, from, place) {
        (_, ZERO, (0, 8)) => root(into),
        (Value(Kind::Top, 0), ZERO, (0, 12)) => Value(Kind::Block, 0),
        _ if place == (0, 8) && into == control::of(c0::DESAVE) && from == ENTRY_HI => control::SPACE,
        _ => UNKNOWN,
    };
    if known == UNKNOWN { v.window_ins(s, into, from, place) } else { known }
}

/// Brings the late call's bit to the sign of 32 bits.
const LATE_SHIFT: i64 = (paging::LATE as u32).leading_zeros() as i64;

//! rv64: which computation makes what of a value; registers by their numbers.

use super::super::leg::MAX_FRAME;
use super::*;

pub(super) mod reg {
    use super::Registers;

    pub const RA: usize = 1;
    pub const GP: usize = 3;
    pub const T3: u8 = 28;
    pub const A0: usize = 10;
    /// `t1`-`t3`, in which portal code computes.
    const SCRATCH: u32 = 3 << 6 | 1 << 28;
    pub const FLOAT_PRESERVED: u32 = 3 << 8 | 0x3ff << 18;

    pub const ALL: Registers = Registers {
        link: RA,
        stack: 2,
        code: GP,
        nucleus: 1 << GP,
        top: 6,
        index: 5,
        argument: A0,
        value: A0,
        status: A0 + 1,
        results: A0 + 2,
        scratch: SCRATCH,
        jump: 0,
        stack_scratch: SCRATCH | 1 << 29,
        // `t1`-`t6`, `a0`, `a6`, `a7`.
        window_scratch: 3 << 6 | 15 << 28 | 1 << 10 | 3 << 16,
        temporary: 7 << 5 | 15 << 28,
        preserved: 1 << 4 | 3 << 8 | 0x3ff << 18,
        in_block: &[8, 9, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 4],
    };
}

pub(super) mod csr {
    pub const FCSR: u16 = 0x003;
    pub const SSTATUS: u16 = 0x100;
    pub const SIE: u16 = 0x104;
    pub const SSCRATCH: u16 = 0x140;
    pub const SEPC: u16 = 0x141;
    pub const SCAUSE: u16 = 0x142;
    pub const STVAL: u16 = 0x143;
    pub const STIMECMP: u16 = 0x14d;
    pub const SATP: u16 = 0x180;
    pub const TIME: u16 = 0xc01;
}

pub(super) const fn csr_value(number: u16) -> Value {
    Value(Kind::Control, number as i32)
}

#[inline]
pub(super) fn alu_imm(op: Alu, value: Value, imm: i64) -> Value {
    let Value(kind, n) = value;
    match op {
        Alu::Add => add_number(value, imm),
        Alu::Sll => match (kind, imm) {
            (Kind::Top, 52) if n == 0 => Value(Kind::Limit, 0),
            (Kind::TopPage, 12) => Value(Kind::Block, 0),
            (Kind::ReturnCode, LATE_SHIFT) if n == 0 => Value(Kind::Late, 0),
            (Kind::NextId, 12) => Value(Kind::NextOffset, 0),
            (Kind::Control, 4) if n == i32::from(csr::SATP) => Value(Kind::SpaceTop, 0),
            (Kind::Description, 32) => Value(Kind::DescriptionHigh, 0),
            _ => UNKNOWN,
        },
        Alu::Srl => match (kind, imm) {
            (Kind::Top, 12) if (0..=MAX_FRAME as i32 * 8).contains(&n) => Value(Kind::TopPage, 0),
            (Kind::DescriptionHigh, 48) => Value(Kind::Origin, 0),
            (Kind::Limit, 62) => Value(Kind::Quarter, 0),
            (Kind::SpaceTop, 48) => Value(Kind::Asid, 0),
            (Kind::SpaceTop, 32) => Value(Kind::AsidHigh, 0),
            _ => UNKNOWN,
        },
        Alu::And => match (kind, imm) {
            (Kind::TopPage, THREAD_MASK) => Value(Kind::ThreadId, 0),
            (Kind::Own, THREAD_MASK) if n == reg::A0 as i32 => Value(Kind::NextId, 0),
            _ => UNKNOWN,
        },
        Alu::Or if kind == Kind::AsidHigh && (0..1 << 11).contains(&imm) => Value(Kind::Leaving, imm as i32),
        _ => UNKNOWN,
    }
}

#[inline(always)]
pub(super) fn add_number(value: Value, imm: i64) -> Value {
    match add_imm(value, imm) {
        UNKNOWN if value.0 == Kind::Quarter && imm == -3 => Value(Kind::LastQuarter, 0),
        sum => sum,
    }
}

// The page number in `satp` has no bit that would reach bit 32 of `Kind::SpaceTop`.
const _: () = assert!(map::RAM_PA + map::RAM_BYTES <= 1 << 40);
const LATE_SHIFT: i64 = paging::LATE.leading_zeros() as i64;
const THREAD_MASK: i64 = map::MAX_THREADS as i64 - 1;

pub(super) fn add(a: Value, b: Value) -> Value {
    match (a, b) {
        (Value(Kind::NextOffset, _), Value(Kind::Const, n)) if i64::from(n) as u64 == map::THREADS_VA => {
            Value(Kind::NextBlock, 0)
        }
        _ => UNKNOWN,
    }
}

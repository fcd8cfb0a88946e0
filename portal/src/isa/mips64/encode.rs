//! Encoder for the mips64r2 instructions that portal code is made of: one function an instruction, named
//! after it, operands in the order of the assembler.
//!
//! Operands out of range are a compiler bug: debug builds assert, release builds truncate, and the verifier
//! refuses the result.

/// Register number, 0..=31.
pub type Reg = u8;

pub const ZERO: Reg = 0;
pub const V0: Reg = 2;
pub const V1: Reg = 3;
pub const A0: Reg = 4;
pub const A1: Reg = 5;
pub const A2: Reg = 6;
pub const A6: Reg = 10;
pub const A7: Reg = 11;
pub const T0: Reg = 12;
pub const K0: Reg = 26;
pub const K1: Reg = 27;
pub const GP: Reg = 28;
pub const SP: Reg = 29;
pub const FP: Reg = 30;
pub const RA: Reg = 31;

/// Temporaries of portal code.
pub const T1: Reg = 13;
pub const T2: Reg = 14;
pub const T3: Reg = 15;
pub const T4: Reg = 24;
pub const T5: Reg = 25;
pub const T6: Reg = 1;

/// Registers of coprocessor 0 that portal code uses, by number.
pub mod c0 {
    pub const INDEX: u8 = 0;
    pub const ENTRY_LO0: u8 = 2;
    pub const ENTRY_LO1: u8 = 3;
    pub const BAD_VADDR: u8 = 8;
    pub const COUNT: u8 = 9;
    pub const ENTRY_HI: u8 = 10;
    pub const COMPARE: u8 = 11;
    pub const CAUSE: u8 = 13;
    pub const EPC: u8 = 14;
    pub const DEPC: u8 = 24;
    pub const ERROR_EPC: u8 = 30;
    pub const DESAVE: u8 = 31;
}

fn r(reg: Reg, shift: u32) -> u32 {
    debug_assert!(reg < 32);
    (reg as u32 & 31) << shift
}

fn i_type(op: u32, rt: Reg, rs: Reg, imm: i32) -> u32 {
    debug_assert!((-0x8000..0x8000).contains(&imm), "immediate {imm}");
    op << 26 | r(rs, 21) | r(rt, 16) | imm as u32 & 0xffff
}

/// The immediate of a logical instruction is not extended.
fn logical(op: u32, rt: Reg, rs: Reg, imm: u32) -> u32 {
    debug_assert!(imm <= 0xffff, "immediate {imm}");
    op << 26 | r(rs, 21) | r(rt, 16) | imm & 0xffff
}

fn r_type(function: u32, rd: Reg, rs: Reg, rt: Reg) -> u32 {
    r(rs, 21) | r(rt, 16) | r(rd, 11) | function
}

/// `function`: that for shifts by less than 32; the other one is 4 more.
fn shift(function: u32, rd: Reg, rt: Reg, by: u32) -> u32 {
    debug_assert!(by < 64);
    let function = if by < 32 { function } else { function + 4 };
    r(rt, 16) | r(rd, 11) | (by & 31) << 6 | function
}

/// `offset`: bytes from the branch itself.
fn branch(op: u32, rs: Reg, rt: Reg, offset: i32) -> u32 {
    debug_assert!(offset & 3 == 0, "branch {offset}");
    i_type(op, rt, rs, (offset - 4) >> 2)
}

fn coprocessor(op: u32, rt: Reg, reg: u8) -> u32 {
    0x10 << 26 | op << 21 | r(rt, 16) | r(reg, 11)
}

/// `imm`: bits 31..16 of the result.
pub fn lui(rt: Reg, imm: u32) -> u32 {
    logical(0x0f, rt, ZERO, imm)
}
pub fn daddiu(rt: Reg, rs: Reg, imm: i32) -> u32 {
    i_type(0x19, rt, rs, imm)
}
pub fn sltiu(rt: Reg, rs: Reg, imm: i32) -> u32 {
    i_type(0x0b, rt, rs, imm)
}
pub fn andi(rt: Reg, rs: Reg, imm: u32) -> u32 {
    logical(0x0c, rt, rs, imm)
}
pub fn ori(rt: Reg, rs: Reg, imm: u32) -> u32 {
    logical(0x0d, rt, rs, imm)
}
pub fn xori(rt: Reg, rs: Reg, imm: u32) -> u32 {
    logical(0x0e, rt, rs, imm)
}
pub fn and(rd: Reg, rs: Reg, rt: Reg) -> u32 {
    r_type(0x24, rd, rs, rt)
}
pub fn or(rd: Reg, rs: Reg, rt: Reg) -> u32 {
    r_type(0x25, rd, rs, rt)
}
/// The `or` with 0 that assemblers call `move`.
pub fn copy(rd: Reg, rs: Reg) -> u32 {
    or(rd, rs, ZERO)
}
pub fn xor(rd: Reg, rs: Reg, rt: Reg) -> u32 {
    r_type(0x26, rd, rs, rt)
}
pub fn nor(rd: Reg, rs: Reg, rt: Reg) -> u32 {
    r_type(0x27, rd, rs, rt)
}
pub fn slt(rd: Reg, rs: Reg, rt: Reg) -> u32 {
    r_type(0x2a, rd, rs, rt)
}
pub fn sltu(rd: Reg, rs: Reg, rt: Reg) -> u32 {
    r_type(0x2b, rd, rs, rt)
}
pub fn daddu(rd: Reg, rs: Reg, rt: Reg) -> u32 {
    r_type(0x2d, rd, rs, rt)
}
pub fn dsubu(rd: Reg, rs: Reg, rt: Reg) -> u32 {
    r_type(0x2f, rd, rs, rt)
}
/// `rd` becomes `rs` if `rt` is 0.
pub fn movz(rd: Reg, rs: Reg, rt: Reg) -> u32 {
    r_type(0x0a, rd, rs, rt)
}
/// `rd` becomes `rs` if `rt` is not 0.
pub fn movn(rd: Reg, rs: Reg, rt: Reg) -> u32 {
    r_type(0x0b, rd, rs, rt)
}
/// By less than 64.
pub fn dsll(rd: Reg, rt: Reg, by: u32) -> u32 {
    shift(0x38, rd, rt, by)
}
pub fn dsrl(rd: Reg, rt: Reg, by: u32) -> u32 {
    shift(0x3a, rd, rt, by)
}
pub fn dsra(rd: Reg, rt: Reg, by: u32) -> u32 {
    shift(0x3b, rd, rt, by)
}
/// By less than 32; the result is sign-extended.
pub fn sll(rd: Reg, rt: Reg, by: u32) -> u32 {
    debug_assert!(by < 32);
    shift(0x00, rd, rt, by & 31)
}
/// `size` bits of `rs` from `pos` on.
pub fn dext(rt: Reg, rs: Reg, pos: u32, size: u32) -> u32 {
    debug_assert!(size > 0 && pos + size <= 64, "{size} bits from {pos}");
    let last = size.wrapping_sub(1);
    let function = if last >= 32 { 0x01 } else { 0x03 - pos / 32 };
    0x1f << 26 | r(rs, 21) | r(rt, 16) | (last & 31) << 11 | (pos & 31) << 6 | function
}
/// The lowest `size` bits of `rs` become those of `rt` from `pos` on.
pub fn dins(rt: Reg, rs: Reg, pos: u32, size: u32) -> u32 {
    debug_assert!(size > 0 && pos + size <= 64, "{size} bits to {pos}");
    let last = (pos + size).wrapping_sub(1);
    let function = if pos >= 32 { 0x06 } else { 0x07 - last / 32 % 2 * 2 };
    0x1f << 26 | r(rs, 21) | r(rt, 16) | (last & 31) << 11 | (pos & 31) << 6 | function
}
pub fn ld(rt: Reg, base: Reg, offset: i32) -> u32 {
    i_type(0x37, rt, base, offset)
}
pub fn sd(rt: Reg, base: Reg, offset: i32) -> u32 {
    i_type(0x3f, rt, base, offset)
}
pub fn jr(rs: Reg) -> u32 {
    r_type(0x08, ZERO, rs, ZERO)
}
pub fn jalr(rd: Reg, rs: Reg) -> u32 {
    r_type(0x09, rd, rs, ZERO)
}
pub fn beq(rs: Reg, rt: Reg, offset: i32) -> u32 {
    branch(0x04, rs, rt, offset)
}
pub fn bne(rs: Reg, rt: Reg, offset: i32) -> u32 {
    branch(0x05, rs, rt, offset)
}
pub fn blez(rs: Reg, offset: i32) -> u32 {
    branch(0x06, rs, 0, offset)
}
pub fn bgtz(rs: Reg, offset: i32) -> u32 {
    branch(0x07, rs, 0, offset)
}
pub fn bltz(rs: Reg, offset: i32) -> u32 {
    branch(0x01, rs, 0, offset)
}
pub fn bgez(rs: Reg, offset: i32) -> u32 {
    branch(0x01, rs, 1, offset)
}
pub fn mfc0(rt: Reg, from: u8) -> u32 {
    coprocessor(0, rt, from)
}
pub fn dmfc0(rt: Reg, from: u8) -> u32 {
    coprocessor(1, rt, from)
}
pub fn mtc0(rt: Reg, to: u8) -> u32 {
    coprocessor(4, rt, to)
}
pub fn dmtc0(rt: Reg, to: u8) -> u32 {
    coprocessor(5, rt, to)
}
pub fn mfhi(rd: Reg) -> u32 {
    r_type(0x10, rd, ZERO, ZERO)
}
pub fn mflo(rd: Reg) -> u32 {
    r_type(0x12, rd, ZERO, ZERO)
}
pub fn mthi(rs: Reg) -> u32 {
    r_type(0x11, ZERO, rs, ZERO)
}
pub fn mtlo(rs: Reg) -> u32 {
    r_type(0x13, ZERO, rs, ZERO)
}
/// Interrupts off.
pub fn di() -> u32 {
    0x4160_6000
}
pub fn ei() -> u32 {
    0x4160_6020
}
pub fn tlbp() -> u32 {
    0x4200_0008
}
pub fn tlbwi() -> u32 {
    0x4200_0002
}
pub fn ehb() -> u32 {
    0x0000_00c0
}
pub fn eret() -> u32 {
    0x4200_0018
}
pub fn nop() -> u32 {
    0
}

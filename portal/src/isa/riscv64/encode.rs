//! Encoder for the rv64 instructions that portal code is made of: one function an instruction, named after
//! it.
//!
//! Operands out of range are a compiler bug: debug builds assert, release builds truncate, and the verifier
//! refuses the result.

/// Register number, 0..=31.
pub type Reg = u8;

pub const ZERO: Reg = 0;
pub const RA: Reg = 1;
pub const SP: Reg = 2;
pub const GP: Reg = 3;
pub const TP: Reg = 4;
pub const T0: Reg = 5;
pub const T1: Reg = 6;
pub const T2: Reg = 7;
pub const S0: Reg = 8;
pub const S1: Reg = 9;
pub const A0: Reg = 10;
pub const A1: Reg = 11;
pub const A2: Reg = 12;
pub const A6: Reg = 16;
pub const A7: Reg = 17;
pub const S2: Reg = 18;
pub const T3: Reg = 28;
pub const T4: Reg = 29;
pub const T5: Reg = 30;
pub const T6: Reg = 31;

/// Control and status registers that portal code uses.
pub mod csr {
    pub const FCSR: u32 = 0x003;
    pub const SSTATUS: u32 = 0x100;
    pub const SIE: u32 = 0x104;
    pub const SSCRATCH: u32 = 0x140;
    pub const SEPC: u32 = 0x141;
    pub const SCAUSE: u32 = 0x142;
    pub const STVAL: u32 = 0x143;
    pub const STIMECMP: u32 = 0x14d;
    pub const SATP: u32 = 0x180;
    pub const TIME: u32 = 0xc01;
}

fn r(reg: Reg, shift: u32) -> u32 {
    debug_assert!(reg < 32);
    (reg as u32 & 31) << shift
}

fn i_type(op: u32, f3: u32, rd: Reg, rs1: Reg, imm: i32) -> u32 {
    debug_assert!((-2048..2048).contains(&imm), "immediate {imm}");
    (imm as u32) << 20 | r(rs1, 15) | f3 << 12 | r(rd, 7) | op
}

fn s_type(op: u32, f3: u32, src: Reg, base: Reg, imm: i32) -> u32 {
    debug_assert!((-2048..2048).contains(&imm), "offset {imm}");
    let imm = imm as u32;
    (imm >> 5 & 0x7f) << 25 | r(src, 20) | r(base, 15) | f3 << 12 | (imm & 31) << 7 | op
}

fn b_type(f3: u32, rs1: Reg, rs2: Reg, offset: i32) -> u32 {
    debug_assert!((-4096..4096).contains(&offset) && offset & 1 == 0, "branch {offset}");
    let o = offset as u32;
    (o >> 12 & 1) << 31
        | (o >> 5 & 0x3f) << 25
        | r(rs2, 20)
        | r(rs1, 15)
        | f3 << 12
        | (o >> 1 & 15) << 8
        | (o >> 11 & 1) << 7
        | 0x63
}

fn csr_type(f3: u32, rd: Reg, csr: u32, source: u32) -> u32 {
    csr << 20 | (source & 31) << 15 | f3 << 12 | r(rd, 7) | 0x73
}

/// `imm20`: bits 31..12 of the result.
pub fn lui(rd: Reg, imm20: u32) -> u32 {
    (imm20 & 0xf_ffff) << 12 | r(rd, 7) | 0x37
}
pub fn addi(rd: Reg, rs1: Reg, imm: i32) -> u32 {
    i_type(0x13, 0, rd, rs1, imm)
}
pub fn andi(rd: Reg, rs1: Reg, imm: i32) -> u32 {
    i_type(0x13, 7, rd, rs1, imm)
}
pub fn ori(rd: Reg, rs1: Reg, imm: i32) -> u32 {
    i_type(0x13, 6, rd, rs1, imm)
}
pub fn slli(rd: Reg, rs1: Reg, shift: u32) -> u32 {
    i_type(0x13, 1, rd, rs1, (shift & 63) as i32)
}
pub fn srli(rd: Reg, rs1: Reg, shift: u32) -> u32 {
    i_type(0x13, 5, rd, rs1, (shift & 63) as i32)
}
pub fn srai(rd: Reg, rs1: Reg, shift: u32) -> u32 {
    1 << 30 | i_type(0x13, 5, rd, rs1, (shift & 63) as i32)
}
pub fn sub(rd: Reg, rs1: Reg, rs2: Reg) -> u32 {
    1 << 30 | add(rd, rs1, rs2)
}
pub fn xor(rd: Reg, rs1: Reg, rs2: Reg) -> u32 {
    4 << 12 | add(rd, rs1, rs2)
}
pub fn or(rd: Reg, rs1: Reg, rs2: Reg) -> u32 {
    6 << 12 | add(rd, rs1, rs2)
}
pub fn add(rd: Reg, rs1: Reg, rs2: Reg) -> u32 {
    r(rs2, 20) | r(rs1, 15) | r(rd, 7) | 0x33
}
pub fn ld(rd: Reg, base: Reg, offset: i32) -> u32 {
    i_type(0x03, 3, rd, base, offset)
}
pub fn sd(src: Reg, base: Reg, offset: i32) -> u32 {
    s_type(0x23, 3, src, base, offset)
}
pub fn fld(rd: Reg, base: Reg, offset: i32) -> u32 {
    i_type(0x07, 3, rd, base, offset)
}
pub fn fsd(src: Reg, base: Reg, offset: i32) -> u32 {
    s_type(0x27, 3, src, base, offset)
}
pub fn fmv_d_x(rd: Reg, rs1: Reg) -> u32 {
    0xf200_0053 | r(rs1, 15) | r(rd, 7)
}
pub fn jalr(rd: Reg, base: Reg, offset: i32) -> u32 {
    i_type(0x67, 0, rd, base, offset)
}
pub fn beq(rs1: Reg, rs2: Reg, offset: i32) -> u32 {
    b_type(0, rs1, rs2, offset)
}
pub fn bne(rs1: Reg, rs2: Reg, offset: i32) -> u32 {
    b_type(1, rs1, rs2, offset)
}
pub fn bltu(rs1: Reg, rs2: Reg, offset: i32) -> u32 {
    b_type(6, rs1, rs2, offset)
}
pub fn bgeu(rs1: Reg, rs2: Reg, offset: i32) -> u32 {
    b_type(7, rs1, rs2, offset)
}
pub fn blt(rs1: Reg, rs2: Reg, offset: i32) -> u32 {
    b_type(4, rs1, rs2, offset)
}
pub fn bge(rs1: Reg, rs2: Reg, offset: i32) -> u32 {
    b_type(5, rs1, rs2, offset)
}
pub fn csrrw(rd: Reg, csr: u32, rs1: Reg) -> u32 {
    csr_type(1, rd, csr, rs1 as u32)
}
pub fn csrrs(rd: Reg, csr: u32, rs1: Reg) -> u32 {
    csr_type(2, rd, csr, rs1 as u32)
}
pub fn csrrc(rd: Reg, csr: u32, rs1: Reg) -> u32 {
    csr_type(3, rd, csr, rs1 as u32)
}
pub fn sret() -> u32 {
    0x1020_0073
}
pub fn wfi() -> u32 {
    0x1050_0073
}
pub fn sfence_vma(address: Reg, asid: Reg) -> u32 {
    0x1200_0073 | r(asid, 20) | r(address, 15)
}

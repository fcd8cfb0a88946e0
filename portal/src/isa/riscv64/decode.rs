//! Decoder of the rv64 instructions that portal code may consist of.
//!
//! The verifier and the disassembly in `inspect` and in the golden files stand on it. It shares nothing with
//! the encoder, so one mistaken bit field cannot hide in both; `tests/isa.rs` holds it against LLVM.
//!
//! * Only 32-bit instructions; whatever is not listed in [`Insn`] decodes to `None`.
//! * Immediates are sign-extended, shifted into place, and ready to be added.
//! * `Display` prints what `llvm-objdump -M no-aliases` prints, with branch targets relative to the
//!   instruction.

use core::fmt;

/// Width of an integer load or store, and how a load extends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    B,
    H,
    W,
    D,
    Bu,
    Hu,
    Wu,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alu {
    Add,
    Sub,
    And,
    Or,
    Xor,
    Slt,
    Sltu,
    Sll,
    Srl,
    Sra,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cond {
    Eq,
    Ne,
    Lt,
    Ge,
    Ltu,
    Geu,
}

/// What a CSR instruction does with its operand: write, set bits, clear bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CsrOp {
    W,
    S,
    C,
}

/// Registers are numbers `0..32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insn {
    /// `imm` is the value that `rd` gets.
    Lui {
        rd: u8,
        imm: i64,
    },
    /// `imm` is the distance from this instruction.
    Auipc {
        rd: u8,
        imm: i64,
    },
    AluImm {
        op: Alu,
        rd: u8,
        rs1: u8,
        imm: i64,
    },
    /// `add`, `sub`, `and`, `or`, `xor` or `sltu`.
    Alu {
        op: Alu,
        rd: u8,
        rs1: u8,
        rs2: u8,
    },
    Load {
        width: Width,
        rd: u8,
        rs1: u8,
        imm: i64,
    },
    Store {
        width: Width,
        rs2: u8,
        rs1: u8,
        imm: i64,
    },
    Fld {
        fd: u8,
        rs1: u8,
        imm: i64,
    },
    Fsd {
        fs2: u8,
        rs1: u8,
        imm: i64,
    },
    FmvDX {
        fd: u8,
        rs1: u8,
    },
    Jal {
        rd: u8,
        imm: i64,
    },
    Jalr {
        rd: u8,
        rs1: u8,
        imm: i64,
    },
    Branch {
        cond: Cond,
        rs1: u8,
        rs2: u8,
        imm: i64,
    },
    Csr {
        op: CsrOp,
        rd: u8,
        csr: u16,
        rs1: u8,
    },
    CsrImm {
        op: CsrOp,
        rd: u8,
        csr: u16,
        imm: u8,
    },
    Ecall,
    Ebreak,
    Sret,
    Wfi,
    SfenceVma {
        rs1: u8,
        rs2: u8,
    },
    FenceI,
}

/// Decodes one instruction word.
#[inline(always)]
pub const fn decode(word: u32) -> Option<Insn> {
    let rd = (word >> 7 & 31) as u8;
    let rs1 = (word >> 15 & 31) as u8;
    let rs2 = (word >> 20 & 31) as u8;
    let funct3 = word >> 12 & 7;
    let funct7 = word >> 25;
    let imm = imm_i(word);
    Some(match word & 0x7f {
        0x03 => {
            let width = match funct3 {
                0 => Width::B,
                1 => Width::H,
                2 => Width::W,
                3 => Width::D,
                4 => Width::Bu,
                5 => Width::Hu,
                6 => Width::Wu,
                _ => return None,
            };
            Insn::Load { width, rd, rs1, imm }
        }
        0x07 if funct3 == 3 => Insn::Fld { fd: rd, rs1, imm },
        0x0f if word == 0x0000_100f => Insn::FenceI,
        0x13 => return alu_imm(word, rd, rs1),
        0x17 => Insn::Auipc { rd, imm: imm_u(word) },
        0x23 => {
            let width = match funct3 {
                0 => Width::B,
                1 => Width::H,
                2 => Width::W,
                3 => Width::D,
                _ => return None,
            };
            Insn::Store { width, rs2, rs1, imm: imm_s(word) }
        }
        0x27 if funct3 == 3 => Insn::Fsd { fs2: rs2, rs1, imm: imm_s(word) },
        0x33 => {
            let op = match (funct7, funct3) {
                (0x00, 0) => Alu::Add,
                (0x20, 0) => Alu::Sub,
                (0x00, 3) => Alu::Sltu,
                (0x00, 4) => Alu::Xor,
                (0x00, 6) => Alu::Or,
                (0x00, 7) => Alu::And,
                _ => return None,
            };
            Insn::Alu { op, rd, rs1, rs2 }
        }
        0x37 => Insn::Lui { rd, imm: imm_u(word) },
        0x53 if funct7 == 0x79 && rs2 == 0 && funct3 == 0 => Insn::FmvDX { fd: rd, rs1 },
        0x63 => {
            let cond = match funct3 {
                0 => Cond::Eq,
                1 => Cond::Ne,
                4 => Cond::Lt,
                5 => Cond::Ge,
                6 => Cond::Ltu,
                7 => Cond::Geu,
                _ => return None,
            };
            Insn::Branch { cond, rs1, rs2, imm: imm_b(word) }
        }
        0x67 if funct3 == 0 => Insn::Jalr { rd, rs1, imm },
        0x6f => Insn::Jal { rd, imm: imm_j(word) },
        0x73 => return system(word, rd, rs1, rs2),
        _ => return None,
    })
}

// Short cuts for what portal code mostly consists of; `decode` says the same.

/// The register that `addi rd, zero, 0` clears.
#[inline(always)]
pub const fn clears(word: u32) -> Option<u8> {
    if word & 0xffff_f07f == 0x13 { Some((word >> 7 & 31) as u8) } else { None }
}

/// `addi`: destination, source, immediate.
#[inline(always)]
pub const fn adds(word: u32) -> Option<(u8, u8, i64)> {
    if word & 0x707f != 0x13 {
        return None;
    }
    Some(((word >> 7 & 31) as u8, (word >> 15 & 31) as u8, imm_i(word)))
}

/// `lui`: destination, value.
#[inline(always)]
pub const fn loads_upper(word: u32) -> Option<(u8, i64)> {
    if word & 0x7f != 0x37 {
        return None;
    }
    Some(((word >> 7 & 31) as u8, imm_u(word)))
}

/// `csrrw zero`: control register, source.
#[inline(always)]
pub const fn writes_csr(word: u32) -> Option<(u16, u8)> {
    if word & 0x7fff != 0x1073 {
        return None;
    }
    Some(((word >> 20) as u16, (word >> 15 & 31) as u8))
}

/// Whether this is a branch.
#[inline(always)]
pub const fn branches(word: u32) -> bool {
    word & 0x7f == 0x63
}

/// `ld`: destination, base, offset.
#[inline(always)]
pub const fn loads_double(word: u32) -> Option<(u8, u8, i64)> {
    if word & 0x707f != 0x3003 {
        return None;
    }
    Some(((word >> 7 & 31) as u8, (word >> 15 & 31) as u8, imm_i(word)))
}

/// `sd`: source, base, offset.
#[inline(always)]
pub const fn stores_double(word: u32) -> Option<(u8, u8, i64)> {
    if word & 0x707f != 0x3023 {
        return None;
    }
    Some(((word >> 20 & 31) as u8, (word >> 15 & 31) as u8, imm_s(word)))
}

const fn alu_imm(word: u32, rd: u8, rs1: u8) -> Option<Insn> {
    let imm = imm_i(word);
    let (op, imm) = match (word >> 12 & 7, word >> 26) {
        (0, _) => (Alu::Add, imm),
        (1, 0x00) => (Alu::Sll, imm),
        (2, _) => (Alu::Slt, imm),
        (3, _) => (Alu::Sltu, imm),
        (4, _) => (Alu::Xor, imm),
        (5, 0x00) => (Alu::Srl, imm),
        (5, 0x10) => (Alu::Sra, imm & 63),
        (6, _) => (Alu::Or, imm),
        (7, _) => (Alu::And, imm),
        _ => return None,
    };
    Some(Insn::AluImm { op, rd, rs1, imm })
}

const fn system(word: u32, rd: u8, rs1: u8, rs2: u8) -> Option<Insn> {
    let csr = (word >> 20) as u16;
    let op = match word >> 12 & 3 {
        0 => {
            return match word {
                0x0000_0073 => Some(Insn::Ecall),
                0x0010_0073 => Some(Insn::Ebreak),
                0x1020_0073 => Some(Insn::Sret),
                0x1050_0073 => Some(Insn::Wfi),
                _ if word & 0xfe00_7fff == 0x1200_0073 => Some(Insn::SfenceVma { rs1, rs2 }),
                _ => None,
            };
        }
        1 => CsrOp::W,
        2 => CsrOp::S,
        _ => CsrOp::C,
    };
    Some(match word >> 14 & 1 {
        0 => Insn::Csr { op, rd, csr, rs1 },
        _ => Insn::CsrImm { op, rd, csr, imm: rs1 },
    })
}

const fn imm_i(word: u32) -> i64 {
    (word as i32 >> 20) as i64
}
const fn imm_s(word: u32) -> i64 {
    ((word & 0xfe00_0000) as i32 >> 20) as i64 | (word >> 7 & 0x1f) as i64
}
const fn imm_u(word: u32) -> i64 {
    (word & 0xffff_f000) as i32 as i64
}
const fn imm_b(word: u32) -> i64 {
    ((word & 0x8000_0000) as i32 >> 19) as i64
        | ((word & 0x80) << 4 | word >> 20 & 0x7e0 | word >> 7 & 0x1e) as i64
}
const fn imm_j(word: u32) -> i64 {
    ((word & 0x8000_0000) as i32 >> 11) as i64
        | (word & 0xf_f000 | word >> 9 & 0x800 | word >> 20 & 0x7fe) as i64
}

/// Names of the integer registers in the calling convention.
pub const REGISTERS: [&str; 32] = [
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4", "a5", "a6",
    "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6",
];
const FLOAT_REGISTERS: [&str; 32] = [
    "ft0", "ft1", "ft2", "ft3", "ft4", "ft5", "ft6", "ft7", "fs0", "fs1", "fa0", "fa1", "fa2", "fa3", "fa4",
    "fa5", "fa6", "fa7", "fs2", "fs3", "fs4", "fs5", "fs6", "fs7", "fs8", "fs9", "fs10", "fs11", "ft8",
    "ft9", "ft10", "ft11",
];

struct Reg(u8);
impl fmt::Display for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REGISTERS[usize::from(self.0 & 31)])
    }
}

struct FloatReg(u8);
impl fmt::Display for FloatReg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(FLOAT_REGISTERS[usize::from(self.0 & 31)])
    }
}

struct CsrName(u16);
impl fmt::Display for CsrName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            0x001 => "fflags",
            0x002 => "frm",
            0x003 => "fcsr",
            0x100 => "sstatus",
            0x104 => "sie",
            0x105 => "stvec",
            0x106 => "scounteren",
            0x140 => "sscratch",
            0x141 => "sepc",
            0x142 => "scause",
            0x143 => "stval",
            0x144 => "sip",
            0x14d => "stimecmp",
            0x180 => "satp",
            0xc00 => "cycle",
            0xc01 => "time",
            0xc02 => "instret",
            other => return write!(f, "{other}"),
        })
    }
}

impl fmt::Display for Alu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Alu::Add => "add",
            Alu::Sub => "sub",
            Alu::And => "and",
            Alu::Or => "or",
            Alu::Xor => "xor",
            Alu::Slt => "slt",
            Alu::Sltu => "sltu",
            Alu::Sll => "sll",
            Alu::Srl => "srl",
            Alu::Sra => "sra",
        })
    }
}

impl fmt::Display for Insn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let upper = |imm: i64| (imm as u64 >> 12) & 0xf_ffff;
        match *self {
            Insn::Lui { rd, imm } => write!(f, "lui {}, {}", Reg(rd), upper(imm)),
            Insn::Auipc { rd, imm } => write!(f, "auipc {}, {}", Reg(rd), upper(imm)),
            Insn::AluImm { op: Alu::Sltu, rd, rs1, imm } => {
                write!(f, "sltiu {}, {}, {imm}", Reg(rd), Reg(rs1))
            }
            Insn::AluImm { op, rd, rs1, imm } => write!(f, "{op}i {}, {}, {imm}", Reg(rd), Reg(rs1)),
            Insn::Alu { op, rd, rs1, rs2 } => write!(f, "{op} {}, {}, {}", Reg(rd), Reg(rs1), Reg(rs2)),
            Insn::Load { width, rd, rs1, imm } => {
                let name = match width {
                    Width::B => "lb",
                    Width::H => "lh",
                    Width::W => "lw",
                    Width::D => "ld",
                    Width::Bu => "lbu",
                    Width::Hu => "lhu",
                    Width::Wu => "lwu",
                };
                write!(f, "{name} {}, {imm}({})", Reg(rd), Reg(rs1))
            }
            Insn::Store { width, rs2, rs1, imm } => {
                let name = match width {
                    Width::B | Width::Bu => "sb",
                    Width::H | Width::Hu => "sh",
                    Width::W | Width::Wu => "sw",
                    Width::D => "sd",
                };
                write!(f, "{name} {}, {imm}({})", Reg(rs2), Reg(rs1))
            }
            Insn::Fld { fd, rs1, imm } => write!(f, "fld {}, {imm}({})", FloatReg(fd), Reg(rs1)),
            Insn::Fsd { fs2, rs1, imm } => write!(f, "fsd {}, {imm}({})", FloatReg(fs2), Reg(rs1)),
            Insn::FmvDX { fd, rs1 } => write!(f, "fmv.d.x {}, {}", FloatReg(fd), Reg(rs1)),
            Insn::Jal { rd, imm } => write!(f, "jal {}, {imm}", Reg(rd)),
            Insn::Jalr { rd, rs1, imm } => write!(f, "jalr {}, {imm}({})", Reg(rd), Reg(rs1)),
            Insn::Branch { cond, rs1, rs2, imm } => {
                let name = match cond {
                    Cond::Eq => "beq",
                    Cond::Ne => "bne",
                    Cond::Lt => "blt",
                    Cond::Ge => "bge",
                    Cond::Ltu => "bltu",
                    Cond::Geu => "bgeu",
                };
                write!(f, "{name} {}, {}, {imm}", Reg(rs1), Reg(rs2))
            }
            Insn::Csr { op, rd, csr, rs1 } => {
                write!(f, "{} {}, {}, {}", csr_mnemonic(op), Reg(rd), CsrName(csr), Reg(rs1))
            }
            Insn::CsrImm { op, rd, csr, imm } => {
                write!(f, "{}i {}, {}, {imm}", csr_mnemonic(op), Reg(rd), CsrName(csr))
            }
            Insn::Ecall => f.write_str("ecall"),
            Insn::Ebreak => f.write_str("ebreak"),
            Insn::Sret => f.write_str("sret"),
            Insn::Wfi => f.write_str("wfi"),
            Insn::SfenceVma { rs1, rs2 } => write!(f, "sfence.vma {}, {}", Reg(rs1), Reg(rs2)),
            Insn::FenceI => f.write_str("fence.i"),
        }
    }
}

const fn csr_mnemonic(op: CsrOp) -> &'static str {
    match op {
        CsrOp::W => "csrrw",
        CsrOp::S => "csrrs",
        CsrOp::C => "csrrc",
    }
}

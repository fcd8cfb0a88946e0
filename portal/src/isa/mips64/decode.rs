//! Decoder of the mips64r2 instructions that portal code may consist of.
//!
//! The verifier and the disassembly in `inspect` and in the golden files stand on it. It shares nothing with
//! the encoder, so one mistaken bit field cannot hide in both; `tests/isa.rs` holds it against LLVM.
//!
//! * Whatever is not listed in [`Insn`] decodes to `None`. So do words that leave a field which must be 0.
//! * Immediates are extended as the instruction does it, shifted into place, and ready to be used; branches
//!   count from their own address, not from the delay slot.
//! * `Display` prints what `llvm-objdump --no-print-imm-hex` prints, with branch targets relative to the
//!   instruction.

use core::fmt;

/// Of a load or store; `W` is sign-extended, `Wu` is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    W,
    Wu,
    D,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alu {
    /// 32 bits, the result sign-extended.
    Addu,
    Subu,
    Daddu,
    Dsubu,
    And,
    Or,
    Xor,
    Nor,
    Slt,
    Sltu,
    /// `rd` becomes `rs` if `rt` is 0; if it is not.
    Movz,
    Movn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shift {
    /// 32 bits, the result sign-extended.
    Sll,
    Srl,
    Sra,
    Dsll,
    Dsrl,
    Dsra,
}

/// The last four compare with 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cond {
    Eq,
    Ne,
    Ltz,
    Gez,
    Lez,
    Gtz,
}

/// A register of coprocessor 0: number and selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct C0(pub u8, pub u8);

/// Those that portal code uses.
pub mod c0 {
    use super::C0;

    pub const INDEX: C0 = C0(0, 0);
    pub const ENTRY_LO0: C0 = C0(2, 0);
    pub const ENTRY_LO1: C0 = C0(3, 0);
    pub const BAD_VADDR: C0 = C0(8, 0);
    pub const COUNT: C0 = C0(9, 0);
    pub const ENTRY_HI: C0 = C0(10, 0);
    pub const COMPARE: C0 = C0(11, 0);
    pub const STATUS: C0 = C0(12, 0);
    pub const CAUSE: C0 = C0(13, 0);
    pub const EPC: C0 = C0(14, 0);
    pub const DEPC: C0 = C0(24, 0);
    pub const ERROR_EPC: C0 = C0(30, 0);
    pub const DESAVE: C0 = C0(31, 0);
}

/// Registers are numbers `0..32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insn {
    Nop,
    /// `imm` is the value that `rt` gets.
    Lui {
        rt: u8,
        imm: i64,
    },
    /// `Addu`, `Daddu`, `And`, `Or`, `Xor`, `Slt` or `Sltu`.
    AluImm {
        op: Alu,
        rt: u8,
        rs: u8,
        imm: i64,
    },
    Alu {
        op: Alu,
        rd: u8,
        rs: u8,
        rt: u8,
    },
    Shift {
        op: Shift,
        rd: u8,
        rt: u8,
        by: u8,
    },
    /// `rt` becomes the bits of `rs` from `pos` on.
    Ext {
        rt: u8,
        rs: u8,
        pos: u8,
        size: u8,
    },
    /// The lowest bits of `rs` become those of `rt` from `pos` on.
    Ins {
        rt: u8,
        rs: u8,
        pos: u8,
        size: u8,
    },
    Load {
        width: Width,
        rt: u8,
        base: u8,
        imm: i64,
    },
    /// `W` or `D`.
    Store {
        width: Width,
        rt: u8,
        base: u8,
        imm: i64,
    },
    /// `rt` is 0 where there is none.
    Branch {
        cond: Cond,
        rs: u8,
        rt: u8,
        imm: i64,
    },
    Jr {
        rs: u8,
    },
    /// `rd` is not 0.
    Jalr {
        rd: u8,
        rs: u8,
    },
    Mfc0 {
        rt: u8,
        from: C0,
    },
    Dmfc0 {
        rt: u8,
        from: C0,
    },
    Mtc0 {
        rt: u8,
        to: C0,
    },
    Dmtc0 {
        rt: u8,
        to: C0,
    },
    Mfhi {
        rd: u8,
    },
    Mflo {
        rd: u8,
    },
    Mthi {
        rs: u8,
    },
    Mtlo {
        rs: u8,
    },
    /// Interrupts off; what the status was.
    Di {
        rt: u8,
    },
    Ei {
        rt: u8,
    },
    Tlbp,
    Tlbwi,
    Ehb,
    Eret,
}

/// Decodes one instruction word.
#[inline(always)]
pub const fn decode(word: u32) -> Option<Insn> {
    let rs = (word >> 21 & 31) as u8;
    let rt = (word >> 16 & 31) as u8;
    let imm = word as i16 as i64;
    let zero_extended = (word & 0xffff) as i64;
    Some(match word >> 26 {
        0x00 => return special(word, rs, rt),
        0x01 => match rt {
            0 => branch(Cond::Ltz, rs, 0, imm),
            1 => branch(Cond::Gez, rs, 0, imm),
            _ => return None,
        },
        0x04 => branch(Cond::Eq, rs, rt, imm),
        0x05 => branch(Cond::Ne, rs, rt, imm),
        0x06 if rt == 0 => branch(Cond::Lez, rs, 0, imm),
        0x07 if rt == 0 => branch(Cond::Gtz, rs, 0, imm),
        0x09 => Insn::AluImm { op: Alu::Addu, rt, rs, imm },
        0x0a => Insn::AluImm { op: Alu::Slt, rt, rs, imm },
        0x0b => Insn::AluImm { op: Alu::Sltu, rt, rs, imm },
        0x0c => Insn::AluImm { op: Alu::And, rt, rs, imm: zero_extended },
        0x0d => Insn::AluImm { op: Alu::Or, rt, rs, imm: zero_extended },
        0x0e => Insn::AluImm { op: Alu::Xor, rt, rs, imm: zero_extended },
        0x0f if rs == 0 => Insn::Lui { rt, imm: (word << 16) as i32 as i64 },
        0x10 => return coprocessor(word, rs, rt),
        0x19 => Insn::AluImm { op: Alu::Daddu, rt, rs, imm },
        0x1f => return field(word, rs, rt),
        0x23 => Insn::Load { width: Width::W, rt, base: rs, imm },
        0x27 => Insn::Load { width: Width::Wu, rt, base: rs, imm },
        0x37 => Insn::Load { width: Width::D, rt, base: rs, imm },
        0x2b => Insn::Store { width: Width::W, rt, base: rs, imm },
        0x3f => Insn::Store { width: Width::D, rt, base: rs, imm },
        _ => return None,
    })
}

const fn branch(cond: Cond, rs: u8, rt: u8, imm: i64) -> Insn {
    Insn::Branch { cond, rs, rt, imm: imm * 4 + 4 }
}

const fn special(word: u32, rs: u8, rt: u8) -> Option<Insn> {
    let rd = (word >> 11 & 31) as u8;
    let by = (word >> 6 & 31) as u8;
    let function = word & 63;
    // Shifts by a constant.
    let op = match function {
        0x00 => Some((Shift::Sll, 0)),
        0x02 => Some((Shift::Srl, 0)),
        0x03 => Some((Shift::Sra, 0)),
        0x38 => Some((Shift::Dsll, 0)),
        0x3a => Some((Shift::Dsrl, 0)),
        0x3b => Some((Shift::Dsra, 0)),
        0x3c => Some((Shift::Dsll, 32)),
        0x3e => Some((Shift::Dsrl, 32)),
        0x3f => Some((Shift::Dsra, 32)),
        _ => None,
    };
    if let Some((op, more)) = op {
        return match word {
            0x0000_0000 => Some(Insn::Nop),
            0x0000_00c0 => Some(Insn::Ehb),
            // `ssnop` and `pause` are such shifts too, and none of ours.
            _ if rs != 0 || (function == 0 && rd == 0) => None,
            _ => Some(Insn::Shift { op, rd, rt, by: by + more }),
        };
    }
    if by != 0 {
        return None;
    }
    let op = match function {
        0x0a => Alu::Movz,
        0x0b => Alu::Movn,
        0x21 => Alu::Addu,
        0x23 => Alu::Subu,
        0x24 => Alu::And,
        0x25 => Alu::Or,
        0x26 => Alu::Xor,
        0x27 => Alu::Nor,
        0x2a => Alu::Slt,
        0x2b => Alu::Sltu,
        0x2d => Alu::Daddu,
        0x2f => Alu::Dsubu,
        _ => {
            return match (function, rs, rt, rd) {
                (0x08, _, 0, 0) => Some(Insn::Jr { rs }),
                (0x09, _, 0, 1..) => Some(Insn::Jalr { rd, rs }),
                (0x10, 0, 0, _) => Some(Insn::Mfhi { rd }),
                (0x11, _, 0, 0) => Some(Insn::Mthi { rs }),
                (0x12, 0, 0, _) => Some(Insn::Mflo { rd }),
                (0x13, _, 0, 0) => Some(Insn::Mtlo { rs }),
                _ => None,
            };
        }
    };
    Some(Insn::Alu { op, rd, rs, rt })
}

const fn coprocessor(word: u32, rs: u8, rt: u8) -> Option<Insn> {
    let c0 = C0((word >> 11 & 31) as u8, (word & 7) as u8);
    if word >> 25 & 1 == 1 {
        return match word {
            0x4200_0002 => Some(Insn::Tlbwi),
            0x4200_0008 => Some(Insn::Tlbp),
            0x4200_0018 => Some(Insn::Eret),
            _ => None,
        };
    }
    if rs == 11 {
        return match word & 0xffff {
            0x6000 => Some(Insn::Di { rt }),
            0x6020 => Some(Insn::Ei { rt }),
            _ => None,
        };
    }
    match (rs, word & 0x7f8) {
        (0, 0) => Some(Insn::Mfc0 { rt, from: c0 }),
        (1, 0) => Some(Insn::Dmfc0 { rt, from: c0 }),
        (4, 0) => Some(Insn::Mtc0 { rt, to: c0 }),
        (5, 0) => Some(Insn::Dmtc0 { rt, to: c0 }),
        _ => None,
    }
}

/// `dext`, `dins` and the forms of them for a higher position or a larger size.
const fn field(word: u32, rs: u8, rt: u8) -> Option<Insn> {
    let (high, low) = ((word >> 11 & 31) as u8, (word >> 6 & 31) as u8);
    let (inserts, last, pos) = match word & 63 {
        0x01 => (false, high + 32, low),
        0x02 => (false, high, low + 32),
        0x03 => (false, high, low),
        0x05 => (true, high + 32, low),
        0x06 => (true, high + 32, low + 32),
        0x07 => (true, high, low),
        _ => return None,
    };
    // All 64 bits put in are a move: not even LLVM prints that.
    match inserts {
        true if pos <= last && last - pos < 63 => Some(Insn::Ins { rt, rs, pos, size: last - pos + 1 }),
        false if pos + last < 64 => Some(Insn::Ext { rt, rs, pos, size: last + 1 }),
        _ => None,
    }
}

/// Names of the registers: those that have one in LLVM's disassembly.
pub const REGISTERS: [&str; 32] = [
    "$zero", "$1", "$2", "$3", "$4", "$5", "$6", "$7", "$8", "$9", "$10", "$11", "$12", "$13", "$14", "$15",
    "$16", "$17", "$18", "$19", "$20", "$21", "$22", "$23", "$24", "$25", "$26", "$27", "$gp", "$sp", "$fp",
    "$ra",
];

struct Reg(u8);
impl fmt::Display for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REGISTERS[usize::from(self.0 & 31)])
    }
}

impl fmt::Display for C0 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${}, {}", self.0, self.1)
    }
}

impl fmt::Display for Alu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Alu::Addu => "addu",
            Alu::Subu => "subu",
            Alu::Daddu => "daddu",
            Alu::Dsubu => "dsubu",
            Alu::And => "and",
            Alu::Or => "or",
            Alu::Xor => "xor",
            Alu::Nor => "nor",
            Alu::Slt => "slt",
            Alu::Sltu => "sltu",
            Alu::Movz => "movz",
            Alu::Movn => "movn",
        })
    }
}

impl fmt::Display for Insn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Insn::Nop => f.write_str("nop"),
            Insn::Lui { rt, imm } => write!(f, "lui {}, {}", Reg(rt), imm >> 16 & 0xffff),
            Insn::AluImm { op, rt, rs, imm } => {
                let name = match op {
                    Alu::Addu => "addiu",
                    Alu::Daddu => "daddiu",
                    Alu::Sltu => "sltiu",
                    op => return write!(f, "{op}i {}, {}, {imm}", Reg(rt), Reg(rs)),
                };
                write!(f, "{name} {}, {}, {imm}", Reg(rt), Reg(rs))
            }
            // LLVM knows these by the names that people use.
            Insn::Alu { op: Alu::Or | Alu::Daddu | Alu::Addu, rd, rs, rt: 0 } => {
                write!(f, "move {}, {}", Reg(rd), Reg(rs))
            }
            Insn::Alu { op: Alu::Nor, rd, rs, rt: 0 } => write!(f, "not {}, {}", Reg(rd), Reg(rs)),
            Insn::Alu { op: Alu::Subu, rd, rs: 0, rt } => write!(f, "negu {}, {}", Reg(rd), Reg(rt)),
            Insn::Alu { op: Alu::Dsubu, rd, rs: 0, rt } => write!(f, "dnegu {}, {}", Reg(rd), Reg(rt)),
            Insn::Alu { op, rd, rs, rt } => write!(f, "{op} {}, {}, {}", Reg(rd), Reg(rs), Reg(rt)),
            Insn::Shift { op, rd, rt, by } => {
                let name = match op {
                    Shift::Sll => "sll",
                    Shift::Srl => "srl",
                    Shift::Sra => "sra",
                    Shift::Dsll if by < 32 => "dsll",
                    Shift::Dsrl if by < 32 => "dsrl",
                    Shift::Dsra if by < 32 => "dsra",
                    Shift::Dsll => "dsll32",
                    Shift::Dsrl => "dsrl32",
                    Shift::Dsra => "dsra32",
                };
                write!(f, "{name} {}, {}, {}", Reg(rd), Reg(rt), by & 31)
            }
            Insn::Ext { rt, rs, pos, size } => write!(f, "dext {}, {}, {pos}, {size}", Reg(rt), Reg(rs)),
            Insn::Ins { rt, rs, pos, size } => write!(f, "dins {}, {}, {pos}, {size}", Reg(rt), Reg(rs)),
            Insn::Load { width, rt, base, imm } => {
                let name = match width {
                    Width::W => "lw",
                    Width::Wu => "lwu",
                    Width::D => "ld",
                };
                write!(f, "{name} {}, {imm}({})", Reg(rt), Reg(base))
            }
            Insn::Store { width, rt, base, imm } => {
                let name = if matches!(width, Width::D) { "sd" } else { "sw" };
                write!(f, "{name} {}, {imm}({})", Reg(rt), Reg(base))
            }
            Insn::Branch { cond: Cond::Eq, rs: 0, rt: 0, imm } => write!(f, "b {imm}"),
            Insn::Branch { cond, rs, rt, imm } => {
                let name = match (cond, rt) {
                    (Cond::Eq, 0) => "beqz",
                    (Cond::Ne, 0) => "bnez",
                    (Cond::Eq, _) => return write!(f, "beq {}, {}, {imm}", Reg(rs), Reg(rt)),
                    (Cond::Ne, _) => return write!(f, "bne {}, {}, {imm}", Reg(rs), Reg(rt)),
                    (Cond::Ltz, _) => "bltz",
                    (Cond::Gez, _) => "bgez",
                    (Cond::Lez, _) => "blez",
                    (Cond::Gtz, _) => "bgtz",
                };
                write!(f, "{name} {}, {imm}", Reg(rs))
            }
            Insn::Jr { rs } => write!(f, "jr {}", Reg(rs)),
            Insn::Jalr { rd: 31, rs } => write!(f, "jalr {}", Reg(rs)),
            Insn::Jalr { rd, rs } => write!(f, "jalr {}, {}", Reg(rd), Reg(rs)),
            Insn::Mfc0 { rt, from } => write!(f, "mfc0 {}, {from}", Reg(rt)),
            Insn::Dmfc0 { rt, from } => write!(f, "dmfc0 {}, {from}", Reg(rt)),
            Insn::Mtc0 { rt, to } => write!(f, "mtc0 {}, {to}", Reg(rt)),
            Insn::Dmtc0 { rt, to } => write!(f, "dmtc0 {}, {to}", Reg(rt)),
            Insn::Mfhi { rd } => write!(f, "mfhi {}", Reg(rd)),
            Insn::Mflo { rd } => write!(f, "mflo {}", Reg(rd)),
            Insn::Mthi { rs } => write!(f, "mthi {}", Reg(rs)),
            Insn::Mtlo { rs } => write!(f, "mtlo {}", Reg(rs)),
            Insn::Di { rt: 0 } => f.write_str("di"),
            Insn::Di { rt } => write!(f, "di {}", Reg(rt)),
            Insn::Ei { rt: 0 } => f.write_str("ei"),
            Insn::Ei { rt } => write!(f, "ei {}", Reg(rt)),
            Insn::Tlbp => f.write_str("tlbp"),
            Insn::Tlbwi => f.write_str("tlbwi"),
            Insn::Ehb => f.write_str("ehb"),
            Insn::Eret => f.write_str("eret"),
        }
    }
}

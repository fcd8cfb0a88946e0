//! What mutants are made of: an instruction word's fields, on each processor.

use pebble_portal::Processor;
use pebble_portal::hardware::template::{Condition, Operation};
use pebble_portal::hardware::template::{mips64, riscv64::register};
use pebble_portal::hardware::{Short, Template};
use pebble_portal::isa::mips64::{decode as mips, encode as mips_encode};
use pebble_portal::isa::riscv64::{decode as rv, encode};

/// What an instruction is for, as far as mutants of it are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Store,
    Load,
    /// With the distance, in bytes, from this instruction.
    Branch(i64),
    /// Into user mode; to other nucleus code.
    Leave,
    Jump,
    /// Reads a control register; writes one.
    ReadControl,
    WriteControl,
    /// A register and a number make another.
    Number,
    /// A register gets an upper half.
    Upper,
    Other,
}

/// A processor's instruction words. Registers are numbers; what does not apply to an instruction changes it
/// somehow.
pub trait Words {
    const PROCESSOR: Processor;
    const NOP: u32;
    /// Instructions behind a branch or a jump that are executed before it is taken.
    const DELAYED: usize;
    /// First instruction of the return leg that is no entry.
    const ENTRIES: usize;
    /// First instruction of what only a thread's end comes to.
    const RAISED: usize;
    /// Instructions that no portal has, and the one that waits.
    const ALONE: &'static [u32];
    const WAITS: u32;

    /// Such a portal is one sequence of instructions.
    fn word_by_word(short: Short) -> bool;
    /// Instructions, from one of which there are these, that are one sequence too.
    const SEQUENCE: (u32, usize);
    /// `None`: none that the decoder knows.
    fn kind(word: u32) -> Option<Kind>;
    fn text(word: u32) -> String;
    /// The register that the instruction clears.
    fn clears(word: u32) -> Option<u8>;
    /// The register whose content it gives to another.
    fn copies(word: u32) -> Option<u8>;
    /// The offset from the leg's first instruction at which it loads, or the address that it computes.
    fn reaches(word: u32) -> Option<i64>;
    /// The distance from where a call of the nucleus has come back, two instructions before, to the leg's
    /// first.
    fn comes_back(_word: u32) -> Option<i64> {
        None
    }
    /// Changes the address space.
    fn switches(word: u32) -> bool;
    /// Of a load, a store, a computation with a number.
    fn with_number(word: u32, number: i64) -> u32;
    /// Of a branch: from this instruction, in bytes.
    fn with_distance(word: u32, distance: i64) -> u32;
    /// Of a load or a store, where; of a computation, of what; of a branch, what is tested.
    fn with_source(word: u32, x: usize) -> u32;
    /// Of a store, what is stored; of a branch, what with.
    fn with_second(word: u32, x: usize) -> u32;
    /// What is loaded or computed.
    fn with_result(word: u32, x: usize) -> u32;
    /// Of what gets an upper half.
    fn with_upper(word: u32, bits: u32) -> u32;
    /// Of a control instruction: the register written, the control register, what is done.
    fn with_operand(word: u32, x: usize) -> u32;
    fn with_control(word: u32, n: usize) -> u32;
    fn with_operation(word: u32, n: usize) -> u32;
    /// A store of a double word; a write of a control register that portals have nothing to do with.
    fn store(value: usize, base: usize, offset: i64) -> u32;
    fn control_write(x: usize, n: usize) -> u32;
    /// Where portal code finds the top of the invocation stack.
    const TOP: usize;
    /// How a template's first operation looks, and in how many instructions they all are.
    fn template(template: &Template) -> (u32, usize);
    /// The number that a status is made of, if it is one.
    fn with_status(word: u32, code: u64) -> u32;
}

pub struct Rv;

impl Words for Rv {
    const PROCESSOR: Processor = Processor::Riscv64;
    const NOP: u32 = 0x13;
    const DELAYED: usize = 0;
    const ENTRIES: usize = 2;
    const RAISED: usize = 2;
    const TOP: usize = 6;
    // ecall, ebreak, sret, wfi, sfence.vma, fence.i, uret, mret, a jump over nothing, a call, compressed code
    const ALONE: &'static [u32] = &[
        0x73,
        0x10_0073,
        0x1020_0073,
        0x1050_0073,
        0x1200_0073,
        0x100f,
        0x20_0073,
        0x3020_0073,
        0x0080_006f,
        0x0080_00ef,
        0x8082_8082,
        0,
    ];
    const WAITS: u32 = 0x1050_0073;

    const SEQUENCE: (u32, usize) = (0, 0);

    fn word_by_word(short: Short) -> bool {
        matches!(short, Short::Stacks(_))
    }

    fn kind(word: u32) -> Option<Kind> {
        Some(match rv::decode(word)? {
            rv::Insn::Store { .. } | rv::Insn::Fsd { .. } => Kind::Store,
            rv::Insn::Load { .. } | rv::Insn::Fld { .. } => Kind::Load,
            rv::Insn::Branch { imm, .. } => Kind::Branch(imm),
            rv::Insn::Sret => Kind::Leave,
            rv::Insn::Jalr { .. } => Kind::Jump,
            rv::Insn::Csr { op, rs1, .. } if op == rv::CsrOp::W || rs1 != 0 => Kind::WriteControl,
            rv::Insn::Csr { .. } => Kind::ReadControl,
            rv::Insn::AluImm { .. } => Kind::Number,
            rv::Insn::Lui { .. } => Kind::Upper,
            _ => Kind::Other,
        })
    }

    fn text(word: u32) -> String {
        rv::decode(word).map_or_else(|| format!("{word:#010x}"), |insn| insn.to_string())
    }

    fn clears(word: u32) -> Option<u8> {
        match rv::decode(word)? {
            rv::Insn::AluImm { op: rv::Alu::Add, rd, rs1: 0, imm: 0 } => Some(rd),
            _ => None,
        }
    }

    fn copies(word: u32) -> Option<u8> {
        match rv::decode(word)? {
            rv::Insn::AluImm { op: rv::Alu::Add, rs1, imm: 0, .. } => Some(rs1),
            _ => None,
        }
    }

    fn reaches(word: u32) -> Option<i64> {
        match rv::decode(word)? {
            rv::Insn::Load { rs1: 3, imm, .. } => Some(imm),
            rv::Insn::AluImm { op: rv::Alu::Add, rd: 7, rs1: 3, imm } => Some(imm),
            _ => None,
        }
    }

    fn switches(word: u32) -> bool {
        matches!(rv::decode(word), Some(rv::Insn::Csr { op: rv::CsrOp::W, csr: 0x180, .. }))
    }

    fn with_number(word: u32, number: i64) -> u32 {
        let imm = number as u32;
        match Self::kind(word) {
            Some(Kind::Store) => word & 0x01ff_f07f | (imm >> 5 & 0x7f) << 25 | (imm & 31) << 7,
            _ => word & 0x000f_ffff | imm << 20,
        }
    }

    fn with_distance(word: u32, distance: i64) -> u32 {
        let imm = distance as u32;
        word & 0x01ff_f07f
            | (imm >> 12 & 1) << 31
            | (imm >> 5 & 0x3f) << 25
            | (imm >> 1 & 15) << 8
            | (imm >> 11 & 1) << 7
    }

    fn with_source(word: u32, x: usize) -> u32 {
        word & !(31 << 15) | (x as u32) << 15
    }

    fn with_second(word: u32, x: usize) -> u32 {
        word & !(31 << 20) | (x as u32) << 20
    }

    fn with_result(word: u32, x: usize) -> u32 {
        word & !(31 << 7) | (x as u32) << 7
    }

    fn with_upper(word: u32, bits: u32) -> u32 {
        word & 0xfff | bits << 12
    }

    fn with_operand(word: u32, x: usize) -> u32 {
        Self::with_source(word, x)
    }

    fn with_control(word: u32, n: usize) -> u32 {
        const CSRS: [u32; 15] = [
            0x003, 0x100, 0x104, 0x105, 0x106, 0x140, 0x141, 0x142, 0x143, 0x144, 0x14d, 0x180, 0xc01, 0x300,
            0x305,
        ];
        word & 0xf_ffff | CSRS[n % CSRS.len()] << 20
    }

    fn with_operation(word: u32, n: usize) -> u32 {
        word & !0x7000 | (n as u32 & 7) << 12
    }

    fn store(value: usize, base: usize, offset: i64) -> u32 {
        Self::with_number(Self::with_second(Self::with_source(0x3023, base), value), offset)
    }

    /// `stvec`, `scounteren`, `sip`, a machine register.
    fn control_write(x: usize, n: usize) -> u32 {
        [0x105, 0x106, 0x144, 0x305][n % 4] << 20 | (x as u32) << 15 | 0x1073
    }

    fn template(template: &Template) -> (u32, usize) {
        let first = match template.operations[0] {
            Operation::ShiftLeft { to, a, by } => encode::slli(register(to), register(a), by.into()),
            Operation::ShiftRight { to, a, by } => encode::srli(register(to), register(a), by.into()),
            other => panic!("{other:?} comes first"),
        };
        (first, template.operations.len())
    }

    fn with_status(word: u32, code: u64) -> u32 {
        match rv::decode(word) {
            Some(rv::Insn::AluImm { op: rv::Alu::Or, .. }) => Self::with_number(word, code as i64),
            _ => word,
        }
    }
}

pub struct Mips;

impl Mips {
    fn decoded(word: u32) -> Option<mips::Insn> {
        mips::decode(word)
    }
}

impl Words for Mips {
    const PROCESSOR: Processor = Processor::Mips64;
    const NOP: u32 = 0;
    const DELAYED: usize = 1;
    const ENTRIES: usize = 2;
    const RAISED: usize = 5;
    const TOP: usize = 27;
    // syscall, break, eret, wait, tlbwr, tlbr, tlbp, tlbwi, deret, sync, ll, sc, cache, bal, j, and no
    // instruction
    const ALONE: &'static [u32] = &[
        0xc,
        0xd,
        0x4200_0018,
        0x4200_0020,
        0x4200_0006,
        0x4200_0001,
        0x4200_0008,
        0x4200_0002,
        0x4200_001f,
        0xf,
        0xc000_0000,
        0xe000_0000,
        0xbc00_0000,
        0x0411_0001,
        0x0800_0000,
        0xffff_ffff,
    ];
    const WAITS: u32 = 0x4200_0020;
    const SEQUENCE: (u32, usize) = (0x4200_0008, 11);

    fn word_by_word(short: Short) -> bool {
        matches!(short, Short::Stacks(_) | Short::SetTimer)
    }

    fn kind(word: u32) -> Option<Kind> {
        Some(match Self::decoded(word)? {
            mips::Insn::Store { .. } => Kind::Store,
            mips::Insn::Load { .. } => Kind::Load,
            mips::Insn::Branch { imm, .. } => Kind::Branch(imm),
            mips::Insn::Eret => Kind::Leave,
            mips::Insn::Jr { .. } | mips::Insn::Jalr { .. } => Kind::Jump,
            mips::Insn::Mfc0 { .. } | mips::Insn::Dmfc0 { .. } => Kind::ReadControl,
            mips::Insn::Mtc0 { .. } | mips::Insn::Dmtc0 { .. } => Kind::WriteControl,
            mips::Insn::AluImm { .. } => Kind::Number,
            mips::Insn::Lui { .. } => Kind::Upper,
            _ => Kind::Other,
        })
    }

    fn text(word: u32) -> String {
        Self::decoded(word).map_or_else(|| format!("{word:#010x}"), |insn| insn.to_string())
    }

    fn clears(word: u32) -> Option<u8> {
        match Self::decoded(word)? {
            mips::Insn::Alu { op: mips::Alu::Or, rd, rs: 0, rt: 0 } => Some(rd),
            _ => None,
        }
    }

    fn copies(word: u32) -> Option<u8> {
        match Self::decoded(word)? {
            mips::Insn::Alu { op: mips::Alu::Or, rs, rt: 0, .. } => Some(rs),
            mips::Insn::AluImm { op: mips::Alu::Daddu, rs, imm: 0, .. } => Some(rs),
            mips::Insn::Mthi { rs } | mips::Insn::Mtlo { rs } => Some(rs),
            _ => None,
        }
    }

    fn reaches(word: u32) -> Option<i64> {
        match Self::decoded(word)? {
            // Portal tables are followed with that register.
            mips::Insn::Load { rt, base: 26, imm, .. } if rt != 26 => Some(imm),
            // What is nearer is an entry of other code.
            mips::Insn::AluImm { op: mips::Alu::Daddu, rt: 14, rs: 26, imm } if imm > 20 => Some(imm),
            _ => None,
        }
    }

    fn comes_back(word: u32) -> Option<i64> {
        match Self::decoded(word)? {
            mips::Insn::AluImm { op: mips::Alu::Daddu, rt: 26, rs: 25, imm } => Some(imm),
            _ => None,
        }
    }

    fn switches(word: u32) -> bool {
        matches!(Self::decoded(word), Some(mips::Insn::Dmtc0 { to: mips::c0::DESAVE, .. }))
    }

    fn with_number(word: u32, number: i64) -> u32 {
        word & 0xffff_0000 | number as u32 & 0xffff
    }

    fn with_distance(word: u32, distance: i64) -> u32 {
        Self::with_number(word, (distance - 4) >> 2)
    }

    fn with_source(word: u32, x: usize) -> u32 {
        word & !(31 << 21) | (x as u32) << 21
    }

    fn with_second(word: u32, x: usize) -> u32 {
        word & !(31 << 16) | (x as u32) << 16
    }

    fn with_result(word: u32, x: usize) -> u32 {
        Self::with_second(word, x)
    }

    fn with_upper(word: u32, bits: u32) -> u32 {
        Self::with_number(word, bits.into())
    }

    fn with_operand(word: u32, x: usize) -> u32 {
        Self::with_second(word, x)
    }

    fn with_control(word: u32, n: usize) -> u32 {
        word & !(31 << 11) | (n as u32 & 31) << 11
    }

    /// Reads or writes, 32 or 64 bits; interrupts on and off.
    fn with_operation(word: u32, n: usize) -> u32 {
        word & !(31 << 21) | [0, 1, 4, 5, 2, 6, 11, 14][n % 8] << 21
    }

    fn store(value: usize, base: usize, offset: i64) -> u32 {
        Self::with_number(Self::with_second(Self::with_source(0xfc00_0000, base), value), offset)
    }

    /// `Status`, `Cause`, `EBase`'s number, `Wired`.
    fn control_write(x: usize, n: usize) -> u32 {
        0x40a0_0000 | (x as u32) << 16 | [12, 13, 15, 6][n % 4] << 11
    }

    fn template(template: &Template) -> (u32, usize) {
        let x = mips64::register;
        let first = match template.operations[0] {
            Operation::ShiftLeft { to, a, by } => mips_encode::dsll(x(to), x(a), by.into()),
            Operation::ShiftRight { to, a, by } => mips_encode::dsrl(x(to), x(a), by.into()),
            other => panic!("{other:?} comes first"),
        };
        let length = |operation: &Operation| match operation {
            Operation::Pages { .. } | Operation::AndNumber { number: ..0, .. } => 2,
            Operation::Skip { condition, .. } | Operation::Refuse { condition, .. } => {
                2 + usize::from(matches!(condition, Condition::Less | Condition::Greater))
            }
            _ => 1,
        };
        (first, template.operations.iter().map(length).sum())
    }

    fn with_status(word: u32, code: u64) -> u32 {
        match Self::decoded(word) {
            Some(mips::Insn::AluImm { op: mips::Alu::Or, rt: 3, .. }) => Self::with_number(word, code as i64),
            _ => word,
        }
    }
}

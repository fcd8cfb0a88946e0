//! The allow-list: which x86-64 encodings confined code may hold, and what the decoder must know of each.
//!
//! Problem: one wrong length or one forgotten operand is an escape. Strategy: every permitted encoding is a
//! row below, from an opcode range and its mandatory prefixes to a word of attributes; whatever no row names
//! is refused. The table is built when the crate is compiled, so that a look-up is one load.
//!
//! Invariants kept: a row exists only for encodings whose length, memory operand and general-register results
//! are the same on every processor that has the instruction; MMX, system, segment, stack-frame and far
//! instructions have no row.

/// The attributes of one encoding.
pub type Attr = u64;

pub const MODRM: Attr = 1;
/// Immediate: none, 8 bits, 16 or 32 bits by operand size, or up to 64 bits.
pub const IMM8: Attr = 1 << 1;
pub const IMMZ: Attr = 2 << 1;
pub const IMMV: Attr = 3 << 1;
pub const IMM_MASK: Attr = 3 << 1;
/// The memory operand is read, is written. With neither its address alone is used.
pub const LD: Attr = 1 << 3;
pub const ST: Attr = 1 << 4;
pub const NOMEM: Attr = 1 << 5;
pub const NOREG: Attr = 1 << 6;
/// The operand is a general register ...
pub const GREG: Attr = 1 << 7;
pub const GRM: Attr = 1 << 8;
pub const GVV: Attr = 1 << 9;
/// ... and it is written.
pub const WREG: Attr = 1 << 10;
pub const WRM: Attr = 1 << 11;
pub const WVV: Attr = 1 << 12;
pub const BYTE_REG: Attr = 1 << 13;
pub const BYTE_RM: Attr = 1 << 14;
/// Prefix 66 means 16-bit operands here, rather than another instruction.
pub const OPS: Attr = 1 << 15;
pub const LOCK: Attr = 1 << 16;
/// A 32-bit result may leave the upper half as it was.
pub const NOZX: Attr = 1 << 17;
/// The implicit result registers, in encoding order.
pub const IMPLICIT_SHIFT: u32 = 18;
pub const WAX: Attr = 1 << 18;
pub const WCX: Attr = 1 << 19;
pub const WDX: Attr = 1 << 20;
pub const WBX: Attr = 1 << 21;
/// VEX only: vvvv is an operand; which vector lengths and W are permitted.
pub const VVVV: Attr = 1 << 22;
pub const NOL0: Attr = 1 << 23;
pub const NOL1: Attr = 1 << 24;
pub const NOW0: Attr = 1 << 25;
pub const W1: Attr = 1 << 26;
pub const VSIB: Attr = 1 << 27;
/// Attributes that only VEX asks for.
pub const VEX_ONLY: Attr = VVVV | NOL0 | NOL1 | NOW0 | W1 | VEX;
/// Only in the table's rows: the same instruction exists with VEX.
const VEX: Attr = 1 << 28;
/// The opcode's low three bits name the register.
pub const OPREG: Attr = 1 << 29;
pub const VALID: Attr = 1 << 30;
/// ModRM.reg selects the instruction: bits 32..40 are the permitted values.
pub const EXT: Attr = 1 << 31;
const fn ext(mask: u8) -> Attr {
    EXT | (mask as Attr) << 32
}
pub const EXT_SHIFT: u32 = 32;
/// REX.W is not needed for 64 bits, and not permitted.
pub const D64: Attr = 1 << 40;
/// ModRM.reg or the register form decides what the operands are: `decode::rare`.
pub const SPLIT: Attr = 1 << 41;
/// The result depends on how the process rounds, or tells it.
pub const FLOAT: Attr = 1 << 42;
const CLASS_SHIFT: u32 = 48;

/// What an instruction is to the state machine, beyond its operands.
#[rustfmt::skip]
pub mod class {
    // 0: no more than its operands
    pub const ALU: u8 = 1; pub const MOVE: u8 = 2; pub const MOVE_IMM: u8 = 3; pub const LEA: u8 = 4;
    pub const MOVE_SX: u8 = 5; pub const MOVE_ZX: u8 = 6; pub const PREFETCH: u8 = 7;
    // more than the row says, from here ...
    pub const ALU_IMM: u8 = 8; pub const UNARY: u8 = 9; pub const BITS: u8 = 10; pub const NOP: u8 = 11;
    pub const INC_DEC: u8 = 12; pub const INDIRECT: u8 = 13;
    // (never plain, from here)
    pub const X87: u8 = 14; pub const FENCE: u8 = 15; pub const ENDBR: u8 = 16;
    // ... to here
    pub const FP_CONTROL: u8 = 17; pub const PUSH: u8 = 18; pub const POP: u8 = 19; pub const CALL: u8 = 20;
    pub const JUMP: u8 = 21; pub const BRANCH: u8 = 22; pub const RETURN: u8 = 23; pub const TRAP: u8 = 24;
    pub const STRING: u8 = 25; pub const MASKED: u8 = 26; pub const TIMER: u8 = 27;
}
const fn c(class: u8) -> Attr {
    (class as Attr) << CLASS_SHIFT
}
/// What ModRM.reg makes of an opcode.
pub const fn split(attr: Attr, ext: u8) -> Attr {
    match (class_of(attr), ext) {
        (class::ALU_IMM, 7) | (class::BITS, 4) => attr & !(ST | WRM | LOCK), // cmp, bt
        (class::UNARY, 0) => attr | LD | if attr & BYTE_RM != 0 { IMM8 } else { IMMZ },
        (class::UNARY, 2 | 3) => attr | LD | ST | WRM | LOCK,
        (class::UNARY, _) => attr | LD | WAX | WDX,
        (class::INDIRECT, 0 | 1) => attr & !c(255) | ST | WRM | c(class::INC_DEC),
        (class::INDIRECT, _) => attr & !LOCK,
        _ => attr,
    }
}
pub const fn class_of(attr: Attr) -> u8 {
    (attr >> CLASS_SHIFT) as u8
}

/// Mandatory prefixes, as sets; their order is that of the table's middle index.
const N: u8 = 1;
const P66: u8 = 2;
const F3: u8 = 4;
const F2: u8 = 8;

/// The opcode spaces: one byte, then 0F, 0F38, 0F3A, then the same three with VEX.
pub const ONE: usize = 0;
const E0F: usize = 1;
const E38: usize = 2;
const E3A: usize = 3;
const V0F: usize = 4;
const V38: usize = 5;
const V3A: usize = 6;

pub struct Table {
    pub one: [Attr; 256],
    pub rest: [[[Attr; 256]; 4]; 6],
}

type Row = (usize, u8, u8, u8, Attr);

const M: Attr = MODRM;
/// Vector load-and-operate, with VEX a third operand; without one; vector store.
const OP: Attr = MODRM | LD | VEX | VVVV;
const UN: Attr = MODRM | LD | VEX;
const VST: Attr = MODRM | ST | VEX;
const SCALAR: Attr = NOL1;
/// rm <- rm op reg, reg <- reg op rm, general registers
const RMR: Attr = MODRM | LD | ST | GREG | GRM | WRM;
const RRM: Attr = MODRM | LD | GREG | GRM | WREG;
const BB: Attr = BYTE_REG | BYTE_RM;
const BOTH_W: Attr = W1;

#[rustfmt::skip]
const ROWS: &[Row] = &[
    // ---- one byte: arithmetic (the loop in `build` adds the eight regular groups) ----
    (ONE, N, 0x50, 0x57, OPREG | GRM | D64 | c(class::PUSH)),
    (ONE, N, 0x58, 0x5f, OPREG | GRM | D64 | c(class::POP)),
    (ONE, N, 0x63, 0x63, RRM | c(class::MOVE_SX)), (ONE, N, 0x69, 0x69, RRM | IMMZ | OPS),
    (ONE, N, 0x6b, 0x6b, RRM | IMM8 | OPS), (ONE, N, 0x70, 0x7f, IMM8 | D64 | c(class::BRANCH)),
    (ONE, N, 0x80, 0x80, M | LD | ST | GRM | WRM | IMM8 | BB | LOCK | c(class::ALU_IMM)),
    (ONE, N, 0x81, 0x81, M | LD | ST | GRM | WRM | IMMZ | OPS | LOCK | c(class::ALU_IMM)),
    (ONE, N, 0x83, 0x83, M | LD | ST | GRM | WRM | IMM8 | OPS | LOCK | c(class::ALU_IMM)),
    (ONE, N, 0x84, 0x84, M | LD | GREG | GRM | BB), (ONE, N, 0x85, 0x85, M | LD | GREG | GRM | OPS),
    (ONE, N, 0x86, 0x86, RMR | WREG | BB | LOCK), (ONE, N, 0x87, 0x87, RMR | WREG | OPS | LOCK),
    (ONE, N, 0x88, 0x88, M | ST | GREG | GRM | WRM | BB),
    (ONE, N, 0x89, 0x89, M | ST | GREG | GRM | WRM | OPS | c(class::MOVE)), (ONE, N, 0x8a, 0x8a, RRM | BB),
    (ONE, N, 0x8b, 0x8b, RRM | OPS | c(class::MOVE)),
    (ONE, N, 0x8d, 0x8d, M | GREG | WREG | NOREG | OPS | c(class::LEA)),
    (ONE, N, 0x90, 0x90, OPS | c(class::NOP)),
    (ONE, N, 0x91, 0x97, OPREG | GRM | WRM | WAX | OPS | NOZX), (ONE, N, 0x98, 0x98, WAX | OPS),
    (ONE, N, 0x99, 0x99, WDX | OPS), (ONE, N, 0x9b, 0x9b, c(class::X87)), (ONE, N, 0x9e, 0x9e, D64),
    (ONE, N, 0x9f, 0x9f, WAX | NOZX | D64), (ONE, N, 0xa4, 0xa4, BB | c(class::STRING)),
    (ONE, N, 0xa5, 0xa5, OPS | c(class::STRING)), (ONE, N, 0xa6, 0xa6, BB | c(class::STRING)),
    (ONE, N, 0xa7, 0xa7, OPS | c(class::STRING)), (ONE, N, 0xa8, 0xa8, IMM8 | BB),
    (ONE, N, 0xa9, 0xa9, IMMZ | OPS),
    (ONE, N, 0xaa, 0xaa, BB | c(class::STRING)), (ONE, N, 0xab, 0xab, OPS | c(class::STRING)),
    (ONE, N, 0xac, 0xac, BB | WAX | c(class::STRING)), (ONE, N, 0xad, 0xad, OPS | WAX | c(class::STRING)),
    (ONE, N, 0xae, 0xae, BB | c(class::STRING)), (ONE, N, 0xaf, 0xaf, OPS | c(class::STRING)),
    (ONE, N, 0xb0, 0xb7, OPREG | GRM | WRM | IMM8 | BB),
    (ONE, N, 0xb8, 0xbf, OPREG | GRM | WRM | IMMV | OPS | c(class::MOVE_IMM)),
    (ONE, N, 0xc0, 0xc0, M | LD | ST | GRM | WRM | IMM8 | BB | ext(0xbf)),
    (ONE, N, 0xc1, 0xc1, M | LD | ST | GRM | WRM | IMM8 | OPS | ext(0xbf)),
    (ONE, N, 0xc3, 0xc3, D64 | c(class::RETURN)),
    (ONE, N, 0xc6, 0xc6, M | ST | GRM | WRM | IMM8 | BB | ext(1)),
    (ONE, N, 0xc7, 0xc7, M | ST | GRM | WRM | IMMZ | OPS | ext(1) | c(class::MOVE_IMM)),
    (ONE, N, 0xcc, 0xcc, D64 | c(class::TRAP)),
    (ONE, N, 0xd0, 0xd0, M | LD | ST | GRM | WRM | BB | ext(0xbf)),
    (ONE, N, 0xd1, 0xd1, M | LD | ST | GRM | WRM | OPS | ext(0xbf)),
    (ONE, N, 0xd2, 0xd2, M | LD | ST | GRM | WRM | BB | ext(0xbf)),
    (ONE, N, 0xd3, 0xd3, M | LD | ST | GRM | WRM | OPS | ext(0xbf)),
    // x87: the operands of 0xd8..=0xdf are found by `x87`
    (ONE, N, 0xd8, 0xdf, M | c(class::X87)), (ONE, N, 0xe3, 0xe3, IMM8 | D64 | c(class::BRANCH)),
    (ONE, N, 0xe8, 0xe8, IMMZ | D64 | c(class::CALL)),
    (ONE, N, 0xe9, 0xe9, IMMZ | D64 | c(class::JUMP)), (ONE, N, 0xeb, 0xeb, IMM8 | D64 | c(class::JUMP)),
    (ONE, N, 0xf5, 0xf5, 0), (ONE, N, 0xf8, 0xf9, 0),
    // group 3: `test` has an immediate, `not` and `neg` write their operand, the rest ax and dx
    (ONE, N, 0xf6, 0xf6, M | GRM | BB | ext(0xfd) | c(class::UNARY)),
    (ONE, N, 0xf7, 0xf7, M | GRM | OPS | ext(0xfd) | c(class::UNARY)),
    (ONE, N, 0xfe, 0xfe, M | LD | ST | GRM | WRM | BB | ext(3) | LOCK),
    (ONE, N, 0xff, 0xff, M | LD | GRM | OPS | ext(0x17) | LOCK | c(class::INDIRECT)),
    // ---- 0F: general registers ----
    (E0F, N, 0x0b, 0x0b, D64 | c(class::TRAP)),
    (E0F, N, 0x0d, 0x0d, M | LD | NOREG | ext(6) | c(class::PREFETCH)),
    (E0F, N, 0x18, 0x18, M | LD | NOREG | ext(0xf) | c(class::PREFETCH)),
    (E0F, F3, 0x1e, 0x1e, M | NOMEM | c(class::ENDBR)),
    (E0F, N | P66, 0x1f, 0x1f, M | NOREG | OPS | ext(1) | c(class::NOP)),
    (E0F, N, 0x31, 0x31, WAX | WDX | c(class::TIMER)),
    (E0F, N | P66, 0x40, 0x4f, RRM | OPS), (E0F, N, 0x80, 0x8f, IMMZ | D64 | c(class::BRANCH)),
    (E0F, N, 0x90, 0x9f, M | ST | GRM | WRM | BB | ext(1)), (E0F, N, 0xa2, 0xa2, WAX | WBX | WCX | WDX),
    // with a memory operand and a register index these four reach any address
    (E0F, N | P66, 0xa3, 0xa3, M | GREG | GRM | NOMEM | OPS),
    (E0F, N | P66, 0xab, 0xab, M | GREG | GRM | WRM | NOMEM | OPS),
    (E0F, N | P66, 0xb3, 0xb3, M | GREG | GRM | WRM | NOMEM | OPS),
    (E0F, N | P66, 0xbb, 0xbb, M | GREG | GRM | WRM | NOMEM | OPS),
    (E0F, N | P66, 0xba, 0xba, M | LD | ST | GRM | WRM | IMM8 | OPS | ext(0xf0) | LOCK | c(class::BITS)),
    (E0F, N | P66, 0xa4, 0xa4, RMR | IMM8 | OPS | NOZX), (E0F, N | P66, 0xa5, 0xa5, RMR | OPS | NOZX),
    (E0F, N | P66, 0xac, 0xac, RMR | IMM8 | OPS | NOZX), (E0F, N | P66, 0xad, 0xad, RMR | OPS | NOZX),
    (E0F, N, 0xae, 0xae, M | c(class::FENCE)), (E0F, N | P66, 0xaf, 0xaf, RRM | OPS),
    (E0F, N, 0xb0, 0xb0, RMR | WAX | BB | LOCK | NOZX),
    (E0F, N | P66, 0xb1, 0xb1, RMR | WAX | OPS | LOCK | NOZX),
    (E0F, N | P66, 0xb6, 0xb6, RRM | BYTE_RM | OPS | c(class::MOVE_ZX)),
    (E0F, N | P66, 0xb7, 0xb7, RRM | OPS),
    (E0F, N | P66, 0xbe, 0xbe, RRM | BYTE_RM | OPS), (E0F, N | P66, 0xbf, 0xbf, RRM | OPS),
    (E0F, F3, 0xb8, 0xb8, RRM | OPS), (E0F, N | P66 | F3, 0xbc, 0xbd, RRM | OPS | NOZX),
    (E0F, N, 0xc0, 0xc0, RMR | WREG | BB | LOCK), (E0F, N | P66, 0xc1, 0xc1, RMR | WREG | OPS | LOCK | NOZX),
    (E0F, N, 0xc3, 0xc3, M | ST | GREG | NOREG | BOTH_W),
    (E0F, N, 0xc7, 0xc7, M | LD | ST | NOREG | WAX | WDX | ext(2) | LOCK | NOZX),
    (E0F, N, 0xc8, 0xcf, OPREG | GRM | WRM), (E38, N | P66, 0xf0, 0xf0, M | LD | GREG | WREG | NOREG | OPS),
    (E38, N | P66, 0xf1, 0xf1, M | ST | GREG | NOREG | OPS), (E38, F2, 0xf0, 0xf0, RRM | BYTE_RM),
    (E38, F2, 0xf1, 0xf1, RRM | OPS), (E38, P66 | F3, 0xf6, 0xf6, RRM),
    // ---- BMI ----
    (V38, N, 0xf2, 0xf2, RRM | GVV | VVVV | NOL1 | BOTH_W),
    (V38, N, 0xf3, 0xf3, M | LD | GRM | GVV | WVV | VVVV | NOL1 | BOTH_W | ext(0x0e)),
    (V38, N | F3 | F2, 0xf5, 0xf5, RRM | GVV | VVVV | NOL1 | BOTH_W),
    (V38, F2, 0xf6, 0xf6, RRM | GVV | WVV | VVVV | NOL1 | BOTH_W),
    (V38, N | P66 | F3 | F2, 0xf7, 0xf7, RRM | GVV | VVVV | NOL1 | BOTH_W),
    (V3A, F2, 0xf0, 0xf0, RRM | IMM8 | NOL1 | BOTH_W),
    // ---- SSE and AVX, 0F ----
    (E0F, N | P66, 0x10, 0x10, UN), (E0F, N | P66, 0x11, 0x11, VST), (E0F, F3 | F2, 0x10, 0x10, OP | SCALAR),
    (E0F, F3 | F2, 0x11, 0x11, VST | VVVV | SCALAR), (E0F, N, 0x12, 0x12, OP | NOL1),
    (E0F, P66, 0x12, 0x12, OP | NOL1 | NOREG), (E0F, F3 | F2, 0x12, 0x12, UN),
    (E0F, N | P66, 0x13, 0x13, VST | NOL1 | NOREG), (E0F, N | P66, 0x14, 0x15, OP),
    (E0F, N, 0x16, 0x16, OP | NOL1),
    (E0F, P66, 0x16, 0x16, OP | NOL1 | NOREG), (E0F, F3, 0x16, 0x16, UN),
    (E0F, N | P66, 0x17, 0x17, VST | NOL1 | NOREG), (E0F, N | P66, 0x28, 0x28, UN),
    (E0F, N | P66, 0x29, 0x29, VST),
    (E0F, F3 | F2, 0x2a, 0x2a, OP | GRM | SCALAR | BOTH_W), (E0F, N | P66, 0x2b, 0x2b, VST | NOREG),
    (E0F, F3 | F2, 0x2c, 0x2d, UN | GREG | WREG | SCALAR | BOTH_W), (E0F, N | P66, 0x2e, 0x2f, UN | SCALAR),
    (E0F, N | P66, 0x50, 0x50, UN | GREG | WREG | NOMEM), (E0F, N | P66, 0x51, 0x51, UN),
    (E0F, F3 | F2, 0x51, 0x51, OP | SCALAR), (E0F, N, 0x52, 0x53, UN), (E0F, F3, 0x52, 0x53, OP | SCALAR),
    (E0F, N | P66, 0x54, 0x59, OP), (E0F, F3 | F2, 0x58, 0x59, OP | SCALAR), (E0F, N | P66, 0x5a, 0x5a, UN),
    (E0F, F3 | F2, 0x5a, 0x5a, OP | SCALAR), (E0F, N | P66 | F3, 0x5b, 0x5b, UN),
    (E0F, N | P66, 0x5c, 0x5f, OP),
    (E0F, F3 | F2, 0x5c, 0x5f, OP | SCALAR), (E0F, P66, 0x60, 0x6d, OP),
    (E0F, P66, 0x6e, 0x6e, UN | GRM | NOL1 | BOTH_W), (E0F, P66 | F3, 0x6f, 0x6f, UN),
    (E0F, P66 | F3 | F2, 0x70, 0x70, UN | IMM8), (E0F, P66, 0x71, 0x72, OP | NOMEM | IMM8 | ext(0x54)),
    (E0F, P66, 0x73, 0x73, OP | NOMEM | IMM8 | ext(0xcc)), (E0F, P66, 0x74, 0x76, OP),
    (V0F, N, 0x77, 0x77, 0),
    (E0F, P66 | F2, 0x7c, 0x7d, OP), (E0F, P66, 0x7e, 0x7e, VST | GRM | WRM | NOL1 | BOTH_W),
    (E0F, F3, 0x7e, 0x7e, UN | NOL1), (E0F, P66 | F3, 0x7f, 0x7f, VST),
    (V0F, N, 0xae, 0xae, M | NOL1 | c(class::FENCE)), (E0F, N | P66, 0xc2, 0xc2, OP | IMM8),
    (E0F, F3 | F2, 0xc2, 0xc2, OP | IMM8 | SCALAR), (E0F, P66, 0xc4, 0xc4, OP | GRM | IMM8 | NOL1),
    (E0F, P66, 0xc5, 0xc5, UN | GREG | WREG | NOMEM | IMM8 | NOL1), (E0F, N | P66, 0xc6, 0xc6, OP | IMM8),
    (E0F, P66 | F2, 0xd0, 0xd0, OP), (E0F, P66, 0xd1, 0xd5, OP), (E0F, P66, 0xd6, 0xd6, VST | NOL1),
    (E0F, P66, 0xd7, 0xd7, UN | GREG | WREG | NOMEM), (E0F, P66, 0xd8, 0xe5, OP),
    (E0F, P66 | F3 | F2, 0xe6, 0xe6, UN), (E0F, P66, 0xe7, 0xe7, VST | NOREG), (E0F, P66, 0xe8, 0xef, OP),
    (E0F, F2, 0xf0, 0xf0, UN | NOREG), (E0F, P66, 0xf1, 0xf6, OP), (E0F, P66, 0xf8, 0xfe, OP),
    // ---- 0F38 ----
    (E38, P66, 0x00, 0x0b, OP), (E38, P66, 0x10, 0x10, M | LD), (E38, P66, 0x14, 0x15, M | LD),
    (E38, P66, 0x17, 0x17, UN), (E38, P66, 0x1c, 0x1e, UN), (E38, P66, 0x20, 0x25, UN),
    (E38, P66, 0x28, 0x29, OP),
    (E38, P66, 0x2a, 0x2a, UN | NOREG), (E38, P66, 0x2b, 0x2b, OP), (E38, P66, 0x30, 0x35, UN),
    (E38, P66, 0x37, 0x40, OP), (E38, P66, 0x41, 0x41, UN | NOL1), (E38, N, 0xc8, 0xcd, M | LD),
    (E38, P66, 0xdb, 0xdb, UN | NOL1), (E38, P66, 0xdc, 0xdf, OP | NOL1),
    (V38, P66, 0x0c, 0x0d, M | LD | VVVV),
    (V38, P66, 0x0e, 0x0f, M | LD), (V38, P66, 0x13, 0x13, M | LD),
    (V38, P66, 0x16, 0x16, M | LD | VVVV | NOL0),
    (V38, P66, 0x18, 0x18, M | LD), (V38, P66, 0x19, 0x19, M | LD | NOL0),
    (V38, P66, 0x1a, 0x1a, M | LD | NOL0 | NOREG),
    (V38, P66, 0x2c, 0x2d, M | LD | VVVV | NOREG | c(class::MASKED)),
    (V38, P66, 0x2e, 0x2f, M | ST | VVVV | NOREG | c(class::MASKED)),
    (V38, P66, 0x36, 0x36, M | LD | VVVV | NOL0),
    (V38, P66, 0x45, 0x45, M | LD | VVVV | BOTH_W), (V38, P66, 0x46, 0x46, M | LD | VVVV),
    (V38, P66, 0x47, 0x47, M | LD | VVVV | BOTH_W), (V38, P66, 0x58, 0x59, M | LD),
    (V38, P66, 0x5a, 0x5a, M | LD | NOL0 | NOREG), (V38, P66, 0x78, 0x79, M | LD),
    (V38, P66, 0x8c, 0x8c, M | LD | VVVV | NOREG | BOTH_W | c(class::MASKED)),
    (V38, P66, 0x8e, 0x8e, M | ST | VVVV | NOREG | BOTH_W | c(class::MASKED)),
    (V38, P66, 0x90, 0x93, M | LD | VVVV | NOREG | VSIB | BOTH_W),
    (V38, P66, 0x96, 0x9f, M | LD | VVVV | BOTH_W),
    (V38, P66, 0xa6, 0xaf, M | LD | VVVV | BOTH_W), (V38, P66, 0xb6, 0xbf, M | LD | VVVV | BOTH_W),
    // ---- 0F3A ----
    (E3A, P66, 0x08, 0x09, UN | IMM8), (E3A, P66, 0x0a, 0x0b, OP | IMM8 | SCALAR),
    (E3A, P66, 0x0c, 0x0f, OP | IMM8),
    (E3A, P66, 0x14, 0x15, VST | GRM | WRM | IMM8 | NOL1),
    (E3A, P66, 0x16, 0x16, VST | GRM | WRM | IMM8 | NOL1 | BOTH_W),
    (E3A, P66, 0x17, 0x17, VST | GRM | WRM | IMM8 | NOL1), (E3A, P66, 0x20, 0x20, OP | GRM | IMM8 | NOL1),
    (E3A, P66, 0x21, 0x21, OP | IMM8 | NOL1), (E3A, P66, 0x22, 0x22, OP | GRM | IMM8 | NOL1 | BOTH_W),
    (E3A, P66, 0x40, 0x40, OP | IMM8), (E3A, P66, 0x41, 0x41, OP | IMM8 | NOL1),
    (E3A, P66, 0x42, 0x42, OP | IMM8),
    (E3A, P66, 0x44, 0x44, OP | IMM8 | NOL1), (E3A, P66, 0x60, 0x60, UN | IMM8 | NOL1),
    (E3A, P66, 0x61, 0x61, UN | IMM8 | NOL1 | WCX), (E3A, P66, 0x62, 0x62, UN | IMM8 | NOL1),
    (E3A, P66, 0x63, 0x63, UN | IMM8 | NOL1 | WCX), (E3A, N, 0xcc, 0xcc, M | LD | IMM8),
    (E3A, P66, 0xdf, 0xdf, UN | IMM8 | NOL1), (V3A, P66, 0x00, 0x01, M | LD | IMM8 | NOL0 | W1 | NOW0),
    (V3A, P66, 0x02, 0x02, M | LD | VVVV | IMM8), (V3A, P66, 0x04, 0x05, M | LD | IMM8),
    (V3A, P66, 0x06, 0x06, M | LD | VVVV | IMM8 | NOL0), (V3A, P66, 0x18, 0x18, M | LD | VVVV | IMM8 | NOL0),
    (V3A, P66, 0x19, 0x19, M | ST | IMM8 | NOL0), (V3A, P66, 0x1d, 0x1d, M | ST | IMM8),
    (V3A, P66, 0x38, 0x38, M | LD | VVVV | IMM8 | NOL0), (V3A, P66, 0x39, 0x39, M | ST | IMM8 | NOL0),
    (V3A, P66, 0x46, 0x46, M | LD | VVVV | IMM8 | NOL0), (V3A, P66, 0x4a, 0x4c, M | LD | VVVV | IMM8),
];

/// Opcodes of vectors that convert, round, compare or compute numbers with a point; a few more do no harm.
const fn floats(space: usize, op: u8) -> bool {
    match space {
        E0F | V0F => {
            matches!(op, 0x2a | 0x2c..=0x2f | 0x51..=0x53 | 0x58..=0x5f | 0x7c | 0x7d | 0xc2 | 0xd0 | 0xe6)
        }
        E38 | V38 => matches!(op, 0x13 | 0x96..=0xbf),
        E3A | V3A => matches!(op, 0x08..=0x0b | 0x1d | 0x40 | 0x41),
        _ => false,
    }
}

const fn fill(table: &mut Table, row: Row) {
    let (space, prefixes, first, last, attr) = row;
    let split = if matches!(class_of(attr), class::ALU_IMM..=class::ENDBR) { SPLIT } else { 0 };
    let mut op = first as usize;
    while op <= last as usize {
        let attr = attr | if floats(space, op as u8) { FLOAT } else { 0 };
        let mut p = 0;
        while p < 4 {
            if prefixes & 1 << p != 0 {
                if space == ONE {
                    table.one[op] = attr | split | VALID;
                } else {
                    table.rest[space - 1][p][op] = attr | split | VALID;
                }
                if attr & VEX != 0 {
                    table.rest[space + 2][p][op] = attr | VALID;
                }
            }
            p += 1;
        }
        op += 1;
    }
}

const fn build() -> Table {
    let mut table = Table { one: [0; 256], rest: [[[0; 256]; 4]; 6] };
    let mut i = 0;
    while i < ROWS.len() {
        fill(&mut table, ROWS[i]);
        i += 1;
    }
    // add or adc sbb and sub xor cmp
    let mut group = 0;
    while group < 8 {
        let op = group << 3;
        let (rm, reg) = if group == 7 { (0, 0) } else { (ST | WRM, WREG) };
        let lock = if group == 7 { 0 } else { LOCK };
        let ax = if group == 7 { 0 } else { WAX };
        let both = MODRM | LD | GREG | GRM;
        fill(&mut table, (ONE, N, op, op, both | rm | BB | lock));
        fill(&mut table, (ONE, N, op + 1, op + 1, both | rm | OPS | lock | c(class::ALU)));
        fill(&mut table, (ONE, N, op + 2, op + 2, both | reg | BB));
        fill(&mut table, (ONE, N, op + 3, op + 3, both | reg | OPS | c(class::ALU)));
        fill(&mut table, (ONE, N, op + 4, op + 4, ax | IMM8 | BB));
        fill(&mut table, (ONE, N, op + 5, op + 5, ax | IMMZ | OPS | c(class::ALU_IMM)));
        group += 1;
    }
    table
}

pub static TABLE: Table = build();

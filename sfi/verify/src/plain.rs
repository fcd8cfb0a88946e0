//! The ordinary instruction, judged without branches.
//!
//! Problem: nobody predicts which instruction comes next, so a branch on what it is costs as much as dozens
//! of instructions. Strategy: most instructions only compute, with operands whose form alone shows that they
//! are allowed. For those the allow-list is spread out when the crate is compiled: for each kind of opcode
//! and each ModRM, which registers are written, how long the rest is, and which prefixes it needs or must not
//! have. One branch asks whether all is as it must be; what is not plain goes to `decode` and `step`.
//!
//! Invariants kept: what is plain, `decode` and `step` accept with the same length and the same state after
//! it, or one that knows more (of `lea` with a displacement of 0): this is a shorter way to their answer,
//! never to another one (`tests/plain.rs` compares them).

use crate::decode::WINDOW;
use crate::state::{BASE, GROUPS, SEG};
use crate::table::*;

// What an instruction has, and may need or not have: REX and its bits; `gs` with the 32-bit address size;
// either that, or no need to confine loads; either that, or the base that ModRM names is `rbp`, not `r13`; no
// register that is known to be the base. Last: nothing has it.
const B: u64 = 1;
const R: u64 = 1 << 1;
const W: u64 = 1 << 2;
const REX: u64 = 1 << 3;
const GS: u64 = 1 << 4;
const GS_LOAD: u64 = 1 << 5;
const GS_STACK: u64 = 1 << 6;
const NO_BASE: u64 = 1 << 7;
const NEVER: u64 = 1 << 8;
const ALL: u64 = (1 << 9) - 1;

/// What bytes before the opcode add: bits to shift them out, the table's row, and from here on what the
/// instruction has.
const HAS: u32 = 16;
const ROW: u64 = 1 << 8;
static PREFIXES: [u64; 256] = {
    let mut t = [0; 256];
    (t[0x66], t[0xf3], t[0xf2]) = (8 + ROW, 8 + 2 * ROW, 8 + 3 * ROW);
    t
};
static REXES: [u64; 256] = {
    let mut t = [0; 256];
    let mut i = 0;
    while i < 16 {
        t[0x40 + i as usize] = 8 + ((i & B | i >> 1 & (R | W) | REX) << HAS);
        i += 1;
    }
    t
};

// A shape: registers written, and from `FROM` on those whose facts matter, in each by ModRM.reg and in `RM`
// by ModRM.rm or the opcode; what it needs; what it must not have; bytes from ModRM on; whether the result is
// zero-extended without REX.W, or a copy with it; which SIB bytes are not plain.
const RM: u32 = 8;
const FROM: u32 = 16;
const REGS: u64 = 0x00ff_00ff;
const NEEDS: u32 = 32;
const NOT: u32 = 41;
const LEN: u32 = 50;
const ZEROES: u32 = 54;
const COPIES: u32 = 55;
const SIB: u32 = 56;
/// Of a shape: the result depends on how the process rounds.
pub const ROUNDS: u64 = 1 << 63;
const BARE: u64 = 1;
const NO_INDEX: u64 = 2;
const RSP_R12: u64 = 4;

const fn when(yes: bool, bits: u64) -> u64 {
    if yes { bits } else { 0 }
}

const fn shape(attr: Attr, op: u64, modrm: u64, short: bool) -> u64 {
    let (has, mode, ext) = (attr & MODRM != 0, modrm >> 6, modrm >> 3 & 7);
    let attr = if has { split(attr, ext as u8) } else { attr };
    let class = class_of(attr);
    let mem = has && mode != 3;
    let unlisted = attr & EXT != 0 && attr >> (EXT_SHIFT as u64 + ext) & 1 == 0;
    if unlisted || class == class::INDIRECT || has && attr & if mem { NOMEM } else { NOREG } != 0 {
        return NEVER << NEEDS;
    }
    let rm = if has { modrm & 7 } else { op & 7 };
    let (named, written) = (attr & (GRM | WRM) != 0 && !mem, attr & WRM != 0 && !mem);
    let named_reg = attr & (GREG | WREG) != 0;
    let implicit = attr >> IMPLICIT_SHIFT & 15;
    let (sib, at_rip) = (mem && rm == 4, mem && mode == 0 && rm == 5);
    let access = mem && attr & (LD | ST) != 0;
    let other = if attr & ST != 0 { GS } else { GS_LOAD };
    let confined = when(at_rip, NEVER) | if rm == 5 { GS_STACK } else { other };
    let lea = class == class::LEA;
    let adds = class == class::ALU_IMM && (ext == 0 || ext == 5) || class == class::INC_DEC;
    let moves = class == class::MOVE && !mem;
    let masks = class == class::ALU_IMM && ext == 4 && attr & BYTE_REG == 0 || class == class::MOVE_ZX;
    let starts = masks && !mem; // `andl`, `movzbl`: a sequence
    let needs = when(ext == 4 && named_reg || ext == 5 && attr & WREG != 0, R) // rsp, rbp
        | when(rm == 4 && named || rm == 5 && written, B)
        | when(attr & BYTE_REG != 0 && named_reg && ext > 3 || attr & BYTE_RM != 0 && !mem && rm > 3, REX) // ah ...
        | when(access, confined)
        | when(lea && sib, NO_BASE)
        | when(starts, W);
    let wide = short || attr & IMM_MASK == IMMV || lea && (at_rip || mode == 0 && !sib);
    let not = when(wide, W) | when(implicit != 0, R) | when(!access, GS);
    let z = if short { 2 } else { 4 };
    let immediate = [0, 1, z, z][(attr & IMM_MASK) as usize >> 1];
    let disp = when(mem, if mode == 2 || at_rip { 4 } else { mode });
    let regs = when(attr & WREG != 0, 1 << ext) | implicit | when(written, 1 << (RM as u64 + rm));
    let depends = access && rm != 5 && !sib || lea && !sib || (adds || moves) && !mem;
    let from = when(depends, 1 << (RM as u64 + rm)) | when(moves, 1 << ext);
    regs | from << FROM
        | needs << NEEDS
        | not << NOT
        | (has as u64 + sib as u64 + disp + immediate) << LEN
        | when(attr & (NOZX | BYTE_REG) == 0 && !short, 1 << ZEROES)
        | when(moves, 1 << COPIES)
        | when(attr & FLOAT != 0, ROUNDS)
        | when(sib, NO_INDEX | RSP_R12 | if mode == 0 { BARE } else { 0 }) << SIB
}

const SHAPES: usize = 0x8000;
struct Shapes {
    /// By row and opcode: the place of the first shape, above it which bits of ModRM choose among them.
    kinds: [u32; 2048],
    shapes: [u64; SHAPES],
}

#[allow(long_running_const_eval)]
static TABLES: Shapes = {
    let mut t = Shapes { kinds: [0; 2048], shapes: [0; SHAPES] };
    t.shapes[0] = NEVER << NEEDS;
    // what has the same attributes, and names the same register, is of one kind
    let mut kinds = [(0, 0); 256];
    let (mut count, mut used, mut i) = (0, 1, 0);
    while i < 2048 {
        let (row, op) = (i >> 8, i & 255);
        let attr = match row {
            0 => TABLE.one[op],
            1 if TABLE.one[op] & OPS != 0 => TABLE.one[op],
            4.. => TABLE.rest[0][row - 4][op],
            _ => 0,
        };
        let has = attr & MODRM != 0;
        if attr & (VALID | D64) == VALID && class_of(attr) < class::X87 && (has || attr & SPLIT == 0) {
            let short = row & 3 == 1 && attr & OPS != 0;
            let reg = if attr & OPREG != 0 { op as u64 & 7 } else { 0 };
            let key = (attr & !VEX_ONLY, reg << 1 | short as u64);
            let mut k = 0;
            while k < count && !(kinds[k].0 == key.0 && kinds[k].1 & 15 == key.1) {
                k += 1;
            }
            if k == count {
                kinds[k] = (key.0, key.1 | used << 4);
                count += 1;
                let mut modrm = 0;
                while modrm < if has { 256 } else { 1 } {
                    t.shapes[used as usize] = shape(attr, reg, modrm, short);
                    used += 1;
                    modrm += 1;
                }
            }
            t.kinds[i] = (kinds[k].1 >> 4) as u32 | if has { 0xff_0000 } else { 0 };
        }
        i += 1;
    }
    t
};

/// Without an index, with the base `rsp` or `r12`, without a base if ModRM has no displacement: not plain
/// unless confined by `gs`, and `r12`.
static SIBS: [u8; 256] = {
    let mut t = [0; 256];
    let mut i = 0;
    while i < 256 {
        t[i] = (when(i & 7 == 4, RSP_R12) | when(i & 0x38 == 0x20, NO_INDEX) | when(i & 7 == 5, BARE)) as u8;
        i += 1;
    }
    t
};

/// What a level's instructions have without saying so.
pub const fn confines(full: bool) -> u64 {
    if full { 0 } else { GS_LOAD << HAS }
}

/// The length of a plain instruction, and in `known` what is after it; 0 if it is not plain.
#[inline(always)]
pub fn plain(w: &[u8; WINDOW], known: &mut u64, confines: u64) -> usize {
    plain_of(w, known, confines, &mut 0)
}

/// The same; `seen` gathers what is to be known of the whole, such as [`ROUNDS`], of plain instructions and
/// others.
#[inline(always)]
pub fn plain_of(w: &[u8; WINDOW], known: &mut u64, confines: u64, seen: &mut u64) -> usize {
    let facts = *known;
    let mut bytes = w.first_chunk().map_or(0, |b| u64::from_le_bytes(*b));
    let gs = (bytes as u16 == 0x6765) as u64;
    bytes >>= 16 * gs;
    let row = PREFIXES[bytes as u8 as usize];
    bytes >>= row & 8;
    let rex = REXES[bytes as u8 as usize];
    bytes >>= rex & 8;
    let two = (bytes as u8 == 0x0f) as u64;
    bytes >>= 8 * two;
    let sum = row + rex + gs * (16 + ((GS | GS_LOAD | GS_STACK) << HAS)) + two * (8 + 4 * ROW);
    let no_base = ((facts >> BASE) as u16 == 0) as u64 * NO_BASE;
    let has = (sum | confines) >> HAS | no_base | (!rex >> HAS & B) << 6;
    let kind = TABLES.kinds[(sum & (7 * ROW)) as usize | bytes as u8 as usize];
    let at = kind as u16 as usize + (kind >> 16 & (bytes >> 8) as u32) as usize;
    let shape = TABLES.shapes[at % SHAPES];
    *seen |= shape;
    let sib = SIBS[(bytes >> 16) as u8 as usize] as u64 & !(gs * (NO_INDEX | (has & B) * RSP_R12));
    let regs = (shape & REGS) << (has << 2 & 8) | (shape >> RM & REGS) << (has << 3 & 8);
    let (written, from) = (regs & 0xffff, regs >> FROM);
    let pointers = facts >> SEG | facts >> BASE | 1 << 5;
    let odd =
        (shape >> NEEDS & !has | shape >> NOT & has) & ALL | shape >> SIB & sib | from & pointers & 0xffff;
    if odd != 0 {
        return 0;
    }
    let wide = has >> 2 & 1;
    let copied = (from & !written & facts & 0xffff != 0) as u64;
    let zero = (shape >> ZEROES & !wide | shape >> COPIES & wide & copied) & 1;
    *known = facts & !(written * GROUPS) | written * zero;
    (1 + (sum as u8 >> 3) as u64 + (shape >> LEN & 15)) as usize
}

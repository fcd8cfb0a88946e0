//! The decoder: bytes to length, operands and attributes of one permitted instruction.
//!
//! Problem: the verifier must see exactly what the processor will execute. Strategy: prefixes, opcode space,
//! one table look-up, operands, immediate, in the order of the encoding; then the few opcodes that ModRM.reg
//! splits. Whatever is unusual is refused: a prefix that stands twice, or without a meaning, or behind REX.
//!
//! Invariants kept: pure, no state; at most 15 bytes; registers are encoding numbers, the high byte registers
//! (`ah` ...) have become their whole register.

use crate::Rule;
use crate::table::*;

/// No register here; the instruction pointer as base.
pub const NONE: u8 = 16;
pub const RIP: u8 = 17;

pub const RSP: u8 = 4;
pub const RBP: u8 = 5;

/// Prefix bits.
pub const P_66: u8 = 1;
pub const P_67: u8 = 2;
pub const P_GS: u8 = 4;
pub const P_F3: u8 = 8;
pub const P_F2: u8 = 16;
pub const P_LOCK: u8 = 32;
const P_CS: u8 = 64;

/// One instruction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Insn {
    pub attr: Attr,
    pub imm: i64,
    pub disp: i32,
    pub len: u8,
    pub class: u8,
    pub op: u8,
    pub prefix: u8,
    /// Size in bytes of the general-register result: 1, 2, 4, 8.
    pub size: u8,
    /// ModRM: `mem`, or the register `rm`; `ext` is its reg field without REX.
    pub mem: bool,
    pub rm: u8,
    pub reg: u8,
    pub ext: u8,
    pub vvvv: u8,
    pub base: u8,
    pub index: u8,
    /// 1, 2, 4, 8 as 0 to 3
    pub scale: u8,
}

impl Insn {
    pub fn has(&self, attr: Attr) -> bool {
        self.attr & attr != 0
    }
    /// `%gs:` with 64-bit address size, no registers.
    pub fn gs_absolute(&self) -> bool {
        self.mem && self.prefix & (P_GS | P_67) == P_GS && self.base == NONE && self.index == NONE
    }
    /// `disp(%base)`, 64-bit address size, no override.
    pub fn plain_base(&self) -> Option<u8> {
        let plain = self.mem && self.prefix & (P_GS | P_67) == 0 && self.index == NONE;
        (plain && self.base < NONE && !self.has(VSIB)).then_some(self.base)
    }

    /// The general registers that it writes, but for push, pop and string instructions.
    pub fn written(&self) -> u16 {
        let a = self.attr;
        let reg = ((a & WREG != 0) as u16) << self.reg;
        let rm = ((a & WRM != 0 && !self.mem) as u16) << self.rm;
        let vv = ((a & WVV != 0) as u16) << self.vvvv;
        reg | rm | vv | (a >> IMPLICIT_SHIFT) as u16 & 15
    }

    /// Whether these are written with zeroes above a 32-bit result.
    pub fn zero_extends(&self) -> bool {
        self.size == 4 && self.attr & NOZX == 0
    }

    /// Whether it names `rsp` as operand or as part of an address.
    pub fn names_rsp(&self) -> bool {
        let a = self.attr;
        let reg = self.reg == RSP && a & (GREG | WREG) != 0;
        let rm = self.rm == RSP && !self.mem && a & (GRM | WRM) != 0;
        let vv = self.vvvv == RSP && a & (GVV | WVV) != 0;
        reg | rm | vv | (self.base == RSP)
    }
}

static PREFIX: [u8; 256] = {
    let mut t = [0; 256];
    (t[0x66], t[0x67], t[0x65], t[0x2e]) = (P_66, P_67, P_GS, P_CS);
    (t[0xf3], t[0xf2], t[0xf0]) = (P_F3, P_F2, P_LOCK);
    t
};

/// Long enough for any fields that 15 bytes of prefixes and opcode can be followed by.
pub const WINDOW: usize = 32;
type Window = [u8; WINDOW];

/// Decodes the instruction at `text[at..]` into `insn`: in place, since moving it costs more than finding it.
#[inline(always)]
pub fn decode(text: &[u8], at: usize, insn: &mut Insn) -> Result<(), Rule> {
    let rest = text.get(at..).unwrap_or_default();
    if let Some(window) = rest.first_chunk() {
        return decode_window(window, insn);
    }
    let mut window = [0; WINDOW];
    window.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    decode_window(&window, insn)?;
    if insn.len as usize > rest.len() { Err(Rule::Truncated) } else { Ok(()) }
}

fn byte(w: &Window, p: usize) -> u8 {
    w[p % WINDOW]
}
fn word32(w: &Window, p: usize) -> i32 {
    match w.get(p..).and_then(|rest| rest.first_chunk::<4>()) {
        Some(b) => i32::from_le_bytes(*b),
        None => 0,
    }
}

fn decode_window(w: &Window, insn: &mut Insn) -> Result<(), Rule> {
    let mut p = 0;
    let mut prefix = 0u8;
    let mut next = byte(w, 0);
    while PREFIX[next as usize] != 0 {
        let bit = PREFIX[next as usize];
        if prefix & bit != 0 || bit == P_CS || p > 4 {
            return padding(w, insn);
        }
        prefix |= bit;
        p += 1;
        next = byte(w, p);
    }
    let mut rex = 0u8;
    if next & 0xf0 == 0x40 {
        rex = next;
        p += 1;
        next = byte(w, p);
    }
    let mut vex = 0u8; // L in bit 2; bit 7: there is one
    let mut vvvv = 0;
    let attr;
    let op;
    let mut legacy_one = false;
    if next == 0x0f {
        let second = byte(w, p + 1);
        let (space, skip) = match second {
            0x38 => (1, 2),
            0x3a => (2, 2),
            _ => (0, 1),
        };
        op = byte(w, p + skip);
        let pp = if prefix & (P_F3 | P_F2) == 0 { prefix & P_66 } else { 2 + (prefix >> 4 & 1) } as usize;
        attr = TABLE.rest[space][pp][op as usize];
        p += skip + 1;
    } else if next & 0xfe == 0xc4 {
        if rex != 0 || prefix & !(P_GS | P_67) != 0 {
            return Err(Rule::Prefix);
        }
        let b1 = byte(w, p + 1);
        let (map, last) = if next == 0xc5 {
            p += 2;
            rex = 0x40 | (!b1 >> 5 & 4);
            (1, b1 & 0x7f)
        } else {
            let b2 = byte(w, p + 2);
            p += 3;
            rex = 0x40 | (!b1 >> 5 & 7) | (b2 >> 4 & 8);
            (b1 & 0x1f, b2)
        };
        vvvv = !last >> 3 & 15;
        vex = 0x80 | last & 4;
        op = byte(w, p);
        p += 1;
        // VEX counts 66 F3 F2 as the table does
        attr = match map {
            1..=3 => TABLE.rest[map as usize + 2][(last & 3) as usize][op as usize],
            _ => 0,
        };
    } else {
        op = next;
        attr = TABLE.one[op as usize];
        legacy_one = true;
        p += 1;
    }
    if attr == 0 {
        return Err(Rule::Instruction);
    }
    let class = class_of(attr);
    *insn = Insn { attr, class, op, prefix, size: 4, vvvv, base: NONE, index: NONE, ..Insn::default() };
    if attr & BYTE_REG != 0 {
        insn.size = 1;
    } else if rex & 8 != 0 {
        insn.size = 8;
    } else if attr & OPS != 0 && prefix & P_66 != 0 {
        insn.size = 2;
    }
    if vex != 0 {
        vex_rules(attr, vex, vvvv, rex)?;
    } else if prefix != 0 || attr & D64 != 0 {
        legacy_rules(insn, rex, legacy_one)?;
    }
    if attr & MODRM != 0 {
        p = operands(w, p, rex, insn)?;
    } else if attr & OPREG != 0 {
        insn.rm = op & 7 | (rex & 1) << 3;
    }
    // without REX bytes above the fourth are high halves
    let whole = |reg: u8, kind| if rex == 0 && attr & kind != 0 && reg & 4 != 0 { reg & 3 } else { reg };
    (insn.reg, insn.rm) = (whole(insn.reg, BYTE_REG), whole(insn.rm, BYTE_RM));
    if attr & SPLIT != 0 {
        rare(insn, rex, vex != 0)?;
    } else if vex != 0 && insn.mem && vvvv != 0 && op & 0xfe == 0x10 {
        return Err(Rule::Instruction); // the scalar moves have a third operand only between registers
    }
    let kind = (insn.attr & IMM_MASK) >> 1;
    let raw = word32(w, p);
    let short = if insn.size == 2 { raw as i16 as i32 } else { raw };
    insn.imm = [0, raw as i8 as i32, short, short][kind as usize & 3] as i64;
    if kind == 3 && insn.size == 8 {
        insn.imm = insn.imm & 0xffff_ffff | (word32(w, p + 4) as i64) << 32;
    }
    let width = if insn.size == 8 { 2 } else { (insn.size == 2) as usize };
    p += IMM_BYTES[kind as usize & 3][width] as usize;
    if p > 15 {
        return Err(Rule::Instruction);
    }
    insn.len = p as u8;
    if prefix & (P_LOCK | P_67 | P_GS) != 0 {
        memory_prefix_rules(insn)?;
    }
    Ok(())
}

/// Bytes of an immediate by kind, for 32, 16 and 64 bits.
const IMM_BYTES: [[u8; 3]; 4] = [[0; 3], [1; 3], [4, 2, 4], [4, 2, 8]];

/// ModRM, SIB and displacement; gives the position behind them.
#[inline(always)]
fn operands(w: &Window, mut p: usize, rex: u8, insn: &mut Insn) -> Result<usize, Rule> {
    let modrm = byte(w, p);
    p += 1;
    let (mode, rm) = (modrm >> 6, modrm & 7);
    insn.ext = modrm >> 3 & 7;
    insn.reg = insn.ext | (rex & 4) << 1;
    let attr = insn.attr;
    if attr & EXT != 0 && attr >> (EXT_SHIFT + insn.ext as u32) & 1 == 0 {
        return Err(Rule::Instruction);
    }
    if mode == 3 {
        insn.rm = rm | (rex & 1) << 3;
        return if attr & NOREG != 0 { Err(Rule::Instruction) } else { Ok(p) };
    }
    if attr & NOMEM != 0 {
        return Err(Rule::Instruction);
    }
    insn.mem = true;
    if rm == 4 {
        let sib = byte(w, p);
        p += 1;
        insn.scale = sib >> 6;
        let index = sib >> 3 & 7 | (rex & 2) << 2;
        if index != 4 && attr & VSIB == 0 {
            insn.index = index;
        }
        if sib & 7 == 5 && mode == 0 {
            insn.disp = word32(w, p);
            return Ok(p + 4);
        }
        insn.base = sib & 7 | (rex & 1) << 3;
    } else if attr & VSIB != 0 {
        return Err(Rule::Instruction);
    } else if rm == 5 && mode == 0 {
        insn.base = RIP;
        insn.disp = word32(w, p);
        return Ok(p + 4);
    } else {
        insn.base = rm | (rex & 1) << 3;
    }
    // selected rather than branched on: compilers mix the sizes without a pattern
    let raw = word32(w, p);
    insn.disp = if mode == 2 { raw } else { raw as i8 as i32 & -(mode as i32) };
    p += [0, 1, 4, 0][mode as usize & 3];
    Ok(p)
}

fn vex_rules(attr: Attr, vex: u8, vvvv: u8, rex: u8) -> Result<(), Rule> {
    let length = if vex & 4 != 0 { NOL1 } else { NOL0 };
    let w = if rex & 8 != 0 { attr & W1 != 0 } else { attr & NOW0 == 0 };
    let third = attr & VVVV != 0 || vvvv == 0;
    if attr & length == 0 && w && third { Ok(()) } else { Err(Rule::Instruction) }
}

/// Prefixes before an opcode without VEX: 66, F2 and F3 have chosen the row of the longer opcodes already.
fn legacy_rules(insn: &Insn, rex: u8, one: bool) -> Result<(), Rule> {
    let Insn { attr, prefix, op, .. } = *insn;
    let rep = prefix & (P_F3 | P_F2);
    let string = insn.class == class::STRING && (rep == P_F3 || matches!(op, 0xa6 | 0xa7 | 0xae | 0xaf));
    let pause = op == 0x90 && prefix == P_F3 && rex == 0;
    let jecxz = op == 0xe3 && one && prefix == P_67;
    let wrong = rep == P_F3 | P_F2
        || rep != 0 && prefix & P_LOCK != 0
        || rep != 0 && one && !string && !pause
        || prefix & P_66 != 0 && attr & OPS == 0 && (one || rep != 0)
        // a 16-bit branch would leave the segment on some processors; REX says nothing there but for push and
        // pop
        || attr & D64 != 0 && (prefix != 0 && !jecxz || rex & if attr & OPREG != 0 { !0x41 } else { !0 } != 0);
    if wrong { Err(Rule::Prefix) } else { Ok(()) }
}

/// Lock, gs and the 32-bit address size belong to a memory operand; the last also to `jecxz`, the only branch
/// with a prefix.
fn memory_prefix_rules(insn: &Insn) -> Result<(), Rule> {
    let p = insn.prefix;
    let lock = p & P_LOCK == 0 || insn.mem && insn.attr & (LOCK | ST) == LOCK | ST;
    let gs = p & P_GS == 0 || insn.mem && insn.attr & (LD | ST) != 0;
    let short = p & P_67 == 0 || p & P_GS != 0 && insn.base != RIP || insn.class == class::BRANCH;
    if lock && gs && short { Ok(()) } else { Err(Rule::Prefix) }
}

/// Opcodes whose operands ModRM.reg or the register form decides.
fn rare(insn: &mut Insn, rex: u8, vex: bool) -> Result<(), Rule> {
    if insn.attr & MODRM == 0 {
        insn.ext = insn.op >> 3 & 7;
    }
    insn.attr = split(insn.attr, insn.ext);
    insn.class = class_of(insn.attr);
    match insn.class {
        class::INDIRECT if insn.prefix & !P_GS != 0 || rex & 8 != 0 => return Err(Rule::Prefix),
        class::NOP
            if insn.op == 0x90
                && (insn.prefix & P_F3 == 0 && rex != 0 || insn.prefix & !(P_F3 | P_66) != 0) =>
        {
            return Err(Rule::Prefix);
        }
        class::ENDBR if insn.ext != 7 || insn.rm != 2 || rex != 0 || insn.prefix != P_F3 => {
            return Err(Rule::Instruction);
        }
        class::FENCE => match (insn.mem, insn.ext) {
            (true, 2) => {
                insn.attr |= LD;
                insn.class = class::FP_CONTROL;
            }
            (true, 3) => insn.attr |= ST | FLOAT,
            (false, 5..=7) if insn.rm == 0 && !vex && insn.prefix == 0 && rex == 0 => {}
            _ => return Err(Rule::Instruction),
        },
        class::X87 if insn.op != 0x9b => x87(insn)?,
        _ => {}
    }
    Ok(())
}

/// Per opcode from D8 on: memory forms that load, that store (by ModRM.reg), register forms (by ModRM - C0).
const X87: [(u8, u8, u64); 8] = [
    (0xff, 0x00, !0),
    (0x21, 0x8c, 0xffff_7f33_0001_ffff),
    (0xff, 0x00, 0x0000_0200_ffff_ffff),
    (0x21, 0x8e, 0x00ff_ff0c_ffff_ffff),
    (0xff, 0x00, 0xffff_ffff_0000_ffff),
    (0x01, 0x8e, 0x0000_ffff_ffff_00ff),
    (0xff, 0x00, 0xffff_ffff_0200_ffff),
    (0x31, 0xce, 0x00ff_ff01_0000_0000),
];

fn x87(insn: &mut Insn) -> Result<(), Rule> {
    let (loads, stores, registers) = X87[(insn.op & 7) as usize];
    if !insn.mem {
        let form = insn.ext << 3 | insn.rm & 7;
        if registers >> form & 1 == 0 {
            return Err(Rule::Instruction);
        }
        if insn.op == 0xdf && form == 32 {
            insn.attr |= WAX | NOZX; // fnstsw %ax
        }
    } else if loads >> insn.ext & 1 != 0 {
        insn.attr |= LD;
        if insn.op == 0xd9 && insn.ext == 5 {
            insn.class = class::FP_CONTROL;
        }
    } else if stores >> insn.ext & 1 != 0 {
        insn.attr |= ST;
    } else {
        return Err(Rule::Instruction);
    }
    Ok(())
}

/// The long no-operations of assemblers: 66 several times, a cs override, then `0F 1F /0` with a memory
/// operand; or `66 .. 90`.
fn padding(w: &Window, insn: &mut Insn) -> Result<(), Rule> {
    let mut p = 0;
    while byte(w, p) == 0x66 && p < 15 {
        p += 1;
    }
    p += (byte(w, p) == 0x2e) as usize;
    let attr = TABLE.rest[0][0][0x1f];
    *insn = Insn { attr, class: class::NOP, op: 0x1f, size: 4, base: NONE, index: NONE, ..Insn::default() };
    if byte(w, p) != 0x0f || byte(w, p + 1) != 0x1f {
        return Err(Rule::Prefix);
    }
    p = operands(w, p + 2, 0, insn).map_err(|_| Rule::Prefix)?;
    insn.len = p as u8;
    if p > 15 { Err(Rule::Prefix) } else { Ok(()) }
}

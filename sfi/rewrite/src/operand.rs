//! Operands of AT&T assembly: registers, immediates, memory references, and their text.
//!
//! Only what the rewriter has to change is taken apart: general registers by number and width, memory
//! references by segment, displacement, base, index and scale. Everything else (vector registers, mask
//! suffixes) is kept as text.

use std::fmt;

/// Register numbers in encoding order.
pub const RAX: u8 = 0;
pub const RCX: u8 = 1;
pub const RDX: u8 = 2;
pub const RBX: u8 = 3;
pub const RSP: u8 = 4;
pub const RBP: u8 = 5;
pub const RSI: u8 = 6;
pub const RDI: u8 = 7;
pub const R10: u8 = 10;
pub const R11: u8 = 11;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    B8,
    /// `ah`, `bh`, `ch`, `dh`.
    High,
    B16,
    B32,
    B64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gpr {
    pub num: u8,
    pub width: Width,
}

const NAMES64: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
    "r15",
];
const NAMES32: [&str; 16] = [
    "eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "r8d", "r9d", "r10d", "r11d", "r12d", "r13d",
    "r14d", "r15d",
];
const NAMES16: [&str; 16] = [
    "ax", "cx", "dx", "bx", "sp", "bp", "si", "di", "r8w", "r9w", "r10w", "r11w", "r12w", "r13w", "r14w",
    "r15w",
];
const NAMES8: [&str; 16] = [
    "al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil", "r8b", "r9b", "r10b", "r11b", "r12b", "r13b", "r14b",
    "r15b",
];
const NAMESH: [&str; 4] = ["ah", "ch", "dh", "bh"];

pub fn r64(num: u8) -> String {
    format!("%{}", NAMES64[usize::from(num)])
}

pub fn r32(num: u8) -> String {
    format!("%{}", NAMES32[usize::from(num)])
}

pub fn r8(num: u8) -> String {
    format!("%{}", NAMES8[usize::from(num)])
}

impl Gpr {
    pub fn parse(name: &str) -> Option<Gpr> {
        for (table, width) in [
            (&NAMES64[..], Width::B64),
            (&NAMES32[..], Width::B32),
            (&NAMES16[..], Width::B16),
            (&NAMES8[..], Width::B8),
            (&NAMESH[..], Width::High),
        ] {
            if let Some(num) = table.iter().position(|n| *n == name) {
                return Some(Gpr { num: num as u8, width });
            }
        }
        None
    }
}

impl fmt::Display for Gpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = usize::from(self.num);
        let name = match self.width {
            Width::B64 => NAMES64[n],
            Width::B32 => NAMES32[n],
            Width::B16 => NAMES16[n],
            Width::B8 => NAMES8[n],
            Width::High => NAMESH[n],
        };
        write!(f, "%{name}")
    }
}

/// A base or index: a general register, or something that is kept as text (`rip`, a vector index).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddrReg {
    Gpr(Gpr),
    Rip,
    Other(String),
}

impl AddrReg {
    pub fn gpr(&self) -> Option<u8> {
        match self {
            AddrReg::Gpr(g) => Some(g.num),
            _ => None,
        }
    }

    fn narrow(&self) -> AddrReg {
        match self {
            AddrReg::Gpr(g) => AddrReg::Gpr(Gpr { num: g.num, width: Width::B32 }),
            other => other.clone(),
        }
    }
}

impl fmt::Display for AddrReg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AddrReg::Gpr(g) => write!(f, "{g}"),
            AddrReg::Rip => write!(f, "%rip"),
            AddrReg::Other(s) => write!(f, "{s}"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Mem {
    pub segment: Option<String>,
    pub disp: String,
    pub base: Option<AddrReg>,
    pub index: Option<AddrReg>,
    pub scale: u8,
    /// Mask suffixes and the like, kept as they are.
    pub suffix: String,
}

impl Mem {
    pub fn based(disp: i64, base: u8) -> Mem {
        let base = Some(AddrReg::Gpr(Gpr { num: base, width: Width::B64 }));
        Mem {
            disp: if disp == 0 { String::new() } else { disp.to_string() },
            base,
            scale: 1,
            ..Mem::default()
        }
    }

    pub fn is_rip(&self) -> bool {
        self.base == Some(AddrReg::Rip)
    }

    pub fn base_gpr(&self) -> Option<u8> {
        self.base.as_ref().and_then(AddrReg::gpr)
    }

    pub fn index_gpr(&self) -> Option<u8> {
        self.index.as_ref().and_then(AddrReg::gpr)
    }

    /// The displacement where it is a number.
    pub fn number(&self) -> Option<i64> {
        number(&self.disp)
    }

    /// The segment-relative form with 32-bit address size.
    pub fn confined(&self) -> Mem {
        let mut m = self.clone();
        m.segment = Some("%gs".into());
        m.base = m.base.map(|r| r.narrow());
        m.index = m.index.map(|r| r.narrow());
        m
    }

    /// General registers that the address reads, as a mask.
    pub fn regs(&self) -> u16 {
        self.base_gpr().into_iter().chain(self.index_gpr()).fold(0, |m, r| m | 1 << r)
    }
}

impl fmt::Display for Mem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(s) = &self.segment {
            write!(f, "{s}:")?;
        }
        write!(f, "{}", self.disp)?;
        if self.base.is_some() || self.index.is_some() {
            write!(f, "(")?;
            if let Some(b) = &self.base {
                write!(f, "{b}")?;
            }
            if let Some(i) = &self.index {
                write!(f, ",{i}")?;
                if self.scale != 1 || self.base.is_none() {
                    write!(f, ",{}", self.scale)?;
                }
            }
            write!(f, ")")?;
        }
        write!(f, "{}", self.suffix)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    Gpr(Gpr),
    /// With the dollar sign.
    Imm(String),
    Mem(Mem),
    /// `*operand` of an indirect jump or call.
    Star(Box<Operand>),
    /// Vector registers and everything else.
    Other(String),
}

impl Operand {
    pub fn gpr(&self) -> Option<Gpr> {
        match self {
            Operand::Gpr(g) => Some(*g),
            _ => None,
        }
    }

    pub fn imm(&self) -> Option<i64> {
        match self {
            Operand::Imm(s) => number(s.strip_prefix('$')?),
            _ => None,
        }
    }

    pub fn is_reg(&self, num: u8) -> bool {
        matches!(self, Operand::Gpr(g) if g.num == num)
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operand::Gpr(g) => write!(f, "{g}"),
            Operand::Imm(s) | Operand::Other(s) => write!(f, "{s}"),
            Operand::Mem(m) => write!(f, "{m}"),
            Operand::Star(o) => write!(f, "*{o}"),
        }
    }
}

/// A number, or a sum of numbers; nothing for symbols.
pub fn number(text: &str) -> Option<i64> {
    let text = text.trim();
    if text.is_empty() {
        return Some(0);
    }
    let mut sum = 0i64;
    let mut rest = text;
    while !rest.is_empty() {
        let (sign, body) = match rest.as_bytes()[0] {
            b'-' => (-1i64, &rest[1..]),
            b'+' => (1, &rest[1..]),
            _ => (1, rest),
        };
        let end = body.find(['+', '-']).unwrap_or(body.len());
        let word = body[..end].trim();
        let value = match word.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok()? as i64,
            None => word.parse::<i64>().or_else(|_| word.parse::<u64>().map(|v| v as i64)).ok()?,
        };
        sum = sum.wrapping_add(sign.wrapping_mul(value));
        rest = &body[end..];
    }
    Some(sum)
}

fn parse_addr_reg(text: &str) -> Option<AddrReg> {
    let name = text.trim().strip_prefix('%')?;
    Some(match name {
        "rip" => AddrReg::Rip,
        _ => Gpr::parse(name).map_or_else(|| AddrReg::Other(format!("%{name}")), AddrReg::Gpr),
    })
}

fn parse_mem(text: &str) -> Option<Mem> {
    let (segment, rest) = match text.strip_prefix('%') {
        Some(r) => {
            let (seg, rest) = r.split_once(':')?;
            (Some(format!("%{seg}")), rest)
        }
        None => (None, text),
    };
    // The last parenthesis that holds a register is the address; any earlier one belongs to the displacement.
    let Some(open) = rest.rfind("(%").or_else(|| rest.rfind("(,")) else {
        return Some(Mem { segment, disp: rest.trim().into(), scale: 1, ..Mem::default() });
    };
    let close = open + rest[open..].find(')')?;
    let mut parts = rest[open + 1..close].split(',').map(str::trim);
    let base = parts.next().filter(|s| !s.is_empty());
    let index = parts.next().filter(|s| !s.is_empty());
    let scale = parts.next().filter(|s| !s.is_empty()).map_or(Some(1), |s| s.parse().ok())?;
    Some(Mem {
        segment,
        disp: rest[..open].trim().into(),
        base: base.map(parse_addr_reg).map_or(Some(None), |r| r.map(Some))?,
        index: index.map(parse_addr_reg).map_or(Some(None), |r| r.map(Some))?,
        scale,
        suffix: rest[close + 1..].trim().into(),
    })
}

pub fn parse(text: &str) -> Option<Operand> {
    let text = text.trim();
    if let Some(rest) = text.strip_prefix('*') {
        return Some(Operand::Star(Box::new(parse(rest)?)));
    }
    if text.starts_with('$') {
        return Some(Operand::Imm(text.into()));
    }
    if let Some(name) = text.strip_prefix('%')
        && !text.contains(':')
    {
        return Some(Gpr::parse(name).map_or_else(|| Operand::Other(text.into()), Operand::Gpr));
    }
    if text.starts_with('{') {
        return Some(Operand::Other(text.into()));
    }
    parse_mem(text).map(Operand::Mem)
}

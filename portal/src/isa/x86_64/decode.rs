//! Decoder of the x86-64 instructions that portals between fault domains may consist of.
//!
//! The verifier and the golden files stand on it. It shares nothing with the encoder: prefixes, opcode,
//! ModRM, SIB and displacement are taken apart as the processor's manual has them, and whatever is not listed
//! in [`Insn`] decodes to `None`. `tests/sfi.rs` holds it against LLVM.

use core::fmt;

/// Where an operand in memory lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// `disp(base)`.
    Base { base: u8, disp: i32 },
    /// At an offset of the code.
    Code(i64),
    /// `%fs:disp`.
    Thread(i32),
}

/// Registers are numbers: rax rcx rdx rbx rsp rbp rsi rdi r8 to r15.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insn {
    Load {
        to: u8,
        from: Memory,
        wide: bool,
    },
    Store {
        to: Memory,
        from: u8,
    },
    /// Four bytes.
    StoreConstant {
        to: Memory,
        value: u32,
    },
    Address {
        to: u8,
        of: Memory,
    },
    Move {
        to: u8,
        from: u8,
    },
    Constant {
        to: u8,
        value: u64,
    },
    Zero {
        reg: u8,
    },
    Test {
        reg: u8,
    },
    /// Four bytes of memory with a constant.
    CompareConstant {
        at: Memory,
        value: u32,
    },
    AddConstant {
        to: Memory,
        value: i32,
    },
    Compare {
        at: Memory,
        with: u8,
    },
    Push {
        reg: u8,
    },
    Pop {
        reg: u8,
    },
    PushMemory {
        from: Memory,
    },
    PopMemory {
        to: Memory,
    },
    Or {
        reg: u8,
        value: i32,
    },
    And {
        reg: u8,
        value: i32,
    },
    OrRegister {
        to: u8,
        from: u8,
    },
    ShiftLeft {
        reg: u8,
        by: u8,
    },
    ShiftRight {
        reg: u8,
        by: u8,
    },
    Subtract {
        from: u8,
        what: Memory,
    },
    /// Taken if equal (or not).
    Branch {
        equal: bool,
        to: i64,
    },
    Jump {
        to: i64,
    },
    JumpMemory {
        at: Memory,
    },
    CallMemory {
        at: Memory,
    },
    SegmentBase {
        reg: u8,
    },
    StoreMxcsr {
        to: Memory,
    },
    LoadMxcsr {
        from: Memory,
    },
    StoreControl {
        to: Memory,
    },
    LoadControl {
        from: Memory,
    },
    ZeroVector {
        reg: u8,
    },
    /// Of all vector registers.
    ZeroUppers,
    ClearExceptions,
    EmptyRegisters,
    /// Zero onto the x87 stack; the class of its top into the condition codes.
    PushZero,
    Examine,
    Time,
    Return,
    Undefined,
    Trap,
}

/// ModRM with what belongs to it.
struct Operand {
    reg: u8,
    memory: Result<Memory, u8>,
}

struct Reader<'a> {
    code: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = self.code.get(self.at).copied();
        self.at += 1;
        byte
    }

    fn i32(&mut self) -> Option<i32> {
        let bytes = self.code.get(self.at..self.at.checked_add(4)?)?;
        self.at += 4;
        Some(i32::from_le_bytes(bytes.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        let bytes = self.code.get(self.at..self.at.checked_add(8)?)?;
        self.at += 8;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }

    /// `after`: bytes of the instruction behind the operand.
    fn operand(&mut self, rex: u8, thread: bool, after: i64) -> Option<Operand> {
        let modrm = self.byte()?;
        let reg = modrm >> 3 & 7 | (rex & 4) << 1;
        let (mode, low) = (modrm >> 6, modrm & 7);
        if rex & 2 != 0 {
            return None;
        }
        let base = low | (rex & 1) << 3;
        if mode == 3 {
            return (!thread).then_some(Operand { reg, memory: Err(base) });
        }
        if mode == 0 && low == 5 {
            let distance = self.i32()?;
            let to = self.at as i64 + after + i64::from(distance);
            return (!thread && rex & 1 == 0).then_some(Operand { reg, memory: Ok(Memory::Code(to)) });
        }
        if low == 4 {
            let sib = self.byte()?;
            if mode == 0 && sib == 0x25 {
                let disp = self.i32()?;
                return (thread && rex & 1 == 0).then_some(Operand { reg, memory: Ok(Memory::Thread(disp)) });
            }
            // No index, and the base as it is.
            if sib & 0x38 != 0x20
                || rex & 2 != 0
                || (mode == 0 && sib & 7 == 5)
                || sib >> 6 != 0
                || sib & 7 != 4
            {
                return None;
            }
        }
        let disp = match mode {
            0 => 0,
            1 => i32::from(self.byte()? as i8),
            _ => self.i32()?,
        };
        (!thread).then_some(Operand { reg, memory: Ok(Memory::Base { base, disp }) })
    }
}

/// The instruction at an offset of the code, and the offset behind it.
pub fn decode(code: &[u8], at: usize) -> Option<(Insn, usize)> {
    let mut r = Reader { code, at };
    let mut byte = r.byte()?;
    let (mut thread, mut repeat, mut rex) = (false, false, 0);
    if byte == 0x64 {
        thread = true;
        byte = r.byte()?;
    } else if byte == 0xf3 {
        repeat = true;
        byte = r.byte()?;
    }
    if byte & 0xf0 == 0x40 {
        rex = byte;
        byte = r.byte()?;
    }
    let insn = if repeat {
        // Only wrgsbase.
        if byte != 0x0f || r.byte()? != 0xae || rex & 8 == 0 {
            return None;
        }
        let o = r.operand(rex, false, 0)?;
        match (o.reg, o.memory) {
            (3, Err(reg)) => Insn::SegmentBase { reg },
            _ => return None,
        }
    } else if byte == 0x0f {
        if thread {
            return None;
        }
        two_bytes(&mut r, rex)?
    } else {
        one_byte(&mut r, byte, rex, thread)?
    };
    Some((insn, r.at))
}

fn one_byte(r: &mut Reader, byte: u8, rex: u8, thread: bool) -> Option<Insn> {
    let wide = rex & 8 != 0;
    let low = byte & 7 | (rex & 1) << 3;
    if thread && !matches!(byte, 0x8b | 0x89 | 0x39 | 0x81 | 0xc7) {
        return None;
    }
    Some(match byte {
        0x50..=0x57 if rex & 0xe == 0 => Insn::Push { reg: low },
        0x58..=0x5f if rex & 0xe == 0 => Insn::Pop { reg: low },
        0xb8..=0xbf if rex & 6 != 0 => return None,
        0xb8..=0xbf if wide => Insn::Constant { to: low, value: r.u64()? },
        0xb8..=0xbf => Insn::Constant { to: low, value: u64::from(r.i32()? as u32) },
        0xc3 if rex == 0 => Insn::Return,
        0xcc if rex == 0 => Insn::Trap,
        0xe9 if rex == 0 => {
            let distance = r.i32()?;
            Insn::Jump { to: r.at as i64 + i64::from(distance) }
        }
        0xc5 if rex == 0 && r.byte()? == 0xf8 && r.byte()? == 0x77 => Insn::ZeroUppers,
        0xdb if rex == 0 && r.byte()? == 0xe2 => Insn::ClearExceptions,
        0xd9 if rex == 0 && matches!(r.code.get(r.at), Some(0xee | 0xe5)) => match r.byte()? {
            0xee => Insn::PushZero,
            _ => Insn::Examine,
        },
        0xd9 if rex & 8 == 0 => {
            let o = r.operand(rex, false, 0)?;
            match (o.reg, o.memory) {
                (7, Ok(to)) => Insn::StoreControl { to },
                (5, Ok(from)) => Insn::LoadControl { from },
                _ => return None,
            }
        }
        0x8b | 0x89 | 0x39 | 0x85 | 0x31 | 0x09 | 0x8d | 0x2b => {
            let o = r.operand(rex, thread, 0)?;
            match (byte, o.memory) {
                (0x8b, Ok(from)) => Insn::Load { to: o.reg, from, wide },
                (0x89, Ok(to)) if wide => Insn::Store { to, from: o.reg },
                (0x89, Err(to)) if wide => Insn::Move { to, from: o.reg },
                (0x39, Ok(at)) if wide => Insn::Compare { at, with: o.reg },
                (0x85, Err(reg)) if wide && reg == o.reg => Insn::Test { reg },
                (0x31, Err(reg)) if !wide && reg == o.reg => Insn::Zero { reg },
                (0x09, Err(to)) if wide => Insn::OrRegister { to, from: o.reg },
                (0x2b, Ok(what)) if wide => Insn::Subtract { from: o.reg, what },
                (0x8d, Ok(of)) if wide => Insn::Address { to: o.reg, of },
                _ => return None,
            }
        }
        0x81 | 0x83 => {
            let o = r.operand(rex, thread, if byte == 0x81 { 4 } else { 1 })?;
            let value = if byte == 0x81 { r.i32()? } else { i32::from(r.byte()? as i8) };
            match (o.reg, o.memory) {
                (7, Ok(at)) if !wide && byte == 0x81 => Insn::CompareConstant { at, value: value as u32 },
                (0, Ok(to)) if !wide && byte == 0x81 => Insn::AddConstant { to, value },
                (1, Err(reg)) if wide => Insn::Or { reg, value },
                (4, Err(reg)) if wide => Insn::And { reg, value },
                _ => return None,
            }
        }
        0xc1 => {
            let o = r.operand(rex, false, 1)?;
            let by = r.byte()?;
            match (o.reg, o.memory) {
                (4, Err(reg)) if wide => Insn::ShiftLeft { reg, by },
                (5, Err(reg)) if wide => Insn::ShiftRight { reg, by },
                _ => return None,
            }
        }
        0xc7 if !wide => {
            let o = r.operand(rex, thread, 4)?;
            let value = r.i32()? as u32;
            match (o.reg, o.memory) {
                (0, Ok(to)) => Insn::StoreConstant { to, value },
                _ => return None,
            }
        }
        0x8f | 0xff => {
            let o = r.operand(rex, false, 0)?;
            match (byte, o.reg, o.memory) {
                _ if wide => return None,
                (0x8f, 0, Ok(to)) => Insn::PopMemory { to },
                (0xff, 6, Ok(from)) => Insn::PushMemory { from },
                (0xff, 2, Ok(at)) => Insn::CallMemory { at },
                (0xff, 4, Ok(at)) => Insn::JumpMemory { at },
                _ => return None,
            }
        }
        _ => return None,
    })
}

fn two_bytes(r: &mut Reader, rex: u8) -> Option<Insn> {
    Some(match r.byte()? {
        byte @ (0x84 | 0x85) if rex == 0 => {
            let distance = r.i32()?;
            Insn::Branch { equal: byte == 0x84, to: r.at as i64 + i64::from(distance) }
        }
        0x0b if rex == 0 => Insn::Undefined,
        0x31 if rex == 0 => Insn::Time,
        0x77 if rex == 0 => Insn::EmptyRegisters,
        0x57 => {
            let o = r.operand(rex, false, 0)?;
            match o.memory {
                Err(reg) if reg == o.reg => Insn::ZeroVector { reg },
                _ => return None,
            }
        }
        0xae if rex & 8 == 0 => {
            let o = r.operand(rex, false, 0)?;
            match (o.reg, o.memory) {
                (3, Ok(to)) => Insn::StoreMxcsr { to },
                (2, Ok(from)) => Insn::LoadMxcsr { from },
                _ => return None,
            }
        }
        _ => return None,
    })
}

const NAMES: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
    "r15",
];

fn name(reg: u8) -> &'static str {
    NAMES.get(reg as usize).copied().unwrap_or("?")
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Memory::Base { base, disp: 0 } => write!(f, "[{}]", name(*base)),
            Memory::Base { base, disp } if *disp < 0 => {
                write!(f, "[{}-{:#x}]", name(*base), disp.unsigned_abs())
            }
            Memory::Base { base, disp } => write!(f, "[{}+{disp:#x}]", name(*base)),
            Memory::Code(to) => write!(f, "[code {to:#x}]"),
            Memory::Thread(disp) => write!(f, "[fs {disp:#x}]"),
        }
    }
}

impl fmt::Display for Insn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Insn::Load { to, from, wide } => {
                write!(f, "mov{} {}, {from}", if wide { "" } else { "32" }, name(to))
            }
            Insn::Store { to, from } => write!(f, "mov {to}, {}", name(from)),
            Insn::StoreConstant { to, value } => write!(f, "mov32 {to}, {value:#x}"),
            Insn::Address { to, of } => write!(f, "lea {}, {of}", name(to)),
            Insn::Move { to, from } => write!(f, "mov {}, {}", name(to), name(from)),
            Insn::Constant { to, value } => write!(f, "mov {}, {value:#x}", name(to)),
            Insn::Zero { reg } => write!(f, "zero {}", name(reg)),
            Insn::Test { reg } => write!(f, "test {}", name(reg)),
            Insn::CompareConstant { at, value } => write!(f, "cmp32 {at}, {value:#x}"),
            Insn::AddConstant { to, value } => write!(f, "add32 {to}, {value}"),
            Insn::Compare { at, with } => write!(f, "cmp {at}, {}", name(with)),
            Insn::Push { reg } => write!(f, "push {}", name(reg)),
            Insn::Pop { reg } => write!(f, "pop {}", name(reg)),
            Insn::PushMemory { from } => write!(f, "push {from}"),
            Insn::PopMemory { to } => write!(f, "pop {to}"),
            Insn::Or { reg, value } => write!(f, "or {}, {value:#x}", name(reg)),
            Insn::And { reg, value } => write!(f, "and {}, {value:#x}", name(reg)),
            Insn::OrRegister { to, from } => write!(f, "or {}, {}", name(to), name(from)),
            Insn::ShiftLeft { reg, by } => write!(f, "shl {}, {by}", name(reg)),
            Insn::ShiftRight { reg, by } => write!(f, "shr {}, {by}", name(reg)),
            Insn::Subtract { from, what } => write!(f, "sub {}, {what}", name(from)),
            Insn::Branch { equal, to } => write!(f, "{} {to:#x}", if equal { "je" } else { "jne" }),
            Insn::Jump { to } => write!(f, "jmp {to:#x}"),
            Insn::JumpMemory { at } => write!(f, "jmp {at}"),
            Insn::CallMemory { at } => write!(f, "call {at}"),
            Insn::SegmentBase { reg } => write!(f, "wrgsbase {}", name(reg)),
            Insn::StoreMxcsr { to } => write!(f, "stmxcsr {to}"),
            Insn::LoadMxcsr { from } => write!(f, "ldmxcsr {from}"),
            Insn::StoreControl { to } => write!(f, "fnstcw {to}"),
            Insn::LoadControl { from } => write!(f, "fldcw {from}"),
            Insn::ZeroVector { reg } => write!(f, "xorps xmm{reg}, xmm{reg}"),
            Insn::ZeroUppers => f.write_str("vzeroupper"),
            Insn::ClearExceptions => f.write_str("fnclex"),
            Insn::EmptyRegisters => f.write_str("emms"),
            Insn::PushZero => f.write_str("fldz"),
            Insn::Examine => f.write_str("fxam"),
            Insn::Time => f.write_str("rdtsc"),
            Insn::Return => f.write_str("ret"),
            Insn::Undefined => f.write_str("ud2"),
            Insn::Trap => f.write_str("int3"),
        }
    }
}

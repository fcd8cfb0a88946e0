//! Runs mips64 portals: the decoder's instructions, delay slots, coprocessor 0 as words, memory as words that
//! the test has put there.

use pebble_abi::map;
use pebble_arch::mips64::regs;
use pebble_portal::hardware::Code;
use pebble_portal::isa::mips64::decode::{Alu, C0, Cond, Insn, Shift, Width, c0, decode};
use std::collections::BTreeMap;

/// Where the code runs.
pub const AT: u64 = map::CODE_VA + 0x400;

pub struct Machine {
    pub x: [u64; 32],
    pub hi: u64,
    pub lo: u64,
    pub c0: BTreeMap<u8, u64>,
    pub memory: BTreeMap<u64, u64>,
    pub interrupts: bool,
    /// What `tlbp` finds, and the addresses that it was asked for.
    pub found: i32,
    pub probed: Vec<u64>,
    /// Entries of the TLB that were written: index, address, both halves.
    pub written: Vec<(u64, u64, [u64; 2])>,
    /// Domains of which everything was forgotten.
    pub flushed: Vec<u64>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Exit {
    /// Into user mode.
    User,
    /// To other portal code.
    Jump(u64),
}

impl Machine {
    pub fn new() -> Self {
        let x = core::array::from_fn(|n| if n == 0 { 0 } else { 0x5eed_0000 + n as u64 });
        let (c0, memory, probed) = Default::default();
        let (written, flushed) = Default::default();
        Machine { x, hi: 77, lo: 78, c0, memory, interrupts: true, found: -1, probed, written, flushed }
    }

    /// From this byte of the code on; an address of the leg is in `$26`, as whoever jumps there has it.
    pub fn run(&mut self, code: &Code, from: usize, leg: usize) -> Exit {
        self.x[26] = AT + leg as u64;
        let (mut pc, mut next) = (AT + from as u64, AT + from as u64 + 4);
        loop {
            let word = code.words.get((pc.wrapping_sub(AT) / 4) as usize).copied();
            let insn = word.and_then(decode).unwrap_or_else(|| panic!("at {pc:#x}: {word:x?}"));
            let mut after = next + 4;
            match insn {
                Insn::Eret => return Exit::User,
                Insn::Branch { cond, rs, rt, imm } => {
                    let (a, b) = (self.x[usize::from(rs)] as i64, self.x[usize::from(rt)] as i64);
                    let taken = match cond {
                        Cond::Eq => a == b,
                        Cond::Ne => a != b,
                        Cond::Ltz => a < 0,
                        Cond::Gez => a >= 0,
                        Cond::Lez => a <= 0,
                        Cond::Gtz => a > 0,
                    };
                    assert!(imm > 4, "forward");
                    after = if taken { pc.wrapping_add_signed(imm) } else { after };
                }
                Insn::Jr { rs } => after = self.x[usize::from(rs)],
                Insn::Jalr { rd, rs } => {
                    after = self.x[usize::from(rs)];
                    self.x[usize::from(rd)] = pc + 8;
                }
                other => self.step(other, code),
            }
            self.x[0] = 0;
            let inside = |at: u64| (AT..AT + code.len() as u64).contains(&at);
            (pc, next) = (next, after);
            if [regs::FLUSH, regs::IDLE].contains(&pc) {
                if pc == regs::FLUSH {
                    self.flushed.push(self.x[24]);
                }
                (pc, next) = (self.x[25], self.x[25] + 4);
                for x in [1, 24, 26, 27] {
                    self.x[x] = 0xdead;
                }
            } else if !inside(pc) {
                return Exit::Jump(pc);
            }
        }
    }

    fn read(&self, code: &Code, at: u64) -> u64 {
        if let Some(word) = self.memory.get(&at) {
            return *word;
        }
        let word = |at: u64| code.words.get((at.wrapping_sub(AT) / 4) as usize).copied().map(u64::from);
        match (word(at), word(at + 4)) {
            (Some(low), Some(high)) if at >= AT && at.is_multiple_of(8) => high << 32 | low,
            _ => panic!("reads {at:#x}"),
        }
    }

    fn step(&mut self, insn: Insn, code: &Code) {
        let of = |x: u8| self.x[usize::from(x)];
        let word = |value: u64| value as i32 as i64 as u64;
        let mask = |size: u8| u64::MAX >> (64 - size);
        let (to, value) = match insn {
            Insn::Nop | Insn::Ehb => return,
            Insn::Lui { rt, imm } => (rt, imm as u64),
            Insn::AluImm { op, rt, rs, imm } => (rt, alu(op, of(rs), imm as u64, 0)),
            Insn::Alu { op, rd, rs, rt } => (rd, alu(op, of(rs), of(rt), of(rd))),
            Insn::Shift { op, rd, rt, by } => {
                let value = match op {
                    Shift::Sll => word(of(rt) << by),
                    Shift::Srl => word(u64::from(of(rt) as u32 >> by)),
                    Shift::Sra => (of(rt) as i32 >> by) as i64 as u64,
                    Shift::Dsll => of(rt) << by,
                    Shift::Dsrl => of(rt) >> by,
                    Shift::Dsra => (of(rt) as i64 >> by) as u64,
                };
                (rd, value)
            }
            Insn::Ext { rt, rs, pos, size } => (rt, of(rs) >> pos & mask(size)),
            Insn::Ins { rt, rs, pos, size } => {
                (rt, of(rt) & !(mask(size) << pos) | (of(rs) & mask(size)) << pos)
            }
            Insn::Load { width: Width::D, rt, base, imm } => {
                (rt, self.read(code, of(base).wrapping_add_signed(imm)))
            }
            Insn::Store { width: Width::D, rt, base, imm } => {
                let at = of(base).wrapping_add_signed(imm);
                assert!(self.memory.contains_key(&at), "writes {at:#x}");
                self.memory.insert(at, of(rt));
                return;
            }
            Insn::Mfc0 { rt, from } => (rt, word(self.c0.get(&from.0).copied().unwrap_or_default())),
            Insn::Dmfc0 { rt, from } => (rt, self.c0.get(&from.0).copied().unwrap_or_default()),
            Insn::Mtc0 { rt, to } | Insn::Dmtc0 { rt, to } => {
                self.c0.insert(to.0, of(rt));
                return;
            }
            Insn::Mfhi { rd } => (rd, self.hi),
            Insn::Mflo { rd } => (rd, self.lo),
            Insn::Mthi { rs } => return self.hi = of(rs),
            Insn::Mtlo { rs } => return self.lo = of(rs),
            Insn::Di { rt: 0 } => return self.interrupts = false,
            Insn::Ei { rt: 0 } => return self.interrupts = true,
            Insn::Tlbp => {
                self.probed.push(self.c0[&c0::ENTRY_HI.0]);
                self.c0.insert(c0::INDEX.0, self.found as i64 as u64);
                return;
            }
            Insn::Tlbwi => {
                let of = |c: C0| self.c0[&c.0];
                let halves = [of(c0::ENTRY_LO0), of(c0::ENTRY_LO1)];
                self.written.push((of(c0::INDEX), of(c0::ENTRY_HI), halves));
                return;
            }
            other => panic!("{other}"),
        };
        self.x[usize::from(to)] = value;
    }
}

fn alu(op: Alu, a: u64, b: u64, before: u64) -> u64 {
    let word = |value: u64| value as i32 as i64 as u64;
    match op {
        Alu::Addu => word(a.wrapping_add(b)),
        Alu::Subu => word(a.wrapping_sub(b)),
        Alu::Daddu => a.wrapping_add(b),
        Alu::Dsubu => a.wrapping_sub(b),
        Alu::And => a & b,
        Alu::Or => a | b,
        Alu::Xor => a ^ b,
        Alu::Nor => !(a | b),
        Alu::Slt => u64::from((a as i64) < b as i64),
        Alu::Sltu => u64::from(a < b),
        Alu::Movz => {
            if b == 0 {
                a
            } else {
                before
            }
        }
        Alu::Movn => {
            if b != 0 {
                a
            } else {
                before
            }
        }
    }
}

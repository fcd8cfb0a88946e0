//! An emulator that is as hostile as the contract allows, over an independent decoder.
//!
//! Problem: what the verifier claims must be judged by something that shares no code with it. Strategy:
//! control flow, stacks and plain integer arithmetic are executed exactly; every other result, every byte
//! loaded from memory that other threads may write, and every condition is chosen at random, with a liking
//! for addresses. What is checked after each instruction is only what confinement means: where it wrote, read
//! and went.

use super::Built;
use iced_x86::{
    Code, Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};
use pebble_sfi_verify::Level;
use std::collections::HashMap;
use std::rc::Rc;

pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() >> 11) as usize % n.max(1)
    }
}

pub const BASE: u64 = 0x5a_0000_0000;
const GIB: u64 = 1 << 30;
const SEGMENT_END: u64 = BASE + 4 * GIB;
/// What an access may touch: the segment, and around it nothing that is mapped.
const LOW: u64 = BASE - 4 * GIB - 64;
const HIGH: u64 = BASE + 8 * GIB;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Word {
    Host,
    Return(u64),
    Value(u64),
}

/// How a run ended without harm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    Returned,
    Fault,
    Steps,
}

/// One decoded instruction, by its bytes.
struct Op {
    insn: Instruction,
    reads: bool,
    writes: bool,
    string: bool,
    stack: bool,
    /// Registers that it writes: number, bits (8, 16, 32, 64; 9: the high byte).
    results: Vec<(usize, u32)>,
}

#[derive(Default)]
pub struct Cache(HashMap<[u8; 16], Option<Rc<Op>>>);

impl Cache {
    fn get(&mut self, text: &[u8], at: usize) -> Option<Rc<Op>> {
        let mut key = [0; 16];
        let n = (text.len() - at).min(15);
        key[..n].copy_from_slice(&text[at..at + n]);
        if let Some(op) = self.0.get(&key) {
            return op.clone();
        }
        if self.0.len() > 200_000 {
            self.0.clear();
        }
        let op = decode(&key[..n]).map(Rc::new);
        self.0.insert(key, op.clone());
        op
    }
}

fn number(register: Register) -> usize {
    register.full_register() as usize - Register::RAX as usize
}

fn decode(bytes: &[u8]) -> Option<Op> {
    let insn = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE).decode();
    if insn.is_invalid() {
        return None;
    }
    use Mnemonic::*;
    let stack = matches!(insn.mnemonic(), Push | Pop | Call | Ret | Jmp);
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(&insn);
    let (mut reads, mut writes) = (false, false);
    for memory in info.used_memory() {
        if stack && memory.base() == Register::RSP {
            continue;
        }
        use OpAccess::*;
        reads |= matches!(memory.access(), Read | CondRead | ReadWrite | ReadCondWrite);
        writes |= matches!(memory.access(), Write | CondWrite | ReadWrite | ReadCondWrite);
    }
    // a 32-bit result zeroes the upper half, but where processors disagree or there may be no result
    let keeps = matches!(insn.mnemonic(), Bsf | Bsr | Tzcnt | Lzcnt | Cmpxchg | Cmpxchg8b | Shld | Shrd);
    use Code::{Cdq, Cpuid, Cwde, Div_rm32, Idiv_rm32, Imul_rm32, Mul_rm32};
    let implicit32 =
        matches!(insn.code(), Cdq | Cwde | Mul_rm32 | Imul_rm32 | Div_rm32 | Idiv_rm32 | Cpuid | Code::Rdtsc);
    let mut results = vec![];
    for used in info.used_registers() {
        use OpAccess::*;
        let register = used.register();
        let write = matches!(used.access(), Write | CondWrite | ReadWrite | ReadCondWrite);
        if !write || !register.is_gpr() || register.full_register() == Register::RSP && stack {
            continue;
        }
        let high = matches!(register, Register::AH | Register::BH | Register::CH | Register::DH);
        let mut bits = if high { 9 } else { register.size() as u32 * 8 };
        let half = (0..insn.op_count()).any(|i| {
            let operand = insn.op_kind(i) == OpKind::Register && insn.op_register(i).size() == 4;
            operand && insn.op_register(i).full_register() == register.full_register()
        });
        if bits >= 32 {
            bits = if (half || implicit32) && !keeps { 32 } else { 64 };
        }
        results.push((number(register), bits));
    }
    let string = insn.is_string_instruction();
    Some(Op { insn, reads, writes, string, stack, results })
}

pub struct Machine<'a> {
    built: &'a Built,
    starts: &'a [bool],
    cache: &'a mut Cache,
    rng: &'a mut Rng,
    regs: [u64; 16],
    stack: Vec<Word>,
    rip: u64,
}

/// The instruction starts of a linear sweep.
pub fn starts(built: &Built, cache: &mut Cache) -> Vec<bool> {
    let mut starts = vec![false; built.text.len()];
    let mut at = 0;
    while at < built.text.len() {
        starts[at] = true;
        at += cache.get(&built.text, at).map_or(1, |op| op.insn.len());
    }
    starts
}

impl<'a> Machine<'a> {
    pub fn new(
        built: &'a Built,
        starts: &'a [bool],
        cache: &'a mut Cache,
        rng: &'a mut Rng,
        entry: u32,
    ) -> Self {
        let mut machine = Machine {
            built,
            starts,
            cache,
            rng,
            regs: [0; 16],
            stack: vec![Word::Host],
            rip: BASE + entry as u64,
        };
        for i in 0..16 {
            machine.regs[i] = machine.any();
        }
        // where deep recursion may have led it, in steps of 4 KiB, and where a dynamic one may be
        machine.regs[5] = match machine.rng.below(8) {
            0 => BASE - 2 * GIB + 0x40_0000,
            1 => SEGMENT_END - 1,
            2 => BASE + (machine.rng.next() & 0xffff_ffff),
            _ => BASE + 0xff00_0000,
        };
        machine
    }

    /// Any value: often one that an attacker would like.
    fn any(&mut self) -> u64 {
        let r = self.rng.next();
        match r >> 60 {
            0 => BASE + (r & 0xffff_ffff),
            1 => BASE + 8 * GIB + (r & 0xfff8),
            2 => r & 0xffff_ffff,
            3 => (r as i32) as i64 as u64,
            4 => r & 0xff,
            5 => BASE - (r & 0x3_ffff_ffff),
            6 => SEGMENT_END + (r & 0x3_ffff_ffff),
            7 => 0x2_0000 + (r & 0x1ff),
            8 => 0,
            9 => !0 - (r & 0xff),
            10 => 0x7fff_ffff_ffff_f000 + (r & 0xfff),
            _ => r.rotate_left(4),
        }
    }

    fn read(&self, register: Register) -> u64 {
        let value = self.regs[number(register)];
        match register.size() {
            8 => value,
            4 => value & 0xffff_ffff,
            2 => value & 0xffff,
            _ if matches!(register, Register::AH | Register::BH | Register::CH | Register::DH) => {
                value >> 8 & 0xff
            }
            _ => value & 0xff,
        }
    }

    fn set(&mut self, reg: usize, bits: u32, value: u64) {
        let old = self.regs[reg];
        self.regs[reg] = match bits {
            64 => value,
            32 => value & 0xffff_ffff,
            16 => old & !0xffff | value & 0xffff,
            9 => old & !0xff00 | (value & 0xff) << 8,
            _ => old & !0xff | value & 0xff,
        };
    }

    fn set_register(&mut self, register: Register, value: u64) {
        let high = matches!(register, Register::AH | Register::BH | Register::CH | Register::DH);
        self.set(number(register), if high { 9 } else { register.size() as u32 * 8 }, value);
    }

    fn address(&mut self, insn: &Instruction) -> u64 {
        if insn.memory_base() == Register::RIP {
            return self.rip.wrapping_add(insn.ip_rel_memory_address());
        }
        let mut sum = insn.memory_displacement64();
        let (base, index) = (insn.memory_base(), insn.memory_index());
        if base.is_gpr() {
            sum = sum.wrapping_add(self.regs[number(base)]);
        }
        if index.is_gpr() {
            sum = sum.wrapping_add(self.regs[number(index)].wrapping_mul(insn.memory_index_scale() as u64));
        } else if index.is_vector_register() {
            sum = sum.wrapping_add(self.any());
        }
        let short = base.size() == 4 || index.size() == 4;
        let bytes = insn.len();
        let prefix = base == Register::None && !index.is_gpr() && self.has_67(bytes);
        if short || prefix {
            sum &= 0xffff_ffff;
        }
        if insn.segment_prefix() == Register::GS {
            sum = sum.wrapping_add(BASE);
        }
        sum
    }

    fn has_67(&self, len: usize) -> bool {
        let at = (self.rip - BASE - self.built.text_at as u64) as usize;
        let prefixes = [0x66, 0x67, 0x65, 0xf0, 0xf2, 0xf3];
        self.built.text[at..at + len].iter().take_while(|b| prefixes.contains(b)).any(|b| *b == 0x67)
    }

    /// Whether the access faults; an error if it may touch something outside.
    fn access(&self, at: u64, size: u64, write: bool) -> Result<bool, String> {
        let inside = at >= BASE && at.wrapping_add(size) <= SEGMENT_END;
        if inside {
            return Ok(false);
        }
        if at >= LOW && at < HIGH - 64 {
            return Ok(true);
        }
        match (write, self.built.level) {
            (true, _) => Err(format!("writes {at:#x}")),
            (false, Level::Full) => Err(format!("reads {at:#x}")),
            _ => Ok(false),
        }
    }

    fn load(&mut self, at: u64, size: usize) -> u64 {
        if size == 8 && at == BASE + 0x1_0000 {
            return BASE;
        }
        if size == 8 && at == BASE + 0x1_0008 {
            return BASE + 0xff00_0000;
        }
        let from = at.wrapping_sub(BASE + self.built.rodata_at as u64) as usize;
        if let Some(bytes) = from.checked_add(size).and_then(|end| self.built.rodata.get(from..end)) {
            return bytes.iter().rev().take(8).fold(0, |n, b| n << 8 | *b as u64);
        }
        self.any()
    }

    /// Runs until it ends, or an error says how it escaped.
    pub fn run(&mut self, changes: u16, steps: usize) -> Result<End, String> {
        let first = self.regs;
        for _ in 0..steps {
            let at = self.rip.wrapping_sub(BASE + self.built.text_at as u64) as usize;
            if self.rip >= BASE && self.rip < BASE + self.built.text_at as u64 {
                return Ok(End::Fault); // nothing is executable there
            }
            if !self.starts.get(at).copied().unwrap_or(false) {
                return Err(format!("goes to {:#x}", self.rip.wrapping_sub(BASE)));
            }
            let Some(op) = self.cache.get(&self.built.text, at) else { return Ok(End::Fault) };
            let here = self.rip;
            match self.step(&op).map_err(|why| format!("{:#x} {}: {why}", here - BASE, op.insn))? {
                None => {}
                Some(End::Returned) => {
                    for reg in [3, 5, 12, 13, 14, 15] {
                        if changes >> reg & 1 == 0 && self.regs[reg] != first[reg] {
                            return Err(format!("returns with register {reg} changed"));
                        }
                    }
                    return Ok(End::Returned);
                }
                Some(end) => return Ok(end),
            }
        }
        Ok(End::Steps)
    }

    fn step(&mut self, op: &Op) -> Result<Option<End>, String> {
        let insn = &op.insn;
        if op.string {
            return self.string(op);
        }
        let memory = (0..insn.op_count()).any(|i| insn.op_kind(i) == OpKind::Memory);
        let mut at = 0;
        if memory && (op.reads || op.writes) {
            at = self.address(insn);
            let size = match insn.memory_size().size() {
                0 => 8,
                n => n as u64,
            };
            if self.access(at, size, op.writes)? {
                return Ok(Some(End::Fault));
            }
        }
        let next = self.rip.wrapping_add(insn.len() as u64);
        let target = self.rip.wrapping_add(insn.near_branch64());
        use Mnemonic::*;
        match insn.mnemonic() {
            Ud2 | Int3 => return Ok(Some(End::Fault)),
            Push | Pop if !insn.op0_register().is_gpr64() => return Err("is not for confined code".into()),
            Push => {
                let value = self.regs[number(insn.op0_register())];
                self.stack.push(Word::Value(value));
            }
            Pop => match self.stack.pop() {
                Some(Word::Value(value)) => self.regs[number(insn.op0_register())] = value,
                other => return Err(format!("pops {other:?}")),
            },
            Call | Jmp => return self.transfer(op, at, next, target),
            Ret => {
                return match self.stack.pop() {
                    Some(Word::Host) => Ok(Some(End::Returned)),
                    Some(Word::Return(to)) => {
                        self.rip = to;
                        Ok(None)
                    }
                    other => Err(format!("returns to {other:?}")),
                };
            }
            Jecxz | Jrcxz => {
                let zero =
                    self.read(if insn.mnemonic() == Jecxz { Register::ECX } else { Register::RCX }) == 0;
                self.rip = if zero { target } else { next };
                return Ok(None);
            }
            _ if insn.is_jcc_short_or_near() => {
                self.rip = if self.rng.next() >> 40 & 1 == 0 { target } else { next };
                return Ok(None);
            }
            Syscall | Sysenter | Int | Wrgsbase | Wrfsbase | Std | Popfq | Leave | Iretq | Retf => {
                return Err("is not for confined code".into());
            }
            _ => {
                if !self.exact(insn, at) {
                    for (reg, bits) in &op.results {
                        let value = self.any();
                        self.set(*reg, *bits, value);
                    }
                }
                if op.results.iter().any(|(reg, _)| *reg == 4) {
                    return Err("changes rsp".into());
                }
            }
        }
        self.rip = next;
        Ok(None)
    }

    /// Plain integer instructions with a register as destination.
    fn exact(&mut self, insn: &Instruction, at: u64) -> bool {
        use Mnemonic::*;
        if insn.op_count() == 0 || insn.op_kind(0) != OpKind::Register || !insn.op0_register().is_gpr() {
            return false;
        }
        let to = insn.op0_register();
        let source = |machine: &mut Self, i: u32| match insn.op_kind(i) {
            OpKind::Register if insn.op_register(i).is_gpr() => Some(machine.read(insn.op_register(i))),
            OpKind::Memory => Some(machine.load(at, insn.memory_size().size())),
            OpKind::Register => None,
            _ => Some(insn.immediate(i)),
        };
        if insn.mnemonic() == Lea {
            let value = self.address(insn);
            self.set_register(to, value);
            return true;
        }
        let known = matches!(insn.mnemonic(), Mov | Movzx | Movsx | Movsxd | Add | Sub | And | Or | Xor);
        if insn.mnemonic() == Inc || insn.mnemonic() == Dec {
            let old = self.read(to);
            let by = if insn.mnemonic() == Inc { 1 } else { !0 };
            self.set_register(to, old.wrapping_add(by));
            return true;
        }
        if !known {
            return false;
        }
        let Some(b) = source(self, 1) else { return false };
        let a = self.read(to);
        let size = match insn.op_kind(1) {
            OpKind::Register => insn.op1_register().size(),
            OpKind::Memory => insn.memory_size().size(),
            _ => 8,
        };
        let signed = match size {
            1 => b as i8 as i64 as u64,
            2 => b as i16 as i64 as u64,
            4 => b as i32 as i64 as u64,
            _ => b,
        };
        let zero = if size < 8 { b & ((1 << (8 * size)) - 1) } else { b };
        let value = match insn.mnemonic() {
            Mov | Movzx => zero,
            Movsx | Movsxd => signed,
            Add => a.wrapping_add(b),
            Sub => a.wrapping_sub(b),
            And => a & b,
            Or => a | b,
            _ => a ^ b,
        };
        self.set_register(to, value);
        true
    }

    fn transfer(&mut self, op: &Op, at: u64, next: u64, target: u64) -> Result<Option<End>, String> {
        let insn = &op.insn;
        let call = insn.mnemonic() == Mnemonic::Call;
        if insn.op0_kind() == OpKind::Memory {
            let portal = at.wrapping_sub(BASE + 0x1_0100);
            if insn.segment_prefix() != Register::GS
                || portal % 8 != 0
                || portal / 8 >= self.built.imports as u64
            {
                return Err(format!("goes through {at:#x}"));
            }
            // the portal keeps what functions preserve
            for reg in [0, 1, 2, 6, 7, 8, 9, 10, 11] {
                self.regs[reg] = self.any();
            }
            self.rip = next;
            if !call {
                return match self.stack.pop() {
                    Some(Word::Host) => Ok(Some(End::Returned)),
                    Some(Word::Return(to)) => {
                        self.rip = to;
                        Ok(None)
                    }
                    other => Err(format!("returns to {other:?}")),
                };
            }
            return Ok(None);
        }
        if call {
            self.stack.push(Word::Return(next));
        }
        self.rip = match insn.op0_kind() {
            OpKind::Register => self.regs[number(insn.op0_register())],
            _ => target,
        };
        Ok(None)
    }

    /// Walks up until the counter ends or the guard zone does it.
    fn string(&mut self, op: &Op) -> Result<Option<End>, String> {
        use Mnemonic::*;
        let insn = &op.insn;
        let (source, target) = match insn.mnemonic() {
            Movsb | Movsw | Movsd | Movsq => (true, true),
            Cmpsb | Cmpsw | Cmpsd | Cmpsq => (true, true),
            Lodsb | Lodsw | Lodsd | Lodsq => (true, false),
            _ => (false, true),
        };
        let short = self.has_67(insn.len());
        if short || insn.segment_prefix() != Register::None {
            return Err("an override".into());
        }
        let mut fault = false;
        if target {
            fault |= self.access(self.regs[7], 8, op.writes)?;
        }
        if source {
            fault |= self.access(self.regs[6], 8, false)?;
        }
        if fault || self.rng.next() >> 40 & 3 == 0 {
            return Ok(Some(End::Fault));
        }
        for (reg, bits) in &op.results {
            let value = self.any();
            self.set(*reg, *bits, value);
        }
        self.rip = self.rip.wrapping_add(insn.len() as u64);
        let _ = op.stack;
        Ok(None)
    }
}

#[derive(Default, Debug)]
pub struct Tally {
    pub cases: u64,
    pub accepted: u64,
    pub runs: u64,
    pub returned: u64,
    pub faulted: u64,
}

/// Runs an accepted module from its entries; tells how it escaped.
pub fn execute(
    built: &Built,
    changes: u16,
    cache: &mut Cache,
    rng: &mut Rng,
    tally: &mut Tally,
) -> Option<String> {
    let marks = starts(built, cache);
    for _ in 0..4 {
        let entry = match built.exports.get(rng.below(built.exports.len() + 1)) {
            Some(export) => *export,
            None => built.text_at + 8 * rng.below(8) as u32,
        };
        tally.runs += 1;
        match Machine::new(built, &marks, cache, rng, entry).run(changes, 120) {
            Ok(End::Returned) => tally.returned += 1,
            Ok(End::Fault) => tally.faulted += 1,
            Ok(End::Steps) => {}
            Err(why) => return Some(why),
        }
    }
    None
}

//! The decoder against an independent one: lengths, memory operands, and what is written, on compiler-made
//! and random code.

mod common;

use common::decode;
use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory, OpAccess, Register};
use pebble_sfi_verify::decode::{Insn, NONE, P_67, P_GS, RIP, RSP};
use pebble_sfi_verify::table::{LD, ST, VSIB, class};

fn gpr(register: Register) -> Option<u8> {
    let full = register.full_register();
    full.is_gpr64().then(|| (full as u32 - Register::RAX as u32) as u8)
}

fn is_write(access: OpAccess) -> bool {
    use OpAccess::*;
    matches!(access, Write | CondWrite | ReadWrite | ReadCondWrite)
}

struct Judge {
    info: InstructionInfoFactory,
}

impl Judge {
    /// Why the two decoders disagree on an instruction that ours accepts.
    fn compare(&mut self, bytes: &[u8], ours: &Insn) -> Result<Instruction, String> {
        let mut theirs = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE).decode();
        if theirs.is_invalid() {
            // undefined here, whatever its length: it faults
            return Err("invalid".into());
        }
        if theirs.len() != ours.len as usize {
            return Err(format!("length {} and {}", theirs.len(), ours.len));
        }
        let string = ours.class == class::STRING;
        let stack =
            matches!(ours.class, class::PUSH | class::POP | class::CALL | class::RETURN | class::INDIRECT);
        if ours.mem {
            self.operand(&theirs, ours)?;
        }
        let info = self.info.info(&theirs);
        for memory in info.used_memory() {
            let (write, implicit) = (is_write(memory.access()), memory.base() == Register::RSP);
            if stack && implicit || string || memory.access() == OpAccess::NoMemAccess {
                continue;
            }
            let ours_does = ours.mem && ours.has(if write { ST } else { LD });
            if !ours_does {
                return Err(format!("memory {:?} unseen", memory.access()));
            }
        }
        for used in info.used_registers() {
            let Some(reg) = gpr(used.register()) else { continue };
            if reg == RSP {
                if !stack && !ours.names_rsp() {
                    return Err("rsp unseen".into());
                }
                continue;
            }
            if !is_write(used.access()) || string || ours.class == class::POP {
                continue;
            }
            if ours.written() >> reg & 1 == 0 {
                return Err(format!("write of {:?} unseen", used.register()));
            }
            if ours.zero_extends() && used.register().size() < 4 {
                return Err(format!("{:?} is not zero-extended", used.register()));
            }
        }
        if ours.zero_extends() && ours.written() != 0 {
            let wide = (0..theirs.op_count()).any(|i| {
                let written = is_write(info.op_access(i));
                written && theirs.op_register(i).is_gpr() && theirs.op_register(i).size() != 4
            });
            if wide {
                return Err("a result that is not 32 bits".into());
            }
        }
        theirs.set_ip(0);
        Ok(theirs)
    }

    fn operand(&self, theirs: &Instruction, ours: &Insn) -> Result<(), String> {
        let number = |register: Register| match register {
            Register::None => NONE,
            Register::RIP => RIP,
            other => match gpr(other) {
                Some(number) => number,
                None => NONE, // the vector index of a gather
            },
        };
        let base = number(theirs.memory_base());
        let index = number(theirs.memory_index());
        let disp = match base {
            RIP => theirs.ip_rel_memory_address().wrapping_sub(ours.len as u64) as i32,
            _ => theirs.memory_displacement64() as i32,
        };
        let gs = theirs.memory_segment() == Register::GS;
        let short = theirs.memory_base().size() == 4
            || theirs.memory_index().size() == 4
            || theirs.memory_base() == Register::None
                && !theirs.memory_index().is_gpr()
                && ours.prefix & P_67 != 0;
        let same = base == ours.base
            && index == ours.index
            && disp == ours.disp
            && gs == (ours.prefix & P_GS != 0)
            && short == (ours.prefix & P_67 != 0)
            && (index == NONE || theirs.memory_index_scale() == 1 << ours.scale)
            && ours.has(VSIB) == theirs.memory_index().is_vector_register();
        if same { Ok(()) } else { Err(format!("operand {base} {index} {disp} gs {gs} short {short}")) }
    }
}

struct Rng(u64);
impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[test]
fn random_code() {
    let mut judge = Judge { info: InstructionInfoFactory::new() };
    let mut rng = Rng(0x9e37_79b9_7f4a_7c15);
    let rounds: u64 = std::env::var("DECODER_ROUNDS").map_or(3_000_000, |n| n.parse().unwrap());
    let mut accepted = 0u64;
    const START: [&[u8]; 16] = [
        &[],
        &[],
        &[],
        &[0x66],
        &[0xf3],
        &[0xf2],
        &[0x65, 0x67],
        &[0x65],
        &[0xf0],
        &[0x0f],
        &[0x0f, 0x38],
        &[0x0f, 0x3a],
        &[0xc5],
        &[0xc4],
        &[0x48],
        &[0x66, 0x0f],
    ];
    for _ in 0..rounds {
        let mut bytes = [0u8; 32];
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&rng.next().to_le_bytes());
        }
        let mut at = 0;
        for _ in 0..rng.next() % 3 {
            for byte in START[rng.next() as usize % START.len()] {
                bytes[at] = *byte;
                at += 1;
            }
        }
        if bytes[at.saturating_sub(1)] == 0xc4 {
            bytes[at] = bytes[at] & 0xe0 | (rng.next() % 3 + 1) as u8;
        }
        let Ok(ours) = decode(&bytes, 0) else { continue };
        accepted += 1;
        if let Err(why) = judge.compare(&bytes[..15], &ours) {
            if why == "invalid" && ours.has(VSIB) {
                continue; // a gather whose registers are not distinct: undefined, it faults
            }
            panic!("{:02x?}: {why}\n{ours:x?}", &bytes[..15]);
        }
    }
    assert!(accepted > rounds / 10, "{accepted} of {rounds}");
    println!("{accepted} of {rounds} accepted");
}

/// This very program, or the files in `DECODER_FILES`: nearly all that compilers emit must be on the
/// allow-list.
#[test]
fn compiler_made_code() {
    let files = std::env::var("DECODER_FILES").unwrap_or_default();
    let mut files: Vec<std::path::PathBuf> = files.split_whitespace().map(Into::into).collect();
    if files.is_empty() {
        files.push(std::env::current_exe().unwrap());
    }
    let mut judge = Judge { info: InstructionInfoFactory::new() };
    let mut refused = std::collections::BTreeMap::<String, u64>::new();
    let (mut all, mut accepted) = (0u64, 0u64);
    for file in files {
        let elf = std::fs::read(&file).unwrap();
        let num = |at: usize, size| elf[at..at + size].iter().rev().fold(0, |n, b| n << 8 | *b as usize);
        for i in 0..num(60, 2) {
            let header = num(40, 8) + 64 * i;
            // allocated, executable, with bytes in the file
            if num(header + 8, 8) & 6 != 6 || num(header + 4, 4) != 1 {
                continue;
            }
            let (offset, size) = (num(header + 24, 8), num(header + 32, 8));
            let mut text = elf[offset..offset + size].to_vec();
            text.extend([0xcc; 32]);
            let mut at = 0;
            while at < size {
                let theirs = Decoder::with_ip(64, &text[at..], 0, DecoderOptions::NONE).decode();
                all += 1;
                match decode(&text, at) {
                    Ok(ours) => {
                        accepted += 1;
                        judge.compare(&text[at..], &ours).unwrap_or_else(|why| panic!("{theirs}: {why}"));
                    }
                    Err(_) => *refused.entry(format!("{:?}", theirs.code())).or_default() += 1,
                }
                at += theirs.len().max(1);
            }
        }
    }
    let mut refused: Vec<_> = refused.into_iter().map(|(code, n)| (n, code)).collect();
    refused.sort();
    for (n, code) in refused.iter().rev().take(40) {
        println!("{n} {code}");
    }
    println!("{accepted} of {all}");
    assert!(all > 10_000 && accepted * 100 > all * 99, "{accepted} of {all}: {refused:?}");
}

//! Test modules: assembled by clang, linked by lld as the contract lays a module out, read back from the ELF
//! file.
#![allow(dead_code)]

pub mod emulator;
pub mod mutants;

use pebble_sfi_verify::decode::Insn;
use pebble_sfi_verify::{Level, Module, Refusal, Rule, Summary, scratch_words, verify};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Clone, Debug)]
pub struct Built {
    pub level: Level,
    pub text: Vec<u8>,
    pub text_at: u32,
    pub ftab_size: u32,
    pub rodata: Vec<u8>,
    pub rodata_at: u32,
    pub data: std::ops::Range<u32>,
    pub facts: Vec<u8>,
    pub labels: Vec<u8>,
    pub exports: Vec<u32>,
    pub imports: u32,
    pub symbols: HashMap<String, u32>,
}

impl Built {
    pub fn module(&self) -> Module<'_> {
        Module {
            level: self.level,
            text: &self.text,
            text_at: self.text_at,
            ftab_size: self.ftab_size,
            rodata: &self.rodata,
            rodata_at: self.rodata_at,
            data: self.data.clone(),
            facts: &self.facts,
            labels: &self.labels,
            exports: &self.exports,
            imports: self.imports,
        }
    }

    /// Finds the labels, as the linking step does.
    pub fn relabel(&mut self) {
        self.labels = pebble_sfi_labels::find(&self.module());
    }

    pub fn verify(&self) -> Result<Summary, Refusal> {
        verify(&self.module(), &mut vec![!0; scratch_words(self.text.len())])
    }
}

const SCRIPT: &str = "
SECTIONS {
  . = 0x20000;
  .text : { *(.pbl.ftab) *(.text .text.*) }
  . = ALIGN(4096);
  .rodata : { KEEP(*(.rodata .rodata.*)) BYTE(0) }
  . = ALIGN(4096);
  .data : { KEEP(*(.data .data.* .bss .bss.*)) BYTE(0) }
  .pbl.facts 0 : { KEEP(*(.pbl.facts)) }
  /DISCARD/ : { *(.comment) *(.note*) *(.eh_frame*) }
}";

/// The instruction at `text[at..]`.
pub fn decode(text: &[u8], at: usize) -> Result<Insn, Rule> {
    let mut insn = Insn::default();
    pebble_sfi_verify::decode::decode(text, at, &mut insn).map(|()| insn)
}

pub const PRELUDE: &str = include_str!("prelude.s");

pub fn run(command: &mut Command) {
    let out = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(out.status.success(), "{command:?}: {}", String::from_utf8_lossy(&out.stderr));
}

pub fn scratch_dir(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// Assembles `source` behind the prelude.
pub fn assemble(dir: &Path, name: &str, source: &str) -> Built {
    let path = |ext: &str| dir.join(format!("{name}.{ext}"));
    std::fs::write(path("s"), format!("{PRELUDE}\n{source}\n")).unwrap();
    std::fs::write(path("ld"), SCRIPT).unwrap();
    let cc = Command::new("clang-19")
        .args(["-c", "-Wno-unused-command-line-argument"])
        .arg(path("s"))
        .arg("-o")
        .arg(path("o"))
        .output()
        .unwrap();
    assert!(cc.status.success(), "{name}: {}", String::from_utf8_lossy(&cc.stderr));
    run(Command::new("ld.lld-19")
        .args(["-e", "0", "--noinhibit-exec", "--no-warnings", "-T"])
        .arg(path("ld"))
        .arg(path("o"))
        .arg("-o")
        .arg(path("elf")));
    let mut built = read(&std::fs::read(path("elf")).unwrap());
    built.level = if source.contains("# level full") { Level::Full } else { Level::Write };
    built.imports = 4;
    built.exports.extend(built.symbols.get("main"));
    built.relabel();
    built
}

fn num(bytes: &[u8], at: usize, size: usize) -> usize {
    bytes[at..at + size].iter().rev().fold(0, |n, b| n << 8 | *b as usize)
}

/// Sections and symbols of a little-endian ELF64 file that is trusted.
fn read(elf: &[u8]) -> Built {
    let mut built = Built {
        level: Level::Write,
        text: vec![],
        text_at: 0,
        ftab_size: 64,
        rodata: vec![],
        rodata_at: 0,
        data: 0..0,
        facts: vec![],
        labels: vec![],
        exports: vec![],
        imports: 0,
        symbols: HashMap::new(),
    };
    let (shoff, count, names) = (num(elf, 40, 8), num(elf, 60, 2), num(elf, 62, 2));
    let header = |i: usize| &elf[shoff + 64 * i..shoff + 64 * i + 64];
    let text_of = |table: usize, at: usize| {
        let start = num(header(table), 24, 8) + at;
        let end = start + elf[start..].iter().position(|b| *b == 0).unwrap();
        String::from_utf8_lossy(&elf[start..end]).into_owned()
    };
    for i in 0..count {
        let h = header(i);
        let (at, offset, size) = (num(h, 16, 8) as u32, num(h, 24, 8), num(h, 32, 8));
        match text_of(names, num(h, 0, 4)).as_str() {
            ".text" => (built.text, built.text_at) = (elf[offset..offset + size].to_vec(), at),
            ".rodata" => (built.rodata, built.rodata_at) = (elf[offset..offset + size].to_vec(), at),
            ".data" => built.data = at..at + size as u32,
            ".pbl.facts" => built.facts = elf[offset..offset + size].to_vec(),
            ".symtab" => {
                for symbol in elf[offset..offset + size].chunks_exact(24) {
                    let name = text_of(num(h, 40, 4), num(symbol, 0, 4));
                    built.symbols.insert(name, num(symbol, 8, 8) as u32);
                }
            }
            _ => {}
        }
    }
    built
}

/// A linked module, as the tool makes it.
pub fn module_file(path: &Path) -> Built {
    let elf = std::fs::read(path).unwrap();
    let mut built = read(&elf);
    let magic = 0x4d4c_4250u32.to_le_bytes();
    let at = elf.windows(4).position(|w| w == magic).expect("a module header");
    let word = |i: usize| num(&elf, at + i, 4) as u32;
    built.level = if elf[at + 6] == 1 { Level::Write } else { Level::Full };
    built.ftab_size = word(12);
    built.text.truncate((word(20) - word(16)) as usize);
    built.data = word(32)..word(36);
    built.exports = (0..word(56) as usize).map(|i| word(64 + 16 * i + 4)).collect();
    built.imports = word(60);
    built.relabel();
    built
}

//! What the tests share: a random source that repeats itself, and LLVM's disassembler.
#![allow(dead_code)]

pub mod cases;
pub mod edit;
pub mod golden;
pub mod mips64;
pub mod words;

use std::collections::HashMap;
use std::io::Write;
use std::process::{Command, Stdio};

/// xorshift64*: the same numbers in every run.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, n: usize) -> usize {
        ((self.next() >> 32) % n as u64) as usize
    }
}

fn run(tool: &str, args: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child =
        Command::new(tool).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap_or_else(
            |e| panic!("this test compares with LLVM 19 and needs `{tool}` (package llvm-19): {e}"),
        );
    let mut stdin = child.stdin.take().expect("piped");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap_or_else(|e| panic!("{tool}: {e}"));
    writer.join().expect("writer").unwrap_or_else(|e| panic!("{tool}: {e}"));
    assert!(output.status.success(), "{tool} failed: {}", output.status);
    output.stdout
}

/// Distance of the words in the disassembled text: a word that is no instruction must not swallow the next.
pub const STRIDE: usize = 16;

/// How LLVM is asked about a processor's instructions; `filler` is one of them.
pub struct Dialect {
    triple: &'static str,
    features: &'static str,
    options: &'static [&'static str],
    filler: u32,
}

pub const RISCV64: Dialect = Dialect {
    triple: "--triple=riscv64",
    features: "--mattr=+d,+zicsr,+zifencei,+sstc",
    options: &["-M", "no-aliases"],
    filler: 0x13,
};
pub const MIPS64: Dialect =
    Dialect { triple: "--triple=mips64el", features: "--mcpu=mips64r2", options: &[], filler: 0 };

/// What `llvm-objdump` prints for each word, with decimal immediates and single blanks; word `i` is at
/// address `i * STRIDE`.
pub fn disassemble(dialect: &Dialect, words: &[u32]) -> Vec<String> {
    let Dialect { triple, features, options, filler } = dialect;
    let source: String =
        words.iter().map(|w| format!(".4byte {w:#x}, {filler}, {filler}, {filler}\n")).collect();
    let object = run("llvm-mc-19", &[triple, features, "--filetype=obj", "-o", "-"], source.as_bytes());
    let id = words.iter().fold(0u32, |a, w| a.rotate_left(5) ^ w);
    let file = std::env::temp_dir().join(format!("pebble-isa-{}-{id:08x}.o", std::process::id()));
    std::fs::write(&file, object).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let path = file.to_str().expect("a path in UTF-8");
    let common = ["-d", "-z", "--no-print-imm-hex", "--no-show-raw-insn", triple, features, path];
    let listing =
        String::from_utf8(run("llvm-objdump-19", &[*options, &common].concat(), &[])).expect("text");
    std::fs::remove_file(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let lines: HashMap<usize, String> = listing
        .lines()
        .filter_map(|line| {
            let (address, text) = line.split_once(':')?;
            let address = usize::from_str_radix(address.trim(), 16).ok()?;
            let text = text.split(" <").next().unwrap_or_default();
            Some((address, text.split_whitespace().collect::<Vec<_>>().join(" ")))
        })
        .collect();
    (0..words.len()).map(|i| lines.get(&(i * STRIDE)).expect("a line for each word").clone()).collect()
}

//! Portals between a process and its fault domains: golden files, the verifier, and the decoder against LLVM.
//!
//! `BLESS=1 cargo test -p pebble-portal --test fault` writes the golden files anew.

mod common;

use common::golden::{self, Made};
use pebble_portal::fault::emit::x86_64::{EmitError, emit};
use pebble_portal::fault::verify::x86_64::verify;
use pebble_portal::fault::{Code, Crossing, Door, Way};
use pebble_portal::isa::x86_64::decode::{Insn, decode};
use std::fmt::Write;

fn crossing(way: Way) -> Crossing {
    Crossing {
        way,
        caller_slot: 0x1554,
        callee_slot: 0x1558,
        entry: 0x1558_0002_0040,
        current: -0x40,
        no_stack: 0x5555_0000_1000,
        lend: 0x5555_0000_2000,
        give_back: 0x5555_0000_3000,
        description: 0x5555_0000_4000,
        touched: 1 << 3 | 0xf << 12,
        control: false,
        x87: false,
        caller_control: false,
        caller_x87: false,
        hide: way == Way::Out,
        wide: way != Way::Out,
        link: 3,
        index: 9,
        constant: 0x1122_3344_5566,
        caller: 7,
    }
}

fn cases() -> Vec<(String, Door, Crossing)> {
    let ways = [("in", Way::In), ("out", Way::Out), ("across", Way::Across)];
    let specs = [
        "sm", "smii", "smiiiiii", "sp", "sfii", "nm", "npiii", "nf", "smcid=ai", "smh", "nphi", "smwi",
        "npwroki", "sfgt", "smcaiiii",
    ];
    let mut out = vec![];
    for (name, way) in ways {
        for spec in specs {
            let door = Door::parse(spec).unwrap_or_else(|e| panic!("{spec}: {e}"));
            if way == Way::Across && door.lends() {
                continue;
            }
            let file = format!("{name}-{}", spec.replace('=', "x"));
            out.push((file, door.clone(), crossing(way)));
            let domain = way != Way::In;
            let all = Crossing {
                control: true,
                x87: true,
                caller_control: domain,
                caller_x87: domain,
                hide: true,
                wide: true,
                ..crossing(way)
            };
            out.push((format!("{name}-{}-hide", spec.replace('=', "x")), door, all));
        }
    }
    out
}

fn text(code: &Code, door: &Door) -> String {
    let mut out = format!(
        "{:?} {:?} \"{}\", {} bytes\n\n",
        door.stack,
        door.state,
        String::from_utf8_lossy(&door.args),
        code.bytes.len()
    );
    let mut at = 0;
    while at < code.pool_at as usize {
        let (insn, next) = decode(&code.bytes, at).unwrap_or_else(|| panic!("{at:#x}"));
        if at == code.site as usize {
            out += "return\n";
        }
        if insn != Insn::Trap {
            writeln!(out, "{at:4x}: {insn}").unwrap();
        }
        at = next;
    }
    for word in code.bytes[code.pool_at as usize..].chunks(8) {
        writeln!(out, "{at:4x}: .quad {:#x}", u64::from_le_bytes(word.try_into().unwrap())).unwrap();
        at += 8;
    }
    out
}

/// Each way, and those in which much comes together.
const SHOWN: [&str; 14] = [
    "across-nphi",
    "across-sfii",
    "across-sfii-hide",
    "across-sm",
    "in-nf",
    "in-npiii",
    "in-npwroki",
    "in-sfgt",
    "in-sm",
    "in-smcidxai",
    "out-npwroki",
    "out-sfii",
    "out-sm",
    "out-smh",
];

#[test]
fn portals_are_as_blessed() {
    let made = cases().into_iter().map(|(name, door, c)| {
        let code = emit(&door, &c).unwrap();
        Made { name, bytes: code.bytes.len(), text: text(&code, &door) }
    });
    golden::compare("fault/x86_64", &SHOWN, made);
}

#[test]
fn every_portal_is_accepted() {
    for (name, door, c) in cases() {
        let code = emit(&door, &c).unwrap();
        if let Err(refusal) = verify(&code.bytes, code.pool_at.into(), &door, &c) {
            panic!("{name}: {refusal}\n{}", text(&code, &door));
        }
    }
}

/// Each instruction left out, one at a time: the verifier must miss it, unless nothing depends on it.
#[test]
fn no_instruction_can_be_missing() {
    let mut missed = vec![];
    for (name, door, c) in cases() {
        let code = emit(&door, &c).unwrap();
        let mut at = 0;
        while at < code.pool_at as usize {
            let (insn, next) = decode(&code.bytes, at).unwrap();
            let mut bytes = code.bytes.to_vec();
            // Something of the same length that does nothing: a move of a register that nobody reads onto
            // itself, where it fits.
            let nothing: &[u8] = match next - at {
                3 => &[0x48, 0x89, 0xc0],
                6 => &[0x48, 0x89, 0xc0, 0x48, 0x89, 0xc0],
                9 => &[0x48, 0x89, 0xc0, 0x48, 0x89, 0xc0, 0x48, 0x89, 0xc0],
                12 => &[0x48, 0x89, 0xc0].repeat(4),
                _ => &[],
            };
            if !nothing.is_empty() {
                bytes[at..next].copy_from_slice(nothing);
                if verify(&bytes, code.pool_at.into(), &door, &c).is_ok() {
                    missed.push(format!("{name} {at:#x} {insn}"));
                }
            }
            at = next;
        }
    }
    // Scrubbing a register that is zero already, or of a value that is let pass; keeping what is kept twice.
    let harmless = |m: &String| m.contains(" zero ") || m.contains("mov rsi, r") || m.contains("[rsp+0x30]");
    let harmful: Vec<_> = missed.iter().filter(|m| !harmless(m)).collect();
    assert!(harmful.is_empty(), "{harmful:#?}");
}

#[test]
fn changed_bits_are_refused_or_harmless() {
    let (mut refused, mut accepted) = (0, vec![]);
    for (name, door, c) in cases() {
        let code = emit(&door, &c).unwrap();
        for bit in 0..code.pool_at as usize * 8 {
            let mut bytes = code.bytes.to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            match verify(&bytes, code.pool_at.into(), &door, &c) {
                Ok(()) => accepted.push((name.clone(), bit / 8, bytes[bit / 8])),
                Err(_) => refused += 1,
            }
        }
    }
    let share = accepted.len() as f64 / (refused + accepted.len()) as f64;
    eprintln!("{share}");
    assert!(share < 0.05, "{share}: {:x?}", &accepted[..accepted.len().min(200)]);
}

#[test]
fn what_cannot_be_is_named() {
    assert_eq!(emit(&Door::parse("smw").unwrap(), &crossing(Way::Across)), Err(EmitError::LendAcross));
    for (spec, column) in
        [("", 1), ("x", 1), ("s", 2), ("sq", 2), ("smx", 3), ("smiiiiiii", 9), ("smi>2", 4), ("smé", 3)]
    {
        let error = Door::parse(spec).expect_err(spec).to_string();
        assert!(error.starts_with(&format!("column {column}:")), "{spec}: {error}");
    }
}

/// Lengths and operations as LLVM's disassembler has them.
#[test]
fn the_decoder_agrees_with_llvm() {
    let place = std::env::temp_dir().join(format!("pebble-portal-sfi-{}", std::process::id()));
    for (name, door, c) in cases() {
        let code = emit(&door, &c).unwrap();
        let bytes: String =
            code.bytes[..code.pool_at as usize].iter().map(|b| format!("0x{b:02x} ")).collect();
        std::fs::write(&place, bytes).unwrap();
        let out = std::process::Command::new("llvm-mc-19")
            .args(["--disassemble", "--triple=x86_64", "--output-asm-variant=1", "-mattr=+avx,+fsgsbase"])
            .arg(&place)
            .output()
            .unwrap();
        assert!(
            out.status.success() && out.stderr.is_empty(),
            "{name}: {}",
            String::from_utf8_lossy(&out.stderr)
        );
        let theirs: Vec<String> = String::from_utf8_lossy(&out.stdout)
            .lines()
            .filter_map(|l| l.split_whitespace().next().map(str::to_string))
            .filter(|word| word != ".text")
            .collect();
        let (mut ours, mut at) = (vec![], 0);
        while at < code.pool_at as usize {
            let (insn, next) = decode(&code.bytes, at).unwrap();
            let word = insn.to_string().split_whitespace().next().unwrap().to_string();
            ours.push(match word.as_str() {
                "mov32" => "mov".into(),
                "zero" => "xor".into(),
                "cmp32" => "cmp".into(),
                "add32" => "add".into(),
                _ => word,
            });
            at = next;
        }
        let theirs: Vec<String> =
            theirs.into_iter().map(|w| if w == "movabs" { "mov".into() } else { w }).collect();
        assert_eq!(ours, theirs, "{name}");
    }
    let _ = std::fs::remove_file(place);
}

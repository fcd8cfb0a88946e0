//! Golden files: the intermediate representation and the code of one portal of every shape.
//!
//! `BLESS=1 cargo test -p pebble-portal --test golden` writes them anew; read the difference before
//! committing it.

mod common;

use common::cases::{self, Case};
use common::golden::{Made, compare};
use pebble_portal::Processor;
use pebble_portal::hardware::hole::{Facts, Named};
use pebble_portal::hardware::{Shape, ir};
use pebble_portal::isa::{mips64, riscv64};
use std::fmt::Write;

fn describe(case: &Case) -> Result<String, std::fmt::Error> {
    let (form, code) = (case.form(), case.compile());
    let lowered =
        ir::lower(&case.spec, case.shape, &Facts::of(&case.connection), cases::layout(case.processor));
    let mut out = String::new();
    let c = &case.connection;
    match case.shape {
        Shape::Call | Shape::Wait(_) | Shape::Signal(_) | Shape::Tail => {
            writeln!(out, "{:?} \"{}\"", case.shape, case.spec)?;
        }
        shape => writeln!(out, "{shape:?}")?,
    }
    for (name, domain) in [("caller", c.caller), ("callee", c.callee)] {
        // Most portals need not know how a domain's memory is lent.
        writeln!(out, "{name} {}", format!("{domain:x?}").replace(", l1: 0, windows: 0", ""))?;
    }
    writeln!(
        out,
        "frame {} words, call {} instructions, {} bytes in all\n",
        code.frame_words,
        code.call_words,
        code.len()
    )?;
    for (name, ops) in [("call", &lowered.call), ("return", &lowered.ret)] {
        for op in ops {
            // Few portals are stubs.
            let op = op.to_string().replace(", stub: false", "");
            writeln!(out, "{name:6} {op}")?;
        }
    }
    writeln!(out)?;
    let ret_at = code.ret_at.map_or(code.len(), usize::from);
    let ret_end = ret_at + usize::from(code.ret_words) * 4;
    let double =
        |words: &[u32], i: usize| words.get(i..i + 2).map(|w| u64::from(w[0]) | u64::from(w[1]) << 32);
    for (i, word) in code.words.iter().enumerate() {
        let at = i * 4;
        if at >= usize::from(code.call_words) * 4 && at < ret_at || at >= ret_end {
            let filled = double(&code.words, i).filter(|_| at >= usize::from(code.pool_at) && at % 8 == 0);
            if let (Some(filled), Some(symbol)) = (filled, double(&form.words, i)) {
                let name = if filled == symbol { String::new() } else { format!("  # {}", Named(symbol)) };
                writeln!(out, "{at:4x}: .dword {filled:#x}{name}")?;
            }
            continue;
        }
        let text = match case.processor {
            Processor::Mips64 => mips64::decode::decode(*word).map(|insn| insn.to_string()),
            _ => riscv64::decode::decode(*word).map(|insn| insn.to_string()),
        };
        match text {
            Some(text) => writeln!(out, "{at:4x}: {text}")?,
            None => writeln!(out, "{at:4x}: .word {word:#010x}")?,
        }
    }
    Ok(out)
}

/// One of a kind, and those in which much comes together.
const SHOWN: [&str; 26] = [
    "bounce",
    "call-nf",
    "call-npadheqc",
    "call-npci-4",
    "call-npcii",
    "call-sm",
    "call-smiiii",
    "counted",
    "dispatch",
    "exception",
    "exclusive",
    "interrupt-float",
    "leave-timeout",
    "no-stack",
    "none",
    "semaphore-p",
    "short-stack-offer",
    "short-thread",
    "stub-nmeqw",
    "switch",
    "tail",
    "thread-exit",
    "window-npciwkt300-3",
    "window-npg",
    "window-npt",
    "window-npw",
];

fn compare_all(processor: Processor) {
    let made = cases::all().into_iter().map(|case| case.on(processor)).map(|case| {
        let text = describe(&case).expect("text");
        Made { bytes: case.compile().len(), name: case.name, text }
    });
    compare(&format!("hardware/{}", processor.name()), &SHOWN, made);
}

#[test]
fn portals_are_as_blessed() {
    cases::PROCESSORS.into_iter().for_each(compare_all);
}

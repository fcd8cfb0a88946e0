//! The deepest that the stacks of the essential components get: whichever overflows is the end of the
//! machine.
//!
//! From the disassembly of each: the frame of every function, and whom it calls. A chain of calls is as deep
//! as its frames are together. Whatever goes in circles must be in [`CIRCLES`], with the reason why it ends;
//! a call through a pointer leads to any function whose address is taken, unless a portal leads there. So the
//! sum is an upper bound, but for two things that it takes for granted: a jump through a register is a
//! `switch`, and a panic, which is the end itself, needs no room.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use object::{Object, ObjectSection, SectionKind};
use pebble_abi::map;
use pebble_arch::Processor;
use pebble_image::manifest::Manifest;

use super::context::Context;
use crate::tools::Tools;
use crate::{build, ui};

/// How often a function can be on the stack at once, if it can be more than once; of each circle one function
/// is enough.
const CIRCLES: &[(&str, usize)] = &[
    // A branch within a branch (`MAX_DEPTH`), and the way of a refusal.
    ("verify::leg::Verifier<pebble_arch::riscv64::Riscv64>>::leg", 4),
    // What it skips is read without either of them, and the way of a refusal refuses nothing.
    ("verify::leg::Verifier<pebble_arch::riscv64::Riscv64>>::unless_borrowed", 1),
    ("verify::leg::Verifier<pebble_arch::riscv64::Riscv64>>::refuse", 1),
    // Once more for what is skipped.
    ("verify::machine::Machine>::straight", 5),
    // Of an outermost controller, then of its child, which has no children to be served.
    ("manager::Manager<pebble_arch::riscv64::Riscv64>>::fill", 2),
    ("manager::Manager<pebble_arch::riscv64::Riscv64>>::replicate", 1),
    // An operation that stands for another.
    ("Emitter>::op", 2),
    // From the end, past a last empty part.
    ("SplitInternal<char>>::next_back", 2),
    // Who leaves a queue has the others enter it again, who are in none.
    ("wait::Waiters<", 2),
    // A text within a text: of a list, of an error, of its cause.
    ("core::fmt::write", 3),
];

/// Who calls through a pointer, and what alone: what is formatted goes to where the text goes, and what the
/// portal manager serves is a closure of its entries.
const POINTERS: &[(&str, &str)] = &[
    ("portal_manager::serve", "{closure"),
    ("core::fmt::Formatter>::", WRITES),
    ("as core::fmt::Write>::", WRITES),
    (">::fmt", WRITES),
    ("core::fmt::write", "core::fmt::"),
];
const WRITES: &str = "core::fmt::Write>::write_";

/// What is not looked into: the component says why it ends, and ends.
const END: &[&str] =
    &["core::panicking::", "slice_error_fail", "::panic_", "handle_alloc_error", "unwrap_failed"];

#[derive(Default)]
struct Function {
    name: String,
    frame: u64,
    calls: BTreeSet<u64>,
    /// It calls through a pointer.
    pointer: bool,
}

/// By address.
type Functions = BTreeMap<u64, Function>;

/// This reads the assembly of one processor.
pub const READER: (&str, fn(&Tools) -> bool) =
    ("a reader of the processor's assembly", |tools| tools.board.processor == Processor::Riscv64);

pub fn no_essential_stack_overflows(context: &mut Context) -> Result<()> {
    let tools = context.tools();
    let elfs = build::elfs(&context.image("default")?);
    let manifest = Manifest::load(&tools.manifest("default")?, &tools.board)?;
    let mut wrong = Vec::new();
    for component in manifest.component.iter().filter(|c| c.essential) {
        let elf = elfs.get(&component.name).with_context(|| format!("no ELF file of {}", component.name))?;
        let room = component.stack_pages as u64 * map::PAGE;
        let deepest = deepest(&functions(tools, elf)?).with_context(|| component.name.clone())?;
        ui::note(&format!("{}: {} of {room} bytes", component.name, deepest.0));
        if deepest.0 > room {
            wrong.push(format!(
                "{}: {} of {room} bytes: {}",
                component.name,
                deepest.0,
                deepest.1.join(" > ")
            ));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("; "));
    Ok(())
}

/// The functions of a component, from its disassembly and its data.
fn functions(tools: &Tools, elf: &Path) -> Result<Functions> {
    let output =
        Command::new(tools.llvm("llvm-objdump")?).args(["-d", "--no-show-raw-insn"]).arg(elf).output()?;
    ensure!(output.status.success(), "llvm-objdump: {}", String::from_utf8_lossy(&output.stderr).trim());
    let text = String::from_utf8_lossy(&output.stdout);
    let (mut functions, mut at) = (Functions::new(), 0);
    // The register and what `auipc` has put there just before.
    let mut high = None;
    let mut taken = BTreeSet::new();
    for line in text.lines() {
        if let Some((address, name)) = heading(line) {
            if !name.starts_with(".L") {
                at = address;
                functions.insert(
                    at,
                    Function { name: format!("{:#}", rustc_demangle::demangle(name)), ..Function::default() },
                );
            }
            continue;
        }
        let Some((address, instruction)) = line.trim_start().split_once(':') else { continue };
        let (Ok(address), Some(function)) = (number(address), functions.get_mut(&at)) else { continue };
        let words: Vec<&str> =
            instruction.split([' ', '\t', ',', '(', ')']).filter(|w| !w.is_empty()).collect();
        match *words.as_slice() {
            ["addi", "sp", "sp", less] if less.starts_with('-') => function.frame += number(&less[1..])?,
            ["sub" | "add", "sp", "sp", ..] => {
                bail!("{}: a frame whose size is not a constant", function.name)
            }
            ["addi", _, from, low] => {
                taken.extend(high.filter(|(x, _)| *x == from).map(|(_, pc)| sum(pc, low)).transpose()?)
            }
            ["jalr" | "jr", low, from, ..] if low.contains("0x") => match high.filter(|(x, _)| *x == from) {
                Some((_, pc)) => drop(function.calls.insert(sum(pc, low)?)),
                None => function.pointer = true,
            },
            ["jalr", ..] => function.pointer = true,
            [jump, .., target, label] if jump.starts_with(['j', 'b']) && label.starts_with('<') => {
                function.calls.insert(number(target)?);
            }
            _ => {}
        }
        high = match *words.as_slice() {
            ["auipc", x, upper] => {
                Some((x, address.wrapping_add(((number(upper)? << 44) as i64 >> 32) as u64)))
            }
            _ => None,
        };
    }
    // From places to the functions in which they are. A jump within a function is none to another.
    let starts: Vec<u64> = functions.keys().copied().collect();
    let function_of = |place: u64| starts[..starts.partition_point(|start| *start <= place)].last().copied();
    for (start, function) in &mut functions {
        function.calls = function
            .calls
            .iter()
            .filter(|place| *place == start || function_of(**place) != Some(*start))
            .filter_map(|place| function_of(*place))
            .collect();
    }
    let bytes = std::fs::read(elf)?;
    taken.extend(words_of_data(&bytes)?);
    let image = (tools.isa.parse)(&bytes, u64::MAX).map_err(|problem| anyhow::anyhow!("{problem:?}"))?;
    let entries: BTreeSet<u64> = image.exports.iter().map(|e| e.entry).chain([image.entry]).collect();
    let pointed: Vec<u64> =
        starts.iter().copied().filter(|start| taken.contains(start) && !entries.contains(start)).collect();
    let names: BTreeMap<u64, String> = pointed.iter().map(|at| (*at, functions[at].name.clone())).collect();
    for function in functions.values_mut().filter(|f| f.pointer) {
        let callee = POINTERS
            .iter()
            .find(|(caller, _)| function.name.contains(caller))
            .map_or("", |(_, callee)| callee);
        function.calls.extend(pointed.iter().filter(|at| names[at].contains(callee)));
    }
    functions.retain(|_, f| !END.iter().any(|end| f.name.contains(end)));
    Ok(functions)
}

/// Address and name, where a function begins.
fn heading(line: &str) -> Option<(u64, &str)> {
    let (address, name) = line.strip_suffix(">:")?.split_once(" <")?;
    Some((number(address).ok()?, name))
}

fn number(hex: &str) -> Result<u64> {
    u64::from_str_radix(hex.trim_start_matches("0x"), 16).with_context(|| format!("{hex:?} is no number"))
}

fn sum(base: u64, offset: &str) -> Result<u64> {
    Ok(match offset.strip_prefix('-') {
        Some(less) => base.wrapping_sub(number(less)?),
        None => base.wrapping_add(number(offset)?),
    })
}

/// All that could be an address.
fn words_of_data(elf: &[u8]) -> Result<Vec<u64>> {
    let file = object::File::parse(elf)?;
    let data = file.sections().filter(|s| matches!(s.kind(), SectionKind::Data | SectionKind::ReadOnlyData));
    let mut words = Vec::new();
    for section in data {
        words.extend(section.data()?.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)));
    }
    Ok(words)
}

/// The deepest chain of calls: its bytes, and the functions.
fn deepest(functions: &Functions) -> Result<(u64, Vec<String>)> {
    let circular = functions.keys().copied().filter(|at| reached(functions, *at).contains(at)).collect();
    let mut search = Search { functions, circular, known: BTreeMap::new(), path: Vec::new() };
    let mut best = (0, Vec::new());
    for start in functions.keys() {
        best = best.max(search.below(*start)?);
    }
    let named = |at: &u64| format!("{} ({})", functions[at].name, functions[at].frame);
    Ok((best.0, best.1.iter().map(named).collect()))
}

/// All that a function leads to.
fn reached(functions: &Functions, from: u64) -> BTreeSet<u64> {
    let (mut found, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(function) = next.pop().and_then(|at| functions.get(&at)) {
        next.extend(function.calls.iter().filter(|at| functions.contains_key(at) && found.insert(**at)));
    }
    found
}

struct Search<'a> {
    functions: &'a Functions,
    /// Functions that lead to themselves.
    circular: BTreeSet<u64>,
    /// What is below a function, whatever is above it.
    known: BTreeMap<u64, (u64, Vec<u64>)>,
    path: Vec<u64>,
}

impl Search<'_> {
    /// The deepest chain that begins here, below the path so far.
    fn below(&mut self, at: u64) -> Result<(u64, Vec<u64>)> {
        let open = self.path.iter().any(|above| self.circular.contains(above)) && self.circular.contains(&at);
        if let Some(known) = self.known.get(&at).filter(|_| !open) {
            return Ok(known.clone());
        }
        if let Some(before) = self.path.iter().rposition(|above| *above == at) {
            let bounded = |at: &u64| self.most(*at).is_some();
            ensure!(
                self.path[before..].iter().any(bounded),
                "a circle that nothing bounds: {}",
                self.shown(before)
            );
        }
        let mut best = (0, Vec::new());
        self.path.push(at);
        for next in &self.functions[&at].calls {
            let times = self.path.iter().filter(|above| *above == next).count();
            if self.functions.contains_key(next) && self.most(*next).is_none_or(|most| times < most) {
                best = best.max(self.below(*next)?);
            }
        }
        self.path.pop();
        best.0 += self.functions[&at].frame;
        best.1.insert(0, at);
        if !self.path.iter().any(|above| self.circular.contains(above)) || !self.circular.contains(&at) {
            self.known.insert(at, best.clone());
        }
        Ok(best)
    }

    fn most(&self, at: u64) -> Option<usize> {
        let name = &self.functions[&at].name;
        CIRCLES.iter().find(|(part, _)| name.contains(part)).map(|(_, most)| *most)
    }

    fn shown(&self, from: usize) -> String {
        let names: Vec<&str> = self.path[from..].iter().map(|at| self.functions[at].name.as_str()).collect();
        names.join(" > ")
    }
}

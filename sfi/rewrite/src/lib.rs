//! Rewrites the assembly of a stock compiler into confined assembly (the contract:
//! docs/src/fault-domains.md).
//!
//! Problem: code that can only write, jump (and read) in its own segment, without a forked compiler.
//! Strategy: parse AT&T assembly, follow the stack of every function (`stack`), find the targets of indirect
//! jumps (`tables`), then print each instruction in a form that the verifier accepts (`emit`, `confine`).
//! Nothing here is trusted: a mistake makes a module that is rejected or wrong, never one that escapes.
#![forbid(unsafe_code)]

mod base;
mod chain;
mod confine;
mod emit;
pub mod error;
mod flow;
mod isa;
mod normal;
mod operand;
mod parse;
mod records;
mod scratch;
mod stack;
mod symbols;
mod tables;

pub use error::Error;

/// What is confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Stores and jumps.
    Write,
    /// Loads too.
    Full,
    /// As `Full`, and an access outside the segment traps at the instruction.
    Check,
}

/// Optimisations, each of which can be switched off to measure it.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub level: Level,
    /// Loop-invariant hoisting: the segment base is kept in a register where loads are chained. Off unless
    /// asked for: it only pays on processors, and at segments, where a segment-relative load has a longer
    /// latency.
    pub base: bool,
    /// Checks merged: such loads through one pointer share its zero-extended copy.
    pub merge: bool,
    /// Guard zones: displacements are added to a checked address without another check.
    pub guard: bool,
    /// The stack pointer as dedicated register: accesses relative to it are not checked.
    pub stack: bool,
    /// Small constant changes of the stack pointer are not checked.
    pub elide: bool,
    /// Instructions that read a clock of the processor's are refused.
    pub no_timer: bool,
}

impl Options {
    pub fn new(level: Level) -> Options {
        Options { level, base: false, merge: true, guard: true, stack: true, elide: true, no_timer: false }
    }
}

/// Assembly in, confined assembly out. `file` is for messages.
pub fn rewrite(text: &str, file: &str, options: &Options) -> Result<String, Error> {
    confined(text, file, options).map_err(|error| error.with_source(text))
}

fn confined(text: &str, file: &str, options: &Options) -> Result<String, Error> {
    let mut program = parse::parse(text, file)?;
    normal::normalise(&mut program);
    // First of all: what is wrong with the stack may only follow from such an instruction.
    for item in &program.items {
        if let parse::Body::Insn(insn) = &item.body
            && let Some(hint) = isa::forbidden(insn).or_else(|| isa::timer(insn).filter(|_| options.no_timer))
        {
            return Err(Error::new(file, item.line, error::Kind::Forbidden(insn.to_string(), hint)));
        }
    }
    if let Some((line, text)) = symbols::trampoline(&program) {
        return Err(Error::new(file, line, error::Kind::Trampoline(text)));
    }
    let flow = flow::Flow::build(&program);
    let tables = tables::find(&program, &flow);
    let layout = stack::analyse(&program, &flow, &tables.targets, file)?;
    let live = flow::Liveness::compute(&program, &flow, &tables.targets, &layout);
    emit::Emitter::new(&program, &flow, &tables, &layout, &live, options, file).run()
}

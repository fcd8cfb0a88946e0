//! Brings a program into the form that the rest understands. What is here compilers and inline assembly write
//! otherwise, and mean the same.
//!
//! * Instructions spelled in bytes, of which there is one.
//! * A loop that touches a large frame page by page, as rustc makes it: the frame in one step. Data stacks
//!   end in a guard page of their own, and the emitter touches what it must.
//! * A label at which a function ends, though branches and tables lead there (nobody ever goes: a `switch`
//!   whose default cannot be reached). What comes next is another function's, or nothing: a trap of the
//!   function's own comes to be there.

use crate::isa;
use crate::operand::{self, Mem, Operand, R11, RSP};
use crate::parse::{Body, Insn, Item, Program};
use crate::symbols;
use std::collections::HashSet;

pub fn normalise(program: &mut Program) {
    spelled(program);
    probes(program);
    ends(program);
}

fn plain(op: &str) -> Body {
    Body::Insn(Insn { prefixes: Vec::new(), op: op.into(), args: Vec::new() })
}

/// Libraries write `xgetbv` for assemblers that do not know it.
fn spelled(program: &mut Program) {
    for item in &mut program.items {
        let Body::Directive(text) = &item.body else { continue };
        let Some(bytes) = text.strip_prefix(".byte").filter(|_| program.sections[item.section].exec) else {
            continue;
        };
        let bytes: Vec<_> = bytes.split(',').map(operand::number).collect();
        if bytes == [Some(0x0f), Some(0x01), Some(0xd0)] {
            item.body = plain("xgetbv");
        }
    }
}

/// Instructions and labels, without directives; each with its place.
fn code(program: &Program) -> Vec<usize> {
    let is_code = |i: &usize| !matches!(program.items[*i].body, Body::Directive(_));
    (0..program.items.len()).filter(is_code).collect()
}

/// `movq %rsp, %r11 ; subq $N, %r11 ; L: subq $4096, %rsp ; movq $0, (%rsp) ; cmpq %r11, %rsp ; jne L`: all
/// but the first two are left out, and the second takes the frame.
fn probes(program: &mut Program) {
    let order = code(program);
    for at in order.windows(7) {
        let insn = |k: usize| match &program.items[at[k]].body {
            Body::Insn(insn) => Some(insn),
            _ => None,
        };
        let text = |k: usize| insn(k).map(Insn::to_string).unwrap_or_default();
        let Body::Label(label) = &program.items[at[2]].body else { continue };
        let frame = insn(1).filter(|i| isa::stem(i) == "sub" && i.args.last().is_some_and(|o| o.is_reg(R11)));
        let Some(size) = frame.and_then(|i| i.args[0].imm()) else { continue };
        let loops = text(0) == "movq\t%rsp, %r11"
            && text(3) == "subq\t$4096, %rsp"
            && text(4) == "movq\t$0, (%rsp)"
            && text(5) == "cmpq\t%r11, %rsp"
            && text(6) == format!("jne\t{label}");
        if !loops || size % 4096 != 0 {
            continue;
        }
        let rsp = operand::Gpr { num: RSP, width: operand::Width::B64 };
        let args = vec![Operand::Imm(format!("${size}")), Operand::Gpr(rsp)];
        program.items[at[1]].body = Body::Insn(Insn { prefixes: Vec::new(), op: "subq".into(), args });
        for k in [0, 3, 4, 5, 6] {
            program.items[at[k]].body = Body::Directive(String::new());
        }
    }
}

/// Labels that instructions and tables name.
fn named(program: &Program) -> HashSet<String> {
    let mut out = HashSet::new();
    let mut name = |expression: &str| out.extend(symbols::names(expression).map(String::from));
    for item in &program.items {
        match &item.body {
            Body::Insn(insn) => insn.args.iter().for_each(|o| match o {
                Operand::Mem(Mem { disp, .. }) => name(disp),
                Operand::Imm(text) => name(text.trim_start_matches('$')),
                _ => {}
            }),
            Body::Directive(d) if symbols::is_data(d) && program.sections[item.section].allocated() => {
                let (_, values) = d.split_once(char::is_whitespace).unwrap_or((d, ""));
                values.split(',').for_each(&mut name);
            }
            _ => {}
        }
    }
    out
}

fn ends(program: &mut Program) {
    let named = named(program);
    // What comes next in a section, from the end: an instruction of the same function?
    let mut goes_on = vec![false; program.sections.len()];
    let mut ends = Vec::new();
    for (i, item) in program.items.iter().enumerate().rev() {
        match &item.body {
            Body::Insn(_) => goes_on[item.section] = true,
            // Hand-written code may give a function's beginning a second name; compilers say the size at the
            // end.
            Body::Directive(text) if text.starts_with(".size") => goes_on[item.section] = false,
            Body::Label(name)
                if !goes_on[item.section] && named.contains(name) && program.sections[item.section].exec =>
            {
                ends.push(i);
                goes_on[item.section] = true;
            }
            _ => {}
        }
    }
    for i in ends {
        let Item { line, section, .. } = program.items[i];
        program.items.insert(i + 1, Item { line, section, body: plain("ud2") });
    }
}

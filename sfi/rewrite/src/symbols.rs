//! Names: `f` is a function's slot in the ftab, `f$code` its code; and the directives that speak of them.

use crate::flow::Flow;
use crate::parse::{Body, Program, Section};
use std::collections::HashSet;
use std::fmt::Write;

/// The name of a function's code.
pub fn code(name: &str) -> String {
    match name.strip_suffix('"') {
        Some(open) => format!("{open}$code\""),
        None => format!("{name}$code"),
    }
}

/// Functions and their aliases.
pub fn function_names(program: &Program, flow: &Flow) -> HashSet<String> {
    let mut names = flow.functions.clone();
    loop {
        let before = names.len();
        for item in &program.items {
            if let Body::Directive(d) = &item.body
                && let Some((a, b)) = alias(d)
                && names.contains(b)
            {
                names.insert(a.to_string());
            }
        }
        if names.len() == before {
            return names;
        }
    }
}

fn alias(directive: &str) -> Option<(&str, &str)> {
    let (word, rest) = directive.split_once(char::is_whitespace)?;
    if !matches!(word, ".set" | ".equ" | ".equiv") {
        return None;
    }
    let (a, b) = rest.split_once(',')?;
    Some((a.trim(), b.trim()))
}

/// Names that this file declares weak and does not define, and its own names for others' (`weakref`).
pub fn weak_undefined(program: &Program, flow: &Flow) -> HashSet<String> {
    let mut weak = HashSet::new();
    for item in &program.items {
        if let Body::Directive(d) = &item.body
            && let Some(rest) = d.strip_prefix(".weak")
            && rest.starts_with(char::is_whitespace)
        {
            weak.extend(rest.split(',').map(|n| n.trim().to_string()));
        }
        if let Body::Directive(d) = &item.body
            && let Some((name, _)) = d.strip_prefix(".weakref").and_then(|rest| rest.split_once(','))
        {
            weak.insert(name.trim().to_string());
        }
    }
    for item in &program.items {
        if let Body::Directive(d) = &item.body
            && let Some((a, _)) = alias(d)
        {
            weak.remove(a);
        }
    }
    weak.retain(|w| !flow.labels.contains_key(w));
    weak
}

/// The directive as it has to be now; `None` to drop it.
pub fn directive(text: &str, functions: &HashSet<String>, labels: &dyn Fn(&str) -> bool) -> Option<String> {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    match word {
        _ if word.starts_with(".cfi_") => None,
        ".addrsig" | ".addrsig_sym" | ".symver" => None,
        ".type" | ".size" => {
            let (name, tail) = rest.split_once(',').unwrap_or((rest, ""));
            if functions.contains(name.trim()) {
                let name = name.trim();
                let tail = if word == ".size" {
                    tail.replace(&format!("-{name}"), &format!("-{}", code(name)))
                } else {
                    tail.into()
                };
                return Some(format!("\t{word}\t{},{tail}", code(name)));
            }
            Some(format!("\t{text}"))
        }
        ".globl" | ".global" | ".weak" | ".hidden" | ".protected" | ".internal" | ".local" => {
            let mut out = String::new();
            for name in rest.split(',').map(str::trim) {
                let _ = write!(out, "{}\t{word}\t{name}", if out.is_empty() { "" } else { "\n" });
                if functions.contains(name) || (!labels(name) && word == ".hidden") {
                    let _ = write!(out, "\n\t{word}\t{}", code(name));
                }
            }
            Some(out)
        }
        ".set" | ".equ" | ".equiv" => match alias(text) {
            Some((a, b)) if functions.contains(b) => {
                Some(format!("\t{word}\t{a}, {b}\n\t{word}\t{}, {}", code(a), code(b)))
            }
            _ => Some(format!("\t{text}")),
        },
        _ => Some(format!("\t{text}")),
    }
}

/// The group of a section, as `name,comdat`.
fn group(section: &Section) -> Option<String> {
    let mut parts = section.rest.split(',').map(str::trim);
    let flags = parts.next()?;
    if !flags.contains('G') {
        return None;
    }
    let name = parts.nth(1)?;
    Some(format!("{name},comdat"))
}

/// The section directive of a function's slot.
pub fn slot_section(function: &str, section: &Section) -> String {
    let plain = function.trim_matches('"');
    match group(section) {
        Some(g) => format!("\t.section\t\".pbl.ftab.{plain}\",\"axG\",@progbits,{g}"),
        None => format!("\t.section\t\".pbl.ftab.{plain}\",\"ax\",@progbits"),
    }
}

/// The section directive of the label records that belong to a code section.
pub fn facts_section(section: &Section, symbol: &str) -> String {
    match group(section) {
        Some(g) => format!("\t.section\t.pbl.facts,\"Go\",@progbits,{symbol},{g}"),
        None => format!("\t.section\t.pbl.facts,\"o\",@progbits,{symbol}"),
    }
}

/// The symbol that the instruction at `i` follows, where it is the program's own and not a function's: code
/// that this file does not reach, so somebody else will. Cold parts of functions may be left over.
pub fn untyped<'p>(program: &'p Program, flow: &Flow, i: usize) -> Option<(usize, &'p str)> {
    let section = program.items[i].section;
    let before = program.items[..i].iter().enumerate().rev().filter(|(_, it)| it.section == section);
    let mut labels = before.take_while(|(_, it)| !matches!(it.body, Body::Insn(_))).filter_map(|(k, it)| {
        let Body::Label(l) = &it.body else { return None };
        (!l.starts_with(".L") && !l.contains(".cold") && !flow.functions.contains(l))
            .then_some((k, l.as_str()))
    });
    labels.find(|_| program.sections[section].exec)
}

/// Where gcc writes code on the stack, for a nested function whose address is taken: it asks for a stack that
/// can be executed then.
pub fn trampoline(program: &Program) -> Option<(usize, String)> {
    // `jmp *%r11 ; nop`, the end of it.
    const JUMP: &str = "$-1864106167";
    let asks = |body: &Body| matches!(body, Body::Directive(d) if d.contains(".note.GNU-stack") && d.contains("\"x\""));
    let asked = program.items.iter().find(|item| asks(&item.body))?;
    let last =
        |body: &Body| matches!(body, Body::Insn(insn) if insn.args.iter().any(|o| o.to_string() == JUMP));
    let written = program.items.iter().find(|item| last(&item.body)).unwrap_or(asked);
    let text = match &written.body {
        Body::Insn(insn) => insn.to_string(),
        Body::Label(text) | Body::Directive(text) => text.clone(),
    };
    Some((written.line, text))
}

/// The function, or the cold part of one, that a directive declares.
pub fn function(body: &Body) -> Option<String> {
    let Body::Directive(text) = body else { return None };
    let (name, kind) = text.strip_prefix(".type")?.split_once(',')?;
    kind.contains("function").then(|| name.trim().to_string())
}

/// The names in an expression.
pub fn names(expression: &str) -> impl Iterator<Item = &str> {
    expression.split(['+', '-', '(', ')', ' ', '\t']).filter(|t| !t.is_empty())
}

/// Puts bytes of its own where it stands.
pub fn is_data(directive: &str) -> bool {
    const DATA: [&str; 21] = [
        ".byte", ".short", ".long", ".quad", ".octa", ".2byte", ".4byte", ".8byte", ".word", ".value",
        ".int", ".hword", ".ascii", ".asciz", ".string", ".float", ".single", ".double", ".incbin",
        ".uleb128", ".sleb128",
    ];
    directive.split_whitespace().next().is_some_and(|word| DATA.contains(&word))
}

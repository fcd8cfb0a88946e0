//! Assembly text to items: labels, directives and instructions, each with its line and section.
//!
//! The text is that of stock compilers, inline assembly included: comments, several statements a line,
//! numeric labels. Items keep their order, so that printing them again gives the same program.

use crate::error::{Error, Kind};
use crate::operand::{self, Operand};
use std::collections::HashMap;
use std::fmt;

#[derive(Clone, Debug)]
pub struct Insn {
    pub prefixes: Vec<String>,
    pub op: String,
    pub args: Vec<Operand>,
}

impl fmt::Display for Insn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for p in &self.prefixes {
            write!(f, "{p} ")?;
        }
        write!(f, "{}", self.op)?;
        for (i, a) in self.args.iter().enumerate() {
            write!(f, "{}{a}", if i == 0 { "\t" } else { ", " })?;
        }
        Ok(())
    }
}

#[derive(Clone, Debug)]
pub enum Body {
    Label(String),
    Directive(String),
    Insn(Insn),
}

#[derive(Clone, Debug)]
pub struct Item {
    pub line: usize,
    /// Index into [`Program::sections`].
    pub section: usize,
    pub body: Body,
}

#[derive(Clone, Debug)]
pub struct Section {
    pub name: String,
    /// What follows the name in the directive.
    pub rest: String,
    pub exec: bool,
}

impl Section {
    /// Is it there when the code runs? What debuggers are told is not.
    pub fn allocated(&self) -> bool {
        let flags = self.rest.split(',').next().unwrap_or("");
        if flags.is_empty() { !self.name.starts_with(".debug") } else { flags.contains('a') }
    }

    /// Can its words be other ones when the code runs?
    pub fn writable(&self) -> bool {
        !(self.name.starts_with(".rodata") || self.name.starts_with(".data.rel.ro"))
    }
}

#[derive(Debug)]
pub struct Program {
    pub items: Vec<Item>,
    pub sections: Vec<Section>,
}

const PREFIXES: [&str; 16] = [
    "lock", "rep", "repe", "repz", "repne", "repnz", "data16", "notrack", "bnd", "addr32", "xacquire",
    "xrelease", "rex64", "cs", "ds", "gs",
];

/// Cuts a line into statements: comments away, split at `;`, nothing inside strings touched.
fn statements(line: &str, in_comment: &mut bool) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        if *in_comment {
            if c == '*' && chars.peek() == Some(&'/') {
                chars.next();
                *in_comment = false;
            }
            continue;
        }
        match c {
            '"' => quoted = !quoted,
            '\\' if quoted => {
                out.last_mut().expect("never empty").push(c);
                if let Some(n) = chars.next() {
                    out.last_mut().expect("never empty").push(n);
                }
                continue;
            }
            '#' if !quoted => break,
            '/' if !quoted && chars.peek() == Some(&'*') => {
                *in_comment = true;
                continue;
            }
            ';' if !quoted => {
                out.push(String::new());
                continue;
            }
            _ => {}
        }
        out.last_mut().expect("never empty").push(c);
    }
    out
}

fn label_end(text: &str) -> Option<usize> {
    let end = if let Some(rest) = text.strip_prefix('"') {
        rest.find('"')? + 2
    } else {
        text.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '$' | '@' | '?')))?
    };
    (end > 0 && text[end..].starts_with(':')).then_some(end)
}

fn split_args(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let (mut depth, mut start, mut quoted) = (0, 0, false);
    for (i, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '(' | '{' if !quoted => depth += 1,
            ')' | '}' if !quoted => depth -= 1,
            ',' if depth == 0 && !quoted => {
                out.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    if !text[start..].trim().is_empty() {
        out.push(&text[start..]);
    }
    out
}

fn parse_insn(text: &str) -> Option<Insn> {
    let mut prefixes = Vec::new();
    let mut rest = text.trim();
    loop {
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let word = rest[..end].to_ascii_lowercase();
        let after = rest[end..].trim();
        if PREFIXES.contains(&word.as_str()) {
            prefixes.push(word);
            rest = after;
            if rest.is_empty() {
                return Some(Insn { prefixes, op: String::new(), args: Vec::new() });
            }
            continue;
        }
        let args = split_args(after).into_iter().map(operand::parse).collect::<Option<Vec<_>>>()?;
        return Some(Insn { prefixes, op: word, args });
    }
}

struct Sections {
    list: Vec<Section>,
    by_key: HashMap<String, usize>,
    stack: Vec<usize>,
    current: usize,
    previous: usize,
}

impl Sections {
    fn enter(&mut self, name: &str, rest: &str) {
        // Sections are the same when name and group are; flags need not be repeated.
        let key = format!("{name},{}", rest.split(',').skip(2).collect::<String>().trim());
        let exec = name.starts_with(".text") || rest.split(',').next().is_some_and(|f| f.contains('x'));
        let list = &mut self.list;
        let index = *self.by_key.entry(key).or_insert_with(|| {
            list.push(Section { name: name.into(), rest: rest.trim().into(), exec });
            list.len() - 1
        });
        self.previous = self.current;
        self.current = index;
    }

    /// Follows a section directive; other directives change nothing.
    fn directive(&mut self, text: &str) {
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = rest.trim();
        match word {
            ".text" | ".data" | ".bss" => self.enter(word, ""),
            ".section" | ".pushsection" => {
                if word == ".pushsection" {
                    self.stack.push(self.current);
                }
                let (name, flags) = rest.split_once(',').unwrap_or((rest, ""));
                self.enter(name.trim(), flags);
            }
            ".popsection" => {
                if let Some(s) = self.stack.pop() {
                    self.current = s;
                }
            }
            ".previous" => std::mem::swap(&mut self.current, &mut self.previous),
            _ => {}
        }
    }
}

pub fn parse(text: &str, file: &str) -> Result<Program, Error> {
    let mut items = Vec::new();
    let mut sections =
        Sections { list: Vec::new(), by_key: HashMap::new(), stack: Vec::new(), current: 0, previous: 0 };
    sections.enter(".text", "");
    let mut in_comment = false;
    let mut numeric: HashMap<String, usize> = HashMap::new();
    for (n, line) in text.lines().enumerate() {
        let line_no = n + 1;
        for statement in statements(line, &mut in_comment) {
            let mut rest = statement.trim();
            while let Some(end) = label_end(rest) {
                let name = &rest[..end];
                let name = if name.bytes().all(|b| b.is_ascii_digit()) {
                    let count = numeric.entry(name.into()).or_insert(0);
                    *count += 1;
                    numeric_label(name, *count)
                } else {
                    name.to_string()
                };
                items.push(Item { line: line_no, section: sections.current, body: Body::Label(name) });
                rest = rest[end + 1..].trim();
            }
            if rest.is_empty() {
                continue;
            }
            let assignment = rest.split_once('=').is_some_and(|(l, _)| {
                l.trim().bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'$'))
            });
            let body = if rest.starts_with('.') || assignment {
                sections.directive(rest);
                let text = match rest.split_once('=') {
                    Some((l, r)) if assignment => format!(".set {},{}", l.trim(), r.trim()),
                    _ => rest.to_string(),
                };
                Body::Directive(text)
            } else {
                let mut insn =
                    parse_insn(rest).ok_or_else(|| Error::new(file, line_no, Kind::Syntax(rest.into())))?;
                resolve_numeric(&mut insn, &numeric);
                // `rep; movsb`: compilers print a prefix as a statement of its own.
                if let Some(Item { body: Body::Insn(prefix), .. }) = items.last()
                    && prefix.op.is_empty()
                {
                    insn.prefixes.splice(0..0, prefix.prefixes.clone());
                    items.pop();
                }
                Body::Insn(insn)
            };
            items.push(Item { line: line_no, section: sections.current, body });
        }
    }
    Ok(Program { items, sections: sections.list })
}

fn numeric_label(name: &str, count: usize) -> String {
    format!(".Lpbl_num{name}_{count}")
}

/// `1b` and `1f` become unique names, since items may be moved apart.
fn resolve_numeric(insn: &mut Insn, seen: &HashMap<String, usize>) {
    let fix = |text: &mut String| {
        let t = text.trim();
        if t.len() >= 2 && t[..t.len() - 1].bytes().all(|b| b.is_ascii_digit()) {
            let (name, dir) = t.split_at(t.len() - 1);
            let count = seen.get(name).copied().unwrap_or(0);
            match dir {
                "b" => *text = numeric_label(name, count),
                "f" => *text = numeric_label(name, count + 1),
                _ => {}
            }
        }
    };
    for arg in &mut insn.args {
        if let Operand::Mem(m) = arg {
            fix(&mut m.disp);
        }
    }
}

//! Bindings in Rust: a structure of portals, and a method for each. An argument that only counts the elements
//! of slices is not a method's: the slices know it.

use super::model::{Answer, Argument, Count, Function, Interface, Kind, Type};
use std::fmt::Write;

/// Longest text that is taken out of a domain.
const MOST_TEXT: u32 = 1 << 20;

const KEYWORDS: [&str; 36] = [
    "as", "async", "await", "break", "const", "continue", "crate", "dyn", "else", "enum", "extern", "false",
    "fn", "for", "if", "impl", "in", "let", "loop", "match", "mod", "move", "mut", "pub", "ref", "return",
    "self", "static", "struct", "super", "trait", "true", "type", "use", "where", "while",
];

/// A name of C's as one of Rust's.
fn own(name: &str) -> String {
    if KEYWORDS.contains(&name) || ["unsafe", "Self", "gen", "yield", "try"].contains(&name) {
        return format!("{name}_");
    }
    name.into()
}

/// `image_filter` as `ImageFilter`.
fn camel(name: &str) -> String {
    let word = |word: &str| word[..1].to_uppercase() + &word[1..];
    let joined: String = name.split('_').filter(|w| !w.is_empty()).map(word).collect();
    if joined.starts_with(|c: char| c.is_ascii_alphabetic()) { joined } else { format!("Stubs{joined}") }
}

fn rust_type(of: Type) -> String {
    let sign = |signed: bool| if signed { "i" } else { "u" };
    match of {
        Type::Void => "u8".into(),
        Type::Bool => "bool".into(),
        Type::Char => "i8".into(),
        Type::Integer { bytes, signed } => format!("{}{}", sign(signed), bytes * 8),
        Type::Size { signed } => format!("{}size", sign(signed)),
        Type::Float { bytes } => format!("f{}", bytes * 8),
    }
}

/// Of an element in memory, of which every pattern must be one.
fn element(of: Type) -> String {
    if of == Type::Bool { "u8".into() } else { rust_type(of) }
}

fn parameter(a: &Argument) -> String {
    let of = match a.kind {
        Kind::Word => rust_type(a.of),
        Kind::String => "&CStr".into(),
        Kind::Window { letter: 'o', .. } => "&Region".into(),
        Kind::Window { letter, count } => {
            let mutable = if letter == 'w' { "mut " } else { "" };
            match count {
                Count::Argument(_) => format!("&{mutable}[{}]", element(a.of)),
                Count::Fixed(n) => format!("&{mutable}[{}; {n}]", element(a.of)),
            }
        }
    };
    format!("{}: {of}", own(&a.name))
}

/// Slices whose length is an argument's value.
fn slices(f: &Function, argument: usize) -> Vec<&Argument> {
    f.counted_by(argument).filter(|a| !matches!(a.kind, Kind::Window { letter: 'o', .. })).collect()
}

fn extent(number: usize, a: &Argument) -> String {
    match a.kind {
        Kind::Window { count: Count::Argument(n), .. } => {
            format!("Extent::counted({number}, {n}, {})", a.of.bytes())
        }
        Kind::Window { count: Count::Fixed(n), .. } => {
            format!("Extent::bytes({number}, {})", n.saturating_mul(a.of.bytes()))
        }
        _ => format!("Extent::text({number})"),
    }
}

pub fn bindings(i: &Interface) -> String {
    let (name, header) = (camel(&i.name), &i.header);
    let any = |test: &dyn Fn(&Function) -> bool| i.functions.iter().any(test);
    let text = any(&|f| f.answer == Answer::String);
    let mut out = format!("// Made from {header} by `pebble sfi stubs`: change that, not this.\n\n");
    let lends = any(&|f| f.windows().next().is_some());
    let copies = any(&|f| f.windows().any(|(_, a)| !matches!(a.kind, Kind::Window { letter: 'o', .. })));
    let opens = any(&|f| f.windows().any(|(_, a)| matches!(a.kind, Kind::Window { letter: 'o', .. })));
    let uses = [
        ("CallError", true),
        ("Error", true),
        ("Extent", lends),
        ("Instance", true),
        ("Lent", copies),
        ("Limit", true),
        ("Portal", true),
        ("Region", opens),
    ];
    let uses: Vec<&str> = uses.iter().filter(|(_, used)| *used).map(|(name, _)| *name).collect();
    let _ = writeln!(out, "use pebble_sfi_runtime::{{{}}};", uses.join(", "));
    let strings = any(&|f| f.arguments.iter().any(|a| a.kind == Kind::String));
    match (strings, text) {
        (true, true) => out += "use std::ffi::{CStr, CString};\n",
        (true, false) => out += "use std::ffi::CStr;\n",
        (false, true) => out += "use std::ffi::CString;\n",
        (false, false) => {}
    }
    let _ = write!(
        out,
        "\n/// The functions of `{header}` in an instance.\npub struct {name} {{\n    /// Of each call: \
         none, unless it is set.\n    pub limit: Limit,\n"
    );
    if text {
        out += "    instance_: Instance,\n";
    }
    for f in &i.functions {
        let _ = writeln!(out, "    {}: Portal,", own(&f.name));
    }
    let _ = write!(
        out,
        "}}\n\nimpl TryFrom<&Instance> for {name} {{\n    type Error = Error;\n\n    /// Opens the \
         portals.\n    fn try_from(instance: &Instance) -> Result<{name}, Error> {{\n        Ok({name} \
         {{\n            limit: Limit::default(),\n"
    );
    if text {
        out += "            instance_: instance.clone(),\n";
    }
    for f in &i.functions {
        let extents: Vec<String> = f.windows().map(|(number, a)| extent(number, a)).collect();
        let open = match extents.is_empty() {
            true => format!("portal({:?}, {:?})", f.name, f.spec()),
            false => format!("portal_over({:?}, {:?}, &[{}])", f.name, f.spec(), extents.join(", ")),
        };
        let _ = writeln!(out, "            {}: instance.{open}?,", own(&f.name));
    }
    let _ = write!(out, "        }})\n    }}\n}}\n\nimpl {name} {{\n");
    let methods: Vec<String> = i.functions.iter().map(method).collect();
    out + &methods.join("\n") + "}\n"
}

fn method(f: &Function) -> String {
    let shown = |(n, a): (usize, &Argument)| slices(f, n).is_empty().then(|| parameter(a));
    let parameters: Vec<String> = f.arguments.iter().enumerate().filter_map(shown).collect();
    let answer = match f.answer {
        Answer::Nothing => "()".into(),
        Answer::Word(of) => rust_type(of),
        Answer::String => "CString".into(),
    };
    let list: String = parameters.iter().map(|p| format!(", {p}")).collect();
    let mut out = format!(
        "    /// `{}`, by `{}`.\n    pub fn {}(&self{list}) -> Result<{answer}, CallError> {{\n",
        f.prototype,
        f.spec(),
        own(&f.name)
    );
    for (n, a) in f.arguments.iter().enumerate() {
        out += &count(f, n, a);
    }
    for (_, a) in f.windows() {
        let name = own(&a.name);
        let _ = match a.kind {
            Kind::String => writeln!(out, "        let {name} = Lent::text({name})?;"),
            Kind::Window { letter: 'o', .. } => Ok(()),
            Kind::Window { letter: 'w', .. } => writeln!(out, "        let {name} = Lent::write({name})?;"),
            _ => writeln!(out, "        let {name} = Lent::read({name})?;"),
        };
    }
    let words: Vec<String> = f.arguments.iter().map(word).collect();
    let call = format!("self.{}.call_within(self.limit, &[{}])", own(&f.name), words.join(", "));
    let _ = match f.answer {
        Answer::Nothing => writeln!(out, "        {call}.map(drop)"),
        Answer::Word(Type::Bool) => writeln!(out, "        {call}.map(|value| value & 0xff != 0)"),
        Answer::Word(Type::Integer { bytes: 8, signed: false }) => writeln!(out, "        {call}"),
        Answer::Word(of) => writeln!(out, "        {call}.map(|value| value as {})", rust_type(of)),
        Answer::String => {
            writeln!(out, "        let at = {call}?;\n        self.instance_.text(at, {MOST_TEXT})")
        }
    };
    out + "    }\n"
}

/// The length of its slices for an argument that counts them.
fn count(f: &Function, n: usize, a: &Argument) -> String {
    let slices = slices(f, n);
    let Some((first, others)) = slices.split_first() else { return String::new() };
    let (name, first) = (own(&a.name), own(&first.name));
    let mut out = String::new();
    for other in others {
        let _ = write!(
            out,
            "        if {}.len() != {first}.len() {{\n            return Err(CallError::Lengths);\n        \
             }}\n",
            own(&other.name)
        );
    }
    let _ = match a.of {
        Type::Size { signed: false } => writeln!(out, "        let {name} = {first}.len();"),
        of => writeln!(
            out,
            "        let {name} = {}::try_from({first}.len()).map_err(|_| CallError::Lengths)?;",
            rust_type(of)
        ),
    };
    out
}

fn word(a: &Argument) -> String {
    let name = own(&a.name);
    match a.kind {
        Kind::Window { letter: 'o', .. } => format!("{name}.address()"),
        Kind::Word if a.of == (Type::Integer { bytes: 8, signed: false }) => name,
        Kind::Word => format!("{name} as u64"),
        _ => format!("{name}.word()"),
    }
}

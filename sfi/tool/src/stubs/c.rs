//! Bindings in C: a structure of portals, and a function of one's own for each.

use super::model::{Answer, Argument, Count, Function, Interface, Kind, Type};
use std::fmt::Write;

/// C++'s, which C's headers may use as names; a host in C++ includes the bindings too.
const KEYWORDS: [&str; 65] = [
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "bitand",
    "bitor",
    "bool",
    "catch",
    "char16_t",
    "char32_t",
    "char8_t",
    "class",
    "co_await",
    "co_return",
    "co_yield",
    "compl",
    "concept",
    "const_cast",
    "consteval",
    "constexpr",
    "constinit",
    "decltype",
    "delete",
    "dynamic_cast",
    "explicit",
    "export",
    "false",
    "friend",
    "inline",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "reinterpret_cast",
    "requires",
    "restrict",
    "static_assert",
    "static_cast",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typeid",
    "typename",
    "using",
    "virtual",
    "wchar_t",
    "xor",
    "xor_eq",
    "_Bool",
    "typeof",
    "register",
    "auto",
];

/// A name that C and C++ both take.
fn own(name: &str) -> String {
    if KEYWORDS.contains(&name) { format!("{name}_") } else { name.into() }
}

fn c_type(of: Type) -> String {
    let sign = |signed: bool| if signed { "" } else { "u" };
    match of {
        Type::Void => "void".into(),
        Type::Bool => "bool".into(),
        Type::Char => "char".into(),
        Type::Integer { bytes, signed } => format!("{}int{}_t", sign(signed), bytes * 8),
        Type::Size { signed: false } => "size_t".into(),
        Type::Size { signed: true } => "intptr_t".into(),
        Type::Float { bytes: 4 } => "float".into(),
        Type::Float { .. } => "double".into(),
    }
}

fn parameter(a: &Argument) -> String {
    let constant = if a.constant && a.kind != Kind::Word { "const " } else { "" };
    let pointer = if a.kind == Kind::Word { " " } else { " *" };
    format!("{constant}{}{pointer}{}", c_type(a.of), own(&a.name))
}

fn extent(number: usize, a: &Argument) -> String {
    match a.kind {
        Kind::Window { count: Count::Argument(n), .. } => format!("{{{number}, {n}, {}}}", a.of.bytes()),
        Kind::Window { count: Count::Fixed(n), .. } => {
            format!("{{{number}, PBL_BYTES, {}}}", n.saturating_mul(a.of.bytes()))
        }
        _ => format!("{{{number}, PBL_TEXT, 1}}"),
    }
}

fn opening(f: &Function) -> String {
    let extents: Vec<String> = f.windows().map(|(number, a)| extent(number, a)).collect();
    let (name, spec, portal) = (&f.name, f.spec(), own(&f.name));
    if extents.is_empty() {
        return format!("    stubs_->{portal} = pbl_portal_open(instance_, \"{name}\", \"{spec}\");\n");
    }
    format!(
        "    static const pbl_extent {name}_[] = {{{}}};\n    stubs_->{portal} = \
         pbl_portal_open_over(instance_, \"{name}\", \"{spec}\", {name}_, {});\n",
        extents.join(", "),
        extents.len()
    )
}

/// The bindings' header.
pub fn bindings(i: &Interface) -> String {
    let (name, header) = (&i.name, &i.header);
    let guard = format!("{}_STUBS_H", name.to_uppercase());
    let mut out = format!(
        "/* Made from {header} by `pebble sfi stubs`: change that, not this.\n\
         \x20* Every function returns PBL_OK or why there is no result; results and pbl_error() are as \
         pebble_host.h says. */\n\
         #ifndef {guard}\n#define {guard}\n\n#include <pebble_host.h>\n#include <stdbool.h>\n#include \
         <string.h>\n\n\
         typedef struct {{\n    pbl_instance *instance;\n    pbl_limit limit; /* of each call: none, unless \
         it is set */\n"
    );
    for f in &i.functions {
        let _ = writeln!(out, "    pbl_portal *{};", own(&f.name));
    }
    let _ = write!(
        out,
        "}} {name}_stubs;\n\n\
         static inline void {name}_unbind({name}_stubs *stubs_) {{\n"
    );
    for f in &i.functions {
        let _ = writeln!(out, "    pbl_portal_free(stubs_->{});", own(&f.name));
    }
    let _ = write!(
        out,
        "    memset(stubs_, 0, sizeof *stubs_);\n}}\n\n\
         /* Opens the portals into an instance, which must outlive them: 0, or -1 and pbl_error() says why. \
         */\n\
         static inline int {name}_bind({name}_stubs *stubs_, pbl_instance *instance_) {{\n    memset(stubs_, \
         0, sizeof *stubs_);\n    stubs_->instance = instance_;\n"
    );
    for f in &i.functions {
        let _ = write!(out, "{}    if (!stubs_->{})\n        goto failed_;\n", opening(f), own(&f.name));
    }
    let _ = write!(out, "    return 0;\nfailed_:\n    {name}_unbind(stubs_);\n    return -1;\n}}\n");
    for f in &i.functions {
        out += &function(name, f);
    }
    out += "\n#endif\n";
    out
}

fn function(name: &str, f: &Function) -> String {
    let mut parameters = vec![format!("const {name}_stubs *stubs_")];
    match f.answer {
        Answer::Nothing => {}
        Answer::Word(of) => parameters.push(format!("{} *result_", c_type(of))),
        Answer::String => parameters.extend(["char *result_".into(), "size_t room_".into()]),
    }
    parameters.extend(f.arguments.iter().map(parameter));
    let mut out = format!(
        "\n/* {} */\nstatic inline int {name}_{}({}) {{\n    pbl_outcome outcome_ = {{0, PBL_NOT_LENT}};\n",
        f.prototype,
        f.name,
        parameters.join(", ")
    );
    let mut ready = Vec::new();
    for (_, a) in f.windows() {
        if matches!(a.kind, Kind::Window { letter: 'o', .. }) {
            continue;
        }
        let bytes = match a.kind {
            Kind::Window { count: Count::Argument(n), .. } => {
                format!("(size_t){} * {}", own(&f.arguments[n].name), a.of.bytes())
            }
            Kind::Window { count: Count::Fixed(n), .. } => n.saturating_mul(a.of.bytes()).to_string(),
            _ => format!("{0} ? strlen({0}) + 1 : 1", own(&a.name)),
        };
        let writable = u8::from(matches!(a.kind, Kind::Window { letter: 'w', .. }));
        let _ = writeln!(
            out,
            "    pbl_lent *{0}_lent_ = pbl_lend({1}, {bytes}, {writable});",
            a.name,
            own(&a.name)
        );
        ready.push(format!("{}_lent_", a.name));
    }
    let words = f.arguments.iter().map(|a| match a.kind {
        Kind::Window { letter: 'o', .. } => format!("(uintptr_t){}", own(&a.name)),
        Kind::Word => own(&a.name),
        _ => format!("pbl_lent_word({}_lent_)", a.name),
    });
    let portal = [format!("stubs_->{}", own(&f.name)), "stubs_->limit".into()];
    let call: Vec<String> = portal.into_iter().chain(words).collect();
    if !ready.is_empty() {
        let _ = write!(out, "    if ({})\n    ", ready.join(" && "));
    }
    let _ = writeln!(out, "    outcome_ = pbl_call_by({});", call.join(", "));
    for lent in ready.iter().rev() {
        let _ = writeln!(out, "    pbl_lent_end({lent});");
    }
    match f.answer {
        Answer::Nothing => {}
        Answer::Word(of) => {
            let value = if of == Type::Bool { "(outcome_.value & 0xff)" } else { "outcome_.value" };
            let _ = write!(
                out,
                "    if (result_ && outcome_.status == PBL_OK)\n        *result_ = ({}){value};\n",
                c_type(of)
            );
        }
        Answer::String => {
            out += "    if (outcome_.status == PBL_OK && pbl_instance_text(stubs_->instance, outcome_.value, \
                result_, room_) < 0)\n        return -1;\n";
        }
    }
    out += "    return (int)outcome_.status;\n}\n";
    out
}

/// A C file that makes the functions exports of the module it is compiled into.
pub fn exports(i: &Interface) -> String {
    let mut out = format!(
        "/* Made from {} by `pebble sfi stubs`: change that, not this. */\n#include <pebble_plugin.h>\n\n",
        i.header
    );
    for f in &i.functions {
        let _ = writeln!(out, "PBL_EXPORT({}, \"{}\")", f.name, f.spec());
    }
    out
}

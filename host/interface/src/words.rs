//! Words that mean something in Rust, C or C++: stubs and programs are made in these, so nothing is called so.

/// In order, as the others.
const RUST: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static",
    "struct", "super", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual",
    "where", "while", "yield",
];

/// Of C and C++, not of Rust.
const C: &[&str] = &[
    "alignas",
    "alignof",
    "asm",
    "auto",
    "bool",
    "case",
    "char",
    "class",
    "constexpr",
    "default",
    "delete",
    "double",
    "explicit",
    "export",
    "float",
    "friend",
    "goto",
    "inline",
    "int",
    "long",
    "mutable",
    "namespace",
    "new",
    "nullptr",
    "operator",
    "private",
    "protected",
    "public",
    "register",
    "restrict",
    "short",
    "signed",
    "sizeof",
    "static_assert",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "typedef",
    "union",
    "unsigned",
    "using",
    "void",
    "volatile",
];

/// Whether it is a word of one of the languages.
pub fn is_taken(name: &str) -> bool {
    is_rust(name) || C.binary_search(&name).is_ok()
}

/// Whether it is a word of Rust.
pub fn is_rust(name: &str) -> bool {
    RUST.binary_search(&name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_in_order() {
        assert!(RUST.is_sorted() && C.is_sorted());
        assert!(is_taken("while") && is_taken("volatile") && is_rust("match") && !is_taken("name"));
        assert!(!is_rust("register"));
    }
}

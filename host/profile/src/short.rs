//! Names that fit: of what a compiler calls a function, what a reader needs.

/// Without the modules in front of types: `<file::table::Table<u8>>::open` is `<Table<u8>>::open`.
pub fn short(name: &str) -> String {
    let mut out = String::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c| !in_a_path(c)).unwrap_or(rest.len()).max(first.len_utf8());
        let (path, after) = rest.split_at(end);
        out.push_str(path.get(modules(path)..).unwrap_or(path));
        rest = after;
    }
    out
}

fn in_a_path(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == ':'
}

/// Length of what stands before a type in a path. Types begin with a capital letter.
fn modules(path: &str) -> usize {
    let mut at = 0;
    for part in path.split("::") {
        match part.chars().next() {
            Some(first) if first.is_uppercase() => return at,
            // The path goes on from something in front of it.
            None if at == 0 => return 0,
            _ => at += part.len() + 2,
        }
    }
    0
}

/// Ways to write a name, each shorter than the one before.
pub fn ways(name: &str) -> impl Iterator<Item = String> {
    let short = short(name);
    let last = short.rsplit("::").find(|part| !part.starts_with('{')).unwrap_or(&short);
    let last = last.rsplit(": ").next().unwrap_or(last).to_string();
    [name.to_string(), short, last].into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn types_lose_their_modules() {
        for (name, expected) in [
            ("<pebble::region::Region>::zero_page", "<Region>::zero_page"),
            (
                "<a::b::Vm<vm::Real> as core::fmt::Debug>::fmt::{closure#0}",
                "<Vm<Real> as Debug>::fmt::{closure#0}",
            ),
            ("process::loader::load", "process::loader::load"),
            ("a::step::<b::Real>", "a::step::<Real>"),
            ("<T as U>::V::f", "<T as U>::V::f"),
            ("__pebble_start", "__pebble_start"),
        ] {
            assert_eq!(short(name), expected);
        }
    }

    #[test]
    fn each_way_is_shorter() {
        let of = |name| ways(name).collect::<Vec<_>>();
        let zero = "<pebble::region::Region>::zero_page";
        assert_eq!(of(zero), [zero, "<Region>::zero_page", "zero_page"]);
        assert_eq!(of("vm: pm.open"), ["vm: pm.open", "vm: pm.open", "pm.open"]);
        assert_eq!(of("a::f::{closure#0}")[2], "f");
    }

    proptest! {
        #[test]
        fn any_name_has_ways(name in "[a-zA-Zü:<>{}# ]{0,20}") {
            for (one, other) in ways(&name).zip(ways(&name).skip(1)) {
                prop_assert!(other.len() <= one.len());
            }
        }
    }
}

//! Stubs for callers in Rust: `pebble::client`, a module for each server, a type for each interface.
//!
//! A stub is a portal, however the caller has it (`pebble::link::Handle`), with one function that takes the
//! caller's words by name and type.

use crate::{Argument, Interface, Kind, Server, manual};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The modules.
pub fn stubs(servers: &[Server]) -> String {
    let mut modules: BTreeMap<String, Vec<&Interface>> = BTreeMap::new();
    for interface in servers.iter().flat_map(|server| &server.interfaces) {
        modules.entry(interface.parts().0.replace('-', "_")).or_default().push(interface);
    }
    let mut out = String::new();
    // Writing to a `String` cannot fail.
    for (module, interfaces) in modules {
        let _ = writeln!(out, "/// Interfaces `{module}.*`.\npub mod {module} {{");
        interfaces.into_iter().for_each(|interface| out += &stub(interface));
        out += "}\n";
    }
    out
}

fn stub(interface: &Interface) -> String {
    let Interface { name, spec, .. } = interface;
    let (own, about) = (type_name(interface.parts().1), manual::cell(interface));
    let (parameters, words): (Vec<_>, Vec<_>) = interface.passed().map(passed).unzip();
    let (parameters, words) = (parameters.concat(), words.join(", "));
    let (call, answer) = if spec.results == 0 { ("invoke", "Answer") } else { ("invoke_wide", "Wide") };
    format!(
        "
    /// `{name}`, `{spec}`. {about}
    #[derive(Debug)]
    #[repr(transparent)]
    pub struct {own}<H = crate::link::Import>(pub H);
    impl {own} {{
        pub const NAME: &'static str = \"{name}\";
        /// For `import!`.
        pub const fn unbound() -> Self {{
            {own}(crate::link::Import::unbound())
        }}
    }}
    impl {own}<crate::process::Lazy> {{
        /// Opened at first use.
        pub const fn lazy() -> Self {{
            {own}(crate::process::Lazy::new(\"{name}\"))
        }}
    }}
    impl<H: crate::link::Handle> {own}<H> {{
        #[inline]
        pub fn call(&self{parameters}) -> H::{answer} {{
            self.0.{call}([{words}])
        }}
    }}
"
    )
}

/// An argument as parameter, and as words.
fn passed(argument: &Argument) -> (String, String) {
    let Argument { name, kind, .. } = argument;
    match kind.words() {
        1 => (format!(", {name}: {}", path(*kind)), format!("crate::words::Word::word({name})")),
        words => {
            let each = (0..words).map(|n| format!("{name}[{n}]")).collect::<Vec<_>>();
            (format!(", {name}: [u64; {words}]"), each.join(", "))
        }
    }
}

/// In `pebble` itself.
fn path(kind: Kind) -> String {
    match kind.rust() {
        "u64" => "u64".into(),
        own => format!("crate::words::{own}"),
    }
}

/// `thread_abort` is `ThreadAbort`.
pub fn type_name(method: &str) -> String {
    let capital = |part: &str| {
        let mut letters = part.chars();
        letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect::<String>()
    };
    method.split(['_', '-']).map(capital).collect()
}

/// For the library's build script: writes `clients.rs`.
pub fn build() {
    if let Err(error) = written() {
        println!("cargo::error={}", error.to_string().replace('\n', " "));
    }
}

fn written() -> Result<(), Box<dyn std::error::Error>> {
    let package = std::path::PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?);
    let root = crate::root(&package).ok_or("not in the project")?;
    let servers = crate::all(root)?;
    // Not the folders, which change with every source in them: `./pebble` says which descriptions there are.
    println!("cargo::rerun-if-env-changed=PEBBLE_INTERFACES");
    for interface in servers.iter().filter_map(|server| server.interfaces.first()) {
        println!("cargo::rerun-if-changed={}", root.join(&interface.at.file).display());
    }
    let out = std::path::Path::new(&std::env::var("OUT_DIR")?).join("clients.rs");
    std::fs::write(out, stubs(&servers))?;
    Ok(())
}

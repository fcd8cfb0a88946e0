//! The export records of a component, from its description: `interfaces.rs`, which `pebble::interfaces!()`
//! includes.
//!
//! One invocation for each interface. The function stands behind a comment that names the line of the
//! description: what the compiler says about a function that does not fit shows both.

use crate::{Interface, Server, load, root};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The lines.
pub fn exports(server: &Server) -> String {
    let mut out = String::new();
    if server.interfaces.iter().any(|interface| interface.parts().0 == "heap") {
        out += "use pebble::heap::heap_usage;\n";
    }
    for (order, interface) in server.interfaces.iter().enumerate() {
        let Interface { name, spec, entry, at, .. } = interface;
        let (way, words) = (way(interface), words(interface).join(", "));
        // Writing to a `String` cannot fail.
        let _ = writeln!(out, "pebble::interface!({order}, \"{name}\", \"{spec}\", {way},");
        let _ = writeln!(out, "    /* {at} */ {entry}({words}));");
    }
    out
}

fn way(interface: &Interface) -> &'static str {
    match (interface.switches, interface.spec.results) {
        (true, _) => "switching",
        (false, 0) => "plain",
        _ => "wide",
    }
}

/// The types of the function's words.
fn words(interface: &Interface) -> Vec<String> {
    let types = |kind: crate::Kind| match kind.rust() {
        "u64" => "u64".to_string(),
        own => format!("pebble::words::{own}"),
    };
    let arguments = interface.arguments.iter();
    arguments.flat_map(|argument| vec![types(argument.kind); argument.kind.words()]).collect()
}

/// For build scripts of components: writes the lines where `pebble::interfaces!()` looks for them. What is
/// wrong with the description is an error of the build.
pub fn build() {
    match written() {
        Ok(()) => {}
        Err(error) => println!("cargo::error={}", error.to_string().replace('\n', " ")),
    }
}

fn written() -> Result<(), Box<dyn std::error::Error>> {
    let package = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    println!("cargo::rerun-if-changed={}", package.join(crate::FILE).display());
    let root = root(&package).ok_or("not in the project: no folder above has the library")?;
    let folder = package.strip_prefix(root)?;
    let server = load(root, folder)?.ok_or_else(|| format!("{} has no {}", folder.display(), crate::FILE))?;
    fs::write(Path::new(&env::var("OUT_DIR")?).join("interfaces.rs"), exports(&server))?;
    Ok(())
}

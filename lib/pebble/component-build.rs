//! Build script of every component crate: links its binary with the component script.
use std::path::Path;

pub fn main() {
    let package = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    // In Pebble itself, or in a project that is built with it.
    let places =
        |folder: &Path| ["", ".pebble"].map(|pebble| folder.join(pebble).join("lib/pebble/component.ld"));
    let script = Path::new(&package).ancestors().flat_map(places).find(|script| script.exists());
    if let (Some(script), Ok("none")) = (script, std::env::var("CARGO_CFG_TARGET_OS").as_deref()) {
        println!("cargo:rustc-link-arg-bins=-T{}", script.display());
        println!("cargo:rustc-link-arg-bins=--no-relax-gp");
        println!("cargo:rerun-if-changed={}", script.display());
    }
}

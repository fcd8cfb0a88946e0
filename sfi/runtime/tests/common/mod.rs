//! Modules for tests: hand-written confined assembly, assembled and linked by LLVM's tools.
#![allow(dead_code)]

use pebble_sfi_runtime::{Image, Imports, Instance, Linked, Module, to_verify};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

fn run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(status.success(), "{command:?}: {status}");
}

fn modules() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/modules")
}

/// The file of `tests/modules/NAME.s` at a level (1 or 2).
pub fn build(name: &str, level: u32) -> Vec<u8> {
    build_from(&modules().join(format!("{name}.s")), name, level, &["-g"])
}

/// The same of another source file, which may include those.
pub fn build_from(source: &Path, name: &str, level: u32, options: &[&str]) -> Vec<u8> {
    let modules = modules();
    let thread = format!("{:?}", std::thread::current().id());
    let out = std::env::temp_dir().join(format!("pebble-sfi-{name}-{level}-{}-{thread}", std::process::id()));
    let (object, file) = (out.with_extension("o"), out.with_extension("pbl"));
    run(Command::new("clang-19")
        .args(["-c", "-x", "assembler", &format!("-Wa,-defsym,LEVEL={level}"), "-I"])
        .arg(&modules)
        .args(options)
        .arg(source)
        .arg("-o")
        .arg(&object));
    run(Command::new("ld.lld-19")
        .args(["-pie", "--no-dynamic-linker", "-z", "norelro", "-e", "pbl_text", "-T"])
        .arg(modules.join("module.ld"))
        .arg(&object)
        .arg("-o")
        .arg(&file));
    let bytes = std::fs::read(&file).expect("the module");
    let _ = (std::fs::remove_file(object), std::fs::remove_file(file));
    let image = Image::parse(&bytes).unwrap_or_else(|e| panic!("{e}"));
    let exports: Vec<u32> = image.exports.iter().map(|e| e.entry).collect();
    let labels = pebble_sfi_labels::find(&to_verify(&image, &exports));
    pebble_sfi_labels::attach(bytes, &labels).expect("a section of labels")
}

/// `basic` with a host function that adds its two words and 1000.
pub fn basic(level: u32) -> Arc<Linked> {
    let module = Module::load("basic", build("basic", level)).unwrap_or_else(|e| panic!("{e}"));
    let mut imports = Imports::new();
    imports.lenient = true;
    imports.closure("host0", |_, [a, b, ..]| a + b + 1000);
    imports.link(&module).expect("linked")
}

pub fn instance() -> Instance {
    Instance::new(&basic(1)).expect("an instance")
}

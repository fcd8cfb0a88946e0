//! The peers: WebAssembly by wasm2c and clang, and by Wasmtime.
//!
//! Both get what is best for them: bulk memory, conversions that do not trap, guard pages instead of bounds
//! checks; Wasmtime gets vector instructions too, which Debian's wasm2c cannot translate.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::compile::{self, Compiler, words};
use crate::manifest::{HOME, Program};
use crate::place::Place;
use crate::side::{CLANG, native};
use crate::source::Sources;

const TARGET: &str = "wasm32-wasi";
const FEATURES: &str = "-mbulk-memory -mnontrapping-fptoint -msign-ext";
/// As much as a native program gets.
const STACK: &str = "-Wl,-z,stack-size=8388608";
/// wasm2c's run-time library, as Debian has it.
const RUNTIME: &str = "/usr/share/wabt/wasm2c";

/// A program as a WebAssembly module.
fn module(place: &Place, sources: &Sources, program: &Program, simd: bool) -> Result<PathBuf> {
    ensure!(Path::new("/usr/include/wasm32-wasi").exists(), "wasi-libc is not installed (Debian: wasi-libc)");
    let vectors = if simd { " -msimd128" } else { "" };
    let headers = place.root.join(HOME).join("wasm/include");
    let compiler = Compiler {
        compile: words(&format!(
            "{CLANG} --target={TARGET} -O2 {FEATURES}{vectors} -I{} -D_WASI_EMULATED_SIGNAL \
             -D_WASI_EMULATED_PROCESS_CLOCKS -D_WASI_EMULATED_MMAN",
            headers.display()
        )),
        link: words(&format!("{CLANG} --target={TARGET} -O2 {STACK}")),
        libraries: words("-lm -lwasi-emulated-signal -lwasi-emulated-process-clocks"),
        made_from: vec![],
    };
    let directory = place.target.join(if simd { "wasm-simd" } else { "wasm" });
    compile::build(place, sources, program, &compiler, &directory)
}

/// C out of the module, and a native program out of that, with the compiler and library of the native side.
pub fn translated(place: &Place, sources: &Sources, program: &Program) -> Result<PathBuf> {
    let module = module(place, sources, program, false)?;
    let directory = place.target.join("wasm2c").join(&program.name);
    translate(
        place,
        &module,
        "program",
        &place.root.join(HOME).join("wasm/host.c"),
        &directory.join(&program.name),
    )
}

/// What measures calls into a module of wasm2c's.
pub fn translated_calls(place: &Place) -> Result<PathBuf> {
    let executable = place.target.join("wasm2c/calls/calls");
    translate(place, &calls(place)?, "calls", &place.root.join(HOME).join("wasm/calls.c"), &executable)
}

/// The module whose calls are measured.
pub fn calls(place: &Place) -> Result<PathBuf> {
    let module = place.target.join("calls.wasm");
    let text = place.root.join(HOME).join("wasm/calls.wat");
    if !newer(&module, &[&text]) {
        compile::run(Command::new("wat2wasm").arg(text).arg("-o").arg(&module))?;
    }
    Ok(module)
}

/// A module and its host in C, by way of wasm2c, as a program.
fn translate(place: &Place, module: &Path, name: &str, host: &Path, executable: &Path) -> Result<PathBuf> {
    if newer(executable, &[module, host]) {
        return Ok(executable.to_path_buf());
    }
    let directory = executable.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    let source = format!("{name}.c");
    let mut translate = Command::new("wasm2c");
    translate.arg(module).args(["--module-name", name, "-o"]).arg(directory.join(&source));
    compile::run(&mut translate)?;
    let native = native(place)?;
    // Its header is Debian's, among headers of another C library.
    fs::copy("/usr/include/wasm-rt.h", directory.join("wasm-rt.h"))
        .context("wabt is not installed (Debian: wabt)")?;
    for (source, object) in [
        (Path::new(&source), "module.o"),
        (host, "host.o"),
        (&Path::new(RUNTIME).join("wasm-rt-impl.c"), "runtime.o"),
    ] {
        let mut one = compile::command(&native.compile);
        one.current_dir(directory).args(["-w", "-c", "-I.", "-I/usr/include/wabt", "-I", RUNTIME]);
        compile::run(one.arg(source).arg("-o").arg(object))?;
    }
    let mut link = compile::command(&native.link);
    link.args(["module.o", "host.o", "runtime.o"].map(|name| directory.join(name)));
    compile::run(link.args(&native.libraries).arg("-o").arg(executable))?;
    Ok(executable.to_path_buf())
}

/// What runs a module by Wasmtime, which compiles it when it is first run, and the module.
pub fn compiled(place: &Place, sources: &Sources, program: &Program) -> Result<(Vec<OsString>, PathBuf)> {
    let module = module(place, sources, program, true)?;
    let cache = place.target.join("wasmtime-cache");
    let command = vec![wasmtime(place)?.into(), "run".into(), cache.into(), module.clone().into()];
    Ok((command, module))
}

/// Wasmtime with the little around it that the bench needs, built on first use.
pub fn wasmtime(place: &Place) -> Result<PathBuf> {
    let target = place.target.join("wasmtime");
    let manifest = place.root.join("sfi/bench/wasmtime/Cargo.toml");
    let mut command = Command::new(&place.cargo);
    command.args(["build", "--quiet", "--release", "--locked", "--manifest-path"]).arg(manifest);
    command.env("CARGO_TARGET_DIR", &target).env("RUSTC", &place.rustc);
    compile::run(command.env_remove("RUSTFLAGS").env_remove("CARGO_BUILD_TARGET"))?;
    Ok(target.join("release/pebble-sfi-wasmtime"))
}

/// Is a file there, and made after all others?
fn newer(file: &Path, than: &[&Path]) -> bool {
    let time = |path: &Path| fs::metadata(path).and_then(|m| m.modified()).ok();
    let made = time(file);
    made.is_some() && than.iter().all(|other| time(other) <= made)
}

//! Modules for tests: hand-written confined assembly, assembled and linked by LLVM's tools.
#![allow(dead_code)]

use pebble_sfi_runtime::{CallError, Fault, Image, Imports, Instance, Linked, Module, to_verify};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

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
    basic_with(level, None)
}

/// The same with instructions for what the symbol stands for.
pub fn basic_with(level: u32, symbol: Option<&str>) -> Arc<Linked> {
    let defined = symbol.map(|symbol| format!("-Wa,-defsym,{symbol}=1"));
    let options: Vec<&str> = ["-g"].into_iter().chain(defined.as_deref()).collect();
    let file = build_from(&modules().join("basic.s"), "basic", level, &options);
    let module = Module::load("basic", file).unwrap_or_else(|e| panic!("{e}"));
    let mut imports = Imports::new();
    imports.lenient = true;
    imports.closure("host0", |_, [a, b, ..]| a + b + 1000);
    imports.link(&module).expect("linked")
}

pub fn instance() -> Instance {
    Instance::new(&basic(1)).expect("an instance")
}

/// Processor time of a thread.
pub fn time(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes a structure of ours.
    unsafe { libc::clock_gettime(clock, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

pub fn used() -> Duration {
    time(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// This thread's, for another one to read.
pub fn own_clock() -> libc::clockid_t {
    let mut clock = libc::CLOCK_THREAD_CPUTIME_ID;
    // SAFETY: asks for this thread's clock.
    unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &mut clock) };
    clock
}

pub fn fault(done: Result<u64, CallError>) -> Fault {
    match done {
        Err(CallError::Fault(fault)) => *fault,
        other => panic!("{other:?}"),
    }
}

pub fn function(fault: &Fault) -> Option<&str> {
    fault.function.as_ref().map(|f| f.0.as_str())
}

/// Nothing is left of calls in these, and each is sound again.
pub fn sound_again<'a>(all: impl IntoIterator<Item = &'a Instance>) {
    for i in all {
        assert!(!i.busy());
        i.reset().unwrap();
        assert_eq!(i.portal("add", "smii").unwrap().call(&[1, 2]).unwrap(), 3);
    }
}

/// Whether this is the process that was made for the test; otherwise it is made, and must end well.
pub fn alone(test: &str) -> bool {
    if std::env::var_os("PEBBLE_ALONE").is_some() {
        return true;
    }
    let mut own = Command::new(std::env::current_exe().unwrap());
    let output = own.args(["--exact", test, "--nocapture"]).env("PEBBLE_ALONE", "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "signal {:?}: {said}", output.status.signal());
    // What it has counted.
    said.lines().filter(|line| line.starts_with("note: ")).for_each(|line| eprintln!("{line}"));
    false
}

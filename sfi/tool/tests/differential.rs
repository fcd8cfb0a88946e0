//! The same program, native and confined, must print the same: every corpus program, both compilers, all
//! optimisation levels, all protection levels. The confined side runs in an unverified loader that provides
//! imports.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const LEVELS: [&str; 3] = ["write", "full", "check"];
const OPTIMISE: [&str; 5] = ["-O0", "-O1", "-O2", "-O3", "-Os"];
/// Corpus program and how many lines it prints at least: an empty run must not pass.
const PROGRAMS: [(&str, usize); 4] = [("calls", 14), ("jumps", 67), ("frames", 10), ("data", 20)];

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

fn ok(c: &mut Command) -> Output {
    let out = c.output().unwrap_or_else(|e| panic!("{c:?}: {e}"));
    assert!(out.status.success(), "{c:?}: {}\n{}", out.status, String::from_utf8_lossy(&out.stderr));
    out
}

struct Bench {
    dir: PathBuf,
    loader: PathBuf,
}

impl Bench {
    fn new(name: &str) -> Bench {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&dir).expect("a directory for the test");
        let loader = dir.join("loader");
        ok(Command::new("gcc")
            .args(["-O1", "-w"])
            .arg(here().join("harness/loader.c"))
            .arg("-o")
            .arg(&loader));
        Bench { dir, loader }
    }

    fn native(&self, compiler: &str, flags: &[&str], source: &Path) -> String {
        let program = self.dir.join("native");
        let mut c = Command::new(compiler);
        c.arg("-w").args(flags).arg("-I").arg(here().join("harness")).arg(here().join("harness/native.c"));
        ok(c.arg(source).arg("-o").arg(&program));
        String::from_utf8(ok(&mut Command::new(&program)).stdout).expect("text")
    }

    fn module(&self, compiler: &str, level: &str, flags: &[&str], source: &Path) -> PathBuf {
        let module = self.dir.join("module.pbl");
        let mut c = Command::new(env!("CARGO_BIN_EXE_pebble-sfi"));
        c.args(["cc", "-w", "--compiler", compiler, "--export", "t_main"])
            .arg(format!("-fpbl-level={level}"));
        ok(c.args(flags).arg("-I").arg(here().join("harness")).arg(source).arg("-o").arg(&module));
        module
    }

    fn confined(&self, module: &Path) -> String {
        let out = Command::new(&self.loader).arg(module).output().expect("the loader runs");
        String::from_utf8(out.stdout).expect("text")
    }
}

fn differential(tag: &str, native: &str, compiler: &str) {
    let bench = Bench::new(tag);
    let mut cases = 0;
    for (program, lines) in PROGRAMS {
        let source = here().join(format!("corpus/{program}.c"));
        for o in OPTIMISE {
            let flags = [o];
            let expected = bench.native(native, &flags, &source);
            assert!(expected.lines().count() > lines, "{program} prints too little to prove anything");
            for (level, flags) in
                LEVELS.map(|level| (level, &flags[..])).into_iter().chain([("full", &[o, "-fpbl-base"][..])])
            {
                let module = bench.module(compiler, level, flags, &source);
                assert_eq!(bench.confined(&module), expected, "{program} {compiler} {flags:?} {level}");
                cases += 1;
            }
        }
    }
    assert_eq!(cases, PROGRAMS.len() * OPTIMISE.len() * (LEVELS.len() + 1));
}

#[test]
fn clang_programs_print_the_same_confined() {
    differential("clang", "clang-19", "clang");
}

#[test]
fn gcc_programs_print_the_same_confined() {
    // gcc realigns a frame that also has an alloca before it sets up its frame pointer.
    differential("gcc", "gcc", "gcc");
}

#[test]
fn cxx_objects_behave_the_same() {
    let bench = Bench::new("cxx");
    let source = here().join("corpus/objects.cc");
    for o in ["-O0", "-O2"] {
        let object = bench.dir.join("objects.o");
        let mut c = Command::new("clang++-19");
        ok(c.args([o, "-w", "-fno-exceptions", "-fno-rtti", "-c"]).arg(&source).arg("-o").arg(&object));
        let expected = bench.native("clang-19", &[], &object);
        assert!(expected.lines().count() > 5);
        for (compiler, level) in [("clang", "write"), ("clang", "full"), ("gcc", "full"), ("gcc", "check")] {
            let module = bench.dir.join("objects.pbl");
            let mut c = Command::new(env!("CARGO_BIN_EXE_pebble-sfi"));
            c.args(["c++", "-w", o, "--compiler", compiler, "--export", "t_main"])
                .arg(format!("-fpbl-level={level}"));
            ok(c.arg(&source).arg("-o").arg(&module));
            assert_eq!(bench.confined(&module), expected, "{compiler} {o} {level}");
        }
    }
}

#[test]
fn rust_crates_behave_the_same() {
    let bench = Bench::new("rust");
    let source = here().join("corpus/machine.rs");
    let flags = ["--edition", "2024", "-C", "opt-level=2"];
    let archive = bench.dir.join("libmachine.a");
    let mut c = Command::new("rustc");
    ok(c.args(["--crate-type", "staticlib", "-C", "panic=abort"])
        .args(flags)
        .arg(&source)
        .arg("-o")
        .arg(&archive));
    let expected = bench.native("clang-19", &[], &archive);
    assert!(expected.lines().count() > 10);
    for level in LEVELS {
        let (object, module) = (bench.dir.join("machine.o"), bench.dir.join("machine.pbl"));
        let mut c = Command::new(env!("CARGO_BIN_EXE_pebble-sfi"));
        c.args(["rustc", "--crate-type", "lib"]).arg(format!("-fpbl-level={level}")).args(flags);
        ok(c.arg(&source).arg("-o").arg(&object));
        let mut c = Command::new(env!("CARGO_BIN_EXE_pebble-sfi"));
        ok(c.args(["ld", "--export", "t_main", "--level", level]).arg(&object).arg("-o").arg(&module));
        assert_eq!(bench.confined(&module), expected, "{level}");
    }
}

/// The wall itself: a store through a foreign pointer lands in the segment (`write`, `full`) or traps
/// (`check`).
#[test]
fn wild_stores_stay_inside() {
    let bench = Bench::new("wild");
    let source = bench.dir.join("wild.c");
    let text = "#include \"t.h\"\nlong cell = 1;\n__attribute__((noinline)) void put(long *p, long v) { *p = \
        v; }\n\
                int t_main(void) { put((long *)((unsigned long)&cell + (1ul << 32)), 7); t_out(cell); return \
        0; }\n";
    std::fs::write(&source, text).expect("source");
    for level in ["write", "full"] {
        assert_eq!(
            bench.confined(&bench.module("clang", level, &["-O1"], &source)),
            "7\nresult 0\n",
            "{level}"
        );
    }
    let out = bench.confined(&bench.module("clang", "check", &["-O1"], &source));
    assert!(out.starts_with("trap 4 "), "check must stop at the store: {out}");
}

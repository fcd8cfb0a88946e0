//! `setjmp` and `longjmp` where frames are of no fixed size: in the runtime as natively.

use pebble_sfi_runtime::{Imports, Instance, Module};
use std::path::{Path, PathBuf};
use std::process::Command;

fn ok(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// The module's file.
fn confined(compiler: &str, optimise: &str, level: &str, source: &Path, place: &Path) -> PathBuf {
    let jumps = Path::new(env!("CARGO_MANIFEST_DIR")).join("../libc/glue/setjmp.s");
    let (module, file) = (place.with_extension("pbl"), place.with_extension("o"));
    let tool = || {
        let mut tool = Command::new(env!("CARGO_BIN_EXE_pebble-sfi"));
        tool.args(["cc", "-nostdlib", "-w", &format!("-fpbl-level={level}")]);
        tool
    };
    ok(tool().arg("-c").arg(jumps).arg("-o").arg(&file));
    let options = ["--compiler", compiler, optimise, "-mavx2", "--export", "leap=smii"];
    ok(tool().args(options).arg(source).arg(&file).arg("-o").arg(&module));
    module
}

#[test]
fn jumps_into_frames_of_any_size() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/leaps.c");
    let place = std::env::temp_dir().join(format!("pebble-sfi-leaps-{}", std::process::id()));
    for (compiler, native) in [("clang", "clang-19"), ("gcc", "gcc")] {
        let mut cc = Command::new(native);
        cc.args(["-O1", "-w", "-mavx2", "-DNATIVE"]).arg(&source).arg("-o").arg(&place);
        ok(&mut cc);
        let expected: Vec<i64> = ok(&mut Command::new(&place)).lines().map(|l| l.parse().unwrap()).collect();
        assert_eq!(expected.len(), 8 * 4);
        for optimise in ["-O0", "-O1", "-O2", "-O3", "-Os"] {
            for level in ["write", "full", "check"] {
                let module = Module::open(&confined(compiler, optimise, level, &source, &place));
                let module = module.unwrap_or_else(|e| panic!("{compiler} {optimise} {level}: {e}"));
                let i = Instance::new(&Imports::new().link(&module).unwrap()).unwrap();
                let leap = i.portal("leap", "").unwrap();
                let cases = (0..8).flat_map(|which| [10, 73, 136, 199].map(|n| [which, n]));
                for (words, wanted) in cases.zip(&expected) {
                    let got =
                        leap.call(&words).unwrap_or_else(|e| panic!("{words:?} {optimise} {level}: {e}"));
                    assert_eq!(got as i64, *wanted, "{words:?} {compiler} {optimise} {level}");
                }
            }
        }
    }
    for extension in ["", "o", "pbl"] {
        let _ = std::fs::remove_file(place.with_extension(extension));
    }
}

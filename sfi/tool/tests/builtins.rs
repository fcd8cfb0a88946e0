//! The compiler's helper functions in the C library of fault domains agree with those of the host's
//! compilers.

use std::path::Path;
use std::process::{Command, Stdio};

/// What a program of the corpus says, with our functions (which go before a library's) or without.
fn said(name: &str, compiler: &str, ours: bool) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{compiler}-{ours}"));
    let mut command = Command::new(compiler);
    command.args(["-O2", "-w"]).arg(root.join(format!("sfi/tool/tests/corpus/{name}.c")));
    if ours {
        command.args(["builtins", "formats"].map(|file| root.join(format!("sfi/libc/glue/{file}.c"))));
    }
    let status =
        command.arg("-lm").arg("-o").arg(&program).status().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(status.success(), "{command:?}");
    let output = Command::new(&program).stdin(Stdio::null()).output().expect("the program runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

fn ours_say_what_theirs_say(name: &str) {
    for compiler in ["clang-19", "gcc"] {
        let (ours, theirs) = (said(name, compiler, true), said(name, compiler, false));
        assert!(theirs.lines().count() > 20_000, "{compiler}: the program says too little to prove anything");
        let differ = ours.lines().zip(theirs.lines()).enumerate().find(|(_, (a, b))| a != b);
        assert!(ours.len() == theirs.len() && differ.is_none(), "{compiler}: {differ:?}");
    }
}

#[test]
fn integers_and_complex_numbers() {
    ours_say_what_theirs_say("builtins");
}

/// Of 128 and of 16 bits, to the bit, rounded in each way, with the exceptions that they raise.
#[test]
fn other_formats_of_floating_point() {
    ours_say_what_theirs_say("formats");
}

//! The compiler's helper functions in the C library of fault domains agree with those of the host's compilers.

use std::path::Path;
use std::process::{Command, Stdio};

/// What the program says, with our functions (which go before a library's) or without.
fn said(compiler: &str, ours: bool) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("builtins-{compiler}-{ours}"));
    let mut command = Command::new(compiler);
    command.args(["-O2", "-w"]).arg(root.join("sfi/tool/tests/corpus/builtins.c"));
    if ours {
        command.arg(root.join("sfi/libc/glue/builtins.c"));
    }
    let status =
        command.arg("-lm").arg("-o").arg(&program).status().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(status.success(), "{command:?}");
    let output = Command::new(&program).stdin(Stdio::null()).output().expect("the program runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn ours_say_what_the_compilers_own_say() {
    for compiler in ["clang-19", "gcc"] {
        let (ours, theirs) = (said(compiler, true), said(compiler, false));
        assert!(theirs.lines().count() > 20_000, "{compiler}: the program says too little to prove anything");
        let differ = ours.lines().zip(theirs.lines()).enumerate().find(|(_, (a, b))| a != b);
        assert!(ours.len() == theirs.len() && differ.is_none(), "{compiler}: {differ:?}");
    }
}

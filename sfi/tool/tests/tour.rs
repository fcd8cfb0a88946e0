//! The example in `examples/sfi`: a plugin, and a host in C that calls it and survives it.

use std::path::Path;
use std::process::Command;

#[test]
fn a_host_survives_its_plugin() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let exe = std::env::current_exe().expect("this test");
    let libraries = exe.parent().expect("its directory");
    let place = std::env::temp_dir().join(format!("pebble-sfi-tour-{}", std::process::id()));
    let module = place.with_extension("pbl");
    let run = |command: &mut Command| {
        let status = command.status().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        assert!(status.success(), "{command:?}");
    };
    run(Command::new(env!("CARGO_BIN_EXE_pebble-sfi"))
        .args(["cc", "-g", "-O2", "-nostdlib", "-isystem"])
        .arg(root.join("sfi/libc/include"))
        .arg(root.join("examples/sfi/plugin.c"))
        .arg("-o")
        .arg(&module));
    run(Command::new("clang-19")
        .args(["-Wall", "-Wextra", "-Werror", "-I"])
        .arg(root.join("sfi/runtime/include"))
        .arg(root.join("examples/sfi/host.c"))
        .arg(libraries.join("libpebble_sfi_runtime.so"))
        .arg("-o")
        .arg(&place));
    let output =
        Command::new(&place).arg(&module).env("LD_LIBRARY_PATH", libraries).output().expect("the host");
    let said = String::from_utf8_lossy(&output.stdout);
    let wanted = [
        "sum of squares: 385",
        "a pixel: 150",
        "crash survived: cause 1 in crash at plugin.c:",
        "poisoned: yes",
        "hang survived: cause 6 in hang at plugin.c:",
        "as good as new: 385",
    ];
    assert_eq!(said.lines().count(), wanted.len(), "{output:?}");
    for (line, wanted) in said.lines().zip(wanted) {
        assert!(line.starts_with(wanted), "{line:?} is not {wanted:?}");
    }
    let _ = (std::fs::remove_file(place), std::fs::remove_file(module));
}

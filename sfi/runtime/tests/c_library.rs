//! The C library, from C and from C++.

mod common;

use std::process::Command;

#[test]
fn a_c_program_uses_it() {
    let exe = std::env::current_exe().expect("this test");
    let deps = exe.parent().expect("its directory");
    let library = deps.join("libpebble_sfi_runtime.so");
    assert!(library.exists(), "{}", library.display());
    let root = env!("CARGO_MANIFEST_DIR");
    let place = std::env::temp_dir().join(format!("pebble-sfi-host-{}", std::process::id()));
    let module = place.with_extension("pbl");
    std::fs::write(&module, common::build("basic", 1)).expect("the module");
    let files = place.with_extension("files");
    std::fs::create_dir_all(&files).expect("a directory");
    let program = files.join("program.pbl");
    std::fs::write(&program, common::build("program", 1)).expect("the program");
    for (compiler, language) in [("clang-19", "c"), ("clang++-19", "c++")] {
        let options = ["-Wall", "-Wextra", "-Werror", "-Wno-cast-function-type", "-x", language];
        let status = Command::new(compiler)
            .args(options)
            .args(["-I", &format!("{root}/include"), &format!("{root}/tests/host.c"), "-x", "none"])
            .arg(&library)
            .arg("-o")
            .arg(&place)
            .status()
            .expect(compiler);
        assert!(status.success(), "{compiler}: {status}");
        let run = Command::new(&place)
            .args([&module, &program, &files])
            .env("LD_LIBRARY_PATH", deps)
            .output()
            .expect("the host");
        assert_eq!(String::from_utf8_lossy(&run.stdout), "all is well\n", "{run:?}");
        assert_eq!(std::fs::read(files.join("variable")).expect("what it has written"), b"text");
        std::fs::remove_file(files.join("variable")).expect("a file");
    }
    let _ = (std::fs::remove_file(place), std::fs::remove_file(module), std::fs::remove_dir_all(files));
}

/// Nothing unwinds into C: the body of every function of the library is guarded, but for the signal handler's
/// and one that is a jump to such a body.
#[test]
fn every_function_is_guarded() {
    let source = concat!(
        include_str!("../src/capi.rs"),
        include_str!("../src/capi/call.rs"),
        include_str!("../src/capi/policy.rs")
    );
    let functions: Vec<&str> = source.split("extern \"C\" fn pbl_").skip(1).collect();
    assert!(functions.len() > 40);
    let exempt = ["handle_signal", "instance_reset"];
    for function in functions {
        let name = function.split('(').next().unwrap();
        let body = function.split_once("{\n").map_or("", |(_, body)| body.trim_start());
        assert!(body.starts_with("guarded(") || exempt.contains(&name), "pbl_{name}");
    }
}

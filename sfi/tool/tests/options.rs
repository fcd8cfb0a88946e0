//! Options as builds of existing projects pass them: each does what it says, or is refused in one line that
//! says why; and what is refused leaves no file that `make` would take for made.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

struct Place(PathBuf);

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Place {
    fn new(name: &str) -> Place {
        let place = std::env::temp_dir().join(format!("pebble-sfi options {name} {}", std::process::id()));
        let _ = std::fs::remove_dir_all(&place);
        std::fs::create_dir_all(place.join("a b")).unwrap();
        std::fs::write(place.join("f.c"), "int g(int);\nint f(int n) { return n * g(n); }\n").unwrap();
        std::fs::write(place.join("a b/g h.c"), "int g(int n) { return n + 1; }\n").unwrap();
        Place(place)
    }

    /// Without the C library, with the text as its input.
    fn cc(&self, arguments: &[&str], input: &str) -> Output {
        let mut cc = Command::new(env!("CARGO_BIN_EXE_pebble-sfi"));
        cc.current_dir(&self.0)
            .arg("cc")
            .args(arguments)
            .env_remove("PEBBLE_SFI_LIBC")
            .env_remove("PEBBLE_CC");
        cc.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = cc.spawn().unwrap();
        let _ = running.stdin.take().unwrap().write_all(input.as_bytes());
        running.wait_with_output().unwrap()
    }

    fn has(&self, file: &str) -> bool {
        self.0.join(file).exists()
    }
}

#[test]
fn options_do_what_they_say() {
    let place = Place::new("said");
    std::fs::write(place.0.join("words"), "-O2 'a b/g h.c' \"f.c\"\n-o resp\\ onse.pbl --export f").unwrap();
    // Arguments, input, and the files that they make.
    let cases: [(&[&str], &str, &[&str]); 25] = [
        (&["-O3", "-march=x86-64-v3", "-flto", "-c", "f.c", "-o", "1.o"], "", &["1.o"]),
        (&["-fPIC", "-fcf-protection", "-fno-plt", "-static", "-pie", "-c", "f.c"], "", &["f.o"]),
        (&["-g", "-ftrapv", "f.c", "a b/g h.c", "--export", "f", "-o", "2.pbl"], "", &["2.pbl"]),
        (
            &[
                "-fsanitize=undefined",
                "-fsanitize-trap=all",
                "--export",
                "f",
                "f.c",
                "a b/g h.c",
                "-o",
                "3.pbl",
            ],
            "",
            &["3.pbl"],
        ),
        (&["-fno-sanitize=all", "-c", "f.c", "-o3.o"], "", &["3.o"]),
        (&["@words"], "", &["resp onse.pbl"]),
        (&["-x", "c", "-c", "-", "-o", "4.o"], "int x;", &["4.o"]),
        (&["-xc", "-c", "-", "-o", "a b/5 6.o"], "int x;", &["a b/5 6.o"]),
        (&["-E", "f.c", "-o", "7.i"], "", &["7.i"]),
        (&["-E", "-"], "int x;", &[]),
        (&["-S", "f.c"], "", &["f.s"]),
        (&["-S", "f.c", "-o", "-"], "", &[]),
        (&["-M", "f.c"], "", &[]),
        (&["-MM", "-MF", "8.d", "f.c"], "", &["8.d"]),
        (&["-MD", "-c", "f.c", "-o", "9.o"], "", &["9.o", "9.d"]),
        (&["-MMD", "-MP", "--export", "f", "f.c", "-o", "10.pbl"], "", &["10.pbl", "10.d"]),
        (&["-MMD", "-MF", "11.dep", "-MT", "x", "-c", "a b/g h.c"], "", &["11.dep", "g h.o"]),
        (&["-c", "f.c", "a b/g h.c"], "", &["f.o", "g h.o"]),
        (&["-c", "f.c", "-o", "/dev/null"], "", &[]),
        (&["f.c", "--export", "f", "-o", "/dev/null"], "", &[]),
        (&["-fsyntax-only", "f.c"], "", &[]),
        (&["f.c", "-Wl,-s", "-Xlinker", "-s", "-s", "--export", "f", "-o", "12.pbl"], "", &["12.pbl"]),
        (&["--help"], "", &[]),
        (&["--version"], "", &[]),
        (&["-dumpmachine"], "", &[]),
    ];
    for (arguments, input, files) in cases {
        let output = place.cc(arguments, input);
        assert!(output.status.success() && output.stderr.is_empty(), "{arguments:?}: {output:?}");
        files.iter().for_each(|file| assert!(place.has(file), "{arguments:?}: {file}"));
        let says = ["-E", "-M", "--help", "--version", "-dumpmachine"].contains(&arguments[0])
            || arguments.contains(&"-");
        assert_eq!(!output.stdout.is_empty(), says && files.is_empty(), "{arguments:?}: {output:?}");
        files.iter().for_each(|file| std::fs::remove_file(place.0.join(file)).unwrap());
        assert!(!place.has("a.out") && !place.has("-"), "{arguments:?}");
    }
    let mode = |path: &Path| std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(path).unwrap());
    assert!(place.cc(&["f.c", "--export", "f", "-o", "13.pbl"], "").status.success());
    assert!(mode(&place.0.join("13.pbl")) & 0o100 != 0, "configure looks for an executable file");
    assert_eq!(mode(Path::new("/dev/null")) & 0o777, 0o666);
}

#[test]
fn what_cannot_be_had_is_refused_in_one_line() {
    let place = Place::new("refused");
    let cases: [(&[&str], &str); 21] = [
        (&["-mavx512f", "-c", "f.c"], "-mavx512f: code for AVX-512 cannot be confined"),
        (&["--compiler", "gcc", "-mavx512vl", "-c", "f.c"], "ask for -march=x86-64-v3"),
        (&["-m32", "f.c"], "-m32: confined code is x86-64"),
        (&["-mx32", "f.c"], "-mx32: confined code is x86-64"),
        (&["--target=aarch64-linux-gnu", "f.c"], "confined code is x86-64"),
        (&["-target", "i386-linux-gnu", "f.c"], "confined code is x86-64"),
        (&["-pg", "f.c"], "-pg: its counters"),
        (&["--coverage", "f.c"], "counters"),
        (&["-fprofile-generate", "f.c"], "counters"),
        (&["-fsanitize=address", "f.c"], "-fsanitize=address: sanitizers need a runtime"),
        (&["-fsanitize=undefined", "-c", "f.c"], "-fsanitize-trap"),
        (&["-mcmodel=large", "f.c"], "less than 2 GiB"),
        (&["-fsplit-stack", "f.c"], "guard page"),
        (&["-fpatchable-function-entry=2", "f.c"], "verified"),
        (&["-mretpoline", "f.c"], "indirect jumps"),
        (&["-emit-llvm", "-c", "f.c"], "machine code"),
        (&["--compiler", "tcc", "f.c"], "tcc"),
        (&["-c", "f.c", "a b/g h.c", "-o", "a.out"], "several sources"),
        (&["-o", "a.out"], "no input files"),
        (&["-c"], "no input files"),
        (&["f.c", "--export", "missing"], "no object file defines"),
    ];
    for (arguments, why) in cases {
        let output = place.cc(arguments, "");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
        assert!(said.lines().count() == 1 && said.contains(why), "{arguments:?}: {said}");
        assert!(!place.has("a.out"), "{arguments:?}");
    }
    // A response file whose quotation does not end.
    std::fs::write(place.0.join("open"), "-c 'f.c").unwrap();
    assert!(String::from_utf8_lossy(&place.cc(&["@open"], "").stderr).contains("@open"));
}

/// What a `configure` asks is refused where its code is, be it never used, and where the machine has it.
#[test]
fn there_is_no_avx512_to_be_found() {
    let place = Place::new("wide");
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../libc/include");
    let asked = "#pragma GCC target(\"avx512f\")\n#include <immintrin.h>\n#ifndef __AVX512F__\n#error none\n\
        #endif\nint main(void) { return 0; }\n";
    let plain = "#include <immintrin.h>\n#ifdef __AVX512F__\n#error some\n#endif\n__m256i f(__m256i a) { \
        return _mm256_add_epi32(a, a); }\n";
    for compiler in ["clang", "gcc"] {
        let options = ["--compiler", compiler, "-O1", "-isystem", include, "-c", "-xc", "-", "-o", "probe.o"];
        let said = place.cc(&options, asked);
        assert!(!said.status.success() && !place.has("probe.o"), "{compiler}: {said:?}");
        let options = [&options[..], &["-march=skylake-avx512"]].concat();
        let said = place.cc(&options, plain);
        assert!(said.status.success(), "{compiler}: {said:?}");
        let _ = std::fs::remove_file(place.0.join("probe.o"));
    }
}

/// Where the compiler has no line numbers too: outside of functions, in those without debug information, in
/// what the preprocessor has made.
#[test]
fn what_is_refused_has_its_line() {
    let place = Place::new("lines");
    let outside = "int f(int x) { return x; }\n\nasm(\".type \
        raw,@function\\nraw:\\n\"\n    \"\\tsyscall\\n\\tret\");\nint g(int x) { return x; }\n";
    let hidden = "int f(int x) { return x; }\n\n__attribute__((nodebug)) int g(void) {\n    asm \
        volatile(\"syscall\");\n    return 0;\n}\n";
    let plain = "\n\nint f(int x) { asm volatile(\"syscall\"); return x; }\n";
    let assembly =
        "#define NAME raw\n/* of\n   lines */\n    .type NAME,@function\nNAME:\n    syscall\n    ret\n";
    for (file, text, line) in [
        ("outside.c", outside, 4),
        ("outside.cc", outside, 4),
        ("hidden.c", hidden, 4),
        ("plain.c", plain, 3),
        ("assembly.S", assembly, 6),
    ] {
        std::fs::write(place.0.join(file), text).unwrap();
        for options in [&["--compiler", "clang"], &["--compiler", "gcc"]] {
            for more in [&["-O1"][..], &["-g", "-O0"], &["-g", "-O2"]] {
                let output = place.cc(&[&options[..], more, &["-c", file, "-o", "made.o"]].concat(), "");
                let said = String::from_utf8_lossy(&output.stderr);
                let wanted = format!("cc: {file}:{line}: ");
                assert!(
                    said.contains(&wanted) && said.contains("`syscall` is not allowed"),
                    "{options:?} {more:?}: {said}"
                );
            }
        }
    }
}

/// What is kept is what the message speaks of.
#[test]
fn the_line_of_the_assembly_is_that_of_the_file_that_is_kept() {
    let place = Place::new("kept");
    std::fs::write(place.0.join("a.c"), "int f(int x) {\n    asm volatile(\"syscall\");\n    return x;\n}\n")
        .unwrap();
    let mut cc = Command::new(env!("CARGO_BIN_EXE_pebble-sfi"));
    let cc = cc.current_dir(&place.0).args(["cc", "-c", "a.c"]).env("PEBBLE_SFI_KEEP", "kept.s");
    let said = String::from_utf8_lossy(&cc.output().unwrap().stderr).into_owned();
    let line = said.split_once("(line ").and_then(|(_, rest)| rest.split_once(' ')?.0.parse::<usize>().ok());
    let kept = std::fs::read_to_string(place.0.join("kept.s")).unwrap();
    assert_eq!(kept.lines().nth(line.expect(&said) - 1).map(str::trim), Some("syscall"), "{said}");
}

/// Found by the verifier when everything is linked already.
#[test]
fn what_the_verifier_refuses_is_not_written() {
    let place = Place::new("verified");
    // An instruction that is passed on as it is, and not on the verifier's list.
    std::fs::write(place.0.join("bad.s"), "\t.globl f\n\t.type f,@function\nf:\n\trdpmc\n\tret\n").unwrap();
    std::fs::write(place.0.join("bad.pbl"), "from before").unwrap();
    let output = place.cc(&["bad.s", "--export", "f", "-o", "bad.pbl"], "");
    assert!(String::from_utf8_lossy(&output.stderr).contains("the verifier refuses"), "{output:?}");
    assert_eq!(std::fs::read(place.0.join("bad.pbl")).unwrap(), b"from before", "{output:?}");
}

/// Whoever links the object of a crate alone is told what is missing.
#[test]
fn rust_without_its_core_is_refused() {
    let place = Place::new("crates");
    let text = "#![no_std]\n#[panic_handler]\nfn p(_: &core::panic::PanicInfo) -> ! {\n    loop {}\n}\n\
                #[no_mangle]\npub extern \"C\" fn f(n: usize) -> u8 {\n    b\"abc\"[n]\n}\n";
    std::fs::write(place.0.join("f.rs"), text).unwrap();
    let sfi = |arguments: &[&str]| {
        let mut sfi = Command::new(env!("CARGO_BIN_EXE_pebble-sfi"));
        sfi.current_dir(&place.0).args(arguments).env_remove("PEBBLE_SFI_LIBC").env_remove("PEBBLE_SFI_RUST");
        sfi.output().unwrap()
    };
    let made = sfi(&["rustc", "-O", "--crate-type", "lib", "-fpbl-no-merge", "f.rs"]);
    assert!(made.status.success() && place.has("f.o"), "{made:?}");
    let whole = ["rustc", "-O", "--crate-type", "cdylib", "f.rs", "--export", "f"];
    for link in [&["ld", "f.o", "--export", "f", "-o", "f.pbl"][..], &whole] {
        let said = sfi(link);
        let text = String::from_utf8_lossy(&said.stderr);
        let told =
            text.contains("core::panicking::panic_bounds_check") && text.contains("pebble sfi rustc FILE.rs");
        assert!(said.status.code() == Some(1) && told && !place.has("f.pbl"), "{text}");
    }
    for (question, answer) in [("-vV", "release: "), ("--version", "rustc "), ("--print=cfg", "unix")] {
        let said = sfi(&["rustc", question]);
        assert!(said.status.success() && String::from_utf8_lossy(&said.stdout).contains(answer), "{said:?}");
    }
    for (compiler, source) in [("rustc", "f.rs"), ("cc", "f.c")] {
        let said = sfi(&[compiler, "-fpbl-nonsense", source]);
        let text = String::from_utf8_lossy(&said.stderr);
        assert!(
            text.contains("no -fpbl-nonsense") && text.contains("-fpbl-level=write|full|check"),
            "{text}"
        );
    }
}

#[test]
fn the_linker_says_who_it_is_and_what_it_lacks() {
    let place = Place::new("linker");
    for (arguments, code, wanted) in [
        (&["ld", "--version"][..], 0, "(compatible with GNU linkers)"),
        (&["ld", "-v"], 0, "(compatible with GNU linkers)"),
        (&["ld", "--help"], 0, "--gc-sections"),
        (&["verify", "--help"], 0, "usage: pebble sfi verify"),
        (&["ld"], 1, "no input files"),
        (&["ld", "-o", "x.pbl"], 1, "no input files"),
        (&["ld", "-r", "f.o"], 1, "archive"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_pebble-sfi"))
            .current_dir(&place.0)
            .args(arguments)
            .output()
            .unwrap();
        let said = if code == 0 { &output.stdout } else { &output.stderr };
        let said = String::from_utf8_lossy(said);
        assert!(output.status.code() == Some(code) && said.contains(wanted), "{arguments:?}: {output:?}");
        assert!(!place.has("a.out") && !place.has("x.pbl"));
    }
}

#[test]
fn arguments_need_not_be_text() {
    use std::os::unix::ffi::OsStrExt;
    let bytes = std::ffi::OsStr::from_bytes(b"f\xff.c");
    for (command, code, wanted) in [("cc", 2, "is not UTF-8"), ("run", 1, "No such file")] {
        let output = Command::new(env!("CARGO_BIN_EXE_pebble-sfi")).arg(command).arg(bytes).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(code) && said.contains(wanted), "{command}: {output:?}");
    }
}

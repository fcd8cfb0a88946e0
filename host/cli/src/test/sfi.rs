//! Fault domains from their user's side: existing projects, built by `CC='pebble sfi cc'`, say what they say
//! natively; a program can do what its policy allows, and nothing else.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::tools::{Tools, program};
use crate::{fuzz, sfi, ui};

type Test = fn(&Tools) -> Result<()>;

/// Not with `--quick`: most want the C library.
pub const GROUPS: [(&str, Test); 7] = [
    ("sfi-help", commands_are_explained),
    ("sfi-library", functions_have_a_library),
    ("sfi-policy", programs_do_what_their_policy_allows),
    ("sfi-cxx", super::cxx::programs_and_headers),
    ("sfi-rust", rust_has_its_core),
    ("sfi-same", confined_code_computes_what_native_code_does),
    ("sfi-real", existing_projects_say_the_same),
];

/// `pebble sfi` alone is a mistake, `pebble sfi help` a question; both have the same answer. Each command
/// tells what it takes.
fn commands_are_explained(tools: &Tools) -> Result<()> {
    for (arguments, code) in [(&["sfi"][..], 2), (&["sfi", "help"], 0)] {
        let output = Command::new(tools.root.join("pebble")).args(arguments).output()?;
        let (said, other) =
            if code == 0 { (&output.stdout, &output.stderr) } else { (&output.stderr, &output.stdout) };
        let said = String::from_utf8_lossy(said);
        let listed = ["cc, c++", "verify FILE", "stubs HEADER", "libc", "bench"]
            .iter()
            .all(|name| said.contains(name));
        ensure!(
            output.status.code() == Some(code) && listed && other.is_empty(),
            "{arguments:?}: {output:?}"
        );
    }
    each_command_has_help(tools)?;
    wrong_usage_is_told(tools)
}

fn each_command_has_help(tools: &Tools) -> Result<()> {
    let own = ["-fpbl-level=write|full|check", "--export NAME[=SPEC]"];
    for (command, wanted) in [
        ("cc", &["USAGE: clang", "--compiler gcc", own[0], own[1]][..]),
        ("c++", &["USAGE: clang", "--compiler gcc", own[0], own[1]]),
        ("rustc", &["Usage: rustc", own[0], own[1]]),
        ("ld", &["USAGE: ld.lld", "supported targets: elf", "--level write|full", own[1]]),
        ("ar", &["USAGE: llvm-ar"]),
        ("ranlib", &["USAGE: llvm-ranlib"]),
        ("disas", &["USAGE: llvm-objdump"]),
        ("verify", &["usage: pebble sfi verify FILE"]),
        ("run", &["usage: pebble sfi run", "--allow sleep"]),
        ("install", &["usage: pebble sfi install [--remove]", "PEBBLE_SFI_RUN"]),
        ("stubs", &["usage: pebble sfi stubs HEADER", "PBL_PORTAL"]),
        ("flags", &["usage: ./pebble sfi flags", "cc host.c"]),
        ("libc", &["usage: ./pebble sfi libc"]),
        ("bench", &["Usage: pebble-sfi-bench"]),
        ("help", &["help [COMMAND]"]),
    ] {
        for arguments in [["sfi", "help", command], ["sfi", command, "--help"]] {
            let output = Command::new(tools.root.join("pebble")).args(arguments).output()?;
            let said = String::from_utf8_lossy(&output.stdout);
            let missing = wanted.iter().find(|text| !said.contains(**text));
            ensure!(output.status.success() && missing.is_none(), "{arguments:?} lacks {missing:?}: {said}");
        }
    }
    Ok(())
}

fn wrong_usage_is_told(tools: &Tools) -> Result<()> {
    for (arguments, wanted) in [
        (&["sfi", "flags", "x"][..], "`sfi flags` takes nothing but --help, not \"x\""),
        (&["sfi", "libc", "full", "x"], "`sfi libc` takes nothing but --help, not \"full x\""),
        (&["sfi", "help", "cc", "x"], "`sfi help` takes one command"),
        (&["sfi", "help", "x"], "there is no `sfi x`; there are cc, c++,"),
        (&["sfi", "x"], "there is no `sfi x`; there are cc, c++,"),
    ] {
        let output = Command::new(tools.root.join("pebble")).args(arguments).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        let one_line = said.lines().count() == 1 && output.stdout.is_empty();
        ensure!(
            output.status.code() == Some(2) && one_line && said.contains(wanted),
            "{arguments:?}: {output:?}"
        );
    }
    Ok(())
}

/// A module of functions, which has no `_start`, uses what of the C library wants setting up: memory, the
/// locale, files in memory.
fn functions_have_a_library(tools: &Tools) -> Result<()> {
    let place = tools.target().join("sfi/library");
    fs::create_dir_all(&place)?;
    let programs = tools.root.join("sfi/tool/tests/programs");
    let pebble = || Command::new(tools.root.join("pebble"));
    let made = |command: &mut Command| -> Result<String> {
        let output = command.stdin(Stdio::null()).output().with_context(|| program(command))?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}: {errors}", program(command));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (host, module) = (place.join("host"), place.join("functions.pbl"));
    let flags = made(pebble().args(["sfi", "flags"]))?;
    let mut cc = Command::new("cc");
    cc.arg(programs.join("functions_host.c")).args(flags.split_whitespace()).arg("-o").arg(&host);
    made(&mut cc)?;
    for level in ["full", "write"] {
        let mut cc = pebble();
        cc.args(["sfi", "cc", "-O1", "-fno-builtin"]).arg(format!("-fpbl-level={level}"));
        made(cc.arg(programs.join("functions.c")).arg("-o").arg(&module))?;
        let said = made(Command::new(&host).arg(&module))?;
        ensure!(said == "6\n6\n6\n", "{level}: {said}");
    }
    corners_are_as_they_are_natively(tools, &place)
}

/// What existing programs look into once: links and real paths, absolute sleeps, `sigsetjmp`, symbols that
/// nobody defines, atomic access to sixteen bytes, what the processor has; floating point of 128 bits.
fn corners_are_as_they_are_natively(tools: &Tools, place: &Path) -> Result<()> {
    let files = place.join("corners");
    let _ = fs::remove_dir_all(&files);
    fs::create_dir_all(files.join("sub"))?;
    fs::write(files.join("file"), "text")?;
    let links = [
        ("file", "to-file"),
        ("sub", "to-sub"),
        ("../file", "sub/back"),
        ("../../functions.pbl", "out"),
        ("loop", "loop"),
        ("nothing", "nowhere"),
    ];
    for (to, name) in links {
        symlink(to, files.join(name))?;
    }
    let said = |command: &mut Command| -> Result<String> {
        let output = command.current_dir(&files).output().with_context(|| program(command))?;
        ensure!(output.status.success(), "{}: {output:?}", program(command));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let sources =
        ["programs/corners.c", "corpus/formats.c"].map(|file| tools.root.join("sfi/tool/tests").join(file));
    for (source, compiler) in
        sources.iter().flat_map(|source| ["clang-19", "gcc"].map(|compiler| (source, compiler)))
    {
        let (native, module) = (place.join("corners-native"), place.join("corners.pbl"));
        let options = ["-O2", "-w", "-mcx16"];
        said(Command::new(compiler).args(options).arg(source).args(["-latomic", "-lm", "-o"]).arg(&native))?;
        let wanted = said(Command::new(&native).arg(&files))?;
        for level in ["write", "full"] {
            let mut cc = Command::new(tools.root.join("pebble"));
            cc.args(["sfi", "cc", "--compiler", compiler]).arg(format!("-fpbl-level={level}"));
            said(cc.args(options).arg(source).arg("-o").arg(&module))?;
            let mut run = Command::new(tools.root.join("pebble"));
            run.args(["sfi", "run", "--dir", ".", "--allow", "sleep"]).arg(&module).arg(&files);
            let found = said(&mut run)?;
            let differ = found.lines().zip(wanted.lines()).find(|(found, wanted)| found != wanted);
            ensure!(
                found == wanted,
                "{} with {compiler} at {level}: (confined, natively) {differ:?}",
                source.display()
            );
        }
    }
    Ok(())
}

/// Instructions that name a high byte, random programs and GCC's torture suite, over both compilers, all
/// optimisations, levels and options. Other tests run beside it: so one batch at a time.
fn confined_code_computes_what_native_code_does(tools: &Tools) -> Result<()> {
    for what in [&["bytes"][..], &["csmith", "1000"], &["torture"]] {
        fuzz::same(tools, &[what, &["--jobs", "1"]].concat())?;
    }
    Ok(())
}

/// zlib, bzip2, Lua, SQLite, as `bench/sfi/real.toml` has them. Their sources come from the registries:
/// without a network this fails, and says what could not be had.
fn existing_projects_say_the_same(tools: &Tools) -> Result<()> {
    sfi::tool(tools)?;
    let mut cargo = tools.cargo("run");
    cargo.args(["--quiet", "--package", "pebble-sfi-bench", "--", "real"]).stdin(Stdio::null());
    let output = cargo.output().with_context(|| program(&cargo))?;
    let said = String::from_utf8_lossy(&output.stdout);
    said.lines().for_each(|line| ui::note(&format!("         {line}")));
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    judged_again(tools, &tools.target().join("sfi/real/domain"))
}

/// Each module below a directory, by the second checker.
fn judged_again(tools: &Tools, modules: &Path) -> Result<()> {
    let mut cargo = tools.cargo("run");
    cargo.args(["--quiet", "--package", "pebble-sfi-second", "--example", "judge", "--"]).arg(modules);
    let output = cargo.stdin(Stdio::null()).output().with_context(|| program(&cargo))?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "{}\n{said}", String::from_utf8_lossy(&output.stderr).trim());
    ui::note(&format!("         second checker: {}", said.lines().last().unwrap_or_default()));
    Ok(())
}

/// The example's plugin in Rust, under the example's host; and a program that wants `alloc`. Both want code
/// of `core`.
fn rust_has_its_core(tools: &Tools) -> Result<()> {
    let place = tools.target().join("sfi/rust-tests");
    fs::create_dir_all(&place)?;
    let pebble = || Command::new(tools.root.join("pebble"));
    let said = |command: &mut Command| -> Result<_> {
        let output = command.stdin(Stdio::null()).output().with_context(|| program(command))?;
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok((String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code(), errors))
    };
    let build = |source: &str, options: &[&str], made: &Path| -> Result<()> {
        let mut rustc = pebble();
        rustc
            .args(["sfi", "rustc", "--edition", "2024"])
            .args(options)
            .arg(tools.root.join(source))
            .arg("-o")
            .arg(made);
        let (_, code, errors) = said(&mut rustc)?;
        ensure!(code == Some(0) && made.exists(), "{}: {errors}", program(&rustc));
        Ok(())
    };
    let (host, plugin, words) = (place.join("host"), place.join("plugin.pbl"), place.join("words.pbl"));
    let flags = said(pebble().args(["sfi", "flags"]))?.0;
    let mut cc = Command::new("cc");
    let (_, code, errors) = said(
        cc.arg(tools.root.join("examples/sfi/host.c")).args(flags.split_whitespace()).arg("-o").arg(&host),
    )?;
    ensure!(code == Some(0), "{}: {errors}", program(&cc));
    for options in [&["-O", "-g", "--crate-type", "cdylib"][..], &["-g", "--crate-type", "lib"]] {
        build("examples/sfi/plugin.rs", options, &plugin)?;
        let (lines, code, _) = said(Command::new(&host).arg(&plugin))?;
        let wanted = [
            "sum of squares: 385",
            "a pixel: 150",
            "crash survived: cause ",
            "poisoned: yes",
            "hang survived: cause 6 in ",
        ];
        let as_wanted = lines.lines().zip(wanted).all(|(line, wanted)| line.starts_with(wanted));
        ensure!(
            code == Some(0) && as_wanted && lines.ends_with("as good as new: 385\n"),
            "{options:?}: {lines}"
        );
    }
    for options in [&["-O"][..], &["-O", "-fpbl-level=check"], &["-O", "-fpbl-level=write"], &[]] {
        build("sfi/tool/tests/programs/words.rs", options, &words)?;
        let (lines, code, errors) = said(pebble().args(["sfi", "run"]).arg(&words))?;
        let wanted = [
            "[\"brown\", \"fox\", \"quick\", \"the\"] {\"brown\": 5, \"fox\": 3, \"quick\": 5, \"the\": 3} \
             3.143",
            "48611766702991209066196372490252601636",
            "panicked at ",
            "index out of bounds: the len is 3 but the index is 7",
        ];
        let as_wanted = lines.lines().zip(wanted).filter(|(line, wanted)| line.starts_with(wanted)).count();
        ensure!(code == Some(125) && as_wanted == wanted.len(), "{options:?}: {code:?} {lines} {errors}");
    }
    Ok(())
}

/// What `policy.c` says under each policy: options, what it tries, and the answer.
fn programs_do_what_their_policy_allows(tools: &Tools) -> Result<()> {
    let place = tools.target().join("sfi/policy");
    fs::create_dir_all(place.join("files"))?;
    fs::write(place.join("files/here"), "text")?;
    let module = place.join("policy.pbl");
    let source = tools.root.join("sfi/tool/tests/programs/policy.c");
    let pebble = || Command::new(tools.root.join("pebble"));
    let mut cc = pebble();
    cc.args(["sfi", "cc", "-O2"]).arg(source).arg("-o").arg(&module);
    let status = cc.status().with_context(|| program(&cc))?;
    ensure!(status.success(), "pebble sfi cc: {status}");

    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port().to_string();
    std::thread::spawn(move || listener.incoming().flatten().try_for_each(answer));
    let (to, on) = (format!("connect=127.0.0.1:{port}"), "listen=127.0.0.1:0".to_string());
    let files = place.join("files").display().to_string();
    let (read_write, read_only) = (format!("/data={files}"), format!("/data={files}:ro"));
    let cases: &[(&[&str], &[&str], &str)] = &[
        (&[], &["read", "/data/here"], "No such file or directory"),
        (&["--dir", &read_only], &["read", "/data/here"], "ok"),
        (&["--dir", &read_only], &["write", "/data/here"], "Permission denied"),
        (&["--dir", &read_write], &["write", "/data/new"], "ok"),
        (&["--dir", &read_write], &["read", "/data/../policy.pbl"], "Cross-device link"),
        (&["--dir", &read_write, "--seccomp"], &["write", "/data/new"], "ok"),
        (&[], &["connect", &port], "Permission denied"),
        (&["--allow", &on], &["connect", &port], "Permission denied"),
        (&["--allow", &to], &["connect", &port], "pong"),
        (&["--allow", &to, "--seccomp"], &["connect", &port], "pong"),
        (&["--allow", &to], &["connect", "1"], "Permission denied"),
        (&["--allow", &to], &["listen", "0"], "Permission denied"),
        (&["--allow", &on], &["listen", "0"], "ok"),
        (&["--allow", &to], &["datagram"], "Protocol not supported"),
        (&["--allow", &to], &["local"], "Address family not supported by protocol"),
        (&[], &["sleep"], "Function not implemented"),
        (&["--allow", "sleep"], &["sleep"], "ok"),
        (&[], &["clock"], "ok"),
        (&["--seccomp"], &["clock"], "ok"),
        (&["--memory", "64"], &["memory", "128"], "Out of memory"),
        (&["--memory", "256"], &["memory", "128"], "ok"),
        (&[], &["process"], "Function not implemented"),
        (&[], &["thread"], "Function not implemented"),
        (&[], &["variable", "HOME"], "No error information"),
        (&["--env", "HOME=/data"], &["variable", "HOME"], "ok"),
    ];
    for (options, arguments, wanted) in cases {
        let mut run = pebble();
        run.args(["sfi", "run"]).args(*options).arg(&module).args(*arguments).stdin(Stdio::null());
        let output = run.output().with_context(|| program(&run))?;
        let said = String::from_utf8_lossy(&output.stdout);
        let what = format!("{options:?} {arguments:?}");
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(said.trim() == *wanted, "{what}: {:?}, not {wanted:?} {}", said.trim(), errors.trim());
        ensure!(output.status.success() == matches!(*wanted, "ok" | "pong"), "{what}: {}", output.status);
    }
    for limit in ["--time", "--processor"] {
        let mut run = pebble();
        let output = run.args(["sfi", "run", limit, "20"]).arg(&module).arg("endless").output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.code() == Some(125) && said.contains("deadline passed"), "{limit}: {output:?}");
    }
    bad_options_are_named(tools, &module)
}

/// Says `pong` to a `ping`.
fn answer(mut client: std::net::TcpStream) -> Option<()> {
    let mut word = [0; 4];
    client.read_exact(&mut word).ok()?;
    client.write_all(if &word == b"ping" { b"pong" } else { b"what" }).ok()
}

fn bad_options_are_named(tools: &Tools, module: &Path) -> Result<()> {
    for (options, wanted) in [
        (["--allow", "everything"], "there is sleep, connect=HOST:PORT and listen=HOST:PORT"),
        (["--allow", "connect=nowhere"], "--allow connect=nowhere: "),
        (["--dir", "/nowhere"], "--dir /nowhere: "),
        (["--memory", "much"], "is no number"),
    ] {
        let mut run = Command::new(tools.root.join("pebble"));
        let output = run.args(["sfi", "run"]).args(options).arg(module).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(!output.status.success() && said.contains(wanted), "{options:?}: {said}");
    }
    Ok(())
}

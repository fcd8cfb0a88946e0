//! C++ in fault domains: programs say what they say natively, and each header of the library compiles or says
//! why not.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};

use crate::tools::{Tools, program};
use crate::{sfi, ui};

const STANDARDS: [&str; 4] = ["-std=c++11", "-std=c++14", "-std=c++17", "-std=c++20"];

/// Output, exit code and errors.
type Said = (String, Option<i32>, String);

pub fn programs_and_headers(tools: &Tools) -> Result<()> {
    let place = tools.target().join("sfi/cxx");
    fs::create_dir_all(&place)?;
    programs_say_the_same(tools, &place)?;
    missing_features_are_named(tools, &place)?;
    headers_compile_or_say_why_not(tools, &place)
}

fn said(command: &mut Command) -> Result<Said> {
    let output = command.stdin(Stdio::null()).output().with_context(|| program(command))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((text(&output.stdout), output.status.code(), text(&output.stderr)))
}

fn build(command: &mut Command) -> Result<()> {
    let (_, code, errors) = said(command)?;
    ensure!(code == Some(0), "{}: {errors}", program(command));
    Ok(())
}

/// `library.cc` with each compiler and level, `standards.cc` at each standard: output and exit code as
/// natively.
fn programs_say_the_same(tools: &Tools, place: &Path) -> Result<()> {
    let levels = [
        ("clang", "write", "-O2"),
        ("clang", "full", "-O2"),
        ("clang", "full", "-O0"),
        ("gcc", "full", "-O2"),
        ("gcc", "full", "-O0"),
    ];
    let cases =
        levels.map(|(compiler, level, optimise)| ("library.cc", "-std=c++17", compiler, level, optimise));
    let standards = STANDARDS.map(|standard| ("standards.cc", standard, "clang", "full", "-O2"));
    let gcc = [("standards.cc", "-std=c++20", "gcc", "write", "-O1")];
    let (native, module) = (place.join("native"), place.join("module.pbl"));
    for (name, standard, compiler, level, optimise) in cases.into_iter().chain(standards).chain(gcc) {
        let source = tools.root.join("sfi/tool/tests/programs").join(name);
        build(Command::new("clang++-19").args(["-O1", "-w", standard]).arg(&source).arg("-o").arg(&native))?;
        let wanted = said(&mut Command::new(&native))?;
        ensure!(wanted.0.lines().count() >= 15 && wanted.1.is_some_and(|code| code > 1), "{wanted:?}");
        let level = format!("-fpbl-level={level}");
        let options = ["sfi", "c++", "--compiler", compiler, &level, standard, optimise, "-w"];
        let pebble = || Command::new(tools.root.join("pebble"));
        build(pebble().args(options).arg(&source).arg("-o").arg(&module))?;
        let got = said(pebble().args(["sfi", "run"]).arg(&module))?;
        ensure!((&got.0, got.1) == (&wanted.0, wanted.1), "{name} {options:?}: {got:?}, not {wanted:?}");
    }
    Ok(())
}

fn missing_features_are_named(tools: &Tools, place: &Path) -> Result<()> {
    let source = place.join("throws.cc");
    fs::write(&source, "int main() { throw 1; }\n")?;
    for (options, hint) in [
        (&["-O1"][..], "exceptions"),
        (&["-fexceptions"], "return errors instead"),
        (&["-frtti"], "return errors instead"),
    ] {
        let mut pebble = Command::new(tools.root.join("pebble"));
        pebble.args(["sfi", "c++"]).args(options).arg(&source).arg("-o").arg(place.join("module.pbl"));
        let (_, code, errors) = said(&mut pebble)?;
        ensure!(code != Some(0) && errors.contains(hint), "{options:?}: {errors}");
    }
    Ok(())
}

/// What must compile at each standard that has it.
const PROMISED: [&str; 7] =
    ["atomic", "chrono", "complex", "memory", "memory_resource", "mutex", "shared_mutex"];

/// Each header of libstdc++ by itself, at each standard: without an error, or with the one line of
/// `sfi/libc/cxx-fronts.sh`.
fn headers_compile_or_say_why_not(tools: &Tools, place: &Path) -> Result<()> {
    let tool = sfi::tool(tools)?;
    let headers = headers()?;
    ensure!(headers.len() > 80, "only {} headers", headers.len());
    let cases: Vec<_> =
        STANDARDS.iter().flat_map(|s| headers.iter().map(move |h| (*s, h.as_str()))).collect();
    let (next, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = |worker: usize| -> Result<()> {
        let source = place.join(format!("header{worker}.cc"));
        while let Some((standard, header)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            fs::write(&source, format!("#include <{header}>\n"))?;
            let mut check = Command::new(&tool);
            check.args(["c++", standard, "-fsyntax-only"]).arg(&source);
            let (_, code, errors) = said(check.env("PEBBLE_SFI_LIBC", sfi::library(tools)))?;
            let lines: Vec<_> = errors.lines().filter(|line| line.contains("error: ")).collect();
            let why = lines.first().is_some_and(|line| says_why(header, line));
            let fine = code == Some(0) && lines.is_empty();
            ensure!(fine || lines.len() == 1 && why, "<{header}> {standard}: {errors}");
            ensure!(fine || !PROMISED.contains(header), "<{header}> {standard}: {errors}");
            refused.fetch_add(usize::from(!fine), Ordering::Relaxed);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers = [0, 1].map(|worker| scope.spawn(move || work(worker)));
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker"))
    })?;
    let refused = refused.into_inner();
    let compiled = cases.len() - refused;
    ui::note(&format!(
        "         {} headers at {} standards: {compiled} compile, {refused} refused in a line",
        headers.len(),
        STANDARDS.len()
    ));
    Ok(())
}

/// Of the domain's, or of the library itself, which has coroutines from C++20 on.
fn says_why(header: &str, line: &str) -> bool {
    line.contains(&format!("\"<{header}>: "))
        || header == "coroutine" && line.contains("requires -fcoroutines")
}

/// Those of the newest libstdc++, as `pebble sfi c++` finds it.
fn headers() -> Result<Vec<String>> {
    let names = |place: &str| -> Result<Vec<(String, bool)>> {
        let entries = fs::read_dir(place).with_context(|| place.to_string())?;
        let named =
            |entry: fs::DirEntry| (entry.file_name().to_string_lossy().into_owned(), entry.path().is_dir());
        Ok(entries.flatten().map(named).collect())
    };
    let root = "/usr/include/c++";
    let newest = names(root)?.iter().filter_map(|(name, _)| name.parse::<u32>().ok()).max();
    let newest = newest.context("no libstdc++ (Debian: libstdc++-12-dev)")?;
    let all = names(&format!("{root}/{newest}"))?.into_iter();
    Ok(all.filter(|(name, directory)| !directory && !name.contains('.')).map(|(name, _)| name).collect())
}

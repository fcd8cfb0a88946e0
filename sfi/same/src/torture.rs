//! The execution tests of GCC's torture suite, out of Debian's package of GCC's sources. Each judges itself:
//! it aborts, or ends with 0.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use pebble_sfi_bench::compile;

use crate::Place;
use crate::batch::Program;

const PACKAGE: &str = "gcc-12-source";
const ARCHIVE: &str = "usr/src/gcc-12/gcc-12.2.0-dfsg.tar.xz";
const SHA256: &str = "50c63ff82919323c25fbbb4a9eae259edc974118a0fb30c905190cb782ec11c2";
const TESTS: &str = "gcc-12.2.0/gcc/testsuite/gcc.c-torture/execute";

/// What old C needs of both compilers.
const OPTIONS: [&str; 8] = [
    "-std=gnu99",
    "-fgnu89-inline",
    "-Wno-error",
    "-Wno-implicit-function-declaration",
    "-Wno-implicit-int",
    "-Wno-int-conversion",
    "-Wno-return-type",
    "-fno-common",
];

/// Tests of what fault domains do not have: the refusal or the end, and who meets it, by some compiler at
/// some optimisation.
pub const OUTSIDE: &[(&str, &[&str])] = &[
    // Nested functions whose address is taken: code on the stack.
    (
        "make it a function of its own",
        &[
            "20000822-1.c",
            "921215-1.c",
            "931002-1.c",
            "nestfunc-1.c",
            "nestfunc-2.c",
            "nestfunc-3.c",
            "nestfunc-5.c",
            "nestfunc-6.c",
        ],
    ),
    // Nested functions that jump out, `__builtin_setjmp`, `__builtin_longjmp`: into a frame of another
    // function.
    (
        "use setjmp and longjmp",
        &[
            "920428-2.c",
            "920501-7.c",
            "built-in-setjmp.c",
            "comp-goto-2.c",
            "pr24135.c",
            "pr51447.c",
            "pr60003.c",
            "pr64242.c",
            "pr84521.c",
        ],
    ),
    // Return addresses.
    (
        "do without __builtin_return_address",
        &["20010122-1.c", "20030323-1.c", "20030811-1.c", "eeprof-1.c", "pr17377.c"],
    ),
    // A signal's handler.
    ("arithmetic trap", &["20101011-1.c"]),
    // A file that nobody has granted.
    ("fopen for writing", &["fprintf-2.c", "printf-2.c", "user-printf.c"]),
    // Decimal numbers.
    ("undefined: __bid_", &["pr80692.c"]),
    // What they do is not defined: clang makes nothing of it, and what happens to follow returns.
    ("illegal instruction", &["20031003-1.c", "921202-1.c", "pr79286.c"]),
];

/// All tests, in the order of their names.
pub fn programs(place: &Place) -> Result<Vec<Program>> {
    let directory = fetch(place)?;
    let mut sources = Vec::new();
    for part in [directory.clone(), directory.join("ieee")] {
        for entry in fs::read_dir(&part).with_context(|| part.display().to_string())? {
            sources.extend(Some(entry?.path()).filter(|path| path.extension().is_some_and(|e| e == "c")));
        }
    }
    sources.sort();
    sources.into_iter().map(|source| program(&directory, source)).collect()
}

fn program(directory: &Path, source: PathBuf) -> Result<Program> {
    let text = String::from_utf8_lossy(&fs::read(&source)?).into_owned();
    let name = source.strip_prefix(directory).unwrap_or(&source).display().to_string();
    let mut options: Vec<String> = OPTIONS.map(String::from).into();
    if name.starts_with("ieee/") {
        options.push("-fsigned-zeros".into());
    }
    options.extend(asked(&text));
    let outside = OUTSIDE.iter().find(|(_, tests)| tests.contains(&name.as_str())).map(|(said, _)| *said);
    Ok(Program { name, source, options, plain: false, prints: None, outside })
}

/// The options that a test asks for, wherever it runs.
fn asked(text: &str) -> Vec<String> {
    let lines =
        text.lines().filter(|line| line.contains("dg-options") || line.contains("dg-additional-options"));
    let everywhere = lines.filter(|line| !line.contains("target"));
    let words = everywhere.filter_map(|line| line.split('"').nth(1));
    words
        .flat_map(str::split_whitespace)
        .filter(|o| !o.starts_with("-W") && !o.starts_with("-O"))
        .map(String::from)
        .collect()
}

/// Where the tests are, fetched if they are not there.
fn fetch(place: &Place) -> Result<PathBuf> {
    let home = place.target.join("torture");
    let tests = home.join(TESTS);
    if tests.exists() {
        return Ok(tests);
    }
    let parts = home.join("parts");
    fs::create_dir_all(&parts)?;
    let run = |program: &str, arguments: &[&str]| {
        compile::run(Command::new(program).current_dir(&parts).args(arguments))
    };
    run("apt-get", &["-q", "download", PACKAGE])
        .context("the torture suite is in Debian's package gcc-12-source; try `apt-get update`")?;
    run("sh", &["-c", &format!("dpkg-deb --fsys-tarfile {PACKAGE}_*.deb | tar -xf - ./{ARCHIVE}")])?;
    let sum = run("sha256sum", &[ARCHIVE])?;
    ensure!(sum.starts_with(SHA256), "{ARCHIVE}: not the file that was expected");
    let new = parts.join("new");
    fs::create_dir_all(&new)?;
    run("tar", &["-xf", ARCHIVE, "-C", "new", "--wildcards", &format!("{TESTS}/*")])?;
    // What is there, is there as a whole; the archive is large.
    fs::create_dir_all(tests.parent().unwrap_or(&home))?;
    fs::rename(new.join(TESTS), &tests)?;
    fs::remove_dir_all(&parts)?;
    Ok(tests)
}

//! `pebble sfi`: fault domains inside a Linux process. The work is done by the program `pebble-sfi`, which is
//! built here when its sources have changed; it is called once for each file of a project, so nothing else
//! may take time.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context, Result, ensure};

use crate::tools::{Tools, program, run_quietly};
use crate::ui;

const PACKAGE: &str = "pebble-sfi";
const RUNTIME: &str = "pebble-sfi-runtime";
const BENCH: &str = "pebble-sfi-bench";
/// What `pebble-sfi` is made from.
const SOURCES: [&str; 9] = [
    "sfi/tool",
    "sfi/rewrite",
    "sfi/labels",
    "sfi/runtime",
    "sfi/verify",
    "portal",
    "abi",
    "Cargo.toml",
    "Cargo.lock",
];
const TOOLS: [&str; 11] =
    ["cc", "c++", "rustc", "ar", "ranlib", "ld", "disas", "verify", "run", "install", "stubs"];
const COMMANDS: &str = "\
Commands:
  cc, c++, rustc    compile and link confined code, with the options of the compiler
  ld, ar, ranlib    the other tools of a project's build
  disas FILE        disassembles a module
  verify FILE...    says whether modules are accepted, or which rule is broken where
  run [OPTIONS] FILE ARGUMENTS...
                    runs a program in a fault domain: `run --help` tells its options
  install [--remove]
                    lets Linux run modules that are started like other programs
  stubs HEADER      typed bindings for a host, in C and in Rust: `stubs --help` tells how
  flags             what a C host is compiled with: cc host.c $(./pebble sfi flags)
  libc              builds the C library of fault domains
  bench             as ./pebble bench sfi
  help [COMMAND]    this list, or what a command takes";
const FLAGS: &str = "\
usage: ./pebble sfi flags
  builds the runtime as a library, and prints what a C host is compiled with: cc host.c $(./pebble sfi flags)";
const LIBC: &str = "\
usage: ./pebble sfi libc
  builds the C library of fault domains at each level; the compilers build the one that they need, if it is not there";

#[derive(clap::Args)]
#[command(after_help = COMMANDS, override_usage = "./pebble sfi <COMMAND> [ARGUMENTS]...")]
pub struct Options {
    /// One of those below, and what it takes
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    arguments: Vec<OsString>,
}

/// `pebble sfi`, alone a mistake.
pub fn sfi(tools: &Tools, options: &Options) -> Result<u8> {
    match options.arguments.split_first() {
        Some((command, rest)) => dispatch(tools, command, rest),
        None => {
            eprintln!("usage: ./pebble sfi COMMAND [ARGUMENTS]...\n\n{COMMANDS}");
            Ok(2)
        }
    }
}

/// Hands over to the tool; comes back for the few commands that are done here.
fn dispatch(tools: &Tools, command: &OsString, arguments: &[OsString]) -> Result<u8> {
    let name = command.to_string_lossy();
    match (&*name, arguments) {
        ("help", []) => println!("usage: ./pebble sfi COMMAND [ARGUMENTS]...\n\n{COMMANDS}"),
        ("help", [of]) if of == "help" || asks(of) => return dispatch(tools, command, &[]),
        ("help", [of]) => return dispatch(tools, of, &["--help".into()]),
        ("flags", []) => flags(tools)?,
        ("flags", [help]) if asks(help) => println!("{FLAGS}"),
        ("libc", []) => {
            libraries(tools)?;
            ui::done(&tools.shown(&library(tools)));
        }
        ("libc", [help]) if asks(help) => println!("{LIBC}"),
        ("help" | "flags" | "libc", _) => return Ok(no_such_argument(&name, arguments)),
        ("bench", _) => bench(tools, arguments)?,
        (name, _) if TOOLS.contains(&name) => hand_over(tools, command, arguments)?,
        _ => {
            ui::error(&format!(
                "there is no `sfi {name}`; there are {}, flags, libc, bench, help",
                TOOLS.join(", ")
            ));
            return Ok(2);
        }
    }
    Ok(0)
}

fn asks(argument: &OsString) -> bool {
    argument == "--help" || argument == "-h"
}

/// Says what there is instead; the exit code.
fn no_such_argument(command: &str, arguments: &[OsString]) -> u8 {
    let given = arguments.join(" ".as_ref());
    let takes = if command == "help" { "one command, or nothing" } else { "nothing but --help" };
    ui::error(&format!("`sfi {command}` takes {takes}, not {:?}", given.to_string_lossy()));
    2
}

/// The program takes the place of this one.
fn hand_over(tools: &Tools, name: &OsString, arguments: &[OsString]) -> Result<()> {
    let tool = tool(tools)?;
    if name == "cc" || name == "c++" {
        ensure_library(tools, &tool, arguments)?;
    }
    if name == "rustc" {
        ensure_rust(tools, &tool, arguments)?;
    }
    let mut command = Command::new(tool);
    command.arg(name).args(arguments).env("PEBBLE_SFI_LIBC", library(tools));
    command.env("PEBBLE_SFI_RUST", tools.target().join("sfi/rust")).env("PEBBLE_RUSTC", tools.rustc());
    command.env("PEBBLE_SFI_INCLUDE", tools.root.join("sfi/libc/include"));
    Err(command.exec()).with_context(|| program(&command))
}

/// `pebble bench sfi`.
pub fn bench(tools: &Tools, arguments: &[OsString]) -> Result<()> {
    let mut cargo = tools.cargo("build");
    run_quietly(cargo.args(["--release", "-p", BENCH]), BENCH)?;
    let mut command = Command::new(tools.target().join("release").join(BENCH));
    Err(command.args(arguments).exec()).with_context(|| program(&command))
}

/// Builds the runtime as a library, and says where a C compiler finds it: `cc host.c $(pebble sfi flags)`.
fn flags(tools: &Tools) -> Result<()> {
    run_quietly(tools.cargo("build").args(["--release", "-p", RUNTIME]), RUNTIME)?;
    let (include, library) = (tools.root.join("sfi/runtime/include"), tools.target().join("release"));
    let (include, library) = (include.display(), library.display());
    println!("-I{include} -L{library} -Wl,-rpath,{library} -lpebble_sfi_runtime");
    Ok(())
}

/// Where the C library of each level is.
pub fn library(tools: &Tools) -> PathBuf {
    tools.target().join("sfi/libc")
}

/// The program, built if its sources are newer.
pub fn tool(tools: &Tools) -> Result<PathBuf> {
    let tool = tools.target().join("release").join(PACKAGE);
    let built = tools.target().join("tools/sfi-built");
    let since = fs::metadata(&built).and_then(|m| m.modified()).ok().filter(|_| tool.exists());
    if since.is_none_or(|since| SOURCES.iter().any(|s| newer(&tools.root.join(s), since))) {
        ui::progress("building", PACKAGE);
        let begun = SystemTime::now();
        let mut cargo = tools.cargo("build");
        run_quietly(cargo.args(["--release", "-p", PACKAGE]), PACKAGE)?;
        fs::create_dir_all(tools.target().join("tools"))?;
        fs::File::create(&built)?.set_modified(begun)?;
    }
    Ok(tool)
}

/// Has something in a directory changed since?
fn newer(path: &Path, since: SystemTime) -> bool {
    if path.is_dir() {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        return entries.map(|e| e.path()).any(|path| newer(&path, since));
    }
    fs::metadata(path).and_then(|m| m.modified()).is_ok_and(|changed| changed > since)
}

/// The C library that a compilation needs, built if it is not there, or older than its sources here.
fn ensure_library(tools: &Tools, tool: &Path, arguments: &[OsString]) -> Result<()> {
    let level = level(arguments);
    let made = fs::metadata(library(tools).join(level).join("install/lib/libc.a")).and_then(|m| m.modified());
    if made.is_ok_and(|made| !newer(&tools.root.join("sfi/libc"), made)) {
        return Ok(());
    }
    const ALONE: [&str; 5] = ["-ffreestanding", "-nostdlib", "-nostdinc", "--version", "--help"];
    if arguments.iter().any(|a| ALONE.iter().any(|alone| a == alone)) {
        return Ok(());
    }
    make_library(tools, tool, &[level])
}

/// The level whose libraries a command line wants.
fn level(arguments: &[OsString]) -> &'static str {
    let otherwise = std::env::var("PEBBLE_SFI_LEVEL").unwrap_or_default();
    let given = arguments.iter().rev().filter_map(|a| a.to_str()?.strip_prefix("-fpbl-level=")).next();
    if given.unwrap_or(&otherwise) == "write" { "write" } else { "full" }
}

/// Rust's `core` and `alloc`, and the C library for what they call, unless the command only asks the compiler
/// something.
fn ensure_rust(tools: &Tools, tool: &Path, arguments: &[OsString]) -> Result<()> {
    if !arguments.iter().any(|a| a.as_encoded_bytes().ends_with(b".rs") || a == "-") {
        return Ok(());
    }
    ensure_library(tools, tool, arguments)?;
    let mut command = Command::new("sh");
    command.arg(tools.root.join("sfi/rust/make.sh")).arg(tools.target().join("sfi"));
    let status = command.arg(tool).arg(tools.rustc()).arg(level(arguments)).status();
    ensure!(status.with_context(|| program(&command))?.success(), "there is no core for fault domains");
    Ok(())
}

/// The tool, and the C library of each level.
pub fn libraries(tools: &Tools) -> Result<()> {
    make_library(tools, &tool(tools)?, &["write", "full"])
}

fn make_library(tools: &Tools, tool: &Path, levels: &[&str]) -> Result<()> {
    let mut command = Command::new("sh");
    command.arg(tools.root.join("sfi/libc/make.sh")).arg(tools.target().join("sfi")).arg(tool).args(levels);
    let status = command.status().with_context(|| program(&command))?;
    ensure!(
        status.success(),
        "there is no C library for fault domains; freestanding code needs -ffreestanding"
    );
    Ok(())
}

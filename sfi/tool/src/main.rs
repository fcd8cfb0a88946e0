//! `pebble sfi cc|c++|rustc|ar|ranlib|ld|disas|verify|run|install|stubs`: the tool chain of fault domains, in
//! front of stock compilers, and what judges and runs its products.
#![forbid(unsafe_code)]

mod arguments;
mod cc;
mod elf;
mod encoding;
mod install;
mod judge;
mod ld;
mod library;
mod origin;
mod refused;
mod run;
mod rustc;
mod stubs;

use arguments::OWN_FLAGS;
use std::ffi::OsString;
use std::io::Write;
use std::process::{Command, ExitCode};

const USAGE: &str = "usage: pebble sfi cc|c++|rustc|ld|ar|ranlib|disas|verify|run|install|stubs ARGUMENTS
  cc, c++   as clang-19 (or gcc: --compiler gcc); -fpbl-level=write|full|check; -fpbl-base, and
            to measure what optimisations save: -fpbl-no-merge, -no-guard, -no-stack, -no-elide (docs: fault domains)
            --export NAME[=SPEC] makes a function an entry point of the module
  rustc     a no_std crate to a module (-o FILE.pbl), or to a confined object (-c, or -o FILE.o); --export, -fpbl-level=..., rustc's options
  ld        links confined objects into a module: -o FILE, --export NAME[=SPEC], --level write|full, lld's options
  ar        as llvm-ar-19, and ranlib as llvm-ranlib-19
  disas     disassembles a module
  verify    says whether modules are accepted, or which rule is broken where
  run       runs a program in a fault domain: `run --help` tells its options
  install   lets Linux run modules that are started like other programs; --remove undoes it
  stubs     typed bindings for the host, in C and in Rust, from a module's header: `stubs --help` tells how";

fn ld_command(args: &[String]) -> Result<(), String> {
    let is = |names: &[&str]| args.iter().any(|a| names.contains(&a.as_str()));
    let input = |a: &String| !a.starts_with('-') || a.starts_with("-l");
    // libtool and configure look for the linker's name.
    if is(&["--help", "--version"]) || is(&["-v", "-V"]) && !args.iter().any(input) {
        return forward("ld.lld-19", args);
    }
    if is(&["-r", "-i", "--relocatable"]) {
        let instead = "put the objects in an archive (pebble sfi ar), or give them all to the last link";
        return Err(format!("-r: confined objects are not merged; {instead}"));
    }
    let mut job = ld::Job { full: true, output: "a.out".into(), ..ld::Job::default() };
    let mut it = args.iter();
    while let Some(a) = it.next() {
        let mut value = || it.next().cloned().ok_or_else(|| ld::Error::Argument(a.clone()).to_string());
        match a.as_str() {
            "-o" => job.output = value()?.into(),
            "--export" => job.exports.push(ld::export(&value()?)),
            "--level" => job.full = value()? != "write",
            "--no-timer" => job.no_timer = true,
            _ => job.args.push(a.clone()),
        }
    }
    if !job.args.iter().any(input) {
        return Err("no input files".into());
    }
    ld::link(&job).map_err(|e| e.to_string())
}

/// What the help of the stock tool behind a command does not say.
fn own_options(command: &str) -> Option<String> {
    const EXPORT: &str = "  --export NAME[=SPEC]
                    makes a function an entry point of the module, with this portal specification";
    let options = match command {
        "cc" | "c++" => format!(
            "{OWN_FLAGS}\n  --compiler gcc    instead of clang 19, as PEBBLE_CC=gcc says for a whole build\n\
             {EXPORT}"
        ),
        "rustc" => format!("{OWN_FLAGS}\n{EXPORT}"),
        "ld" => {
            format!(
                "  --level write|full\n                    what the module is verified for\n  \
                 --no-timer        refuses a module that reads a clock of the processor's\n{EXPORT}"
            )
        }
        _ => return None,
    };
    Some(format!("Pebble's own options (docs: fault domains):\n{options}"))
}

/// Runs another tool with our arguments.
fn forward(program: &str, args: &[String]) -> Result<(), String> {
    let status = Command::new(program).args(args).status().map_err(|e| format!("{program}: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{program} failed ({status})")) }
}

fn run_program(arguments: Result<Vec<OsString>, String>) -> ExitCode {
    match arguments.and_then(|arguments| run::command(&arguments)) {
        Ok(code) => ExitCode::from(code),
        Err(e) => {
            eprintln!("pebble sfi run: {e}");
            ExitCode::FAILURE
        }
    }
}

fn main() -> ExitCode {
    let given: Vec<OsString> = std::env::args_os().collect();
    if let Some(arguments) = install::started(&given) {
        return run_program(arguments);
    }
    let given = given.get(1..).unwrap_or_default().to_vec();
    if given.first().is_some_and(|command| command == "run") {
        return run_program(Ok(given[1..].to_vec()));
    }
    // What these pass on to compilers and linkers are names in messages and in assembly.
    let args: Result<Vec<String>, OsString> = given.into_iter().map(OsString::into_string).collect();
    let args = match args {
        Ok(args) => args,
        Err(argument) => {
            eprintln!("pebble sfi: {argument:?} is not UTF-8; rename the file");
            return ExitCode::from(2);
        }
    };
    let Some((command, rest)) = args.split_first() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let compile = |cxx| arguments::Request::parse(rest, cxx).and_then(|d| d.run()).map_err(|e| e.to_string());
    let result = match command.as_str() {
        "cc" => compile(false),
        "c++" => compile(true),
        "rustc" => rustc::run(rest).map_err(|e| e.to_string()),
        "ld" => ld_command(rest),
        "ar" => forward("llvm-ar-19", rest),
        "ranlib" => forward("llvm-ranlib-19", rest),
        "verify" => judge::command(rest),
        "install" => install::command(rest),
        "stubs" => stubs::command(rest),
        "--help" | "-h" | "help" => {
            println!("{USAGE}");
            Ok(())
        }
        "disas" => {
            let mut a: Vec<String> = ["-d", "--no-show-raw-insn", "-j", ".text"].map(String::from).into();
            a.extend(rest.iter().cloned());
            forward("llvm-objdump-19", &a)
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => {
            if let Some(options) = own_options(command).filter(|_| rest.iter().any(|a| a == "--help")) {
                // Whoever reads no more has seen enough.
                let _ = writeln!(std::io::stdout(), "\n{options}");
            }
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("pebble sfi {command}: {e}");
            ExitCode::FAILURE
        }
    }
}

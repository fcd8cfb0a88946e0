//! `pebble sfi run`: a command-line program in a fault domain, with what its user grants it and nothing else.

use pebble_sfi_runtime::{Limit, Policy, RunError, forget_files, run, segment_at_zero};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

pub const USAGE: &str = "usage: pebble sfi run [OPTIONS] FILE ARGUMENTS
  --dir [NAME=]PATH[:ro]  the files below PATH, which the program knows as NAME (default: PATH itself, and relative paths if
                          the current directory is in it); `:ro`: it cannot change them
  --allow sleep           it may wait
  --allow connect=HOST:PORT, --allow listen=HOST:PORT
                          it may use stream sockets to, or on, this address; port 0: every port
  --env NAME[=VALUE]      a variable; without a value, ours
  --memory MIB            at most so much memory, with image, heap and stacks of 12 MiB (default 2048)
  --time MILLISECONDS     ends it after so long
  --processor MILLISECONDS
                          ends it after so much processor time, which does not pass while it waits
  --seccomp               a second fence around it: Landlock and a seccomp filter
  --no-timer              refuses a program that reads a clock of the processor's (-fpbl-no-timer makes it without)
  --elsewhere             its segment is not at address zero, but where that of a second instance would be";
/// Nothing was run, or the program died: unlike most exit codes of programs.
const DIED: u8 = 125;

fn text(argument: &OsString) -> Result<&str, String> {
    argument.to_str().ok_or_else(|| format!("{argument:?} is not UTF-8, as options must be"))
}

/// The exit code of the program, which gets its arguments as they are.
pub fn command(args: &[OsString]) -> Result<u8, String> {
    if args.first().is_some_and(|a| a == "--help" || a == "-h") {
        println!("{USAGE}");
        return Ok(0);
    }
    if args.iter().any(|a| a == "--seccomp") {
        // Before anything is opened: who breaks out finds no file that was not given.
        forget_files();
    }
    let mut policy = Policy::program();
    let mut limit = Limit::default();
    let mut elsewhere = false;
    let mut at = 0;
    while let Some(option) = args.get(at).filter(|a| a.as_encoded_bytes().starts_with(b"--")) {
        let option = text(option)?;
        at += 1;
        if option == "--" {
            break;
        }
        if option == "--seccomp" {
            policy = policy.fence();
            continue;
        }
        if option == "--no-timer" {
            policy = policy.no_timer();
            continue;
        }
        if option == "--elsewhere" {
            elsewhere = true;
            continue;
        }
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, value.to_string()),
            None => {
                at += 1;
                let value = args.get(at - 1).ok_or_else(|| format!("{option} needs a value\n{USAGE}"))?;
                (option, text(value)?.to_string())
            }
        };
        let number = || value.parse::<u64>().map_err(|_| format!("{name}: {value:?} is no number"));
        policy = match name {
            "--dir" => directory(policy, &value)?,
            "--allow" => policy.allow(&value).map_err(|e| format!("--allow {value}: {e}"))?,
            "--memory" => policy.memory(number()? << 20),
            "--env" if value.contains('=') => policy.variable(&value),
            "--env" => match std::env::var(&value) {
                Ok(ours) => policy.variable(&format!("{value}={ours}")),
                Err(_) => policy,
            },
            "--time" => {
                limit.clock = Some(Duration::from_millis(number()?));
                policy
            }
            "--processor" => {
                limit.processor = Some(Duration::from_millis(number()?));
                policy
            }
            _ => return Err(format!("{name} is unknown\n{USAGE}")),
        };
    }
    let program = &args[at..];
    let file = program.first().ok_or(USAGE)?;
    // Nobody else wants the bottom of this process's address space.
    if !elsewhere {
        segment_at_zero();
    }
    match run(Path::new(file), program, policy, limit) {
        // As the kernel reports it: the low byte.
        Ok(code) => Ok(code as u8),
        Err(RunError::Load(error)) => Err(format!("{}: {error}", Path::new(file).display())),
        Err(error) => {
            eprintln!("pebble sfi run: {error}");
            Ok(DIED)
        }
    }
}

/// `NAME=PATH:ro`, of which only the path must be there.
fn directory(policy: Policy, text: &str) -> Result<Policy, String> {
    let (text, writable) = text.strip_suffix(":ro").map_or((text, true), |text| (text, false));
    let (name, path) = text.split_once('=').unwrap_or((text, text));
    let failed = |e: std::io::Error| format!("--dir {path}: {e}");
    let whole = Path::new(path).canonicalize().map_err(failed)?;
    let mut policy = policy.directory(name, &whole, writable).map_err(failed)?;
    if name == path {
        // Then it may say the whole path as well, and from here, if that is inside, a relative one.
        policy = policy.directory(&whole.to_string_lossy(), &whole, writable).map_err(failed)?;
        let here = std::env::current_dir().unwrap_or_default();
        if here.starts_with(&whole) {
            policy = policy.directory(".", &here, writable).map_err(failed)?.current(&here.to_string_lossy());
        }
    }
    Ok(policy)
}

//! `pebble sfi install`: modules that are started like other programs run as `pebble sfi run` has them run.
//!
//! Problem: Linux takes a module for a program of its own, which can only say that it is none. Strategy:
//! Linux asks `binfmt_misc` first, which knows a program by bytes of its header, [`MARK`] among them, and
//! starts another one with the file as its argument: a copy of this program under the name [`NAME`]. Whoever
//! starts a file so believes the file's own word that it is a module: nothing here confines a file without
//! the mark.

use crate::arguments::words;
use crate::ld::MARK;
use std::env::VarError;
use std::ffi::OsString;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

pub const USAGE: &str = "usage: pebble sfi install [--remove]
  lets Linux run modules that are started like other programs (./FILE) in fault domains, as `pebble sfi run FILE` does, for all users, by binfmt_misc;
  the variable PEBBLE_SFI_RUN has options of `run` for them: PEBBLE_SFI_RUN='--dir . --allow sleep' ./FILE
  --remove  undoes that

  It takes root's rights, and says what it does: it puts a copy of this program into /usr/local/bin, registers it with the kernel, and, where systemd's
  directory for that is there, has it registered again at each boot. What a file says of itself decides, so a stranger's file is run by `pebble sfi run`.";

/// As the copy is called; started by this name the program runs its first argument.
const NAME: &str = "pebble-sfi-run";
const PLACE: &str = "/usr/local/bin";
const KERNEL: &str = "/proc/sys/fs/binfmt_misc";
const BOOT: &str = "/etc/binfmt.d";
const ENTRY: &str = "pebble-sfi";
const OPTIONS: &str = "PEBBLE_SFI_RUN";

fn program() -> PathBuf {
    Path::new(PLACE).join(NAME)
}

fn entry() -> PathBuf {
    Path::new(KERNEL).join(ENTRY)
}

fn boot() -> PathBuf {
    Path::new(BOOT).join(ENTRY).with_extension("conf")
}

/// The kernel's line: the beginning of an ELF file for 64 bits, and the mark; what the mask has zeroes for
/// may be anything.
fn line() -> String {
    let mut magic = b"\x7fELF\x02\x01\x01".to_vec();
    let mut mask = vec![0xff; magic.len()];
    magic.resize(MARK.0, 0);
    mask.resize(MARK.0, 0);
    magic.extend(MARK.1);
    mask.resize(magic.len(), 0xff);
    let shown = |bytes: &[u8]| bytes.iter().map(|b| format!("\\x{b:02x}")).collect::<String>();
    format!(":{ENTRY}:M:0:{}:{}:{}:\n", shown(&magic), shown(&mask), program().display())
}

pub fn command(args: &[String]) -> Result<(), String> {
    match args {
        [] => install(),
        [option] if option == "--remove" => remove(),
        [option] if option == "--help" || option == "-h" => {
            println!("{USAGE}");
            Ok(())
        }
        _ => Err(format!("{:?} is unknown\n{USAGE}", args.join(" "))),
    }
}

fn failed(path: &Path) -> impl Fn(Error) -> String {
    move |e| match e.kind() {
        ErrorKind::PermissionDenied => format!("{}: {e}: this takes root's rights", path.display()),
        _ => format!("{}: {e}", path.display()),
    }
}

fn install() -> Result<(), String> {
    if !Path::new(KERNEL).join("register").exists() {
        return Err(format!(
            "{KERNEL}/register is not there: the kernel has no binfmt_misc, or nobody has mounted it (mount \
             -t binfmt_misc binfmt_misc {KERNEL})"
        ));
    }
    copy(&program())?;
    println!("put a copy of this program into {}", program().display());
    if entry().exists() {
        write(&entry(), "-1")?;
    }
    write(&Path::new(KERNEL).join("register"), &line())?;
    println!("registered it with the kernel for modules: {}", entry().display());
    if Path::new(BOOT).exists() {
        write(&boot(), &line())?;
        println!("wrote {}, so that each boot does so again", boot().display());
    } else {
        println!("there is no {BOOT}: after the next boot say `pebble sfi install` again");
    }
    println!(
        "./FILE is now as `pebble sfi run FILE`, with the options in {OPTIONS}; `pebble sfi install \
         --remove` undoes it"
    );
    Ok(())
}

/// Puts this program there, whoever may be running the one that is there already.
fn copy(to: &Path) -> Result<(), String> {
    let (own, new) = (std::env::current_exe().map_err(|e| e.to_string())?, to.with_extension("new"));
    std::fs::copy(own, &new).and_then(|_| std::fs::rename(&new, to)).map_err(failed(to))
}

fn write(to: &Path, text: &str) -> Result<(), String> {
    std::fs::write(to, text).map_err(failed(to))
}

fn remove() -> Result<(), String> {
    let mut any = false;
    if entry().exists() {
        write(&entry(), "-1")?;
        println!("the kernel knows modules no more: {}", entry().display());
        any = true;
    }
    for path in [boot(), program()] {
        match std::fs::remove_file(&path) {
            Ok(()) => println!("removed {}", path.display()),
            Err(e) if e.kind() == ErrorKind::NotFound => continue,
            Err(e) => return Err(failed(&path)(e)),
        }
        any = true;
    }
    if !any {
        println!("nothing was installed");
    }
    Ok(())
}

/// What `run` gets if the kernel has started this program for a file: options of the user's, then the file
/// and its arguments.
pub fn started(called: &[OsString]) -> Option<Result<Vec<OsString>, String>> {
    let (own, file) = called.split_first()?;
    if Path::new(own).file_name()? != NAME {
        return None;
    }
    let options = match std::env::var(OPTIONS) {
        Ok(text) => words(&text).ok_or(format!("{OPTIONS}: a quotation does not end")),
        Err(VarError::NotPresent) => Ok(Vec::new()),
        Err(VarError::NotUnicode(_)) => Err(format!("{OPTIONS} is not UTF-8, as options must be")),
    };
    let whole = |options: Vec<String>| {
        options.into_iter().map(OsString::from).chain(["--".into()]).chain(file.iter().cloned()).collect()
    };
    Some(options.map(whole))
}

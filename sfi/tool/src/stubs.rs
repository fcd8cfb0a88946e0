//! `pebble sfi stubs`: from a C header to typed bindings for the host, in C and in Rust.
//!
//! Problem: a portal takes words, and a host wants functions with types. Strategy: [`lex`] and [`header`]
//! read the header's prototypes and the annotations of `pebble_plugin.h`, [`model`] is what they mean, a
//! portal specification and the extents of its windows for each function, and [`c`] and [`rust`] write the
//! bindings. The header is not preprocessed: lines that begin with `#` are skipped, and so is every
//! declaration that is neither a prototype nor a `typedef` of an arithmetic type.

mod c;
mod header;
mod lex;
mod model;
mod rust;

use model::Interface;
use std::io::Write;
use std::path::Path;

pub const USAGE: &str = "usage: pebble sfi stubs HEADER [--c FILE] [--rust FILE] [--exports FILE] [--name NAME]
  --c FILE        writes bindings for a host in C: a header that includes <pebble_host.h>
  --rust FILE     writes bindings for a host in Rust: a module that uses the crate pebble_sfi_runtime
  --exports FILE  writes what makes the functions exports: a C file for the module
  --name NAME     the bindings' name (default: the header's file name up to its first dot)
                  FILE may be -, standard output

Annotations in the header, of <pebble_plugin.h>; without any, the result and all arguments are integers:
  PBL_PORTAL(np)  before a prototype: stack and saved state of the portal (default: sm)
  PBL_R(count)    behind a pointer argument: the function reads so many elements; the count is an integer argument or a number
  PBL_W(count)    it reads and writes them
  PBL_O(count)    it may reach them for as long as it lives: memory of a region
  PBL_STRING      behind a `const char *` argument: a text up to its NUL; behind a prototype: so is the result";

/// A place in the header, both from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct At {
    pub line: usize,
    pub column: usize,
}

/// What is wrong with a header.
#[derive(Debug)]
pub struct Error {
    pub at: At,
    pub text: String,
}

impl Error {
    fn at<T>(at: At, text: impl Into<String>) -> Result<T, Error> {
        Err(Error { at, text: text.into() })
    }
}

#[derive(Default)]
struct Job {
    header: Option<String>,
    name: Option<String>,
    /// What writes each file.
    files: Vec<(fn(&Interface) -> String, String)>,
}

fn parse(args: &[String]) -> Result<Job, String> {
    let mut job = Job::default();
    let mut rest = args.iter();
    while let Some(word) = rest.next() {
        let (option, inline) = match word.split_once('=').filter(|_| word.starts_with("--")) {
            Some((option, value)) => (option, Some(value.to_string())),
            None => (word.as_str(), None),
        };
        let mut value = || {
            inline.clone().or_else(|| rest.next().cloned()).ok_or(format!("{option} needs a value\n{USAGE}"))
        };
        match option {
            "--c" => job.files.push((c::bindings, value()?)),
            "--rust" => job.files.push((rust::bindings, value()?)),
            "--exports" => job.files.push((c::exports, value()?)),
            "--name" => job.name = Some(value()?),
            _ if option.starts_with('-') || job.header.is_some() => {
                return Err(format!("{word:?} is unknown\n{USAGE}"));
            }
            _ => job.header = Some(word.clone()),
        }
    }
    Ok(job)
}

pub fn command(args: &[String]) -> Result<(), String> {
    if args.iter().any(|a| a == "--help" || a == "-h") {
        println!("{USAGE}");
        return Ok(());
    }
    let job = parse(args)?;
    let path = job.header.ok_or(USAGE)?;
    if job.files.is_empty() {
        return Err(format!("nothing to write: --c, --rust or --exports\n{USAGE}"));
    }
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
    let file = Path::new(&path).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let name = job.name.unwrap_or_else(|| file.split('.').next().unwrap_or_default().replace('-', "_"));
    if !lex::is_name(&name) {
        return Err(format!("{name:?} is no name in C and Rust: give one with --name"));
    }
    let read = header::read(&text).and_then(|functions| Interface::new(name, file, functions));
    let interface = read.map_err(|e| format!("{path}:{}:{}: {}", e.at.line, e.at.column, e.text))?;
    for (write, to) in job.files {
        let text = write(&interface);
        let written = match to.as_str() {
            "-" => std::io::stdout().write_all(text.as_bytes()),
            _ => std::fs::write(&to, text),
        };
        written.map_err(|e| format!("{to}: {e}"))?;
    }
    Ok(())
}

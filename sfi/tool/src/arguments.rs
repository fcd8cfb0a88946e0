//! What a compiler's command line asks for.
//!
//! Each argument goes through a few kinds in turn, and the first that knows it takes it: what is to be made,
//! what is refused, the linker's, the compiler's; the rest are inputs.

use crate::cc::Error;
use crate::ld;
use crate::refused;
use pebble_sfi_rewrite::{Level, Options};
use std::path::PathBuf;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Link,
    Object,
    Assembly,
    Pass,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Compiler {
    Clang,
    Gcc,
}

/// A command line, understood.
pub struct Request {
    pub cxx: bool,
    pub compiler: Compiler,
    pub mode: Mode,
    pub options: Options,
    pub output: Option<PathBuf>,
    pub inputs: Vec<(String, Option<String>)>,
    pub flags: Vec<String>,
    pub link: Vec<String>,
    pub exports: Vec<(String, String)>,
    pub level0: bool,
    pub sanitizers: Vec<String>,
    pub deps: bool,
    pub dep_file: bool,
    pub dep_target: bool,
    /// The C library's headers, and the library itself.
    pub headers: bool,
    pub library: bool,
    /// What `-x` said last: the language of the inputs from there on.
    language: Option<String>,
}

/// Flags whose value is the next argument.
const VALUED: [&str; 18] = [
    "-I",
    "-D",
    "-U",
    "-include",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-imacros",
    "-MF",
    "-MT",
    "-MQ",
    "-Xclang",
    "-Xpreprocessor",
    "-target",
    "--param",
    "-isysroot",
    "-mllvm",
    "-Xassembler",
];
const LINK_VALUED: [&str; 4] = ["-L", "-l", "-T", "-u"];

const STRIP: [&str; 7] = ["-s", "-S", "-x", "-X", "--strip-all", "--strip-debug", "--discard-all"];

pub fn level(name: &str) -> Option<Level> {
    Some(match name {
        "write" => Level::Write,
        "full" => Level::Full,
        "check" => Level::Check,
        _ => return None,
    })
}

/// Arguments that are left, after one that may have a value.
type Rest<'a> = std::slice::Iter<'a, String>;

fn value(option: &str, rest: &mut Rest) -> Result<String, Error> {
    rest.next().cloned().ok_or_else(|| Error::Argument(option.into()))
}

impl Request {
    pub fn parse(args: &[String], cxx: bool) -> Result<Request, Error> {
        let mut request = Request::new(cxx)?;
        let args = expanded(args)?;
        let mut rest = args.iter();
        while let Some(a) = rest.next() {
            let known = request.task(a, &mut rest)?
                || request.refuse(a)?
                || request.linking(a, &mut rest)?
                || request.compiling(a, &mut rest)?;
            if !known {
                request.inputs.push((a.clone(), request.language.clone()));
            }
        }
        request.sanitize()?;
        Ok(request)
    }

    /// Without arguments: what the environment says.
    fn new(cxx: bool) -> Result<Request, Error> {
        let compiler = match std::env::var("PEBBLE_CC") {
            Ok(n) if n.contains("gcc") => Compiler::Gcc,
            _ => Compiler::Clang,
        };
        Ok(Request {
            cxx,
            compiler,
            mode: Mode::Link,
            options: Options::new(start_level()?),
            output: None,
            inputs: Vec::new(),
            flags: Vec::new(),
            link: Vec::new(),
            exports: Vec::new(),
            level0: true,
            sanitizers: Vec::new(),
            deps: false,
            dep_file: false,
            dep_target: false,
            headers: true,
            library: true,
            language: None,
        })
    }

    /// What is to be made, where, by which compiler and at which level.
    fn task(&mut self, a: &str, rest: &mut Rest) -> Result<bool, Error> {
        match a {
            "-o" => self.output = Some(value(a, rest)?.into()),
            "-x" => self.language = Some(value(a, rest)?).filter(|l| l != "none"),
            "--compiler" => {
                self.compiler = match value(a, rest)? {
                    name if name.contains("gcc") => Compiler::Gcc,
                    name if name.contains("clang") => Compiler::Clang,
                    name => return Err(Error::Argument(format!("--compiler {name}"))),
                }
            }
            "--export" => self.exports.push(ld::export(&value(a, rest)?)),
            "-c" => self.mode = Mode::Object,
            "-S" => self.mode = Mode::Assembly,
            "-E" | "-M" | "-MM" | "-fsyntax-only" | "--help" | "--version" | "-v" | "-dumpmachine"
            | "-dumpversion" | "-###" => self.pass(a),
            _ if a.starts_with("-print-") || a.starts_with("--print-") => self.pass(a),
            _ if a.starts_with("-fpbl-") => own_flag(&mut self.options, a)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Nothing for us: the compiler answers.
    fn pass(&mut self, a: &str) {
        self.mode = Mode::Pass;
        self.flags.push(a.into());
    }

    fn refuse(&self, a: &str) -> Result<bool, Error> {
        match a {
            "-fexceptions" | "-frtti" | "-fcxx-exceptions" if self.cxx => Err(Error::NoExceptions(a.into())),
            _ => refused::reason(a).map_or(Ok(false), |why| Err(Error::Refused(a.into(), why))),
        }
    }

    fn linking(&mut self, a: &str, rest: &mut Rest) -> Result<bool, Error> {
        match a {
            "-shared" | "-static" | "-pie" | "-no-pie" | "-rdynamic" | "-s" | "-pthread" | "-static-pie" => {}
            "-nostdlib" | "-nostartfiles" | "-nodefaultlibs" => self.library = false,
            "-Xlinker" => self.link.extend(Some(value(a, rest)?).filter(|v| !STRIP.contains(&v.as_str()))),
            _ if LINK_VALUED.contains(&a) => self.link.extend([a.into(), value(a, rest)?]),
            _ if a.starts_with("-Wl,") => self.linker_flags(&a[4..]),
            _ if a.starts_with("-L") || a.starts_with("-l") => self.link.push(a.into()),
            _ if a.starts_with("-flto") || a.starts_with("-fuse-ld") => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn compiling(&mut self, a: &str, rest: &mut Rest) -> Result<bool, Error> {
        match a {
            "-nostdinc" => {
                self.headers = false;
                self.flags.push(a.into());
            }
            _ if VALUED.contains(&a) => {
                self.dep_file |= a == "-MF";
                self.dep_target |= a == "-MT" || a == "-MQ";
                let v = value(a, rest)?;
                if let Some(why) = refused::target(&v).filter(|_| a == "-target") {
                    return Err(Error::Refused(format!("{a} {v}"), why));
                }
                self.flags.extend([a.into(), v]);
            }
            _ if a.starts_with("-fsanitize") || a.starts_with("-fno-sanitize") => {
                self.sanitizers.push(a.into())
            }
            _ if a.starts_with("-o") => self.output = Some(a[2..].into()),
            _ if a.starts_with("-x") => self.language = Some(a[2..].to_string()).filter(|l| l != "none"),
            _ if a.starts_with('-') && a.len() > 1 => {
                if let Some(why) = a.strip_prefix("--target=").and_then(refused::target) {
                    return Err(Error::Refused(a.into(), why));
                }
                self.deps |= a == "-MD" || a == "-MMD";
                if a.starts_with("-O") {
                    self.level0 = a == "-O0";
                }
                self.dep_file |= a.starts_with("-MF");
                self.dep_target |= a.starts_with("-MT") || a.starts_with("-MQ");
                self.flags.push(a.into());
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Sanitizers that trap, among the compiler's flags.
    fn sanitize(&mut self) -> Result<(), Error> {
        if let Some((option, why)) = refused::sanitizer(&self.sanitizers) {
            return Err(Error::Refused(option, why));
        }
        if self.sanitizers.iter().any(|o| o.starts_with("-fsanitize=")) && self.compiler == Compiler::Clang {
            // It puts marks before functions, among the code.
            self.sanitizers.push("-fno-sanitize=function".into());
        }
        self.flags.append(&mut self.sanitizers);
        Ok(())
    }

    fn linker_flags(&mut self, list: &str) {
        let mut parts = list.split(',');
        while let Some(p) = parts.next() {
            match p {
                // Modules have no shared-library names, run paths or symbol versions.
                "-soname" | "-h" | "-rpath" | "--version-script" | "-z" => {
                    parts.next();
                }
                // Symbols are wanted for the module's header and for diagnostics.
                _ if STRIP.contains(&p) => {}
                _ if p.starts_with("-soname=")
                    || p.starts_with("-rpath")
                    || p.starts_with("--version-script")
                    || p.starts_with("--as-needed")
                    || p == "-E"
                    || p == "--export-dynamic" => {}
                _ => self.link.push(p.into()),
            }
        }
    }
}

/// Where a command line begins: what the environment says.
pub fn start_level() -> Result<Level, Error> {
    match std::env::var("PEBBLE_SFI_LEVEL") {
        Ok(n) => level(&n).ok_or_else(|| Error::Argument(format!("PEBBLE_SFI_LEVEL={n}"))),
        Err(_) => Ok(Level::Full),
    }
}

/// The options that are ours, in every language.
pub const OWN_FLAGS: &str = "  -fpbl-level=write|full|check
                    what is confined: stores and jumps; loads too (default, or PEBBLE_SFI_LEVEL); or each access is compared
                    with where it would be unconfined, and traps if that is elsewhere: for finding bugs
  -fpbl-base        keeps the segment base in a register in loops that chase pointers: for processors on which a segment base
                    that is not zero makes loads slow; -fpbl-no-merge: such loads do not share copies of a pointer
  -fpbl-no-guard, -fpbl-no-stack, -fpbl-no-elide
                    without one optimisation, to measure what it saves
  -fpbl-no-timer    refuses what reads a clock of the processor's (rdtsc, rdtscp, rdpru), which hosts may demand";

pub fn own_flag(options: &mut Options, flag: &str) -> Result<(), Error> {
    match flag {
        "-fpbl-base" => options.base = true,
        "-fpbl-no-base" => options.base = false,
        "-fpbl-no-merge" => options.merge = false,
        "-fpbl-no-guard" => options.guard = false,
        "-fpbl-no-stack" => options.stack = false,
        "-fpbl-no-elide" => options.elide = false,
        "-fpbl-no-timer" => options.no_timer = true,
        "-fpbl-timer" => options.no_timer = false,
        _ => match flag.strip_prefix("-fpbl-level=").and_then(level) {
            Some(level) => options.level = level,
            None => return Err(Error::OwnFlag(flag.into())),
        },
    }
    Ok(())
}

/// The arguments, with those that response files (`@FILE`) hold in their place: words, in quotes or with `\\`
/// before what would end them.
fn expanded(args: &[String]) -> Result<Vec<String>, Error> {
    let mut out = Vec::new();
    for arg in args {
        // A file that cannot be read is an argument like others, as for gcc.
        match arg.strip_prefix('@').map(std::fs::read_to_string) {
            Some(Ok(text)) => out.extend(words(&text).ok_or_else(|| Error::Argument(arg.clone()))?),
            _ => out.push(arg.clone()),
        }
    }
    Ok(out)
}

/// None if a quotation does not end.
pub fn words(text: &str) -> Option<Vec<String>> {
    let (mut out, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\\', _) if quote != Some('\'') => word.get_or_insert_default().extend(chars.next()),
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (_, Some(end)) if c == end => quote = None,
            (_, None) if c.is_whitespace() => out.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    out.extend(word);
    quote.is_none().then_some(out)
}

//! `pebble sfi cc`: a drop-in for a C or C++ compiler.
//!
//! Each source is compiled to assembly by the stock compiler with the flags that the rewriter relies on, rewritten, and
//! assembled. Everything that makes no code (preprocessing, dependency lists, version questions) goes to the compiler as it is.

use crate::encoding;
use crate::ld;
use crate::library::{self, Library};
use crate::refused;
use pebble_sfi_rewrite::{Level, Options, rewrite};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

#[derive(Debug)]
pub enum Error {
    Io(PathBuf, std::io::Error),
    Tool(String, ExitStatus),
    Rewrite(pebble_sfi_rewrite::Error),
    Link(ld::Error),
    Argument(String),
    SeveralOutputs,
    NoExceptions(String),
    /// An option, and why not.
    Refused(String, &'static str),
    NoInput,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Io(path, e) => write!(f, "{}: {e}", path.display()),
            Error::Tool(name, status) => write!(f, "{name} failed ({status})"),
            Error::Rewrite(e) => write!(f, "{e}"),
            Error::Link(e) => write!(f, "{e}"),
            Error::Argument(a) => write!(f, "`{a}`: a value is missing or unknown"),
            Error::NoExceptions(flag) => write!(
                f,
                "{flag}: C++ in fault domains has neither exceptions nor run-time types (throw, try, dynamic_cast, typeid); \
                 leave the flag out, and return errors instead"
            ),
            Error::Refused(option, why) => write!(f, "{option}: {why}"),
            Error::NoInput => write!(f, "no input files"),
            Error::SeveralOutputs => {
                write!(f, "-o names one file, but there are several sources; leave it out")
            }
        }
    }
}

impl From<ld::Error> for Error {
    fn from(e: ld::Error) -> Error {
        Error::Link(e)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
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

pub struct Driver {
    cxx: bool,
    compiler: Compiler,
    mode: Mode,
    options: Options,
    output: Option<PathBuf>,
    inputs: Vec<(String, Option<String>)>,
    flags: Vec<String>,
    link: Vec<String>,
    exports: Vec<(String, String)>,
    level0: bool,
    sanitizers: Vec<String>,
    deps: bool,
    dep_file: bool,
    dep_target: bool,
    /// The C library's headers, and the library itself.
    headers: bool,
    library: bool,
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
const LINK_VALUED: [&str; 5] = ["-L", "-l", "-T", "-u", "-Xlinker"];

const STRIP: [&str; 7] = ["-s", "-S", "-x", "-X", "--strip-all", "--strip-debug", "--discard-all"];

pub fn level(name: &str) -> Option<Level> {
    Some(match name {
        "write" => Level::Write,
        "full" => Level::Full,
        "check" => Level::Check,
        _ => return None,
    })
}

impl Driver {
    pub fn parse(args: &[String], cxx: bool) -> Result<Driver, Error> {
        let from_env = std::env::var("PEBBLE_SFI_LEVEL").ok();
        let start = match &from_env {
            Some(n) => level(n).ok_or_else(|| Error::Argument(format!("PEBBLE_SFI_LEVEL={n}")))?,
            None => Level::Full,
        };
        let compiler = match std::env::var("PEBBLE_CC") {
            Ok(n) if n.contains("gcc") => Compiler::Gcc,
            _ => Compiler::Clang,
        };
        let mut d = Driver {
            cxx,
            compiler,
            mode: Mode::Link,
            options: Options::new(start),
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
        };
        let args = expanded(args)?;
        let mut language = None;
        let mut it = args.iter();
        while let Some(a) = it.next() {
            let mut value = || it.next().cloned().ok_or_else(|| Error::Argument(a.clone()));
            match a.as_str() {
                "-o" => d.output = Some(value()?.into()),
                "-x" => language = Some(value()?).filter(|l| l != "none"),
                "--compiler" => {
                    d.compiler = match value()? {
                        name if name.contains("gcc") => Compiler::Gcc,
                        name if name.contains("clang") => Compiler::Clang,
                        name => return Err(Error::Argument(format!("--compiler {name}"))),
                    }
                }
                "--export" => {
                    let v = value()?;
                    d.exports.push(
                        v.split_once('=').map_or((v.clone(), String::new()), |(n, s)| (n.into(), s.into())),
                    );
                }
                "-c" => d.mode = Mode::Object,
                "-S" => d.mode = Mode::Assembly,
                "-E" | "-M" | "-MM" | "-fsyntax-only" | "--help" | "--version" | "-v" | "-dumpmachine"
                | "-dumpversion" | "-###" => {
                    d.mode = Mode::Pass;
                    d.flags.push(a.clone());
                }
                "-fexceptions" | "-frtti" | "-fcxx-exceptions" if cxx => {
                    return Err(Error::NoExceptions(a.clone()));
                }
                _ if refused::reason(a).is_some() => {
                    return Err(Error::Refused(a.clone(), refused::reason(a).unwrap_or_default()));
                }
                "-shared" | "-static" | "-pie" | "-no-pie" | "-rdynamic" | "-s" | "-pthread"
                | "-static-pie" => {}
                "-nostdlib" | "-nostartfiles" | "-nodefaultlibs" => d.library = false,
                "-nostdinc" => {
                    d.headers = false;
                    d.flags.push(a.clone());
                }
                _ if a.starts_with("-print-") || a.starts_with("--print-") => {
                    d.mode = Mode::Pass;
                    d.flags.push(a.clone());
                }
                _ if a.starts_with("-fpbl-") => d.own_flag(a)?,
                _ if VALUED.contains(&a.as_str()) => {
                    d.dep_file |= a == "-MF";
                    d.dep_target |= a == "-MT" || a == "-MQ";
                    let v = value()?;
                    if let Some(why) = refused::target(&v).filter(|_| a == "-target") {
                        return Err(Error::Refused(format!("{a} {v}"), why));
                    }
                    d.flags.extend([a.clone(), v]);
                }
                _ if LINK_VALUED.contains(&a.as_str()) => {
                    let v = value()?;
                    if a == "-Xlinker" {
                        d.link.extend(Some(v).filter(|v| !STRIP.contains(&v.as_str())))
                    } else {
                        d.link.extend([a.clone(), v])
                    }
                }
                _ if a.starts_with("-Wl,") => d.linker_flags(&a[4..]),
                _ if a.starts_with("-L") || a.starts_with("-l") => d.link.push(a.clone()),
                _ if a.starts_with("-fsanitize") || a.starts_with("-fno-sanitize") => {
                    d.sanitizers.push(a.clone())
                }
                _ if a.starts_with("-flto") || a.starts_with("-fuse-ld") => {}
                _ if a.starts_with("-o") => d.output = Some(a[2..].into()),
                _ if a.starts_with("-x") => language = Some(a[2..].to_string()).filter(|l| l != "none"),
                _ if a.starts_with('-') && a.len() > 1 => {
                    if let Some(why) = a.strip_prefix("--target=").and_then(refused::target) {
                        return Err(Error::Refused(a.clone(), why));
                    }
                    d.deps |= a == "-MD" || a == "-MMD";
                    if a.starts_with("-O") {
                        d.level0 = a == "-O0";
                    }
                    d.dep_file |= a.starts_with("-MF");
                    d.dep_target |= a.starts_with("-MT") || a.starts_with("-MQ");
                    d.flags.push(a.clone());
                }
                _ => d.inputs.push((a.clone(), language.clone())),
            }
        }
        if let Some((option, why)) = refused::sanitizer(&d.sanitizers) {
            return Err(Error::Refused(option, why));
        }
        if d.sanitizers.iter().any(|o| o.starts_with("-fsanitize=")) && d.compiler == Compiler::Clang {
            // It puts marks before functions, among the code.
            d.sanitizers.push("-fno-sanitize=function".into());
        }
        d.flags.append(&mut d.sanitizers);
        Ok(d)
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

    fn own_flag(&mut self, flag: &str) -> Result<(), Error> {
        let o = &mut self.options;
        match flag {
            "-fpbl-no-base" => o.base = false,
            "-fpbl-no-merge" => o.merge = false,
            "-fpbl-no-guard" => o.guard = false,
            "-fpbl-no-stack" => o.stack = false,
            "-fpbl-no-elide" => o.elide = false,
            "-fpbl-no-mask" => o.mask = false,
            _ => match flag.strip_prefix("-fpbl-level=").and_then(level) {
                Some(l) => o.level = l,
                None => return Err(Error::Argument(flag.into())),
            },
        }
        Ok(())
    }

    fn program(&self) -> &'static str {
        match (self.compiler, self.cxx) {
            (Compiler::Clang, false) => "clang-19",
            (Compiler::Clang, true) => "clang++-19",
            (Compiler::Gcc, false) => "gcc",
            (Compiler::Gcc, true) => "g++",
        }
    }

    /// What the rewriter relies on; last, so that it wins.
    fn needed_flags(&self) -> Vec<&'static str> {
        let mut f = vec![
            "-fPIE",
            "-fno-omit-frame-pointer",
            "-mno-omit-leaf-frame-pointer",
            "-mno-red-zone",
            "-fno-asynchronous-unwind-tables",
            "-fno-unwind-tables",
            "-fcf-protection=none",
            "-fno-stack-protector",
            "-fno-stack-clash-protection",
            "-ftls-model=local-exec",
            "-ffunction-sections",
            "-D__PBL__=1",
        ];
        if self.cxx {
            f.extend(["-fno-exceptions", "-fno-rtti"]);
        }
        if self.compiler == Compiler::Gcc {
            // Callees must be free to use r11 and the like whatever this file says of them.
            f.extend([
                "-mtune-ctrl=^prologue_using_move,^epilogue_using_move",
                "-fno-ipa-ra",
                "-fno-crossjumping",
            ]);
            // Nor does it take its marks for variables whose place changes.
            f.extend(
                self.debug_flag()
                    .map(|version| [version, "-gno-variable-location-views"])
                    .into_iter()
                    .flatten(),
            );
        }
        if self.level0 {
            f.push("-fno-jump-tables");
        }
        f
    }

    /// For gcc and for the assembler behind it: clang's does not take gcc's names of files in the fifth version of DWARF.
    fn debug_flag(&self) -> Option<&'static str> {
        let asked = self.flags.iter().rfind(|f| f.starts_with("-g")).is_some_and(|f| f != "-g0");
        (self.compiler == Compiler::Gcc && asked).then_some("-gdwarf-4")
    }

    fn header_flags(&self) -> Result<Vec<String>, Error> {
        let mut flags = match Library::find(self.options.level).filter(|_| self.headers) {
            Some(library) => library.headers(self.compiler, self.cxx)?,
            None => Vec::new(),
        };
        if let Ok(ours) = std::env::var("PEBBLE_SFI_INCLUDE") {
            flags.extend(["-isystem".into(), ours]);
        }
        Ok(flags)
    }

    pub fn run(&self) -> Result<(), Error> {
        if self.mode != Mode::Pass && self.inputs.is_empty() && self.link.is_empty() {
            return Err(Error::NoInput);
        }
        let sources: Vec<_> = self.inputs.iter().filter(|(f, l)| l.is_some() || is_source(f)).collect();
        if self.mode == Mode::Pass || sources.is_empty() && self.mode != Mode::Link {
            let mut c = Command::new(self.program());
            c.args(&self.flags);
            for (f, l) in &self.inputs {
                if let Some(l) = l {
                    c.args(["-x", l]);
                }
                c.arg(f);
            }
            if let Some(o) = &self.output {
                c.arg("-o").arg(o);
            }
            if !self.inputs.is_empty() {
                c.arg("-D__PBL__=1").args(self.header_flags()?);
            }
            return run(&mut c);
        }
        if self.mode != Mode::Link && self.output.is_some() && sources.len() > 1 {
            return Err(Error::SeveralOutputs);
        }
        let scratch = Scratch::new()?;
        let mut objects = Vec::new();
        for (k, (file, language)) in self.inputs.iter().enumerate() {
            if language.is_none() && !is_source(file) {
                objects.push(file.clone());
                continue;
            }
            let stem =
                Path::new(file).file_stem().map_or_else(|| "a".into(), |s| s.to_string_lossy().into_owned());
            let output = match (self.mode, &self.output) {
                (Mode::Link, _) => scratch.0.join(format!("{k}-{stem}.o")),
                (_, Some(o)) => o.clone(),
                (Mode::Assembly, None) => format!("{stem}.s").into(),
                (_, None) => format!("{stem}.o").into(),
            };
            self.compile(file, language.as_deref(), &output, &scratch.0.join(format!("{k}")))?;
            objects.push(output.to_string_lossy().into_owned());
        }
        if self.mode == Mode::Link {
            let program = library::is_program(&objects);
            let mut args = objects;
            args.extend(self.link.iter().cloned());
            let library = Library::find(self.options.level).filter(|_| self.library);
            if let Some(library) = &library {
                let (first, last) = library.around(program, self.cxx);
                args = [first, args, last].concat();
            }
            let output = self.output.clone().unwrap_or_else(|| "a.out".into());
            let full = self.options.level != Level::Write;
            let whole = program && library.is_some();
            ld::link(&ld::Job { args, output, exports: self.exports.clone(), full, whole })?;
        }
        Ok(())
    }

    fn compile(&self, file: &str, language: Option<&str>, output: &Path, temp: &Path) -> Result<(), Error> {
        let raw = temp.with_extension("s");
        let lower = language.unwrap_or_else(|| file.rsplit('.').next().unwrap_or("")).to_string();
        let plain_assembly = matches!(lower.as_str(), "s" | "assembler");
        let preprocess = matches!(lower.as_str(), "S" | "sx" | "assembler-with-cpp");
        let mut again = None;
        if plain_assembly {
            std::fs::copy(file, &raw).map_err(|e| Error::Io(file.into(), e))?;
        } else {
            let mut c = Command::new(self.program());
            c.args(&self.flags);
            c.args(self.header_flags()?);
            if !preprocess {
                c.args(self.needed_flags());
            } else {
                c.arg("-D__PBL__=1");
            }
            if self.deps {
                // Of a compilation that is linked at once the object is nobody's.
                let made = match (self.mode, &self.output) {
                    (Mode::Link, Some(made)) => made.clone(),
                    (Mode::Link, None) => {
                        Path::new(file).with_extension("o").file_name().unwrap_or_default().into()
                    }
                    _ => output.to_path_buf(),
                };
                if !self.dep_file {
                    c.arg("-MF").arg(made.with_extension("d"));
                }
                if !self.dep_target {
                    c.arg("-MT").arg(made);
                }
            }
            if let Some(l) = language {
                c.args(["-x", l]);
            }
            c.arg(if preprocess { "-E" } else { "-S" }).arg(file).arg("-o").arg(&raw);
            run(&mut c)?;
            again = (!preprocess).then_some(c);
        }
        let text = encoding::read(&raw)?;
        let name = if plain_assembly || preprocess { file.to_string() } else { format!("{file} (assembly)") };
        let rewritten = rewrite(&text.text, &name, &self.options).or_else(|e| {
            // The assembly that the message speaks of.
            if let Ok(keep) = std::env::var("PEBBLE_SFI_KEEP") {
                let _ = std::fs::copy(&raw, keep);
            }
            // Once more with line numbers, for the message; what it says of code is the same.
            let Some(mut with_lines) = again.filter(|_| e.source.is_none()) else { return Err(e) };
            let compiled = with_lines.arg("-g1").stderr(Stdio::null()).status().is_ok_and(|s| s.success());
            let text = compiled.then(|| encoding::read(&raw).ok()).flatten();
            Err(text.and_then(|text| rewrite(&text.text, &name, &self.options).err()).unwrap_or(e))
        });
        let confined = rewritten.map_err(Error::Rewrite)?;
        if self.mode == Mode::Assembly && output == Path::new("-") {
            return encoding::write(Path::new("/dev/stdout"), text.like(&confined));
        }
        if self.mode == Mode::Assembly {
            return encoding::write(output, text.like(&confined));
        }
        let ready = temp.with_extension("pbl.s");
        encoding::write(&ready, text.like(&confined))?;
        let mut assembler = Command::new("clang-19");
        run(assembler
            .args(["-c", "-x", "assembler"])
            .args(self.debug_flag())
            .arg(&ready)
            .arg("-o")
            .arg(output))
    }
}

/// The arguments, with those that response files (`@FILE`) hold in their place: words, in quotes or with `\\` before what would end them.
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
fn words(text: &str) -> Option<Vec<String>> {
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

fn is_source(file: &str) -> bool {
    matches!(
        file.rsplit('.').next().unwrap_or(""),
        "c" | "cc" | "cpp" | "cxx" | "C" | "c++" | "i" | "ii" | "s" | "S" | "sx"
    )
}

pub fn run(c: &mut Command) -> Result<(), Error> {
    let name = c.get_program().to_string_lossy().into_owned();
    let status = c.status().map_err(|e| Error::Io(c.get_program().into(), e))?;
    if status.success() { Ok(()) } else { Err(Error::Tool(name, status)) }
}

pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new() -> Result<Scratch, Error> {
        let dir = std::env::temp_dir().join(format!("pebble-sfi-cc-{}", std::process::id()));
        std::fs::create_dir_all(&dir).map_err(|e| Error::Io(dir.clone(), e))?;
        Ok(Scratch(dir))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

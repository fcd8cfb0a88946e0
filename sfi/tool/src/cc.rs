//! `pebble sfi cc`: a drop-in for a C or C++ compiler.
//!
//! Each source is compiled to assembly by the stock compiler with the flags that the rewriter relies on,
//! rewritten, and assembled. Everything that makes no code (preprocessing, dependency lists, version
//! questions) goes to the compiler as it is.

use crate::arguments::{Compiler, Mode, OWN_FLAGS, Request};
use crate::encoding::{self, Text};
use crate::ld;
use crate::library::{self, Library};
use crate::origin;
use pebble_sfi_rewrite::{Error as Refusal, Level, rewrite};
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
    /// One of `-fpbl-`, which there is not.
    OwnFlag(String),
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
                "{flag}: C++ in fault domains has neither exceptions nor run-time types (throw, try, \
                 dynamic_cast, typeid); leave the flag out, and return errors instead"
            ),
            Error::Refused(option, why) => write!(f, "{option}: {why}"),
            Error::OwnFlag(flag) => write!(f, "there is no {flag}; there are\n{OWN_FLAGS}"),
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

impl Request {
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
            // Whatever the machine has, and -march=native says.
            "-mno-avx512f",
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
                // Where a switch leads cannot be followed through memory, where it is kept if it is worked
                // out before a loop.
                "-fno-move-loop-invariants",
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

    /// For gcc and for the assembler behind it: clang's does not take gcc's names of files in the fifth
    /// version of DWARF.
    fn debug_flag(&self) -> Option<&'static str> {
        let asked = self.flags.iter().rfind(|f| f.starts_with("-g")).is_some_and(|f| f != "-g0");
        (self.compiler == Compiler::Gcc && asked).then_some("-gdwarf-4")
    }

    fn header_flags(&self) -> Result<Vec<String>, Error> {
        let library = match Library::find(self.options.level).filter(|_| self.headers) {
            Some(library) => library.headers(self.compiler, self.cxx)?,
            None => Vec::new(),
        };
        // Ours in front, since they look at what the compiler's own are asked for.
        let ours = std::env::var("PEBBLE_SFI_INCLUDE").ok().map(|ours| ["-isystem".to_string(), ours]);
        Ok(ours.into_iter().flatten().chain(library).collect())
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
            ld::link(&ld::Job {
                args,
                output,
                exports: self.exports.clone(),
                full,
                whole,
                no_timer: self.options.no_timer,
            })?;
        }
        Ok(())
    }

    /// The same with the source's file and line, for the message: `again` compiles once more what `text` is
    /// made of. And the assembly of whose lines it speaks then, if that is another.
    fn with_source(
        &self,
        e: Refusal,
        name: &str,
        text: &Text,
        mut again: Command,
        raw: &Path,
    ) -> (Refusal, Option<Text>) {
        if e.source.is_some() {
            return (e, None);
        }
        let mut ask = |option| {
            let done = again.arg(option).stderr(Stdio::null()).status().is_ok_and(|s| s.success());
            done.then(|| encoding::read(raw).ok()).flatten()
        };
        // With line numbers. What it says of code is the same.
        let numbered =
            ask("-g1").and_then(|said| Some((rewrite(&said.text, name, &self.options).err()?, said)));
        let (e, said) = numbered.map_or((e, None), |(e, said)| (e, Some(said)));
        if e.source.is_some() {
            return (e, said);
        }
        let lines = &said.as_ref().unwrap_or(text).text;
        let words = lines.lines().nth(e.line.saturating_sub(1)).unwrap_or_default();
        let source = ask("-E").and_then(|source| origin::of_words(&source.text, words));
        (Refusal { source, ..e }, said)
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
            let (e, said) = match again {
                Some(again) => self.with_source(e, &name, &text, again, &raw),
                None if plain_assembly => (e, None),
                None => {
                    let (file, line) = origin::of_line(&text.text, e.line).unwrap_or((e.file, e.line));
                    (Refusal { file, line, ..e }, None)
                }
            };
            // The assembly that the message speaks of.
            if let Ok(keep) = std::env::var("PEBBLE_SFI_KEEP") {
                let _ = encoding::write(Path::new(&keep), said.as_ref().unwrap_or(&text).as_it_is());
            }
            Err(e)
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

//! `pebble sfi rustc`: a crate (no_std, panic=abort) to a module, or to a confined object, by way of `rustc
//! --emit asm`.
//!
//! Problem: the code of precompiled crates is not confined, and nearly every crate calls some of `core`.
//! Strategy: `PEBBLE_SFI_RUST` names the directory where `sfi/rust/make.sh` has put `core` and `alloc`,
//! compiled by this command, with a sysroot and `librust.a` for each level. Crates are compiled against that
//! sysroot, and modules linked with the library; what is not used is left out. Without the variable the
//! compiler's own sysroot is used: that is how `core` itself is compiled.

use crate::arguments;
use crate::cc::{self, Error};
use crate::ld;
use crate::library::{self, Library};
use pebble_sfi_rewrite::{Level, Options, rewrite};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the rewriter relies on; last, so that it wins.
const NEEDED: [&str; 12] = [
    "-C",
    "relocation-model=pie",
    "-C",
    "force-frame-pointers=yes",
    "-C",
    "no-redzone=yes",
    "-C",
    "panic=abort",
    "-C",
    "codegen-units=1",
    "-C",
    "force-unwind-tables=no",
];

/// Without optimisation the compiler keeps a table's address where the rewriter does not see it.
const NO_TABLES: &str = "llvm-args=-min-jump-table-entries=1000000000";

/// A command line, understood.
struct Request {
    options: Options,
    output: Option<PathBuf>,
    crate_type: Option<String>,
    /// `-c` or `--emit=obj`, which rustc does not see.
    object: bool,
    level0: bool,
    source: Option<String>,
    exports: Vec<(String, String)>,
    /// For the linker.
    link: Vec<String>,
    /// For rustc, without crate type and source.
    rest: Vec<String>,
}

impl Request {
    fn parse(args: &[String]) -> Result<Request, Error> {
        let mut r = Request {
            options: Options::new(arguments::start_level()?),
            output: None,
            crate_type: None,
            object: false,
            level0: true,
            source: None,
            exports: Vec::new(),
            link: Vec::new(),
            rest: Vec::new(),
        };
        let mut it = args.iter();
        while let Some(a) = it.next() {
            let (name, inline) = match a.split_once('=').filter(|_| a.starts_with("--")) {
                Some((name, value)) => (name, Some(value.to_string())),
                None => (a.as_str(), None),
            };
            let mut value =
                || inline.clone().or_else(|| it.next().cloned()).ok_or_else(|| Error::Argument(a.clone()));
            match name {
                "-o" => r.output = Some(value()?.into()),
                "-c" => r.object = true,
                "--crate-type" => r.crate_type = Some(value()?),
                "--export" => r.exports.push(ld::export(&value()?)),
                "--emit" => r.emit(&value()?),
                "-C" | "--codegen" => r.codegen(value()?),
                _ if a.starts_with("-fpbl-") => arguments::own_flag(&mut r.options, a)?,
                _ if a.starts_with("-C") => r.codegen(a[2..].into()),
                "-O" => r.codegen("opt-level=3".into()),
                _ if a.starts_with('-') => r.rest.push(a.clone()),
                _ if a.ends_with(".o") || a.ends_with(".a") => r.link.push(a.clone()),
                _ if a.ends_with(".rs") && r.source.is_none() => r.source = Some(a.clone()),
                _ => r.rest.push(a.clone()),
            }
        }
        Ok(r)
    }

    fn emit(&mut self, kinds: &str) {
        for kind in kinds.split(',') {
            match kind.split('=').next() {
                Some("obj") => self.object = true,
                Some("link") => {}
                _ => self.rest.push(format!("--emit={kind}")),
            }
        }
    }

    fn codegen(&mut self, option: String) {
        match option.split_once('=') {
            Some(("link-arg", one)) => self.link.push(one.into()),
            Some(("link-args", all)) => self.link.extend(all.split_whitespace().map(String::from)),
            other => {
                if let Some(("opt-level", level)) = other {
                    self.level0 = level == "0";
                }
                self.rest.extend(["-C".into(), option]);
            }
        }
    }

    /// Is a module to be made? Else it is an object file.
    fn links(&self) -> bool {
        let library = matches!(self.crate_type.as_deref(), Some("lib" | "rlib"));
        let named = self.output.as_ref().map(|o| o.extension().is_none_or(|e| e != "o"));
        !self.object && named.unwrap_or(!library)
    }

    fn output(&self) -> PathBuf {
        let source = Path::new(self.source.as_deref().unwrap_or("crate"));
        let made = source.with_extension(if self.links() { "pbl" } else { "o" });
        self.output.clone().unwrap_or_else(|| made.file_name().unwrap_or_default().into())
    }

    /// The level's sysroot, in which `librust.a` is too.
    fn sysroot(&self) -> Option<PathBuf> {
        let room = if self.options.level == Level::Write { "write" } else { "full" };
        Some(PathBuf::from(std::env::var_os("PEBBLE_SFI_RUST")?).join(room))
    }

    fn compile(&self, scratch: &Path, object: &Path) -> Result<(), Error> {
        let raw = scratch.join("crate.s");
        let mut rustc = Command::new(compiler());
        rustc.args(&self.source).args(&self.rest);
        // Of a library the compiler would leave out what only a link makes.
        let crate_type = match self.crate_type.as_deref() {
            Some("lib" | "rlib") if self.links() => Some("cdylib"),
            other => other,
        };
        if let Some(name) = crate_type {
            rustc.args(["--crate-type", name]);
        }
        if let Some(place) = self.sysroot() {
            rustc.arg("--sysroot").arg(place);
        }
        if self.level0 {
            rustc.args(["-C", NO_TABLES]);
        }
        cc::run(rustc.args(NEEDED).arg(format!("--emit=asm={}", raw.display())))?;
        let text = std::fs::read_to_string(&raw).map_err(|e| Error::Io(raw.clone(), e))?;
        let name = format!("{} (assembly)", self.source.as_deref().unwrap_or("crate"));
        let confined = rewrite(&text, &name, &self.options).map_err(Error::Rewrite)?;
        let ready = scratch.join("crate.pbl.s");
        std::fs::write(&ready, confined).map_err(|e| Error::Io(ready.clone(), e))?;
        cc::run(Command::new("clang-19").args(["-c", "-x", "assembler"]).arg(&ready).arg("-o").arg(object))
    }

    fn link(self, object: &Path) -> Result<(), Error> {
        let output = self.output();
        let mut args = vec![object.display().to_string()];
        args.extend(self.sysroot().map(|place| place.join("librust.a").display().to_string()));
        let program = library::is_program(&args[..1]);
        args.extend(self.link);
        let library = Library::find(self.options.level);
        if let Some(library) = &library {
            let (first, last) = library.around(program, false);
            args = [first, args, last].concat();
        }
        let full = self.options.level != Level::Write;
        let whole = program && library.is_some();
        Ok(ld::link(&ld::Job {
            args,
            output,
            exports: self.exports,
            full,
            whole,
            no_timer: self.options.no_timer,
        })?)
    }
}

fn compiler() -> std::ffi::OsString {
    std::env::var_os("PEBBLE_RUSTC").unwrap_or_else(|| "rustc".into())
}

/// Nothing to compile: the compiler answers.
fn is_question(a: &str) -> bool {
    matches!(a, "-V" | "-vV" | "--version" | "-h" | "--help" | "--explain") || a.starts_with("--print")
}

pub fn run(args: &[String]) -> Result<(), Error> {
    if args.iter().any(|a| is_question(a)) {
        return cc::run(Command::new(compiler()).args(args));
    }
    let request = Request::parse(args)?;
    if request.source.is_none() && !request.rest.iter().any(|a| a == "-") {
        return Err(Error::NoInput);
    }
    let scratch = cc::Scratch::new()?;
    if !request.links() {
        return request.compile(&scratch.0, &request.output());
    }
    let object = scratch.0.join("crate.o");
    request.compile(&scratch.0, &object)?;
    request.link(&object)
}

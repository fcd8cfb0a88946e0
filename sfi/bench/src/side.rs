//! The sides that are compared: what makes a program for each, and how it is run.
//!
//! All use clang 19 at `-O2` and, but for WebAssembly's own, the same C library; they differ in what confines
//! the program.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Result, ensure};

use crate::compile::{self, Compiler, words};
use crate::libc;
use crate::manifest::Program;
use crate::place::Place;
use crate::source::Sources;
use crate::wasm;

pub const CLANG: &str = "clang-19";
const MUSL: &str = "x86_64-linux-musl";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Side {
    /// Unconfined, linked statically
    Native,
    /// Fault domain: stores and jumps
    Write,
    /// Fault domain: loads too
    Full,
    /// A module translated back to C
    Wasm2c,
    /// A module compiled by Cranelift
    Wasmtime,
}

pub const ALL: [Side; 5] = [Side::Native, Side::Write, Side::Full, Side::Wasm2c, Side::Wasmtime];

/// A program that is ready to be run.
#[derive(Clone)]
pub struct Built {
    pub side: Side,
    /// The command and its first arguments; the number of rounds follows.
    pub command: Vec<OsString>,
    /// The file with the code; a fault domain's and native objects are beside it.
    pub code: PathBuf,
}

impl Built {
    /// A fault domain with its segment elsewhere than at address zero.
    pub fn elsewhere(mut self) -> Built {
        if self.side.confined() {
            self.command.insert(self.command.len() - 1, "--elsewhere".into());
        }
        self
    }
}

impl Side {
    pub fn name(self) -> &'static str {
        match self {
            Side::Native => "native",
            Side::Write => "write",
            Side::Full => "full",
            Side::Wasm2c => "wasm2c",
            Side::Wasmtime => "wasmtime",
        }
    }

    /// Is it a fault domain?
    pub fn confined(self) -> bool {
        matches!(self, Side::Write | Side::Full)
    }

    pub fn build(self, place: &Place, sources: &Sources, program: &Program) -> Result<Built> {
        let directory = place.target.join(self.name());
        let (command, code): (Vec<OsString>, PathBuf) = match self {
            Side::Native => {
                let file = compile::build(place, sources, program, &native(place)?, &directory)?;
                (vec![file.clone().into()], file)
            }
            Side::Write | Side::Full => {
                let tool = place.tool();
                let mut cc = Compiler::plain(&format!("{tool} cc -fpbl-level={}", self.name()));
                cc.made_from.push(place.tool_is_of(self.name()));
                let file = compile::build(place, sources, program, &cc, &directory)?;
                let mut command: Vec<OsString> = words(&tool).into_iter().map(OsString::from).collect();
                command.extend(["run".into(), file.clone().into()]);
                (command, file)
            }
            Side::Wasm2c => {
                let file = wasm::translated(place, sources, program)?;
                (vec![file.clone().into()], file)
            }
            Side::Wasmtime => wasm::compiled(place, sources, program)?,
        };
        Ok(Built { side: self, command, code })
    }
}

/// Clang with the library of the native side, everything in one file.
pub fn native(place: &Place) -> Result<Compiler> {
    let library = libc::native(place)?;
    let file = |name: &str| library.join("lib").join(name).display().to_string();
    let runtime = words(&format!("{CLANG} --rtlib=compiler-rt -print-libgcc-file-name"));
    let runtime = compile::run(&mut compile::command(&runtime))?.trim().to_string();
    ensure!(PathBuf::from(&runtime).exists(), "{runtime} is missing (Debian: libclang-rt-19-dev)");
    let mut link = words(&format!("{CLANG} --target={MUSL} -static -nostdlib -fuse-ld=lld"));
    link.push(file("crt1.o"));
    Ok(Compiler {
        compile: words(&format!(
            "{CLANG} --target={MUSL} -O2 -nostdlibinc -isystem {}",
            library.join("include").display()
        )),
        link,
        libraries: vec![file("libc.a"), runtime],
        made_from: vec![],
    })
}

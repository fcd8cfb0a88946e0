//! `pebble sfi rustc`: a crate (no_std, panic=abort) to a confined object, by way of `rustc --emit asm`.
//!
//! Code of precompiled crates that is not inlined (generic code is) would stay outside: such functions show up as imports
//! of the module. Building `core` itself with this command avoids that.

use crate::arguments;
use crate::cc::{self, Error};
use pebble_sfi_rewrite::{Level, Options, rewrite};
use std::path::PathBuf;
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

pub fn run(args: &[String]) -> Result<(), Error> {
    let mut options = Options::new(Level::Full);
    let (mut output, mut rest) = (None, Vec::new());
    let mut it = args.iter();
    while let Some(a) = it.next() {
        match a.as_str() {
            "-o" => output = Some(PathBuf::from(it.next().ok_or_else(|| Error::Argument(a.clone()))?)),
            _ if a.starts_with("-fpbl-level=") => {
                options.level = arguments::level(&a[12..]).ok_or_else(|| Error::Argument(a.clone()))?;
            }
            _ => rest.push(a.clone()),
        }
    }
    let output = output.ok_or_else(|| Error::Argument("-o".into()))?;
    let scratch = cc::Scratch::new()?;
    let raw = scratch.0.join("crate.s");
    let rustc = std::env::var_os("PEBBLE_RUSTC").unwrap_or_else(|| "rustc".into());
    cc::run(Command::new(rustc).args(&rest).args(NEEDED).arg(format!("--emit=asm={}", raw.display())))?;
    let text = std::fs::read_to_string(&raw).map_err(|e| Error::Io(raw.clone(), e))?;
    let name = rest.iter().find(|a| a.ends_with(".rs")).map_or("crate", String::as_str);
    let confined = rewrite(&text, &format!("{name} (assembly)"), &options).map_err(Error::Rewrite)?;
    let ready = scratch.0.join("crate.pbl.s");
    std::fs::write(&ready, confined).map_err(|e| Error::Io(ready.clone(), e))?;
    cc::run(Command::new("clang-19").args(["-c", "-x", "assembler"]).arg(&ready).arg("-o").arg(&output))
}

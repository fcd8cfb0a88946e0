//! Wasmtime as the bench runs it: modules are compiled beforehand, and get arguments and standard output, nothing else.
//!
//! `compile IN OUT`, `run FILE ARGUMENTS`, `calls FILE`: a typed call's and an instance's cost, as lines `NAME NANOSECONDS`.
#![deny(unsafe_code)]

mod calls;
mod wasi;

use std::env;
use std::fs;
use std::process::ExitCode;

use wasmtime::error::Context;
use wasmtime::{Config, Engine, Error, Linker, Module, OptLevel, Result, Store};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match act(&arguments.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(status) => status,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Cranelift's best: optimised for speed, guard pages instead of bounds checks, SIMD.
fn engine() -> Result<Engine> {
    let mut config = Config::new();
    config.cranelift_opt_level(OptLevel::Speed).wasm_simd(true).wasm_bulk_memory(true);
    Engine::new(&config)
}

fn act(arguments: &[&str]) -> Result<ExitCode> {
    match arguments {
        ["compile", from, to] => {
            let bytes = fs::read(from).with_context(|| from.to_string())?;
            fs::write(to, engine()?.precompile_module(&bytes)?).with_context(|| to.to_string())?;
            Ok(ExitCode::SUCCESS)
        }
        ["run", file, rest @ ..] => run(file, rest),
        ["calls", file] => calls::measure(&engine()?, &fs::read(file)?).map(|()| ExitCode::SUCCESS),
        _ => Err(Error::msg("usage: compile IN OUT | run FILE ARGUMENTS | calls FILE")),
    }
}

fn run(file: &str, arguments: &[&str]) -> Result<ExitCode> {
    let engine = engine()?;
    let module = load(&engine, file)?;
    let mut linker = Linker::new(&engine);
    wasi::define(&mut linker)?;
    let arguments = [file].iter().chain(arguments).map(|a| a.to_string()).collect();
    let mut store = Store::new(&engine, wasi::Host::new(arguments));
    let instance = linker.instantiate(&mut store, &module)?;
    let result = instance.get_typed_func::<(), ()>(&mut store, "_start")?.call(&mut store, ());
    match (result, store.data().status) {
        (Ok(()), _) => Ok(ExitCode::SUCCESS),
        (Err(_), Some(status)) => Ok(ExitCode::from(status as u8)),
        (Err(error), None) => Err(error),
    }
}

/// A module that `compile` has made.
#[expect(unsafe_code)]
fn load(engine: &Engine, file: &str) -> Result<Module> {
    // SAFETY: the file is our own `compile`'s output, in a directory that only the bench writes.
    let module = unsafe { Module::deserialize_file(engine, file) };
    module.with_context(|| file.to_string())
}

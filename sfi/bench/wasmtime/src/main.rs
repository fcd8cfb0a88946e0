//! Wasmtime as the bench runs it: modules get arguments and standard output, nothing else. They are compiled
//! when they are first run, and kept in Wasmtime's own cache.
//!
//! `run CACHE FILE ARGUMENTS`; `calls FILE`: what calls and instances cost, as lines `NAME SAMPLE SAMPLE
//! ...`, in nanoseconds.
#![forbid(unsafe_code)]

mod calls;
mod wasi;

use std::env;
use std::fs;
use std::process::ExitCode;

use wasmtime::error::Context;
use wasmtime::{Cache, CacheConfig, Config, Engine, Error, Linker, Module, OptLevel, Result, Store};

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
fn engine(cache: Option<&str>) -> Result<Engine> {
    let mut config = Config::new();
    config.cranelift_opt_level(OptLevel::Speed).wasm_simd(true).wasm_bulk_memory(true);
    if let Some(directory) = cache {
        let mut place = CacheConfig::new();
        place.with_directory(directory);
        config.cache(Some(Cache::new(place)?));
    }
    Engine::new(&config)
}

fn act(arguments: &[&str]) -> Result<ExitCode> {
    match arguments {
        ["run", cache, file, rest @ ..] => run(cache, file, rest),
        ["calls", file] => calls::measure(&engine(None)?, &fs::read(file)?).map(|()| ExitCode::SUCCESS),
        _ => Err(Error::msg("usage: run CACHE FILE ARGUMENTS | calls FILE")),
    }
}

fn run(cache: &str, file: &str, arguments: &[&str]) -> Result<ExitCode> {
    let engine = engine(Some(cache))?;
    let module = Module::from_file(&engine, file).with_context(|| file.to_string())?;
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

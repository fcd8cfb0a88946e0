//! What it costs to cross a boundary, to verify and to make an instance: measured by the runtime's and the verifier's own
//! examples, and for Wasmtime by its runner, which print lines `NAME  FIGURE UNIT`. What they do not print has no row.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::compile;
use crate::manifest::HOME;
use crate::paper;
use crate::place::Place;
use crate::row::Row;
use crate::side::Side;
use crate::wasm;

/// Figures by name, in the unit of their line.
type Figures = BTreeMap<String, f64>;

/// Rows and the name under which the runtime's example prints them.
const CALLS: &[(&str, &str)] = &[
    ("sfi.call.sm", "sm, no words, no result"),
    ("sfi.call.sm.0", "sm, 0 words"),
    ("sfi.call.sm.6", "sm, 6 words"),
    ("sfi.call.sp", "sp"),
    ("sfi.call.sf", "sf"),
    ("sfi.call.nm", "nm"),
    ("sfi.call.np", "np"),
    ("sfi.call.nf", "nf"),
    ("sfi.call.fp", "fp"),
    ("sfi.call.back", "sm, callback (with the call in)"),
    ("sfi.call.across", "sm, to another domain (with the call in)"),
    ("sfi.call.c", "C call through a pointer, no words"),
    ("sfi.call.futex", "futex hand-off round trip, same core"),
    ("sfi.call.pipe", "pipe round trip, same core"),
];

/// What could be measured, and why the rest could not.
pub fn measure(place: &Place) -> (Vec<Row>, Vec<String>) {
    let mut missing = Vec::new();
    let mut figures = |what: &str, result: Result<Figures>| {
        result.unwrap_or_else(|error| {
            missing.push(format!("{what}: {}", format!("{error:#}").lines().next().unwrap_or_default()));
            Figures::new()
        })
    };
    let runtime =
        figures("crossings", example(place, "pebble-sfi-runtime", "crossing", &[]).map(|said| parse(&said)));
    let wasmtime = figures("Wasmtime's calls", wasmtime(place));
    let mut rows = rows(&runtime, &wasmtime);
    match rates(place) {
        Ok(rates) => rows.push(Row::of("sfi.verify.mb_s", "MB/s", &rates)),
        Err(error) => missing.push(format!("verification: {error:#}")),
    }
    (rows, missing)
}

fn rows(runtime: &Figures, wasmtime: &Figures) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |id: &str, unit: &str, value: Option<f64>, paper: Option<f64>| {
        rows.extend(value.map(|value| Row::of(id, unit, &[value]).paper(paper)));
    };
    let [sm, np, fp, c, pipe] = paper::MIPS_CROSSING.map(|us| us * 1000.0);
    for (id, name) in CALLS {
        let paper = match *id {
            "sfi.call.sm" => Some(sm),
            "sfi.call.np" => Some(np),
            "sfi.call.fp" => Some(fp),
            "sfi.call.c" => Some(c),
            "sfi.call.pipe" => Some(pipe),
            _ => None,
        };
        add(id, "ns", runtime.get(*name).copied(), paper);
    }
    for (id, name) in [("null", "null"), ("back", "back"), ("6", "six")] {
        add(&format!("sfi.call.wasmtime.{id}"), "ns", wasmtime.get(name).copied(), None);
    }
    let ours = runtime.get("sm, no words, no result").or(runtime.get("sm, 0 words")).copied();
    let ratio = |a: Option<f64>, b: Option<f64>| Some(a? / b?);
    let get = |name: &str| runtime.get(name).copied();
    add(
        "sfi.call.sm.vs_c",
        "times a C call",
        ratio(ours, get("C call through a pointer, no words")),
        Some(11.1),
    );
    add("sfi.call.sm.vs_pipe", "times cheaper", ratio(get("pipe round trip, same core"), ours), Some(184.4));
    add("sfi.call.sm.vs_wasmtime", "times cheaper", ratio(wasmtime.get("null").copied(), ours), None);
    add("sfi.instance.us", "us", get("instance made"), None);
    rows
}

/// Runs an example of a crate of the workspace, optimised.
fn example(place: &Place, package: &str, name: &str, arguments: &[PathBuf]) -> Result<String> {
    let mut command = Command::new(&place.cargo);
    command.current_dir(&place.root).args(["run", "--quiet", "--release", "-p", package, "--example", name]);
    command.env("RUSTC", &place.rustc).env("CARGO_TARGET_DIR", place.target.join("examples"));
    command.env("CARGO_PROFILE_RELEASE_PANIC", "unwind");
    command.arg("--").args(arguments);
    compile::run(command.env_remove("RUSTFLAGS").env_remove("CARGO_BUILD_TARGET"))
}

/// Megabytes of code a second that the verifier takes, for every module that has been built for the `full` side.
fn rates(place: &Place) -> Result<Vec<f64>> {
    let programs = fs::read_dir(place.target.join(Side::Full.name())).into_iter().flatten().flatten();
    let module = |entry: fs::DirEntry| entry.path().join(entry.file_name());
    let modules: Vec<PathBuf> = programs.map(module).filter(|path| path.exists()).collect();
    ensure!(!modules.is_empty(), "there is no module");
    let said = example(place, "pebble-sfi-verify", "rate", &modules)?;
    let rate = |line: &str| line.split_once(" MB/s")?.0.rsplit(' ').next()?.parse().ok();
    let rates: Vec<f64> = said.lines().filter_map(rate).collect();
    ensure!(!rates.is_empty(), "the verifier has accepted no module");
    Ok(rates)
}

fn wasmtime(place: &Place) -> Result<Figures> {
    let wasmtime = wasm::wasmtime(place)?;
    let module = place.target.join("calls.wasm");
    let text = place.root.join(HOME).join("wasm/calls.wat");
    compile::run(Command::new("wat2wasm").arg(text).arg("-o").arg(&module))?;
    Ok(parse(&compile::run(Command::new(wasmtime).arg("calls").arg(module))?))
}

/// Lines `NAME  FIGURE UNIT ...`: the name ends at two spaces, or at the only one.
fn parse(said: &str) -> Figures {
    let figure = |line: &str| {
        let (name, rest) = line.split_once("  ").or_else(|| line.split_once(' '))?;
        Some((name.trim().to_string(), rest.split_whitespace().next()?.parse().ok()?))
    };
    said.lines().filter_map(figure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_printed_has_a_row() {
        let runtime = parse(
            "sm, no words, no result          4.00 ns     2.00 x\nC call through a pointer, no words  2.00 ns\n\
             pipe round trip, same core    2000.0 ns\nnonsense\n",
        );
        let rows = rows(&runtime, &parse("null 12.5\n"));
        let of = |id: &str| rows.iter().find(|row| row.id == id).map(|row| row.p50);
        assert_eq!((of("sfi.call.sm"), of("sfi.call.sm.vs_c")), (Some(4.0), Some(2.0)));
        assert_eq!((of("sfi.call.sm.vs_pipe"), of("sfi.call.sm.vs_wasmtime")), (Some(500.0), Some(3.125)));
        assert_eq!((of("sfi.instance.us"), of("sfi.call.np")), (None, None));
    }
}

//! What it costs to cross a boundary, to verify and to make an instance: measured by the runtime's and the
//! verifier's own examples, and for the peers by their hosts, which print lines `NAME SAMPLE SAMPLE ...`.
//! What they do not print has no row.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, ensure};
use pebble_rows::{Row, median};

use crate::compile;
use crate::paper;
use crate::place::Place;
use crate::side::Side;
use crate::wasm;

/// Samples by name.
type Samples = BTreeMap<String, Vec<f64>>;

/// Rows and the name that their samples have. `sf` and `nf` save floating point too, as the paper's third
/// column.
const NAMED: [(&str, &str); 11] = [
    ("sfi.call.sm", "null"),
    ("sfi.call.np", "in.np.0"),
    ("sfi.call.fp", "in.nf.0"),
    ("sfi.call.c", "c"),
    ("sfi.call.pipe", "pipe"),
    ("sfi.call.futex", "futex"),
    ("sfi.call.wasmtime.null", "wasmtime.null"),
    ("sfi.call.wasmtime.6", "wasmtime.6"),
    ("sfi.call.wasmtime.back", "wasmtime.back"),
    ("sfi.call.wasm2c.null", "wasm2c.null"),
    ("sfi.call.wasm2c.6", "wasm2c.6"),
];

/// Ratios to the null call, which is `sm`: what is divided by what.
const RATIOS: [(&str, &str, &str, &str, Option<f64>); 4] = [
    ("sfi.call.sm.vs_c", "times a C call", "null", "c", Some(11.1)),
    ("sfi.call.sm.vs_pipe", "times cheaper", "pipe", "null", Some(184.4)),
    ("sfi.call.sm.vs_wasmtime", "times cheaper", "wasmtime.null", "null", None),
    ("sfi.call.sm.vs_wasm2c", "times a wasm2c call", "null", "wasm2c.null", None),
];

/// Microseconds, and what a sample is multiplied by.
const INSTANCES: [(&str, &str, f64); 6] = [
    ("sfi.instance.us", "instance", 1.0),
    ("sfi.instance.called.us", "instance.called", 1.0),
    ("sfi.instance.attached.us", "instance.attached", 1.0),
    ("sfi.instance.destroyed.us", "instance.destroyed", 1.0),
    ("sfi.instance.wasmtime.us", "wasmtime.instance", 1e-3),
    ("sfi.instance.wasm2c.us", "wasm2c.instance", 1e-3),
];

/// What could be measured of calls and instances, and why the rest could not.
pub fn calls(place: &Place) -> (Vec<Row>, Vec<String>) {
    let (mut samples, mut missing) = (Samples::new(), Vec::new());
    let host = |made: Result<PathBuf>| compile::run(&mut Command::new(made?));
    let wasmtime =
        || compile::run(Command::new(wasm::wasmtime(place)?).arg("calls").arg(wasm::calls(place)?));
    for (what, said) in [
        ("crossings", example(place, "pebble-sfi-runtime", "crossing", &[])),
        ("wasm2c's calls", host(wasm::translated_calls(place))),
        ("Wasmtime's calls", wasmtime()),
    ] {
        match said {
            Ok(said) => samples.extend(parse(&said)),
            Err(error) => {
                missing.push(format!("{what}: {}", format!("{error:#}").lines().next().unwrap_or_default()));
            }
        }
    }
    (rows(&samples), missing)
}

/// How fast the verifier is.
pub fn verification(place: &Place) -> (Vec<Row>, Vec<String>) {
    match rates(place) {
        Ok(rates) => (vec![Row::of("sfi.verify.mb_s", "MB/s", &rates)], Vec::new()),
        Err(error) => (Vec::new(), vec![format!("verification: {error:#}")]),
    }
}

fn rows(samples: &Samples) -> Vec<Row> {
    let of = |name: &str| samples.get(name).filter(|samples| !samples.is_empty());
    let [sm, np, fp, c, pipe] = paper::DEC5000_CROSSING.map(|us| us * 1000.0);
    let papers = [
        ("sfi.call.sm", sm),
        ("sfi.call.np", np),
        ("sfi.call.fp", fp),
        ("sfi.call.c", c),
        ("sfi.call.pipe", pipe),
    ];
    let mut rows = Vec::new();
    for (id, name) in NAMED {
        let paper = papers.iter().find(|(named, _)| *named == id).map(|(_, ns)| *ns);
        rows.extend(of(name).map(|samples| Row::of(id, "ns", samples).paper(paper)));
    }
    for (id, unit, a, b, paper) in RATIOS {
        let ratio = of(a).zip(of(b)).map(|(a, b)| median(a) / median(b));
        rows.extend(ratio.map(|ratio| Row::of(id, unit, &[ratio]).paper(paper)));
    }
    for way in ["in", "out", "across", "full.in", "full.out", "full.across"] {
        let own = samples
            .iter()
            .filter(|(name, _)| name.strip_prefix(way).is_some_and(|rest| rest.starts_with('.')));
        rows.extend(own.map(|(name, samples)| Row::of(format!("sfi.call.{name}"), "ns", samples)));
    }
    for (id, name, factor) in INSTANCES {
        let scaled = |samples: &Vec<f64>| samples.iter().map(|sample| sample * factor).collect::<Vec<_>>();
        rows.extend(of(name).map(|samples| Row::of(id, "us", &scaled(samples))));
    }
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

/// Megabytes of code a second that the verifier takes, for every module that has been built for the `full`
/// side.
fn rates(place: &Place) -> Result<Vec<f64>> {
    let programs = fs::read_dir(place.target.join(Side::Full.name())).into_iter().flatten().flatten();
    let module = |entry: fs::DirEntry| entry.path().join(entry.file_name());
    let modules: Vec<PathBuf> = programs.map(module).filter(|path| path.exists()).collect();
    ensure!(!modules.is_empty(), "no program has been built at `full` yet");
    let said = example(place, "pebble-sfi-verify", "rate", &modules)?;
    let rate = |line: &str| line.split_once(" MB/s")?.0.rsplit(' ').next()?.parse().ok();
    let rates: Vec<f64> = said.lines().filter_map(rate).collect();
    ensure!(!rates.is_empty(), "the verifier has accepted no module");
    Ok(rates)
}

/// Lines `NAME SAMPLE SAMPLE ...`; others are none.
fn parse(said: &str) -> Samples {
    let line = |line: &str| {
        let (name, rest) = line.split_once(' ')?;
        let samples: Option<Vec<f64>> = rest.split_whitespace().map(|word| word.parse().ok()).collect();
        Some((name.to_string(), samples.filter(|samples| !samples.is_empty())?))
    };
    said.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_printed_has_a_row() {
        let samples = parse(
            "null 4.00 3.0 99.0\nc 2.00\npipe 2000.0 1999 2001\nin.sm.6 5\nwasmtime.null 12.5\n\
             wasmtime.instance 3000\nfutex x\nnonsense\n",
        );
        let rows = rows(&samples);
        let of = |id: &str| rows.iter().find(|row| row.id == id).map(|row| row.p50);
        assert_eq!((of("sfi.call.sm"), of("sfi.call.sm.vs_c")), (Some(4.0), Some(2.0)));
        assert_eq!((of("sfi.call.sm.vs_pipe"), of("sfi.call.sm.vs_wasmtime")), (Some(500.0), Some(3.125)));
        assert_eq!((of("sfi.call.in.sm.6"), of("sfi.instance.wasmtime.us")), (Some(5.0), Some(3.0)));
        assert_eq!((of("sfi.instance.us"), of("sfi.call.np"), of("sfi.call.futex")), (None, None, None));
        assert_eq!(rows[0].max, 99.0);
    }
}

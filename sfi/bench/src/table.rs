//! The paper's Tables 1 and 2 with our figures beside its.

use std::fmt::Write;

use crate::measure;
use crate::paper;
use crate::report::Result;
use crate::row::{Row, geometric_mean, median, percent, spread};
use crate::side::Side;

const SIDES: [Side; 4] = [Side::Write, Side::Full, Side::Wasm2c, Side::Wasmtime];
const WIDTH: usize = 12;

/// `+4.3`, or a dash.
fn shown(value: Option<f64>) -> String {
    value.map_or("-".into(), |value| format!("{value:+.1}"))
}

/// Table 1: a line for each program, overheads in percent of native time.
pub fn overheads(results: &[Result], repetitions: u32) -> String {
    let mut out = format!(
        "Overhead in percent of native time: median of {repetitions} ratios ±half the distance of the quartiles\n\n\
         {:10} {:4}",
        "program", ""
    );
    for side in SIDES {
        let _ = write!(out, " {:>WIDTH$}", side.name());
    }
    let _ = writeln!(
        out,
        "   {:>7} {:>7}   {:>7} {:>7}   {:>13} {:>6} {:>6} {:>6} {:>6}",
        "instr.w", "instr.f", "code w", "code f", "the paper's", "MIPS w", "f", "Alph w", "f"
    );
    for result in results {
        let _ = write!(out, "{:10} {:4}", result.program.name, result.program.kind.name());
        for side in SIDES {
            let ratios: Vec<f64> = result.times.ratios(side).into_iter().map(percent).collect();
            let cell = match ratios.is_empty() {
                true => "-".into(),
                false => format!("{:+.1} ±{:.1}", median(&ratios), spread(&ratios)),
            };
            let _ = write!(out, " {cell:>WIDTH$}");
        }
        let instructions =
            [Side::Write, Side::Full].map(|side| shown(result.instructions(side).map(percent)));
        let code = [Side::Write, Side::Full].map(|side| shown(result.growth(side).map(percent)));
        let line = result.program.paper.as_deref().and_then(paper::find);
        let alpha = line.and_then(|line| line.alpha);
        let _ = writeln!(
            out,
            "   {:>7} {:>7}   {:>7} {:>7}   {:>13} {:>6} {:>6} {:>6} {:>6}",
            instructions[0],
            instructions[1],
            code[0],
            code[1],
            line.map_or("", |line| line.name),
            shown(line.map(|line| line.mips[0])),
            shown(line.map(|line| line.mips[1])),
            shown(alpha.map(|alpha| alpha[0])),
            shown(alpha.map(|alpha| alpha[1])),
        );
    }
    let times: Vec<_> = results.iter().map(|r| &r.times).collect();
    let _ = write!(out, "{:15}", "geometric mean");
    for side in SIDES {
        let cell = measure::mean(&times, side).map_or("-".into(), |mean| {
            let repetitions: Vec<f64> = mean.repetitions.iter().map(|r| percent(*r)).collect();
            format!("{:+.1} ±{:.1}", percent(mean.of_medians), spread(&repetitions))
        });
        let _ = write!(out, " {cell:>WIDTH$}");
    }
    let total = |of: &dyn Fn(&Result) -> Option<f64>| {
        let all: Vec<f64> = results.iter().filter_map(of).collect();
        shown((!all.is_empty()).then(|| percent(geometric_mean(&all))))
    };
    let _ = writeln!(
        out,
        "   {:>7} {:>7}   {:>7} {:>7}   {:>13} {:>6} {:>6} {:>6} {:>6}",
        total(&|r| r.instructions(Side::Write)),
        total(&|r| r.instructions(Side::Full)),
        total(&|r| r.growth(Side::Write)),
        total(&|r| r.growth(Side::Full)),
        "average",
        shown(Some(paper::AVERAGE[0])),
        shown(Some(paper::AVERAGE[1])),
        shown(Some(paper::AVERAGE_ALPHA[0])),
        shown(Some(paper::AVERAGE_ALPHA[1])),
    );
    for side in SIDES {
        let least: Vec<f64> = results.iter().filter_map(|r| r.times.least(side)).collect();
        if !least.is_empty() {
            let mean = percent(geometric_mean(&least));
            let _ =
                writeln!(out, "{:>15}: geometric mean of the quickest runs' ratios {mean:+.1}", side.name());
        }
    }
    out
}

/// Table 2 with a line of ours, then every row.
pub fn crossings(rows: &[Row]) -> String {
    let mut out = format!(
        "{:12} {:>12} {:>12} {:>12} {:>12} {:>12}   microseconds\n",
        "crossing", "caller saves", "integer", "and float", "C call", "pipe"
    );
    let ours = ["sfi.call.sm", "sfi.call.np", "sfi.call.nf", "sfi.call.c", "sfi.call.pipe"];
    let ours = ours.map(|id| rows.iter().find(|row| row.id == id).map(|row| row.p50 / 1000.0));
    let lines = [
        ("DEC-MIPS", paper::MIPS_CROSSING.map(Some)),
        ("DEC-ALPHA", paper::ALPHA_CROSSING.map(Some)),
        ("ours", ours),
    ];
    for (name, figures) in lines {
        let _ = write!(out, "{name:12}");
        for figure in figures {
            let _ = write!(out, " {:>12}", figure.map_or("-".into(), |us| format!("{us:.4}")));
        }
        out.push('\n');
    }
    out.push('\n');
    for row in rows {
        let _ = writeln!(out, "{:28} {:>10.2} {}", row.id, row.p50, row.unit);
    }
    out
}

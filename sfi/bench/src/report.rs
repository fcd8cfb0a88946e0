//! All that was measured, as rows.

use crate::manifest::Program;
use crate::measure::{self, Times};
use crate::paper;
use crate::side::Side;
use pebble_rows::{Row, geometric_mean, percent};

/// What was measured of a program.
pub struct Result {
    pub program: Program,
    pub times: Times,
    /// Bytes of code by side, and instructions of a round by side.
    pub code: Vec<(Side, u64)>,
    pub instructions: Vec<(Side, u64)>,
}

/// A figure of a side relative to native's, if there are both.
fn ratio(figures: &[(Side, u64)], side: Side) -> Option<f64> {
    let of = |side: Side| figures.iter().find(|(s, _)| *s == side).map(|(_, n)| *n as f64);
    Some(of(side)? / of(Side::Native)?)
}

impl Result {
    /// Code relative to native's.
    pub fn growth(&self, side: Side) -> Option<f64> {
        ratio(&self.code, side)
    }

    /// Instructions relative to native's.
    pub fn instructions(&self, side: Side) -> Option<f64> {
        ratio(&self.instructions, side)
    }

    /// The paper's overhead of the program that this is like.
    pub fn paper(&self, side: Side) -> Option<f64> {
        let line = paper::find(self.program.paper.as_deref()?)?;
        match side {
            Side::Write => Some(line.dec5000[0]),
            Side::Full => Some(line.dec5000[1]),
            _ => None,
        }
    }
}

/// What a side's rows begin with.
fn stem(side: Side) -> String {
    let peer = if side.confined() { "overhead" } else { "peer" };
    format!("sfi.{peer}.{}", side.name())
}

pub fn rows(results: &[Result]) -> Vec<Row> {
    let mut rows = Vec::new();
    for side in [Side::Write, Side::Full, Side::Wasm2c, Side::Wasmtime] {
        let times: Vec<&Times> = results.iter().map(|r| &r.times).collect();
        if let Some(mean) = measure::mean(&times, side) {
            let repetitions: Vec<f64> = mean.repetitions.iter().map(|r| percent(*r)).collect();
            let average = match side {
                Side::Write => Some(paper::AVERAGE[0]),
                Side::Full => Some(paper::AVERAGE[1]),
                _ => None,
            };
            let row = Row::of(stem(side), "percent", &repetitions).paper(average);
            // The headline is the mean of the programs' medians; the others are of whole repetitions.
            rows.push(Row { mean: percent(mean.of_medians), p50: percent(mean.of_medians), ..row });
        }
        for result in results {
            let ratios: Vec<f64> = result.times.ratios(side).into_iter().map(percent).collect();
            if !ratios.is_empty() {
                let id = format!("{}.{}", stem(side), result.program.name);
                rows.push(Row::of(id, "percent", &ratios).paper(result.paper(side)));
            }
        }
        totals(&mut rows, "growth", side, results, Result::growth, None);
        let added = if side == Side::Write { Some(paper::AVERAGE[2]) } else { None };
        totals(&mut rows, "instructions", side, results, Result::instructions, added);
    }
    rows
}

/// Rows of a figure that does not vary: each program's, and the geometric mean.
fn totals(
    rows: &mut Vec<Row>,
    what: &str,
    side: Side,
    results: &[Result],
    of: impl Fn(&Result, Side) -> Option<f64>,
    paper: Option<f64>,
) {
    let all: Vec<(&str, f64)> =
        results.iter().filter_map(|r| Some((r.program.name.as_str(), of(r, side)?))).collect();
    if !side.confined() || all.is_empty() {
        return;
    }
    let id = format!("sfi.{what}.{}", side.name());
    let mean = geometric_mean(&all.iter().map(|(_, ratio)| *ratio).collect::<Vec<_>>());
    rows.push(Row::of(&id, "percent", &[percent(mean)]).paper(paper));
    rows.extend(
        all.iter().map(|(name, ratio)| Row::of(format!("{id}.{name}"), "percent", &[percent(*ratio)])),
    );
}

//! The paper's Tables 1 and 2 with our figures beside its.

use std::fmt::Write;

use crate::measure;
use crate::paper;
use crate::report::Result;
use crate::side::Side;
use pebble_rows::{Row, geometric_mean, median, percent, spread};

const SIDES: [Side; 4] = [Side::Write, Side::Full, Side::Wasm2c, Side::Wasmtime];
const WIDTH: usize = 12;

/// `+4.3`, or a dash.
fn shown(value: Option<f64>) -> String {
    value.map_or("-".into(), |value| format!("{value:+.1}"))
}

/// Table 1: a line for each program, overheads in percent of native time.
pub fn overheads(results: &[Result], repetitions: u32) -> String {
    let mut out = format!(
        "Overhead in percent of native time: median of {repetitions} ratios ±half the distance of the \
         quartiles\n\n\
         {:10} {:4}",
        "program", ""
    );
    for side in SIDES {
        let _ = write!(out, " {:>WIDTH$}", side.name());
    }
    let _ = writeln!(
        out,
        "   {:>7} {:>7}   {:>7} {:>7}   {:>13} {:>6} {:>6} {:>6} {:>6}",
        "instr.w", "instr.f", "code w", "code f", "the paper's", "5000 w", "f", "Alph w", "f"
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
            shown(line.map(|line| line.dec5000[0])),
            shown(line.map(|line| line.dec5000[1])),
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

/// The figure of a row, if it was measured.
fn figure(rows: &[Row], id: &str) -> Option<f64> {
    rows.iter().find(|row| row.id == id).map(|row| row.p50)
}

/// Table 2 with lines of ours; calls by way, specification and number of words; then every other row. Empty
/// without such rows.
pub fn crossings(rows: &[Row]) -> String {
    let mut out = String::new();
    if figure(rows, "sfi.call.sm").is_some() {
        out += &table_2(rows);
        out += &by_words(rows);
    }
    let alone = |row: &&Row| {
        let group = row.id.split('.').nth(1).unwrap_or_default();
        let cell = ["in", "out", "across", "full"].contains(&row.id.split('.').nth(2).unwrap_or_default());
        matches!(group, "call" | "instance" | "verify") && !cell
    };
    for row in rows.iter().filter(alone) {
        let paper = row.paper.map_or(String::new(), |paper| format!("   (1993: {paper:.1})"));
        let Row { id, min, p50, p99, unit, .. } = row;
        let _ = writeln!(out, "{id:28} {p50:>10.2} {unit:16} least {min:>9.2}, 99 % {p99:>9.2}{paper}");
    }
    out
}

fn table_2(rows: &[Row]) -> String {
    let mut out = format!(
        "\n{:12} {:>12} {:>12} {:>12} {:>12} {:>12}   microseconds\n",
        "crossing", "caller saves", "integer", "and float", "C call", "pipe"
    );
    let ours = |ids: [&str; 5]| ids.map(|id| figure(rows, id).map(|ns| ns / 1000.0));
    let full = [
        "sfi.call.full.in.sm.0",
        "sfi.call.full.in.np.0",
        "sfi.call.full.in.nf.0",
        "sfi.call.c",
        "sfi.call.pipe",
    ];
    let lines = [
        ("DEC 5000", paper::DEC5000_CROSSING.map(Some)),
        ("DEC-ALPHA", paper::ALPHA_CROSSING.map(Some)),
        ("ours, write", ours(["sfi.call.sm", "sfi.call.np", "sfi.call.fp", "sfi.call.c", "sfi.call.pipe"])),
        ("ours, full", ours(full)),
    ];
    for (name, figures) in lines {
        let _ = write!(out, "{name:12}");
        for figure in figures {
            let _ = write!(out, " {:>12}", figure.map_or("-".into(), |us| format!("{us:.4}")));
        }
        out.push('\n');
    }
    out
}

/// Nanoseconds of calls with 0 to 6 words.
fn by_words(rows: &[Row]) -> String {
    let mut out = format!("\n{:18}", "ns, by words");
    (0..=6).for_each(|words| out += &format!(" {words:>7}"));
    out.push('\n');
    for level in ["", "full."] {
        for way in ["in", "out", "across"] {
            for spec in ["sm", "sf", "np", "nf"] {
                let cells: Vec<Option<f64>> = (0..=6)
                    .map(|words| figure(rows, &format!("sfi.call.{level}{way}.{spec}.{words}")))
                    .collect();
                if cells.iter().all(Option::is_none) {
                    continue;
                }
                let _ = write!(out, "{:18}", format!("{level}{way} {spec}"));
                for cell in cells {
                    let _ = write!(out, " {:>7}", cell.map_or("-".into(), |ns| format!("{ns:.2}")));
                }
                out.push('\n');
            }
        }
    }
    out.push('\n');
    out
}

/// Figures 5 to 7 as tables: how cheap crossing must be, relative to another mechanism, for fault domains to
/// win at a share of time spent crossing; and that share by the number of crossings.
pub fn break_even(rows: &[Row]) -> String {
    const SHARES: [f64; 7] = [2.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0];
    let mut out = String::new();
    let overheads = [
        ("1993, write", Some(paper::AVERAGE[0])),
        ("ours, write", figure(rows, "sfi.overhead.write")),
        ("ours, full", figure(rows, "sfi.overhead.full")),
    ];
    if overheads[1].1.is_some() {
        for (number, what, half) in
            [(5, "all other time confined", false), (6, "half of all time confined", true)]
        {
            let _ = write!(
                out,
                "\nFigure {number}, {what}: crossing may cost, % of the other mechanism's\n{:22}",
                "% of time crossing"
            );
            SHARES.iter().for_each(|share| out += &format!(" {share:>7.0}"));
            out.push('\n');
            for (name, overhead) in overheads {
                let Some(h) = overhead else { continue };
                let _ = write!(out, "{:22}", format!("{name} ({h:+.1} %)"));
                for share in SHARES {
                    let confined = if half { 50.0 } else { 100.0 - share };
                    let _ = write!(out, " {:>7.1}", 100.0 - h.max(0.0) * confined / share);
                }
                out.push('\n');
            }
        }
    }
    let costs = [
        ("1993: a pipe", Some(paper::DEC5000_CROSSING[4])),
        ("1993: fault domain", Some(paper::DEC5000_CROSSING[0])),
        ("a pipe", figure(rows, "sfi.call.pipe").map(|ns| ns / 1000.0)),
        ("Wasmtime", figure(rows, "sfi.call.wasmtime.null").map(|ns| ns / 1000.0)),
        ("ours, sm", figure(rows, "sfi.call.sm").map(|ns| ns / 1000.0)),
    ];
    if costs[4].1.is_some() {
        let _ = write!(out, "\nFigure 7: % of time spent crossing\n{:22}", "crossings a ms");
        let counts = [1.0, 10.0, 100.0, 1000.0, 10_000.0, 100_000.0];
        counts.iter().for_each(|count| out += &format!(" {count:>7.0}"));
        out.push('\n');
        for (name, cost) in costs {
            let Some(us) = cost else { continue };
            let _ = write!(out, "{name:22}");
            for count in counts {
                let share = count * us / 10.0;
                let _ = write!(out, " {:>7}", if share > 100.0 { "-".into() } else { format!("{share:.3}") });
            }
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_our_figures_beside_the_papers() {
        let row = |id: &str, value: f64| Row::of(id, "ns", &[value]);
        let rows = [
            row("sfi.call.sm", 2.5),
            row("sfi.call.in.sm.6", 3.25),
            row("sfi.overhead.write", 1.0),
            row("sfi.verify.mb_s", 200.0),
        ];
        let text = crossings(&rows) + &break_even(&rows);
        let line = |begin: &str| {
            text.lines().find(|line| line.starts_with(begin)).unwrap_or_else(|| panic!("{begin}: {text}"))
        };
        assert!(line("DEC 5000").contains("1.1100") && line("ours, write").contains("0.0025"));
        assert!(line("in sm").ends_with("3.25") && line("sfi.verify").contains("200.00"));
        // The paper's example: at 10 % crossing 61.3 %, and ours with its 1 %.
        assert!(line("1993, write").contains("61.3") && text.contains("91.0"), "{text}");
        assert!(line("ours, sm").contains("0.025"));
        assert_eq!(crossings(&[]) + &break_even(&[]), "");
    }
}

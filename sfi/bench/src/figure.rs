//! The paper's Figures 5, 6 and 7 with our curves beside its, and Table 1 as bars.
//!
//! With `h` the overhead of confined code, `tc` the share of time spent crossing and `td` that in confined
//! code, a crossing may cost the share `r` of another mechanism's before that one is better: `(1 - r) tc = h
//! td`. In Figure 5 everything but crossing is confined, in Figure 6 half of all time is.

use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::prelude::*;

use crate::paper;
use crate::report;
use crate::side::Side;
use pebble_rows::{Row, median, percent};

const OURS: RGBColor = RGBColor(38, 98, 168);
const THEIRS: RGBColor = RGBColor(205, 140, 60);
const PALE: RGBColor = RGBColor(225, 225, 225);
const SIZE: (u32, u32) = (640, 420);

type Draw = std::result::Result<(), Box<dyn std::error::Error>>;

/// Writes every figure that the rows have something for; names them.
pub fn write(directory: &Path, results: &[report::Result], rows: &[Row]) -> Result<Vec<String>> {
    std::fs::create_dir_all(directory)?;
    let of = |id: &str| rows.iter().find(|row| row.id == id).map(|row| row.p50);
    let overhead = of("sfi.overhead.write").map(|p| (p / 100.0).max(0.0));
    let mut written = Vec::new();
    let mut draw = |name: &str, act: &dyn Fn(&Path) -> Draw| -> Result<()> {
        let path = directory.join(name);
        act(&path).map_err(|error| anyhow!("{}: {error}", path.display()))?;
        written.push(name.to_string());
        Ok(())
    };
    if !results.is_empty() {
        draw("table1.svg", &|path| bars(path, results))?;
    }
    let crossings = [
        ("no registers saved", "sfi.call.sm"),
        ("integer registers saved", "sfi.call.np"),
        ("floating point too", "sfi.call.fp"),
        ("C call", "sfi.call.c"),
        ("pipe", "sfi.call.pipe"),
    ];
    if of("sfi.call.sm").is_some() {
        draw("table2.svg", &|path| {
            costs(path, &crossings.map(|(name, id)| (name, of(id).map(|ns| ns / 1000.0))))
        })?;
    }
    draw("figure5.svg", &|path| break_even(path, "everything is confined", 1.0, overhead, &|tc| 1.0 - tc))?;
    draw("figure6.svg", &|path| {
        break_even(path, "half of all time in confined code", 0.5, overhead, &|_| 0.5)
    })?;
    draw("figure7.svg", &|path| {
        let ns = |id: &str| of(id).map(|ns| ns / 1000.0);
        crossing_share(path, ns("sfi.call.sm"), ns("sfi.call.pipe"), ns("sfi.call.wasmtime.null"))
    })?;
    Ok(written)
}

/// Points of a break-even curve, in percent, where it is positive.
fn curve(overhead: f64, until: f64, confined: &dyn Fn(f64) -> f64) -> Vec<(f64, f64)> {
    let steps = (1..=200).map(|i| until * f64::from(i) / 200.0);
    let points = steps.map(|tc| (tc * 100.0, (1.0 - overhead * confined(tc) / tc) * 100.0));
    points.filter(|(_, r)| *r >= 0.0).collect()
}

fn break_even(
    path: &Path,
    title: &str,
    until: f64,
    ours: Option<f64>,
    confined: &dyn Fn(f64) -> f64,
) -> Draw {
    let area = SVGBackend::new(path, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(format!("Where fault domains win: {title}"), ("sans-serif", 16))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(50)
        .build_cartesian_2d(0.0..until * 100.0, 0.0..100.0)?;
    let mut mesh = chart.configure_mesh();
    mesh.x_desc("share of time spent crossing, %").y_desc("crossing relative to the other mechanism's, %");
    mesh.light_line_style(WHITE).bold_line_style(PALE).draw()?;
    let theirs = curve(paper::AVERAGE[0] / 100.0, until, confined);
    chart
        .draw_series(LineSeries::new(theirs, THEIRS.stroke_width(2)))?
        .label("1993: h = 4.3 %")
        .legend(|(x, y)| PathElement::new([(x, y), (x + 20, y)], THEIRS));
    if let Some(h) = ours {
        chart.draw_series(AreaSeries::new(curve(h, until, confined), 0.0, OURS.mix(0.15)))?;
        chart
            .draw_series(LineSeries::new(curve(h, until, confined), OURS.stroke_width(2)))?
            .label(format!("ours: h = {:.1} %", h * 100.0))
            .legend(|(x, y)| PathElement::new([(x, y), (x + 20, y)], OURS));
    }
    let mut labels = chart.configure_series_labels();
    labels.position(SeriesLabelPosition::LowerRight).background_style(WHITE).border_style(PALE).draw()?;
    area.present()?;
    Ok(())
}

/// Figure 7: the share of time spent crossing by the number of crossings, for costs in microseconds.
fn crossing_share(path: &Path, ours: Option<f64>, pipe: Option<f64>, wasmtime: Option<f64>) -> Draw {
    let area = SVGBackend::new(path, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption("Share of time spent crossing", ("sans-serif", 16))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(50)
        .build_cartesian_2d((1.0..100_000.0).log_scale(), 0.0..100.0)?;
    let mut mesh = chart.configure_mesh();
    mesh.x_desc("crossings per millisecond").y_desc("time spent crossing, %");
    mesh.light_line_style(WHITE).bold_line_style(PALE).draw()?;
    let lines = [
        ("ours, sm", ours, OURS),
        ("ours, a pipe", pipe, OURS.mix(0.4).to_rgba().color_rgb()),
        ("Wasmtime", wasmtime, RGBColor(90, 150, 90)),
        ("1993: fault domain", Some(paper::DEC5000_CROSSING[0]), THEIRS),
        ("1993: a pipe", Some(paper::DEC5000_CROSSING[4]), RGBColor(225, 190, 140)),
    ];
    for (name, cost, colour) in lines {
        let Some(cost) = cost else { continue };
        let points = (0..=200).map(|i| 10f64.powf(f64::from(i) / 40.0));
        let points: Vec<(f64, f64)> = points.map(|n| (n, n * cost / 10.0)).filter(|p| p.1 <= 100.0).collect();
        chart
            .draw_series(LineSeries::new(points, colour.stroke_width(2)))?
            .label(format!("{name}: {cost:.3} us"))
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], colour));
    }
    let mut labels = chart.configure_series_labels();
    labels.position(SeriesLabelPosition::UpperRight).background_style(WHITE).border_style(PALE).draw()?;
    area.present()?;
    Ok(())
}

trait Opaque {
    fn color_rgb(&self) -> RGBColor;
}

impl Opaque for RGBAColor {
    /// The colour on white.
    fn color_rgb(&self) -> RGBColor {
        let on_white = |c: u8| (f64::from(c) * self.3 + 255.0 * (1.0 - self.3)) as u8;
        RGBColor(on_white(self.0), on_white(self.1), on_white(self.2))
    }
}

/// Table 2 as bars on a logarithmic scale, in microseconds.
fn costs(path: &Path, ours: &[(&str, Option<f64>); 5]) -> Draw {
    const ROW: i32 = 46;
    const LEFT: i32 = 170;
    // From a nanosecond to a millisecond.
    let length = |us: f64| ((us * 1000.0).max(1.0).log10() / 6.0 * 480.0) as i32 + 1;
    let area = SVGBackend::new(path, (760, (50 + ROW * ours.len() as i32) as u32)).into_drawing_area();
    area.fill(&WHITE)?;
    let font = ("sans-serif", 12).into_font();
    let alpha = RGBColor(225, 190, 140);
    for (i, (name, colour)) in
        [("ours", OURS), ("1993: DEC 5000", THEIRS), ("DEC-ALPHA", alpha)].into_iter().enumerate()
    {
        let x = LEFT + i as i32 * 140;
        area.draw(&Rectangle::new([(x, 10), (x + 12, 22)], colour.filled()))?;
        area.draw(&Text::new(name, (x + 18, 10), font.clone()))?;
    }
    for (i, (name, own)) in ours.iter().enumerate() {
        let y = 36 + ROW * i as i32;
        area.draw(&Text::new(name.to_string(), (10, y + 12), font.clone()))?;
        let bars = [
            (*own, OURS),
            (Some(paper::DEC5000_CROSSING[i]), THEIRS),
            (Some(paper::ALPHA_CROSSING[i]), alpha),
        ];
        for (j, (us, colour)) in bars.into_iter().enumerate() {
            let (Some(us), y) = (us, y + 13 * j as i32) else { continue };
            area.draw(&Rectangle::new([(LEFT, y), (LEFT + length(us), y + 11)], colour.filled()))?;
            area.draw(&Text::new(
                format!("{us:.4} us"),
                (LEFT + length(us) + 4, y),
                ("sans-serif", 10).into_font(),
            ))?;
        }
    }
    area.present()?;
    Ok(())
}

/// Table 1 as bars: each program on every side, and the paper's program that it is like.
fn bars(path: &Path, results: &[report::Result]) -> Draw {
    const ROW: i32 = 60;
    const LEFT: i32 = 100;
    const SIDES: [(Side, RGBColor); 4] = [
        (Side::Write, OURS),
        (Side::Full, RGBColor(110, 160, 215)),
        (Side::Wasm2c, RGBColor(90, 150, 90)),
        (Side::Wasmtime, RGBColor(165, 200, 140)),
    ];
    let size = (760, (60 + ROW * results.len() as i32) as u32);
    let area = SVGBackend::new(path, size).into_drawing_area();
    area.fill(&WHITE)?;
    let font = ("sans-serif", 12).into_font();
    for (i, (side, colour)) in SIDES.iter().enumerate() {
        let x = LEFT + i as i32 * 100;
        area.draw(&Rectangle::new([(x, 10), (x + 12, 22)], colour.filled()))?;
        area.draw(&Text::new(side.name(), (x + 18, 10), font.clone()))?;
    }
    let papers = [(0, THEIRS, "1993: write"), (1, RGBColor(225, 190, 140), "1993: full")];
    for (i, colour, name) in papers {
        let x = LEFT + (SIDES.len() as i32 + i) * 100;
        area.draw(&Rectangle::new([(x, 10), (x + 12, 22)], colour.filled()))?;
        area.draw(&Text::new(name, (x + 18, 10), font.clone()))?;
    }
    let bar = |from: (i32, i32), value: f64, colour: RGBColor| -> Draw {
        let (x, y) = from;
        let width = (value.clamp(-20.0, 110.0) * 5.0) as i32;
        let (from, to) = (x + width.min(0), x + width.max(1));
        area.draw(&Rectangle::new([(from, y), (to, y + 7)], colour.filled()))?;
        area.draw(&Text::new(format!("{value:+.1}"), (to + 4, y - 2), ("sans-serif", 9).into_font()))?;
        Ok(())
    };
    for (i, result) in results.iter().enumerate() {
        let y = 40 + ROW * i as i32;
        area.draw(&Text::new(result.program.name.clone(), (10, y + 10), font.clone()))?;
        for (j, (side, colour)) in SIDES.iter().enumerate() {
            let ratios = result.times.ratios(*side);
            if ratios.is_empty() {
                continue;
            }
            bar((LEFT, y + 8 * j as i32), percent(median(&ratios)), *colour)?;
        }
        let line = result.program.paper.as_deref().and_then(paper::find);
        for (j, colour, _) in papers.iter().filter(|_| line.is_some()) {
            let value = line.map_or(0.0, |line| line.dec5000[*j as usize]);
            bar((LEFT, y + 8 * (SIDES.len() as i32 + j)), value, *colour)?;
        }
    }
    area.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::curve;

    #[test]
    fn the_papers_examples() {
        // 30 % of the time crossing: 10 % better suffices; 10 %: 39 %.
        let at = |share: f64| {
            let points = curve(0.043, 1.0, &|tc| 1.0 - tc);
            points.iter().find(|(tc, _)| (tc - share).abs() < 0.01).unwrap().1
        };
        assert!((at(30.0) - 90.0).abs() < 0.1 && (at(10.0) - 61.3).abs() < 0.1);
    }
}

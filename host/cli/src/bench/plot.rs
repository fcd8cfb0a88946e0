//! The report as a picture: a bar for each row beside the papers' figure, on a logarithmic scale.

use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::prelude::*;

use super::Row;

const ROW_HEIGHT: i32 = 22;
const LABELS: i32 = 210;
const BARS: i32 = 620;
const MARGIN: i32 = 20;
const HEAD: i32 = 60;
const OURS: RGBColor = RGBColor(38, 98, 168);
const THEIRS: RGBColor = RGBColor(205, 140, 60);
/// The scale's end: bars are proportional to the logarithm of the count.
const LARGEST: f64 = 1e6;

pub fn write(path: &Path, rows: &[Row]) -> Result<()> {
    draw(path, rows).map_err(|error| anyhow!("{}: {error}", path.display()))
}

fn draw(path: &Path, rows: &[Row]) -> Result<(), Box<dyn std::error::Error>> {
    let height = HEAD + rows.len() as i32 * ROW_HEIGHT + MARGIN;
    let size = ((LABELS + BARS + 4 * MARGIN) as u32, height as u32);
    let area = SVGBackend::new(path, size).into_drawing_area();
    area.fill(&WHITE)?;
    let font = ("sans-serif", 13).into_font();
    let text = |text: String, x: i32, y: i32| Text::new(text, (x, y), font.clone());

    let rectangle = |colour: RGBColor, x: i32, y: i32, width: i32, height: i32| {
        Rectangle::new([(x, y), (x + width, y + height)], colour.filled())
    };
    area.draw(&rectangle(OURS, MARGIN, 14, 12, 12))?;
    area.draw(&text("Pebble, mean, guest instructions (or bytes)".into(), MARGIN + 18, 14))?;
    area.draw(&rectangle(THEIRS, MARGIN + 330, 14, 12, 12))?;
    area.draw(&text("1999 papers, cycles (or bytes)".into(), MARGIN + 348, 14))?;

    let left = LABELS + MARGIN;
    for power in 0..=6 {
        let x = left + length(10f64.powi(power));
        area.draw(&PathElement::new([(x, HEAD - 4), (x, height - MARGIN)], RGBColor(225, 225, 225)))?;
        area.draw(&text(format!("{}", 10u64.pow(power as u32)), x - 4, HEAD - 20))?;
    }
    for (i, row) in rows.iter().enumerate() {
        let y = HEAD + i as i32 * ROW_HEIGHT;
        area.draw(&text(row.id.clone(), MARGIN, y + 3))?;
        area.draw(&rectangle(OURS, left, y + 3, length(row.mean), 8))?;
        if let Some(paper) = row.paper {
            area.draw(&rectangle(THEIRS, left, y + 11, length(paper), 5))?;
        }
        let end = length(row.mean.max(row.paper.unwrap_or(0.0)));
        area.draw(&text(format!("{:.0}", row.mean), left + end + 5, y + 2))?;
    }
    area.present()?;
    Ok(())
}

fn length(value: f64) -> i32 {
    (value.max(1.0).ln() / LARGEST.ln() * f64::from(BARS)) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_in_the_picture() {
        let path = std::env::temp_dir().join(format!("pebble-plot-{}.svg", std::process::id()));
        let ours = Row::exact("boot.prompt".into(), "instructions", 900_000);
        let both = Row { paper: Some(46.0), ..Row::exact("portal.short_circuit".into(), "instructions", 17) };
        write(&path, &[ours, both]).unwrap();
        let svg = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(
            svg.contains("boot.prompt") && svg.contains("portal.short_circuit") && svg.ends_with("</svg>\n")
        );
    }
}

//! The rows of every bench, as `--json` tells them: one figure each, with its distribution and what a paper
//! says.
#![forbid(unsafe_code)]

use std::fmt;

use serde::{Deserialize, Serialize};

/// One operation's cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub id: String,
    pub unit: String,
    pub n: u64,
    pub min: f64,
    pub mean: f64,
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
    /// A paper's figure: cycles of the middle board of 1999, or bytes; for fault domains that of 1993, on its
    /// DEC 5000, in the row's unit.
    #[serde(default)]
    pub paper: Option<f64>,
}

impl Row {
    /// A figure that is known, not measured.
    pub fn exact(id: String, unit: &str, value: u64) -> Self {
        let [min, mean, p50, p99, max] = [value as f64; 5];
        Row { id, unit: unit.into(), n: 1, min, mean, p50, p99, max, paper: None }
    }

    /// How many times the other this one is, median by median, to two digits.
    pub fn ratio(&self, id: &str, other: &Row) -> Self {
        let ratio = (self.p50 / other.p50 * 100.0).round() / 100.0;
        let [min, mean, p50, p99, max] = [ratio; 5];
        Row { id: id.into(), unit: "times".into(), n: 1, min, mean, p50, p99, max, paper: None }
    }

    /// Of a figure's repetitions, of which there must be one.
    pub fn of(id: impl fmt::Display, unit: &str, samples: &[f64]) -> Self {
        let sorted = sorted(samples);
        let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share).round() as usize];
        Row {
            id: id.to_string(),
            unit: unit.into(),
            n: sorted.len() as u64,
            min: at(0.0),
            mean: sorted.iter().sum::<f64>() / sorted.len() as f64,
            p50: median(&sorted),
            p99: at(0.99),
            max: at(1.0),
            paper: None,
        }
    }

    pub fn paper(mut self, figure: Option<f64>) -> Self {
        self.paper = figure;
        self
    }
}

fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The middle of sorted or unsorted samples.
pub fn median(samples: &[f64]) -> f64 {
    let sorted = sorted(samples);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

/// Half the distance between the quartiles: how far a sample is from the median, as a rule.
pub fn spread(samples: &[f64]) -> f64 {
    let sorted = sorted(samples);
    let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share).round() as usize];
    if sorted.is_empty() { f64::NAN } else { (at(0.75) - at(0.25)) / 2.0 }
}

pub fn geometric_mean(ratios: &[f64]) -> f64 {
    (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp()
}

/// A ratio to native as a percentage of overhead.
pub fn percent(ratio: f64) -> f64 {
    (ratio - 1.0) * 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions() {
        let row = Row::of("a", "percent", &[3.0, 1.0, 2.0, 10.0]);
        assert_eq!((row.n, row.min, row.mean, row.p50, row.max), (4, 1.0, 4.0, 2.5, 10.0));
        assert_eq!(spread(&[1.0, 2.0, 3.0, 4.0, 5.0]), 1.0);
        assert!((geometric_mean(&[1.0, 4.0]) - 2.0).abs() < 1e-12);
        assert!((percent(1.043) - 4.3).abs() < 1e-9);
    }
}

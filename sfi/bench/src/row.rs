//! The rows of `--json`, of the same form as the other benches'.

use std::fmt;

use serde::Serialize;

/// One figure with its distribution over the repetitions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    pub id: String,
    pub unit: String,
    pub n: u64,
    pub min: f64,
    pub mean: f64,
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
    /// The 1993 paper's figure, on its DEC-MIPS, in the same unit.
    pub paper: Option<f64>,
}

impl Row {
    /// Of a figure's repetitions, of which there must be one.
    pub fn of(id: impl fmt::Display, unit: &str, samples: &[f64]) -> Self {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
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

/// The middle of sorted or unsorted samples.
pub fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

/// Half the distance between the quartiles: how far a sample is from the median, as a rule.
pub fn spread(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
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

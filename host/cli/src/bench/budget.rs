//! Budgets: what a row may cost at most.
//!
//! `bench/budgets.toml` has a line for each row that has a budget; for another board than the first it is
//! `bench/budgets-NAME.toml`, if there is one:
//!
//! ```toml
//! "portal.short_circuit" = 18                                  # the mean
//! "irq.idle" = { p50 = 330, p99 = 400 }
//! "file.read.4k" = { p50 = 14.1 }
//! "portal.chain.sm.8" = { of = "portal.chain.sm.2", percent = 105 }
//! ```

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::Row;
use crate::tools::Tools;

pub type Budgets = BTreeMap<String, Budget>;

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Budget {
    /// At most this on average.
    Mean(f64),
    Detailed(Limits),
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    mean: Option<f64>,
    p50: Option<f64>,
    p99: Option<f64>,
    max: Option<f64>,
    /// Another row, of whose mean ours may be at most `percent`.
    of: Option<String>,
    percent: Option<f64>,
}

pub fn load(tools: &Tools) -> Result<Budgets> {
    let path = match tools.is_default() {
        true => tools.root.join("bench/budgets.toml"),
        false => tools.root.join(format!("bench/budgets-{}.toml", tools.board.name)),
    };
    if !path.exists() {
        return Ok(Budgets::new());
    }
    let text = fs::read_to_string(&path).with_context(|| tools.shown(&path))?;
    toml::from_str(&text).with_context(|| tools.shown(&path))
}

impl Budget {
    fn limits(&self) -> Limits {
        match self {
            Budget::Mean(mean) => Limits { mean: Some(*mean), ..Limits::default() },
            Budget::Detailed(limits) => limits.clone(),
        }
    }

    /// The row that it is held against.
    pub fn of(&self) -> Option<String> {
        self.limits().of
    }

    /// In few words, for the table.
    pub fn shown(&self) -> String {
        let limits = self.limits();
        let statistic = |name: &str, limit: Option<f64>| limit.map(|limit| format!("{name} {limit}"));
        let relative = limits.of.zip(limits.percent).map(|(of, percent)| format!("{percent} % of {of}"));
        let parts = [
            limits.mean.map(|mean| mean.to_string()),
            statistic("p50", limits.p50),
            statistic("p99", limits.p99),
            statistic("max", limits.max),
            relative,
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// What the row exceeds, if anything.
    pub fn excess(&self, row: &Row, rows: &[Row]) -> Option<String> {
        let limits = self.limits();
        let over = |name: &str, is: f64, limit: Option<f64>| {
            let limit = limit.filter(|limit| is > *limit)?;
            // What is counted by the byte is little.
            let digits = if is < 100.0 { 2 } else { 1 };
            Some(format!("{name} is {is:.digits$}, budget {limit:.digits$}"))
        };
        let reference = limits.of.as_ref().map(|of| rows.iter().find(|row| row.id == *of));
        if let Some(None) = reference {
            return Some(format!("{} was not measured", limits.of.unwrap_or_default()));
        }
        let relative =
            reference.flatten().zip(limits.percent).map(|(row, percent)| row.mean * percent / 100.0);
        over("mean", row.mean, limits.mean)
            .or_else(|| over("p50", row.p50, limits.p50))
            .or_else(|| over("p99", row.p99, limits.p99))
            .or_else(|| over("max", row.max, limits.max))
            .or_else(|| over("mean", row.mean, relative))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excess(budget: &str, row: &Row, rows: &[Row]) -> Option<String> {
        let budgets: Budgets = toml::from_str(&format!("x = {budget}")).unwrap();
        budgets["x"].excess(row, rows)
    }

    #[test]
    fn a_number_is_a_budget_for_the_mean() {
        let row = Row::exact("x".into(), "instructions", 18);
        assert_eq!(excess("18", &row, &[]), None);
        assert_eq!(excess("17", &row, &[]).unwrap(), "mean is 18.00, budget 17.00");
    }

    #[test]
    fn each_statistic_may_have_its_own() {
        let row = Row { p99: 401.0, ..Row::exact("x".into(), "instructions", 330) };
        assert_eq!(excess("{ p50 = 330, p99 = 401 }", &row, &[]), None);
        assert_eq!(excess("{ p50 = 329.5 }", &row, &[]).unwrap(), "p50 is 330.0, budget 329.5");
        assert!(excess("{ p50 = 330, p99 = 400 }", &row, &[]).unwrap().starts_with("p99 is 401"));
    }

    #[test]
    fn a_budget_may_be_relative_to_another_row() {
        let rows = [Row::exact("y".into(), "instructions", 100)];
        let row = Row::exact("x".into(), "instructions", 106);
        assert_eq!(excess("{ of = 'y', percent = 106 }", &row, &rows), None);
        assert!(excess("{ of = 'y', percent = 105 }", &row, &rows).is_some());
        assert!(excess("{ of = 'z', percent = 105 }", &row, &rows).unwrap().contains("not measured"));
    }

    #[test]
    fn unknown_statistics_are_refused() {
        assert!(toml::from_str::<Budgets>("x = { median = 3 }").is_err());
    }
}

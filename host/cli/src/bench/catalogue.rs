//! Which rows there are, before anything is measured.
//!
//! `bench/rows.toml` lists, in their order, the rows that the measuring system prints and the servers whose
//! sizes are told; the others are known here. [`Catalogue::check`] holds the list against what a whole
//! measurement brought.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::{BOOT, RATIOS, Row, is_wanted, row_of, typed};
use crate::tools::Tools;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    /// Printed by the system `bench`, in this order.
    pub system: Vec<String>,
    /// Printed by the system `load`.
    pub load: Vec<String>,
    /// Of the system `core`.
    size: Vec<String>,
}

impl Catalogue {
    pub fn load(tools: &Tools) -> Result<Self> {
        let path = tools.root.join("bench/rows.toml");
        let text = fs::read_to_string(&path).with_context(|| tools.shown(&path))?;
        toml::from_str(&text).with_context(|| tools.shown(&path))
    }

    pub fn sizes(&self) -> impl Iterator<Item = &str> {
        self.size.iter().map(String::as_str)
    }

    fn all(&self) -> impl Iterator<Item = &str> {
        let programs = typed().map(|line| row_of(line)).chain(RATIOS.iter().map(|(id, ..)| *id));
        self.system
            .iter()
            .chain(&self.load)
            .map(String::as_str)
            .chain(self.sizes())
            .chain(programs)
            .chain([BOOT])
    }

    /// Whether there is a row of this id.
    pub fn has(&self, id: &str) -> bool {
        self.all().any(|known| known == id)
    }

    /// What to tell who asks for rows that are none.
    pub fn unknown(&self, only: &[String]) -> Option<String> {
        let pattern = only.iter().find(|pattern| !self.all().any(|id| id.contains(*pattern)))?;
        let families: BTreeSet<_> = self.all().filter_map(|id| id.split('.').next()).collect();
        let families: Vec<_> = families.into_iter().collect();
        Some(format!("no row has {pattern:?} in its id; their ids begin with {}", families.join(", ")))
    }

    /// All rows have been measured: the list must be theirs.
    pub fn check(&self, rows: &[Row]) -> Result<()> {
        let listed: BTreeSet<_> = self.all().filter(|id| is_wanted(&[], id)).collect();
        let measured: BTreeSet<_> = rows.iter().map(|row| row.id.as_str()).collect();
        let wrong: Vec<_> = listed.symmetric_difference(&measured).copied().collect();
        ensure!(wrong.is_empty(), "bench/rows.toml and what is measured differ in {}", wrong.join(", "));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalogue() -> Catalogue {
        toml::from_str("system = [\"yield.2\", \"irq.idle\"]\nload = []\nsize = [\"size.nucleus\"]").unwrap()
    }

    #[test]
    fn each_pattern_must_be_in_some_id() {
        let unknown =
            |only: &[&str]| catalogue().unknown(&only.iter().map(|p| p.to_string()).collect::<Vec<_>>());
        assert_eq!(unknown(&["irq", "yield.2", "boot", "sandbox.ratio1", "size"]), None);
        assert!(unknown(&[]).is_none());
        let said = unknown(&["irq", "yield.3"]).unwrap();
        assert!(said.starts_with("no row has \"yield.3\" in its id; their ids begin with boot, "), "{said}");
    }

    #[test]
    fn a_row_that_is_not_listed_is_told() {
        let row = |id: &str| Row::exact(id.into(), "instructions", 1);
        let mut rows: Vec<_> = catalogue().all().filter(|id| is_wanted(&[], id)).map(row).collect();
        assert!(catalogue().check(&rows).is_ok());
        rows.push(row("new.row"));
        assert!(catalogue().check(&rows).unwrap_err().to_string().ends_with("differ in new.row"));
    }
}

//! The report for the terminal.

use std::fmt::Write;

use super::Row;
use super::budget::Budgets;
use crate::ui::{Colour, paint};

pub fn render(rows: &[Row], budgets: &Budgets, terminal: bool) -> String {
    let width = rows.iter().map(|row| row.id.len()).max().unwrap_or(0).max(20);
    let mut out = format!(
        "{:width$} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}  budget\n",
        "instructions or bytes", "min", "mean", "median", "99 %", "max", "paper *",
    );
    for row in rows {
        let paper = row.paper.map_or("-".into(), |figure| figure.to_string());
        let Row { id, min, mean, p50, p99, max, .. } = row;
        let digits = if row.unit == "times" || row.mean < 10.0 { 2 } else { 1 };
        let _ = write!(
            out,
            "{id:width$} {min:>10} {mean:>10.digits$} {p50:>10} {p99:>10} {max:>10} {paper:>10}  "
        );
        out.push_str(&verdict(row, rows, budgets, terminal));
        out.push('\n');
    }
    out.push_str(
        "* cycles (or bytes) on the papers' 166 MHz R5000 board; ours are guest instructions under -icount\n",
    );
    out
}

fn verdict(row: &Row, rows: &[Row], budgets: &Budgets, terminal: bool) -> String {
    match budgets.get(&row.id) {
        None => String::new(),
        Some(budget) => match budget.excess(row, rows) {
            None => paint(&format!("ok ({})", budget.shown()), Colour::Green, terminal),
            Some(excess) => paint(&format!("OVER: {excess}"), Colour::Red, terminal),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_shows_the_papers_figure_and_its_budget() {
        let mut row = Row::exact("yield.2".into(), "instructions", 150);
        row.paper = Some(429.0);
        let budgets: Budgets = toml::from_str("'yield.2' = 149").unwrap();
        let table = render(&[row], &budgets, false);
        let line = table.lines().nth(1).unwrap();
        assert!(line.contains(" 429  OVER: mean is 150.0, budget 149.0"), "{line}");
    }
}

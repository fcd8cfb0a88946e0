//! The sums as text.

use std::fmt::{self, Write};

use crate::Fold;
use crate::short::short;

/// Of names that are longer even when they are short the middle is left out: what they are of is at the
/// beginning, what they are at the end.
const WIDTH: usize = 56;
const BEGINNING: usize = 20;

/// `1,234,567`
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

pub fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

fn shown(name: &str) -> String {
    let name = &short(name);
    let length = name.chars().count();
    if length <= WIDTH {
        return name.clone();
    }
    let end = name.chars().skip(length - (WIDTH - BEGINNING - 3));
    name.chars().take(BEGINNING).chain("...".chars()).chain(end).collect()
}

/// All domains, and of portals and functions so many.
pub fn render(fold: &Fold, most: usize) -> String {
    let mut out = String::new();
    // A string takes whatever is written.
    let _ = write(&mut out, fold, most);
    out
}

fn write(out: &mut String, fold: &Fold, most: usize) -> fmt::Result {
    let total = fold.total;
    writeln!(out, "{:<24} {:>14} {:>7}", "domain", "instructions", "share")?;
    for row in &fold.domains {
        let (count, share) = (grouped(row.instructions), percent(row.instructions, total));
        writeln!(out, "{:<24} {count:>14} {share:>6.2}%", shown(&row.name))?;
    }
    writeln!(out, "{:<24} {:>14} {:>6.2}%", "all", grouped(total), 100.0)?;

    let (calls, legs) = ("calls", "portal's own");
    writeln!(out, "\n{:<40} {calls:>9} {legs:>13} {:>14} {:>7} {:>9}", "portal", "whole", "share", "a call")?;
    for row in fold.portals.iter().take(most) {
        let (calls, legs, whole) = (grouped(row.calls), grouped(row.legs), grouped(row.whole));
        let (share, each) = (percent(row.whole, total), grouped(row.whole / row.calls.max(1)));
        writeln!(out, "{:<40} {calls:>9} {legs:>13} {whole:>14} {share:>6.2}% {each:>9}", shown(&row.name))?;
    }
    more(out, fold.portals.len(), most, "portals")?;

    writeln!(out, "\n{:<24} {:<56} {:>14} {:>7}", "domain", "function", "instructions", "share")?;
    for row in fold.functions.iter().take(most) {
        let (count, share) = (grouped(row.instructions), percent(row.instructions, total));
        writeln!(out, "{:<24} {:<56} {count:>14} {share:>6.2}%", shown(&row.domain), shown(&row.name))?;
    }
    more(out, fold.functions.len(), most, "functions")
}

fn more(out: &mut String, all: usize, most: usize, what: &str) -> fmt::Result {
    match all.saturating_sub(most) {
        0 => Ok(()),
        left => writeln!(out, "... and {left} more {what}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_groups() {
        let all = [0, 999, 1000, 1_234_567].map(grouped);
        assert_eq!(all, ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn a_table_has_what_takes_most() {
        let (recording, names) = crate::fold::tests::example();
        let text = render(&Fold::new(&recording, &names), 1);
        for line in [
            "file                                175  35.00%",
            "all                                 500 100.00%",
            &format!("{:<40}         3           225            400  80.00%       133", "file.read"),
            "... and 1 more portals",
            "... and 3 more functions",
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line:?} in\n{text}");
        }
    }

    #[test]
    fn long_names_are_cut() {
        let long = format!("<{}>::method", "x".repeat(60));
        assert_eq!(shown(&long), format!("<{}...{}>::method", "x".repeat(19), "x".repeat(24)));
        assert_eq!(shown("<file::Table>::get"), "<Table>::get");
        assert_eq!(shown(&"ü".repeat(56)), "ü".repeat(56));
    }
}

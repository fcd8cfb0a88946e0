//! Pebble beside Linux, for the terminal, and what differs in meaning.

use std::fmt::Write;

use super::Pair;
use crate::bench::Row;

/// Columns of text.
const WIDTH: usize = 110;

pub fn render(pairs: &[Pair], release: &str) -> String {
    let width = pairs.iter().map(|pair| pair.linux.id.len()).max().unwrap_or(0).max(20);
    let mut out = format!(
        "{:width$} {:>10} {:>10} {:>8} {:>13}  on Linux\n",
        "operation", "Pebble", "Linux", "ratio", "samples"
    );
    for pair in pairs {
        let ours = |show: &dyn Fn(&Row) -> String| pair.pebble.as_ref().map_or("-".into(), show);
        let ratio = pair.ratio().map_or("-".into(), |row| format!("{:.2}", row.p50));
        let samples = format!("{} {:>5}", ours(&|row| row.n.to_string()), pair.linux.n);
        let (id, linux, pebble) = (&pair.linux.id, pair.linux.p50, ours(&|row| row.p50.to_string()));
        let _ = writeln!(
            out,
            "{id:width$} {pebble:>10} {linux:>10} {ratio:>8} {samples:>13}  {}",
            pair.listed.does
        );
    }
    out += "Medians of guest instructions; samples of both; the ratio is Linux divided by Pebble.\n";
    out += &paragraph("", &format!("Linux is Debian's {release}, with all that runs under SCHED_FIFO."));
    for pair in pairs {
        if let Some(differs) = &pair.listed.differs {
            out += &paragraph("  ", &format!("{}: {differs}", pair.linux.id));
        }
    }
    out
}

/// In lines that are not too long, the first without the indentation.
fn paragraph(indentation: &str, text: &str) -> String {
    let (mut out, mut column) = (String::new(), 0);
    for word in text.split_whitespace() {
        if column > 0 && column + 1 + word.chars().count() > WIDTH {
            out.push('\n');
            out.push_str(indentation);
            column = indentation.len();
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += word.chars().count();
    }
    out + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::linux::tests::pair;

    #[test]
    fn a_line_has_both_figures_and_their_ratio() {
        let pairs = [pair("x", 300, Some(200), Some("It is slow.")), pair("y", 7, None, None)];
        let table = render(&pairs, "linux-image-6");
        let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["x", "200", "300", "1.50", "1", "1", "read"]);
        assert_eq!(lines[2], ["y", "-", "7", "-", "-", "1", "read"]);
        assert!(table.contains("Debian's linux-image-6, "), "{table}");
        assert!(table.ends_with("\nx: It is slow.\n"), "{table}");
    }

    #[test]
    fn notes_are_wrapped() {
        let text = paragraph("  ", &"word ".repeat(60));
        assert!(text.lines().all(|line| line.len() <= WIDTH));
        assert!(text.lines().skip(1).all(|line| line.starts_with("  word")));
        assert_eq!(text.split_whitespace().count(), 60);
    }
}

//! Columns of text for a terminal.
//!
//! Strategy: rows are kept whole until all are known; a column is as wide as its widest cell. The last
//! column, if left-aligned, is not padded, so no line ends in blanks.

use alloc::string::String;
use alloc::vec::Vec;
use core::iter;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

pub struct Table<const N: usize> {
    align: [Align; N],
    /// The head first.
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    /// A head for each column; those of numbers are right-aligned.
    pub fn new(head: [(&str, Align); N]) -> Self {
        Table { align: head.map(|(_, align)| align), rows: [head.map(|(text, _)| String::from(text))].into() }
    }

    pub fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells);
    }

    /// The lines, each with its end.
    pub fn render(&self) -> String {
        let mut widths = [0; N];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(columns(cell));
            }
        }
        let mut text = String::new();
        for row in &self.rows {
            for (i, cell) in row.iter().enumerate() {
                let pad = iter::repeat_n(' ', widths[i] - columns(cell));
                match self.align[i] {
                    Align::Left => {
                        text.push_str(cell);
                        text.extend(pad);
                    }
                    Align::Right => {
                        text.extend(pad);
                        text.push_str(cell);
                    }
                }
                text.push_str("  ");
            }
            let end = text.trim_end_matches(' ').len();
            text.truncate(end);
            text.push('\n');
        }
        text
    }
}

fn columns(cell: &str) -> usize {
    cell.chars().count()
}

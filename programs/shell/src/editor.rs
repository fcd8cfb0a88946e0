//! The line that is being typed, and its picture on the terminal.
//!
//! Strategy: the line lives in one row; when it is longer than the row, the row shows a window of it that
//! moves with the cursor, so nothing ever depends on how a terminal wraps. Each key edits the line and then
//! draws the row anew; only a character typed at the end, the usual case, is sent as it is.
//!
//! Invariants:
//! * After each byte the row shows the prompt and the window, and the cursor stands where the next character
//!   goes.
//! * `cursor` is on a character boundary. The window, `offset..offset + width()`, contains the cursor or ends
//!   at it.
//! * The line is text: no control character gets into it, whatever is typed or completed.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::decode::{Decoder, Key};

/// Lines remembered.
pub const HISTORY: usize = 100;
/// Bytes of the longest line; further characters are refused with the bell.
const LONGEST: usize = 4096;
const BELL: u8 = 7;

/// What becomes of the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Line(String),
    /// Ctrl-C: the line is dropped.
    Interrupt,
    /// Ctrl-D on an empty line.
    EndOfInput,
}

/// Answers, for a word and whether a command's name should be there, the words that it may become.
pub type Complete<'a> = dyn FnMut(&str, bool) -> Vec<String> + 'a;

pub struct Editor {
    decoder: Decoder,
    columns: usize,
    prompt: String,
    line: String,
    /// Byte of the line before which typing happens.
    cursor: usize,
    /// First character that the row shows.
    offset: usize,
    history: VecDeque<String>,
    /// The line of the history that is shown; its length: the draft.
    recalled: usize,
    draft: String,
    cut: String,
    /// The key before was a Tab that could not decide.
    undecided: bool,
}

impl Editor {
    /// For a terminal of so many columns.
    pub fn new(columns: usize) -> Self {
        Editor {
            decoder: Decoder::new(),
            columns: columns.max(2),
            prompt: String::new(),
            line: String::new(),
            cursor: 0,
            offset: 0,
            history: VecDeque::new(),
            recalled: 0,
            draft: String::new(),
            cut: String::new(),
            undecided: false,
        }
    }

    /// Starts a line. The prompt is cut to leave at least half of the row to the line.
    pub fn begin(&mut self, prompt: &str, out: &mut Vec<u8>) {
        self.prompt = prompt.chars().take((self.columns - 1) / 2).collect();
        self.recalled = self.history.len();
        self.replace(String::new());
        self.draw(out);
    }

    /// The line and the byte at which the cursor is.
    pub fn line(&self) -> (&str, usize) {
        (&self.line, self.cursor)
    }

    pub fn history(&self) -> impl Iterator<Item = &str> {
        self.history.iter().map(String::as_str)
    }

    /// Takes a byte from the terminal; appends to `out` what goes to it. After an event comes
    /// [`begin`](Self::begin).
    pub fn feed(&mut self, byte: u8, complete: &mut Complete, out: &mut Vec<u8>) -> Option<Event> {
        let key = self.decoder.push(byte)?;
        let undecided = core::mem::take(&mut self.undecided);
        match key {
            Key::Enter => {
                out.push(b'\n');
                return Some(Event::Line(self.finish()));
            }
            Key::Interrupt => {
                out.extend(b"^C\n");
                return Some(Event::Interrupt);
            }
            Key::EndOfInput if self.line.is_empty() => {
                out.push(b'\n');
                return Some(Event::EndOfInput);
            }
            Key::Char(c) => {
                if self.insert(c, out) {
                    return None;
                }
            }
            Key::Tab => self.complete(undecided, complete, out),
            Key::Clear => out.extend(b"\x1b[H\x1b[2J"),
            Key::Left => self.cursor = self.left(),
            Key::Right => self.cursor = self.right(),
            Key::WordLeft => self.cursor = self.word_left(),
            Key::WordRight => self.cursor = self.word_right(),
            Key::Home => self.cursor = 0,
            Key::End => self.cursor = self.line.len(),
            Key::Backspace => self.remove(self.left(), self.cursor),
            Key::Delete | Key::EndOfInput => self.remove(self.cursor, self.right()),
            Key::KillEnd => self.kill(self.cursor, self.line.len()),
            Key::KillStart => self.kill(0, self.cursor),
            Key::KillWord => self.kill(self.word_left(), self.cursor),
            Key::Yank => {
                let cut = core::mem::take(&mut self.cut);
                self.insert_text(&cut, out);
                self.cut = cut;
            }
            Key::Up => self.recall(self.recalled.checked_sub(1)),
            Key::Down => self.recall(Some(self.recalled + 1)),
        }
        self.draw(out);
        None
    }

    fn finish(&mut self) -> String {
        let line = core::mem::take(&mut self.line);
        self.cursor = 0;
        if !line.trim().is_empty() && self.history.back() != Some(&line) {
            if self.history.len() == HISTORY {
                self.history.pop_front();
            }
            self.history.push_back(line.clone());
        }
        line
    }

    fn replace(&mut self, line: String) {
        self.line = line;
        self.cursor = self.line.len();
        self.offset = 0;
    }

    /// Whether the row is drawn already.
    fn insert(&mut self, c: char, out: &mut Vec<u8>) -> bool {
        if self.line.len() + c.len_utf8() > LONGEST {
            out.push(BELL);
            return true;
        }
        self.line.insert(self.cursor, c);
        self.cursor += c.len_utf8();
        let at_end = self.cursor == self.line.len();
        let shown = at_end && self.line.chars().count() <= self.offset + self.width();
        if shown {
            out.extend(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
        shown
    }

    fn insert_text(&mut self, text: &str, out: &mut Vec<u8>) {
        if self.line.len() + text.len() > LONGEST {
            return out.push(BELL);
        }
        self.line.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    fn remove(&mut self, from: usize, to: usize) {
        self.line.replace_range(from..to, "");
        self.cursor = from;
    }

    fn kill(&mut self, from: usize, to: usize) {
        if from != to {
            self.cut = self.line[from..to].into();
            self.remove(from, to);
        }
    }

    fn recall(&mut self, to: Option<usize>) {
        let Some(to) = to.filter(|to| *to <= self.history.len()) else { return };
        if self.recalled == self.history.len() {
            self.draft = self.line.clone();
        }
        self.recalled = to;
        self.replace(self.history.get(to).unwrap_or(&self.draft).clone());
    }

    fn left(&self) -> usize {
        self.line[..self.cursor].char_indices().next_back().map_or(0, |(at, _)| at)
    }

    fn right(&self) -> usize {
        self.line[self.cursor..].chars().next().map_or(self.cursor, |c| self.cursor + c.len_utf8())
    }

    /// The start of the word before the cursor.
    fn word_left(&self) -> usize {
        let before = self.line[..self.cursor].trim_end();
        before
            .rfind(char::is_whitespace)
            .map_or(0, |at| at + before[at..].chars().next().map_or(0, char::len_utf8))
    }

    /// The end of the word after the cursor.
    fn word_right(&self) -> usize {
        let word = self.line[self.cursor..].trim_start();
        self.line.len() - word.len() + word.find(char::is_whitespace).unwrap_or(word.len())
    }

    fn complete(&mut self, undecided: bool, complete: &mut Complete, out: &mut Vec<u8>) {
        let before = &self.line[..self.cursor];
        let start = before.rfind([' ', '|', ';', '&', '<', '>']).map_or(0, |at| at + 1);
        let (lead, word) = before.split_at(start);
        let command = lead.trim_end().chars().next_back().is_none_or(|c| matches!(c, '|' | ';' | '&'));
        let mut names = complete(word, command);
        names.retain(|name| name.starts_with(word) && !name.contains(char::is_control));
        names.sort();
        names.dedup();
        let Some(first) = names.first() else { return out.push(BELL) };
        let common = names.iter().fold(first.as_str(), |common, name| common_start(common, name));
        let mut rest = String::from(&common[word.len()..]);
        if names.len() == 1 && !first.ends_with('/') {
            rest.push(' ');
        }
        if !rest.is_empty() {
            self.insert_text(&rest, out);
        } else if names.len() == 1 {
            // A directory, complete: what is in it is not known before there is a next Tab with its name.
        } else if undecided {
            self.list(&names, out);
        } else {
            out.push(BELL);
            self.undecided = true;
        }
    }

    /// The names in rows under the line.
    fn list(&self, names: &[String], out: &mut Vec<u8>) {
        let mut column = 0;
        out.push(b'\n');
        for name in names {
            let width = name.chars().count() + 2;
            if column != 0 && column + width > self.columns {
                out.push(b'\n');
                column = 0;
            }
            out.extend(name.bytes().chain(*b"  "));
            column += width;
        }
        out.push(b'\n');
    }

    /// Characters of the line that the row shows: one column is left for the cursor behind the last.
    fn width(&self) -> usize {
        (self.columns - 1).saturating_sub(self.prompt.chars().count()).max(1)
    }

    fn draw(&mut self, out: &mut Vec<u8>) {
        let width = self.width();
        let cursor = self.line[..self.cursor].chars().count();
        let total = cursor + self.line[self.cursor..].chars().count();
        let most = cursor.min(total.saturating_sub(width));
        self.offset = self.offset.min(most).max(cursor.saturating_sub(width));
        out.push(b'\r');
        out.extend(self.prompt.bytes());
        for c in self.line.chars().skip(self.offset).take(width) {
            out.extend(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
        out.extend(b"\x1b[K\r");
        match self.prompt.chars().count() + cursor - self.offset {
            0 => {}
            column => out.extend(format!("\x1b[{column}C").bytes()),
        }
    }
}

fn common_start<'a>(a: &'a str, b: &str) -> &'a str {
    let differ = a.char_indices().zip(b.chars()).find(|((_, a), b)| a != b);
    let len = differ.map_or(a.len().min(b.len()), |((at, _), _)| at);
    &a[..len]
}

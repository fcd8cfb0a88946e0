//! Words of a command line: text, and the variables whose values it will have.
//!
//! A line is understood before the first of its commands runs, and a variable (`$?` above all) has its value
//! only when its command's turn comes. So a word keeps its parts, and [`Word::expand`] makes it text. What a
//! variable holds is never looked at again: it splits into no words, and no sign in it means anything.

use alloc::string::String;
use alloc::vec::Vec;

/// The name under which the status of the last command goes.
pub const STATUS: &str = "?";

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Variable(String),
}

/// A word before its variables have values. Without parts it is the empty word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word(Vec<Part>);

impl Word {
    pub fn push(&mut self, c: char) {
        match self.0.last_mut() {
            Some(Part::Text(text)) => text.push(c),
            _ => self.0.push(Part::Text(c.into())),
        }
    }

    pub fn push_variable(&mut self, name: String) {
        self.0.push(Part::Variable(name));
    }

    pub fn append(&mut self, other: Word) {
        for part in other.0 {
            match part {
                Part::Text(text) => text.chars().for_each(|c| self.push(c)),
                Part::Variable(name) => self.push_variable(name),
            }
        }
    }

    /// Its text, with the values that the variables have now.
    pub fn expand(&self, value: &dyn Fn(&str) -> String) -> String {
        let text = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Variable(name) => value(name),
        };
        self.0.iter().map(text).collect()
    }

    /// Whether it is this text, without a variable in it.
    pub fn is(&self, text: &str) -> bool {
        matches!(&self.0[..], [Part::Text(own)] if own == text)
    }
}

impl From<&str> for Word {
    fn from(text: &str) -> Self {
        let mut word = Word::default();
        text.chars().for_each(|c| word.push(c));
        word
    }
}

/// Whether a variable can be called so.
pub fn is_name(text: &str) -> bool {
    text.starts_with(begins_name) && text.chars().all(continues_name)
}

pub fn begins_name(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

pub fn continues_name(c: char) -> bool {
    begins_name(c) || c.is_ascii_digit()
}

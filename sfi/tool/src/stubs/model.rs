//! What a header means: functions, their portal specifications, and how far their windows reach.

use super::{At, Error};

/// An arithmetic type, or `void` and bytes behind a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Void,
    Bool,
    /// `char`: text when it is behind a pointer.
    Char,
    Integer {
        bytes: u8,
        signed: bool,
    },
    /// As wide as an address.
    Size {
        signed: bool,
    },
    Float {
        bytes: u8,
    },
}

impl Type {
    /// Of an element in memory; of `void`, a byte.
    pub fn bytes(self) -> u64 {
        match self {
            Type::Void | Type::Bool | Type::Char => 1,
            Type::Integer { bytes, .. } | Type::Float { bytes } => bytes.into(),
            Type::Size { .. } => 8,
        }
    }

    /// It goes through a portal as a word.
    pub fn is_word(self) -> bool {
        !matches!(self, Type::Void | Type::Float { .. })
    }
}

/// How many elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// The value of an argument, by number.
    Argument(usize),
    Fixed(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Word,
    /// `r`, `w` or `o`.
    Window {
        letter: char,
        count: Count,
    },
    String,
}

#[derive(Clone, Debug)]
pub struct Argument {
    pub name: String,
    /// Of the word, or of what the pointer points to.
    pub of: Type,
    pub constant: bool,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Nothing,
    Word(Type),
    String,
}

#[derive(Clone, Debug)]
pub struct Function {
    pub name: String,
    pub at: At,
    /// Stack and state.
    pub portal: String,
    pub arguments: Vec<Argument>,
    pub answer: Answer,
    /// As it is in the header, without annotations.
    pub prototype: String,
}

impl Function {
    pub fn spec(&self) -> String {
        let letter = |a: &Argument| match a.kind {
            Kind::Word => 'i',
            Kind::Window { letter, .. } => letter,
            Kind::String => 'r',
        };
        self.portal.chars().chain(self.arguments.iter().map(letter)).collect()
    }

    /// Windows that an argument counts the elements of.
    pub fn counted_by(&self, argument: usize) -> impl Iterator<Item = &Argument> {
        let counts = move |a: &&Argument| matches!(a.kind, Kind::Window { count: Count::Argument(n), .. } if n == argument);
        self.arguments.iter().filter(counts)
    }

    /// Arguments with something to lend, with their numbers.
    pub fn windows(&self) -> impl Iterator<Item = (usize, &Argument)> {
        self.arguments.iter().enumerate().filter(|(_, a)| a.kind != Kind::Word)
    }
}

pub struct Interface {
    pub name: String,
    /// The header's file name.
    pub header: String,
    pub functions: Vec<Function>,
}

impl Interface {
    pub fn new(name: String, header: String, functions: Vec<Function>) -> Result<Interface, Error> {
        if functions.is_empty() {
            return Error::at(At { line: 1, column: 1 }, "there is no prototype of a function here");
        }
        for (i, f) in functions.iter().enumerate() {
            if let Some(first) = functions[..i].iter().find(|g| g.name == f.name) {
                return Error::at(f.at, format!("{} is declared on line {} too", f.name, first.at.line));
            }
            if ["bind", "unbind", "instance", "limit"].contains(&f.name.as_str()) {
                let text = format!("{} is a name of the bindings' own: give this one another", f.name);
                return Error::at(f.at, text);
            }
        }
        Ok(Interface { name, header, functions })
    }
}

//! Command lines.
//!
//! ```text
//! line        = [ job { (";" | "&") job } [ ";" | "&" ] ] [ "#" anything ]
//! job         = [ "time" ] command { "|" command } | assignment { assignment }
//! command     = { assignment | redirection } word { word | redirection }
//! assignment  = NAME "=" word, without a blank
//! redirection = ["0"] "<" word | ["1" | "2"] (">" | ">>") word | ["1" | "2"] ">&" ("1" | "2")
//! ```
//!
//! [`lexer`](crate::lexer) says what a word is. `&` puts the job before it in the background. What other
//! shells have and this one has not (`<<`, `&&`, `||`) is refused rather than taken for a word.
//!
//! Invariants: no job is without a command, and no command without a word, unless it is the only one of its
//! job and has assignments alone.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::lexer::{Lexer, Token, Way};
use crate::word::Word;

/// A program or built-in with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command<W = Word> {
    /// Variables that only it has so.
    pub assignments: Vec<(String, W)>,
    pub words: Vec<W>,
    /// In the order in which they are done.
    pub redirections: Vec<Redirection<W>>,
}

/// Where one of the standard files leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirection<W = Word> {
    /// 0, 1 or 2.
    pub file: usize,
    pub to: Target<W>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target<W = Word> {
    Read(W),
    /// Emptied, or made.
    Write(W),
    /// As it is, or made.
    Append(W),
    /// Where this one leads by now.
    Same(usize),
}

/// Commands, each reading what the one before it writes; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job<W = Word> {
    pub commands: Vec<Command<W>>,
    pub background: bool,
    /// It shall be said how long it took.
    pub timed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Character, from 1.
    pub column: usize,
    pub problem: Problem,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The quote that starts here has no end.
    Open(char),
    /// Nothing follows the backslash.
    Backslash,
    /// `${` without a name or a `}`.
    Brace,
    /// A command should be here.
    NoCommand,
    /// A file's name should be here.
    NoFile,
    /// The number of a standard file should be here.
    NoNumber,
    /// A number before a `<` or `>` that has none such.
    Number,
    HereDocument,
    /// `&&` or `||`.
    Condition,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "column {}: ", self.column)?;
        f.write_str(match self.problem {
            Problem::Open(quote) => return write!(f, "the quote {quote} that starts here is not closed"),
            Problem::Backslash => "nothing follows the backslash",
            Problem::Brace => "a variable's name and } should follow ${; write \\$ for the sign itself",
            Problem::NoCommand => "a command is missing here",
            Problem::NoFile => "a file's name is missing here",
            Problem::NoNumber => "1 or 2 is missing here",
            Problem::Number => "only 0<, 1> and 2> are files of a command",
            Problem::HereDocument => "<< is not supported; use echo and |",
            Problem::Condition => "&& and || are not supported; use ;",
        })
    }
}

impl Job {
    /// The same, with the values that the variables have now.
    pub fn expand(&self, value: &dyn Fn(&str) -> String) -> Job<String> {
        let target = |to: &Target| match to {
            Target::Read(word) => Target::Read(word.expand(value)),
            Target::Write(word) => Target::Write(word.expand(value)),
            Target::Append(word) => Target::Append(word.expand(value)),
            Target::Same(file) => Target::Same(*file),
        };
        let command = |command: &Command| Command {
            assignments: command
                .assignments
                .iter()
                .map(|(name, w)| (name.clone(), w.expand(value)))
                .collect(),
            words: command.words.iter().map(|word| word.expand(value)).collect(),
            redirections: command
                .redirections
                .iter()
                .map(|r| Redirection { file: r.file, to: target(&r.to) })
                .collect(),
        };
        let commands = self.commands.iter().map(command).collect();
        Job { commands, background: self.background, timed: self.timed }
    }
}

impl fmt::Display for Command<String> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for (name, value) in &self.assignments {
            write!(f, "{name}={value} ")?;
        }
        f.write_str(&self.words.join(" "))?;
        for Redirection { file, to } in &self.redirections {
            let number = if *file == 2 { "2" } else { "" };
            match to {
                Target::Read(path) => write!(f, " < {path}")?,
                Target::Write(path) => write!(f, " {number}> {path}")?,
                Target::Append(path) => write!(f, " {number}>> {path}")?,
                Target::Same(other) => write!(f, " {number}>&{other}")?,
            }
        }
        Ok(())
    }
}

impl<W> Command<W> {
    const fn new() -> Self {
        Command { assignments: Vec::new(), words: Vec::new(), redirections: Vec::new() }
    }

    fn is_empty(&self) -> bool {
        self.words.is_empty() && self.assignments.is_empty() && self.redirections.is_empty()
    }
}

/// A job under construction.
struct Parser<'a> {
    lexer: Lexer<'a>,
    commands: Vec<Command>,
    command: Command,
    timed: bool,
}

impl Parser<'_> {
    fn word(&mut self, word: Word, quoted: bool) {
        let first = self.commands.is_empty() && self.command.is_empty();
        if first && !self.timed && !quoted && word.is("time") {
            self.timed = true;
        } else {
            self.command.words.push(word);
        }
    }

    fn redirection(&mut self, number: Option<char>, way: Way) -> Result<(), ParseError> {
        let (column, token) = self.lexer.token()?;
        let missing = if way == Way::Same { Problem::NoNumber } else { Problem::NoFile };
        let (Token::Word(word, _) | Token::Assignment(.., word)) = token else {
            return Err(ParseError { column, problem: missing });
        };
        let to = match way {
            Way::Read => Target::Read(word),
            Way::Write => Target::Write(word),
            Way::Append => Target::Append(word),
            Way::Same if word.is("1") => Target::Same(1),
            Way::Same if word.is("2") => Target::Same(2),
            Way::Same => return Err(ParseError { column, problem: missing }),
        };
        let file = match number {
            Some('2') => 2,
            _ => usize::from(way != Way::Read),
        };
        self.command.redirections.push(Redirection { file, to });
        Ok(())
    }

    /// The command ends here, by this token.
    fn end_command(&mut self, column: usize, token: &Token) -> Result<(), ParseError> {
        let Command { assignments, words, redirections } = &self.command;
        let alone = self.commands.is_empty() && !matches!(token, Token::Pipe | Token::Ampersand);
        let assigns = alone && !self.timed && !assignments.is_empty() && redirections.is_empty();
        if words.is_empty() && !assigns {
            return Err(ParseError { column, problem: Problem::NoCommand });
        }
        self.commands.push(core::mem::replace(&mut self.command, Command::new()));
        Ok(())
    }
}

/// The jobs of a line, in order; none if it is blank.
pub fn parse(line: &str) -> Result<Vec<Job>, ParseError> {
    let mut parser =
        Parser { lexer: Lexer::new(line), commands: Vec::new(), command: Command::new(), timed: false };
    let mut jobs = Vec::new();
    loop {
        let (column, token) = parser.lexer.token()?;
        match token {
            Token::Assignment(name, value, _) if parser.command.words.is_empty() => {
                parser.command.assignments.push((name, value));
            }
            Token::Word(word, quoted) => parser.word(word, quoted),
            Token::Assignment(.., word) => parser.word(word, true),
            Token::Redirection(number, way) => parser.redirection(number, way)?,
            Token::Pipe | Token::Semicolon | Token::Ampersand | Token::End => {
                let blank = parser.command.is_empty() && parser.commands.is_empty() && !parser.timed;
                if token == Token::End && blank {
                    return Ok(jobs);
                }
                parser.end_command(column, &token)?;
                if token != Token::Pipe {
                    let commands = core::mem::take(&mut parser.commands);
                    let timed = core::mem::take(&mut parser.timed);
                    jobs.push(Job { commands, background: token == Token::Ampersand, timed });
                }
                if token == Token::End {
                    return Ok(jobs);
                }
            }
        }
    }
}

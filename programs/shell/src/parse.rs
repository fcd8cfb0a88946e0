//! Command lines.
//!
//! ```text
//! line     = [ job { (";" | "&") job } [ ";" | "&" ] ] [ "#" anything ]
//! job      = command { "|" command }
//! command  = word { word }
//! word     = what is not blank and none of | & ; < >, nor # at its start;
//!            '…' as it is; "…" with \" and \\; \ before any character
//! ```
//!
//! `&` puts the job before it in the background. What other shells have and this one has not (`<`, `>`, `&&`,
//! `||`) is refused rather than taken for a word. Columns count characters from 1.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::iter::Peekable;
use core::str::Chars;

/// A program or built-in with its arguments; never empty.
pub type Command = Vec<String>;

/// Commands, each reading what the one before it writes; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub commands: Vec<Command>,
    pub background: bool,
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
    /// A command should be here.
    NoCommand,
    Redirection,
    /// `&&` or `||`.
    Condition,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "column {}: ", self.column)?;
        match self.problem {
            Problem::Open(quote) => write!(f, "the quote {quote} that starts here is not closed"),
            Problem::Backslash => write!(f, "nothing follows the backslash"),
            Problem::NoCommand => write!(f, "a command is missing here"),
            Problem::Redirection => {
                write!(f, "redirection is not supported; quote the sign to use it as text")
            }
            Problem::Condition => write!(f, "&& and || are not supported; use ;"),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Pipe,
    Semicolon,
    Ampersand,
    End,
}

struct Lexer<'a> {
    chars: Peekable<Chars<'a>>,
    column: usize,
}

impl Lexer<'_> {
    fn next(&mut self) -> Option<char> {
        self.column += 1;
        self.chars.next()
    }

    /// The next token and its column.
    fn token(&mut self) -> Result<(usize, Token), ParseError> {
        while self.chars.peek().is_some_and(|c| c.is_whitespace()) {
            self.next();
        }
        let column = self.column;
        let error = |problem| Err(ParseError { column, problem });
        let token = match self.chars.peek() {
            None | Some('#') => Token::End,
            Some('<' | '>') => return error(Problem::Redirection),
            Some(&sign @ ('|' | '&' | ';')) => {
                self.next();
                match sign {
                    ';' => Token::Semicolon,
                    _ if self.chars.peek() == Some(&sign) => return error(Problem::Condition),
                    '|' => Token::Pipe,
                    _ => Token::Ampersand,
                }
            }
            Some(_) => Token::Word(self.word()?),
        };
        Ok((column, token))
    }

    fn word(&mut self) -> Result<String, ParseError> {
        let mut word = String::new();
        while let Some(&c) = self.chars.peek() {
            if c.is_whitespace() || matches!(c, '|' | '&' | ';' | '<' | '>') {
                break;
            }
            let column = self.column;
            self.next();
            match c {
                '\\' => word.push(self.escaped(column)?),
                '\'' | '"' => self.quoted(c, column, &mut word)?,
                _ => word.push(c),
            }
        }
        Ok(word)
    }

    fn quoted(&mut self, quote: char, column: usize, word: &mut String) -> Result<(), ParseError> {
        let open = ParseError { column, problem: Problem::Open(quote) };
        loop {
            match self.next().ok_or(open)? {
                c if c == quote => return Ok(()),
                '\\' if quote == '"' => match self.next().ok_or(open)? {
                    c @ ('"' | '\\') => word.push(c),
                    c => word.extend(['\\', c]),
                },
                c => word.push(c),
            }
        }
    }

    fn escaped(&mut self, column: usize) -> Result<char, ParseError> {
        self.next().ok_or(ParseError { column, problem: Problem::Backslash })
    }
}

/// The jobs of a line, in order; none if it is blank.
pub fn parse(line: &str) -> Result<Vec<Job>, ParseError> {
    let mut lexer = Lexer { chars: line.chars().peekable(), column: 1 };
    let mut jobs = Vec::new();
    let mut commands = Vec::new();
    let mut command = Command::new();
    loop {
        let (column, token) = lexer.token()?;
        let end = token == Token::End;
        match token {
            Token::Word(word) => {
                command.push(word);
                continue;
            }
            Token::End if command.is_empty() && commands.is_empty() => return Ok(jobs),
            _ if command.is_empty() => return Err(ParseError { column, problem: Problem::NoCommand }),
            _ => commands.push(core::mem::take(&mut command)),
        }
        if token != Token::Pipe {
            jobs.push(Job {
                commands: core::mem::take(&mut commands),
                background: token == Token::Ampersand,
            });
        }
        if end {
            return Ok(jobs);
        }
    }
}

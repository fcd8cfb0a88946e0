//! The signs and words of a command line, one after the other: the lower half of [`parse`](crate::parse).
//!
//! ```text
//! word = what is not blank and none of | & ; < >, nor # at its start;
//!        '…' as it is; "…" with \" \\ and \$; \ before any character;
//!        outside '…': $NAME, ${NAME} and $? are a variable's value, any other $ is itself
//! ```
//!
//! Columns count characters from 1.

use alloc::string::String;
use core::iter::Peekable;
use core::str::Chars;

use crate::parse::{ParseError, Problem};
use crate::word::{STATUS, Word, begins_name, continues_name};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// `NAME=` begins it, unquoted: the name, the value. The whole, if it is no assignment where it stands.
    Assignment(String, Word, Word),
    /// And whether some of it was quoted.
    Word(Word, bool),
    /// The number before it, if there is one.
    Redirection(Option<char>, Way),
    Pipe,
    Semicolon,
    Ampersand,
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// `<`
    Read,
    /// `>`
    Write,
    /// `>>`
    Append,
    /// `>&`
    Same,
}

pub struct Lexer<'a> {
    chars: Peekable<Chars<'a>>,
    column: usize,
}

impl<'a> Lexer<'a> {
    pub fn new(line: &'a str) -> Self {
        Lexer { chars: line.chars().peekable(), column: 1 }
    }

    fn next(&mut self) -> Option<char> {
        self.column += 1;
        self.chars.next()
    }

    fn next_if(&mut self, which: impl FnOnce(char) -> bool) -> Option<char> {
        let found = self.chars.next_if(|c| which(*c));
        self.column += usize::from(found.is_some());
        found
    }

    fn error<T>(&self, column: usize, problem: Problem) -> Result<T, ParseError> {
        Err(ParseError { column, problem })
    }

    /// The next token and its column.
    pub fn token(&mut self) -> Result<(usize, Token), ParseError> {
        while self.next_if(char::is_whitespace).is_some() {}
        let column = self.column;
        let mut ahead = self.chars.clone();
        let (first, second) = (ahead.next(), ahead.next());
        let token = match first {
            None | Some('#') => Token::End,
            Some('<' | '>') => self.redirection(None, column)?,
            Some('0'..='9') if matches!(second, Some('<' | '>')) => {
                let number = self.next();
                self.redirection(number, column)?
            }
            Some(sign @ ('|' | '&' | ';')) => {
                self.next();
                match sign {
                    ';' => Token::Semicolon,
                    _ if second == Some(sign) => return self.error(column, Problem::Condition),
                    '|' => Token::Pipe,
                    _ => Token::Ampersand,
                }
            }
            Some(_) => self.word()?,
        };
        Ok((column, token))
    }

    fn redirection(&mut self, number: Option<char>, column: usize) -> Result<Token, ParseError> {
        let sign = self.next();
        let second = self.next_if(|c| Some(c) == sign || sign == Some('>') && c == '&');
        let way = match (sign, second) {
            (Some('<'), None) => Way::Read,
            (Some('<'), _) => return self.error(column, Problem::HereDocument),
            (_, None) => Way::Write,
            (_, Some('&')) => Way::Same,
            (..) => Way::Append,
        };
        let fits = match number {
            None => true,
            Some(number) => if way == Way::Read { "0" } else { "12" }.contains(number),
        };
        if fits { Ok(Token::Redirection(number, way)) } else { self.error(column, Problem::Number) }
    }

    fn word(&mut self) -> Result<Token, ParseError> {
        let (mut word, mut quoted) = (Word::default(), false);
        // What has been of a name, as long as nothing else was.
        let (mut name, mut value) = (Some(String::new()), None::<Word>);
        while let Some(&c) = self.chars.peek() {
            if c.is_whitespace() || matches!(c, '|' | '&' | ';' | '<' | '>') {
                break;
            }
            if value.is_none() && c == '=' && name.as_deref().is_some_and(|name| !name.is_empty()) {
                self.next();
                word.push(c);
                value = Some(Word::default());
                continue;
            }
            let mut piece = Word::default();
            quoted |= self.piece(&mut piece)?;
            name = name.take().filter(|name| {
                value.is_some() || !quoted && if name.is_empty() { begins_name(c) } else { continues_name(c) }
            });
            if let (Some(name), None) = (&mut name, &value) {
                name.push(c);
            }
            if let Some(value) = &mut value {
                value.append(piece.clone());
            }
            word.append(piece);
        }
        Ok(match (name, value) {
            (Some(name), Some(value)) => Token::Assignment(name, value, word),
            _ => Token::Word(word, quoted),
        })
    }

    /// The next character, variable or quotation; whether it was quoted.
    fn piece(&mut self, word: &mut Word) -> Result<bool, ParseError> {
        let column = self.column;
        let Some(c) = self.next() else { return Ok(false) };
        match c {
            '\\' => match self.next() {
                Some(c) => word.push(c),
                None => return self.error(column, Problem::Backslash),
            },
            '\'' | '"' => self.quoted(c, column, word)?,
            '$' => self.variable(column, word)?,
            _ => word.push(c),
        }
        Ok(matches!(c, '\\' | '\'' | '"'))
    }

    fn quoted(&mut self, quote: char, open: usize, word: &mut Word) -> Result<(), ParseError> {
        loop {
            let column = self.column;
            let problem = ParseError { column: open, problem: Problem::Open(quote) };
            match self.next().ok_or(problem)? {
                c if c == quote => return Ok(()),
                '\\' if quote == '"' => match self.next().ok_or(problem)? {
                    c @ ('"' | '\\' | '$') => word.push(c),
                    c => ['\\', c].into_iter().for_each(|c| word.push(c)),
                },
                '$' if quote == '"' => self.variable(column, word)?,
                c => word.push(c),
            }
        }
    }

    /// What follows a `$`.
    fn variable(&mut self, column: usize, word: &mut Word) -> Result<(), ParseError> {
        let braces = self.next_if(|c| c == '{').is_some();
        let mut name = String::new();
        if self.next_if(|c| c == '?').is_some() {
            name.push_str(STATUS);
        } else if let Some(c) = self.next_if(begins_name) {
            name.push(c);
            while let Some(c) = self.next_if(continues_name) {
                name.push(c);
            }
        }
        if braces && (name.is_empty() || self.next_if(|c| c == '}').is_none()) {
            return self.error(column, Problem::Brace);
        }
        if name.is_empty() {
            word.push('$')
        } else {
            word.push_variable(name)
        }
        Ok(())
    }
}

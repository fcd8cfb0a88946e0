//! A header's words, each with its place. Comments and preprocessor lines are passed over.

use super::{At, Error};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// A name, a number, a string with its quotes, or one character.
    pub text: String,
    pub at: At,
}

pub fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

struct Reader<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    at: At,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.next()?;
        self.at = match c {
            '\n' => At { line: self.at.line + 1, column: 1 },
            _ => At { line: self.at.line, column: self.at.column + 1 },
        };
        Some(c)
    }

    fn next_is(&mut self, c: char) -> bool {
        self.rest.peek() == Some(&c)
    }

    /// To the end of a preprocessor line, and of those that continue it.
    fn skip_line(&mut self) {
        let mut last = ' ';
        while let Some(c) = self.next() {
            if c == '\n' && last != '\\' {
                return;
            }
            last = c;
        }
    }

    /// Behind `/*`.
    fn skip_comment(&mut self, begin: At) -> Result<(), Error> {
        let mut last = ' ';
        while let Some(c) = self.next() {
            if last == '*' && c == '/' {
                return Ok(());
            }
            last = c;
        }
        Error::at(begin, "this comment has no end")
    }

    /// Behind an opening quote.
    fn quoted(&mut self, quote: char, begin: At) -> Result<String, Error> {
        let mut text = String::from(quote);
        while let Some(c) = self.next().filter(|c| *c != '\n') {
            text.push(c);
            match c {
                '\\' => text.extend(self.next()),
                _ if c == quote => return Ok(text),
                _ => {}
            }
        }
        Error::at(begin, "this quote has no end")
    }
}

pub fn tokens(text: &str) -> Result<Vec<Token>, Error> {
    let mut r = Reader { rest: text.chars().peekable(), at: At { line: 1, column: 1 } };
    let mut tokens = Vec::<Token>::new();
    loop {
        let at = r.at;
        let Some(c) = r.next() else { return Ok(tokens) };
        let first = tokens.last().is_none_or(|t| t.at.line != at.line);
        let text = match c {
            _ if c.is_whitespace() => continue,
            '#' if first => {
                r.skip_line();
                continue;
            }
            '/' if r.next_is('/') => {
                r.skip_line();
                continue;
            }
            '/' if r.next_is('*') => {
                r.next();
                r.skip_comment(at)?;
                continue;
            }
            '"' | '\'' => r.quoted(c, at)?,
            _ if c.is_ascii_alphanumeric() || c == '_' => {
                let mut word = String::from(c);
                while let Some(c) = r.rest.peek().copied().filter(|c| c.is_ascii_alphanumeric() || *c == '_')
                {
                    word.push(c);
                    r.next();
                }
                word
            }
            _ => c.to_string(),
        };
        tokens.push(Token { text, at });
    }
}

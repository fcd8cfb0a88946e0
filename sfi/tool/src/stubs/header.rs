//! Declarations of a header: prototypes become functions of the model, `typedef`s of arithmetic types are
//! remembered, the rest is skipped.

use super::lex::{Token, is_name, tokens};
use super::model::{Answer, Argument, Count, Function, Kind, Type};
use super::{At, Error};
use std::collections::HashMap;

const MAX_ARGUMENTS: usize = 6;

pub fn read(text: &str) -> Result<Vec<Function>, Error> {
    let tokens = tokens(text)?;
    let mut types = HashMap::new();
    let mut functions = Vec::new();
    for declaration in declarations(&tokens)? {
        let mut p = Parser { rest: declaration, types: &types, end: declaration[declaration.len() - 1].at };
        let first = declaration[0].text.as_str();
        if first == "typedef" {
            p.take();
            types.extend(p.alias());
        } else if first != "static"
            && declaration.iter().any(|t| t.text == "(")
            && !declaration.iter().any(|t| t.text == "{")
        {
            functions.push(p.function()?);
        }
    }
    Ok(functions)
}

/// Pieces that end with `;` or with a body, outside of braces; `extern "C" {` and its end are no more than
/// that.
fn declarations(tokens: &[Token]) -> Result<Vec<&[Token]>, Error> {
    let mut all = Vec::new();
    let (mut begin, mut open) = (0, Vec::<At>::new());
    for (i, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            "{" if i == begin + 2 && tokens[begin].text == "extern" => begin = i + 1,
            "{" => open.push(token.at),
            "}" if open.pop().is_none() => begin = i + 1,
            // The body of a function; that of a type has more behind it.
            "}" if open.is_empty() && tokens[begin..i].iter().any(|t| t.text == ")") => begin = i + 1,
            ";" if open.is_empty() => {
                if begin < i {
                    all.push(&tokens[begin..i]);
                }
                begin = i + 1;
            }
            _ => {}
        }
    }
    match (open.first(), tokens.get(begin)) {
        (Some(at), _) => Error::at(*at, "this brace is never closed"),
        (None, Some(rest)) => Error::at(rest.at, "this declaration has no end: a ; is missing"),
        (None, None) => Ok(all),
    }
}

struct Parser<'a> {
    rest: &'a [Token],
    types: &'a HashMap<String, Type>,
    /// Where the declaration ends.
    end: At,
}

/// A type as it is written, with its pointers.
struct Written {
    of: Type,
    constant: bool,
    pointers: usize,
    at: At,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> &'a str {
        self.rest.first().map_or("", |t| t.text.as_str())
    }

    fn at(&self) -> At {
        self.rest.first().map_or(self.end, |t| t.at)
    }

    fn take(&mut self) -> &'a str {
        let text = self.peek();
        self.rest = self.rest.get(1..).unwrap_or_default();
        text
    }

    fn want(&mut self, text: &str) -> Result<(), Error> {
        if self.peek() == text {
            self.take();
            return Ok(());
        }
        let found = if self.rest.is_empty() { "the declaration ends" } else { self.peek() };
        Error::at(self.at(), format!("{text} should be here, not {found}"))
    }

    /// Behind `typedef`: a new name for an arithmetic type.
    fn alias(&mut self) -> Option<(String, Type)> {
        let written = self.written().ok()?;
        let name = self.take();
        let plain = written.pointers == 0 && is_name(name) && self.rest.is_empty();
        plain.then(|| (name.to_string(), written.of))
    }

    fn written(&mut self) -> Result<Written, Error> {
        let (mut words, mut constant, at) = (Vec::new(), false, self.at());
        loop {
            match self.peek() {
                "const" => constant = true,
                "volatile" | "extern" | "restrict" | "__restrict" => {}
                word if words.is_empty() && self.types.contains_key(word) => words.push(word),
                word if is_type_word(word) => words.push(word),
                word @ ("struct" | "union" | "enum") => return Error::at(self.at(), no_type(word)),
                word if words.is_empty() => return Error::at(self.at(), no_type(word)),
                _ => break,
            }
            self.take();
        }
        let of = match self.types.get(words[0]).filter(|_| words.len() == 1) {
            Some(of) => *of,
            None => named(&mut words).map_or_else(|| Error::at(at, no_type(&words.join(" "))), Ok)?,
        };
        let mut pointers = 0;
        while matches!(self.peek(), "*" | "const" | "restrict" | "__restrict" | "volatile") {
            pointers += usize::from(self.take() == "*");
        }
        Ok(Written { of, constant, pointers, at })
    }

    fn function(&mut self) -> Result<Function, Error> {
        let mut portal = "sm".to_string();
        if self.peek() == "PBL_PORTAL" {
            self.take();
            self.want("(")?;
            let at = self.at();
            portal = self.take().trim_matches('"').to_string();
            let known = ["sm", "sp", "sf", "nm", "np", "nf"];
            if !known.contains(&portal.as_str()) {
                return Error::at(
                    at,
                    format!("{portal:?} is no stack and state of a portal: use one of {}", known.join(" ")),
                );
            }
            self.want(")")?;
        }
        let declaration = self.rest;
        let answer = self.written()?;
        let at = self.at();
        let name = self.take();
        if !is_name(name) {
            return Error::at(at, "the name of a function should be here");
        }
        self.want("(")?;
        let (arguments, counts) = self.arguments()?;
        let arguments = resolve(arguments, &counts)?;
        let text = self.peek() == "PBL_STRING";
        if text {
            self.take();
        }
        if !self.rest.is_empty() {
            return Error::at(self.at(), format!("{} is not understood here", self.peek()));
        }
        let answer = match (answer.of, answer.pointers) {
            (Type::Char, 1) if text => Answer::String,
            (Type::Void, 0) if !text => Answer::Nothing,
            (of, 0) if of.is_word() && !text => Answer::Word(of),
            (_, 0) if text => {
                return Error::at(answer.at, "PBL_STRING is for a result that is a `const char *`");
            }
            (_, 0) => return Error::at(answer.at, "a portal returns a word: no floating point"),
            (Type::Char, 1) => {
                return Error::at(
                    answer.at,
                    "a pointer into the domain means nothing here: is it PBL_STRING?",
                );
            }
            _ => {
                return Error::at(
                    answer.at,
                    "a pointer into the domain means nothing here: return an integer, or a text (PBL_STRING)",
                );
            }
        };
        Ok(Function { name: name.into(), at, portal, arguments, answer, prototype: shown(declaration) })
    }

    /// Behind the opening parenthesis, and over the closing one. What counts a window is still a name.
    fn arguments(&mut self) -> Result<(Vec<Argument>, Vec<Counted>), Error> {
        let (mut arguments, mut counts) = (Vec::new(), Vec::new());
        let void = self.rest.get(1).is_some_and(|t| t.text == ")") && self.peek() == "void";
        if void {
            self.take();
        }
        while self.peek() != ")" || self.rest.is_empty() {
            if !arguments.is_empty() {
                self.want(",")?;
            }
            if arguments.len() == MAX_ARGUMENTS {
                return Error::at(self.at(), format!("a portal takes at most {MAX_ARGUMENTS} words"));
            }
            let (argument, count) = self.argument(arguments.len())?;
            arguments.push(argument);
            counts.extend(count);
        }
        self.want(")")?;
        Ok((arguments, counts))
    }

    fn argument(&mut self, index: usize) -> Result<(Argument, Option<Counted>), Error> {
        let at = self.at();
        let mut written = self.written()?;
        let name = match self.peek() {
            name if is_name(name) && !name.starts_with("PBL_") => self.take().to_string(),
            _ => format!("argument{}", index + 1),
        };
        if name.ends_with('_') {
            return Error::at(at, format!("{name}: names that end with _ are the bindings' own"));
        }
        if self.peek() == "[" {
            while !matches!(self.take(), "]" | "") {}
            written.pointers += 1;
        }
        let note = self.at();
        let annotation = if self.peek().starts_with("PBL_") { self.take() } else { "" };
        let (of, constant) = (written.of, written.constant);
        let argument = |kind| Argument { name, of, constant, kind };
        let letter = match (annotation, written.pointers) {
            (_, 2..) => return Error::at(at, "a pointer to a pointer cannot go through a portal"),
            ("", 0) if of.is_word() => return Ok((argument(Kind::Word), None)),
            ("", 0) => {
                return Error::at(at, "portals carry words: pass floating point by a pointer with PBL_R(1)");
            }
            ("", _) => {
                return Error::at(
                    note,
                    "this pointer's length is missing: PBL_R(count), PBL_W(count), PBL_O(count) or \
                     PBL_STRING",
                );
            }
            (_, 0) => return Error::at(note, format!("{annotation} is for pointers")),
            ("PBL_STRING", _) if of == Type::Char && constant => return Ok((argument(Kind::String), None)),
            ("PBL_STRING", _) => return Error::at(note, "PBL_STRING is for `const char *`"),
            ("PBL_W" | "PBL_O", _) if constant => {
                return Error::at(
                    note,
                    format!("{annotation} lets the function write, but the type is const: use PBL_R"),
                );
            }
            ("PBL_R", _) => 'r',
            ("PBL_W", _) => 'w',
            ("PBL_O", _) => 'o',
            _ => {
                return Error::at(
                    note,
                    format!("{annotation} is unknown: use PBL_R, PBL_W, PBL_O or PBL_STRING"),
                );
            }
        };
        self.want("(")?;
        let count = Counted { window: index, at: self.at(), text: self.take().to_string() };
        self.want(")")?;
        Ok((argument(Kind::Window { letter, count: Count::Fixed(0) }), Some(count)))
    }
}

/// What is written as the count of a window.
struct Counted {
    window: usize,
    at: At,
    text: String,
}

fn resolve(mut arguments: Vec<Argument>, counts: &[Counted]) -> Result<Vec<Argument>, Error> {
    for Counted { window, at, text } in counts {
        let named = arguments.iter().position(|a| a.name == *text);
        let found = match (named, text.parse::<u64>()) {
            (Some(n), _) if arguments[n].kind == Kind::Word && !matches!(arguments[n].of, Type::Bool) => {
                Count::Argument(n)
            }
            (Some(_), _) => return Error::at(*at, format!("{text} cannot count: it is no integer")),
            (None, Ok(n)) if n > 0 => Count::Fixed(n),
            _ => {
                return Error::at(
                    *at,
                    format!("{text} is neither an argument of this function nor a number above 0"),
                );
            }
        };
        if let Kind::Window { count, .. } = &mut arguments[*window].kind {
            *count = found;
        }
    }
    Ok(arguments)
}

fn is_type_word(word: &str) -> bool {
    let mut one = vec![word];
    matches!(word, "unsigned" | "signed" | "short" | "long") || named(&mut one).is_some()
}

/// The type that these words mean in C.
fn named(words: &mut Vec<&str>) -> Option<Type> {
    words.sort_unstable();
    let integer = |bytes, signed| Some(Type::Integer { bytes, signed });
    match words.join(" ").as_str() {
        "void" => Some(Type::Void),
        "bool" | "_Bool" => Some(Type::Bool),
        "char" => Some(Type::Char),
        "float" => Some(Type::Float { bytes: 4 }),
        "double" => Some(Type::Float { bytes: 8 }),
        "size_t" | "uintptr_t" => Some(Type::Size { signed: false }),
        "ssize_t" | "intptr_t" | "ptrdiff_t" => Some(Type::Size { signed: true }),
        "int8_t" | "char signed" => integer(1, true),
        "uint8_t" | "char unsigned" => integer(1, false),
        "int16_t" | "short" | "int short" | "short signed" | "int short signed" => integer(2, true),
        "uint16_t" | "short unsigned" | "int short unsigned" => integer(2, false),
        "int32_t" | "int" | "signed" | "int signed" => integer(4, true),
        "uint32_t" | "unsigned" | "int unsigned" => integer(4, false),
        "int64_t"
        | "long"
        | "int long"
        | "long signed"
        | "int long signed"
        | "long long"
        | "int long long"
        | "long long signed"
        | "int long long signed" => integer(8, true),
        "uint64_t"
        | "long unsigned"
        | "int long unsigned"
        | "long long unsigned"
        | "int long long unsigned" => integer(8, false),
        _ => None,
    }
}

fn no_type(word: &str) -> String {
    format!(
        "{word} is no type that bindings know: use the integers of C and <stdint.h>, and pointers to these, \
         to float, double, void"
    )
}

/// Words as somebody would write them, without annotations.
fn shown(tokens: &[Token]) -> String {
    let mut text = String::new();
    let mut rest = tokens.iter().peekable();
    while let Some(token) = rest.next() {
        let word = token.text.as_str();
        if word.starts_with("PBL_") {
            if rest.peek().is_some_and(|t| t.text == "(") {
                while rest.next().is_some_and(|t| t.text != ")") {}
            }
            continue;
        }
        let tight =
            text.is_empty() || text.ends_with(['(', '*', '[']) || [",", ")", "(", "[", "]"].contains(&word);
        if !tight {
            text.push(' ');
        }
        text += word;
    }
    text
}

//! Where in the source a line of assembly comes from, if the compiler's line numbers do not say.
//!
//! Problem: assembly outside of functions has no line numbers, and those of a preprocessed file are not the
//! source's. Strategy: preprocessed text says in lines of its own (`# 12 "file.h"`) where it is from; an
//! instruction without a number is looked for in the text of its `asm` statements.

/// The lines of preprocessed text, each with the file and the number that it has in the source.
fn lines(text: &str) -> impl Iterator<Item = (Option<(&str, usize)>, &str)> {
    let mut place: Option<(&str, usize)> = None;
    text.lines().map(move |line| {
        if let Some(next) = marker(line) {
            place = Some(next);
            return (None, line);
        }
        let here = place;
        place = here.map(|(file, number)| (file, number + 1));
        (here, line)
    })
}

/// The place of the line that follows.
fn marker(line: &str) -> Option<(&str, usize)> {
    let (number, rest) = line.strip_prefix("# ")?.split_once(' ')?;
    Some((rest.strip_prefix('"')?.split_once('"')?.0, number.parse().ok()?))
}

/// Of a line, counted from 1.
pub fn of_line(text: &str, number: usize) -> Option<(String, usize)> {
    let (file, number) = lines(text).nth(number.checked_sub(1)?)?.0?;
    Some((file.into(), number))
}

/// Of the first `asm` statement of preprocessed C that has these words in a line of its text.
pub fn of_words(text: &str, words: &str) -> Option<(String, usize)> {
    let mut statement = Statement::default();
    let found = lines(text).find(|(place, line)| place.is_some() && statement.has(line, words));
    found?.0.map(|(file, number)| (file.into(), number))
}

/// Whether what is being read is in an `asm` statement.
#[derive(Default)]
struct Statement {
    /// Its word has been read.
    begun: bool,
    /// Its open parentheses.
    depth: usize,
}

impl Statement {
    /// Goes over one more line of C. Whether some text in such a statement has the words.
    fn has(&mut self, line: &str, words: &str) -> bool {
        let mut rest = line;
        while let Some(at) = rest.find(|c: char| is_word(c) || matches!(c, '"' | '\'' | '(' | ')' | ';')) {
            rest = &rest[at..];
            let first = rest.chars().next().unwrap_or_default();
            let (token, left) = rest.split_at(match first {
                '"' | '\'' => quoted(rest, first),
                _ if is_word(first) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
                _ => 1,
            });
            rest = left;
            match token {
                "asm" | "__asm" | "__asm__" => self.begun = true,
                "(" if self.begun => self.depth += 1,
                ")" => {
                    self.depth = self.depth.saturating_sub(1);
                    self.begun &= self.depth > 0;
                }
                ";" if self.depth == 0 => self.begun = false,
                _ if first == '"' && self.depth > 0 && says(token, words) => return true,
                _ => {}
            }
        }
        false
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Length of a text between quotes, with them.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = true;
    let end = text.find(|c| {
        let ends = c == quote && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |end| end + 1)
}

/// Whether a line or a statement of such a text is these words.
fn says(text: &str, words: &str) -> bool {
    let plain = text.trim_matches('"').replace("\\t", " ").replace("\\n", ";").replace("\\\"", "\"");
    let same = |part: &str| part.split_whitespace().eq(words.split_whitespace());
    plain.split(';').any(|part| same(part) || part.split_once(':').is_some_and(|(_, part)| same(part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# 1 \"a.c\"\n# 1 \"<built-in>\" 1\n# 3 \"b.h\" 2\nint f(void) { return \
        g(\"syscall\"); }\n\nasm (\n  \"raw:\\tsyscall\\n\"\n  \"\\tcall  f\\n\\tret\");\n";

    #[test]
    fn a_line_is_where_the_markers_say() {
        assert_eq!(of_line(TEXT, 4), Some(("b.h".into(), 3)));
        assert_eq!(of_line(TEXT, 7), Some(("b.h".into(), 6)));
        assert_eq!([of_line(TEXT, 0), of_line(TEXT, 3), of_line(TEXT, 99)], [None, None, None]);
        assert_eq!(of_line("# 3 \"x", 1), None);
    }

    #[test]
    fn words_are_looked_for_in_asm_statements() {
        assert_eq!(of_words(TEXT, "\tsyscall"), Some(("b.h".into(), 6)));
        assert_eq!(of_words(TEXT, "call\tf"), Some(("b.h".into(), 7)));
        assert_eq!(of_words(TEXT, "ret"), Some(("b.h".into(), 7)));
        assert_eq!(of_words(TEXT, "return"), None);
        for broken in ["asm(\"\\", "asm('\"", "asm(((", "asm\"é\"", ")\"ret\"", "asm(\"é\";"] {
            assert_eq!(of_words(&format!("# 1 \"a\"\n{broken}"), "ret"), None, "{broken}");
        }
    }
}

//! The line discipline against a plain reference, for the text and for the screen.

use pebble_console::*;
use proptest::prelude::*;

/// One row of a terminal.
#[derive(Default)]
struct Row {
    cells: Vec<char>,
    cursor: usize,
    bytes: Vec<u8>,
}

impl Row {
    fn show(&mut self, byte: u8) {
        self.bytes.push(byte);
        if let Some(rest) = self.bytes.strip_prefix(b"\x1b[") {
            match rest.split_last() {
                Some((b'D', digits)) => {
                    self.cursor -= std::str::from_utf8(digits).unwrap().parse::<usize>().unwrap();
                }
                Some((b'K', _)) => self.cells.truncate(self.cursor),
                _ => return,
            }
        } else if byte == 8 {
            self.cursor -= 1;
        } else if byte == b'\n' {
            (self.cells, self.cursor) = (vec![], 0);
        } else if let Ok(text) = std::str::from_utf8(&self.bytes)
            && byte != 27
        {
            self.cells.truncate(self.cursor);
            self.cells.extend(text.chars());
            self.cursor += 1;
            // A blank that erases is not text.
        } else {
            return;
        }
        self.bytes.clear();
    }

    fn text(&self) -> String {
        self.cells[..self.cursor].iter().collect()
    }
}

fn drain(line: &mut LineDiscipline) -> Vec<u8> {
    let mut all = vec![];
    while line.ready() {
        let (count, words) = line.get(32);
        all.extend(words.iter().flat_map(|w| w.to_le_bytes()).take(count));
    }
    all
}

fn type_all(bytes: &[u8]) -> (Vec<Vec<u8>>, String) {
    let (mut line, mut row, mut lines) = (LineDiscipline::new(), Row::default(), vec![]);
    for byte in bytes {
        let mut echoed = 0;
        line.take(*byte, &mut |b| {
            echoed += 1;
            row.show(b);
        });
        assert!(echoed <= ECHO_BYTES);
        if line.ready() {
            lines.push(drain(&mut line));
        }
    }
    (lines, row.text())
}

#[test]
fn keys() {
    let lines = |text: &str| {
        type_all(text.as_bytes()).0.into_iter().map(|l| String::from_utf8(l).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(lines("one\rtwo\nthree\r\n\r\r"), ["one\n", "two\n", "three\n", "\n", "\n"]);
    assert_eq!(lines("ab\x7f\x08\x08c\r"), ["c\n"]);
    assert_eq!(lines("one two  \x17three\r"), ["one three\n"]);
    assert_eq!(lines("one\x15two\r"), ["two\n"]);
    assert_eq!(lines("part\x04\x04"), ["part", ""]);
    assert_eq!(lines("gone\x03kept\r"), ["kept\n"]);
    assert_eq!(lines("grün\x7f\x7f\r"), ["gr\n"]);
}

#[test]
fn a_long_line_comes_in_parts() {
    let text = [b'x'; LINE_BYTES + 10];
    let (lines, _) = type_all(&[&text[..], b"\r"].concat());
    assert_eq!(lines.concat(), [&text[..], b"\n"].concat());
}

proptest! {
    #[test]
    fn nothing_upsets_it(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
        let mut line = LineDiscipline::new();
        for byte in bytes {
            let mut echoed = 0;
            line.take(byte, &mut |_| echoed += 1);
            prop_assert!(echoed <= ECHO_BYTES);
            drain(&mut line);
        }
    }

    #[test]
    fn text_and_screen_follow_the_reference(keys in prop::collection::vec(
        prop_oneof![8 => "[a-c üλ\t\x01]", 2 => Just("\x7f".into()), 1 => Just("\x15".into()), 1 => Just("\x17".into())], 0..40
    )) {
        let mut model = String::new();
        for key in &keys {
            let key: &String = key;
            match key.as_str() {
                "\x7f" => _ = model.pop(),
                "\x15" => model.clear(),
                "\x17" => {
                    let kept = model.trim_end_matches([' ', '\t']);
                    model.truncate(kept.rfind([' ', '\t']).map_or(0, |at| at + 1));
                }
                text => model.push_str(text),
            }
        }
        let typed = keys.concat();
        let (_, screen) = type_all(typed.as_bytes());
        prop_assert_eq!(screen, model.replace('\t', " ").replace('\x01', "^A"));
        let (lines, _) = type_all((typed + "\r").as_bytes());
        prop_assert_eq!(lines, [(model + "\n").into_bytes()]);
    }
}

//! The editor against a plain reference of the line, and against a terminal.

use pebble_shell::*;
use proptest::prelude::*;

/// As much of a terminal as the editor uses.
struct Terminal {
    columns: usize,
    rows: Vec<Vec<char>>,
    column: usize,
    pending: Vec<u8>,
}

impl Terminal {
    fn new(columns: usize) -> Self {
        Terminal { columns, rows: vec![vec![]], column: 0, pending: vec![] }
    }

    fn row(&mut self) -> &mut Vec<char> {
        self.rows.last_mut().unwrap()
    }

    fn show(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.pending.push(*byte);
            let column = self.column;
            match self.pending.as_slice() {
                [b'\r'] => self.column = 0,
                [b'\n'] => {
                    self.rows.push(vec![]);
                    self.column = 0;
                }
                [7] => {}
                [27] | [27, b'['] => continue,
                [27, b'[', number @ .., end] => match end {
                    b'0'..=b'9' => continue,
                    b'K' => self.row().truncate(column),
                    b'C' => self.column += std::str::from_utf8(number).unwrap().parse::<usize>().unwrap(),
                    b'H' => self.column = 0,
                    b'J' => self.rows = vec![vec![]],
                    _ => panic!("{:?}", self.pending),
                },
                text => match std::str::from_utf8(text) {
                    Ok(text) => {
                        let c = text.chars().next().unwrap();
                        assert!(!c.is_control(), "{:?}", self.pending);
                        let row = self.row();
                        row.resize(row.len().max(column + 1), ' ');
                        row[column] = c;
                        self.column += 1;
                        assert!(self.column < self.columns, "would wrap");
                    }
                    Err(_) => continue,
                },
            }
            self.pending.clear();
        }
    }

    fn text(&self) -> String {
        self.rows.last().unwrap().iter().collect()
    }
}

fn names(_: &str, command: bool) -> Vec<String> {
    let names: &[&str] =
        if command { &["cat", "echo", "exit", "help"] } else { &["etc/", "readme", "really"] };
    names.iter().map(|n| String::from(*n)).collect()
}

fn type_keys(editor: &mut Editor, keys: &str) -> (Vec<Event>, String) {
    let mut terminal = Terminal::new(80);
    let (mut out, mut events) = (vec![], vec![]);
    editor.begin("> ", &mut out);
    for byte in keys.bytes() {
        if let Some(event) = editor.feed(byte, &mut names, &mut out) {
            events.push(event);
            editor.begin("> ", &mut out);
        }
    }
    terminal.show(&out);
    let rows: Vec<String> = terminal.rows.iter().map(|r| r.iter().collect()).collect();
    (events, rows.join("\n"))
}

fn lines(keys: &str) -> Vec<String> {
    let (events, _) = type_keys(&mut Editor::new(80), keys);
    events.into_iter().map(|e| if let Event::Line(line) = e { line } else { format!("{e:?}") }).collect()
}

#[test]
fn keys_edit() {
    assert_eq!(lines("one\rtwo\r\nthree\n"), ["one", "two", "three"]);
    assert_eq!(lines("bc\x01a\x05d\x1b[D\x1b[D\x7f\r"), ["acd"]);
    assert_eq!(lines("abc\x1b[H\x1b[3~\x1b[F\x02\x04\r"), ["b"]);
    assert_eq!(lines("one two\x17three\x15x\x19y\r"), ["xone threey"]);
    assert_eq!(lines("one two\x1bb\x0b\x01\x19-\r"), ["two-one "]);
    assert_eq!(lines("one two three\x1b[1;5D\x1b[1;5D|\x1bf|\r"), ["one |two| three"]);
    assert_eq!(lines("abc\x03\x04d\r"), ["Interrupt", "EndOfInput", "d"]);
    assert_eq!(lines("grün\x7f\x7f\r"), ["gr"]);
}

#[test]
fn history_is_recalled() {
    assert_eq!(lines("one\rtwo\rtwo\r\x1b[A\x1bOA\r"), ["one", "two", "two", "one"]);
    assert_eq!(lines("one\rdraft\x10\x0e!\r"), ["one", "draft!"]);
    assert_eq!(lines("one\r \r\x10x\x10\x10\r"), ["one", " ", "onex"]);
    let mut editor = Editor::new(80);
    let many: String = (0..HISTORY + 5).map(|i| format!("{i}\r")).collect();
    type_keys(&mut editor, &many);
    assert_eq!(editor.history().next(), Some("5"));
    assert_eq!(editor.history().count(), HISTORY);
}

#[test]
fn names_are_completed() {
    assert_eq!(lines("c\t\r"), ["cat "]);
    assert_eq!(lines("cat e\tx\r"), ["cat etc/x"]);
    assert_eq!(lines("cat rea\td\t\r"), ["cat readme "]);
    assert_eq!(lines("cat x | h\t\r"), ["cat x | help "]);
    // What is read and written is a file, also where a command could be.
    assert_eq!(lines("cat <e\tx > rea\td\t\r"), ["cat <etc/x > readme "]);
    assert_eq!(lines("cat 2>>e\t\r"), ["cat 2>>etc/"]);
    assert_eq!(lines("< e\tx h\t\r"), ["< etc/x h"]);
    assert_eq!(lines("zz\t\r"), ["zz"]);
    let (_, screen) = type_keys(&mut Editor::new(80), "e\t\t");
    assert_eq!(screen, "> e\necho  exit  \n> e");
}

#[test]
fn garbage_does_not_stick() {
    assert_eq!(lines("\x1b[999999999999999999;1;1;1Qa\r"), ["9;1;1;1Qa"]);
    assert_eq!(lines("\x1b[12\rb\x1b\x1b[Ac\x1bO\r"), ["", "bc"]);
}

/// What the keys should do to the line, said simply.
fn reference(line: &mut Vec<char>, cursor: &mut usize, cut: &mut Vec<char>, key: &str) {
    let word_left = || {
        let mut at = *cursor;
        while at > 0 && line[at - 1] == ' ' {
            at -= 1;
        }
        while at > 0 && line[at - 1] != ' ' {
            at -= 1;
        }
        at
    };
    match key {
        "\x01" => *cursor = 0,
        "\x05" => *cursor = line.len(),
        "\x02" | "\x1b[D" => *cursor = cursor.saturating_sub(1),
        "\x06" | "\x1b[C" => *cursor = line.len().min(*cursor + 1),
        "\x1bb" => *cursor = word_left(),
        "\x0b" => {
            if *cursor < line.len() {
                *cut = line.split_off(*cursor);
            }
        }
        "\x15" | "\x17" => {
            let from = if key == "\x15" { 0 } else { word_left() };
            if from < *cursor {
                *cut = line.drain(from..*cursor).collect();
            }
            *cursor = from;
        }
        "\x19" => {
            line.splice(*cursor..*cursor, cut.iter().copied());
            *cursor += cut.len();
        }
        "\x7f" if *cursor > 0 => {
            *cursor -= 1;
            line.remove(*cursor);
        }
        "\x1b[3~" if *cursor < line.len() => _ = line.remove(*cursor),
        "\x7f" | "\x1b[3~" | "\x0c" => {}
        text => {
            for c in text.chars() {
                line.insert(*cursor, c);
                *cursor += 1;
            }
        }
    }
}

fn key() -> impl Strategy<Value = String> {
    let special = [
        "\x01", "\x05", "\x02", "\x06", "\x1b[D", "\x1b[C", "\x1bb", "\x0b", "\x15", "\x17", "\x19", "\x7f",
        "\x1b[3~", "\x0c",
    ];
    prop_oneof![2 => "[a-cü ]{1,6}", 1 => prop::sample::select(special.to_vec()).prop_map(String::from)]
}

proptest! {
    #[test]
    fn line_and_screen_equal_the_reference(
        columns in 2usize..40,
        prompt in "[a-z]{0,8}",
        keys in prop::collection::vec(key(), 0..80),
    ) {
        let (mut line, mut cursor, mut cut) = (vec![], 0, vec![]);
        let mut editor = Editor::new(columns);
        let mut terminal = Terminal::new(columns);
        let mut out = vec![];
        editor.begin(&prompt, &mut out);
        let prompt: String = prompt.chars().take((columns - 1) / 2).collect();
        for key in keys {
            reference(&mut line, &mut cursor, &mut cut, &key);
            for byte in key.bytes() {
                prop_assert_eq!(editor.feed(byte, &mut names, &mut out), None);
            }
            terminal.show(&std::mem::take(&mut out));
            let text: String = line.iter().collect();
            let at = editor.line().0[..editor.line().1].chars().count();
            prop_assert_eq!((editor.line().0, at), (text.as_str(), cursor));
            // The row is the prompt and as much of the line as fits, around the cursor.
            let width = (columns - 1 - prompt.len()).max(1);
            let offset = cursor + prompt.len() - terminal.column;
            let window: String = line.iter().skip(offset).take(width).collect();
            prop_assert_eq!(terminal.text(), format!("{prompt}{window}"));
            prop_assert!(cursor - offset <= width);
            prop_assert!(line.len() > width || offset == 0, "all of it fits");
        }
    }

    #[test]
    fn any_bytes_are_safe(columns in 0usize..100, bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let mut editor = Editor::new(columns);
        let mut terminal = Terminal::new(columns.max(2));
        let mut out = vec![];
        editor.begin("pebble> ", &mut out);
        for byte in bytes {
            if let Some(event) = editor.feed(byte, &mut |_, _| vec![], &mut out) {
                if let Event::Line(line) = event {
                    prop_assert!(!line.contains(char::is_control));
                }
                editor.begin("pebble> ", &mut out);
            }
            // The echo of Ctrl-C may be cut off by the edge of a row: it is no part of the line.
            let text = String::from_utf8(std::mem::take(&mut out)).unwrap().replace("^C\n", "\n");
            terminal.show(text.as_bytes());
        }
        // Whatever came before: a sequence that is under way ends here, and typing works.
        let mut end = None;
        for byte in *b"\x15\x0bok\r" {
            end = editor.feed(byte, &mut names, &mut out);
        }
        prop_assert_eq!(end, Some(Event::Line("ok".into())));
    }
}

//! Where command lines come from, and how.
//!
//! | mode | standard input | lines |
//! |---|---|---|
//! | edit | the console, whose control file is this shell's | edited here, in raw mode, after a prompt |
//! | lines | the console of a shell that runs another | edited by the console, after a prompt |
//! | script | the console, after the line `^Ascript` | plain; each is answered by its exit status between two `0x1e` |
//! | batch | anything else | plain |
//!
//! While a program runs the console is in cooked mode, so that it reads lines and Ctrl-C is told to the
//! control file.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use pebble::abi::link::{Startup, unpack};
use pebble::api::Errno;
use pebble::io::{self, File};
use pebble::region::STARTUP;
use pebble_shell::{Editor, Event};

pub const CONSOLE: &str = "/dev/console";
const CONTROL: &str = "/dev/console/ctl";
const COLUMNS: usize = 80;
const PROMPT: &str = "pebble> ";
/// The line that switches to script mode, and the answer.
const SCRIPT: &[u8] = b"\x01script";
const READY: &[u8] = b"\x1eready\x1e\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Edit,
    Lines,
    Script,
    Batch,
}

pub struct Terminal {
    pub mode: Mode,
    input: File,
    output: File,
    control: Option<File>,
    editor: Editor,
    /// Bytes read, from the one at `next` on not used yet.
    pending: [u8; 32],
    next: usize,
    end: usize,
}

/// The path that this program's standard file `n` was opened by.
pub fn standard_path(n: usize) -> String {
    let start = [Startup::STDIN, Startup::STDOUT, Startup::STDERR][n] as u64;
    let words: [u64; 5] = core::array::from_fn(|i| STARTUP.read(start + i as u64 * 8));
    let mut bytes = [0; 40];
    let len = unpack(&words, &mut bytes);
    String::from_utf8_lossy(&bytes[..len]).into_owned()
}

impl Terminal {
    pub fn open() -> Result<Self, Errno> {
        let (input, output) = (io::standard(0)?, io::standard(1)?);
        let console = standard_path(0) == CONSOLE;
        let control = if console { io::open(CONTROL).ok() } else { None };
        let mode = match control {
            Some(_) => Mode::Edit,
            None if console => Mode::Lines,
            None => Mode::Batch,
        };
        let editor = Editor::new(COLUMNS);
        Ok(Terminal { mode, input, output, control, editor, pending: [0; 32], next: 0, end: 0 })
    }

    pub fn input(&self) -> File {
        self.input
    }

    pub fn output(&self) -> File {
        self.output
    }

    /// The console's control file, where a read waits for a Ctrl-C.
    pub fn control(&self) -> Option<File> {
        self.control
    }

    pub fn write(&self, text: &[u8]) {
        let _ = self.output.write(text);
    }

    fn set(&self, command: &[u8]) {
        if let Some(control) = self.control {
            let _ = control.write(command);
        }
    }

    /// Switches between keys as they come and lines.
    pub fn raw(&self, on: bool) {
        self.set(if on { b"rawon" } else { b"rawoff" });
    }

    /// What is typed is for these programs, and what they start, alone.
    pub fn front(&self, domains: &[u16]) {
        self.set(b"front");
        for domain in domains.iter().filter(|domain| **domain != 0) {
            self.set(format!("front {domain}").as_bytes());
        }
    }

    /// The next command line; none at the end of the input. `complete` proposes words, as [`Editor::feed`]
    /// wants it.
    pub fn line(&mut self, complete: &mut dyn FnMut(&str, bool) -> Vec<String>) -> Option<String> {
        match self.mode {
            Mode::Edit => {
                self.raw(true);
                let line = self.edit(complete);
                self.raw(false);
                match line {
                    Some(Typed::Line(line)) => Some(line),
                    Some(Typed::Script) => {
                        self.mode = Mode::Script;
                        self.set(b"echooff");
                        self.write(READY);
                        self.plain()
                    }
                    None => None,
                }
            }
            Mode::Lines => {
                self.write(PROMPT.as_bytes());
                self.plain()
            }
            Mode::Script | Mode::Batch => self.plain(),
        }
    }

    fn byte(&mut self) -> Option<u8> {
        if self.next == self.end {
            self.next = 0;
            self.end = self.input.read(&mut self.pending).unwrap_or(0);
        }
        let byte = self.pending[..self.end].get(self.next).copied();
        self.next += usize::from(byte.is_some());
        byte
    }

    fn plain(&mut self) -> Option<String> {
        let mut line = Vec::new();
        loop {
            match self.byte() {
                Some(b'\n') => break,
                Some(byte) => line.push(byte),
                None if line.is_empty() => return None,
                None => break,
            }
        }
        Some(String::from_utf8_lossy(&line).into_owned())
    }

    fn edit(&mut self, complete: &mut dyn FnMut(&str, bool) -> Vec<String>) -> Option<Typed> {
        let mut out = Vec::new();
        // Bytes that were those of the line that begins a script, as long as all were.
        let mut script = Some(0);
        self.editor.begin(PROMPT, &mut out);
        loop {
            self.write(&out);
            out.clear();
            let byte = self.byte()?;
            script = match script {
                Some(n) if n == SCRIPT.len() && matches!(byte, b'\r' | b'\n') => return Some(Typed::Script),
                Some(n) if SCRIPT.get(n) == Some(&byte) => Some(n + 1),
                _ => None,
            };
            match self.editor.feed(byte, complete, &mut out) {
                None => {}
                Some(Event::Interrupt) => {
                    script = Some(0);
                    self.editor.begin(PROMPT, &mut out);
                }
                Some(Event::Line(line)) => {
                    self.write(&out);
                    return Some(Typed::Line(line));
                }
                Some(Event::EndOfInput) => {
                    self.write(&out);
                    return None;
                }
            }
        }
    }
}

enum Typed {
    Line(String),
    Script,
}

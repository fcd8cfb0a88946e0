//! What the user sees: progress and errors on standard error, in colour on a terminal.

use std::io::{IsTerminal, stderr};
use std::sync::atomic::{AtomicBool, Ordering};

static VERBOSE: AtomicBool = AtomicBool::new(false);

pub fn set_verbose(verbose: bool) {
    VERBOSE.store(verbose, Ordering::Relaxed);
}

pub fn verbose() -> bool {
    VERBOSE.load(Ordering::Relaxed)
}

#[derive(Clone, Copy)]
pub enum Colour {
    Red = 31,
    Green = 32,
    Cyan = 36,
}

/// What was asked for there is not, or cannot be: the user has to ask for something else.
#[derive(Debug)]
pub struct Usage(String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

pub fn usage(what: String) -> anyhow::Error {
    Usage(what).into()
}

/// `text` in colour if `terminal` says that a person looks.
pub fn paint(text: &str, colour: Colour, terminal: bool) -> String {
    if terminal && std::env::var_os("NO_COLOR").is_none() {
        format!("\x1b[{}m{text}\x1b[0m", colour as u8)
    } else {
        text.to_string()
    }
}

fn line(label: &str, colour: Colour, text: &str) {
    eprintln!("{} {text}", paint(&format!("{label:>8}"), colour, stderr().is_terminal()));
}

/// Something has begun, or a part of it is done.
pub fn progress(label: &str, text: &str) {
    line(label, Colour::Cyan, text);
}

pub fn done(text: &str) {
    line("done", Colour::Green, text);
}

pub fn passed(text: &str) {
    line("ok", Colour::Green, text);
}

pub fn failed(text: &str) {
    line("FAILED", Colour::Red, text);
}

pub fn error(text: &str) {
    eprintln!("{} {text}", paint("error:", Colour::Red, stderr().is_terminal()));
}

/// A plain remark.
pub fn note(text: &str) {
    eprintln!("{text}");
}

/// A size for people.
pub fn bytes(n: u64) -> String {
    match n {
        0..10_000 => format!("{n} bytes"),
        10_000..10_000_000 => format!("{} KiB", n >> 10),
        _ => format!("{} MiB", n >> 20),
    }
}

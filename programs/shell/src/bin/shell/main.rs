//! The shell: reads lines, runs what they say, and looks around.
//!
//! * `terminal` lines, from a person or a script
//! * `jobs` programs and pipelines, in the foreground and in the background
//! * `redirect` the files that they read and write
//! * `builtins`, `look` the commands that are the shell's own
//! * `servers` what it asks of the rest of the system
//!
//! A second thread waits for Ctrl-C and ends what runs in the foreground.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

mod builtins;
mod jobs;
mod look;
mod redirect;
mod servers;
mod terminal;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use pebble::api;
use pebble::io::{self, File};
use pebble_shell::STATUS;
use terminal::{Mode, Terminal};

pebble::program!(main);

const BANNER: &str = "Pebble\nType help; Ctrl-A X leaves the emulator.\n";
/// Status of a line that cannot be understood.
const MISUNDERSTOOD: i64 = 2;

pub struct Shell {
    pub terminal: Terminal,
    /// Of the last command.
    pub status: i64,
    /// Names and values, which all programs inherit.
    pub variables: Vec<(String, String)>,
    /// The status with which the shell shall end.
    pub exit: Option<i64>,
    /// Instructions from reset to the first prompt.
    pub booted: u64,
}

/// Says on the standard error output what is wrong.
pub fn complain(what: fmt::Arguments) {
    pebble::eprintln!("shell: {what}");
}

fn main() -> i64 {
    let terminal = match Terminal::open().and_then(|terminal| jobs::prepare().map(|()| terminal)) {
        Ok(terminal) => terminal,
        Err(error) => {
            complain(format_args!("{error}"));
            return 1;
        }
    };
    if let Some(control) = terminal.control()
        && let Err(error) = api::thread_create(await_interrupts, control.0 as u64, 0)
    {
        complain(format_args!("no thread for Ctrl-C: {error}"));
    }
    let mut shell = Shell { terminal, status: 0, variables: Vec::new(), exit: None, booted: 0 };
    for variable in io::environment() {
        if let Some((name, value)) = variable.split_once('=') {
            shell.set(name, value);
        }
    }
    if shell.terminal.mode == Mode::Edit {
        shell.terminal.write(BANNER.as_bytes());
    }
    shell.booted = pebble::portal::counter();
    loop {
        shell.terminal.write(jobs::notes().as_bytes());
        let Some(line) = shell.terminal.line(&mut complete) else { break };
        shell.run_line(&line);
        if let Some(status) = shell.exit {
            return status;
        }
        if shell.terminal.mode == Mode::Script {
            shell.terminal.write(format!("\x1e{}\x1e\n", shell.status).as_bytes());
        }
    }
    if shell.terminal.mode == Mode::Batch { shell.status } else { 0 }
}

impl Shell {
    fn run_line(&mut self, line: &str) {
        match pebble_shell::parse(line) {
            Err(error) => {
                complain(format_args!("{error}"));
                self.status = MISUNDERSTOOD;
            }
            Ok(jobs) => {
                for job in jobs {
                    let job = job.expand(&|name| self.value(name));
                    self.status = jobs::run(self, &job);
                    if self.exit.is_some() || jobs::interrupted() {
                        break;
                    }
                }
            }
        }
    }
}

impl Shell {
    /// What a variable is in a line; nothing if it is not set.
    fn value(&self, name: &str) -> String {
        if name == STATUS {
            return self.status.to_string();
        }
        let set = self.variables.iter().find(|(own, _)| own == name);
        set.map_or_else(String::new, |(_, value)| value.clone())
    }

    pub fn set(&mut self, name: &str, value: &str) {
        match self.variables.iter_mut().find(|(own, _)| own == name) {
            Some((_, own)) => *own = value.into(),
            None => self.variables.push((name.into(), value.into())),
        }
    }

    /// What a command inherits: `NAME=value` each, those that are its own in place of the shell's.
    pub fn environment(&self, own: &[(String, String)]) -> Vec<String> {
        let last =
            own.iter().enumerate().filter(|(n, (name, _))| own[n + 1..].iter().all(|(o, _)| o != name));
        let others = self.variables.iter().filter(|(name, _)| own.iter().all(|(own, _)| own != name));
        others.chain(last.map(|(_, own)| own)).map(|(name, value)| format!("{name}={value}")).collect()
    }
}

/// A thread's work: every byte that the console's control file gives is a Ctrl-C.
extern "C" fn await_interrupts(control: u64) {
    while let Ok(1..) = File(control as usize).read(&mut [0; 1]) {
        jobs::interrupt();
    }
}

/// What a word may become: a command, or a path in the archive.
fn complete(word: &str, command: bool) -> Vec<String> {
    if command && !word.contains('/') {
        let builtins = builtins::names().map(String::from);
        return builtins.chain(builtins::programs()).collect();
    }
    let folder = word.rfind('/').map_or("", |at| &word[..=at]);
    let listing = jobs::read_all(if folder.is_empty() { "/" } else { folder }).unwrap_or_default();
    listing.lines().map(|name| format!("{folder}{name}")).collect()
}

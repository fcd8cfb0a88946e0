//! Pebble's one command, behind the bootstrap script `./pebble`.
//!
//! Each command is a module; what they share:
//! * [`tools`] the programs that Pebble calls, [`build`] components and images, [`c`] components in C,
//!   [`archive`] their files
//! * [`project`] where the user's own systems are, if not in Pebble's tree
//! * [`ui`] what the user sees meanwhile
//!
//! Exit status: 0 done, 1 failed, 2 wrong usage. `run` with a script exits with the status of its last
//! command.
#![forbid(unsafe_code)]

mod archive;
mod bench;
mod build;
mod c;
mod crash;
mod debug;
mod doc;
mod fuzz;
mod inspect;
mod isa;
mod lock;
mod native;
mod new;
mod picolibc;
mod profile;
mod project;
#[cfg(test)]
mod reference;
mod run;
mod sdk;
mod sfi;
mod sources;
mod stamp;
mod test;
mod tools;
mod trusted;
mod ui;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

use crate::tools::Tools;

/// The system that is built when none is named.
const DEFAULT_SYSTEM: &str = "default";

/// Pebble, a component operating system.
#[derive(Parser)]
#[command(name = "pebble", bin_name = "./pebble", version)]
struct Arguments {
    /// Show the output of the tools that are called
    #[arg(short, long, global = true)]
    verbose: bool,
    /// The board that systems are built for, and run on: the name of a file in boards/ (without it: virt, and
    /// all if everything is tested; for tests also `all`)
    #[arg(long, value_name = "NAME", global = true, env = tools::BOARD_VARIABLE, hide_env_values = true)]
    board: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build a system and run it in the emulator
    ///
    /// On a terminal the console is yours, and Ctrl-A X leaves the emulator. Otherwise standard input is fed
    /// to the shell line by line, standard output gets what the commands print, and the exit status is that
    /// of the last one.
    Run(run::Options),
    /// Run the tests: format, host tests, systems in the emulator, budgets
    Test(test::Options),
    /// Try for as long as you like what the tests try for a while
    Fuzz(fuzz::Options),
    /// Measure what operations cost, in guest instructions
    Bench(bench::Options),
    /// Show where a system's instructions go: by domain, by portal, by function
    ///
    /// Runs the system as `run` does, in an emulator that watches it, and prints a table. A flame graph and a
    /// trace that Perfetto opens are written to target/profile/.
    Profile(profile::Options),
    /// Build a system's image
    Build {
        /// Name of a manifest in systems/, or a path to one
        #[arg(default_value = DEFAULT_SYSTEM)]
        system: String,
    },
    /// Make a new component that builds and runs at once
    New(new::Options),
    /// Pack what projects outside of this folder are built with
    Sdk(sdk::Options),
    /// Show what an image holds: domains, portals, sizes
    Inspect(inspect::Options),
    /// Show what a program did when it died: registers, backtrace, portal calls
    Crash(crash::Options),
    /// Run a system that waits for gdb
    Debug(debug::Options),
    /// Print a file as the program `receive` takes it over the console
    Encode {
        /// Any file
        file: PathBuf,
    },
    /// Fault domains inside a Linux process: compile, verify and run untrusted native code
    Sfi(sfi::Options),
    /// Build the book
    Doc {
        /// Where to put it
        #[arg(long, default_value = "target/book")]
        out: PathBuf,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    ui::set_verbose(arguments.verbose);
    match dispatch(arguments.board.as_deref(), arguments.command) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            // Whoever read our output has seen enough: not worth a message.
            let cause = error.root_cause().downcast_ref::<std::io::Error>();
            if cause.is_none_or(|e| e.kind() != std::io::ErrorKind::BrokenPipe) {
                ui::error(&format!("{error:#}"));
            }
            if error.is::<ui::Usage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

fn dispatch(board: Option<&str>, command: Command) -> Result<u8> {
    let every = board == Some(tools::EVERY_BOARD) && matches!(command, Command::Test(_));
    let tools = Tools::find(board.filter(|_| !every).unwrap_or(tools::DEFAULT_BOARD))?;
    match command {
        Command::Run(options) => return run::run(&tools, &options),
        Command::Test(options) => {
            // A project is tested on the board that it runs on.
            let all = every || board.is_none() && !tools.is_project();
            let mut others = if all { tools.other_boards()? } else { Vec::new() };
            others.retain(|other| every || options.takes_in(&other.board.name));
            let boards: Vec<_> = std::iter::once(tools).chain(others).collect();
            return test::test(&boards, &options);
        }
        Command::Bench(options) => return bench::bench(&tools, &options),
        Command::Profile(options) => return profile::profile(&tools, &options),
        Command::Crash(options) => return crash::crash(&tools, &options),
        Command::Fuzz(options) => fuzz::fuzz(&tools, &options)?,
        Command::Build { system } => {
            let built = build::system(&tools, &system)?;
            ui::done(&format!("{} ({})", tools.shown(&built.image), ui::bytes(built.bytes()?)));
        }
        Command::New(options) => new::new(tools, &options)?,
        Command::Sdk(options) => sdk::sdk(&tools, &options)?,
        Command::Inspect(options) => inspect::inspect(&tools, &options)?,
        Command::Debug(options) => return debug::debug(&tools, &options),
        Command::Encode { file } => encode(&file)?,
        Command::Sfi(options) => return sfi::sfi(&tools, &options),
        Command::Doc { out } => doc::doc(&tools, &out)?,
    }
    Ok(0)
}

fn encode(file: &std::path::Path) -> Result<()> {
    use std::io::Write;
    let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let (mut out, mut outcome) = (std::io::stdout().lock(), Ok(()));
    pebble_tools::transfer::encode(&bytes, |line| {
        if outcome.is_ok() {
            outcome = writeln!(out, "{line}");
        }
    });
    Ok(outcome?)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Arguments::command().debug_assert();
    }
}

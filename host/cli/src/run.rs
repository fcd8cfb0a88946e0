//! `pebble run`: the system on a terminal, or as a step of somebody's script.

use std::io::{IsTerminal, stdin, stdout};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use pebble_qemu::{Exit, WithoutStatus};

use crate::crash::Keeper;
use crate::tools::Tools;
use crate::{build, ui};

/// From reset to the shell's prompt, on a busy machine.
pub const BOOT_LIMIT: Duration = Duration::from_secs(60);

#[derive(clap::Args)]
pub struct Options {
    /// Name of a manifest in systems/, or a path to one
    #[arg(default_value = crate::DEFAULT_SYSTEM)]
    system: String,
    /// Run this image instead of building a system
    #[arg(long, conflicts_with = "system")]
    image: Option<PathBuf>,
    /// Let the guest's clock count instructions while it is not idle, so that two runs of a program cost the
    /// same
    #[arg(long)]
    count: bool,
    /// Give up a command of a script after so many seconds
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
}

pub fn run(tools: &Tools, options: &Options) -> Result<u8> {
    let image = match &options.image {
        Some(image) => {
            tools.report(image)?;
            image.clone()
        }
        None => build::system(tools, &options.system)?.image,
    };
    let mut machine = tools.machine()?;
    if options.count {
        machine = machine.counting_with_input();
    }
    if stdin().is_terminal() {
        ui::note("Ctrl-A X leaves the emulator");
        let mut keeper = Keeper::new(tools, &image, stdout().lock(), true)?;
        let exit = machine.interact(&image, &mut keeper);
        keeper.finish();
        return finish(exit?, 0);
    }
    let limit = options.timeout.map(Duration::from_secs);
    let mut guest = machine.start(&image)?;
    let boot = guest.enter_script(BOOT_LIMIT)?;
    if ui::verbose() {
        ui::note(&String::from_utf8_lossy(&boot));
    }
    let lines = stdin().lines().map(|line| line.context("standard input"));
    let told = machine.status == pebble_qemu::Status::Console;
    let out = WithoutStatus::new(stdout().lock(), told);
    let mut keeper = Keeper::new(tools, &image, out, false)?;
    let outcome = guest.run_stream(lines, limit, &mut keeper);
    keeper.finish();
    let (exit, status) = outcome?;
    finish(exit, status)
}

/// The exit status: that of the last command, unless the system did not end well.
pub fn finish(exit: Exit, status: i32) -> Result<u8> {
    match exit {
        Exit::PoweredOff if status == 0 => Ok(0),
        Exit::PoweredOff => Ok(u8::try_from(status).unwrap_or(1)),
        Exit::Failed(status) => Ok(u8::try_from(status).unwrap_or(1)),
        Exit::Panicked(_) | Exit::Killed(_) => bail!("{exit}"),
    }
}

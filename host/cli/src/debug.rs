//! `pebble debug`: the system waits for gdb, which finds the symbols of every component.

use std::fmt::Write;
use std::fs;
use std::io::stdout;
use std::net::TcpListener;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use pebble_image::board::Debugger;

use crate::build::{self, NUCLEUS};
use crate::crash::Keeper;
use crate::tools::Tools;
use crate::ui;

/// Whether the gdb of this name is there, and for this processor: on Debian and Ubuntu plain `gdb` is for the
/// host alone.
fn knows(gdb: &str, architecture: &str) -> bool {
    let set = format!("set architecture {architecture}");
    let asked = Command::new(gdb)
        .args(["--batch", "-nx", "-ex", &set, "-ex", "show architecture"])
        .stdin(Stdio::null())
        .output();
    asked.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).contains(architecture))
}

#[derive(clap::Args)]
pub struct Options {
    /// Name of a manifest in systems/, or a path to one
    #[arg(default_value = crate::DEFAULT_SYSTEM)]
    system: String,
    /// TCP port of this machine on which gdb is awaited
    #[arg(long, default_value_t = 1234)]
    port: u16,
}

pub fn debug(tools: &Tools, Options { system, port }: &Options) -> Result<u8> {
    let built = build::system(tools, system)?;
    let Debugger { programs, architecture } = &tools.board.debugger;
    let script = built.image.with_extension("gdb");
    let mut commands = format!("set architecture {architecture}\nset confirm off\n");
    if let Some(nucleus) = built.symbols.get(NUCLEUS) {
        writeln!(commands, "file {}", nucleus.display())?;
    }
    // Components are linked at the same addresses, each in a domain of its own: `only NAME` picks one.
    for (name, elf) in built.symbols.iter().filter(|(name, _)| *name != NUCLEUS) {
        writeln!(commands, "add-symbol-file {}", elf.display())?;
        let only = name.rsplit('/').next().unwrap_or(name).replace('-', "_");
        writeln!(commands, "define only_{only}\n  symbol-file\n  file {}\nend", elf.display())?;
    }
    writeln!(commands, "target remote 127.0.0.1:{port}")?;
    fs::write(&script, commands)?;

    // Before anybody is told to attach there, to a system that somebody else has started.
    drop(TcpListener::bind(("127.0.0.1", *port)).with_context(|| {
        format!(
            "port {port} is taken, perhaps by another `./pebble debug`: end that, or name a port with --port"
        )
    })?);
    let gdb = programs.iter().find(|name| knows(name, architecture));
    if gdb.is_none() {
        ui::note("there is no gdb for this board here; on Debian and Ubuntu: apt-get install gdb-multiarch");
    }
    ui::note("the system waits; in another terminal, type:");
    ui::note(&format!(
        "  {} -x {}",
        gdb.or(programs.first()).map_or("gdb", String::as_str),
        tools.shown(&script)
    ));
    ui::note("components share addresses: only_NAME, such as only_shell, leaves the symbols of one of them");
    ui::note("Ctrl-A X leaves the emulator");
    let mut machine = tools.machine()?;
    machine.debug = Some(*port);
    let mut keeper = Keeper::new(tools, &built.image, stdout().lock(), true)?;
    let exit = machine.interact(&built.image, &mut keeper);
    keeper.finish();
    crate::run::finish(exit?, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_debugger_is_proposed_that_says_it_knows_the_board() {
        // `echo` says what it is told to set; `true` nothing.
        assert_eq!(["no-such-gdb", "true", "echo"].map(|gdb| knows(gdb, "any")), [false, false, true]);
    }
}

//! `pebble debug`: the system waits for gdb, which finds the symbols of every component.

use std::fmt::Write;
use std::fs;

use anyhow::Result;
use pebble_qemu::Machine;

use crate::build::{self, NUCLEUS};
use crate::tools::{Tools, in_path};
use crate::ui;

pub fn debug(tools: &Tools, system: &str) -> Result<()> {
    let built = build::system(tools, system)?;
    let script = built.image.with_extension("gdb");
    let mut commands = String::from("set architecture riscv:rv64\nset confirm off\n");
    if let Some(nucleus) = built.symbols.get(NUCLEUS) {
        writeln!(commands, "file {}", nucleus.display())?;
    }
    // Components are linked at the same addresses, each in a domain of its own: `only NAME` picks one.
    for (name, elf) in built.symbols.iter().filter(|(name, _)| *name != NUCLEUS) {
        writeln!(commands, "add-symbol-file {}", elf.display())?;
        let only = name.replace('-', "_");
        writeln!(commands, "define only_{only}\n  symbol-file\n  file {}\nend", elf.display())?;
    }
    commands.push_str("target remote :1234\n");
    fs::write(&script, commands)?;

    let gdb =
        ["gdb-multiarch", "riscv64-unknown-elf-gdb", "gdb"].into_iter().find(|name| in_path(name).is_some());
    ui::note("the system waits; in another terminal, type:");
    ui::note(&format!("  {} -x {}", gdb.unwrap_or("gdb-multiarch"), tools.shown(&script)));
    ui::note("components share addresses: only_NAME, such as only_shell, leaves the symbols of one of them");
    ui::note("Ctrl-A X leaves the emulator");
    let mut machine = Machine::new(tools.qemu()?);
    machine.debug = true;
    machine.interact(&built.image)?;
    Ok(())
}

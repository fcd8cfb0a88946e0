//! Tests of whole systems in the emulator: the registry.
//!
//! A test is a function that gets a [`Context`]; add it to [`ALL`].

use anyhow::{Result, ensure};
use pebble_qemu::Exit;

use super::context::{Context, LIMIT, output};

pub struct SystemTest {
    name: &'static str,
    /// Left out by `--quick`.
    pub slow: bool,
    run: fn(&mut Context) -> Result<()>,
}

impl SystemTest {
    const fn new(name: &'static str, run: fn(&mut Context) -> Result<()>) -> Self {
        SystemTest { name, slow: false, run }
    }

    #[expect(dead_code, reason = "no test is slow yet")]
    const fn slow(name: &'static str, run: fn(&mut Context) -> Result<()>) -> Self {
        SystemTest { name, slow: true, run }
    }

    pub fn group(&self) -> String {
        format!("system.{}", self.name)
    }

    pub fn run(&self, context: &mut Context) -> Result<()> {
        (self.run)(context)
    }
}

/// Every system test, in the order in which they run.
pub const ALL: &[SystemTest] = &[
    SystemTest::new("boot.prompt", boots_to_a_prompt),
    SystemTest::new("pipe.three-programs", a_pipeline_of_three_programs),
];

fn boots_to_a_prompt(context: &mut Context) -> Result<()> {
    let mut guest = context.prompt("default")?;
    guest.send(b"exit\n");
    let exit = guest.wait_exit(LIMIT)?;
    ensure!(exit == Exit::PoweredOff, "{exit}");
    Ok(())
}

fn a_pipeline_of_three_programs(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("default")?;
    let printed = output(&mut guest, "echo one two three | cat | wc")?;
    let counts: Vec<&str> = printed.split_whitespace().take(3).collect();
    ensure!(counts == ["1", "3", "14"], "wc printed {printed:?}");
    Ok(())
}

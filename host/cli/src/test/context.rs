//! What a system test works with: images, built once each, guests booted from them, and a measurement.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use pebble_qemu::{Guest, PROMPT};

use crate::bench;
use crate::build;
use crate::run::BOOT_LIMIT;
use crate::tools::Tools;

/// For one command that a test runs.
pub const LIMIT: Duration = Duration::from_secs(30);

/// What one test has made and others want too.
#[derive(Default)]
pub struct Made {
    /// The image of each system that a test asked for, or why there is none. Tests that run side by side
    /// build one at a time.
    images: Mutex<BTreeMap<String, Result<PathBuf, String>>>,
    /// A whole measurement, once there is one.
    rows: Mutex<Option<Vec<bench::Row>>>,
}

impl Made {
    pub fn rows(&self) -> Option<Vec<bench::Row>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

pub struct Context<'a> {
    tools: &'a Tools,
    made: &'a Made,
}

impl<'a> Context<'a> {
    pub fn new(tools: &'a Tools, made: &'a Made) -> Self {
        Context { tools, made }
    }

    pub fn tools(&self) -> &'a Tools {
        self.tools
    }

    /// The image of a system.
    pub fn image(&mut self, system: &str) -> Result<PathBuf> {
        let build =
            || build::system(self.tools, system).map(|built| built.image).map_err(|e| format!("{e:#}"));
        let mut images = self.made.images.lock().unwrap_or_else(PoisonError::into_inner);
        let image = images.entry(system.into()).or_insert_with(build);
        image.clone().map_err(|error| anyhow!("{error}"))
    }

    /// All rows of `pebble bench`, measured now.
    pub fn measure(&self) -> Result<Vec<bench::Row>> {
        let rows = bench::measure(self.tools, &[])?;
        *self.made.rows.lock().unwrap_or_else(PoisonError::into_inner) = Some(rows.clone());
        Ok(rows)
    }

    /// A guest from reset.
    pub fn start(&mut self, system: &str) -> Result<Guest> {
        let image = self.image(system)?;
        let machine = self.tools.machine()?;
        // An emulator that is slow for the wall's clock would find each short pause over.
        let machine = if self.tools.is_default() { machine } else { machine.counting_with_input() };
        Ok(machine.start(&image)?)
    }

    /// How often something is repeated that is so often on the first board. What repetition finds is mostly
    /// in what all boards share, and their emulators are slower.
    pub fn times(&self, first: u64) -> u64 {
        if self.tools.is_default() { first } else { (first / 5).max(1) }
    }

    /// A guest as `run --count` starts it, in script mode.
    pub fn shell_counting(&mut self, system: &str) -> Result<Guest> {
        let image = self.image(system)?;
        let mut guest = self.tools.machine()?.counting_with_input().start(&image)?;
        guest.enter_script(BOOT_LIMIT)?;
        Ok(guest)
    }

    /// A guest whose shell waits for a person.
    pub fn prompt(&mut self, system: &str) -> Result<Guest> {
        let mut guest = self.start(system)?;
        guest.expect(PROMPT, BOOT_LIMIT)?;
        Ok(guest)
    }

    /// A guest whose shell is in script mode.
    pub fn shell(&mut self, system: &str) -> Result<Guest> {
        let mut guest = self.start(system)?;
        guest.enter_script(BOOT_LIMIT)?;
        Ok(guest)
    }
}

/// Runs a line that must succeed, and returns what it printed.
pub fn output(guest: &mut Guest, line: &str) -> Result<String> {
    let reply = guest.run_line(line, LIMIT)?;
    ensure!(reply.status == 0, "{line:?} ended with status {}: {}", reply.status, reply.output);
    Ok(reply.output)
}

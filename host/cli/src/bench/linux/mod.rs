//! `pebble bench --against linux`: the same operations on Linux, on the same board.
//!
//! **Problem.** Figures mean something beside those of a system that everybody knows. **Strategy.** Debian's
//! kernel as shipped ([`kernel`]) boots in the same emulator with the same flags; its first program, in
//! `bench/linux/`, measures each operation as Pebble's bench does and prints rows of the same form
//! ([`initramfs`]). Whole programs are built from the sources of Pebble's components ([`sysroot`]). A row of
//! Linux has the id of Pebble's: `bench/linux/rows.toml` says which there are and what differs in meaning
//! ([`Listed`]). **Invariants.** What Linux prints is what the list has; both sides count the instructions of
//! user, kernel and firmware, and medians are compared.

mod debian;
mod initramfs;
mod kernel;
mod sysroot;
mod table;

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use pebble_qemu::{Error, Exit};
use serde::Deserialize;

use self::debian::Debian;
use super::catalogue::Catalogue;
use super::{Options, Row, Rows, measure_those};
use crate::tools::Tools;
use crate::ui;

/// For the kernel. A panic ends the emulator.
const COMMAND_LINE: &str = "console=ttyS0 quiet panic=-1";
/// It takes about a minute.
const LIMIT: Duration = Duration::from_secs(600);

/// `bench/linux/rows.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    row: Vec<Listed>,
}

/// A row that Linux has.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    id: String,
    /// What it is there, in a few words.
    does: String,
    /// What it means else than Pebble's row.
    differs: Option<String>,
}

/// A row of Linux beside Pebble's, if Pebble has one.
struct Pair {
    listed: Listed,
    linux: Row,
    pebble: Option<Row>,
}

impl Pair {
    /// Linux divided by Pebble.
    fn ratio(&self) -> Option<Row> {
        let pebble = self.pebble.as_ref()?;
        Some(self.linux.ratio(&format!("ratio.{}", self.linux.id), pebble))
    }

    /// For programs: Pebble's row, Linux's, and the ratio.
    fn rows(&self) -> impl Iterator<Item = Row> {
        let linux = Row { id: format!("linux.{}", self.linux.id), ..self.linux.clone() };
        self.pebble.clone().into_iter().chain([linux]).chain(self.ratio())
    }
}

/// Measures both, and reports. The exit status.
pub fn bench(tools: &Tools, options: &Options) -> Result<u8> {
    ensure!(
        tools.is_default(),
        "Linux is measured on board {} alone, for which Debian has a kernel: leave out --board",
        crate::tools::DEFAULT_BOARD
    );
    let mut listed = listed(tools)?;
    if let Some(pattern) = options.only.iter().find(|p| !listed.iter().any(|row| row.id.contains(*p))) {
        let ids: Vec<_> = listed.iter().map(|row| row.id.as_str()).collect();
        ui::error(&format!("Linux has no row with {pattern:?} in its id; it has {}", ids.join(", ")));
        return Ok(2);
    }
    let release = fetched(tools)?;
    let rows = measured(tools, &listed)?;
    // Whole programs too, which Linux has measured already.
    listed.retain(|row| options.only.is_empty() || super::is_wanted(&options.only, &row.id));
    let catalogue = Catalogue::load(tools)?;
    let of_both = |id: &str| catalogue.has(id) && listed.iter().any(|row| row.id == id);
    let ours = if listed.iter().any(|row| of_both(&row.id)) {
        measure_those(tools, &of_both, false)?
    } else {
        Vec::new()
    };
    let pairs = paired(listed, &rows, &ours)?;
    let rows: Vec<_> = pairs.iter().flat_map(Pair::rows).collect();
    super::report(tools, options, &rows, &table::render(&pairs, &release))?;
    Ok(0)
}

/// Sees to it that all that is Debian's is there; the name of the kernel's package.
fn fetched(tools: &Tools) -> Result<String> {
    let mut debian = Debian::new(tools)?;
    let release = kernel::fetched(&mut debian)?;
    sysroot::fetched(&mut debian)?;
    debian.forget()?;
    Ok(release)
}

fn listed(tools: &Tools) -> Result<Vec<Listed>> {
    let path = initramfs::sources(tools).join("rows.toml");
    let text = fs::read_to_string(&path).with_context(|| tools.shown(&path))?;
    let list: List = toml::from_str(&text).with_context(|| tools.shown(&path))?;
    Ok(list.row)
}

fn paired(listed: Vec<Listed>, linux: &[Row], pebble: &[Row]) -> Result<Vec<Pair>> {
    let find = |rows: &[Row], id: &str| rows.iter().find(|row| row.id == id).cloned();
    let pair = |listed: Listed| {
        let linux =
            find(linux, &listed.id).with_context(|| format!("Linux has not measured {}", listed.id))?;
        Ok(Pair { pebble: find(pebble, &listed.id), linux, listed })
    };
    listed.into_iter().map(pair).collect()
}

/// Boots Linux, which measures all its rows: that takes about a minute.
fn measured(tools: &Tools, listed: &[Listed]) -> Result<Vec<Row>> {
    let initramfs = initramfs::packed(tools)?;
    let mut machine = tools.machine()?.counting();
    machine.extra.extend(["-initrd".into(), initramfs.into(), "-append".into(), COMMAND_LINE.into()]);
    ui::progress("booting", "Linux");
    let mut sink = Rows::default();
    let outcome = machine.start(&kernel::image(tools))?.run_to_end(LIMIT, &mut sink);
    if let Some(error) = sink.error {
        bail!(error);
    }
    let said = sink.said.join("\n  ");
    match outcome {
        Ok(Exit::PoweredOff) if sink.ended => {}
        Ok(exit) => bail!("{exit}, but Linux has not measured all; its console's last lines:\n  {said}"),
        Err(error @ Error::TimedOut { .. }) => return Err(error).context("Linux has not measured all"),
        Err(error) => return Err(error.into()),
    }
    let printed: Vec<_> = sink.rows.iter().map(|row| &row.id).collect();
    let expected: Vec<_> = listed.iter().map(|row| &row.id).collect();
    ensure!(printed == expected, "bench/linux/rows.toml lists {expected:?}, but Linux measures {printed:?}");
    Ok(sink.rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub fn pair(id: &str, linux: u64, pebble: Option<u64>, differs: Option<&str>) -> Pair {
        let row = |value| Row::exact(id.into(), "instructions", value);
        let listed = Listed { id: id.into(), does: "read".into(), differs: differs.map(String::from) };
        Pair { listed, linux: row(linux), pebble: pebble.map(row) }
    }

    #[test]
    fn programs_are_told_both_and_the_ratio() {
        let told = |pair: Pair| pair.rows().map(|row| (row.id, row.p50)).collect::<Vec<_>>();
        let expected = [("x".into(), 15.0), ("linux.x".into(), 332.0), ("ratio.x".into(), 22.13)];
        assert_eq!(told(pair("x", 332, Some(15), None)), expected);
        assert_eq!(told(pair("x", 332, None, None)), [("linux.x".into(), 332.0)]);
    }

    #[test]
    fn what_is_listed_must_have_been_measured() {
        let listed = || {
            let row = "[[row]]\nid = 'x'\ndoes = 'read'";
            toml::from_str::<List>(row).unwrap().row
        };
        let row = |id: &str| [Row::exact(id.into(), "instructions", 1)];
        assert!(paired(listed(), &row("x"), &[]).unwrap()[0].pebble.is_none());
        assert!(paired(listed(), &row("x"), &row("x")).unwrap()[0].pebble.is_some());
        let error = paired(listed(), &row("y"), &[]).err().unwrap().to_string();
        assert_eq!(error, "Linux has not measured x");
    }
}

//! `pebble bench`: what operations cost, in guest instructions, beside the papers' figures.
//!
//! The system `bench` measures as soon as it is up, prints a line `@bench {json}` for each row and `@bench
//! end`, and powers off: without input from outside, two runs print the same. Programs that measure
//! themselves ([`PROGRAMS`]) are started from the shell of a system of their own, as a user would. The host
//! adds the sizes, which it knows from the image, and the papers' figures; budgets are in
//! `bench/budgets.toml`. Which rows there are is known beforehand ([`catalogue`]): who asks for some waits
//! for no others, and one that does not exist is refused before anything is measured. [`linux`] measures the
//! same operations there.

pub mod budget;
mod catalogue;
mod linux;
mod papers;
mod plot;
mod table;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use pebble_image::Report;
use pebble_qemu::Exit;
pub use pebble_rows::Row;
use serde::Serialize;

use self::catalogue::Catalogue;
use crate::tools::Tools;
use crate::{build, ui};

/// The manifest of the system that measures.
const SYSTEM: &str = "bench";
/// The one that measures under hostile load.
const LOAD: &str = "load";
/// The system whose shell runs programs that measure themselves, and what it is told to run. Under `count` it
/// is the same program.
const PROGRAMS: &str = "bench-programs";
const LINES: &[&str] = &[
    "measure ping-pong sandbox.plain",
    "count measure ping-pong sandbox.count1",
    "count count measure ping-pong sandbox.count2",
    "measure open portal.open.program",
    "count measure open portal.open.sandboxed",
    "measure fork domain_fork",
    "work read-1 file.read.1",
    "work read-4k file.read.4k",
    "work read-64k file.read.64k",
    "work write-4k file.write.4k",
    "work map file.map.64k",
    "work open-close file.open_close",
    "work open-new file.open_close.new",
    "work pipe-4k pipe.bulk.4k",
    "work pipe-64k pipe.bulk.64k",
    "work flip pipe.flip.64k",
    "work spawn spawn.small",
    "work spawn-main spawn.main",
    "work spawn-end spawn.end",
    "work fork-wait fork.wait",
    "work fault-zero vm.fault.zero",
    "work fault-dirty vm.fault.dirty",
    "replacement trivial replace.trivial",
    "replacement scheduler replace.scheduler",
];
/// The same for whole programs, which take a minute. So they are measured when they are asked for by name, or
/// against another system.
const WHOLE: &str = "macro";
const WHOLE_LINES: &[&str] =
    &["whole lua macro.lua", "whole sqlite macro.sqlite", "whole gzip macro.gzip", "whole spawn macro.spawn"];
/// What a row is so many times of another, in a row of its own.
const RATIOS: &[(&str, &str, &str)] = &[
    ("sandbox.ratio1", "sandbox.count1", "sandbox.plain"),
    ("sandbox.ratio2", "sandbox.count2", "sandbox.plain"),
];
/// The row of the default system's start.
const BOOT: &str = "boot.prompt";
/// The system whose size is measured.
const CORE: &str = "core";
const PAGE: u64 = pebble_abi::map::PAGE;
/// Begins each row on the guest's console, and its last line.
const ROW: &str = "@bench ";
const END: &str = "end";
const LIMIT: Duration = Duration::from_secs(900);

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Options {
    #[command(subcommand)]
    of: Option<Other>,
    /// Write the rows as JSON to this file; `-`: to standard output, and the table to standard error
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
    /// Where to write the plot
    #[arg(long, value_name = "FILE", default_value = "target/bench.svg")]
    svg: PathBuf,
    /// Measure only rows whose id contains this, or one of these: PATTERN,PATTERN. Without it: all but
    /// macro.*, whole programs, which take minutes
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    only: Vec<String>,
    /// Measure the same operations of another system on the same board, and print both and their ratio
    #[arg(long, value_name = "SYSTEM")]
    against: Option<Against>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Against {
    /// Debian's kernel for riscv64 (142 MB are fetched, once, into target/linux), in its best case
    Linux,
}

#[derive(clap::Subcommand)]
enum Other {
    /// Fault domains, against native code and other sandboxes (`pebble bench sfi --help`)
    #[command(disable_help_flag = true)]
    Sfi {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
}

/// Everything that `--json` tells.
#[derive(Serialize)]
struct Output<'a> {
    board: &'a str,
    qemu: String,
    commit: String,
    rows: &'a [Row],
}

pub fn bench(tools: &Tools, options: &Options) -> Result<u8> {
    if let Some(Other::Sfi { arguments }) = &options.of {
        return crate::sfi::bench(tools, arguments).map(|()| 0);
    }
    if let Some(Against::Linux) = options.against {
        return linux::bench(tools, options);
    }
    if tools.is_project() {
        let other = "`./pebble profile` counts the instructions of a project's systems";
        return Err(ui::usage(format!("bench measures Pebble itself, in its own folder; {other}")));
    }
    if let Some(unknown) = Catalogue::load(tools)?.unknown(&options.only) {
        ui::error(&unknown);
        return Ok(2);
    }
    let rows = measure(tools, &options.only)?;
    let budgets = budget::load(tools)?;
    let table = table::render(&rows, &budgets, io::IsTerminal::is_terminal(&io::stdout()));
    report(tools, options, &rows, &table)?;
    fs::create_dir_all(options.svg.parent().unwrap_or(&options.svg))?;
    plot::write(&options.svg, &rows)?;
    ui::done(&tools.shown(&options.svg));
    Ok(0)
}

/// The table for people, the rows for programs.
fn report(tools: &Tools, options: &Options, rows: &[Row], table: &str) -> Result<()> {
    let to_stdout = options.json.as_ref().is_some_and(|file| file.as_os_str() == "-");
    if to_stdout {
        eprint!("{table}");
    } else {
        io::stdout().write_all(table.as_bytes())?;
    }
    if let Some(file) = &options.json {
        let report =
            Output { board: &tools.board.name, qemu: qemu_version(tools)?, commit: commit(tools), rows };
        let text = serde_json::to_string_pretty(&report)? + "\n";
        if to_stdout {
            io::stdout().write_all(text.as_bytes())?;
        } else {
            fs::write(file, text).with_context(|| file.display().to_string())?;
            ui::done(&tools.shown(file));
        }
    }
    Ok(())
}

/// Whether the id contains one of the patterns; without any, all are wanted but those of whole programs.
fn is_wanted(only: &[String], id: &str) -> bool {
    let whole = || WHOLE_LINES.iter().any(|line| row_of(line) == id);
    if only.is_empty() { !whole() } else { only.iter().any(|pattern| id.contains(pattern)) }
}

/// Measures the rows whose ids contain one of the patterns (without any: all).
pub fn measure(tools: &Tools, only: &[String]) -> Result<Vec<Row>> {
    let rows = measure_those(tools, &|id| is_wanted(only, id), only.is_empty())?;
    ensure!(!rows.is_empty(), "no row has {} in its id", only.join(" or "));
    Ok(rows)
}

/// Measures some rows, or all; in the order of the papers' table, then of their ids.
fn measure_those(tools: &Tools, wanted: &dyn Fn(&str) -> bool, all: bool) -> Result<Vec<Row>> {
    let catalogue = Catalogue::load(tools)?;
    let mut rows = Vec::new();
    if catalogue.sizes().any(wanted) {
        rows.extend(sizes(&build::system(tools, CORE)?.report));
    }
    for (name, printed) in [(SYSTEM, &catalogue.system), (LOAD, &catalogue.load)] {
        if let Some(last) = printed.iter().rfind(|id| wanted(id)) {
            rows.extend(system(tools, name, (!all).then_some(last))?);
        }
    }
    rows.extend(programs(tools, wanted)?);
    if wanted(BOOT) {
        rows.push(boot(tools)?);
    }
    if all {
        catalogue.check(&rows)?;
    }
    rows.retain(|row| wanted(&row.id));
    for row in &mut rows {
        in_instructions(row, tick(tools));
        row.paper = papers::figure(&row.id).map(|figure| figure as f64);
    }
    rows.sort_by_key(|row| papers::rank(&row.id));
    Ok(rows)
}

/// Where a processor's finest counter is its clock: the instructions for each tick of it, as the emulator
/// takes a nanosecond for one.
pub fn tick(tools: &Tools) -> f64 {
    (1e9 / tools.board.time_hz as f64).round()
}

fn in_instructions(row: &mut Row, tick: f64) {
    if row.unit == "ticks" {
        row.unit = "instructions".into();
        let Row { min, mean, p50, p99, max, .. } = row;
        // Guests count in thousandths.
        let convert = |figure: &mut f64| *figure = (*figure * tick * 1000.0).round() / 1000.0;
        [min, mean, p50, p99, max].into_iter().for_each(convert);
    }
}

/// What a measuring system prints, all of it or up to the row of this id.
fn system(tools: &Tools, name: &str, last: Option<&String>) -> Result<Vec<Row>> {
    let image = build::system(tools, name)?.image;
    let mut guest = tools.machine()?.counting().start(&image)?;
    let mut sink = Rows { last: last.cloned(), ..Rows::default() };
    match guest.run_to_end(LIMIT, &mut sink) {
        Err(pebble_qemu::Error::Io(_)) if sink.ended && last.is_some() => {}
        exit => ensure!(exit? == Exit::PoweredOff, "the guest that measures did not power off"),
    }
    if let Some(error) = sink.error {
        bail!(error);
    }
    ensure!(sink.ended, "the guest stopped before the last row");
    Ok(sink.rows)
}

/// Whether somebody types for this row, or for those that it is of: then ticks of the timer come at other
/// times in each run, and only the median is the same.
pub fn is_typed(id: &str) -> bool {
    id == BOOT || typed().any(|line| row_of(line) == id) || RATIOS.iter().any(|(ratio, ..)| *ratio == id)
}

/// How exact the figure of a row is, where a clock's is exact to a tick: a ratio is as exact as both that it
/// is of.
pub fn grain(rows: &[Row], row: &Row, tick: f64) -> f64 {
    let Some((_, of, to)) = RATIOS.iter().find(|(id, ..)| row.id == *id) else { return tick };
    let part = |id: &str| rows.iter().find(|row| row.id == id).map_or(0.0, |row| tick / row.p50);
    row.p50 * (part(of) + part(to))
}

/// What is typed at a shell.
fn typed() -> impl Iterator<Item = &'static str> {
    LINES.iter().chain(WHOLE_LINES).copied()
}

/// What programs say of themselves, and how much dearer some are than others.
fn programs(tools: &Tools, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Row>> {
    let ratios = || RATIOS.iter().filter(|(id, ..)| wanted(id));
    let needed = |id: &str| wanted(id) || ratios().any(|(_, of, to)| id == *of || id == *to);
    let mut rows = Vec::new();
    for (system, lines) in [(PROGRAMS, LINES), (WHOLE, WHOLE_LINES)] {
        let lines: Vec<_> = lines.iter().filter(|line| needed(row_of(line))).collect();
        if !lines.is_empty() {
            rows.extend(lines_of(tools, system, &lines)?);
        }
    }
    for (id, of, to) in ratios() {
        let row = |id: &str| rows.iter().find(|row| row.id == id).with_context(|| format!("no row {id}"));
        let ratio = row(of)?.ratio(id, row(to)?);
        rows.push(ratio);
    }
    Ok(rows)
}

/// Rows that these lines print, typed at the shell of a system.
fn lines_of(tools: &Tools, system: &str, lines: &[&&str]) -> Result<Vec<Row>> {
    let image = build::system(tools, system)?.image;
    let mut guest = tools.machine()?.counting_with_input().start(&image)?;
    guest.enter_script(crate::run::BOOT_LIMIT)?;
    let mut sink = Rows::default();
    for line in lines {
        let reply = guest.run_line(line, LIMIT)?;
        ensure!(reply.status == 0, "{line:?} ended with {}: {}", reply.status, reply.output);
        writeln!(sink, "{}", reply.output)?;
    }
    match sink.error {
        Some(error) => bail!(error),
        None => Ok(sink.rows),
    }
}

/// The row that a line measures: its last word.
fn row_of(line: &str) -> &str {
    line.rsplit(' ').next().unwrap_or(line)
}

/// Instructions from reset to the prompt of the default system, which its shell has noted. The question is
/// typed before the guest has looked: one that waits for input, with such a clock, waits until the end of
/// time.
fn boot(tools: &Tools) -> Result<Row> {
    let image = build::system(tools, crate::DEFAULT_SYSTEM)?.image;
    let mut guest = tools.machine()?.counting_typed_ahead().start(&image)?;
    // The first byte may go to the firmware.
    guest.send(b"\nboot\n");
    guest.expect("prompt after ", crate::run::BOOT_LIMIT)?;
    let said = guest.expect("\n", crate::run::BOOT_LIMIT)?;
    let said = String::from_utf8_lossy(&said).into_owned();
    let (count, unit) = said.trim_end().split_once(' ').context("the shell did not say when it was ready")?;
    Ok(Row::exact(BOOT.into(), unit, count.parse().context(said.clone())?))
}

/// What the image of the essential system knows: the nucleus's code and constants, each essential server's
/// code and data, and the resident size of the essential system.
fn sizes(report: &Report) -> Vec<Row> {
    let row = |id: String, bytes| Row::exact(id, "bytes", bytes);
    let servers = report.domains.iter().filter(|domain| domain.core);
    let mut rows: Vec<Row> =
        servers.map(|d| row(format!("size.server.{}", d.name), d.text + d.rodata + d.data)).collect();
    rows.push(row("size.nucleus".into(), report.nucleus_bytes));
    // What the papers' figure counts, and with the VM manager and the name server.
    rows.push(row("size.system".into(), u64::from(report.papers_pages()) * PAGE));
    rows.push(row("size.core".into(), u64::from(report.essential_pages()) * PAGE));
    rows
}

/// Takes the rows out of the console's output.
#[derive(Default)]
struct Rows {
    line: Vec<u8>,
    rows: Vec<Row>,
    /// The row after which nobody wants more.
    last: Option<String>,
    ended: bool,
    error: Option<String>,
    /// The last lines that were none.
    said: Vec<String>,
}

/// So many of them are kept.
const SAID: usize = 20;

impl Rows {
    fn take(&mut self) {
        let line = String::from_utf8_lossy(&self.line).into_owned();
        self.line.clear();
        let Some(json) = line.strip_prefix(ROW) else {
            if ui::verbose() {
                ui::note(&line);
            }
            let surplus = (self.said.len() + 1).saturating_sub(SAID);
            self.said.drain(..surplus);
            self.said.push(line);
            return;
        };
        if json == END {
            self.ended = true;
            return;
        }
        match serde_json::from_str::<Row>(json) {
            Ok(row) => {
                ui::progress("measured", &row.id);
                self.ended |= self.last.as_ref() == Some(&row.id);
                self.rows.push(row);
            }
            Err(error) => self.error = Some(format!("a row of the guest is malformed: {error}: {json}")),
        }
    }
}

impl Write for Rows {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for byte in bytes {
            match byte {
                b'\n' => self.take(),
                _ => self.line.push(*byte),
            }
        }
        if self.ended && self.last.is_some() {
            // Ends the guest.
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// `7.2.19`, or what QEMU says of itself.
pub fn qemu_version(tools: &Tools) -> Result<String> {
    let output = Command::new(tools.qemu()?).arg("--version").output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.split_whitespace().nth(3).unwrap_or("unknown");
    Ok(version.into())
}

/// The commit, with a `+` when files differ from it.
fn commit(tools: &Tools) -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").current_dir(&tools.root).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
    };
    let Some(head) = git(&["rev-parse", "--short=12", "HEAD"]) else { return "unknown".into() };
    let changed =
        git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|list| !list.is_empty());
    if changed { head + "+" } else { head }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_that_of_the_medians() {
        let row = |value| Row::exact("x".into(), "instructions", value);
        let ratio = Row { mean: 900.0, ..row(465) }.ratio("y", &row(271));
        assert_eq!((ratio.id.as_str(), ratio.mean, ratio.p50), ("y", 1.72, 1.72));
    }

    #[test]
    fn a_ratio_is_as_exact_as_both_that_it_is_of() {
        let row = |id: &str, value| Row::exact(id.into(), "instructions", value);
        let rows = [row("sandbox.plain", 400), row("sandbox.count1", 600), row("sandbox.ratio1", 2)];
        let grain = |n: usize, tick| grain(&rows, &rows[n], tick);
        assert_eq!((grain(0, 6.0), grain(2, 6.0), grain(2, 0.0)), (6.0, 2.0 * (0.01 + 0.015), 0.0));
    }

    #[test]
    fn rows_are_taken_out_of_the_output() {
        let mut sink = Rows::default();
        let row =
            r#"{"id":"yield.2","unit":"instructions","n":10,"min":1,"mean":1.5,"p50":1,"p99":2,"max":2}"#;
        write!(sink, "warming up\n@bench {row}\n@bench oops\n@bench end\n").unwrap();
        assert_eq!(sink.rows.len(), 1);
        assert_eq!((sink.rows[0].id.as_str(), sink.rows[0].mean), ("yield.2", 1.5));
        assert!(sink.ended && sink.error.unwrap().contains("oops"));
    }
}

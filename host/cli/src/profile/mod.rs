//! `pebble profile`: where a system's instructions go.
//!
//! Problem: the emulator knows instructions and addresses, the build knows domains, portals and functions.
//! Strategy: a plug-in of the emulator (`host/plugin`) leaves a recording without names; [`names`] finds them
//! in the image's report and in the programs' files; `host/profile` makes a table, a flame graph and a trace
//! of both. The guest's clock counts instructions, so two profiles of a script differ only by when it was
//! typed.

mod names;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, IsTerminal, Write, stdin, stdout};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use pebble_profile::{Fold, Recording, flame, table, trace};
use pebble_qemu::{Exit, Machine};
use signal_hook::consts::SIGINT;
use signal_hook::flag;

use crate::bench;
use crate::build::{self, Built};
use crate::crash::Keeper;
use crate::run::{self, BOOT_LIMIT};
use crate::tools::{Tools, run_quietly};
use crate::ui;

const PLUGIN_PACKAGE: &str = "pebble-plugin";
const PLUGIN: &str = "release/libpebble_plugin.so";
/// The last QEMU that takes plug-ins of the interface's first version.
const NEWEST_QEMU: u32 = 8;
/// Ahead of what the operating system says.
const UNWRITABLE: &str = "remove what is there, or make it writable";
/// As a shell has it: 128 and the signal's number.
const INTERRUPTED: i32 = 128 + SIGINT;

#[derive(clap::Args)]
pub struct Options {
    /// Name of a manifest in systems/, or a path to one
    #[arg(default_value = crate::DEFAULT_SYSTEM)]
    system: String,
    /// Feed the lines of this file to the shell, as `run` does with standard input
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Count from reset on, not from where the shell has started
    #[arg(long)]
    start: bool,
    /// So many portals and functions in the table
    #[arg(long, value_name = "NUMBER", default_value_t = 25)]
    top: usize,
    /// So many steps into and out of domains in the trace, the first
    #[arg(long, value_name = "NUMBER", default_value_t = 200_000)]
    steps: usize,
    /// Give up a command of the script after so many seconds
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
}

pub fn profile(tools: &Tools, options: &Options) -> Result<u8> {
    let script = options.script.as_deref().map(open).transpose()?;
    let version = bench::qemu_version(tools)?;
    ensure!(
        takes_plugin(&version),
        "{} is version {version}, and takes no plug-in that is made for QEMU up to {NEWEST_QEMU}: \
         put the emulator of Debian 12 first into PATH",
        tools.qemu()?.display()
    );
    let built = build::system(tools, &options.system)?;
    let base = base(tools, &options.system)?;
    let raw = base.with_extension("recording");
    // A recording of another run is none of this one.
    let _ = fs::remove_file(&raw);
    let mut machine = tools.machine()?.counting_with_input();
    machine.extra.extend(["-plugin".into(), argument(tools, options, &raw)?.into()]);

    let ended = run(tools, options, script, &machine, &built.image);
    // What has run until then is worth a look, whatever has gone wrong.
    let Some(recording) = read(tools, &raw, &ended)? else { return ended.and_then(finish) };
    report(tools, options, &built, &recording, &base)?;
    if ended.is_err() {
        ui::note("the profile has what has run until this:");
    }
    ended.and_then(finish)
}

fn finish((exit, status): (Exit, i32)) -> Result<u8> {
    run::finish(exit, status)
}

/// What the plug-in has left. Nothing: there is an error already that says why.
fn read(tools: &Tools, raw: &Path, ended: &Result<(Exit, i32)>) -> Result<Option<Recording>> {
    let shown = tools.shown(raw);
    let bytes = match (fs::read(raw), ended) {
        (Ok(bytes), _) => bytes,
        (Err(_), Err(_)) => return Ok(None),
        (Err(error), Ok((exit, _))) => {
            bail!("{exit}, but there is no recording in {shown}, so there is no profile: {error}")
        }
    };
    let recording = Recording::read(&bytes).map_err(|error| anyhow!("{shown}: {error}"))?;
    ensure!(recording.is_even(), "{shown}: instructions are missing in it");
    Ok(Some(recording))
}

/// Of a version that cannot be read, QEMU has the last word.
fn takes_plugin(version: &str) -> bool {
    version
        .split('.')
        .next()
        .and_then(|major| major.parse().ok())
        .is_none_or(|major: u32| major <= NEWEST_QEMU)
}

fn open(path: &Path) -> Result<BufReader<File>> {
    Ok(BufReader::new(File::open(path).with_context(|| format!("script {}", path.display()))?))
}

/// Where the products of a system's profile are, but for their endings.
pub fn base(tools: &Tools, system: &str) -> Result<PathBuf> {
    let dir = tools.made().join("profile");
    fs::create_dir_all(&dir)
        .with_context(|| format!("{}, where profiles are kept: {UNWRITABLE}", tools.shown(&dir)))?;
    Ok(dir.join(tools.system_name(&tools.manifest(system)?) + ".svg"))
}

/// What the emulator is told of the plug-in, which is built if it is not there.
fn argument(tools: &Tools, options: &Options, raw: &Path) -> Result<String> {
    let mut cargo = tools.cargo("build");
    run_quietly(cargo.args(["--release", "-p", PLUGIN_PACKAGE]), "building the emulator's plug-in")?;
    // Two commas are one that separates nothing.
    let path = |path: &Path| path.display().to_string().replace(',', ",,");
    let plugin = path(&tools.target().join(PLUGIN));
    let (processor, start) = (tools.board.processor.name(), if options.start { "on" } else { "off" });
    let (out, events) = (path(raw), options.steps);
    Ok(format!("file={plugin},processor={processor},out={out},start={start},events={events}"))
}

/// The system, until it ends: on the terminal, or with a script.
fn run(
    tools: &Tools,
    options: &Options,
    script: Option<BufReader<File>>,
    machine: &Machine,
    image: &Path,
) -> Result<(Exit, i32)> {
    let terminal = script.is_none() && stdin().is_terminal();
    let mut keeper = Keeper::new(tools, image, stdout().lock(), terminal)?;
    if terminal {
        ui::note("Ctrl-A X leaves the emulator");
        let exit = machine.interact(image, &mut keeper);
        keeper.finish();
        return Ok((exit?, 0));
    }
    let lines: Box<dyn BufRead> = match script {
        Some(file) => Box::new(file),
        None => Box::new(stdin().lock()),
    };
    let lines = lines.lines().map(|line| line.context("the script"));
    let limit = options.timeout.map(Duration::from_secs);
    let interrupted = interrupts()?;
    let mut guest = machine.start(image)?;
    guest.give_up_when(interrupted.clone());
    let ready = guest.enter_script(BOOT_LIMIT).map_err(anyhow::Error::from);
    let ended = ready.and_then(|_| guest.run_stream(lines, limit, &mut keeper));
    // The plug-in writes when the emulator ends.
    guest.stop()?;
    keeper.finish();
    // On a terminal the emulator is told as well, and may be the first to end.
    if interrupted.load(Ordering::Relaxed) { Err(pebble_qemu::Error::Interrupted.into()) } else { ended }
}

/// Is true after Ctrl-C, of which the second ends us.
fn interrupts() -> Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    flag::register_conditional_shutdown(SIGINT, INTERRUPTED, interrupted.clone())?;
    flag::register(SIGINT, interrupted.clone())?;
    Ok(interrupted)
}

fn report(tools: &Tools, options: &Options, built: &Built, recording: &Recording, base: &Path) -> Result<()> {
    let names = names::find(tools, built, recording)?;
    let fold = Fold::new(recording, &names);
    let counted = table::grouped(recording.total);
    let head = match recording.before {
        0 => format!("{}: {counted} instructions since reset", options.system),
        before => {
            let before = table::grouped(before);
            format!("{}: {counted} instructions, after {before} until it was ready", options.system)
        }
    };
    let whole = format!("{head}\n\n{}", table::render(&fold, usize::MAX));

    let [text, svg, json] = ["txt", "svg", "json"].map(|ending| base.with_extension(ending));
    let shown = |path: &Path| tools.shown(path);
    let unwritable = |path: &Path| format!("{}: {UNWRITABLE}", tools.shown(path));
    fs::write(&text, whole).with_context(|| unwritable(&text))?;
    ui::done(&format!("{} (the whole table)", shown(&text)));
    let picture = flame::svg(&flame::frames(recording, &names), &fold, &head);
    fs::write(&svg, picture).with_context(|| unwritable(&svg))?;
    ui::done(&format!("{} (flame graph: a browser shows it)", shown(&svg)));
    let out = BufWriter::new(File::create(&json).with_context(|| unwritable(&json))?);
    trace::write(out, recording, &names, &head).with_context(|| unwritable(&json))?;
    ui::done(&format!("{} (trace: https://ui.perfetto.dev opens it)", shown(&json)));
    writeln!(stdout().lock(), "\n{head}\n\n{}", table::render(&fold, options.top).trim_end())?;
    if recording.lost > 0 {
        let (kept, lost) = (table::grouped(recording.events.len() as u64), table::grouped(recording.lost));
        ui::note(&format!("the trace has the first {kept} steps, and lacks {lost}: --steps keeps more"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emulator_that_is_too_new_is_told() {
        let versions = ["7.2.19", "8.2.2", "9.0.0", "10.0.2", "unknown"];
        assert_eq!(versions.map(takes_plugin), [true, true, false, false, true]);
    }
}

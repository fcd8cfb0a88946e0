//! Profiles of a short script, held against what the guest itself has counted.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use pebble_profile::Recording;
use serde_json::Value;

use super::cli::{directory, pebble};
use super::context::Context;
use crate::bench;
use crate::profile;
use crate::tools::Tools;

/// Reads a file over and over, and says how many instructions that took; of what the counter counts.
const COUNTED: &str = r#"#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
static unsigned long counter(void) {
    unsigned long count;
#ifdef __riscv
    __asm__ volatile("rdinstret %0" : "=r"(count));
#else
    __asm__ volatile("rdhwr %0, $2" : "=r"(count));
#endif
    return count;
}
int main(void) {
    unsigned long start = counter();
    for (int n = 0; n < 5; n++) {
        char block[256];
        int file = open("/counted.txt", O_RDONLY);
        if (file < 0) return 1;
        while (read(file, block, sizeof block) > 0) {}
        close(file);
    }
    printf("%lu\n", counter() - start);
}
"#;
/// More calls than this it makes: five times, the first bytes by 32, then a block of 256 bytes a call.
const READS: [(&str, usize); 2] = [("file.read", 60), ("file.read_page", 1000)];
/// A tenth of what is promised, between two readings of the counter.
const TOLERANCE: f64 = 0.0001;

pub fn totals_agree_with_the_counter(context: &mut Context) -> Result<()> {
    let tools = context.tools();
    let (system, script) = write(tools, "totals", "counted\n")?;
    let output = pebble(tools, &["profile", &system, "--script", &script, "--timeout", "60"]).output()?;
    let (said, notes) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{}: {said}{notes}", output.status);

    let counted: f64 = said.lines().next().unwrap_or_default().parse().with_context(|| said.to_string())?;
    // A processor's finest counter may be its clock.
    let counted = if tools.is_default() { counted } else { counted * bench::tick(tools) };
    let base = profile::base(tools, &system)?;
    let recording = fs::read(base.with_extension("recording"))?;
    let recording = Recording::read(&recording).map_err(anyhow::Error::msg)?;
    let [.., first, last] = recording.readings[..] else { anyhow::bail!("the counter was not read") };
    let ours = (last - first) as f64;
    ensure!(
        counted > 1e6 && (ours / counted - 1.0).abs() <= TOLERANCE,
        "the guest counts {counted} instructions, the profile {ours}"
    );
    table_names_those_who_worked(&said)?;
    let picture = fs::read_to_string(base.with_extension("svg"))?;
    ensure!(picture.contains(">file.read: ") && picture.ends_with("</svg>\n"), "the flame graph");
    trace_is_whole(&fs::read(base.with_extension("json"))?)
}

/// Who gives up has the profile until then.
pub fn an_interrupted_script_has_a_profile(context: &mut Context) -> Result<()> {
    let tools = context.tools();
    let (system, script) = write(tools, "interrupted", "counted\nsleep 100000\n")?;
    let mut command = pebble(tools, &["profile", &system, "--script", &script]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut said = BufReader::new(child.stdout.take().context("no standard output")?);
    let mut counted = String::new();
    said.read_line(&mut counted)?;
    let _: u64 = counted.trim().parse().with_context(|| counted.clone())?;
    let killed = Command::new("sh").args(["-c", "kill -INT $0", &child.id().to_string()]).status()?;
    ensure!(killed.success(), "kill: {killed}");
    let mut table = String::new();
    said.read_to_string(&mut table)?;
    let output = child.wait_with_output()?;
    let notes = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(1), "{}: {notes}", output.status);
    ensure!(notes.ends_with("error: interrupted\n"), "{notes}");
    table_names_those_who_worked(&table)?;
    trace_is_whole(&fs::read(profile::base(tools, &system)?.with_extension("json"))?)
}

/// A system and a script for it, by their paths. Tests run side by side, so each has its own.
fn write(tools: &Tools, test: &str, lines: &str) -> Result<(String, String)> {
    let dir = directory(tools, &format!("profile-{test}-{}", tools.board.name))?;
    let (manifest, script) = (dir.join("profile.toml"), dir.join("script"));
    write_system(tools, &dir, &manifest)?;
    fs::write(&script, lines)?;
    Ok((manifest.display().to_string(), script.display().to_string()))
}

fn write_system(tools: &Tools, dir: &Path, manifest: &Path) -> Result<()> {
    let source = dir.join("counted.c");
    fs::write(&source, COUNTED)?;
    let include = tools.root.join("systems/default.toml");
    let text = format!(
        "name = \"profile\"\ninclude = \"{}\"\n\
         [[file]]\npath = \"bin/counted\"\nc = \"{}\"\n[[file]]\npath = \"counted.txt\"\nlines = 10000\n",
        include.display(),
        source.display()
    );
    Ok(fs::write(manifest, text)?)
}

/// Numbers of a line whose first word this is.
fn numbers(said: &str, name: &str) -> Result<Vec<u64>> {
    let words = |line: &str| line.split_whitespace().map(String::from).collect::<Vec<_>>();
    let row = said.lines().map(words).find(|words| words.first().is_some_and(|word| word == name));
    let row = row.with_context(|| format!("no row {name} in {said}"))?;
    Ok(row.iter().filter_map(|word| word.replace(',', "").parse().ok()).collect())
}

fn table_names_those_who_worked(said: &str) -> Result<()> {
    let all = numbers(said, "all")?[0];
    for domain in ["shell", "file", "counted", "scheduler"] {
        let count = numbers(said, domain)?[0];
        ensure!(count > 0 && count < all, "{domain}: {count} of {all} instructions");
    }
    for (portal, least) in READS {
        let [calls, legs, whole, ..] = numbers(said, portal)?[..] else { anyhow::bail!("{said}") };
        let good = calls > least as u64 && legs > calls && whole > legs && whole < all;
        ensure!(good, "{portal}: {calls} {legs} {whole}");
    }
    Ok(())
}

/// Each slice that begins ends, on its own track.
fn trace_is_whole(text: &[u8]) -> Result<()> {
    let trace: Value = serde_json::from_slice(text)?;
    let events = trace["traceEvents"].as_array().context("no events")?;
    let mut open: BTreeMap<i64, Vec<&Value>> = BTreeMap::new();
    let mut arrows = [0, 0];
    for event in events {
        let slices = open.entry(event["tid"].as_i64().context("no track")?).or_default();
        match event["ph"].as_str() {
            Some("B") => slices.push(&event["name"]),
            Some("E") => ensure!(slices.pop().is_some(), "a slice ends that has not begun: {event}"),
            Some("s") => arrows[0] += 1,
            Some("f") => arrows[1] += 1,
            _ => {}
        }
    }
    ensure!(open.values().all(Vec::is_empty), "slices without an end");
    ensure!(arrows[0] > 1000 && arrows[0] == arrows[1], "arrows: {arrows:?}");
    for (portal, least) in READS {
        let reads = events.iter().filter(|event| event["args"]["portal"] == portal).count();
        ensure!(reads > least, "{reads} calls of {portal}");
    }
    Ok(())
}

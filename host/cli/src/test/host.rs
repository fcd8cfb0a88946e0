//! Unit and property tests of the workspace's packages, on the host.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::{Options, Tally, junit};
use crate::build::{Artifact, cargo_artifacts};
use crate::tools::Tools;
use crate::ui;

/// Random cases of tests with `--quick`: of proptest's, and of those that count for themselves.
const QUICK: [(&str, &str); 6] = [
    ("PROPTEST_CASES", "32"),
    ("PEBBLE_FUZZ", "2000"),
    ("SECOND_CASES", "20000"),
    ("PEBBLE_FAULTS", "1000"),
    ("PEBBLE_ROUNDS", "100"),
    ("DECODER_ROUNDS", "20000"),
];

/// Test programs that are a group of their own: package, program, group.
const OWN: [(&str, &str, &str); 15] = [
    ("pebble-interface", "descriptions", "interfaces.descriptions"),
    ("pebble-sfi-verify", "corpus", "sfi-attack.refused"),
    ("pebble-sfi-verify", "second", "sfi-attack.second"),
    ("pebble-sfi", "attacks", "sfi-attack.contained"),
    ("pebble-sfi-runtime", "hidden", "sfi-attack.hidden"),
    ("pebble-sfi-runtime", "limits", "sfi-attack.limits"),
    ("pebble-sfi-runtime", "faults", "sfi-fault.reported"),
    ("pebble-sfi-runtime", "shared", "sfi-fault.shared"),
    ("pebble-sfi-runtime", "ending", "sfi-fault.ended"),
    ("pebble-sfi-runtime", "rings", "sfi-fault.rings"),
    ("pebble-sfi-runtime", "lasting", "sfi-fault.lasting"),
    ("pebble-sfi-runtime", "lines", "sfi-fault.lines"),
    ("pebble-sfi-runtime", "fence", "sfi-policy.fence"),
    ("pebble-sfi", "tour", "sfi-tour"),
    ("pebble-sfi", "stubs", "sfi-stubs"),
];

/// Test programs that take ten seconds and more, which `--quick` leaves out: package, program.
const SLOW: [(&str, &str); 6] = [
    ("pebble-sfi-verify", "corpus"),
    ("pebble-sfi-verify", "second"),
    ("pebble-sfi-runtime", "lasting"),
    ("pebble-sfi-runtime", "lines"),
    ("pebble-sfi", "differential"),
    ("pebble-sfi", "leaps"),
];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
pub struct Package {
    name: String,
}

/// `host.scheduler` for `pebble-scheduler`, and what else its tests are called.
pub fn groups(package: &Package) -> Vec<String> {
    let own = OWN.iter().filter(|(name, ..)| *name == package.name).map(|(.., group)| group.to_string());
    [group_of(&package.name)].into_iter().chain(own).collect()
}

/// The group of a test program.
fn group(package: &str, program: &str) -> String {
    let own = OWN.iter().find(|(p, t, _)| (*p, *t) == (package, program));
    own.map_or_else(|| group_of(package), |(.., group)| group.to_string())
}

fn group_of(name: &str) -> String {
    format!("host.{}", name.strip_prefix("pebble-").unwrap_or(name))
}

/// For the user's own packages.
fn cargo(tools: &Tools, subcommand: &str) -> Command {
    tools.at_home(tools.cargo(subcommand), tools.made_at_home())
}

/// The workspace's packages whose groups are selected.
pub fn packages(tools: &Tools, selects: impl Fn(&str) -> bool) -> Result<Vec<Package>> {
    if !tools.home.join("Cargo.toml").exists() {
        return Ok(Vec::new());
    }
    let output = cargo(tools, "metadata").args(["--no-deps", "--format-version", "1"]).output()?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
    let mut packages = serde_json::from_slice::<Metadata>(&output.stdout)?.packages;
    packages.retain(|package| groups(package).iter().any(|group| selects(group)));
    Ok(packages)
}

/// The test programs of each group.
pub type Programs = BTreeMap<String, Vec<Artifact>>;

/// Builds the tests of these packages together: those that are selected.
pub fn build(tools: &Tools, packages: &[Package], options: &Options) -> (Programs, Tally) {
    let (mut programs, mut tally) = (Programs::new(), Tally::default());
    if packages.is_empty() {
        return (programs, tally);
    }
    tally.run("host.build", || {
        ui::progress("building", "host tests");
        let mut cargo = cargo(tools, "test");
        cargo.arg("--no-run");
        for package in packages {
            cargo.args(["-p", &package.name]);
        }
        cargo_artifacts(&mut cargo, |artifact| {
            if artifact.profile.test && artifact.executable.is_some() {
                let (package, program) = (artifact.package(), artifact.target.name.as_str());
                let slow = SLOW.contains(&(package, program));
                let group = group(package, program);
                if options.selects(&group) && !(options.quick && slow) {
                    programs.entry(group).or_default().push(artifact);
                }
            }
        })
    });
    (programs, tally)
}

pub fn run_group(tools: &Tools, group: &str, programs: &[Artifact], options: &Options) -> Tally {
    let start = Instant::now();
    let mut tally = Tally::default();
    let (mut said, mut notes) = (String::new(), Vec::new());
    for program in programs {
        match run_program(tools, program, options) {
            Ok((counts, output, found)) => {
                tally.add(counts);
                said.push_str(&output);
                notes.extend(found);
            }
            Err(error) => {
                tally.failed += 1;
                said.push_str(&format!("{error:#}\n"));
            }
        }
    }
    let line = format!(
        "{group}: {} passed, {} failed ({:.1} s)",
        tally.passed,
        tally.failed,
        start.elapsed().as_secs_f32()
    );
    if tally != Tally::default() {
        junit::record(group, start.elapsed(), (tally.failed > 0).then(|| said.clone()));
    }
    match (tally.failed, tally.passed) {
        (0, 0) => {}
        (0, _) => {
            ui::passed(&line);
            notes.iter().for_each(|note| ui::note(&format!("         {note}")));
        }
        _ => ui::failed(&format!("{line}\n{said}")),
    }
    tally
}

/// What a test has counted is told by a line that begins so, on standard error.
const NOTE: &str = "note: ";

/// Runs one test program; returns its counts, its output if a test failed, and what its tests have noted.
fn run_program(
    tools: &Tools,
    artifact: &Artifact,
    options: &Options,
) -> Result<(Tally, String, Vec<String>)> {
    let program = artifact.executable.clone().unwrap_or_default();
    let dir = artifact.manifest_path.parent().map_or_else(|| tools.root.clone(), PathBuf::from);
    let mut command = Command::new(&program);
    command.current_dir(&dir).env("CARGO_MANIFEST_DIR", &dir).stdin(Stdio::null());
    if options.quick {
        command.envs(QUICK);
    }
    if !options.test().is_empty() {
        command.arg(options.test());
    }
    let output = command.output().with_context(|| program.display().to_string())?;
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let mut tally = counts(&said);
    if output.status.success() {
        let notes = errors.lines().filter_map(|line| line.strip_prefix(NOTE)).map(String::from);
        return Ok((tally, String::new(), notes.collect()));
    }
    // A program that died before its summary counts as one failure.
    tally.failed = tally.failed.max(1);
    Ok((tally, format!("{said}{errors}"), Vec::new()))
}

/// Adds up the lines `test result: ok. 3 passed; 0 failed; ...`.
fn counts(said: &str) -> Tally {
    let mut tally = Tally::default();
    for line in said.lines().filter(|line| line.starts_with("test result:")) {
        let number = |word: &str| {
            let words: Vec<&str> = line.split([' ', ';']).filter(|w| !w.is_empty()).collect();
            let at = words.iter().position(|w| *w == word);
            at.and_then(|at| words.get(at.wrapping_sub(1))?.parse().ok()).unwrap_or(0)
        };
        tally.add(Tally { passed: number("passed"), failed: number("failed") });
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_added_up() {
        let said = "running 3 tests\ntest result: FAILED. 2 passed; 1 failed; 0 ignored; finished in 0.00s\n\
                    test result: ok. 40 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        assert_eq!(counts(said), Tally { passed: 42, failed: 1 });
    }

    #[test]
    fn groups_drop_the_common_prefix() {
        assert_eq!((group_of("pebble-vm"), group_of("pebble")), ("host.vm".into(), "host.pebble".into()));
    }
}

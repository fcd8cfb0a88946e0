//! Tests of components, as manifests have them: lines for the shell, and what must come of them.
//!
//! A program can also judge itself: with `pebble-test.h` in C and `pebble::tests!` in Rust it prints a line
//! for each test that it has. Such a line is a test of its own here; and as the program says at the end how
//! many there were, one that ends early fails.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use pebble_image::Manifest;
use pebble_image::manifest::Test;

use super::context::Context;
use super::junit;
use crate::tools::Tools;
use crate::ui;

/// Begins the lines by which programs tell of their own tests.
const TOLD: &str = "@test ";
/// Of these, the last: how many there were.
const END: &str = "end ";

#[derive(Debug)]
pub struct ComponentTest {
    /// Name or path of its manifest.
    system: String,
    test: Test,
}

/// Those of the systems of the project; or, of a path to a manifest, of that alone.
pub fn all(tools: &Tools, filter: Option<&str>) -> Result<Vec<ComponentTest>> {
    let systems = match filter.filter(|filter| is_manifest(filter)) {
        Some(path) => vec![path.to_string()],
        None => tools.systems(),
    };
    let mut tests = Vec::new();
    for system in systems {
        let path = tools.manifest(&system)?;
        let manifest = Manifest::load(&path, &tools.board).with_context(|| tools.shown(&path))?;
        tests.extend(manifest.test.into_iter().map(|test| ComponentTest { system: system.clone(), test }));
    }
    Ok(tests)
}

/// Whether a filter is a manifest: then its tests are meant, all of them and no others.
pub fn is_manifest(filter: &str) -> bool {
    filter.ends_with(".toml")
}

impl ComponentTest {
    pub fn group(&self) -> String {
        let system = Path::new(&self.system).file_stem().unwrap_or_default().to_string_lossy();
        format!("component.{system}.{}", self.test.name)
    }

    /// `called`: its name with the board's.
    pub fn run(&self, context: &mut Context, called: &str) -> Result<()> {
        let Test { run, prints, status, seconds, .. } = &self.test;
        let mut guest = context.shell(&self.system)?;
        let mut printed = String::new();
        for (n, line) in run.iter().enumerate() {
            let reply = guest.run_line(line, Duration::from_secs(*seconds))?;
            printed += &reply.output;
            let wanted = if n + 1 == run.len() { *status } else { 0 };
            told(called, &reply.output)?;
            ensure!(
                i64::from(reply.status) == wanted,
                "{line:?} ended with status {}, not {wanted}; it printed {:?}",
                reply.status,
                reply.output
            );
        }
        match prints {
            Some(prints) if *prints != printed => bail!("printed {printed:?}, not {prints:?}"),
            _ => Ok(()),
        }
    }
}

/// What a program has said of its own tests. Each is recorded; the first that failed is the error.
fn told(called: &str, output: &str) -> Result<()> {
    let (mut count, mut failed, mut end) = (0, Vec::new(), None);
    for line in output.lines().filter_map(|line| line.strip_prefix(TOLD)) {
        if let Some(said) = line.strip_prefix(END) {
            end = said.trim().parse::<usize>().ok();
            continue;
        }
        let Some((verdict, rest)) = line.split_once(' ') else { continue };
        let (name, why) = rest.split_once(": ").unwrap_or((rest, ""));
        count += 1;
        let failure = (verdict != "ok").then(|| why.to_string());
        junit::record(&format!("{called}::{name}"), Duration::ZERO, failure.clone());
        match failure {
            Some(why) => failed.push(format!("{name}: {why}")),
            None => ui::note(&format!("         ok {name}")),
        }
    }
    ensure!(failed.is_empty(), "{}", failed.join("\n  "));
    ensure!(
        count == 0 || end == Some(count),
        "it told of {count} tests, and not that these were all: {output:?}"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_judges_itself_is_believed_to_the_end() {
        let said = |output: &str| told("x", output).map_err(|error| error.to_string());
        assert_eq!(said("nothing of the kind\n"), Ok(()));
        assert_eq!(said("@test ok adds\nbetween\n@test ok ends\n@test end 2\n"), Ok(()));
        let failed = said("@test FAILED adds: a.c:7: 1 == 2\n@test FAILED more: a.c:9: no\n@test end 2\n");
        assert_eq!(failed, Err("adds: a.c:7: 1 == 2\n  more: a.c:9: no".into()));
        for early in ["@test ok adds\n", "@test ok adds\n@test end 2\n", "@test ok adds\n@test end x\n"] {
            assert!(said(early).unwrap_err().starts_with("it told of 1 tests"), "{early}");
        }
    }
}

//! Existing projects in fault domains: built with their own builds by `CC='pebble sfi cc'`, they must say what they say natively.

use std::process::Stdio;

use anyhow::{Context, Result, ensure};

use crate::tools::{Tools, program};
use crate::{sfi, ui};

pub const REAL: &str = "sfi-real";

/// zlib, bzip2, Lua, SQLite, as `bench/sfi/real.toml` has them. Their sources come from the registries: without a network this fails,
/// and says what could not be had.
pub fn existing_projects_say_the_same(tools: &Tools) -> Result<()> {
    sfi::tool(tools)?;
    let mut cargo = tools.cargo("run");
    cargo.args(["--quiet", "--package", "pebble-sfi-bench", "--", "real"]).stdin(Stdio::null());
    let output = cargo.output().with_context(|| program(&cargo))?;
    let said = String::from_utf8_lossy(&output.stdout);
    said.lines().for_each(|line| ui::note(&format!("         {line}")));
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}

//! `pebble sdk`: what projects are built with, as one file.
//!
//! That is Pebble's own tree as it is committed, under a folder with its version: its tools build themselves,
//! and what systems include is built with them.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::tools::{Tools, run_quietly};
use crate::ui;

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(clap::Args)]
pub struct Options {
    /// Where to put it; without it pebble-sdk-VERSION.tar.gz, here
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub fn sdk(tools: &Tools, options: &Options) -> Result<()> {
    ensure!(
        tools.root.join(".git").exists(),
        "{} is no clone: an SDK is made of what is committed",
        tools.root.display()
    );
    let out = options.out.clone().unwrap_or_else(|| format!("pebble-sdk-{VERSION}.tar.gz").into());
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.arg("-C").arg(&tools.root).args(arguments);
        git
    };
    let changed = git(&["status", "--porcelain"]).output()?;
    if !changed.stdout.is_empty() {
        ui::note("what is not committed is not in it");
    }
    let prefix = format!("--prefix=pebble-{VERSION}/");
    let mut archive = git(&["archive", "--format=tar.gz", &prefix, "-o"]);
    run_quietly(archive.arg(std::path::absolute(&out)?).arg("HEAD"), "git archive")?;
    ui::done(&format!("{} ({})", tools.shown(&out), ui::bytes(out.metadata()?.len())));
    Ok(())
}

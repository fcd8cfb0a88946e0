//! `pebble fuzz`: long runs of what the tests do for a while. Each begins where it is told, so that one can
//! go on where another has ended.

use std::process::Stdio;

use anyhow::{Context, Result, ensure};

use crate::sfi;
use crate::tools::{Tools, program};

const PACKAGE: &str = "pebble-sfi-same";

#[derive(clap::Args)]
pub struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Random programs, natively and in fault domains: both must print and return the same
    Csmith {
        /// How many
        #[arg(default_value_t = 20_000)]
        count: usize,
        /// Where to begin
        #[arg(long, default_value_t = 1_000_000)]
        seed: u64,
    },
    /// The execution tests of GCC's torture suite, each with so many combinations of compiler, optimisation,
    /// level and options
    Torture {
        #[arg(default_value_t = 30)]
        rounds: usize,
    },
}

pub fn fuzz(tools: &Tools, options: &Options) -> Result<()> {
    match &options.what {
        What::Csmith { count, seed } => {
            same(tools, &["csmith", &count.to_string(), "--seed", &seed.to_string()])
        }
        What::Torture { rounds } => same(tools, &["torture", "--rounds", &rounds.to_string()]),
    }
}

/// Compares native with confined code; progress and differences are told on standard error.
pub fn same(tools: &Tools, arguments: &[&str]) -> Result<()> {
    sfi::libraries(tools)?;
    let mut cargo = tools.cargo("run");
    cargo.args(["--quiet", "--package", PACKAGE, "--"]).args(arguments).stdin(Stdio::null());
    let status = cargo.status().with_context(|| program(&cargo))?;
    ensure!(status.success(), "what native and confined code computed was not always the same");
    Ok(())
}

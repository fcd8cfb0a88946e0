//! Random programs by csmith: without undefined behaviour, so that every compiler makes the same of them.
//! They print a checksum of what they have computed.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::twist::{self, Twist};

/// What csmith is asked for: small programs, of which many can be tried.
const OPTIONS: [&str; 12] = [
    "--no-argc",
    "--float",
    "--max-funcs",
    "5",
    "--max-block-depth",
    "3",
    "--max-block-size",
    "3",
    "--max-expr-complexity",
    "7",
    "--concise",
    "--inline-function",
];
/// Programs of other sizes (bytes) compute nothing, or take minutes to compile.
const SIZES: std::ops::Range<usize> = 5_000..30_000;

/// The text for a seed, if it is of a size that is worth it. The twist goes round with the seed.
pub fn program(seed: u64) -> Result<Option<String>> {
    let twist = Twist::nth(seed);
    let mut csmith = Command::new("csmith");
    csmith.args(OPTIONS).args(["--seed", &seed.to_string()]);
    if twist.forbids_jumps() {
        csmith.arg("--no-jumps");
    }
    // It writes down what it believes of the platform.
    csmith.current_dir(std::env::temp_dir());
    let output = csmith.stdin(Stdio::null()).output().context("csmith (the package of that name)")?;
    if !output.status.success() {
        bail!("csmith --seed {seed}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(SIZES.contains(&text.len()).then(|| twist::twisted(&text, twist)))
}

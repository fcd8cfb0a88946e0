//! Instructions: how many a round of a program takes, by callgrind's count, which no other program disturbs.
//!
//! The paper predicted its overheads from such counts. The count of a run without rounds is subtracted, as
//! with time.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::side::Built;

/// Rounds that are counted, in the emulator fifty times slower than the processor.
const ROUNDS: u32 = 1;

/// Instructions of a round.
pub fn count(built: &Built) -> Result<u64> {
    let (none, some) = (run(built, 0)?, run(built, ROUNDS)?);
    Ok(some.saturating_sub(none) / u64::from(ROUNDS))
}

fn run(built: &Built, rounds: u32) -> Result<u64> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--trace-children=yes"]);
    let output = command.args(&built.command).arg(rounds.to_string()).output();
    let output = output.context("valgrind is not installed (Debian: valgrind)")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "valgrind: {}", said.lines().last().unwrap_or_default());
    collected(&said).context("callgrind did not say what it has counted")
}

/// The number in `==7== Collected : 123`: the last, which is that of the program when something else has
/// started it.
fn collected(said: &str) -> Option<u64> {
    let (_, rest) = said.rsplit_once("Collected :")?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_count_is_found() {
        assert_eq!(
            super::collected("==1== \n==1== Events    : Ir\n==1== Collected : 123 \n==1== x"),
            Some(123)
        );
        assert_eq!(super::collected("==1== x"), None);
    }
}

//! Time: all sides of a program in turn, again and again, so that what disturbs the machine disturbs every
//! side.
//!
//! A run's time is the processor's, user and system, without what it takes to begin: the quickest run with no
//! rounds is subtracted, so that loading and verifying are not counted as overhead of the program. A ratio is
//! formed within a repetition only. Which side goes first changes from one repetition to the next.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::unistd::Pid;

use crate::manifest::Program;
use crate::side::{Built, Side};
use pebble_rows::{geometric_mean, median};

/// A program on the sides that it could be built for; the first is native.
pub struct Subject {
    pub program: Program,
    pub sides: Vec<Built>,
}

/// Seconds of each repetition.
#[derive(Default, Debug)]
pub struct Times {
    pub work: BTreeMap<Side, Vec<f64>>,
    pub start: BTreeMap<Side, Vec<f64>>,
}

impl Times {
    /// From whole runs to work. The quickest start, for one that was disturbed may have taken longer than a
    /// whole run.
    fn subtract_start(&mut self) {
        for (side, work) in &mut self.work {
            let start = self.start.get(side).into_iter().flatten().copied().fold(f64::MAX, f64::min);
            work.iter_mut().for_each(|whole| *whole = (*whole - start).max(1e-6));
        }
    }

    /// Ratios to native, repetition by repetition.
    pub fn ratios(&self, side: Side) -> Vec<f64> {
        let (Some(own), Some(native)) = (self.work.get(&side), self.work.get(&Side::Native)) else {
            return Vec::new();
        };
        own.iter().zip(native).map(|(a, b)| a / b).collect()
    }

    /// The ratio of the quickest runs: the least disturbed, though of different moments.
    pub fn least(&self, side: Side) -> Option<f64> {
        let least = |side| self.work.get(&side).map(|t| t.iter().copied().fold(f64::MAX, f64::min));
        Some(least(side)? / least(Side::Native)?)
    }
}

/// Geometric means over the programs that a side runs: one for each repetition, and that of the programs'
/// medians.
pub struct Mean {
    pub repetitions: Vec<f64>,
    pub of_medians: f64,
}

pub fn mean(all: &[&Times], side: Side) -> Option<Mean> {
    let ratios: Vec<Vec<f64>> = all.iter().map(|t| t.ratios(side)).filter(|r| !r.is_empty()).collect();
    let n = ratios.iter().map(Vec::len).min()?;
    let repetition = |i: usize| geometric_mean(&ratios.iter().map(|r| r[i]).collect::<Vec<_>>());
    let medians: Vec<f64> = ratios.iter().map(|r| median(r)).collect();
    Some(Mean { repetitions: (0..n).map(repetition).collect(), of_medians: geometric_mean(&medians) })
}

/// Measures all subjects; `tell` hears of every repetition.
pub fn measure(subjects: &[Subject], repetitions: u32, tell: impl Fn(u32)) -> Result<Vec<Times>> {
    pin()?;
    let mut all: Vec<Times> = subjects.iter().map(|_| Times::default()).collect();
    for repetition in 0..repetitions {
        for (subject, times) in subjects.iter().zip(&mut all) {
            let first = repetition as usize % subject.sides.len();
            let mut said: Option<String> = None;
            for i in 0..subject.sides.len() {
                let built = &subject.sides[(first + i) % subject.sides.len()];
                let (start, _) = run(built, 0)?;
                let (whole, output) = run(built, subject.program.rounds)?;
                let same = said.get_or_insert_with(|| output.clone());
                ensure!(
                    *same == output,
                    "{}: {} says {output:?}, not {same:?}",
                    subject.program.name,
                    built.side.name()
                );
                times.start.entry(built.side).or_default().push(start);
                times.work.entry(built.side).or_default().push(whole);
            }
        }
        tell(repetition + 1);
    }
    all.iter_mut().for_each(Times::subtract_start);
    Ok(all)
}

/// Runs a program; the processor's seconds, and what it said.
pub fn run(built: &Built, rounds: u32) -> Result<(f64, String)> {
    let mut command = Command::new(&built.command[0]);
    command.args(&built.command[1..]).arg(rounds.to_string()).stdin(Stdio::null()).stderr(Stdio::piped());
    let before = used()?;
    let output = command.output().with_context(|| format!("{command:?}"))?;
    let after = used()?;
    ensure!(
        output.status.success(),
        "{command:?}: {}: {}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok((after - before, String::from_utf8_lossy(&output.stdout).trim_end().to_string()))
}

/// The processor's seconds of all children that have ended.
fn used() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let seconds = |t: nix::sys::time::TimeVal| t.tv_sec() as f64 + t.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// Stays on one processor, the last that is allowed, with all children.
fn pin() -> Result<()> {
    let here = Pid::from_raw(0);
    let allowed = sched_getaffinity(here)?;
    let last = (0..CpuSet::count()).rev().find(|&cpu| allowed.is_set(cpu).unwrap_or(false));
    let mut one = CpuSet::new();
    one.set(last.context("no processor")?)?;
    Ok(sched_setaffinity(here, &one)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(native: &[f64], full: &[f64]) -> Times {
        let work = [(Side::Native, native.to_vec()), (Side::Full, full.to_vec())];
        Times { work: work.into(), start: BTreeMap::new() }
    }

    #[test]
    fn a_disturbed_start_does_not_shorten_the_work() {
        let mut times = times(&[3.0, 4.0], &[]);
        times.start.insert(Side::Native, vec![5.0, 1.0]);
        times.subtract_start();
        assert_eq!(times.work[&Side::Native], [2.0, 3.0]);
    }

    #[test]
    fn ratios_are_formed_within_a_repetition() {
        let all = [times(&[1.0, 2.0, 1.0], &[1.1, 2.2, 1.3]), times(&[2.0, 2.0, 2.0], &[2.2, 2.2, 2.2])];
        assert!(all[0].ratios(Side::Write).is_empty());
        assert!((all[0].least(Side::Full).unwrap() - 1.1).abs() < 1e-9);
        let mean = mean(&all.iter().collect::<Vec<_>>(), Side::Full).unwrap();
        assert!((mean.of_medians - 1.1).abs() < 1e-9 && mean.repetitions.len() == 3);
    }
}

//! Measurements in guest instructions: the statistics, and what driver and workers agree on.
//!
//! Driver (`main.rs`), workers (`worker.rs`, one thread each in its own domain), links (`link.rs`, the
//! domains of call chains) and the floating-point caller (`float.rs`) are components of
//! `bench/systems/bench.toml`. A worker waits for its semaphore, asks the driver for a [`Job`], does it a
//! fixed number of times, and waits again. Rows go to the console as `@bench {json}`.
#![no_std]
#![cfg_attr(not(feature = "component"), forbid(unsafe_code))]

extern crate alloc;

use alloc::vec::Vec;
use core::fmt;

/// Samples of each row, after [`WARM_UP`].
pub const SAMPLES: usize = 10_000;
pub const WARM_UP: usize = 100;
pub const ROUNDS: usize = SAMPLES + WARM_UP;
pub const WORKERS: usize = 8;

/// What a worker does; passed as words through the portal `bench.job`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// Yield so many times.
    Yield,
    /// In a ring of so many domains: P on the own semaphore, V on the next one's.
    SemaphoreRing(u64),
    /// Read a byte from the pipe with the first token, write it to that with the second.
    PipeRing { read: u64, write: u64 },
    /// Spin without calls, short-circuit portals, calls, yields, until stopped.
    Load(Load),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    Idle,
    ShortCircuit,
    Call,
    Yield,
    /// Half of a pair passing a token.
    Semaphore,
}

impl Job {
    /// Kind and two words.
    pub fn encode(self) -> [u64; 3] {
        match self {
            Job::Yield => [0, 0, 0],
            Job::SemaphoreRing(n) => [1, n, 0],
            Job::PipeRing { read, write } => [2, read, write],
            Job::Load(load) => [3, load as u64, 0],
        }
    }

    pub fn decode([kind, a, b]: [u64; 3]) -> Option<Job> {
        Some(match kind {
            0 => Job::Yield,
            1 => Job::SemaphoreRing(a),
            2 => Job::PipeRing { read: a, write: b },
            3 => Job::Load(
                [Load::Idle, Load::ShortCircuit, Load::Call, Load::Yield, Load::Semaphore]
                    .get(a as usize)
                    .copied()?,
            ),
            _ => return None,
        })
    }
}

/// What reading the counter costs.
pub fn least(counter: impl Fn() -> u64) -> u32 {
    let read = || {
        let before = counter();
        (counter() - before) as u32
    };
    (0..100).map(|_| read()).min().unwrap_or(0)
}

/// Samples of one row.
pub struct Samples {
    values: Vec<u32>,
    /// Legs, passes or switches that each sample holds.
    per: u32,
    /// Cost of reading the counter, taken off each sample.
    base: u32,
    /// The first so many do not count.
    warm_up: usize,
}

impl Samples {
    pub fn new(per: u32, base: u32) -> Self {
        Samples { values: Vec::with_capacity(ROUNDS), per, base, warm_up: WARM_UP }
    }

    /// Of what takes so long that one round is warm-up enough.
    pub fn of_few(base: u32) -> Self {
        Samples { values: Vec::new(), per: 1, base, warm_up: 1 }
    }

    pub fn add(&mut self, instructions: u64) {
        let instructions = u32::try_from(instructions).unwrap_or(u32::MAX);
        self.values.push(instructions.saturating_sub(self.base));
    }

    /// Sorted and without the warm-up; values in thousandths, so that no digit of a mean over legs is lost.
    pub fn row<'a>(mut self, id: &'a str, unit: &'a str) -> Row<'a> {
        self.values.drain(..self.warm_up.min(self.values.len()));
        self.values.sort_unstable();
        let milli = |v: u64| v * 1000 / u64::from(self.per);
        let n = self.values.len().max(1);
        let at = |q: usize| {
            milli(self.values.get((n * q).div_ceil(100).saturating_sub(1)).copied().unwrap_or(0).into())
        };
        let sum: u64 = self.values.iter().map(|v| u64::from(*v)).sum();
        Row {
            id,
            unit,
            n: self.values.len(),
            min: at(0),
            mean: sum * 1000 / u64::from(self.per) / n as u64,
            p50: at(50),
            p99: at(99),
            max: at(100),
        }
    }
}

/// One row; thousandths of its unit.
#[derive(Debug, PartialEq, Eq)]
pub struct Row<'a> {
    pub id: &'a str,
    /// What was counted.
    pub unit: &'a str,
    pub n: usize,
    pub min: u64,
    pub mean: u64,
    pub p50: u64,
    pub p99: u64,
    pub max: u64,
}

impl fmt::Display for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{\"id\":\"{}\",\"unit\":\"{}\",\"n\":{}", self.id, self.unit, self.n)?;
        let values =
            [("min", self.min), ("mean", self.mean), ("p50", self.p50), ("p99", self.p99), ("max", self.max)];
        for (name, v) in values {
            write!(f, ",\"{name}\":{}.{:03}", v / 1000, v % 1000)?;
        }
        write!(f, "}}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn a_row_is_what_its_samples_say() {
        let mut s = Samples::new(2, 1);
        (0..WARM_UP).for_each(|_| s.add(1000));
        (1..=100).for_each(|v| s.add(v + 1));
        let row = s.row("x", "instructions");
        assert_eq!((row.n, row.min, row.p50, row.p99, row.max), (100, 500, 25_000, 49_500, 50_000));
        assert_eq!(row.mean, 25_250);
        let text = "{\"id\":\"x\",\"unit\":\"instructions\",\"n\":100,\"min\":0.500,\"mean\":25.250,\"p50\":25.000,\"p99\":49.500,\"max\":50.000}";
        assert_eq!(format!("{row}"), text);
    }

    #[test]
    fn jobs_survive_the_portal() {
        for job in [
            Job::Yield,
            Job::SemaphoreRing(8),
            Job::PipeRing { read: 3, write: 4 },
            Job::Load(Load::Semaphore),
        ] {
            assert_eq!(Job::decode(job.encode()), Some(job));
        }
        assert_eq!(Job::decode([9, 0, 0]), None);
    }
}

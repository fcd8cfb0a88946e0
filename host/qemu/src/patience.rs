//! How long to wait for a guest: a limit on the emulator's own processor time, so that a machine that is busy
//! with other things does not look like a guest that hangs.
//!
//! One that does nothing at all uses no such time: it has [`IDLE`] times the limit by the clock. Where the
//! operating system does not tell processor times, the clock alone counts.

use std::fs;
use std::time::{Duration, Instant};

/// So much longer a wait may last by the clock.
const IDLE: u32 = 8;
/// Unit of the times in `/proc/PID/stat`, which Linux has the same on every processor.
const TICK: Duration = Duration::from_millis(10);

pub struct Patience {
    pub limit: Duration,
    process: u32,
    began: Instant,
    used: Option<Duration>,
}

impl Patience {
    pub fn new(limit: Duration, process: u32) -> Self {
        Patience { limit, process, began: Instant::now(), used: used(process) }
    }

    /// So long to wait until it is asked again; zero: it is over.
    pub fn left(&self) -> Duration {
        let used = self.used.zip(used(self.process)).map(|(before, now)| now.saturating_sub(before));
        left(self.limit, self.began.elapsed(), used)
    }
}

fn left(limit: Duration, passed: Duration, used: Option<Duration>) -> Duration {
    match used {
        Some(used) => limit.saturating_sub(used).min(limit.saturating_mul(IDLE).saturating_sub(passed)),
        None => limit.saturating_sub(passed),
    }
}

/// Processor time of all threads of a process so far.
pub fn used(process: u32) -> Option<Duration> {
    ticks(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

/// The 14th and 15th field; the second is a name in parentheses, which may hold anything.
fn ticks(stat: &str) -> Option<Duration> {
    let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace().skip(11);
    let (user, system): (u32, u32) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(TICK * user.checked_add(system)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn what_the_emulator_has_not_used_is_left() {
        assert_eq!(left(s(30), s(100), Some(s(10))), s(20));
        assert_eq!(left(s(30), s(100), Some(s(31))), s(0));
    }

    #[test]
    fn who_does_nothing_is_given_up_too() {
        assert_eq!(left(s(30), s(239), Some(s(0))), s(1));
        assert_eq!(left(s(30), s(241), Some(s(0))), s(0));
    }

    #[test]
    fn without_processor_times_the_clock_counts() {
        assert_eq!(left(s(30), s(10), None), s(20));
        assert_eq!(left(s(30), s(31), None), s(0));
    }

    #[test]
    fn times_are_those_of_the_process() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 90 0 0 0 250 50 0 0 20 0 1 0 12 1 2 3";
        assert_eq!(ticks(stat), Some(s(3)));
        assert_eq!(ticks("7 (a) S 1"), None);
        assert_eq!(ticks(""), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_one() {
        assert!(used(std::process::id()).is_some());
        assert!(used(0).is_none());
    }
}

//! The supervisor's policies: which components it restarts, how soon, and when it gives up.
//!
//! A policy file has a line for each component: `COMPONENT never|always|backoff LIMIT PATH`. Empty lines and
//! those that begin with `#` say nothing. LIMIT restarts within [`SPAN`] are made; then it gives up.
//! `backoff` waits before each: [`FIRST_PAUSE`], then twice as long each time, until a minute has passed
//! without a death.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;
use pebble_abi::map::TIME_HZ;

/// Ticks within which restarts are counted: a minute.
pub const SPAN: u64 = 60 * TIME_HZ;
/// Ticks that `backoff` waits before the first restart, and at most.
pub const FIRST_PAUSE: u64 = TIME_HZ / 50;
pub const LONGEST_PAUSE: u64 = 10 * TIME_HZ;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Never,
    Always,
    Backoff,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    pub component: String,
    pub kind: Kind,
    pub limit: u32,
    pub path: String,
}

/// The policies of a file; lines that are not understood, by number.
pub fn parse(text: &str) -> (Vec<Policy>, Vec<usize>) {
    let (mut policies, mut wrong) = (Vec::new(), Vec::new());
    for (number, line) in (1..).zip(text.lines()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [] => {}
            [first, ..] if first.starts_with('#') => {}
            _ => match policy(&words) {
                Some(policy) => policies.push(policy),
                None => wrong.push(number),
            },
        }
    }
    (policies, wrong)
}

fn policy(words: &[&str]) -> Option<Policy> {
    let [component, kind, limit, path] = words else { return None };
    let kind = match *kind {
        "never" => Kind::Never,
        "always" => Kind::Always,
        "backoff" => Kind::Backoff,
        _ => return None,
    };
    Some(Policy { component: (*component).into(), kind, limit: limit.parse().ok()?, path: (*path).into() })
}

/// What is to be done about a death.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A new instance, after so many ticks.
    Restart(u64),
    GiveUp,
}

/// The restarts of one component.
#[derive(Default)]
pub struct History {
    /// Since when restarts are counted, and how many.
    since: u64,
    count: u32,
    /// The last death, and the pause that it was given.
    last: u64,
    pause: u64,
}

impl History {
    /// It has died now. The count begins anew when the last span is over; so there are never more than twice
    /// LIMIT restarts in a minute, and one number is kept instead of LIMIT times.
    pub fn died(&mut self, policy: &Policy, now: u64) -> Verdict {
        if self.count == 0 || now.saturating_sub(self.since) >= SPAN {
            (self.since, self.count) = (now, 0);
        }
        if policy.kind == Kind::Never || self.count >= policy.limit {
            return Verdict::GiveUp;
        }
        self.count += 1;
        let quiet = now.saturating_sub(self.last) >= SPAN;
        self.last = now;
        self.pause = match policy.kind {
            Kind::Backoff if quiet || self.pause == 0 => FIRST_PAUSE,
            Kind::Backoff => (self.pause * 2).min(LONGEST_PAUSE),
            _ => 0,
        };
        Verdict::Restart(self.pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "# what\nconsole always 3 components/console\n\nfile sometimes 1 x\nname backoff 4 components/name\n";

    #[test]
    fn a_file_is_read_line_by_line() {
        let (policies, wrong) = parse(TEXT);
        assert_eq!(wrong, [4]);
        assert_eq!(policies.len(), 2);
        assert_eq!(
            (policies[0].kind, policies[0].limit, &*policies[0].path),
            (Kind::Always, 3, "components/console")
        );
        assert_eq!((policies[1].kind, &*policies[1].component), (Kind::Backoff, "name"));
    }

    #[test]
    fn it_gives_up_after_the_limit_within_a_minute() {
        let policy = &parse(TEXT).0[0];
        let mut history = History::default();
        for n in 0..3 {
            assert_eq!(history.died(policy, n), Verdict::Restart(0));
        }
        assert_eq!(history.died(policy, 3), Verdict::GiveUp);
        assert_eq!(history.died(policy, SPAN), Verdict::Restart(0));
    }

    #[test]
    fn backoff_waits_twice_as_long_each_time() {
        let policy = &parse(TEXT).0[1];
        let mut history = History::default();
        assert_eq!(history.died(policy, 10), Verdict::Restart(FIRST_PAUSE));
        assert_eq!(history.died(policy, 20), Verdict::Restart(2 * FIRST_PAUSE));
        assert_eq!(history.died(policy, 30), Verdict::Restart(4 * FIRST_PAUSE));
        assert_eq!(history.died(policy, 30 + SPAN), Verdict::Restart(FIRST_PAUSE));
    }
}

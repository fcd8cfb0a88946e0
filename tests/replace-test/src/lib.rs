//! Replacement and restart under load: what the judge, the clients and the small servers of the test have in
//! common.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod counts;

/// Clients, each in a domain of its own.
pub const CLIENTS: usize = 8;

/// What each client writes on the console, one byte now and then, so that the reader of the console can
/// count.
pub const MARKS: [u8; CLIENTS] = *b"!$%&*+^~";

/// What the judge is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// Replace every server so many times.
    Load,
    /// Replace the scheduler so many times, and back.
    Schedulers,
    /// Successors that are to be refused.
    Refused,
    /// A component that is killed and comes back.
    Restart,
    /// Components that come back a few times, or never.
    Policy,
}

impl Job {
    const ALL: [(&'static str, Job); 5] = [
        ("load", Job::Load),
        ("schedulers", Job::Schedulers),
        ("refused", Job::Refused),
        ("restart", Job::Restart),
        ("policy", Job::Policy),
    ];

    pub fn parse(word: &str) -> Option<Job> {
        Job::ALL.iter().find(|(name, _)| *name == word).map(|(_, job)| *job)
    }

    pub fn number(self) -> u64 {
        Job::ALL.iter().position(|(_, job)| *job == self).unwrap_or(0) as u64
    }

    pub fn of(number: u64) -> Option<Job> {
        Job::ALL.get(number as usize).map(|(_, job)| *job)
    }
}

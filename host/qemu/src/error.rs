//! How a guest ends, and what can go wrong while somebody talks to it.

use std::fmt;
use std::io;
use std::time::Duration;

/// How the emulator ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The guest powered the board off.
    PoweredOff,
    /// The guest powered the board off and reported a failure.
    Failed(i32),
    /// The nucleus wrote its last words.
    Panicked(String),
    /// Somebody killed the emulator with this signal.
    Killed(i32),
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Exit::PoweredOff => write!(f, "the system powered off"),
            Exit::Failed(status) => write!(f, "the system reported failure {status}"),
            Exit::Panicked(line) => write!(f, "the nucleus gave up: {line}"),
            Exit::Killed(signal) => write!(f, "the emulator was killed by signal {signal}"),
        }
    }
}

#[derive(Debug)]
pub enum Error {
    /// The emulator could not be started.
    Start(String, io::Error),
    /// The console did not show what was waited for.
    TimedOut {
        waiting_for: String,
        limit: Duration,
        console: String,
    },
    /// The system ended before the console showed what was waited for.
    Ended {
        waiting_for: String,
        exit: Exit,
        console: String,
    },
    /// Nobody wants to wait any more.
    Interrupted,
    Io(io::Error),
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Error::Io(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Error::Start(program, error) => write!(f, "cannot start {program}: {error}"),
            Error::TimedOut { waiting_for, limit, console } => {
                write!(
                    f,
                    "{limit:.0?} of the emulator's time were not enough for {waiting_for}; the console's last words: {console}"
                )
            }
            Error::Ended { waiting_for, exit, console } => {
                write!(f, "{exit} before {waiting_for}; the console's last words: {console}")
            }
            Error::Interrupted => write!(f, "interrupted"),
            Error::Io(error) => write!(f, "talking to the emulator: {error}"),
        }
    }
}

impl std::error::Error for Error {}

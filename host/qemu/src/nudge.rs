//! An emulator that stands still.
//!
//! **Problem.** QEMU 7.2 that counts instructions (`-icount shift=0`) loses, once in a long while, the timer
//! that is to end its guest's rest: neither of its threads waits for anything but input then, and no guest
//! timer ever comes. **Strategy.** Its main loop starts that timer again whenever it has anything to do. So
//! one that has used no processor time for a while is sent SIGALRM, which QEMU takes through a descriptor and
//! does nothing about.
//!
//! **Invariant.** An emulator that has not spoken yet is left alone: until it handles the signal, the signal
//! would end it.

use std::time::{Duration, Instant};

use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;

use crate::patience;

/// How long it may stand still. A guest that rests has an emulator that does a little now and then.
pub const PAUSE: Duration = Duration::from_secs(1);

pub struct Nudge {
    process: u32,
    moved: Instant,
    used: Option<Duration>,
}

impl Nudge {
    pub fn new(process: u32) -> Self {
        Nudge { process, moved: Instant::now(), used: None }
    }

    /// Whoever waits for the emulator's output asks this every [`PAUSE`].
    pub fn look(&mut self, has_spoken: bool) {
        let used = patience::used(self.process);
        if used != self.used || !has_spoken {
            (self.used, self.moved) = (used, Instant::now());
        } else if used.is_some() && self.moved.elapsed() >= PAUSE {
            self.moved = Instant::now();
            // One that has ended is noticed elsewhere.
            let _ = signal::kill(Pid::from_raw(self.process.cast_signed()), Signal::SIGALRM);
        }
    }
}

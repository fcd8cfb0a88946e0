//! One build at a time.
//!
//! **Problem.** Whoever builds a system writes files that another build of it reads: two terminals, tests
//! side by side, and tests that call the tool. **Strategy.** Who builds has the lock of `target/lock`; the
//! kernel takes it back, however its holder ends. **Invariant.** Nobody asks for the lock who has it already.

use std::fs::{self, File, TryLockError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::tools::Tools;
use crate::ui;

/// Who waits longer is told why.
const PATIENCE: Duration = Duration::from_secs(2);

/// The lock, as long as the file stays open.
pub fn builds(tools: &Tools) -> Result<File> {
    let path = tools.target().join("lock");
    let what = || tools.shown(&path);
    fs::create_dir_all(tools.target()).with_context(what)?;
    let file = File::options().create(true).append(true).open(&path).with_context(what)?;
    let (begun, mut told) = (Instant::now(), false);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => bail!("{}: {error}", what()),
            Err(TryLockError::WouldBlock) => {}
        }
        if !told && begun.elapsed() > PATIENCE {
            ui::progress("waiting", "for another build to end");
            told = true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

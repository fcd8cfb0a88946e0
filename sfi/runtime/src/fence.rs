//! The second fence: what somebody reaches who has broken out of his segment.
//!
//! Confined code has no system calls at all; this is for those who would rather not rely on one wall.
//! Strategy: two mechanisms of the kernel's, put round the thread that runs a program and those it starts,
//! for good. Landlock knows the directories and ports that the policy names; seccomp the system calls that
//! this runtime makes, with their arguments: none that concerns another process, none that makes memory
//! executable, none of files and sockets if the policy has none. Where Landlock is missing and would be
//! needed, there is no fence, and an error.
//!
//! Threads that run already are not behind it, and who has broken out can write their stacks. So it is a wall
//! round a process that has one thread when it is raised, as `pebble sfi run` has: then the place where
//! portal code is written goes as well, and with it all new portals.

mod filter;
mod landlock;

use crate::arena;
use crate::error::{Error, system};
use crate::policy::Policy;

/// Puts the fence round the calling thread, for a program under this policy. It cannot be taken off again.
pub fn raise(policy: &Policy) -> Result<(), Error> {
    let alone = threads() == Some(1);
    // SAFETY: numbers only.
    let promised = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    if promised != 0 {
        return Err(raising(std::io::Error::last_os_error()));
    }
    landlock::restrict(policy)?;
    if alone {
        arena::close();
    }
    filter::install(policy).map_err(raising)
}

fn raising(error: std::io::Error) -> Error {
    system("raising the second fence")(error)
}

/// How many the process has, if that can be known.
fn threads() -> Option<usize> {
    Some(std::fs::read_dir("/proc/self/task").ok()?.count())
}

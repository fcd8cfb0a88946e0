//! Waiting on a domain's behalf: for time, for sockets, for the standard files.
//!
//! Problem: a call ends with its deadline or a cancellation because the domain's code loses its rights, which
//! does not wake who waits in the kernel. Strategy: nobody waits there for long. Sockets, and FIFOs and
//! devices that the domain opens, are non-blocking to the kernel, whatever the domain has asked for, and
//! between short waits the instance's state is looked at. Standard files are the process's, so they stay as
//! they are: one thread at a time asks whether there is something, and takes no more than that. Only another
//! process, or the host itself, can be faster in between.

use crate::ending::over;
use crate::instance::{Shared, lock};
use crate::pieces::PIECE;
use crate::sys::{Answer, Call, File, result};
use std::os::fd::RawFd;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// As long as a call outlasts its end at most.
const MOMENT: Duration = Duration::from_millis(10);

/// What a pipe that is ready takes at once.
const READY: u64 = libc::PIPE_BUF as u64;

/// Held between the question whether a standard file is ready and what is done then.
static STANDARD: Mutex<()> = Mutex::new(());

/// For who forks: the child has it free.
pub fn hold() -> MutexGuard<'static, ()> {
    lock(&STANDARD)
}

/// Pipes, terminals, sockets: what one may have to wait for.
pub(crate) fn is_stream(fd: RawFd) -> bool {
    // SAFETY: the kernel writes a whole structure of ours, or says that there is no such file.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        libc::syscall(libc::SYS_fstat, fd, &mut stat) == 0
            && matches!(stat.st_mode & libc::S_IFMT, libc::S_IFIFO | libc::S_IFCHR | libc::S_IFSOCK)
    }
}

/// Until `done` says so, or the time is over, or the call is: `EINTR`. It is asked to wait for a piece of the
/// time.
pub(crate) fn until(
    shared: &Shared,
    time: Option<Duration>,
    mut done: impl FnMut(Duration) -> Result<bool, i32>,
) -> Result<(), i32> {
    let begin = Instant::now();
    loop {
        let left = time.map_or(MOMENT, |time| time.saturating_sub(begin.elapsed()));
        if done(left.min(MOMENT))? || left.is_zero() {
            return Ok(());
        }
        if over(shared) {
            return Err(libc::EINTR);
        }
    }
}

/// What is ready of these files, within a time or whenever it is; how many.
pub(crate) fn poll(shared: &Shared, files: &mut [libc::pollfd], time: Option<Duration>) -> Answer {
    let mut ready = 0;
    until(shared, time, |piece| {
        let piece = piece.as_micros().div_ceil(1000) as libc::c_int;
        // SAFETY: so many whole structures of the caller's.
        let asked = unsafe { libc::poll(files.as_mut_ptr(), files.len() as libc::nfds_t, piece) };
        ready = result(asked.into())?;
        Ok(ready > 0)
    })?;
    Ok(ready)
}

impl Call<'_> {
    pub(crate) fn ready(&self, file: &File, events: i16) -> Result<(), i32> {
        let mut one = [libc::pollfd { fd: file.fd(), events, revents: 0 }];
        poll(self.shared, &mut one, None).map(drop)
    }

    /// What a blocking file would answer to a question that moves no bytes.
    pub(crate) fn asked(&self, file: &File, events: i16, attempt: impl Fn() -> Answer) -> Answer {
        loop {
            match attempt() {
                Err(libc::EAGAIN) if file.waits() => self.ready(file, events)?,
                answer => return answer,
            }
        }
    }

    /// The same of so many bytes: what there is, or if `whole` says so, all. `attempt` moves bytes from an
    /// offset on, so many at most.
    pub(crate) fn patiently(
        &self,
        file: &File,
        events: i16,
        bytes: u64,
        whole: bool,
        attempt: impl Fn(u64, u64) -> Answer,
    ) -> Answer {
        let alone = matches!(file, File::Standard(fd) if is_stream(*fd));
        let piece = if alone && events == libc::POLLOUT { READY } else { PIECE };
        let mut done = 0;
        loop {
            let most = (bytes - done).min(piece);
            let moved =
                if alone { self.alone(file, events, || attempt(done, most)) } else { attempt(done, most) };
            let error = match moved {
                Ok(n) => {
                    done += n as u64;
                    // A whole piece: there may be more.
                    let more = n > 0 && done < bytes && (n as u64 == most || whole && file.waits());
                    // Who is always ready would keep us beyond the end.
                    if !more || over(self.shared) {
                        return Ok(done as i64);
                    }
                    continue;
                }
                Err(libc::EAGAIN) if file.waits() && (whole || done == 0) => match self.ready(file, events) {
                    Ok(()) => continue,
                    Err(error) => error,
                },
                Err(error) => error,
            };
            return if done > 0 { Ok(done as i64) } else { Err(error) };
        }
    }

    /// Of a standard file, if there is something now; `EAGAIN` otherwise.
    fn alone(&self, file: &File, events: i16, attempt: impl Fn() -> Answer) -> Answer {
        let _alone = hold();
        let mut one = [libc::pollfd { fd: file.fd(), events, revents: 0 }];
        match poll(self.shared, &mut one, Some(Duration::ZERO))? {
            0 => Err(libc::EAGAIN),
            _ => attempt(),
        }
    }

    /// A connection that has been begun: what has become of it.
    pub(crate) fn connected(&self, file: &File) -> Answer {
        self.ready(file, libc::POLLOUT)?;
        let (mut error, mut length) = (0i32, 4 as libc::socklen_t);
        // SAFETY: four bytes of ours.
        result(unsafe {
            let to = (&raw mut error).cast();
            libc::getsockopt(file.fd(), libc::SOL_SOCKET, libc::SO_ERROR, to, &mut length).into()
        })?;
        if error == 0 { Ok(0) } else { Err(error) }
    }

    pub(crate) fn sleep(&self, at: u64) -> Answer {
        let mut bytes = [0; 16];
        self.shared.read(at, &mut bytes).map_err(|_| libc::EFAULT)?;
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
        let time = Duration::new(word(0).min(1 << 32), (word(8) as u32).min(999_999_999));
        until(self.shared, Some(time), |piece| {
            std::thread::sleep(piece);
            Ok(false)
        })?;
        Ok(0)
    }
}

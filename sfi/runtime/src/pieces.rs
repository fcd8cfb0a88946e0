//! System calls that take long, so that none outlasts the call of the domain that it is done for.
//!
//! Problem: the kernel does not ask whether a deadline has passed: a gigabyte of random numbers takes it
//! twenty seconds. Strategy: whatever grows with a number of the domain's is done in pieces, between which
//! the end is looked at; what cannot be cut (to write a file back, to free a large one) is an *errand*, which
//! another thread goes on and this one waits for as long as the call lasts. Every system call that may take
//! long goes through one of the functions here or of [`crate::wait`].

use crate::ending::over;
use crate::layout::PAGE;
use crate::sys::{Answer, Call, File, result};
use crate::wait::until;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};

/// Bytes that are moved between two looks. The slowest, random numbers, take 3 ms.
pub(crate) const PIECE: u64 = 128 << 10;
/// The same of memory that is given back, 8192 pages, and of files' storage that is freed.
pub(crate) const MEMORY: u64 = 8192 * PAGE;
const STORAGE: i64 = 32 << 20;

/// Errands under way, at most: each is a thread.
const MOST_ERRANDS: usize = 64;
static ERRANDS: AtomicUsize = AtomicUsize::new(0);

/// One of them, until it is dropped.
struct Errand;

impl Errand {
    fn begin() -> Option<Errand> {
        let one_more = |n| (n < MOST_ERRANDS).then_some(n + 1);
        ERRANDS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok().map(|_| Errand)
    }
}

impl Drop for Errand {
    fn drop(&mut self) {
        ERRANDS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Has another thread do it; none if there can be no more of them.
fn send<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<std::sync::mpsc::Receiver<T>> {
    let errand = Errand::begin()?;
    let (tell, told) = sync_channel(1);
    let body = move || {
        let _ = tell.send(work());
        drop(errand);
    };
    std::thread::Builder::new().name("pebble-sfi-errand".into()).spawn(body).ok().map(|_| told)
}

fn stat(fd: RawFd) -> Option<libc::stat> {
    // SAFETY: the kernel writes a whole structure of ours, or says that it cannot.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        (libc::syscall(libc::SYS_fstat, fd, &mut stat) == 0).then_some(stat)
    }
}

/// To free the file's storage, or to look through it, may take long.
pub(crate) fn is_large(fd: RawFd) -> bool {
    stat(fd).is_some_and(|stat| stat.st_blocks > STORAGE / 512)
}

/// Closes a file; where its storage goes with it, nobody waits for that.
pub(crate) fn close(file: File) {
    let last = stat(file.fd()).is_some_and(|stat| stat.st_nlink == 0) && is_large(file.fd());
    if let File::Own(file) = file
        && last
    {
        // Without a thread it is closed here.
        drop(send(move || drop(file)));
    }
}

impl Call<'_> {
    /// Bytes of a file on a disk, or of what is as sure: until there are no more, or the call is over.
    pub(crate) fn in_pieces(&self, bytes: u64, piece: impl Fn(u64, u64) -> Answer) -> Answer {
        let mut done = 0;
        loop {
            let most = (bytes - done).min(PIECE);
            match piece(done, most) {
                Ok(n) => {
                    done += n as u64;
                    if n as u64 != most || done == bytes || over(self.shared) {
                        return Ok(done as i64);
                    }
                }
                Err(_) if done > 0 => return Ok(done as i64),
                Err(error) => return Err(error),
            }
        }
    }

    /// Does something with a range of memory, from its end to its begin. `EINTR` if the call is over before
    /// it is done.
    pub(crate) fn downwards(
        &self,
        from: u64,
        to: u64,
        mut piece: impl FnMut(u64, u64) -> Result<(), i32>,
    ) -> Result<(), i32> {
        let mut end = to;
        while end > from {
            let begin = end.saturating_sub(MEMORY).max(from);
            piece(begin, end)?;
            end = begin;
            if end > from && over(self.shared) {
                return Err(libc::EINTR);
            }
        }
        Ok(())
    }

    /// Goes on an errand, and waits for what comes of it; `EINTR` if the call is over first, and then it is
    /// done all the same.
    pub(crate) fn errand<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, i32> + Send + 'static,
    ) -> Result<T, i32> {
        let told = send(work).ok_or(libc::EAGAIN)?;
        let mut answer = Err(libc::EIO);
        until(self.shared, None, |time| match told.recv_timeout(time) {
            Err(RecvTimeoutError::Timeout) => Ok(false),
            other => {
                answer = other.unwrap_or(Err(libc::EIO));
                Ok(true)
            }
        })?;
        answer
    }

    /// The same of a large file only; of another it is done here.
    pub(crate) fn errand_if<T: Send + 'static>(
        &self,
        large: bool,
        work: impl FnOnce() -> Result<T, i32> + Send + 'static,
    ) -> Result<T, i32> {
        if large { self.errand(work) } else { work() }
    }

    /// Calls about the whole of a file, of two numbers.
    pub(crate) fn whole_file(&self, number: libc::c_long) -> Answer {
        let (file, b, c) = (self.file(self.a)?, self.b, self.c);
        let writes_back = matches!(number, libc::SYS_fsync | libc::SYS_fdatasync);
        let searches = number == libc::SYS_lseek && !(0..=libc::SEEK_END).contains(&(c as i32));
        let cuts = number == libc::SYS_ftruncate;
        let long = writes_back || (searches || cuts) && is_large(file.fd());
        // SAFETY: numbers only.
        self.errand_if(long, move || result(unsafe { libc::syscall(number, file.fd(), b, c) }))
    }
}

/// What a name leads to, if it can be opened.
pub(crate) fn is_large_file(found: Result<OwnedFd, i32>) -> bool {
    found.is_ok_and(|file| is_large(file.as_raw_fd()))
}

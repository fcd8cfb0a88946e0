//! The trusted arbitration code: what the domain's C library asks for by `pbl_syscall`, with Linux's numbers
//! and errors.
//!
//! Problem: the C library speaks system calls, and none of the domain's may reach the kernel as it is.
//! Strategy: an allow-list; each call is done anew by the process, with its own descriptors, within the
//! policy; pointers are ranges of the segment before the kernel sees them, and the kernel's own checks
//! (`EFAULT`, read-only pages) hold for what is not mapped or is code. Every call is answered by a number: a
//! result, or a negated errno.

use crate::ending::over;
use crate::error::Error;
use crate::fault::Cause;
use crate::guard::guard;
use crate::imports::Imports;
use crate::instance::{Shared, lock};
use crate::layout::*;
use crate::module::Module;
use crate::pieces::{self, PIECE};
use crate::policy::{Policy, errno};
use crate::space::Space;
use crate::thread;
use crate::wait;
use libc::c_long;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

/// What one instance has of the process's resources.
pub struct Resources {
    /// [`UNASKED`] until one is granted.
    policy: OnceLock<Arc<Policy>>,
    pub(crate) state: Mutex<State>,
    /// Bytes of the module's image.
    image: u64,
}

/// What needs no policy: memory, clock, random numbers, and to end itself.
static UNASKED: LazyLock<Policy> = LazyLock::new(Policy::default);

pub(crate) struct State {
    pub(crate) space: Space,
    files: Vec<Option<File>>,
    exit: Option<i32>,
}

impl State {
    /// `has`: bytes of memory that count already.
    fn new(policy: &Policy, begin: u64, has: u64) -> State {
        let files = (0..3).map(|fd| policy.standard[fd as usize].then_some(File::Standard(fd))).collect();
        State { space: Space::new(begin, policy.memory, has), files, exit: None }
    }
}

/// Whoever uses it has a share in it: a number that another thread of the domain closes meanwhile may be
/// another file of the process's.
#[derive(Clone)]
pub(crate) enum File {
    /// 0, 1 or 2 of the process.
    Standard(RawFd),
    Own(Arc<OwnedFd>),
    /// A socket, or what else is no disk's: non-blocking to the kernel; whether it is to the domain.
    Stream(Arc<OwnedFd>, bool),
}

impl File {
    pub(crate) fn fd(&self) -> RawFd {
        match self {
            File::Standard(fd) => *fd,
            File::Own(file) | File::Stream(file, _) => file.as_raw_fd(),
        }
    }

    /// The domain takes it for blocking, whatever it is to the kernel: `wait` does the waiting.
    pub(crate) fn waits(&self) -> bool {
        matches!(self, File::Stream(_, false) | File::Standard(_))
    }
}

pub(crate) type Answer = Result<i64, i32>;

const MOST_FILES: usize = 256;
const MOST_BYTES: u64 = 1 << 30;

impl Resources {
    /// Memory may be given out from the module's end on.
    pub fn new(module: &Module) -> Resources {
        let image = module.bytes_mapped();
        let state = Mutex::new(State::new(&UNASKED, module.end(), image));
        Resources { policy: OnceLock::new(), state, image }
    }

    fn policy(&self) -> &Policy {
        self.policy.get().map_or(&UNASKED, |policy| policy)
    }

    /// Once. What it has been given before stays its own, and counts; it is an error if that is too much.
    /// What lies between the module's end and `begin` is memory of the domain's too.
    pub fn grant(&self, policy: &Arc<Policy>, begin: u64) -> Result<(), Error> {
        let mut state = lock(&self.state);
        if self.policy.set(policy.clone()).is_ok() {
            let fresh = State::new(policy, begin, state.space.used + (begin - state.space.begin()));
            match state.space.untouched() {
                true => *state = fresh,
                false => (state.files, state.space.limit) = (fresh.files, fresh.space.limit),
            }
        }
        if state.space.used > state.space.limit { Err(state.space.too_much(0)) } else { Ok(()) }
    }

    /// As at the begin: nothing but the module, no files but the standard ones.
    pub fn reset(&self, begin: u64) -> Result<(), Error> {
        let fresh = State::new(self.policy(), begin, self.image);
        let space = &fresh.space;
        let fits = if space.used > space.limit { Err(space.too_much(0)) } else { Ok(()) };
        *lock(&self.state) = fresh;
        fits
    }

    /// Counts memory of the instance's that it has not asked for itself.
    pub fn charge(&self, bytes: u64) -> Result<(), Error> {
        let space = &mut lock(&self.state).space;
        if space.charge(bytes) { Ok(()) } else { Err(space.too_much(bytes)) }
    }

    pub fn release(&self, bytes: u64) {
        lock(&self.state).space.release(bytes);
    }

    pub fn exit_code(&self) -> Option<i32> {
        lock(&self.state).exit
    }
}

/// One entry a system call, as the C library's imports `pbl_sys_NAME` want it.
extern "C" fn named<const NUMBER: i64>(a: u64, b: u64, c: u64, d: u64, e: u64, f: u64) -> i64 {
    answer(NUMBER, [a, b, c, d, e, f])
}

/// `pbl_syscall`: the number, then five words.
extern "C" fn numbered(number: i64, a: u64, b: u64, c: u64, d: u64, e: u64) -> i64 {
    answer(number, [a, b, c, d, e, 0])
}

fn answer(number: i64, words: [u64; 6]) -> i64 {
    let none = -i64::from(libc::ENOSYS);
    // A signal handler's call could ask for the same locks.
    let _inside = thread::Inside::enter();
    let Some(shared) = thread::caller() else { return none };
    let resources = &shared.resources;
    let [a, b, c, d, e, f] = words;
    match guard(|| (Call { shared, resources, a, b, c, d, e, f }).answer(number)) {
        Some(Ok(value)) => value,
        Some(Err(error)) => -i64::from(error),
        None => -i64::from(libc::EIO),
    }
}

macro_rules! names {
    ($($name:literal $number:ident)*) => {
        [$(($name, libc::$number, named::<{ libc::$number }> as *const ())),*]
    };
}

/// What the C library imports as `pbl_sys_NAME`: name, Linux's number, entry.
const NAMES: [(&str, c_long, *const ()); 59] = names!(
    "read" SYS_read "write" SYS_write "readv" SYS_readv "writev" SYS_writev "open" SYS_open
    "openat" SYS_openat "close" SYS_close "lseek" SYS_lseek "fstat" SYS_fstat "newfstatat" SYS_newfstatat
    "stat" SYS_stat "lstat" SYS_lstat "ioctl" SYS_ioctl "mmap" SYS_mmap "munmap" SYS_munmap
    "mremap" SYS_mremap "madvise" SYS_madvise "mprotect" SYS_mprotect "brk" SYS_brk
    "clock_gettime" SYS_clock_gettime "clock_getres" SYS_clock_getres "gettimeofday" SYS_gettimeofday
    "nanosleep" SYS_nanosleep "clock_nanosleep" SYS_clock_nanosleep "exit_group" SYS_exit_group
    "unlink" SYS_unlink "rename" SYS_rename "mkdir" SYS_mkdir "rmdir" SYS_rmdir "access" SYS_access "readlink" SYS_readlink
    "ftruncate" SYS_ftruncate "fsync" SYS_fsync "fdatasync" SYS_fdatasync "getcwd" SYS_getcwd
    "pread64" SYS_pread64 "pwrite64" SYS_pwrite64 "getdents64" SYS_getdents64 "dup" SYS_dup
    "fcntl" SYS_fcntl "getpid" SYS_getpid "getrandom" SYS_getrandom "uname" SYS_uname "tkill" SYS_tkill
    "kill" SYS_kill "socket" SYS_socket "connect" SYS_connect "bind" SYS_bind "listen" SYS_listen
    "accept" SYS_accept "accept4" SYS_accept4 "getsockname" SYS_getsockname "getpeername" SYS_getpeername
    "sendto" SYS_sendto "recvfrom" SYS_recvfrom "setsockopt" SYS_setsockopt "getsockopt" SYS_getsockopt
    "shutdown" SYS_shutdown "poll" SYS_poll
);

/// The system calls that a domain may import one by one: their names and Linux's numbers.
pub fn system_calls() -> Vec<(&'static str, i64)> {
    NAMES.iter().map(|(name, number, _)| (*name, *number)).collect()
}

impl Imports {
    /// System calls. What they may reach is given by [`crate::Instance::grant`]; without it memory, clock and
    /// random numbers.
    pub fn system_calls(&mut self) -> Result<(), Error> {
        for (name, _, entry) in NAMES {
            // SAFETY: the function takes six words of any value.
            unsafe { self.function(&format!("pbl_sys_{name}"), "smiiiiii", entry, 0) }?;
        }
        // SAFETY: as above.
        unsafe { self.function("pbl_syscall", "smiiiiii", numbered as *const (), 0) }
    }
}

pub(crate) struct Call<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) resources: &'a Resources,
    pub(crate) a: u64,
    pub(crate) b: u64,
    pub(crate) c: u64,
    pub(crate) d: u64,
    pub(crate) e: u64,
    pub(crate) f: u64,
}

/// Result of a system call of ours.
pub(crate) fn result(value: c_long) -> Answer {
    if value < 0 { Err(errno()) } else { Ok(value) }
}

impl Call<'_> {
    pub(crate) fn policy(&self) -> &Policy {
        self.resources.policy()
    }

    /// A range of the segment, as an address for the kernel.
    pub(crate) fn range(&self, at: u64, bytes: u64) -> Result<u64, i32> {
        let offset = at.wrapping_sub(self.shared.base);
        let end = offset.checked_add(bytes).filter(|end| *end <= DATA_STACKS_END);
        if offset < CONTEXT || bytes > MOST_BYTES || end.is_none() { Err(libc::EFAULT) } else { Ok(at) }
    }

    pub(crate) fn file(&self, number: u64) -> Result<File, i32> {
        let state = lock(&self.resources.state);
        state.files.get(number as usize).cloned().flatten().ok_or(libc::EBADF)
    }

    pub(crate) fn keep(&self, file: File) -> Answer {
        let mut state = lock(&self.resources.state);
        let place = state.files.iter().position(Option::is_none).unwrap_or(state.files.len());
        if place == MOST_FILES {
            return Err(libc::EMFILE);
        }
        if place == state.files.len() {
            state.files.push(None);
        }
        state.files[place] = Some(file);
        Ok(place as i64)
    }

    fn path(&self, at: u64) -> Result<String, i32> {
        let mut bytes = Vec::new();
        while bytes.len() < 4096 {
            let next = at + bytes.len() as u64;
            let mut piece = vec![0; (PAGE - next % PAGE) as usize];
            self.shared.read(next, &mut piece).map_err(|_| libc::EFAULT)?;
            match piece.iter().position(|b| *b == 0) {
                Some(end) => {
                    bytes.extend(&piece[..end]);
                    return String::from_utf8(bytes).map_err(|_| libc::EILSEQ);
                }
                None => bytes.extend(piece),
            }
        }
        Err(libc::ENAMETOOLONG)
    }

    pub(crate) fn put(&self, at: u64, bytes: &[u8]) -> Answer {
        self.range(at, bytes.len() as u64)?;
        self.shared.write(at, bytes).map_err(|_| libc::EFAULT)?;
        Ok(0)
    }

    fn answer(&self, number: c_long) -> Answer {
        let (a, b, c, d) = (self.a, self.b, self.c, self.d);
        match number {
            libc::SYS_read | libc::SYS_write => {
                let (file, at) = (self.file(a)?, self.range(b, c)?);
                let reads = number == libc::SYS_read;
                let events = if reads { libc::POLLIN } else { libc::POLLOUT };
                self.patiently(&file, events, c, !reads, |done, most| {
                    // SAFETY: a descriptor of the domain's, a range of its segment; the kernel checks what is
                    // mapped how.
                    result(unsafe { libc::syscall(number, file.fd(), at + done, most) })
                })
            }
            libc::SYS_pread64 | libc::SYS_pwrite64 => {
                let (file, at) = (self.file(a)?, self.range(b, c)?);
                self.in_pieces(c, |done, most| {
                    // SAFETY: as for `read`.
                    result(unsafe { libc::syscall(number, file.fd(), at + done, most, d.wrapping_add(done)) })
                })
            }
            libc::SYS_readv | libc::SYS_writev => self.vector(number),
            libc::SYS_lseek | libc::SYS_ftruncate | libc::SYS_fsync | libc::SYS_fdatasync => {
                self.whole_file(number)
            }
            libc::SYS_open => self.open(self.a, self.b, self.c),
            libc::SYS_openat => self.at(a).and_then(|()| self.open(b, c, d)),
            libc::SYS_close => {
                let mut state = lock(&self.resources.state);
                let file = state.files.get_mut(a as usize).and_then(Option::take).ok_or(libc::EBADF)?;
                drop(state);
                pieces::close(file);
                Ok(0)
            }
            // The same file in the kernel as well, as after `dup`.
            libc::SYS_dup => self.keep(self.file(a)?),
            libc::SYS_fstat => self.stat(self.file(a)?.fd(), b),
            libc::SYS_stat | libc::SYS_lstat => {
                let follow = if number == libc::SYS_lstat { libc::O_NOFOLLOW } else { 0 };
                self.stat_path(a, b, follow)
            }
            libc::SYS_newfstatat => match (d as i32 & libc::AT_EMPTY_PATH != 0, self.file(a)) {
                (true, Ok(file)) => self.stat(file.fd(), c),
                _ => {
                    let follow = if d as i32 & libc::AT_SYMLINK_NOFOLLOW != 0 { libc::O_NOFOLLOW } else { 0 };
                    self.at(a).and_then(|()| self.stat_path(b, c, follow))
                }
            },
            libc::SYS_access => self.reach(a),
            libc::SYS_faccessat => self.at(a).and_then(|()| self.reach(b)),
            libc::SYS_readlink => self.read_link(a, b, c),
            libc::SYS_readlinkat => self.at(a).and_then(|()| self.read_link(b, c, d)),
            libc::SYS_unlink => self.remove(a, 0),
            libc::SYS_rmdir => self.remove(a, libc::AT_REMOVEDIR),
            libc::SYS_unlinkat => self.at(a).and_then(|()| self.remove(b, c as i32 & libc::AT_REMOVEDIR)),
            libc::SYS_mkdir => self.make_directory(a, b),
            libc::SYS_mkdirat => self.at(a).and_then(|()| self.make_directory(b, c)),
            libc::SYS_rename => self.rename(a, b),
            libc::SYS_getcwd => {
                let name = [self.policy().current.as_bytes(), b"\0"].concat();
                if name.len() as u64 > b {
                    return Err(libc::ERANGE);
                }
                self.put(a, &name).map(|_| name.len() as i64)
            }
            libc::SYS_fcntl => match b as i32 {
                libc::F_GETFD | libc::F_SETFD | libc::F_SETLK | libc::F_SETLKW => self.file(a).map(|_| 0),
                libc::F_GETLK => {
                    // l_type = F_UNLCK: nobody else has a lock.
                    self.file(a).and_then(|_| self.put(c, &2u16.to_le_bytes()))
                }
                libc::F_GETFL => {
                    let file = self.file(a)?;
                    // SAFETY: asks for flags.
                    let flags = result(unsafe { libc::fcntl(file.fd(), libc::F_GETFL) }.into())?;
                    let asked = matches!(file, File::Stream(_, true));
                    Ok(if asked { flags } else { flags & !i64::from(libc::O_NONBLOCK) })
                }
                _ => Err(libc::EINVAL),
            },
            libc::SYS_ioctl => self.file(a).and(Err(libc::ENOTTY)),
            libc::SYS_getdents64 => {
                let (file, at) = (self.file(a)?, self.range(b, c)?);
                // SAFETY: as for `read`.
                result(unsafe { libc::syscall(number, file.fd(), at, c.min(PIECE)) })
            }
            libc::SYS_brk => self.brk(),
            libc::SYS_mmap => self.map(),
            libc::SYS_munmap => self.unmap(a, b),
            libc::SYS_mremap => self.remap(),
            libc::SYS_mprotect => self.protect(),
            libc::SYS_madvise => self.advise(),
            // Other numbers are clocks of single processes, or of files.
            libc::SYS_clock_gettime | libc::SYS_clock_getres
                if !(0..=libc::CLOCK_TAI).contains(&(a as i32)) =>
            {
                Err(libc::EINVAL)
            }
            libc::SYS_clock_gettime | libc::SYS_clock_getres => {
                let mut time = [0u64; 2];
                // SAFETY: writes sixteen bytes of ours.
                result(unsafe { libc::syscall(number, a, time.as_mut_ptr()) })?;
                self.put(b, &[time[0].to_le_bytes(), time[1].to_le_bytes()].concat())
            }
            libc::SYS_gettimeofday => {
                let now =
                    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
                let words = [now.as_secs(), u64::from(now.subsec_micros())];
                self.put(a, &[words[0].to_le_bytes(), words[1].to_le_bytes()].concat())
            }
            libc::SYS_nanosleep if self.policy().allows("sleep") => self.sleep(a),
            libc::SYS_clock_nanosleep if self.policy().allows("sleep") => self.sleep(c),
            libc::SYS_getrandom => {
                let at = self.range(a, b)?;
                self.in_pieces(b, |done, most| {
                    // SAFETY: as for `read`.
                    result(unsafe { libc::syscall(number, at + done, most, 0) })
                })
            }
            libc::SYS_getpid | libc::SYS_gettid | libc::SYS_set_tid_address => Ok(1),
            libc::SYS_getuid | libc::SYS_geteuid | libc::SYS_getgid | libc::SYS_getegid => Ok(1000),
            libc::SYS_sched_yield
            | libc::SYS_rt_sigaction
            | libc::SYS_rt_sigprocmask
            | libc::SYS_sigaltstack => Ok(0),
            libc::SYS_futex => Ok(0),
            libc::SYS_uname => {
                let mut names = [0u8; 390];
                for (i, name) in ["Linux", "pebble", "6.0.0", "1", "x86_64", ""].into_iter().enumerate() {
                    names[i * 65..i * 65 + name.len()].copy_from_slice(name.as_bytes());
                }
                self.put(a, &names)
            }
            libc::SYS_exit | libc::SYS_exit_group => {
                lock(&self.resources.state).exit = Some(a as i32);
                self.shared.poison(Cause::Exit);
                Ok(0)
            }
            libc::SYS_tkill | libc::SYS_tgkill | libc::SYS_kill => {
                self.shared.poison(Cause::Abort);
                Ok(0)
            }
            _ => self.network(number).unwrap_or(Err(libc::ENOSYS)),
        }
    }

    /// Paths are not relative to directories that the domain has opened.
    fn at(&self, directory: u64) -> Result<(), i32> {
        if directory as i32 == libc::AT_FDCWD { Ok(()) } else { Err(libc::ENOTSUP) }
    }

    fn open(&self, path: u64, flags: u64, mode: u64) -> Answer {
        let path = self.path(path)?;
        let (directory, rest) = self.policy().find(&path).ok_or(libc::ENOENT)?;
        let flags = flags as i32 & !(libc::O_DIRECT | libc::O_PATH | libc::O_ASYNC);
        let large =
            flags & libc::O_TRUNC != 0 && pieces::is_large_file(directory.open(rest, libc::O_PATH, 0));
        let (policy, path) = (self.resources.policy.get().cloned(), path.clone());
        let open = move || {
            let found = policy.as_ref().and_then(|policy| policy.find(&path));
            let (directory, rest) = found.ok_or(libc::ENOENT)?;
            directory.open(rest, flags | libc::O_NONBLOCK, mode as u32)
        };
        let file = Arc::new(self.errand_if(large, open)?);
        if !wait::is_stream(file.as_raw_fd()) {
            return self.keep(File::Own(file));
        }
        let file = File::Stream(file, flags & libc::O_NONBLOCK != 0);
        // A FIFO has no end before somebody has opened it for writing.
        if file.waits() && flags & libc::O_ACCMODE == libc::O_RDONLY {
            self.ready(&file, libc::POLLIN)?;
        }
        self.keep(file)
    }

    fn stat(&self, fd: RawFd, to: u64) -> Answer {
        let at = self.range(to, size_of::<libc::stat>() as u64)?;
        // SAFETY: the kernel writes a structure into the segment, or says EFAULT.
        result(unsafe { libc::syscall(libc::SYS_fstat, fd, at) })
    }

    fn stat_path(&self, path: u64, to: u64, flags: i32) -> Answer {
        let path = self.path(path)?;
        let (directory, rest) = self.policy().find(&path).ok_or(libc::ENOENT)?;
        let file = directory.open(rest, libc::O_PATH | flags, 0)?;
        self.stat(file.as_raw_fd(), to)
    }

    fn reach(&self, path: u64) -> Answer {
        let path = self.path(path)?;
        let (directory, rest) = self.policy().find(&path).ok_or(libc::ENOENT)?;
        directory.open(rest, libc::O_PATH, 0).map(|_| 0)
    }

    fn read_link(&self, path: u64, to: u64, room: u64) -> Answer {
        let path = self.path(path)?;
        let policy = self.policy();
        let Some((directory, rest)) = policy.find(&path) else {
            return Err(if policy.is_above(&path) { libc::EINVAL } else { libc::ENOENT });
        };
        let mut text = [0; PAGE as usize];
        let length = directory.link(rest, &mut text)?.min(room as usize);
        self.put(to, &text[..length])?;
        if length == 0 { Err(libc::EINVAL) } else { Ok(length as i64) }
    }

    fn remove(&self, path: u64, flags: i32) -> Answer {
        let path = self.path(path)?;
        let (directory, rest) = self.policy().find(&path).ok_or(libc::ENOENT)?;
        if !directory.writable {
            return Err(libc::EACCES);
        }
        let (parent, name) = directory.parent(rest)?;
        let name = std::ffi::CString::new(name).map_err(|_| libc::EINVAL)?;
        let large = pieces::is_large_file(directory.open(rest, libc::O_PATH | libc::O_NOFOLLOW, 0));
        self.errand_if(large, move || {
            // SAFETY: a descriptor and a C string of ours; the name is one component.
            result(unsafe { libc::unlinkat(parent.as_raw_fd(), name.as_ptr(), flags) }.into())
        })
    }

    fn make_directory(&self, path: u64, mode: u64) -> Answer {
        let path = self.path(path)?;
        let (directory, rest) = self.policy().find(&path).ok_or(libc::ENOENT)?;
        if !directory.writable {
            return Err(libc::EACCES);
        }
        let (parent, name) = directory.parent(rest)?;
        let name = std::ffi::CString::new(name).map_err(|_| libc::EINVAL)?;
        // SAFETY: as in `remove`.
        result(unsafe { libc::mkdirat(parent.as_raw_fd(), name.as_ptr(), mode as u32 & 0o777) }.into())
    }

    fn rename(&self, from: u64, to: u64) -> Answer {
        let (from, to) = (self.path(from)?, self.path(to)?);
        let policy = self.policy();
        let (old, old_rest) = policy.find(&from).ok_or(libc::ENOENT)?;
        let (new, new_rest) = policy.find(&to).ok_or(libc::ENOENT)?;
        if !old.writable || !new.writable {
            return Err(libc::EACCES);
        }
        // What is replaced goes.
        let large = pieces::is_large_file(new.open(new_rest, libc::O_PATH | libc::O_NOFOLLOW, 0));
        let ((old, old_name), (new, new_name)) = (old.parent(old_rest)?, new.parent(new_rest)?);
        let text = |name: &str| std::ffi::CString::new(name).map_err(|_| libc::EINVAL);
        let (old_name, new_name) = (text(old_name)?, text(new_name)?);
        self.errand_if(large, move || {
            let (old, new) = (old.as_raw_fd(), new.as_raw_fd());
            // SAFETY: as in `remove`.
            result(unsafe { libc::renameat(old, old_name.as_ptr(), new, new_name.as_ptr()) }.into())
        })
    }

    fn vector(&self, number: c_long) -> Answer {
        let count = self.c.min(64) as usize;
        let mut bytes = vec![0; count * 16];
        self.shared.read(self.b, &mut bytes).map_err(|_| libc::EFAULT)?;
        let mut total = 0;
        for piece in bytes.chunks_exact(16) {
            let word = |at: usize| u64::from_le_bytes(piece[at..at + 8].try_into().unwrap_or_default());
            if word(8) == 0 {
                continue;
            }
            let one = if number == libc::SYS_readv { libc::SYS_read } else { libc::SYS_write };
            match (Call { b: word(0), c: word(8), ..*self }).answer(one) {
                Ok(n) => {
                    total += n;
                    // One piece may take long enough.
                    if (n as u64) < word(8) || over(self.shared) {
                        break;
                    }
                }
                Err(error) if total == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(total)
    }
}

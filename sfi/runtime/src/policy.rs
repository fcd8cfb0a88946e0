//! What a domain may reach of the process's resources: nothing that is not listed here.

use std::collections::HashSet;
use std::ffi::CString;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

/// A directory of the host under a name of the domain's.
pub(crate) struct Directory {
    pub name: String,
    pub file: OwnedFd,
    pub writable: bool,
}

/// Built once, for any number of instances.
pub struct Policy {
    pub(crate) directories: Vec<Directory>,
    /// Standard input, output, error.
    pub(crate) standard: [bool; 3],
    pub(crate) memory: u64,
    pub(crate) allowed: HashSet<String>,
    /// Addresses that it may connect to, and those that it may listen on; port 0 stands for every port.
    pub(crate) connects: Vec<SocketAddr>,
    pub(crate) listens: Vec<SocketAddr>,
    pub(crate) environment: Vec<CString>,
    /// What `getcwd` says.
    pub(crate) current: String,
    pub(crate) fence: bool,
    pub(crate) no_timer: bool,
}

impl Default for Policy {
    /// Memory, clock, random numbers.
    fn default() -> Policy {
        Policy {
            directories: Vec::new(),
            standard: [false; 3],
            memory: 2 << 30,
            allowed: HashSet::new(),
            connects: Vec::new(),
            listens: Vec::new(),
            environment: Vec::new(),
            current: "/".into(),
            fence: false,
            no_timer: false,
        }
    }
}

impl Policy {
    /// What a command-line program expects: the three standard files.
    pub fn program() -> Policy {
        Policy { standard: [true; 3], ..Policy::default() }
    }

    /// Lets it use the files below a directory, which it finds as `name`.
    pub fn directory(mut self, name: &str, path: &Path, writable: bool) -> io::Result<Policy> {
        use std::os::unix::ffi::OsStrExt;
        let path = CString::new(path.as_os_str().as_bytes())?;
        // SAFETY: a C string; the descriptor is nobody else's.
        let file = unsafe {
            match libc::open(path.as_ptr(), libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC) {
                -1 => return Err(io::Error::last_os_error()),
                fd => OwnedFd::from_raw_fd(fd),
            }
        };
        let name = name.trim_end_matches('/').to_string();
        self.directories.push(Directory { name, file, writable });
        // The longest name decides.
        self.directories.sort_by_key(|d| std::cmp::Reverse(d.name.len()));
        Ok(self)
    }

    /// The path by which it knows the directory `.`: one that `directory` has made known too.
    pub fn current(mut self, name: &str) -> Policy {
        self.current = name.into();
        self
    }

    /// All that an instance may have: image, stacks, heap, mappings; 2 GiB if nothing is said.
    pub fn memory(mut self, bytes: u64) -> Policy {
        self.memory = bytes;
        self
    }

    /// Something that is off otherwise: `sleep`; `connect=HOST:PORT` or `listen=HOST:PORT`, for stream
    /// sockets with every address that the host has now, and port 0 for every port.
    pub fn allow(mut self, what: &str) -> io::Result<Policy> {
        match what.split_once('=') {
            Some(("connect", to)) => self.connects.extend(to.to_socket_addrs()?),
            Some(("listen", on)) => self.listens.extend(on.to_socket_addrs()?),
            None if what == "sleep" => drop(self.allowed.insert(what.into())),
            _ => {
                let text = format!("there is sleep, connect=HOST:PORT and listen=HOST:PORT, not {what:?}");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
            }
        }
        Ok(self)
    }

    pub(crate) fn allows(&self, what: &str) -> bool {
        self.allowed.contains(what)
    }

    /// A program is run only if no instruction of it reads a clock of the processor's.
    pub fn no_timer(mut self) -> Policy {
        self.no_timer = true;
        self
    }

    /// A program is run behind a seccomp filter too.
    pub fn fence(mut self) -> Policy {
        self.fence = true;
        self
    }

    pub fn variable(mut self, text: &str) -> Policy {
        self.environment.extend(CString::new(text));
        self
    }

    /// The directory that a path of the domain's leads into, and the rest of the path.
    pub(crate) fn find<'a>(&self, path: &'a str) -> Option<(&Directory, &'a str)> {
        self.directories.iter().find_map(|d| {
            let rest = match d.name.as_str() {
                "." | "" if !path.starts_with('/') || d.name.is_empty() => path,
                name => path.strip_prefix(name).filter(|rest| rest.is_empty() || rest.starts_with('/'))?,
            };
            let rest = rest.trim_start_matches('/');
            Some((d, if rest.is_empty() { "." } else { rest }))
        })
    }
}

impl Policy {
    /// Whether a path leads to directories that it may use, and is none of them itself: all that is known of
    /// it is that it is no link.
    pub(crate) fn is_above(&self, path: &str) -> bool {
        let below =
            |d: &Directory| d.name.strip_prefix(path.trim_end_matches('/')).map(|rest| rest.starts_with('/'));
        path.starts_with('/') && self.directories.iter().any(|d| below(d) == Some(true))
    }
}

/// `open_how` of the kernel.
#[repr(C)]
struct How {
    flags: u64,
    mode: u64,
    resolve: u64,
}

const RESOLVE_NO_MAGICLINKS: u64 = 2;
const RESOLVE_BENEATH: u64 = 8;

impl Directory {
    /// Opens below the directory; no symbolic link and no `..` leads out of it. The kernel's error number on
    /// failure.
    pub(crate) fn open(&self, path: &str, flags: i32, mode: u32) -> Result<OwnedFd, i32> {
        let path = CString::new(path).map_err(|_| libc::EINVAL)?;
        let creates = flags & (libc::O_CREAT | libc::O_TMPFILE & !libc::O_DIRECTORY) != 0;
        let writes = flags & libc::O_ACCMODE != libc::O_RDONLY || creates || flags & libc::O_TRUNC != 0;
        if writes && !self.writable {
            return Err(libc::EACCES);
        }
        let how = How {
            flags: (flags | libc::O_CLOEXEC) as u32 as u64,
            mode: if creates { u64::from(mode & 0o777) } else { 0 },
            resolve: RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
        };
        // SAFETY: a C string and a whole structure of the size given.
        let fd = unsafe {
            libc::syscall(libc::SYS_openat2, self.file.as_raw_fd(), path.as_ptr(), &how, size_of::<How>())
        };
        // SAFETY: a descriptor that is nobody else's.
        let file = if fd < 0 { Err(errno()) } else { Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) }) }?;
        if flags & libc::O_PATH == 0 && is_of_processes(&file)? {
            return Err(libc::EACCES);
        }
        Ok(file)
    }

    /// What a symbolic link says, of which as much is read as there is room for.
    pub(crate) fn link(&self, path: &str, text: &mut [u8]) -> Result<usize, i32> {
        let link = self.open(path, libc::O_PATH | libc::O_NOFOLLOW, 0)?;
        if is_of_processes(&link)? {
            return Err(libc::EACCES);
        }
        // SAFETY: a descriptor, an empty C string and a buffer of ours.
        let read =
            unsafe { libc::readlinkat(link.as_raw_fd(), c"".as_ptr(), text.as_mut_ptr().cast(), text.len()) };
        match read {
            // So the kernel says of an open file that is none.
            -1 if errno() == libc::ENOENT => Err(libc::EINVAL),
            -1 => Err(errno()),
            length => Ok(length as usize),
        }
    }

    /// The directory of the last component of a path, and that component.
    pub(crate) fn parent<'a>(&self, path: &'a str) -> Result<(OwnedFd, &'a str), i32> {
        let (directory, name) = path.rsplit_once('/').unwrap_or((".", path));
        if matches!(name, "" | "." | "..") {
            return Err(libc::EINVAL);
        }
        Ok((
            self.open(
                if directory.is_empty() { "." } else { directory },
                libc::O_PATH | libc::O_DIRECTORY,
                0,
            )?,
            name,
        ))
    }
}

/// Whether it lies in procfs: there processes have their own memory as a file, this one too.
fn is_of_processes(file: &OwnedFd) -> Result<bool, i32> {
    // SAFETY: writes a whole structure of ours, for a descriptor of ours.
    unsafe {
        let mut system: libc::statfs = std::mem::zeroed();
        match libc::fstatfs(file.as_raw_fd(), &mut system) {
            0 => Ok(system.f_type == libc::PROC_SUPER_MAGIC),
            _ => Err(errno()),
        }
    }
}

pub(crate) fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

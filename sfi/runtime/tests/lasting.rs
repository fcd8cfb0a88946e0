//! No system call of a domain outlasts its deadline, however much it asks for: every import of the C
//! library's, with as much as there can be.

mod common;

use pebble_sfi_runtime::{CallError, Cause, Imports, Instance, Limit, Module, Policy, Portal, system_calls};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const TIME: Duration = Duration::from_millis(200);
/// What a call may take beyond its limit, of the processor.
const BEYOND: Duration = Duration::from_millis(50);
/// What the domain asks for at once.
const MUCH: u64 = 700 << 20;
const NONE: u64 = u64::MAX;

/// Processor time of this thread.
fn used() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes a structure of ours.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// A domain that may do all that there is, and a directory for it with large files.
struct Domain {
    instance: Instance,
    portal: Portal,
    directory: PathBuf,
    /// Much memory, each page of which is there; a path and other small things before it.
    at: u64,
}

impl Drop for Domain {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

impl Domain {
    fn new() -> Domain {
        let directory = std::env::temp_dir().join(format!("pebble-sfi-lasting-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let module = Module::load("sys", common::build("sys", 1)).unwrap();
        let mut imports = Imports::new();
        imports.system_calls().unwrap();
        let instance = Instance::new(&imports.link(&module).unwrap()).unwrap();
        let policy = Policy::default().directory("/own", &directory, true).unwrap();
        let policy = policy.directory("/dev", "/dev".as_ref(), true).unwrap().memory(2000 << 20);
        let policy = ["sleep", "connect=127.0.0.1:0", "listen=127.0.0.1:0"]
            .into_iter()
            .fold(policy, |policy, what| policy.allow(what).unwrap());
        instance.grant(&Arc::new(policy), 0);
        let portal = instance.portal("sys", "smiiiiii").unwrap();
        let mut domain = Domain { instance, portal, directory, at: 0 };
        domain.renew();
        domain
    }

    /// Memory and files as they are before each call.
    fn renew(&mut self) {
        if self.instance.poisoned().is_some() {
            self.instance.reset().unwrap();
            self.at = 0;
        }
        let large = std::fs::File::create(self.directory.join("large")).unwrap();
        // SAFETY: numbers only. A file system that does not know this leaves the file without storage.
        let stored = unsafe { libc::fallocate(large.as_raw_fd(), 0, 0, 1 << 30) } == 0;
        if !stored {
            large.set_len(1 << 30).unwrap();
        }
        std::fs::File::create(self.directory.join("other")).unwrap();
        if self.at == 0 {
            let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
            self.at = self.ask("mmap", [0, MUCH + 4096, 3, flags, NONE, 0]).unwrap() as u64;
        }
    }

    fn call(&self, limit: Limit, name: &str, words: [u64; 6]) -> Result<u64, CallError> {
        let (_, number) = system_calls().into_iter().find(|(known, _)| *known == name).expect(name);
        let [a, b, c, d, e, _] = words;
        self.portal.call_within(limit, &[number as u64, a, b, c, d, e])
    }

    fn ask(&self, name: &str, words: [u64; 6]) -> Result<i64, CallError> {
        self.call(Limit::default(), name, words).map(|value| value as i64)
    }

    fn open(&self, path: &str, flags: i32) -> u64 {
        self.instance.write(self.at, format!("{path}\0").as_bytes()).unwrap();
        let file = self.ask("open", [self.at, flags as u64, 0o600, 0, 0, 0]).unwrap();
        assert!(file >= 0, "{path}: {file}");
        file as u64
    }

    /// Something like a pipe.
    fn stream(&self) -> u64 {
        let path = self.directory.join("fifo");
        let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: a C string; it may be there already.
        unsafe { libc::mkfifo(name.as_ptr(), 0o600) };
        self.open("/own/fifo", libc::O_RDWR)
    }

    fn socket(&self) -> u64 {
        self.ask("socket", [libc::AF_INET as u64, libc::SOCK_STREAM as u64, 0, 0, 0, 0]).unwrap() as u64
    }

    /// The arguments with which a call may last: the small things come first in memory.
    fn worst(&self, name: &str) -> Vec<[u64; 6]> {
        let (at, much) = (self.at, self.at + 4096);
        let whole = at + 4096 + MUCH;
        let path = |text: &str| {
            self.instance.write(at, format!("{text}\0").as_bytes()).unwrap();
            at
        };
        let large = || self.open("/own/large", libc::O_RDWR);
        let devices = || ["/dev/zero", "/dev/urandom"].map(|path| self.open(path, libc::O_RDWR));
        let files = || [large(), self.stream()].into_iter().chain(devices());
        // So many pieces, which are all of it.
        let vector = || {
            let pieces = [much, MUCH].map(u64::to_le_bytes).concat().repeat(64);
            self.instance.write(at, &pieces).unwrap();
            at
        };
        let time = || {
            self.instance.write(at, &[1u64 << 30, 0].map(u64::to_le_bytes).concat()).unwrap();
            at
        };
        match name {
            "read" | "write" => files().map(|file| [file, much, MUCH, 0, 0, 0]).collect(),
            "readv" | "writev" => {
                let files: Vec<u64> = files().collect();
                files.into_iter().map(|file| [file, vector(), 64, 0, 0, 0]).collect()
            }
            "pread64" | "pwrite64" => files().map(|file| [file, much, MUCH, 0, 0, 0]).collect(),
            "getdents64" => vec![[self.open("/own", libc::O_DIRECTORY), much, MUCH, 0, 0, 0]],
            "getrandom" => vec![[much, MUCH, 0, 0, 0, 0]],
            "open" => vec![[path("/own/large"), (libc::O_RDWR | libc::O_TRUNC) as u64, 0, 0, 0, 0]],
            "openat" => {
                let here = libc::AT_FDCWD as u64;
                vec![[here, path("/own/large"), (libc::O_RDWR | libc::O_TRUNC) as u64, 0, 0, 0]]
            }
            "unlink" => vec![[path("/own/large"), 0, 0, 0, 0, 0]],
            "rename" => {
                self.instance.write(at + 100, b"/own/large\0").unwrap();
                vec![[path("/own/other"), at + 100, 0, 0, 0, 0]]
            }
            "ftruncate" => vec![[large(), 0, 0, 0, 0, 0], [large(), 1 << 60, 0, 0, 0, 0]],
            "fsync" | "fdatasync" => {
                let file = large();
                for n in 0..64 {
                    let _ = self.ask("pwrite64", [file, much, 1 << 20, n << 20, 0, 0]);
                }
                vec![[file, 0, 0, 0, 0, 0]]
            }
            "lseek" => (0..5).map(|whence| [large(), 0, whence, 0, 0, 0]).collect(),
            "close" => {
                let file = large();
                let _ = self.ask("unlink", [path("/own/large"), 0, 0, 0, 0, 0]);
                vec![[file, 0, 0, 0, 0, 0]]
            }
            "mmap" => {
                let (own, none) = (libc::MAP_PRIVATE as u64, libc::MAP_ANONYMOUS as u64);
                vec![[0, MUCH, 3, own, large(), 0], [0, MUCH, 3, own | none, NONE, 0]]
            }
            "munmap" => vec![[much, MUCH, 0, 0, 0, 0]],
            "mremap" => vec![
                [much, MUCH, MUCH + 4096, 1, 0, 0],
                [much, MUCH, 4096, 0, 0, 0],
                [much, MUCH, MUCH, 0, 0, 0],
            ],
            "madvise" => vec![[much, MUCH, libc::MADV_DONTNEED as u64, 0, 0, 0]],
            "mprotect" => vec![[much, MUCH, 1, 0, 0, 0], [much, MUCH, 0, 0, 0, 0]],
            "brk" => {
                let begin = self.ask("brk", [0; 6]).unwrap() as u64;
                let end = self.ask("brk", [begin + (512 << 20), 0, 0, 0, 0, 0]).unwrap() as u64;
                let _ = self.ask("getrandom", [begin, 4096, 0, 0, 0, 0]);
                vec![[end + (64 << 20), 0, 0, 0, 0, 0], [begin, 0, 0, 0, 0, 0]]
            }
            "nanosleep" => vec![[time(), 0, 0, 0, 0, 0]],
            "clock_nanosleep" => vec![[0, 0, time(), 0, 0, 0]],
            "connect" | "bind" => {
                let address = [&2u16.to_le_bytes()[..], &[0, 1, 127, 0, 0, 1], &[0; 8]].concat();
                self.instance.write(at, &address).unwrap();
                vec![[self.socket(), at, 16, 0, 0, 0]]
            }
            "accept" | "accept4" => vec![[self.socket(), 0, 0, 0, 0, 0], [self.stream(), 0, 0, 0, 0, 0]],
            "sendto" | "recvfrom" => {
                let flags = [0, libc::MSG_DONTWAIT as u64, libc::MSG_WAITALL as u64];
                flags.map(|flags| [self.socket(), much, MUCH, flags, 0, 0]).into()
            }
            "poll" => {
                let one = [&self.stream().to_le_bytes()[..4], &1u32.to_le_bytes()[..]].concat();
                self.instance.write(at, &one.repeat(64)).unwrap();
                vec![[at, 64, u64::from(u32::MAX), 0, 0, 0]]
            }
            "stat" | "lstat" | "newfstatat" | "access" | "readlink" | "mkdir" | "rmdir" => {
                let long = format!("/own/{}", "x/".repeat(2000));
                let here = libc::AT_FDCWD as u64;
                match name {
                    "newfstatat" => vec![[here, path(&long), much, 0, 0, 0]],
                    _ => vec![[path(&long), much, 0, 0, 0, 0]],
                }
            }
            // Nothing that they do grows.
            "fstat" | "dup" | "fcntl" | "ioctl" => vec![[large(), much, MUCH, 0, 0, 0]],
            "listen" | "getsockname" | "getpeername" | "setsockopt" | "getsockopt" | "shutdown" => {
                vec![[self.socket(), much, MUCH, much, MUCH, 0]]
            }
            "socket" | "clock_gettime" | "clock_getres" | "gettimeofday" | "getcwd" | "getpid" | "uname" => {
                vec![[much, MUCH, whole, much, MUCH, 0]]
            }
            "exit_group" | "tkill" | "kill" => vec![[0; 6]],
            other => panic!("{other} is a new system call: with what arguments does it last longest?"),
        }
    }

    /// Every page is there.
    fn fill(&self) {
        // What has been tried last may have taken the rights.
        let _ = self.ask("mprotect", [self.at + 4096, MUCH, 3, 0, 0, 0]);
        let bytes = vec![1; 8 << 20];
        for at in (0..MUCH).step_by(bytes.len()) {
            let most = bytes.len().min((MUCH - at) as usize);
            self.instance.write(self.at + 4096 + at, &bytes[..most]).unwrap();
        }
    }
}

#[test]
fn every_system_call_ends_with_its_deadline() {
    let mut domain = Domain::new();
    let (mut tried, mut ended) = (0, 0);
    for (name, _) in system_calls() {
        domain.renew();
        let count = domain.worst(name).len();
        for n in 0..count {
            domain.renew();
            if matches!(name, "munmap" | "mremap" | "mprotect" | "madvise") {
                domain.fill();
            }
            let words = domain.worst(name)[n];
            let before = used();
            let done = domain.call(Limit::clock(TIME), name, words);
            let took = used() - before;
            assert!(took < TIME + BEYOND, "{name} {words:x?}: {took:?}, {done:?}");
            tried += 1;
            match done {
                Ok(_) => {}
                Err(CallError::Fault(fault)) => {
                    ended += u32::from(fault.cause == Cause::Deadline);
                    assert!([Cause::Deadline, Cause::Exit, Cause::Abort].contains(&fault.cause), "{fault}");
                }
                Err(other) => panic!("{name}: {other}"),
            }
            if matches!(name, "munmap" | "mremap") {
                domain.instance.reset().unwrap();
                domain.at = 0;
            }
        }
    }
    assert!(ended > 5, "{ended} of {tried}");
    eprintln!(
        "note: {tried} system calls with all that they can be asked for, {ended} ended by a deadline of 200 \
         ms, none took 50 ms more"
    );
}

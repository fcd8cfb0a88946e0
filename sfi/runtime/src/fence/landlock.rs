//! Files and ports, by Landlock: the directories that the policy names, and what may be done below them; the
//! ports of its addresses.
//!
//! Seccomp sees no path, so who has broken out could ask for any. Of files elsewhere he learns what `stat`
//! says, if the policy has directories: that Landlock does not keep from him.

use crate::error::{Error, system};
use crate::policy::Policy;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const WRITE_FILE: u64 = 1 << 1;
const READ: u64 = 1 << 2 | 1 << 3;
const REMOVE: u64 = 1 << 4 | 1 << 5;
const MAKE: u64 = 1 << 7 | 1 << 8;
/// Renaming from one directory to another, and truncating: since the second and the third version.
const REFER: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;

const BIND_TCP: u64 = 1;
const CONNECT_TCP: u64 = 2;
/// The version that knows ports.
const PORTS: i64 = 4;
const SCOPES: i64 = 6;

const RULE_PATH: i32 = 1;
const RULE_PORT: i32 = 2;

#[repr(C)]
struct Handled {
    files: u64,
    ports: u64,
    scopes: u64,
}

#[repr(C, packed)]
struct Below {
    access: u64,
    directory: i32,
}

#[repr(C)]
struct Port {
    access: u64,
    port: u64,
}

/// The kernel's version of Landlock; 0 without it.
fn version() -> i64 {
    // SAFETY: asks for a number.
    unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, 0, 0, 1) }.max(0)
}

/// All accesses to files that a version knows.
fn files(version: i64) -> u64 {
    let bits = match version {
        1 => 13,
        2 => 14,
        3 | 4 => 15,
        _ => 16,
    };
    (1 << bits) - 1
}

/// What is to be handled of ports: not where every port is allowed.
fn ports(policy: &Policy) -> u64 {
    let some = |list: &[SocketAddr], access| if list.iter().any(|a| a.port() == 0) { 0 } else { access };
    some(&policy.listens, BIND_TCP) | some(&policy.connects, CONNECT_TCP)
}

/// Takes from the calling thread all files and ports but the policy's.
pub fn restrict(policy: &Policy) -> Result<(), Error> {
    let (version, ports) = (version(), ports(policy));
    if version == 0 && !policy.directories.is_empty() {
        return Err(Error::NoLandlock("a program that may use directories"));
    }
    if version < PORTS && ports != 0 && policy.has_network() {
        return Err(Error::NoLandlock("a program that may use single ports"));
    }
    if version == 0 {
        // The filter knows no call that would want a path or an address.
        return Ok(());
    }
    rules(policy, version, ports).map_err(system("asking Landlock for the second fence"))
}

fn rules(policy: &Policy, version: i64, ports: u64) -> io::Result<()> {
    let handled = Handled {
        files: files(version),
        ports: if version >= PORTS { ports } else { 0 },
        // No signals to other processes, no sockets of theirs without a name in a file system.
        scopes: if version >= SCOPES { 3 } else { 0 },
    };
    let known = match version {
        SCOPES.. => 24,
        PORTS.. => 16,
        _ => 8,
    };
    // SAFETY: a whole structure, of which so many bytes are read; the descriptor is nobody else's.
    let rules = unsafe {
        match libc::syscall(libc::SYS_landlock_create_ruleset, &handled, known, 0) {
            -1 => return Err(io::Error::last_os_error()),
            fd => OwnedFd::from_raw_fd(fd as i32),
        }
    };
    for directory in &policy.directories {
        let changes = WRITE_FILE | REMOVE | MAKE | REFER | TRUNCATE;
        let access = if directory.writable { READ | changes } else { READ };
        let below = Below { access: access & handled.files, directory: directory.file.as_raw_fd() };
        add(&rules, RULE_PATH, &raw const below as u64)?;
    }
    for (access, list) in [(BIND_TCP, &policy.listens), (CONNECT_TCP, &policy.connects)] {
        for address in list.iter().filter(|_| handled.ports & access != 0) {
            let port = Port { access, port: address.port().into() };
            add(&rules, RULE_PORT, &raw const port as u64)?;
        }
    }
    // SAFETY: numbers only.
    match unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn add(rules: &OwnedFd, kind: i32, rule: u64) -> io::Result<()> {
    // SAFETY: the callers' rule is a whole structure of this kind, which the kernel copies.
    match unsafe { libc::syscall(libc::SYS_landlock_add_rule, rules.as_raw_fd(), kind, rule, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

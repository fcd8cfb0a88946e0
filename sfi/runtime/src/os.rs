//! Memory from the kernel: thin functions over the system calls, for ranges inside the reservation.
//!
//! Every address that is replaced lies in memory that this crate has reserved for itself, so no mapping of
//! the process is ever touched. A failed call leaves errno, which is the error.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

pub use libc::{PROT_EXEC, PROT_NONE, PROT_READ, PROT_WRITE};

fn checked(address: *mut libc::c_void) -> io::Result<u64> {
    if address == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(address as u64) }
}

/// New address space that nothing uses and that costs nothing.
pub fn reserve(bytes: u64) -> io::Result<u64> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: the kernel chooses the place; no existing mapping changes.
    checked(unsafe { libc::mmap(std::ptr::null_mut(), bytes as usize, PROT_NONE, flags, -1, 0) })
}

/// The same at this address, if nothing is there.
pub fn reserve_at(at: u64, bytes: u64) -> io::Result<()> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: existing mappings are not replaced; a kernel that does not know the flag (before 4.17) chooses
    // the place.
    let got = checked(unsafe { libc::mmap(at as *mut _, bytes as usize, PROT_NONE, flags, -1, 0) })?;
    if got != at {
        unmap(got, bytes);
        return Err(io::ErrorKind::Unsupported.into());
    }
    Ok(())
}

fn fixed(at: u64, bytes: u64, prot: i32, flags: i32, fd: i32, offset: u64) -> io::Result<()> {
    // SAFETY: callers name a range of the reservation that no Rust object lives in (layout.rs); what was
    // there is discarded.
    let r = unsafe {
        libc::mmap(at as *mut _, bytes as usize, prot, flags | libc::MAP_FIXED, fd, offset as libc::off_t)
    };
    checked(r).map(drop)
}

/// Every other running thread of the process has seen what this one wrote before, or will show what it wrote
/// before it looked.
pub fn barrier() -> io::Result<()> {
    membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
}

/// Before the first [`barrier`].
pub fn register_for_barriers() -> io::Result<()> {
    membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
}

fn membarrier(command: libc::c_int) -> io::Result<()> {
    // SAFETY: numbers only.
    match unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Zeroed memory at a place of the reservation.
pub fn anonymous(at: u64, bytes: u64, prot: i32) -> io::Result<()> {
    fixed(at, bytes, prot, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, -1, 0)
}

/// Zeroed memory of which a few pages will be touched: never huge pages, which `MAP_STACK` asks for since
/// Linux 6.7.
pub fn stack(at: u64, bytes: u64) -> io::Result<()> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
    fixed(at, bytes, PROT_READ | PROT_WRITE, flags, -1, 0)
}

/// Makes a range of the reservation unreachable again, and frees what was there.
pub fn vacate(at: u64, bytes: u64) -> io::Result<()> {
    anonymous(at, bytes, PROT_NONE)
}

pub fn shared(at: u64, bytes: u64, prot: i32, file: &OwnedFd, offset: u64) -> io::Result<()> {
    fixed(at, bytes, prot, libc::MAP_SHARED, file.as_raw_fd(), offset)
}

/// A copy of the file's pages, made when they are written.
pub fn copied(at: u64, bytes: u64, prot: i32, file: &OwnedFd, offset: u64) -> io::Result<()> {
    fixed(at, bytes, prot, libc::MAP_PRIVATE | libc::MAP_NORESERVE, file.as_raw_fd(), offset)
}

/// Memory of nobody else's, with a copy of these pieces one after the other, each whole pages.
pub fn copies(pieces: &[Piece]) -> io::Result<u64> {
    let bytes = pieces.iter().map(|piece| piece.bytes).sum::<u64>() as usize;
    let (prot, flags) = (PROT_READ | PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: the kernel chooses the place; no existing mapping changes.
    let begin = checked(unsafe { libc::mmap(std::ptr::null_mut(), bytes, prot, flags, -1, 0) })?;
    let mut at = begin;
    for piece in pieces {
        // SAFETY: the pages have just been mapped, and the pieces are as long together; the caller vouches
        // for each.
        unsafe {
            std::ptr::copy_nonoverlapping(piece.from as *const u8, at as *mut u8, piece.bytes as usize)
        };
        at += piece.bytes;
    }
    Ok(begin)
}

/// Puts them in the places of what they are copies of; in a forked child, before it does anything else.
pub fn replace(pieces: &[Piece], mut at: u64) {
    for piece in pieces {
        let (bytes, flags) = (piece.bytes as usize, libc::MREMAP_FIXED | libc::MREMAP_MAYMOVE);
        // SAFETY: a mapping of the same bytes is replaced, and nobody runs but this thread.
        let moved = unsafe { libc::mremap(at as *mut _, bytes, bytes, flags, piece.to as *mut libc::c_void) };
        if moved != libc::MAP_FAILED {
            let _ = protect(piece.to, piece.bytes, piece.prot);
        }
        at += piece.bytes;
    }
}

/// Pages that others may change: where they can be read, and where they are used with which rights.
pub struct Piece {
    pub from: u64,
    pub to: u64,
    pub bytes: u64,
    pub prot: i32,
}

/// A mapping of the file where the kernel likes.
pub fn anywhere(bytes: u64, prot: i32, file: &OwnedFd) -> io::Result<u64> {
    // SAFETY: the kernel chooses the place; no existing mapping changes.
    checked(unsafe {
        libc::mmap(std::ptr::null_mut(), bytes as usize, prot, libc::MAP_SHARED, file.as_raw_fd(), 0)
    })
}

/// Undoes [`anywhere`], [`reserve`] or [`reserve_at`].
pub fn unmap(at: u64, bytes: u64) {
    // SAFETY: callers own the mapping and keep no reference into it.
    unsafe { libc::munmap(at as *mut _, bytes as usize) };
}

/// Also called in the signal handler: one system call, no allocation.
pub fn protect(at: u64, bytes: u64, prot: i32) -> io::Result<()> {
    // SAFETY: callers name pages of an instance, in which no Rust object lives.
    match unsafe { libc::mprotect(at as *mut _, bytes as usize, prot) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Gives the memory back, and keeps the mapping.
pub fn discard(at: u64, bytes: u64) {
    // SAFETY: callers name private pages of a stack that nobody uses; they read as zero afterwards.
    unsafe { libc::madvise(at as *mut _, bytes as usize, libc::MADV_DONTNEED) };
}

/// A file that lives in memory only.
pub fn memory_file(name: &std::ffi::CStr, bytes: u64) -> io::Result<OwnedFd> {
    // SAFETY: the name is a C string; the descriptor that comes back is nobody else's.
    let file = unsafe {
        match libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) {
            -1 => return Err(io::Error::last_os_error()),
            fd => OwnedFd::from_raw_fd(fd),
        }
    };
    // SAFETY: a descriptor of ours.
    match unsafe { libc::ftruncate(file.as_raw_fd(), bytes as libc::off_t) } {
        0 => Ok(file),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether the process may make files of this length; the kernel ends one that tries and may not.
pub fn may_be_as_long(bytes: u64) -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes a structure of ours.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) == 0 && limit.rlim_cur >= bytes }
}

pub fn write_at(file: &OwnedFd, at: u64, bytes: &[u8]) -> io::Result<()> {
    // SAFETY: a descriptor of ours and a live slice.
    let n = unsafe { libc::pwrite(file.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), at as libc::off_t) };
    if n == bytes.len() as isize { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// No write, no change of size, no further seal, for ever.
pub fn seal(file: &OwnedFd) -> io::Result<()> {
    let seals = libc::F_SEAL_WRITE | libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: a descriptor of ours.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Closes what the process was started with beyond the three standard files.
pub fn forget_files() {
    // SAFETY: for a process that has opened nothing yet; the descriptors are nobody's here.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
}

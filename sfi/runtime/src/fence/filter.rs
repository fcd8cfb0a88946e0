//! System calls, by seccomp: an allow-list of calls and of their arguments.
//!
//! Each line of the list is a call of this runtime's, of Rust's library or the C library on its behalf, or of
//! the process's end. A call goes through if one of its lines matches; else it fails with `EPERM`. Pointers
//! cannot be followed here: paths and addresses of sockets are Landlock's matter.

use crate::policy::Policy;
use libc::*;
use std::io;

/// What an argument (counted from 0) must be.
#[derive(Clone, Copy)]
enum Check {
    /// The lower half, all that calls take of it, has these bits under the mask.
    Bits(u8, u32, u32),
    /// A null pointer.
    Null(u8),
}

use Check::{Bits, Null};

const fn is(argument: u8, value: u32) -> Check {
    Bits(argument, u32::MAX, value)
}

type Line = (c_long, &'static [Check]);

/// Nothing of this makes memory executable.
const NO_EXEC: Check = Bits(2, PROT_EXEC as u32, 0);
/// Clocks of the system, and of threads of this process: others' are negative, by their process's number.
const SYSTEM_CLOCK: Check = Bits(0, !15, 0);
const THREAD_CLOCK: Check = Bits(0, 0x8000_0004, 0x8000_0004);
/// What a C library asks for when it starts a thread, and nothing that makes a process. An old flag without
/// meaning may be there.
const THREAD: Check = Bits(0, !0x0040_0000, 0x003d_0f00);
const SET_VMA: u32 = 0x5356_4d41;
const SET_GS: u32 = 0x1001;

const ALWAYS: &[Line] = &[
    (SYS_read, &[]),
    (SYS_write, &[]),
    (SYS_readv, &[]),
    (SYS_writev, &[]),
    (SYS_pread64, &[]),
    (SYS_pwrite64, &[]),
    (SYS_lseek, &[]),
    (SYS_close, &[]),
    (SYS_fstat, &[]),
    (SYS_poll, &[]),
    (SYS_fcntl, &[is(1, F_GETFL as u32)]),
    (SYS_fcntl, &[is(1, F_GETFD as u32)]),
    (SYS_fcntl, &[is(1, F_ADD_SEALS as u32)]),
    (SYS_ftruncate, &[]),
    (SYS_fsync, &[]),
    (SYS_fdatasync, &[]),
    (SYS_mmap, &[NO_EXEC]),
    (SYS_mprotect, &[NO_EXEC]),
    (SYS_munmap, &[]),
    (SYS_mremap, &[is(3, MREMAP_MAYMOVE as u32)]),
    (SYS_mremap, &[is(3, (MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP) as u32)]),
    (SYS_madvise, &[is(2, MADV_DONTNEED as u32)]),
    (SYS_madvise, &[is(2, MADV_FREE as u32)]),
    (SYS_madvise, &[is(2, MADV_HUGEPAGE as u32)]),
    (SYS_brk, &[]),
    (SYS_memfd_create, &[is(1, MFD_CLOEXEC | MFD_ALLOW_SEALING)]),
    (SYS_membarrier, &[]),
    (SYS_getrandom, &[]),
    (SYS_clock_gettime, &[SYSTEM_CLOCK]),
    (SYS_clock_gettime, &[THREAD_CLOCK]),
    (SYS_clock_getres, &[SYSTEM_CLOCK]),
    (SYS_clock_nanosleep, &[SYSTEM_CLOCK]),
    (SYS_gettimeofday, &[]),
    (SYS_nanosleep, &[]),
    (SYS_futex, &[]),
    (SYS_sched_yield, &[]),
    (SYS_restart_syscall, &[]),
    (SYS_rt_sigaction, &[]),
    (SYS_rt_sigprocmask, &[]),
    (SYS_rt_sigreturn, &[]),
    (SYS_sigaltstack, &[]),
    (SYS_getpid, &[]),
    (SYS_gettid, &[]),
    (SYS_clone, &[THREAD]),
    (SYS_set_robust_list, &[]),
    (SYS_set_tid_address, &[]),
    (SYS_rseq, &[]),
    (SYS_prctl, &[is(0, PR_SET_NAME as u32)]),
    (SYS_prctl, &[is(0, SET_VMA)]),
    (SYS_arch_prctl, &[is(0, SET_GS)]),
    (SYS_prlimit64, &[is(0, 0), Null(2)]),
    (SYS_exit, &[]),
    (SYS_exit_group, &[]),
];

/// With directories.
const FILES: &[Line] = &[
    (SYS_openat2, &[]),
    (SYS_fstatfs, &[]),
    (SYS_getdents64, &[]),
    (SYS_readlinkat, &[]),
    (SYS_unlinkat, &[]),
    (SYS_mkdirat, &[]),
    (SYS_renameat, &[]),
];

const KIND: Check = Bits(1, 0xf, SOCK_STREAM as u32);

/// With addresses of either kind.
const SOCKETS: &[Line] = &[
    (SYS_socket, &[is(0, AF_INET as u32), KIND, is(2, 0)]),
    (SYS_socket, &[is(0, AF_INET as u32), KIND, is(2, IPPROTO_TCP as u32)]),
    (SYS_socket, &[is(0, AF_INET6 as u32), KIND, is(2, 0)]),
    (SYS_socket, &[is(0, AF_INET6 as u32), KIND, is(2, IPPROTO_TCP as u32)]),
    (SYS_getsockname, &[]),
    (SYS_getpeername, &[]),
    // Without an address: with one, and some flags, it connects.
    (SYS_sendto, &[Null(4), Bits(3, MSG_FASTOPEN as u32, 0)]),
    (SYS_recvfrom, &[]),
    (SYS_setsockopt, &[is(1, SOL_SOCKET as u32), is(2, SO_REUSEADDR as u32)]),
    (SYS_setsockopt, &[is(1, SOL_SOCKET as u32), is(2, SO_KEEPALIVE as u32)]),
    (SYS_setsockopt, &[is(1, IPPROTO_TCP as u32), is(2, TCP_NODELAY as u32)]),
    (SYS_getsockopt, &[]),
    (SYS_shutdown, &[]),
];

const CONNECTING: &[Line] = &[(SYS_connect, &[])];

const LISTENING: &[Line] = &[(SYS_bind, &[]), (SYS_listen, &[]), (SYS_accept, &[]), (SYS_accept4, &[])];

/// What a C library does without where the kernel does not have it.
const UNKNOWN: [c_long; 2] = [SYS_clone3, SYS_sched_getaffinity];

const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
/// Places in what a filter sees.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

fn statement(code: u32, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

fn load(at: u32) -> sock_filter {
    statement(BPF_LD | BPF_W | BPF_ABS, at)
}

fn give(what: u32) -> sock_filter {
    statement(BPF_RET | BPF_K, what)
}

/// Goes over so many statements unless what is loaded is this.
fn unless(k: u32, over: usize) -> sock_filter {
    sock_filter { code: (BPF_JMP | BPF_JEQ | BPF_K) as u16, jt: 0, jf: over as u8, k }
}

/// The statements of a line: to its end if something differs, else an answer.
fn line(number: c_long, checks: &[Check], answer: u32) -> Vec<sock_filter> {
    // What to load, the mask, and what must come out.
    let mut compared = vec![(NUMBER, u32::MAX, number as u32)];
    for check in checks {
        let at = |argument: u8| ARGUMENTS + u32::from(argument) * 8;
        match *check {
            Bits(argument, mask, value) => compared.push((at(argument), mask, value)),
            Null(argument) => {
                compared.push((at(argument), u32::MAX, 0));
                compared.push((at(argument) + 4, u32::MAX, 0));
            }
        }
    }
    let mut out = Vec::new();
    for (i, (at, mask, value)) in compared.iter().enumerate() {
        out.extend([load(*at), statement(BPF_ALU | BPF_AND | BPF_K, *mask)]);
        out.push(unless(*value, (compared.len() - 1 - i) * 3 + 1));
    }
    out.push(give(answer));
    out
}

/// The lines for a policy, and for the process `own`: it may read and write its own memory through the
/// kernel, and end itself.
fn program(policy: &Policy, own: u32) -> Vec<sock_filter> {
    let mut filter = vec![load(ARCHITECTURE), unless(AUDIT_ARCH_X86_64, 1)];
    // Another instruction set's numbers mean other calls.
    filter.extend([statement(BPF_JMP | BPF_JA, 1), give(SECCOMP_RET_KILL_PROCESS)]);
    let mut lists = vec![ALWAYS];
    if !policy.directories.is_empty() {
        lists.push(FILES);
    }
    if policy.has_network() {
        lists.push(SOCKETS);
    }
    if !policy.connects.is_empty() {
        lists.push(CONNECTING);
    }
    if !policy.listens.is_empty() {
        lists.push(LISTENING);
    }
    for (number, checks) in lists.into_iter().flatten() {
        filter.extend(line(*number, checks, SECCOMP_RET_ALLOW));
    }
    for number in [SYS_process_vm_readv, SYS_process_vm_writev, SYS_tgkill] {
        filter.extend(line(number, &[is(0, own)], SECCOMP_RET_ALLOW));
    }
    for number in UNKNOWN {
        filter.extend(line(number, &[], SECCOMP_RET_ERRNO | ENOSYS as u32));
    }
    filter.push(give(SECCOMP_RET_ERRNO | EPERM as u32));
    filter
}

pub fn install(policy: &Policy) -> io::Result<()> {
    let mut filter = program(policy, std::process::id());
    let program = sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: a whole program, which the kernel copies and checks.
    match unsafe { prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

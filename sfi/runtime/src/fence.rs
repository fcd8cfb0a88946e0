//! The second fence: a seccomp filter over the thread that runs a program and those it starts.
//!
//! Confined code has no system calls at all; this is for those who would rather not rely on one wall. The filter knows the calls
//! that this runtime makes; every other one fails with `EPERM`. It cannot be taken off again.

use crate::error::{Error, system};

/// Calls of the runtime itself, of Rust's library on its behalf, and of the process's end.
const ALLOWED: [libc::c_long; 59] = [
    libc::SYS_membarrier,
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_lseek,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_openat2,
    libc::SYS_fstatfs,
    libc::SYS_unlinkat,
    libc::SYS_mkdirat,
    libc::SYS_renameat,
    libc::SYS_ftruncate,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_fcntl,
    libc::SYS_getdents64,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_memfd_create,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_getrandom,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_tgkill,
    libc::SYS_clone3,
    libc::SYS_clone,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_prctl,
    libc::SYS_poll,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_set_tid_address,
    libc::SYS_gettimeofday,
    libc::SYS_arch_prctl,
    libc::SYS_prlimit64,
    libc::SYS_statx,
];

/// What sockets need as well.
const NETWORK: [libc::c_long; 13] = [
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_sendto,
    libc::SYS_recvfrom,
    libc::SYS_setsockopt,
    libc::SYS_getsockopt,
    libc::SYS_shutdown,
];

const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;

const fn statement(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

const fn jump(k: u32, yes: u8, no: u8) -> libc::sock_filter {
    libc::sock_filter { code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16, jt: yes, jf: no, k }
}

/// Puts the fence round the calling thread; with `network` sockets stay possible.
pub fn raise(network: bool) -> Result<(), Error> {
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let give = libc::BPF_RET | libc::BPF_K;
    let network = if network { &NETWORK[..] } else { &[] };
    let allowed: Vec<libc::c_long> = ALLOWED.iter().chain(network).copied().collect();
    let count = allowed.len();
    // Another instruction set's numbers mean other calls.
    let mut filter = vec![
        statement(load, 4),
        jump(AUDIT_ARCH_X86_64, 1, 0),
        statement(give, libc::SECCOMP_RET_KILL_PROCESS),
    ];
    filter.push(statement(load, 0));
    for (i, number) in allowed.into_iter().enumerate() {
        filter.push(jump(number as u32, (count - i) as u8, 0));
    }
    filter.push(statement(give, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32));
    filter.push(statement(give, libc::SECCOMP_RET_ALLOW));
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: a whole program, which the kernel copies and checks.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) == 0
    };
    if done { Ok(()) } else { Err(system("raising the second fence")(std::io::Error::last_os_error())) }
}

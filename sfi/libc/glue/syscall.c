/* Which system calls the runtime may be asked for: each is an import of its own, so that a policy can name it. */
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
#define CALLS(X)                                                                                                  \
    X(read, 3) X(write, 3) X(readv, 3) X(writev, 3) X(open, 3) X(close, 1) X(lseek, 3) X(fstat, 2) X(newfstatat, 4)  \
    X(ioctl, 3) X(mmap, 6) X(munmap, 2) X(mremap, 5) X(mprotect, 3) X(madvise, 3) X(brk, 1) X(clock_gettime, 2) X(exit_group, 1)    \
    X(unlink, 1) X(rename, 2) X(ftruncate, 2) X(fsync, 1) X(getcwd, 2) X(access, 2) X(pread64, 4) X(pwrite64, 4)     \
    X(getpid, 0) X(fcntl, 3) X(mkdir, 2) X(rmdir, 1) X(stat, 2) X(lstat, 2) X(getrandom, 3) X(nanosleep, 2) \
    X(openat, 4) X(readlink, 3) X(getdents64, 3) X(dup, 1) X(fdatasync, 1) X(clock_getres, 2) X(uname, 1) \
    X(socket, 3) X(connect, 3) X(bind, 3) X(listen, 2) X(accept, 3) X(accept4, 4) X(getsockname, 3) X(getpeername, 3) \
    X(sendto, 6) X(recvfrom, 6) X(setsockopt, 5) X(getsockopt, 5) X(shutdown, 2) X(poll, 3)
#define DECLARE(n, k) long pbl_sys_##n(long, long, long, long, long, long);
CALLS(DECLARE)

/* As long as the time is away; then it is looked at again, since a clock may be set meanwhile. */
static long sleep_until(long clock, const struct timespec *when) {
    if ((unsigned long)when->tv_nsec >= 1000000000)
        return -EINVAL;
    for (;;) {
        struct timespec now, rest;
        long failed = pbl_sys_clock_gettime(clock, (long)&now, 0, 0, 0, 0);
        if (failed)
            return failed;
        rest.tv_sec = when->tv_sec - now.tv_sec;
        rest.tv_nsec = when->tv_nsec - now.tv_nsec;
        if (rest.tv_nsec < 0)
            rest.tv_sec--, rest.tv_nsec += 1000000000;
        if (rest.tv_sec < 0 || (rest.tv_sec | rest.tv_nsec) == 0)
            return 0;
        if ((failed = pbl_sys_nanosleep((long)&rest, 0, 0, 0, 0, 0)))
            return failed;
    }
}

__attribute__((visibility("hidden"))) long __pbl_syscall(long n, long a, long b, long c, long d, long e, long f) {
    switch (n) {
#define CASE(name, k) case SYS_##name: return pbl_sys_##name(a, b, c, d, e, f);
        CALLS(CASE)
    case SYS_exit: return pbl_sys_exit_group(a, 0, 0, 0, 0, 0);
    case SYS_clock_nanosleep: return b & TIMER_ABSTIME ? sleep_until(a, (const void *)c) : pbl_sys_nanosleep(c, d, 0, 0, 0, 0);
    case SYS_readlinkat: return (int)a == AT_FDCWD ? pbl_sys_readlink(b, c, d, 0, 0, 0) : -ENOTSUP;
    case SYS_getuid: case SYS_geteuid: case SYS_getgid: case SYS_getegid: return 1000;
    case SYS_set_tid_address: case SYS_gettid: return 1;
    case SYS_rt_sigprocmask: case SYS_rt_sigaction: case SYS_futex: case SYS_membarrier: return 0;
    default: return -ENOSYS;
    }
}

// The system calls that the measurements make, without a C library between.
//
// Nothing but the call itself is added to what Linux does: this is its best case. What knows the processor is
// in `machine.h`, in a folder with its name.
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef uint64_t u64;
typedef int64_t i64;

struct timespec {
    i64 seconds, nanoseconds;
};

#include "machine.h"

#define AT_FDCWD (-100)
#define O_RDWR 2
#define O_CREAT 0100
#define O_TRUNC 01000
#define O_CLOEXEC 02000000
#define PAGE 4096

static inline i64 getppid(void) { return sys0(SYS_getppid); }
static inline i64 sched_yield(void) { return sys0(SYS_sched_yield); }
static inline i64 read(i64 fd, void *to, u64 count) { return sys3(SYS_read, fd, (i64)to, (i64)count); }
static inline i64 write(i64 fd, const void *from, u64 count) {
    return sys3(SYS_write, fd, (i64)from, (i64)count);
}
static inline i64 execve(const char *path, const char *const *arguments, const char *const *environment) {
    return sys3(SYS_execve, (i64)path, (i64)arguments, (i64)environment);
}
static inline i64 rewind_file(i64 fd) { return sys3(SYS_lseek, fd, 0, 0); }
// How many bytes a file has.
static inline i64 file_end(i64 fd) { return sys3(SYS_lseek, fd, 0, 2); }
static inline i64 close(i64 fd) { return sys3(SYS_close, fd, 0, 0); }
static inline i64 open(const char *path, i64 flags) {
    return sys6(SYS_openat, AT_FDCWD, (i64)path, flags, 0644, 0, 0);
}

// A child, a copy of this process; 0 in the child.
static inline i64 fork(void) {
    enum { SIGCHLD = 17 };
    return sys6(SYS_clone, SIGCHLD, 0, 0, 0, 0, 0);
}

static inline i64 wait_for(i64 pid) { return sys6(SYS_wait4, pid, 0, 0, 0, 0, 0); }

__attribute__((noreturn)) static inline void exit(i64 status) {
    for (;;) sys3(SYS_exit, status, 0, 0);
}

// The pages of a file, to be read.
static inline const void *map_file(i64 fd, u64 bytes) {
    enum { READ = 1, SHARED = 1 };
    return (const void *)sys6(SYS_mmap, 0, (i64)bytes, READ, SHARED, fd, 0);
}
static inline void unmap(i64 start, u64 bytes) { sys3(SYS_munmap, start, (i64)bytes, 0); }

// Zeroed memory, in every child too if it is to be shared with them.
static inline void *map(u64 bytes, int shared) {
    enum { READ_WRITE = 3, SHARED = 1, PRIVATE = 2, ANONYMOUS = 0x20 };
    return (void *)sys6(SYS_mmap, 0, (i64)bytes, READ_WRITE, ANONYMOUS | (shared ? SHARED : PRIVATE), -1, 0);
}

// What must have worked; the name of what has not goes to the console, and the machine off.
i64 must(i64 outcome, const char *what);
void say(const char *text);
void *memset(void *to, int byte, size_t count);
__attribute__((noreturn)) void power_off(void);
// Sleeps for a while: the console takes what was said, and the kernel's own threads, which SCHED_FIFO keeps
// waiting, free what has ended.
void rest(void);
// Scheduling of SCHED_FIFO, at this priority.
void fifo(i64 pid, int priority);
// A child that does this for ever, at our priority or another, until it is ended.
i64 helper(void (*work)(u64), u64 argument, int priority);
void end_helper(i64 pid);

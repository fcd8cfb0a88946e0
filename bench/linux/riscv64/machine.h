// RISC-V with 64 bits: system calls, the counter, the start of a program.
//
// Included by `sys.h`, which has the types.
#pragma once

static inline i64 sys6(i64 number, i64 a, i64 b, i64 c, i64 d, i64 e, i64 f) {
    register i64 a7 __asm__("a7") = number;
    register i64 a0 __asm__("a0") = a;
    register i64 a1 __asm__("a1") = b;
    register i64 a2 __asm__("a2") = c;
    register i64 a3 __asm__("a3") = d;
    register i64 a4 __asm__("a4") = e;
    register i64 a5 __asm__("a5") = f;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a7), "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a5) : "memory");
    return a0;
}

static inline i64 sys3(i64 number, i64 a, i64 b, i64 c) {
    register i64 a7 __asm__("a7") = number;
    register i64 a0 __asm__("a0") = a;
    register i64 a1 __asm__("a1") = b;
    register i64 a2 __asm__("a2") = c;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a7), "r"(a1), "r"(a2) : "memory");
    return a0;
}

static inline i64 sys0(i64 number) {
    register i64 a7 __asm__("a7") = number;
    register i64 a0 __asm__("a0");
    __asm__ volatile("ecall" : "=r"(a0) : "r"(a7) : "memory");
    return a0;
}

enum {
    SYS_eventfd2 = 19,
    SYS_dup3 = 24,
    SYS_mkdirat = 34,
    SYS_unlinkat = 35,
    SYS_mount = 40,
    SYS_openat = 56,
    SYS_close = 57,
    SYS_pipe2 = 59,
    SYS_lseek = 62,
    SYS_read = 63,
    SYS_write = 64,
    SYS_exit = 93,
    SYS_futex = 98,
    SYS_clock_nanosleep = 115,
    SYS_sched_setscheduler = 119,
    SYS_sched_yield = 124,
    SYS_kill = 129,
    SYS_reboot = 142,
    SYS_getppid = 173,
    SYS_munmap = 215,
    SYS_clone = 220,
    SYS_execve = 221,
    SYS_mmap = 222,
    SYS_perf_event_open = 241,
    SYS_wait4 = 260,
};

// Instructions so far: user, kernel and firmware.
static inline u64 counter(void) {
    u64 value;
    __asm__ volatile("rdinstret %0" : "=r"(value) : : "memory");
    return value;
}

// The start of a program: the stack has the arguments, the environment and the auxiliary vector, which the
// function gets.
#define ENTRY(function)                \
    __asm__(".globl _start\n"          \
            "_start:\n"                \
            ".option push\n"           \
            ".option norelax\n"        \
            "la gp, __global_pointer$\n" \
            ".option pop\n"            \
            "mv a0, sp\n"              \
            "andi sp, sp, -16\n"       \
            "call " #function "\n");

// A child that does `work` in the same memory, on a stack of its own, and ends or becomes a program: this
// process sleeps until then.
static inline i64 vfork(void (*work)(const void *), const void *argument, char *stack) {
    enum { CLONE_VM = 0x100, CLONE_VFORK = 0x4000, SIGCHLD = 17 };
    register i64 a7 __asm__("a7") = SYS_clone;
    register i64 a0 __asm__("a0") = CLONE_VM | CLONE_VFORK | SIGCHLD;
    register i64 a1 __asm__("a1") = (i64)stack;
    register i64 a2 __asm__("a2") = 0;
    register i64 a3 __asm__("a3") = 0;
    register i64 a4 __asm__("a4") = 0;
    // What the child needs stays in registers: its stack is empty.
    register i64 s2 __asm__("s2") = (i64)work;
    register i64 s3 __asm__("s3") = (i64)argument;
    __asm__ volatile("ecall\n"
                     "bnez a0, 1f\n"
                     "mv a0, s3\n"
                     "jalr s2\n"
                     "unimp\n"
                     "1:\n"
                     : "+r"(a0)
                     : "r"(a7), "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(s2), "r"(s3)
                     : "memory");
    return a0;
}

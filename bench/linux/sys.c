// What more than one measurement needs of Linux: errors, priorities, processes that help.
#include "sys.h"

#include "row.h"

void say(const char *text) {
    u64 length = 0;
    while (text[length]) length++;
    write(1, text, length);
}

i64 must(i64 outcome, const char *what) {
    if (outcome >= 0) return outcome;
    say("failed with error ");
    say_number((u64)-outcome);
    say(": ");
    say(what);
    say("\n");
    power_off();
}

void power_off(void) {
    for (;;) sys3(SYS_reboot, 0xfee1dead, 672274793, 0x4321fedc);
}

void rest(void) {
    enum { CLOCK_MONOTONIC = 1 };
    const struct timespec a_while = {0, 30000000};
    sys6(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, (i64)&a_while, 0, 0, 0);
}

void fifo(i64 pid, int priority) {
    enum { SCHED_FIFO = 1 };
    must(sys3(SYS_sched_setscheduler, pid, SCHED_FIFO, (i64)&priority), "sched_setscheduler");
}

i64 helper(void (*work)(u64), u64 argument, int priority) {
    i64 pid = must(fork(), "fork");
    if (pid == 0) {
        fifo(0, priority);
        work(argument);
        exit(0);
    }
    return pid;
}

void end_helper(i64 pid) {
    enum { SIGKILL = 9 };
    must(sys3(SYS_kill, pid, SIGKILL, 0), "kill");
    must(wait_for(pid), "wait4");
}

// The compiler calls these two for what looks like them.
void *memset(void *to, int byte, size_t count) {
    unsigned char *at = to;
    while (count--) *at++ = (unsigned char)byte;
    return to;
}

void *memcpy(void *to, const void *from, size_t count) {
    unsigned char *at = to;
    const unsigned char *source = from;
    while (count--) *at++ = *source++;
    return to;
}

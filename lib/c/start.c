/* From the first instruction to main, and out again; memory and time for the C library. */
#include "internal.h"

#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

void __libc_init_array(void);
int main(int argc, char **argv);

__attribute__((noreturn)) void __pebble_start(void) {
    unsigned long argc = *(unsigned long *)__startup(STARTUP_ARGC);
    char *argv[argc + 1];
    char *next = __startup(STARTUP_ARGS);
    for (unsigned long i = 0; i < argc; i++) {
        argv[i] = next;
        next += strlen(next) + 1;
    }
    argv[argc] = NULL;
    __libc_init_array();
    errno = 0; /* as the standard wants it */
    exit(main((int)argc, argv));
}

void _exit(int status) {
    for (;;)
        portal_call(SYS_EXIT, status);
}

void *sbrk(ptrdiff_t bytes) { return (void *)__checked(portal_call(SYS_SBRK, bytes)); }

int get_asid(void) { return (int)portal_call(SYS_GET_ASID).value; }

int get_thread_id(void) { return (int)portal_call(SYS_GET_THREAD_ID).value; }

/* For abort: the only process that can be signalled is oneself. */
pid_t getpid(void) { return get_asid(); }

int kill(pid_t pid, int signal) {
    if (pid == getpid())
        _exit(128 + signal);
    errno = EPERM;
    return -1;
}

long hrtime(void) { return portal_call(SYS_HRTIME).value; }

int hrsleep(long until) { return __checked(portal_call(SYS_HRSLEEP, until)) < 0 ? -1 : 0; }

int msleep(unsigned milliseconds) { return hrsleep(hrtime() + milliseconds * (TIME_HZ / 1000L)); }

int usleep(useconds_t microseconds) { return hrsleep(hrtime() + microseconds * (TIME_HZ / 1000000L)); }

unsigned sleep(unsigned seconds) { return hrsleep(hrtime() + seconds * (long)TIME_HZ) < 0 ? seconds : 0; }

/* There is no calendar: time starts at power-on. */
int gettimeofday(struct timeval *now, void *zone) {
    (void)zone;
    long ticks = hrtime();
    now->tv_sec = ticks / TIME_HZ;
    now->tv_usec = ticks % TIME_HZ / (TIME_HZ / 1000000L);
    return 0;
}

/* Elapsed, not used, time. */
clock_t clock(void) { return (clock_t)(hrtime() * CLOCKS_PER_SEC / TIME_HZ); }

/* Time: since power-on from the scheduler's clock, since 1970 from the clock server, which reads the board's. */
#include "internal.h"

#include <limits.h>
#include <pebble-interfaces.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>

#define BILLION 1000000000L
#define NS (BILLION / TIME_HZ) /* nanoseconds in a tick */

long hrtime(void) { return portal_call(SYS_HRTIME).value; }

int hrsleep(long until) { return __checked(portal_call(SYS_HRSLEEP, until)) < 0 ? -1 : 0; }

int msleep(unsigned milliseconds) { return hrsleep(hrtime() + milliseconds * (TIME_HZ / 1000L)); }

int usleep(useconds_t microseconds) { return hrsleep(hrtime() + microseconds * (TIME_HZ / 1000000L)); }

unsigned sleep(unsigned seconds) { return hrsleep(hrtime() + seconds * (long)TIME_HZ) < 0 ? seconds : 0; }

/* Nanoseconds since 1970; -1 and errno in a system without a clock. */
static long wall(void) {
    static int clock;
    return __opened(&clock, CLOCK_WALL_NAME) ? __checked(REPEATED(clock_wall(clock))) : -1;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    long ns;
    switch (clock) {
    case CLOCK_REALTIME: ns = wall(); break;
    case CLOCK_MONOTONIC: ns = hrtime() * NS; break;
    default: errno = EINVAL; return -1;
    }
    if (ns < 0)
        return -1;
    *now = (struct timespec){ns / BILLION, ns % BILLION};
    return 0;
}

int clock_getres(clockid_t clock, struct timespec *resolution) {
    if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC) {
        errno = EINVAL;
        return -1;
    }
    if (resolution != NULL)
        *resolution = (struct timespec){0, clock == CLOCK_REALTIME ? 1 : NS};
    return 0;
}

/* Nothing cuts it short but the end of the domain, so there is never a rest. */
int nanosleep(const struct timespec *time, struct timespec *rest) {
    (void)rest;
    if (time->tv_sec < 0 || time->tv_nsec < 0 || time->tv_nsec >= BILLION) {
        errno = EINVAL;
        return -1;
    }
    long most = (LONG_MAX - hrtime()) / (long)TIME_HZ - 1;
    long seconds = time->tv_sec < most ? time->tv_sec : most;
    return hrsleep(hrtime() + seconds * (long)TIME_HZ + (time->tv_nsec + NS - 1) / NS);
}

int gettimeofday(struct timeval *now, void *zone) {
    (void)zone;
    struct timespec time;
    if (clock_gettime(CLOCK_REALTIME, &time) < 0)
        return -1;
    *now = (struct timeval){time.tv_sec, time.tv_nsec / 1000};
    return 0;
}

/* Elapsed, not used, time; getrusage's too. */
clock_t clock(void) { return (clock_t)(hrtime() * CLOCKS_PER_SEC / TIME_HZ); }

int getrusage(int who, struct rusage *usage) {
    long ns = hrtime() * NS;
    if (who != RUSAGE_SELF && who != RUSAGE_CHILDREN) {
        errno = EINVAL;
        return -1;
    }
    *usage = (struct rusage){0};
    if (who == RUSAGE_SELF)
        usage->ru_utime = (struct timeval){ns / BILLION, ns % BILLION / 1000};
    return 0;
}

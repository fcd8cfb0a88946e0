/* Calls with a time limit, as a C program makes them: "late: N failed" at the end. */
#include <pebble.h>
#include <stdio.h>

static int failed;

static void check(const char *what, int good) {
    if (!good) {
        failed++;
        printf("FAILED %s: errno %d, status %#lx\n", what, errno, portal_status());
    }
}

static int late(long value) {
    return value == -1 && errno == ETIMEDOUT && portal_status_code(portal_status()) == PORTAL_TIMEOUT;
}

int main(void) {
    const unsigned long millisecond = TIME_HZ / 1000;
    long far = hrtime() + 3600L * TIME_HZ;
    int sem = sem_create(1);
    check("in time", invoke_portal_within(1000 * millisecond, SYS_GET_ASID) == get_asid());
    check("a free semaphore", invoke_portal_within(1000 * millisecond, sem) == 0);
    for (int n = 0; n < 10; n++) {
        check("a semaphore", late(invoke_portal_within(2 * millisecond, sem)));
        check("a sleep", late(invoke_portal_within(2 * millisecond, SYS_HRSLEEP, far)));
        check("no other call ends", hrsleep(hrtime() + 3 * (long)millisecond) == 0);
    }
    check("nobody was taken out", unwound_watch() > 0 && unwound_next() == -1 && errno == ENOENT);
    printf("late: %d failed\n", failed);
    return failed != 0;
}

/*
 * Threads that meet at the C library's locks when no portal is left for a semaphore: each prints LINES lines, and the
 * console or pipe makes them wait with the stream's lock held.
 */
#include <pebble.h>
#include <stdio.h>

enum { THREADS = 3, LINES = 400 };

PEBBLE_MANIFEST("threads = 4\nportals = 12\n");

static int done;

static void print_lines(void *unused) {
    (void)unused;
    for (int n = 0; n < LINES; n++) {
        printf("line\n");
        fflush(stdout);
    }
    __atomic_fetch_add(&done, 1, __ATOMIC_SEQ_CST);
    for (;;)
        msleep(1000000);
}

int main(void) {
    printf("crowd\n");
    fflush(stdout); /* it is open now */
    while (portal_open("clock.nanoseconds") >= 0) {
    }
    for (int n = 0; n < THREADS; n++)
        if (thread_create(print_lines, NULL) < 0)
            return 1;
    while (__atomic_load_n(&done, __ATOMIC_SEQ_CST) < THREADS)
        msleep(1);
    printf("end\n");
    return 0;
}

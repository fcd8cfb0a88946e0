/* A program whose manifest gives it little: "modest: N pages, N threads, N portals" is what it gets. */
#include <pebble.h>
#include <stdio.h>

PEBBLE_MANIFEST("# little\npages = 150\nthreads = 4\nportals = 12\n");

static void sleep_for_ever(void *unused) {
    (void)unused;
    for (;;)
        msleep(1000000);
}

int main(void) {
    int pages = 0, threads = 1, portals = 0;
    printf("modest:");
    fflush(stdout);
    while (portals < 100 && portal_open("clock.nanoseconds") >= 0)
        portals++;
    while (threads < 100 && thread_create(sleep_for_ever, NULL) >= 0)
        threads++;
    while (pages < 1000 && sbrk(4096) != (void *)-1)
        pages++;
    printf(" %d pages, %d threads, %d portals\n", pages, threads, portals);
    return pages > 150 || threads > 4 || portals > 12;
}

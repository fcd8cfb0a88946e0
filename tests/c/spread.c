/*
 * spread: children whose portal tables have entries far apart, each of which takes as much of the portal manager's memory as 32 beside each other.
 */
#include <pebble.h>
#include <stdio.h>

static long handler(long index, long a, long b, long c, long d, long e) {
    return invoke_portal((int)index, a, b, c, d, e);
}

int main(void) {
    int children = 0, entries = 0, refused = 0;
    for (; !refused; children++) {
        int child = domain_fork(handler);
        if (child == 0)
            for (;;)
                msleep(1000000);
        if (child < 0)
            refused = errno;
        for (int index = 1030; index < 4090 && !refused; index += 32, entries++)
            if (portal_create_child(child, index, "nm=", 0, handler) < 0)
                refused = errno;
    }
    printf("spread: %d children, %d entries: %s\n", children, entries, strerror(refused));
    fflush(stdout);
    for (;;)
        msleep(1000000);
}

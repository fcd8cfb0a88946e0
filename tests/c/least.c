/* least THREADS: opens and closes portals without end, at the lowest priority: whoever interrupts it finds a server's lock taken, or a stack. */
#include <pebble.h>
#include <stdlib.h>

PEBBLE_MANIFEST("priority = 1\n");

static void opens(void *unused) {
    (void)unused;
    for (;;) {
        int index = portal_open("clock.nanoseconds");
        if (index >= 0)
            portal_close(index);
    }
}

int main(int argc, char **argv) {
    for (int n = 1; n < (argc > 1 ? atoi(argv[1]) : 1); n++)
        if (thread_create(opens, NULL) < 0)
            return 1;
    opens(NULL);
}

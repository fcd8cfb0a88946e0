/* stuck serve HOW: a server that does not let go of its callers. stuck call: a client whose thread stays in it when the client ends. */
#include <pebble.h>
#include <stdio.h>
#include <string.h>

static volatile long turns;

static long spin(long unused) {
    (void)unused;
    for (;;)
        turns++;
}

/* A thread whose home is dying sleeps no more. */
static long nap(long unused) {
    (void)unused;
    for (;;)
        msleep(50);
}

static void enter(void *portal) {
    portal_call((int)(long)portal, 1L);
    thread_exit();
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "serve") == 0) {
        /* Somebody else's name; a program that is refused has lost nothing. */
        for (int n = 0; n < 40; n++)
            if (portal_register("clock.nanoseconds", "npi", nap) >= 0)
                return 1;
        portal_register("stuck.here", "npi", strcmp(argv[2], "spin") == 0 ? spin : nap);
        thread_exit();
    }
    int portal = portal_open("stuck.here");
    if (portal < 0 || thread_create(enter, (void *)(long)portal) < 0) {
        perror("stuck");
        return 1;
    }
    msleep(200);
    puts("stuck: leaves a thread behind");
    return 0;
}

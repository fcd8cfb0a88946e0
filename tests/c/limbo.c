/* limbo THREADS DEPTH: threads so deep in calls, each through a portal that is closed meanwhile: its code stays until the call returns. */
#include <pebble.h>
#include <stdio.h>

static char name[24];
static int calls;

static void stay(void) {
    for (;;)
        msleep(1000000);
}

static long enter(long depth, long portal) {
    if (portal)
        portal_close((int)portal);
    int next = depth > 0 ? portal_open_with(name, "sm", NULL) : -1;
    if (next < 0)
        stay();
    __atomic_fetch_add(&calls, 1, __ATOMIC_SEQ_CST);
    return portal_call(next, depth - 1, (long)next).value;
}

static void begin(void *depth) { enter((long)depth, 0); }

int main(int argc, char **argv) {
    long depth = argc > 2 ? atoi(argv[2]) : 40;
    snprintf(name, sizeof name, "limbo%d", get_asid());
    portal_register(name, "smii", enter);
    for (int n = argc > 1 ? atoi(argv[1]) : 30; n > 0; n--)
        thread_create(begin, (void *)depth);
    for (int last = -1; last != calls; msleep(500))
        last = calls;
    printf("limbo: %d calls\n", calls);
    fflush(stdout);
    stay();
}

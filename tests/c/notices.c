/*
 * Prints each change of its own portal table as it is told, indented by how many controllers stand around it here: what the child of
 * its child opens and closes is everybody's. The first thing that it prints, it prints in the function that is told, and standard
 * output is opened there, which is a change too.
 */
#include <pebble.h>

static int level;

static void told(int asid, int index, const char *spec) {
    (void)asid;
    printf("%*s%c%d %s\n", 2 * level, "", *spec ? '+' : '-', index, spec);
}

/* The same indices again and again. */
static int change(void) {
    int bad = 0;
    for (int round = 0; round < 3; round++) {
        int wall = portal_open("clock.wall"), sem = sem_create(0);
        bad += portal_close(wall) != 0;
        bad += portal_close_many(sem, 2) != 0;
    }
    int file = open("/bin/notices", O_RDONLY);
    return bad + (close(file) != 0);
}

int main(void) {
    portal_notify(told);
    int wait = portal_open("process.wait");
    for (; level < 2; level++) {
        int child = domain_fork(invoke_portal);
        if (child != 0) {
            long status = invoke_portal(wait, child);
            printf("%*slevel %d: its child ended with %ld\n", 2 * level, "", level, status);
            return status == 3 ? 3 : 1;
        }
        portal_notify(told);
    }
    return change() == 0 ? 3 : 1;
}

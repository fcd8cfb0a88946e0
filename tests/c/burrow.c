/* A program whose children have children, as deep as it may: a domain within a domain, each with a stub for every portal of the one above. */
#include <errno.h>
#include <pebble.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    for (int depth = 0; depth < 200; depth++) {
        int child = domain_fork(invoke_portal);
        if (child > 0) {
            /* Its children die with it. */
            msleep(4000);
            return 0;
        }
        if (child < 0) {
            printf("burrow: %d deep: %s\n", depth, strerror(errno));
            fflush(stdout);
            return 0;
        }
    }
    return 1;
}

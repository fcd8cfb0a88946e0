/* A client of counter-server.c: opens the portal by name, and calls it. */
#include <pebble.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int add = portal_open("counter.add");
    if (add < 0) {
        portal_perror("counter.add");
        return 1;
    }
    long now = invoke_portal(add, argc > 1 ? atol(argv[1]) : 1);
    if (portal_status() != 0) {
        portal_perror("counter.add");
        return 1;
    }
    if (now < 0) {
        printf("refused, error %ld\n", -now);
        return 1;
    }
    printf("The counter is at %ld.\n", now);
    return 0;
}

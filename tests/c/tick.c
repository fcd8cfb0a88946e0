/*
 * tick ROUNDS: an innocent program. Each round it opens and closes a portal, uses a little memory, and sleeps for 10 ms. It tells how long the
 * longest took; 1 if something was refused.
 */
#include <pebble.h>
#include <stdio.h>

int main(int argc, char **argv) {
    long worst = 0;
    int refused = 0;
    for (int round = argc > 1 ? atoi(argv[1]) : 20; round > 0; round--) {
        long begin = hrtime();
        int portal = portal_open("clock.nanoseconds");
        void *memory = malloc(40000);
        refused += portal < 0 || portal_close(portal) < 0 || memory == NULL;
        if (memory)
            memset(memory, 1, 40000);
        free(memory);
        msleep(10);
        long took = hrtime() - begin;
        worst = took > worst ? took : worst;
    }
    printf("worst %ld ms\n", worst / 10000);
    return refused > 0;
}

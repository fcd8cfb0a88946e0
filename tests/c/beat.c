/* beat START PERIOD LENGTH: computes for so many ticks from START on, and again each PERIOD. Nearly everybody is more urgent, but the idle thread. */
#include <pebble.h>
#include <stdlib.h>

PEBBLE_MANIFEST("priority = 2\n");

int main(int argc, char **argv) {
    if (argc < 4)
        return 2;
    long period = atol(argv[2]), length = atol(argv[3]);
    for (long next = atol(argv[1]);; next += period) {
        hrsleep(next);
        while (hrtime() < next + length) {
        }
    }
}

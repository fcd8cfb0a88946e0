/* sleep SECONDS: does nothing for a while; a fraction is fine. */
#include <pebble.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    char *end = NULL;
    double seconds = argc == 2 ? strtod(argv[1], &end) : -1;
    if (end == NULL || end == argv[1] || *end != 0 || !(seconds >= 0 && seconds < 1e9)) {
        fputs("usage: sleep SECONDS\n", stderr);
        return 2;
    }
    return hrsleep(hrtime() + (long)(seconds * TIME_HZ)) < 0;
}

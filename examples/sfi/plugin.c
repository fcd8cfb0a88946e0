/* A plugin that is not trusted: it scales pictures, and has a bug. */
#include <pebble_plugin.h>
#include <string.h>

static unsigned calls;

/* Sum of the squares of a list in the plugin's own memory. */
PBL_EXPORT(sum_of_squares, "smi")
unsigned long sum_of_squares(unsigned long n) {
    unsigned long sum = 0;
    calls++;
    for (unsigned long i = 1; i <= n; i++)
        sum += i * i;
    return sum;
}

/* Brightens pixels that the host lends it: `w` is a window, the host's own pages. */
PBL_EXPORT(brighten, "smwii")
unsigned long brighten(unsigned char *pixels, unsigned long count, unsigned long by) {
    for (unsigned long i = 0; i < count; i++)
        pixels[i] = pixels[i] + by > 255 ? 255 : pixels[i] + by;
    return count;
}

/* The bug: it writes where it should not. */
PBL_EXPORT(crash, "smi")
unsigned long crash(unsigned long where) {
    *(volatile int *)where = 42;
    return calls;
}

/* And it hangs. */
PBL_EXPORT(hang, "sm")
unsigned long hang(void) {
    for (;;)
        calls++;
}

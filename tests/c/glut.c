/*
 * glut: takes memory until it is refused, and again as long as it lives: blocks of the heap, large ones first, and threads with their stacks.
 */
#include <pebble.h>
#include <stdio.h>

static void wait(void *unused) {
    (void)unused;
    for (;;)
        msleep(1000000);
}

static int take_blocks(void) {
    int taken = 0;
    for (size_t size = 8 << 20; size >= 4096; size /= 2)
        for (volatile char *block; (block = malloc(size)) != NULL; taken++)
            for (size_t i = 0; i < size; i += 4096)
                block[i] = 1;
    return taken;
}

int main(void) {
    int told = 0;
    for (;;) {
        int blocks = take_blocks(), error = errno, threads = 0;
        while (thread_create(wait, NULL) >= 0)
            threads++;
        if (told++ == 0)
            fprintf(stderr, "glut: %d blocks (%s), %d threads (%s)\n", blocks, strerror(error), threads, strerror(errno));
        msleep(20);
    }
}

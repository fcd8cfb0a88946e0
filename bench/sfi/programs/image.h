/* A picture for the image codecs: soft colours, edges and some grain. */
#ifndef PEBBLE_BENCH_IMAGE_H
#define PEBBLE_BENCH_IMAGE_H

#include "bench.h"

#define WIDTH 384
#define HEIGHT 320

static BENCH_UNUSED void image_paint(unsigned char *pixels) {
    bench_seed(61);
    for (int y = 0; y < HEIGHT; y++) {
        for (int x = 0; x < WIDTH; x++) {
            unsigned char *p = pixels + (y * WIDTH + x) * 3;
            int inside = (x - 190) * (x - 190) + (y - 150) * (y - 150) < 90 * 90;
            int stripe = (x / 16 + y / 24) % 5 == 0;
            int grain = (int)(bench_random() % 8);
            p[0] = (unsigned char)((inside ? 200 - y / 4 : x / 2) + grain);
            p[1] = (unsigned char)((stripe ? 160 : y / 2) + grain);
            p[2] = (unsigned char)((inside && stripe ? 30 : (x + y) / 4) + grain);
        }
    }
}

#endif

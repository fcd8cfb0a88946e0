/* lz4: text is packed quickly and thoroughly, and unpacked several times.
 *
 * What it packs to depends on the size of a pointer, so that only what comes back is in the checksum. */
#include "bench.h"
#include "lz4.h"
#include "lz4hc.h"

#define SIZE (1024 * 1024)
static char *text, *packed, *back;
static int bound;

static void prepare(void) {
    bound = LZ4_compressBound(SIZE);
    text = bench_alloc(SIZE), packed = bench_alloc((size_t)bound), back = bench_alloc(SIZE);
    bench_text(text, SIZE);
}

static void unpack(int length) {
    for (int i = 0; i < 4; i++)
        bench_check(LZ4_decompress_safe(packed, back, length, SIZE) == SIZE, "decompress");
    bench_check(memcmp(text, back, SIZE) == 0, "round trip");
    bench_add_bytes(back, SIZE);
    bench_check(length < SIZE / 2 + SIZE / 8, "a good ratio");
}

static void work(void) {
    for (int i = 0; i < 3; i++)
        unpack(LZ4_compress_default(text, packed, SIZE, bound));
    unpack(LZ4_compress_HC(text, packed, SIZE, bound, 4));
}

BENCH_MAIN("lz4", prepare, work)

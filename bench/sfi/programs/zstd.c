/* zstd: text is packed at three levels, and unpacked. */
#include "bench.h"
#include "zstd.h"

#define SIZE (768 * 1024)
static char *text, *packed, *back;
static size_t bound;

static void prepare(void) {
    bound = ZSTD_compressBound(SIZE);
    text = bench_alloc(SIZE), packed = bench_alloc(bound), back = bench_alloc(SIZE);
    bench_text(text, SIZE);
}

static void work(void) {
    static const int levels[] = {1, 3, 6};
    for (int i = 0; i < 3; i++) {
        size_t length = ZSTD_compress(packed, bound, text, SIZE, levels[i]);
        bench_check(!ZSTD_isError(length), "compress");
        for (int j = 0; j < 3; j++)
            bench_check(ZSTD_decompress(back, SIZE, packed, length) == SIZE, "decompress");
        bench_check(memcmp(text, back, SIZE) == 0, "round trip");
        bench_add_bytes(packed, length);
    }
}

BENCH_MAIN("zstd", prepare, work)

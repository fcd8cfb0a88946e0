/* liblzma: text is packed and unpacked. */
#include "bench.h"
#include "lzma.h"

#define SIZE (192 * 1024)
static uint8_t *text, *packed, *back;
static size_t bound;

static void prepare(void) {
    bound = lzma_stream_buffer_bound(SIZE);
    text = bench_alloc(SIZE), packed = bench_alloc(bound), back = bench_alloc(SIZE);
    bench_text((char *)text, SIZE);
}

static void work(void) {
    size_t length = 0, in = 0, whole = 0;
    uint64_t limit = UINT64_MAX;
    bench_check(lzma_easy_buffer_encode(2, LZMA_CHECK_CRC32, NULL, text, SIZE, packed, &length, bound) == LZMA_OK,
                "encode");
    for (int i = 0; i < 4; i++) {
        in = whole = 0;
        bench_check(lzma_stream_buffer_decode(&limit, 0, NULL, packed, &in, length, back, &whole, SIZE) == LZMA_OK,
                    "decode");
    }
    bench_check(whole == SIZE && memcmp(text, back, SIZE) == 0, "round trip");
    bench_add_bytes(packed, length);
}

BENCH_MAIN("xz", prepare, work)

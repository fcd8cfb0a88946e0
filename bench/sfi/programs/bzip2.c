/* bzip2: a block of text is packed and unpacked. */
#include "bench.h"
#include "bzlib.h"

#define SIZE (300 * 1024)
static char *text, *packed, *back;

void bz_internal_error(int code) {
    printf("bzip2: internal error %d\n", code);
    exit(1);
}

static void prepare(void) {
    text = bench_alloc(SIZE), packed = bench_alloc(SIZE * 2), back = bench_alloc(SIZE);
    bench_text(text, SIZE);
}

static void work(void) {
    unsigned length = SIZE * 2, whole = SIZE;
    bench_check(BZ2_bzBuffToBuffCompress(packed, &length, text, SIZE, 3, 0, 0) == BZ_OK, "compress");
    bench_check(BZ2_bzBuffToBuffDecompress(back, &whole, packed, length, 0, 0) == BZ_OK, "decompress");
    bench_check(whole == SIZE && memcmp(text, back, SIZE) == 0, "round trip");
    bench_add_bytes(packed, length);
}

BENCH_MAIN("bzip2", prepare, work)

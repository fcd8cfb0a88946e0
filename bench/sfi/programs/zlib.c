/* zlib: text is deflated at two levels and inflated again. */
#include "bench.h"
#include "zlib.h"

#define SIZE (512 * 1024)
static char *text;
static Bytef *packed, *back;

static void prepare(void) {
    text = bench_alloc(SIZE), packed = bench_alloc(SIZE * 2), back = bench_alloc(SIZE);
    bench_text(text, SIZE);
}

static void work(void) {
    for (int level = 1; level <= 6; level += 5) {
        uLongf length = SIZE * 2, whole = SIZE;
        bench_check(compress2(packed, &length, (Bytef *)text, SIZE, level) == Z_OK, "compress2");
        bench_check(uncompress(back, &whole, packed, length) == Z_OK && whole == SIZE, "uncompress");
        bench_check(memcmp(text, back, SIZE) == 0, "round trip");
        bench_add(length);
        bench_add(crc32(0, packed, (uInt)length));
    }
}

BENCH_MAIN("zlib", prepare, work)

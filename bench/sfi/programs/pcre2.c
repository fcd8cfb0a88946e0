/* PCRE2: patterns of several kinds are looked for in text, without the just-in-time compiler. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "bench.h"
#include "pcre2.h"

#define SIZE (96 * 1024)
static char *text;

static const char *const patterns[] = {
    "[a-z]+ly\\b",
    "(\\w+) \\1",
    "(?i)(re|un|de)[a-z]{2,6}(?=,)",
    "^(?:[^,\\n]*,){2}[^,\\n]*$",
    "(?:[aeiou][^aeiou\\s]){3,}",
    "\\b(\\w)\\w*\\1\\b",
    "(?<=[.,] )(?!a)\\w+(?: \\w+)?(?:,|$)",
};

static void prepare(void) {
    text = bench_alloc(SIZE);
    bench_text(text, SIZE);
}

static void find_all(const char *pattern) {
    int code, where;
    PCRE2_SIZE offset;
    pcre2_code *re = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_MULTILINE, &code, &offset, NULL);
    bench_check(re != NULL, pattern);
    pcre2_match_data *data = pcre2_match_data_create_from_pattern(re, NULL);
    PCRE2_SIZE at = 0;
    while ((where = pcre2_match(re, (PCRE2_SPTR)text, SIZE, at, 0, data, NULL)) > 0) {
        PCRE2_SIZE *ends = pcre2_get_ovector_pointer(data);
        bench_add((uint64_t)ends[0] << 32 | ends[1]);
        at = ends[1] > ends[0] ? ends[1] : ends[1] + 1;
        if (at >= SIZE)
            break;
    }
    pcre2_match_data_free(data);
    pcre2_code_free(re);
}

static void work(void) {
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        find_all(patterns[i]);
}

BENCH_MAIN("pcre2", prepare, work)

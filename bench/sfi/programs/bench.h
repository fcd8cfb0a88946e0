/* What all programs of the bench share: rounds from the command line, numbers, text that looks like text, a checksum.
 *
 * A program does the same work in every round and says `NAME ROUNDS CHECKSUM` at the end: equal on every side, or the
 * measurement is void. Nothing here depends on addresses, on the clock or on the C library's own generators. */
#ifndef PEBBLE_BENCH_H
#define PEBBLE_BENCH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __GNUC__
#define BENCH_UNUSED __attribute__((unused))
#else
#define BENCH_UNUSED
#endif

static uint64_t bench_state = 0x9E3779B97F4A7C15u;
static uint64_t bench_sum = 0xCBF29CE484222325u;

/* The next number, by xorshift and a multiplication. */
static BENCH_UNUSED uint32_t bench_random(void) {
    bench_state ^= bench_state >> 12;
    bench_state ^= bench_state << 25;
    bench_state ^= bench_state >> 27;
    return (uint32_t)((bench_state * 0x2545F4914F6CDD1Du) >> 32);
}

/* A number in 0 .. 1. */
static BENCH_UNUSED double bench_unit(void) { return (double)bench_random() / 4294967296.0; }

/* Begins the sequence of numbers anew. */
static BENCH_UNUSED void bench_seed(uint64_t seed) { bench_state = seed * 2 + 0x9E3779B97F4A7C15u; }

/* Takes a value into the checksum. */
static BENCH_UNUSED void bench_add(uint64_t value) {
    bench_sum = (bench_sum ^ value) * 0x100000001B3u;
    bench_sum ^= bench_sum >> 29;
}

/* Takes a computed number into the checksum, to six decimals. */
static BENCH_UNUSED void bench_add_real(double value) {
    bench_add((uint64_t)(int64_t)(value * 1e6 + (value < 0 ? -0.5 : 0.5)));
}

/* Takes bytes into the checksum, eight at a time. */
static BENCH_UNUSED void bench_add_bytes(const void *bytes, size_t length) {
    const unsigned char *p = bytes;
    for (; length >= 8; p += 8, length -= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        bench_add(word);
    }
    for (; length > 0; p++, length--)
        bench_add(*p);
}

/* Fills a buffer with lines of words, frequent ones more often. */
static BENCH_UNUSED void bench_text(char *text, size_t length) {
    static char words[1024][12];
    bench_seed(1993);
    for (int w = 0; w < 1024; w++) {
        int letters = 2 + (int)(bench_random() % 8);
        for (int i = 0; i < letters; i++)
            words[w][i] = i % 2 ? "aeiouyae"[bench_random() % 8] : "bcdfghlmnprstvwz"[bench_random() % 16];
        words[w][letters] = 0;
    }
    size_t column = 0;
    for (size_t i = 0; i < length;) {
        uint32_t r = bench_random();
        const char *word = words[(r & 1023) >> ((r >> 10) % 8)];
        while (*word && i < length)
            text[i++] = *word++, column++;
        if (i < length)
            text[i++] = column > 70 ? '\n' : (r >> 20) % 16 == 0 ? ',' : ' ';
        if (column > 70)
            column = 0;
    }
}

/* Memory that must be there. */
static BENCH_UNUSED void *bench_alloc(size_t bytes) {
    void *memory = malloc(bytes);
    if (!memory) {
        puts("out of memory");
        exit(1);
    }
    return memory;
}

/* Ends the program when something that cannot fail has failed. */
static BENCH_UNUSED void bench_check(int holds, const char *what) {
    if (!holds) {
        printf("failed: %s\n", what);
        exit(1);
    }
}

/* A program is one round of work, and a name. */
#define BENCH_MAIN(name, prepare, round)                                                                               \
    int main(int argc, char **argv) {                                                                                  \
        long rounds = argc > 1 ? atol(argv[1]) : 1;                                                                    \
        prepare();                                                                                                     \
        for (long i = 0; i < rounds; i++)                                                                              \
            round();                                                                                                   \
        printf("%s %ld %08x%08x\n", name, rounds, (unsigned)(bench_sum >> 32), (unsigned)bench_sum);                   \
        return 0;                                                                                                      \
    }

#endif

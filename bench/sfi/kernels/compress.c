/* compress-like: Lempel, Ziv and Welch's method with a hash table of 69001 entries and codes of 9 to 16 bits, there and back. */
#include "bench.h"

#define SIZE (400 * 1024)
#define SLOTS 69001
#define CODES 65536
#define FIRST 257
#define CLEAR 256
#define LIMIT 49152

static unsigned char *text, *packed, *back;
static int32_t keys[SLOTS];
static uint16_t values[SLOTS];
static uint16_t prefix[CODES];
static unsigned char suffix[CODES], stack[CODES];

struct bits {
    unsigned char *at;
    uint32_t word;
    int count;
};

static void put(struct bits *bits, uint32_t code, int width) {
    bits->word |= code << bits->count;
    bits->count += width;
    while (bits->count >= 8) {
        *bits->at++ = (unsigned char)bits->word;
        bits->word >>= 8;
        bits->count -= 8;
    }
}

static uint32_t get(struct bits *bits, int width) {
    while (bits->count < width) {
        bits->word |= (uint32_t)*bits->at++ << bits->count;
        bits->count += 8;
    }
    uint32_t code = bits->word & ((1u << width) - 1);
    bits->word >>= width;
    bits->count -= width;
    return code;
}

static size_t pack(void) {
    struct bits bits = {packed, 0, 0};
    uint32_t next = FIRST, code = text[0];
    int width = 9;
    memset(keys, -1, sizeof keys);
    for (size_t i = 1; i < SIZE; i++) {
        int32_t key = (int32_t)(code << 8 | text[i]);
        uint32_t slot = ((uint32_t)text[i] << 8 ^ code) % SLOTS, step = slot ? SLOTS - slot : 1;
        while (keys[slot] >= 0 && keys[slot] != key)
            slot = slot < step ? slot + SLOTS - step : slot - step;
        if (keys[slot] == key) {
            code = values[slot];
            continue;
        }
        put(&bits, code, width);
        code = text[i];
        if (next < LIMIT) {
            keys[slot] = key;
            values[slot] = (uint16_t)next;
            if (next++ == 1u << width)
                width++;
        } else {
            put(&bits, CLEAR, width);
            memset(keys, -1, sizeof keys);
            next = FIRST, width = 9;
        }
    }
    put(&bits, code, width);
    put(&bits, 0, 16);
    return (size_t)(bits.at - packed);
}

/* The packer has made `made` codes when it writes the one that is read here; ours lag behind by one. */
static void unpack(void) {
    struct bits bits = {packed, 0, 0};
    uint32_t made = FIRST, last = 0;
    int width = 9, fresh = 1;
    unsigned char first = 0;
    for (size_t i = 0; i < SIZE;) {
        uint32_t code = get(&bits, width), walk = code;
        if (code == CLEAR) {
            made = FIRST, width = 9, fresh = 1;
            continue;
        }
        size_t depth = 0;
        if (!fresh && code == made - 1)
            stack[depth++] = first, walk = last;
        while (walk > CLEAR)
            stack[depth++] = suffix[walk], walk = prefix[walk];
        stack[depth++] = first = (unsigned char)walk;
        if (!fresh) {
            prefix[made - 1] = (uint16_t)last;
            suffix[made - 1] = first;
        }
        if (made < LIMIT && made++ == 1u << width)
            width++;
        last = code, fresh = 0;
        while (depth > 0 && i < SIZE)
            back[i++] = stack[--depth];
    }
}

static void prepare(void) {
    text = bench_alloc(SIZE), packed = bench_alloc(SIZE * 2), back = bench_alloc(SIZE);
    bench_text((char *)text, SIZE);
}

static void work(void) {
    size_t length = pack();
    unpack();
    bench_check(memcmp(text, back, SIZE) == 0, "round trip");
    bench_add_bytes(packed, length);
}

BENCH_MAIN("compress", prepare, work)

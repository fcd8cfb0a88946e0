/* A codec that its host does not trust: the other side of codec.h. */
#include "codec.h"

static uint64_t unwatched, *calls = &unwatched;

checksum_t checksum(const void *bytes, size_t count) {
    const uint8_t *at = bytes;
    checksum_t a = 1, b = 0;
    ++*calls;
    for (size_t i = 0; i < count; i++) {
        a = (a + at[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

long pack(const uint8_t *from, size_t count, uint8_t *to, size_t room) {
    size_t used = 0;
    ++*calls;
    for (size_t i = 0, run; i < count; i += run) {
        for (run = 1; i + run < count && run < 255 && from[i + run] == from[i]; run++)
            ;
        if (used + 2 > room)
            return -1;
        to[used++] = (uint8_t)run;
        to[used++] = from[i];
    }
    return (long)used;
}

long unpack(const uint8_t *from, size_t count, uint8_t *to, size_t room) {
    size_t used = 0;
    ++*calls;
    for (size_t i = 0; i + 1 < count; i += 2) {
        if (used + from[i] > room)
            return -1;
        for (uint8_t run = from[i]; run; run--)
            to[used++] = from[i + 1];
    }
    return (long)used;
}

void mean(const double *samples, uint32_t count, double *result) {
    double sum = 0;
    ++*calls;
    for (uint32_t i = 0; i < count; i++)
        sum += samples[i];
    *result = count ? sum / count : 0;
}

bool knows(const char *format) {
    const char *own = "runs";
    ++*calls;
    while (*own && *own == *format)
        own++, format++;
    return *own == *format;
}

const char *describe(int level) {
    ++*calls;
    return level < 0 ? NULL : "run lengths, 1993";
}

uint32_t halvings(uint32_t length) {
    volatile uint32_t left = length, count = 0;
    ++*calls;
    while (left != 1)
        if (left % 2 == 0)
            left /= 2, count++;
    return count;
}

void watch(uint64_t *where) {
    calls = where;
}

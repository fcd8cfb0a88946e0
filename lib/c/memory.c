/*
 * memcpy and memmove.
 *
 * Problem: the processor loads words from where words lie, and the C library goes byte by byte where source and goal do not lie alike, as
 * records in a file's pages rarely do. Strategy: words are stored whole, and each is put together from two that are loaded whole.
 * Invariants: what is loaded beyond the bytes that are meant is in a word with one that is; nothing else is stored.
 */
#include <stddef.h>
#include <stdint.h>

typedef uint64_t __attribute__((may_alias)) word;
enum { WORD = sizeof(word) };

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a word's lowest bits are its first byte");

/* Or the compiler would make calls of them of the loops in them. */
#define PLAIN __attribute__((no_builtin("memcpy", "memmove")))

static inline unsigned beyond(const void *address) { return (unsigned)((uintptr_t)address % WORD); }

PLAIN static inline void forward(unsigned char *to, const unsigned char *from, size_t size) {
    if (size >= 2 * WORD) {
        for (; beyond(to) != 0; size--)
            *to++ = *from++;
        unsigned bits = 8 * beyond(from);
        const word *at = (const word *)(from - beyond(from));
        word *goal = (word *)to;
        size_t words = size / WORD;
        to += words * WORD;
        from += words * WORD;
        size %= WORD;
        if (bits == 0) {
            for (; words >= 8; words -= 8, at += 8, goal += 8) {
                word a = at[0], b = at[1], c = at[2], d = at[3], e = at[4], f = at[5], g = at[6], h = at[7];
                goal[0] = a, goal[1] = b, goal[2] = c, goal[3] = d, goal[4] = e, goal[5] = f, goal[6] = g, goal[7] = h;
            }
            for (; words > 0; words--)
                *goal++ = *at++;
        } else {
            unsigned rest = 8 * WORD - bits;
            word low = *at++;
            for (; words >= 4; words -= 4, at += 4, goal += 4) {
                word a = at[0], b = at[1], c = at[2], d = at[3];
                goal[0] = low >> bits | a << rest, goal[1] = a >> bits | b << rest;
                goal[2] = b >> bits | c << rest, goal[3] = c >> bits | d << rest;
                low = d;
            }
            for (; words > 0; words--) {
                word high = *at++;
                *goal++ = low >> bits | high << rest;
                low = high;
            }
        }
    }
    for (; size > 0; size--)
        *to++ = *from++;
}

/* From the end on: both are behind what is copied. */
PLAIN static inline void backward(unsigned char *to, const unsigned char *from, size_t size) {
    if (size >= 2 * WORD) {
        for (; beyond(to) != 0; size--)
            *--to = *--from;
        unsigned bits = 8 * beyond(from);
        const word *at = (const word *)(from - beyond(from));
        word *goal = (word *)to;
        size_t words = size / WORD;
        to -= words * WORD;
        from -= words * WORD;
        size %= WORD;
        if (bits == 0) {
            for (; words > 0; words--)
                *--goal = *--at;
        } else {
            for (word high = *at; words > 0; words--) {
                word low = *--at;
                *--goal = low >> bits | high << (8 * WORD - bits);
                high = low;
            }
        }
    }
    for (; size > 0; size--)
        *--to = *--from;
}

PLAIN void *memcpy(void *restrict to, const void *restrict from, size_t size) {
    forward(to, from, size);
    return to;
}

PLAIN void *memmove(void *to, const void *from, size_t size) {
    unsigned char *goal = to;
    const unsigned char *source = from;
    if ((uintptr_t)goal - (uintptr_t)source >= size)
        forward(goal, source, size);
    else
        backward(goal + size, source + size, size);
    return to;
}

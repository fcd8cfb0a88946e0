/* Digits of numbers; no part of the interface. */
#ifndef DECIMAL_H
#define DECIMAL_H

#include <stdio.h>

struct decimal_out {
    FILE *file; /* NULL: only count */
    int count;
    int alternate, upper;
};

/* Writes the absolute value as a conversion with this letter (a, e, f, g) and precision (below 0: none given) does: correctly rounded, without sign, and
   without 0x. Counts from 0. */
void __decimal(struct decimal_out *out, long double value, char letter, int precision);
/* A number in text: `count` digits from `first` on, one of which may be followed by a point; the first is no 0, and counts 10^place. */
struct decimal_text {
    const char *first;
    int count, place;
};
/* Below 0, 0 or above it, as the text is less than mantissa * 2^exponent, the same, or more. The mantissa has at most 116 bits, and is not 0. */
int __decimal_compare(const struct decimal_text *text, unsigned __int128 mantissa, int exponent);
/* Whether it is a number, and has an end. */
int __decimal_finite(long double value);

#endif

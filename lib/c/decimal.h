/* The digits of a long double; no part of the interface. */
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
/* Whether it is a number, and has an end. */
int __decimal_finite(long double value);

#endif

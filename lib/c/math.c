/*
 * floor, ceil and trunc, of which the C library's own are wrong: the first two lose a carry from one half of the number to the other, so
 * that floor(-4194303.5) is -4194302, and so on for every second number of that size; trunc gives numbers beyond 2^64 a part of their digits.
 */
#include <math.h>

/* From here on a double is a whole number. */
#define WHOLE 0x1p52

double floor(double value) {
    if (!(fabs(value) < WHOLE))
        return value;
    double cut = (double)(long)value;
    return copysign(cut > value ? cut - 1 : cut, value);
}

double trunc(double value) { return fabs(value) < WHOLE ? copysign((double)(long)value, value) : value; }

double ceil(double value) { return -floor(-value); }

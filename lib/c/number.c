/*
 * Numbers out of text, correctly rounded: strtod and its kin.
 *
 * The C library's own stop at 17 digits (9 for a float), mistake hexadecimal ones without an exponent, and refuse "infinity" that is cut
 * short. What has no more digits than that goes to them; their answer for others is where the search begins. A number of the format, halfway
 * to its neighbour, is compared with the text digit by digit (decimal.c). Numbers of a format, without their sign, are in the order of their
 * bits, so the search is one for the first that the text does not lie above.
 */
#include "internal.h"

#include "decimal.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

float __real_strtof(const char *text, char **end);
double __real_strtod(const char *text, char **end);
long double __real_strtold(const char *text, char **end);

typedef unsigned __int128 word;

/* Bits of the mantissa, the one that is not written among them; of the exponent; digits that the C library gets right. */
struct format {
    int mantissa, exponent, trusted;
};
static const struct format binary32 = {24, 8, 9}, binary64 = {53, 11, 17}, binary128 = {113, 15, 0};

static int bias(const struct format *f) { return (1 << (f->exponent - 1)) - 1; }
static word endless(const struct format *f) { return (((word)1 << f->exponent) - 1) << (f->mantissa - 1); }
/* Of the last place of the smallest numbers. */
static int least(const struct format *f) { return 2 - bias(f) - f->mantissa; }

/* What the text holds: nothing at all, or a number, and what kind of one. */
enum { NOTHING, DECIMAL, HEXADECIMAL, INFINITE, NO_NUMBER };
struct text {
    int kind, negative;
    const char *start, *end;       /* behind the sign and 0x; behind all of it */
    struct decimal_text digits;    /* of a decimal one */
    word mantissa;                 /* of a hexadecimal one: its first digits; the last bit is set if anything follows */
    int exponent;                  /* of that, in bits */
};

/* What stands behind the e or p, if it is an exponent; beyond some bound all are the same. */
static const char *exponent(const char *at, char letter, int *value) {
    *value = 0;
    if (tolower((unsigned char)*at) != letter)
        return at;
    const char *digits = at + (at[1] == '+' || at[1] == '-' ? 2 : 1);
    if (!isdigit((unsigned char)*digits))
        return at;
    int size = 0;
    for (; isdigit((unsigned char)*digits); digits++)
        size = size < 1000000 ? size * 10 + (*digits - '0') : size;
    *value = at[1] == '-' ? -size : size;
    return digits;
}

static void decimal(struct text *t) {
    struct decimal_text *d = &t->digits;
    const char *at = t->start;
    int point = 0, any = 0, place = 0, power;
    for (; isdigit((unsigned char)*at) || (*at == '.' && !point); at++) {
        any |= *at != '.';
        point |= *at == '.';
        if (*at == '.')
            continue;
        if (d->count > 0 || *at != '0') {
            d->first = d->count == 0 ? at : d->first;
            d->count++;
            place += !point;
        } else {
            place -= point;
        }
    }
    if (!any)
        return;
    t->kind = DECIMAL;
    t->end = exponent(at, 'e', &power);
    d->place = place + power - 1;
}

static int hexadecimal(struct text *t) {
    const char *at = t->start + 2;
    int point = 0, any = 0, power;
    for (; isxdigit((unsigned char)*at) || (*at == '.' && !point); at++) {
        if (*at == '.') {
            point = 1;
            continue;
        }
        unsigned digit = (unsigned)(isdigit((unsigned char)*at) ? *at - '0' : tolower((unsigned char)*at) - 'a' + 10);
        any = 1;
        if (t->mantissa >> 120 == 0)
            t->mantissa = t->mantissa << 4 | digit, t->exponent -= 4 * point;
        else
            t->mantissa |= digit != 0, t->exponent += 4 * !point;
    }
    if (!any)
        return 0;
    t->kind = HEXADECIMAL;
    t->end = exponent(at, 'p', &power);
    t->exponent += power;
    return 1;
}

static void special(struct text *t) {
    if (strncasecmp(t->start, "inf", 3) == 0) {
        t->kind = INFINITE;
        t->end = t->start + (strncasecmp(t->start, "infinity", 8) == 0 ? 8 : 3);
    } else if (strncasecmp(t->start, "nan", 3) == 0) {
        t->kind = NO_NUMBER;
        const char *at = t->end = t->start + 3;
        if (*at++ == '(') {
            while (isalnum((unsigned char)*at) || *at == '_')
                at++;
            t->end = *at == ')' ? at + 1 : t->end;
        }
    }
}

static struct text read_text(const char *at) {
    while (isspace((unsigned char)*at))
        at++;
    struct text t = {.negative = *at == '-'};
    t.start = at + (*at == '-' || *at == '+');
    if (t.start[0] == '0' && tolower((unsigned char)t.start[1]) == 'x' && hexadecimal(&t))
        return t;
    decimal(&t);
    if (t.kind == NOTHING)
        special(&t);
    return t;
}

/* Does the text lie nearer to a number above the one with these bits? */
static int is_above(const struct text *t, const struct format *f, word bits) {
    if (bits >= endless(f))
        return 0;
    int biased = (int)(bits >> (f->mantissa - 1));
    word one = (word)1 << (f->mantissa - 1), mantissa = (bits & (one - 1)) | (biased > 0 ? one : 0);
    int order = __decimal_compare(&t->digits, 2 * mantissa + 1, least(f) - 1 + (biased > 0 ? biased - 1 : 0));
    return order > 0 || (order == 0 && bits % 2 != 0);
}

/* The first number that it does not lie above, in steps that double from a guess, and halve. */
static word nearest(const struct text *t, const struct format *f, word guess) {
    word low, high, step = 1;
    if (is_above(t, f, guess)) {
        for (low = guess; high = low + step < endless(f) ? low + step : endless(f), is_above(t, f, high); step *= 2)
            low = high;
    } else {
        for (high = guess; high >= step && !is_above(t, f, high - step); step *= 2)
            high -= step;
        if (high < step && !is_above(t, f, 0))
            return 0;
        low = high >= step ? high - step : 0;
    }
    while (high - low > 1) {
        word middle = low + (high - low) / 2;
        *(is_above(t, f, middle) ? &low : &high) = middle;
    }
    return high;
}

/* Rounded to the places that the format has there. */
static word from_bits(const struct text *t, const struct format *f) {
    word mantissa = t->mantissa;
    int bits = 0, at = t->exponent;
    for (word rest = mantissa; rest != 0; rest >>= 1)
        bits++;
    int drop = bits - f->mantissa > least(f) - at ? bits - f->mantissa : least(f) - at;
    if (bits == 0 || drop > bits + 1)
        return 0;
    at += drop - least(f);
    if (at >= 1 << f->exponent)
        return endless(f);
    if (drop <= 0) {
        mantissa <<= -drop;
    } else {
        word half = (word)1 << (drop - 1), rest = mantissa & (2 * half - 1);
        mantissa >>= drop;
        mantissa += rest > half || (rest == half && mantissa % 2 != 0);
    }
    /* The one that is not written, or a place more by rounding, counts as the next exponent. */
    word result = ((word)at << (f->mantissa - 1)) + mantissa;
    return result < endless(f) ? result : endless(f);
}

/* The bits of what the text says; `guess` those of the C library's answer. */
static word convert(const char *text, char **end, const struct format *f, word guess) {
    struct text t = read_text(text);
    word top = (word)1 << (f->mantissa - 1 + f->exponent), sign = t.negative ? top : 0, result = 0;
    if (end != NULL)
        *end = (char *)(t.kind == NOTHING ? text : t.end);
    if (t.kind == NOTHING)
        return 0;
    if (t.kind == DECIMAL && t.digits.count > 0)
        result = t.digits.count <= f->trusted ? guess & (top - 1) : nearest(&t, f, guess & (top - 1));
    else if (t.kind == HEXADECIMAL)
        result = from_bits(&t, f);
    else if (t.kind >= INFINITE)
        return sign | endless(f) | (t.kind == NO_NUMBER ? (word)1 << (f->mantissa - 2) : 0);
    int something = t.digits.count > 0 || t.mantissa != 0;
    if (result == endless(f) || (something && result >> (f->mantissa - 1) == 0))
        errno = ERANGE;
    return sign | result;
}

/* `type` is the C type, `integer` one with as many bits. */
#define CONVERT(type, integer, format, real)                                                                     \
    int error = errno;                                                                                           \
    union {                                                                                                      \
        type value;                                                                                              \
        integer bits;                                                                                            \
    } it = {.value = real(text, NULL)};                                                                          \
    errno = error;                                                                                               \
    it.bits = (integer)convert(text, end, &format, it.bits);                                                     \
    return it.value

float __wrap_strtof(const char *text, char **end) { CONVERT(float, unsigned, binary32, __real_strtof); }

double __wrap_strtod(const char *text, char **end) { CONVERT(double, unsigned long, binary64, __real_strtod); }

long double __wrap_strtold(const char *text, char **end) { CONVERT(long double, word, binary128, __real_strtold); }

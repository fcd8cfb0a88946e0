/*
 * The digits of a long double, exactly: the number, mantissa times a power of two, as limbs of nine decimal digits. Every such number ends
 * in decimal, after 16,494 places at most; it is rounded once, to even where it lies in the middle. There are as many limbs on the stack as
 * the number needs: some thirty, or 2,400 for the smallest.
 */
#include "decimal.h"

#include <stdint.h>
#include <string.h>

#define LIMB 1000000000u
#define MANTISSA 112 /* binary places of the mantissa */
#define BIAS 16383
#define INFINITE 0x7fff /* exponent of what is no number, or without end */

/* Limbs, most significant first; `point` of them, perhaps fewer than none, stand before the decimal point. */
struct decimal {
    int first, count, point;
    uint32_t *limb;
};

static const uint32_t power[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

static void prepend(struct decimal *d, uint32_t limb) {
    d->limb[--d->first] = limb;
    d->count++, d->point++;
}

/* By 2^shift, at most 29, and more to it. */
static void multiply(struct decimal *d, int shift, uint64_t carry) {
    for (int i = d->first + d->count - 1; i >= d->first; i--) {
        carry += (uint64_t)d->limb[i] << shift;
        d->limb[i] = (uint32_t)(carry % LIMB);
        carry /= LIMB;
    }
    if (carry != 0)
        prepend(d, (uint32_t)carry);
}

/* By 2^shift, at most 9, which divides what a limb counts: the rest is a limb more. */
static void divide(struct decimal *d, int shift) {
    uint32_t rest = 0;
    for (int i = d->first; i < d->first + d->count; i++) {
        uint32_t limb = d->limb[i];
        d->limb[i] = (limb >> shift) + rest;
        rest = (limb & ((1u << shift) - 1)) * (LIMB >> shift);
    }
    if (rest != 0)
        d->limb[d->first + d->count++] = rest;
    while (d->count > 0 && d->limb[d->first] == 0)
        d->first++, d->count--, d->point--;
}

/* The number as mantissa * 2^exponent, the mantissa with 113 bits unless the number is 0: by its bits, for arithmetic with long double is
   software, and large. */
static unsigned __int128 parts(long double value, int *exponent) {
    unsigned __int128 bits;
    memcpy(&bits, &value, sizeof bits);
    const unsigned __int128 one = (unsigned __int128)1 << MANTISSA;
    int biased = (int)(bits >> MANTISSA) & INFINITE;
    unsigned __int128 mantissa = (bits & (one - 1)) | (biased != 0 ? one : 0);
    for (biased += biased == 0; mantissa != 0 && mantissa < one; biased--)
        mantissa <<= 1;
    *exponent = biased - BIAS - MANTISSA;
    return mantissa;
}

/* Limbs before the mantissa's, and behind: 29 bits more are at most one more, 9 bits less are one. */
static int room_before(int exponent) { return (exponent > 0 ? exponent / 29 : 0) + 8; }
static int room_behind(int exponent) { return (exponent < 0 ? -exponent / 9 : 0) + 2; }

/* Into `room_before` and `room_behind` limbs. */
static void convert(struct decimal *d, uint32_t *limbs, unsigned __int128 mantissa, int exponent) {
    *d = (struct decimal){.first = room_before(exponent), .limb = limbs};
    prepend(d, 0);
    for (int shift = 4 * 29; (shift -= 29) >= 0;)
        multiply(d, 29, (uint64_t)(mantissa >> shift) & ((1u << 29) - 1));
    for (int left = exponent; left > 0; left -= 29)
        multiply(d, left < 29 ? left : 29, 0);
    for (int left = -exponent; left > 0; left -= 9)
        divide(d, left < 9 ? left : 9);
}

/* Which limb has the digit of 10^place; the digit of that limb's is 10^within. */
static int limb_of(const struct decimal *d, int place, int *within) {
    int down = place >= 0 ? place / 9 : -((8 - place) / 9);
    *within = place - down * 9;
    return d->point - 1 - down;
}

static int digit(const struct decimal *d, int place) {
    int within, n = limb_of(d, place, &within);
    return n < 0 || n >= d->count ? 0 : (int)(d->limb[d->first + n] / power[within] % 10);
}

/* Of the most significant digit. */
static int magnitude(const struct decimal *d) {
    for (int n = 0; n < d->count; n++)
        for (int within = 8; within >= 0; within--)
            if (d->limb[d->first + n] >= power[within])
                return (d->point - 1 - n) * 9 + within;
    return 0;
}

/* To a multiple of 10^place, which is not far above the number. */
static void round_to(struct decimal *d, int place) {
    int within, below, half = digit(d, place - 1), n = limb_of(d, place - 1, &below);
    int more = 0; /* is there anything behind the first digit that goes? */
    for (int i = n < 0 ? 0 : n; i < d->count && !more; i++)
        more = (i == n ? d->limb[d->first + i] % power[below] : d->limb[d->first + i]) != 0;
    int up = half > 5 || (half == 5 && (more || digit(d, place) % 2 != 0));
    while ((n = limb_of(d, place, &within)) < 0)
        prepend(d, 0);
    if (n >= d->count)
        return;
    uint32_t *limb = &d->limb[d->first + n];
    *limb -= *limb % power[within];
    d->count = n + 1;
    if (!up)
        return;
    for (*limb += power[within]; *limb >= LIMB; ++*limb) {
        *limb-- -= LIMB;
        if (limb < &d->limb[d->first])
            prepend(d, 0);
    }
}

static void put(struct decimal_out *out, char c) {
    if (out->file != NULL)
        fputc(c, out->file);
    out->count++;
}

static void put_text(struct decimal_out *out, const char *text) {
    for (; *text != 0; text++)
        put(out, (char)(out->upper && *text >= 'a' ? *text - 'a' + 'A' : *text));
}

static void put_exponent(struct decimal_out *out, char letter, int exponent, int least) {
    char digits[8], *at = digits + sizeof digits;
    unsigned rest = exponent < 0 ? -(unsigned)exponent : (unsigned)exponent;
    for (*--at = 0; rest > 0 || least > 0; rest /= 10, least--)
        *--at = (char)('0' + rest % 10);
    put_text(out, (char[]){letter, 0});
    put(out, exponent < 0 ? '-' : '+');
    put_text(out, at);
}

/* Digits from one place down to another, with the point behind that of `point`. */
static void put_digits(struct decimal_out *out, const struct decimal *d, int from, int to, int point) {
    for (int place = from; place >= to; place--) {
        put(out, (char)('0' + digit(d, place)));
        if (place == point && (place > to || out->alternate))
            put(out, '.');
    }
}

/* The number is rounded as %g wants it: where its last digit stands that is no zero, if those shall go. */
static int last_place(const struct decimal_out *out, const struct decimal *d, int to, int point) {
    while (!out->alternate && to < point && digit(d, to) == 0)
        to++;
    return to;
}

static void decimal(struct decimal_out *out, struct decimal *d, char letter, int precision) {
    if (letter == 'f') {
        round_to(d, -precision);
        int top = magnitude(d);
        put_digits(out, d, top > 0 ? top : 0, -precision, 0);
        return;
    }
    int general = letter == 'g', digits = !general ? precision + 1 : precision > 0 ? precision : 1;
    round_to(d, magnitude(d) - digits + 1);
    int top = magnitude(d), to = top - digits + 1;
    if (general && top >= -4 && top < digits) {
        put_digits(out, d, top > 0 ? top : 0, last_place(out, d, to, 0), 0);
        return;
    }
    put_digits(out, d, top, general ? last_place(out, d, to, top) : to, top);
    put_exponent(out, 'e', top, 2);
}

static void hexadecimal(struct decimal_out *out, long double value, int precision) {
    int exponent, places = MANTISSA / 4;
    unsigned __int128 mantissa = parts(value, &exponent);
    exponent = mantissa == 0 ? 0 : exponent + MANTISSA;
    if (precision >= 0 && precision < places) {
        int cut = (places - precision) * 4;
        unsigned __int128 one = (unsigned __int128)1 << cut, rest = mantissa & (one - 1);
        mantissa >>= cut;
        mantissa += rest > one / 2 || (rest == one / 2 && mantissa % 2 != 0);
        places = precision;
    }
    while (precision < 0 && places > 0 && mantissa % 16 == 0)
        mantissa >>= 4, places--;
    for (int n = places; n >= 0; n--) {
        put_text(out, (char[]){"0123456789abcdef"[(unsigned)(mantissa >> n * 4) & 15], 0});
        if (n == places && (places > 0 || precision > 0 || out->alternate))
            put(out, '.');
    }
    for (; places < precision; places++)
        put(out, '0');
    put_exponent(out, 'p', exponent, exponent == 0);
}

int __decimal_compare(const struct decimal_text *text, unsigned __int128 mantissa, int exponent) {
    struct decimal d;
    uint32_t limbs[room_before(exponent) + room_behind(exponent)];
    convert(&d, limbs, mantissa, exponent);
    int place = magnitude(&d), order = text->place - place;
    const char *at = text->first;
    for (int left = text->count; order == 0 && left > 0; at++)
        if (*at != '.')
            order = (*at - '0') - digit(&d, place--), left--;
    for (int last = (d.point - d.count) * 9; order == 0 && place >= last; place--)
        order = -digit(&d, place);
    return order;
}

int __decimal_finite(long double value) {
    int exponent;
    parts(value, &exponent);
    return exponent < INFINITE - BIAS - MANTISSA;
}

void __decimal(struct decimal_out *out, long double value, char letter, int precision) {
    out->count = 0;
    int exponent;
    unsigned __int128 mantissa = parts(value, &exponent);
    if (exponent == INFINITE - BIAS - MANTISSA) {
        put_text(out, mantissa << (128 - MANTISSA) != 0 ? "nan" : "inf");
    } else if (letter == 'a') {
        hexadecimal(out, value, precision);
    } else {
        struct decimal exact;
        uint32_t limbs[room_before(exponent) + room_behind(exponent)];
        convert(&exact, limbs, mantissa, exponent);
        decimal(out, &exact, letter, precision < 0 ? 6 : precision);
    }
}

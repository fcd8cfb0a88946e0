/* What compilers call where the processor has no instruction: division and conversion of 128-bit integers, complex products and
 * quotients, powers, bit counts, checked products. Names and meaning are those of compiler-rt and libgcc. */
#include <complex.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>

/* Those of the header make less of 128 bits. */
#undef isnan
#undef isinf
#undef isfinite
#define isnan __builtin_isnan
#define isinf __builtin_isinf
#define isfinite __builtin_isfinite

typedef __int128 ti;
typedef unsigned __int128 tu;

/* 128 by 64 bits; the quotient must fit. */
static uint64_t divide(uint64_t high, uint64_t low, uint64_t by, uint64_t *rest) {
    uint64_t quotient;
    __asm__("divq %4" : "=a"(quotient), "=d"(*rest) : "0"(low), "1"(high), "rm"(by) : "cc");
    return quotient;
}

tu __udivmodti4(tu a, tu b, tu *rest) {
    uint64_t high = a >> 64, low = a, by = b, left;
    if (b >> 64 == 0) {
        uint64_t q1 = high / by, q0 = divide(high % by, low, by, &left);
        if (rest)
            *rest = left;
        return (tu)q1 << 64 | q0;
    }
    /* The quotient has 64 bits at most. Estimate it from the divisor's first 64 bits: too large by one at most. */
    int shift = __builtin_clzll((uint64_t)(b >> 64));
    uint64_t top = b << shift >> 64, q = divide(high >> 1, (uint64_t)(a >> 1), top, &left);
    q = shift == 0 ? q >> 63 : q >> (63 - shift);
    if (q != 0)
        q--;
    a -= q * b;
    if (a >= b)
        q++, a -= b;
    if (rest)
        *rest = a;
    return q;
}

tu __udivti3(tu a, tu b) { return __udivmodti4(a, b, 0); }
tu __umodti3(tu a, tu b) {
    tu rest;
    __udivmodti4(a, b, &rest);
    return rest;
}

static tu magnitude(ti a) { return a < 0 ? -(tu)a : (tu)a; }

ti __divmodti4(ti a, ti b, ti *rest) {
    tu left, q = __udivmodti4(magnitude(a), magnitude(b), &left);
    *rest = (ti)(a < 0 ? -left : left);
    return (ti)((a < 0) != (b < 0) ? -q : q);
}
ti __divti3(ti a, ti b) {
    ti rest;
    return __divmodti4(a, b, &rest);
}
ti __modti3(ti a, ti b) {
    ti rest;
    __divmodti4(a, b, &rest);
    return rest;
}

/* Products that say whether they fit. */
ti __muloti4(ti a, ti b, int *overflow) {
    tu x = magnitude(a), y = magnitude(b), product = x * y, limit = (tu)1 << 127;
    int negative = (a < 0) != (b < 0);
    *overflow = x != 0 && (__udivti3(product, x) != y || product > limit - !negative);
    return (ti)(negative ? -product : product);
}
int64_t __mulodi4(int64_t a, int64_t b, int *overflow) {
    ti product = (ti)a * b;
    *overflow = product != (int64_t)product;
    return (int64_t)product;
}
int32_t __mulosi4(int32_t a, int32_t b, int *overflow) {
    int64_t product = (int64_t)a * b;
    *overflow = product != (int32_t)product;
    return (int32_t)product;
}

/* A 128-bit integer to a binary fraction with `bits` significant ones, rounded to even: what is left fits in 64 bits, times 2^e. */
static uint64_t rounded(tu a, int bits, int *e) {
    int width = a >> 64 ? 128 - __builtin_clzll((uint64_t)(a >> 64)) : a ? 64 - __builtin_clzll((uint64_t)a) : 0;
    *e = width > bits ? width - bits : 0;
    if (*e == 0)
        return (uint64_t)a;
    uint64_t kept = (uint64_t)(a >> *e);
    tu lost = a & (((tu)1 << *e) - 1), half = (tu)1 << (*e - 1);
    return kept + (lost > half || (lost == half && kept & 1));
}

#define TO_FLOAT(type, digits, scale, name, signed_name)               \
    type name(tu a) {                                                  \
        int e;                                                         \
        uint64_t kept = rounded(a, digits, &e);                        \
        if (kept == 0 && e != 0) /* 64 bits, and a carry out of them */ \
            return scale(1, 64 + e);                                   \
        return scale((type)kept, e);                                   \
    }                                                                  \
    type signed_name(ti a) { return a < 0 ? -name(-(tu)a) : name((tu)a); }
TO_FLOAT(float, 24, scalbnf, __floatuntisf, __floattisf)
TO_FLOAT(double, 53, scalbn, __floatuntidf, __floattidf)
TO_FLOAT(long double, 64, scalbnl, __floatuntixf, __floattixf)

#define FROM_FLOAT(type, scale, name, signed_name)                          \
    tu name(type x) {                                                       \
        if (!(x >= 1))                                                      \
            return 0;                                                       \
        if (x >= scale(1, 128))                                             \
            return ~(tu)0;                                                  \
        uint64_t high = (uint64_t)scale(x, -64);                            \
        return (tu)high << 64 | (uint64_t)(x - scale((type)high, 64));      \
    }                                                                       \
    ti signed_name(type x) {                                                \
        tu limit = (tu)1 << 127, a = name(x < 0 ? -x : x);                  \
        if (x < 0)                                                          \
            return a >= limit ? (ti)limit : -(ti)a;                         \
        return (ti)(a >= limit ? limit - 1 : a);                            \
    }
FROM_FLOAT(float, scalbnf, __fixunssfti, __fixsfti)
FROM_FLOAT(double, scalbn, __fixunsdfti, __fixdfti)
FROM_FLOAT(long double, scalbnl, __fixunsxfti, __fixxfti)

/* Quotients, as libgcc has them. Of floats, in double: nothing overflows there. Otherwise by the ratio of the divisor's parts (Smith), scaled at the
   ends of the range, and in another order where the ratio is subnormal (Baudin and Smith). */
static float factorf(float a, float b, float most) { return 1; }
static void quotientf(float a, float b, float c, float d, float *re, float *im) {
    double norm = (double)c * c + (double)d * d;
    *re = (float)(((double)a * c + (double)b * d) / norm), *im = (float)(((double)b * c - (double)a * d) / norm);
}

#define QUOTIENT(type, suffix, MAX, MIN, EPSILON)                                                               \
    /* By the sizes of the dividend's parts, and of the divisor's larger one. */                                \
    static type factor##suffix(type a, type b, type most) {                                                      \
        int small = (a < MIN && b < MAX / 2 * EPSILON) || (b < MIN && a < MAX / 2 * EPSILON);                   \
        if (most >= MAX / 2)                                                                                    \
            return (type)0.5;                                                                                   \
        return most < EPSILON || (small && most < MAX / 2 * EPSILON) ? 1 / EPSILON : 1;                         \
    }                                                                                                           \
    static void quotient##suffix(type a, type b, type c, type d, type *re, type *im) {                          \
        int exchanged = fabs##suffix(c) < fabs##suffix(d);                                                      \
        if (exchanged) {                                                                                        \
            type x = a, y = c;                                                                                  \
            a = b, b = x, c = d, d = y;                                                                         \
        }                                                                                                       \
        type ratio = d / c, norm = d * ratio + c;                                                               \
        int normal = fabs##suffix(ratio) > MIN;                                                                 \
        type product = normal ? a * ratio : d * (a / c);                                                        \
        *re = (a + (normal ? b * ratio : d * (b / c))) / norm;                                                  \
        *im = (exchanged ? product - b : b - product) / norm;                                                   \
    }
QUOTIENT(double, , DBL_MAX, DBL_MIN, DBL_EPSILON)
QUOTIENT(long double, l, LDBL_MAX, LDBL_MIN, LDBL_EPSILON)

/* The same type, but each compiler has complex numbers of one name only. */
#ifdef __clang__
#define QUAD __float128
#else
#define QUAD _Float128
#endif
#define fabsq __builtin_fabsf128
#define copysignq __builtin_copysignf128
static QUAD fmaxq(QUAD a, QUAD b) { return a > b || b != b ? a : b; }
QUOTIENT(QUAD, q, 0x1.ffffffffffffffffffffffffffffp16383q, 0x1p-16382q, 0x1p-112q)

/* Annex G of the C standard: infinities survive. */
#define COMPLEX(type, suffix, multiply, divide)                                                                 \
    static type sign_of_##multiply(type x) { return copysign##suffix(isinf(x) ? 1 : 0, x); }                    \
    static type zero_of_##multiply(type x) { return isnan(x) ? copysign##suffix(0, x) : x; }                    \
    _Complex type multiply(type a, type b, type c, type d) {                                                    \
        type ac = a * c, bd = b * d, ad = a * d, bc = b * c, re = ac - bd, im = ad + bc;                        \
        if (isnan(re) && isnan(im)) {                                                                           \
            int again = 0;                                                                                      \
            if (isinf(a) || isinf(b)) {                                                                         \
                a = sign_of_##multiply(a), b = sign_of_##multiply(b);                                           \
                c = zero_of_##multiply(c), d = zero_of_##multiply(d), again = 1;                                \
            }                                                                                                   \
            if (isinf(c) || isinf(d)) {                                                                         \
                c = sign_of_##multiply(c), d = sign_of_##multiply(d);                                           \
                a = zero_of_##multiply(a), b = zero_of_##multiply(b), again = 1;                                \
            }                                                                                                   \
            if (!again && (isinf(ac) || isinf(bd) || isinf(ad) || isinf(bc))) {                                 \
                a = zero_of_##multiply(a), b = zero_of_##multiply(b);                                           \
                c = zero_of_##multiply(c), d = zero_of_##multiply(d), again = 1;                                \
            }                                                                                                   \
            if (again)                                                                                          \
                re = INFINITY * (a * c - b * d), im = INFINITY * (a * d + b * c);                               \
        }                                                                                                       \
        _Complex type z;                                                                                        \
        __real__ z = re, __imag__ z = im;                                                                       \
        return z;                                                                                               \
    }                                                                                                           \
    _Complex type divide(type a, type b, type c, type d) {                                                      \
        type re, im, most = fmax##suffix(fabs##suffix(c), fabs##suffix(d));                                     \
        type by = factor##suffix(fabs##suffix(a), fabs##suffix(b), most);                                        \
        a *= by, b *= by, c *= by, d *= by;                                                                     \
        quotient##suffix(a, b, c, d, &re, &im);                                                                 \
        if (isnan(re) && isnan(im)) {                                                                           \
            if (c == 0 && d == 0 && (!isnan(a) || !isnan(b))) {                                                 \
                re = copysign##suffix(INFINITY, c) * a, im = copysign##suffix(INFINITY, c) * b;                 \
            } else if ((isinf(a) || isinf(b)) && isfinite(c) && isfinite(d)) {                                  \
                a = sign_of_##multiply(a), b = sign_of_##multiply(b);                                           \
                re = INFINITY * (a * c + b * d), im = INFINITY * (b * c - a * d);                               \
            } else if ((isinf(c) || isinf(d)) && isfinite(a) && isfinite(b)) {                                  \
                c = sign_of_##multiply(c), d = sign_of_##multiply(d);                                           \
                re = 0 * (a * c + b * d), im = 0 * (b * c - a * d);                                             \
            }                                                                                                   \
        }                                                                                                       \
        _Complex type z;                                                                                        \
        __real__ z = re, __imag__ z = im;                                                                       \
        return z;                                                                                               \
    }
COMPLEX(float, f, __mulsc3, __divsc3)
COMPLEX(double, , __muldc3, __divdc3)
COMPLEX(long double, l, __mulxc3, __divxc3)
COMPLEX(QUAD, q, __multc3, __divtc3)

#define POWER(type, name)                                       \
    type name(type x, int n) {                                  \
        unsigned left = n < 0 ? -(unsigned)n : (unsigned)n;     \
        type power = 1;                                         \
        for (; left; left >>= 1, x *= x)                        \
            if (left & 1)                                       \
                power *= x;                                     \
        return n < 0 ? 1 / power : power;                       \
    }
POWER(float, __powisf2)
POWER(double, __powidf2)
POWER(long double, __powixf2)

int __popcountdi2(uint64_t x) {
    x -= x >> 1 & 0x5555555555555555;
    x = (x & 0x3333333333333333) + (x >> 2 & 0x3333333333333333);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0f;
    return (int)(x * 0x0101010101010101 >> 56);
}
int __popcountsi2(uint32_t x) { return __popcountdi2(x); }
int __popcountti2(tu x) { return __popcountdi2((uint64_t)x) + __popcountdi2((uint64_t)(x >> 64)); }
int __paritydi2(uint64_t x) { return __popcountdi2(x) & 1; }
int __paritysi2(uint32_t x) { return __popcountdi2(x) & 1; }
int __parityti2(tu x) { return __popcountti2(x) & 1; }

/* Leading bits that are the sign's, besides it; the lowest bit that is set; zeroes above and below, for whoever calls them by name. */
int __clrsbsi2(int32_t x) { return x == 0 || x == -1 ? 31 : __builtin_clz((uint32_t)(x < 0 ? ~x : x)) - 1; }
int __clrsbdi2(int64_t x) { return x == 0 || x == -1 ? 63 : __builtin_clzll((uint64_t)(x < 0 ? ~x : x)) - 1; }
int __clrsbti2(ti x) {
    tu a = x < 0 ? ~(tu)x : (tu)x;
    return a == 0 ? 127 : a >> 64 ? __builtin_clzll((uint64_t)(a >> 64)) - 1 : 63 + __builtin_clzll((uint64_t)a);
}
int __ffsdi2(int64_t x) { return x ? __builtin_ctzll((uint64_t)x) + 1 : 0; }
int __ffsti2(ti x) { return (uint64_t)x ? __ffsdi2((int64_t)x) : x ? 64 + __ffsdi2((int64_t)((tu)x >> 64)) : 0; }

/* Sums, differences, products and negations that must fit (-ftrapv). */
#define TRAPPING(type, mode)                                                                                           \
    type __addv##mode##3(type a, type b) { type r; if (__builtin_add_overflow(a, b, &r)) __builtin_trap(); return r; } \
    type __subv##mode##3(type a, type b) { type r; if (__builtin_sub_overflow(a, b, &r)) __builtin_trap(); return r; } \
    type __mulv##mode##3(type a, type b) { type r; if (__builtin_mul_overflow(a, b, &r)) __builtin_trap(); return r; } \
    type __negv##mode##2(type a) { type r; if (__builtin_sub_overflow((type)0, a, &r)) __builtin_trap(); return r; } \
    type __absv##mode##2(type a) { return a < 0 ? __negv##mode##2(a) : a; }
TRAPPING(int32_t, si)
TRAPPING(int64_t, di)
TRAPPING(ti, ti)

/* Formats of floating point that the processor has no instructions for: 128 bits (`__float128`, `_Float128`), and 16 (`_Float16`), which are only
 * converted. Names and meaning are libgcc's: results to the bit, rounding as MXCSR says, and exceptions that `fetestexcept` finds.
 *
 * A number is taken apart into sign, exponent and a significand whose leading one is bit 127: fifteen bits more than fit, of which the lowest stands for all
 * that is lost below it. Each operation makes such a significand, and `pack` rounds it once. */
#include <stdint.h>

typedef __float128 tf;
typedef unsigned __int128 tu;
typedef __int128 ti;

enum { BIAS = 16383, TOP = 32767, EXTRA = 15 };
enum { ZERO, FINITE, INFINITE, NAN };
enum { INVALID = 1, DIVISION = 4, OVERFLOW = 8, UNDERFLOW = 16, INEXACT = 32 };
enum { NEAREST, DOWN, UP, TO_ZERO };

#define LEADING ((tu)1 << 127)
#define QUIET ((tu)1 << 126)

/* Of a finite number: m / 2^127 * 2^e. Of one that is none, `m` has its fraction. */
typedef struct {
    int kind, sign, e;
    tu m;
} number;

union bits { tf x; tu u; };
union words80 { long double x; struct { uint64_t m; uint16_t e; } w; };

static int width(tu m) { return m >> 64 ? 128 - __builtin_clzll((uint64_t)(m >> 64)) : m ? 64 - __builtin_clzll((uint64_t)m) : 0; }

static unsigned controls(void) {
    unsigned mxcsr;
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    return mxcsr;
}

/* As the processor would have raised them: by an operation that does. */
static void except(int exceptions) {
    volatile float zero = 0, one = 1, most = 0x1.fffffep127f, least = 0x1p-126f, made;
    if (exceptions & INVALID)
        made = zero / zero;
    if (exceptions & DIVISION)
        made = one / zero;
    if (exceptions & OVERFLOW)
        made = most * most;
    if (exceptions & UNDERFLOW)
        made = least * least;
    if (exceptions & INEXACT)
        made = one + least;
    (void)made;
}

/* A significand that is shorter or longer than it should be, with what has been lost in its lowest bit. */
static tu right(tu m, int by) { return by <= 0 ? m : by >= 128 ? m != 0 : m >> by | ((m & (((tu)1 << by) - 1)) != 0); }
static number finite(int sign, int e, tu m) {
    int by = 128 - width(m);
    return m ? (number){FINITE, sign, e - by, m << by} : (number){ZERO, sign, 0, 0};
}

static number take(int sign, int exponent, tu fraction, int bits, int bias, int top) {
    tu m = fraction << (127 - bits);
    if (exponent == top)
        return (number){m ? NAN : INFINITE, sign, 0, m};
    return exponent ? (number){FINITE, sign, exponent - bias, LEADING | m} : finite(sign, 1 - bias, m);
}
static number unpack(tf x) {
    union bits b = {x};
    return take((int)(b.u >> 127), (int)(b.u >> 112) & TOP, b.u & (((tu)1 << 112) - 1), 112, BIAS, TOP);
}

/* Whether a significand becomes greater when `extra` bits of it are left out. */
static int up(tu m, int extra, int sign, unsigned rounding) {
    tu lost = m & (((tu)1 << extra) - 1), half = (tu)1 << (extra - 1);
    switch (rounding >> 13 & 3) {
    case NEAREST: return lost > half || (lost == half && m >> extra & 1);
    case DOWN: return sign && lost;
    case UP: return !sign && lost;
    default: return 0;
    }
}

/* The bits of a format with so many of fraction and this bias, sign included at `sign_at`. */
static tu round_to(number n, int bits, int bias, int sign_at, int *exceptions) {
    int top = 2 * bias + 1, extra = 127 - bits;
    tu sign = (tu)n.sign << sign_at, infinite = (tu)top << bits;
    if (n.kind == NAN)
        return sign | infinite | (n.m | QUIET) >> extra;
    if (n.kind == INFINITE)
        return sign | infinite;
    if (n.kind == ZERO)
        return sign;
    unsigned rounding = controls();
    int exponent = n.e + bias, small = exponent <= 0;
    /* Tiny is what would be so with as many bits as others have. */
    int tiny = small && !(exponent == 0 && up(n.m, extra, n.sign, rounding) && (n.m >> extra) + 1 == (tu)1 << (bits + 1));
    if (small)
        n.m = right(n.m, 1 - exponent);
    tu lost = n.m & (((tu)1 << extra) - 1);
    tu kept = (n.m >> extra) + up(n.m, extra, n.sign, rounding);
    /* The leading one adds itself to the exponent, and so does a carry. */
    tu whole = small ? kept : ((tu)(exponent - 1) << bits) + kept;
    if (exponent >= top || whole >= infinite) {
        *exceptions |= OVERFLOW | INEXACT;
        int mode = (int)(rounding >> 13 & 3), to_infinity = mode == NEAREST || mode == (n.sign ? DOWN : UP);
        return sign | (to_infinity ? infinite : infinite - 1);
    }
    if (lost)
        *exceptions |= INEXACT | (tiny ? UNDERFLOW : 0);
    return sign | whole;
}

static tf pack(number n, int exceptions) {
    union bits b;
    b.u = round_to(n, 112, BIAS, 127, &exceptions);
    if (exceptions)
        except(exceptions);
    return b.x;
}

static int signals(number n) { return n.kind == NAN && !(n.m & QUIET); }
static const number NONE = {NAN, 1, 0, QUIET};

/* Of two operands of which one is no number: that with the greater fraction. */
static number no_number(number a, number b, int first) {
    if (a.kind != NAN)
        return b;
    if (b.kind != NAN)
        return a;
    return a.m > b.m || (a.m == b.m && first) ? a : b;
}

static tf add(number a, number b, int first) {
    int exceptions = signals(a) || signals(b) ? INVALID : 0;
    if (a.kind == NAN || b.kind == NAN)
        return pack(no_number(a, b, first), exceptions);
    if (a.kind == INFINITE || b.kind == INFINITE) {
        if (a.kind == b.kind && a.sign != b.sign)
            return pack(NONE, INVALID);
        return pack(a.kind == INFINITE ? a : b, 0);
    }
    int down = (controls() >> 13 & 3) == DOWN;
    if (a.kind == ZERO || b.kind == ZERO) {
        if (a.kind != b.kind)
            return pack(a.kind == ZERO ? b : a, 0);
        a.sign = a.sign == b.sign ? a.sign : down;
        return pack(a, 0);
    }
    if (a.e < b.e || (a.e == b.e && a.m < b.m)) {
        number c = a;
        a = b, b = c;
    }
    /* One bit less leaves room for a carry. */
    tu x = a.m >> 1, y = right(b.m >> 1, a.e - b.e);
    if (a.sign == b.sign)
        return pack(finite(a.sign, a.e + 1, x + y), 0);
    if (x == y)
        return pack((number){ZERO, down, 0, 0}, 0);
    return pack(finite(a.sign, a.e + 1, x - y), 0);
}

tf __addtf3(tf a, tf b) { return add(unpack(a), unpack(b), 1); }
tf __subtf3(tf a, tf b) {
    number y = unpack(b);
    y.sign ^= y.kind != NAN;
    return add(unpack(a), y, 0);
}

/* The upper half of a product, with what is below it in the lowest bit. */
static tu product(tu a, tu b) {
    uint64_t ah = a >> 64, al = (uint64_t)a, bh = b >> 64, bl = (uint64_t)b;
    tu low = (tu)al * bl, m1 = (tu)ah * bl, m2 = (tu)al * bh;
    tu middle = (low >> 64) + (uint64_t)m1 + (uint64_t)m2;
    tu high = (tu)ah * bh + (m1 >> 64) + (m2 >> 64) + (middle >> 64);
    return high | ((uint64_t)middle != 0 || (uint64_t)low != 0);
}

tf __multf3(tf x, tf y) {
    number a = unpack(x), b = unpack(y);
    int sign = a.sign ^ b.sign;
    if (a.kind == NAN || b.kind == NAN)
        return pack(no_number(a, b, 1), signals(a) || signals(b) ? INVALID : 0);
    if (a.kind == INFINITE || b.kind == INFINITE)
        return a.kind == ZERO || b.kind == ZERO ? pack(NONE, INVALID) : pack((number){INFINITE, sign, 0, 0}, 0);
    if (a.kind == ZERO || b.kind == ZERO)
        return pack((number){ZERO, sign, 0, 0}, 0);
    return pack(finite(sign, a.e + b.e + 1, product(a.m, b.m)), 0);
}

/* `rest` below `by`, whose leading bit is set: the next 64 bits of the quotient, and what is left. */
static uint64_t digits(tu *rest, tu by) {
    uint64_t high = by >> 64, low = (uint64_t)by, guess, left, top = *rest >> 64, next = (uint64_t)*rest;
    tu over;
    if (top >= high) {
        guess = ~(uint64_t)0;
        over = (tu)next + high; /* (top - guess * high) with top = high */
    } else {
        __asm__("divq %4" : "=a"(guess), "=d"(left) : "0"(next), "1"(top), "r"(high) : "cc");
        over = left;
    }
    /* The guess is too large by two at most. */
    tu wanted = (tu)guess * low;
    while (!(over >> 64) && wanted > over << 64)
        guess--, wanted -= low, over += high;
    *rest = (over << 64) - wanted;
    return guess;
}

tf __divtf3(tf x, tf y) {
    number a = unpack(x), b = unpack(y);
    int sign = a.sign ^ b.sign;
    if (a.kind == NAN || b.kind == NAN)
        return pack(no_number(a, b, 0), signals(a) || signals(b) ? INVALID : 0);
    if (a.kind == b.kind && a.kind != FINITE)
        return pack(NONE, INVALID);
    if (a.kind == INFINITE || b.kind == ZERO)
        return pack((number){INFINITE, sign, 0, 0}, a.kind == INFINITE ? 0 : DIVISION);
    if (a.kind == ZERO || b.kind == INFINITE)
        return pack((number){ZERO, sign, 0, 0}, 0);
    tu rest = a.m >> 1;
    tu high = digits(&rest, b.m), low = digits(&rest, b.m);
    return pack(finite(sign, a.e - b.e, (high << 64 | low) | (rest != 0)), 0);
}

/* -1, 0, 1, or 2 if they cannot be compared. */
static int compare(tf x, tf y, int quiet) {
    number a = unpack(x), b = unpack(y);
    if (a.kind == NAN || b.kind == NAN) {
        if (!quiet || signals(a) || signals(b))
            except(INVALID);
        return 2;
    }
    union bits p = {x}, q = {y};
    tu m = p.u & ~LEADING, n = q.u & ~LEADING;
    if ((m | n) == 0 || p.u == q.u)
        return 0;
    if (a.sign != b.sign)
        return a.sign ? -1 : 1;
    return (m < n) == !a.sign ? -1 : 1;
}
long __eqtf2(tf a, tf b) { return compare(a, b, 1) != 0; }
long __netf2(tf a, tf b) { return compare(a, b, 1) != 0; }
long __lttf2(tf a, tf b) { return compare(a, b, 0); }
long __letf2(tf a, tf b) { return compare(a, b, 0); }
long __gttf2(tf a, tf b) { int c = compare(a, b, 0); return c == 2 ? -2 : c; }
long __getf2(tf a, tf b) { int c = compare(a, b, 0); return c == 2 ? -2 : c; }
long __unordtf2(tf a, tf b) { return compare(a, b, 1) == 2; }

tf __negtf2(tf x) {
    union bits b = {x};
    b.u ^= LEADING;
    return b.x;
}

/* From and to the other formats. */
static number of_half(_Float16 x) {
    union { _Float16 x; uint16_t u; } b = {x};
    return take(b.u >> 15, b.u >> 10 & 31, b.u & 1023, 10, 15, 31);
}
static number of_float(float x) {
    union { float x; uint32_t u; } b = {x};
    return take((int)(b.u >> 31), (int)(b.u >> 23 & 255), b.u & 0x7fffff, 23, 127, 255);
}
static number of_double(double x) {
    union { double x; uint64_t u; } b = {x};
    return take((int)(b.u >> 63), (int)(b.u >> 52 & 2047), b.u & 0xfffffffffffff, 52, 1023, 2047);
}
static number of_extended(long double x) {
    union words80 b = {x};
    return take(b.w.e >> 15, b.w.e & TOP, b.w.m & ~0ull >> 1, 63, BIAS, TOP);
}

static _Float16 to_half(number n) {
    int exceptions = signals(n) ? INVALID : 0;
    union { uint16_t u; _Float16 x; } b = {(uint16_t)round_to(n, 10, 15, 15, &exceptions)};
    except(exceptions);
    return b.x;
}
static float to_float(number n) {
    int exceptions = signals(n) ? INVALID : 0;
    union { uint32_t u; float x; } b = {(uint32_t)round_to(n, 23, 127, 31, &exceptions)};
    except(exceptions);
    return b.x;
}
static double to_double(number n) {
    int exceptions = signals(n) ? INVALID : 0;
    union { uint64_t u; double x; } b = {(uint64_t)round_to(n, 52, 1023, 63, &exceptions)};
    except(exceptions);
    return b.x;
}
static long double to_extended(number n) {
    int exceptions = signals(n) ? INVALID : 0;
    tu u = round_to(n, 63, BIAS, 78, &exceptions);
    /* Its leading one is written. */
    int exponent = (int)(u >> 63 & TOP);
    union words80 b;
    b.w.m = ((uint64_t)u & ~0ull >> 1) | (uint64_t)(exponent != 0) << 63;
    b.w.e = (uint16_t)(exponent | (n.sign << 15));
    except(exceptions);
    return b.x;
}

static tf to_quad(number n) { return pack(n, signals(n) ? INVALID : 0); }
tf __extendhftf2(_Float16 x) { return to_quad(of_half(x)); }
tf __extendsftf2(float x) { return to_quad(of_float(x)); }
tf __extenddftf2(double x) { return to_quad(of_double(x)); }
tf __extendxftf2(long double x) { return to_quad(of_extended(x)); }
_Float16 __trunctfhf2(tf x) { return to_half(unpack(x)); }
float __trunctfsf2(tf x) { return to_float(unpack(x)); }
double __trunctfdf2(tf x) { return to_double(unpack(x)); }
long double __trunctfxf2(tf x) { return to_extended(unpack(x)); }
_Float16 __truncsfhf2(float x) { return to_half(of_float(x)); }
_Float16 __truncdfhf2(double x) { return to_half(of_double(x)); }
_Float16 __truncxfhf2(long double x) { return to_half(of_extended(x)); }
float __extendhfsf2(_Float16 x) { return to_float(of_half(x)); }
double __extendhfdf2(_Float16 x) { return to_double(of_half(x)); }
long double __extendhfxf2(_Float16 x) { return to_extended(of_half(x)); }

/* To an integer of so many bits; what does not fit becomes the nearest, and is invalid. */
static tu whole(number n, int bits, int is_signed) {
    tu most = is_signed ? ((tu)1 << (bits - 1)) - 1 + (tu)n.sign : bits == 128 ? ~(tu)0 : ((tu)1 << bits) - 1;
    if (n.kind == ZERO)
        return 0;
    if (n.kind == FINITE && n.e < 0) {
        except(INEXACT);
        return 0;
    }
    tu magnitude = n.kind == FINITE && n.e < 128 ? n.m >> (127 - n.e) : 0;
    if (n.kind != FINITE || n.e > 127 || magnitude > most || (!is_signed && n.sign)) {
        except(INVALID);
        return !is_signed ? n.sign ? 0 : most : n.sign ? -most : most;
    }
    if (magnitude << (127 - n.e) != n.m)
        except(INEXACT);
    return n.sign ? -magnitude : magnitude;
}
int32_t __fixtfsi(tf x) { return (int32_t)whole(unpack(x), 32, 1); }
int64_t __fixtfdi(tf x) { return (int64_t)whole(unpack(x), 64, 1); }
ti __fixtfti(tf x) { return (ti)whole(unpack(x), 128, 1); }
uint32_t __fixunstfsi(tf x) { return (uint32_t)whole(unpack(x), 32, 0); }
uint64_t __fixunstfdi(tf x) { return (uint64_t)whole(unpack(x), 64, 0); }
tu __fixunstfti(tf x) { return whole(unpack(x), 128, 0); }
ti __fixhfti(_Float16 x) { return (ti)whole(of_half(x), 128, 1); }
tu __fixunshfti(_Float16 x) { return whole(of_half(x), 128, 0); }

static number of_integer(ti a) { return finite(a < 0, 127, a < 0 ? -(tu)a : (tu)a); }
_Float16 __floattihf(ti a) { return to_half(of_integer(a)); }
_Float16 __floatuntihf(tu a) { return to_half(finite(0, 127, a)); }
tf __floatuntitf(tu a) { return pack(finite(0, 127, a), 0); }
tf __floattitf(ti a) { return pack(of_integer(a), 0); }
tf __floatsitf(int32_t a) { return __floattitf(a); }
tf __floatditf(int64_t a) { return __floattitf(a); }
tf __floatunsitf(uint32_t a) { return __floatuntitf(a); }
tf __floatunditf(uint64_t a) { return __floatuntitf(a); }

tf __powitf2(tf x, int n) {
    tf power = 1;
    for (unsigned left = n < 0 ? -(unsigned)n : (unsigned)n; left; left >>= 1, x *= x)
        if (left & 1)
            power *= x;
    return n < 0 ? 1 / power : power;
}

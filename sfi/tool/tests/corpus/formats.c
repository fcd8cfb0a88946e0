/* Floating point of 128 and of 16 bits: prints the same whichever library its operations come from, to the bit, with the exceptions that they raise. */
#include <fenv.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#pragma STDC FENV_ACCESS ON
typedef __float128 tf;
typedef unsigned __int128 tu;
typedef __int128 ti;
typedef _Complex float tc __attribute__((mode(TC)));

static uint64_t state = 88172645463325252u;
static uint64_t any(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}

/* Numbers of every kind, with short and long fractions, near others and far from them. */
static tf number(int near) {
    tu fraction = (tu)any() << 64 | any(), u;
    unsigned exponent;
    switch (any() % 8) {
    case 0: fraction = 0; break;
    case 1: fraction = ~(tu)0; break;
    case 2: fraction <<= any() % 128; break;
    case 3: fraction >>= any() % 128; break;
    }
    switch (any() % 16) {
    case 0: exponent = 0; break;
    case 1: exponent = 32767; break;
    case 2: exponent = any() % 130; break;
    case 3: exponent = 32766 - any() % 3; break;
    case 4: exponent = any() % 32768; break;
    default: exponent = 16383 + near + any() % 40;
    }
    u = (tu)(any() & 1) << 127 | (tu)exponent << 112 | (fraction >> 16);
    tf x;
    memcpy(&x, &u, 16);
    return x;
}

static void raised(void) {
    printf(" %x\n", fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INEXACT));
    feclearexcept(FE_ALL_EXCEPT);
}
static void say(const char *what, const volatile void *p, int bytes) {
    uint64_t words[2] = {0, 0};
    memcpy(words, (const void *)p, bytes);
    printf("%s %016llx%016llx", what, (unsigned long long)words[1], (unsigned long long)words[0]);
    raised();
}
/* The operands are looked at anew, and the result is there before the flags are. */
#define DO(what, type, bytes, expression)    \
    do {                                     \
        volatile type result = (expression); \
        say(what, &result, bytes);           \
    } while (0)

static void pairs(volatile tf *a, volatile tf *b) {
    DO("+", tf, 16, *a + *b);
    DO("-", tf, 16, *a - *b);
    DO("*", tf, 16, *a * *b);
    DO("/", tf, 16, *a / *b);
    printf("%d", *a == *b), raised();
    printf("%d", *a != *b), raised();
    printf("%d", *a < *b), raised();
    printf("%d", *a <= *b), raised();
    printf("%d", *a > *b), raised();
    printf("%d", *a >= *b), raised();
    printf("%d", __builtin_isunordered(*a, *b)), raised();
}
static void conversions(volatile tf *a) {
    DO("float", float, 4, (float)*a);
    DO("double", double, 8, (double)*a);
    DO("long double", long double, 10, (long double)*a);
    DO("half", _Float16, 2, (_Float16)*a);
    DO("int", int, 4, (int)*a);
    DO("long", long, 8, (long)*a);
    DO("unsigned", unsigned, 4, (unsigned)*a);
    DO("unsigned long", unsigned long, 8, (unsigned long)*a);
    DO("128", ti, 16, (ti)*a);
    DO("unsigned 128", tu, 16, (tu)*a);
}
static void integers(void) {
    volatile tu u = ((tu)any() << 64 | any()) >> any() % 128;
    volatile ti s = (ti)(u << any() % 3);
    DO("of int", tf, 16, (tf)(int)s);
    DO("of unsigned", tf, 16, (tf)(unsigned)u);
    DO("of long", tf, 16, (tf)(long)s);
    DO("of unsigned long", tf, 16, (tf)(unsigned long)u);
    DO("of 128", tf, 16, (tf)s);
    DO("of unsigned 128", tf, 16, (tf)u);
}
static void others(void) {
    uint64_t u = any() % 4 ? any() : any() >> any() % 64;
    volatile float f;
    volatile double d;
    volatile long double l;
    volatile _Float16 h;
    memcpy((void *)&f, &u, 4), memcpy((void *)&d, &u, 8), memcpy((void *)&h, &u, 2);
    /* What is a number to an x87. */
    unsigned char bytes[16] = {0};
    unsigned exponent = any() % 4 ? 16300 + any() % 160 : any() % 3 ? any() % 2 * 32767 : any() % 32768;
    u = exponent ? u | 1ull << 63 : u & ~0ull >> 1;
    memcpy(bytes, &u, 8), bytes[8] = exponent, bytes[9] = exponent >> 8 | (any() & 1) << 7;
    memcpy((void *)&l, bytes, 16);
    DO("of float", tf, 16, (tf)f);
    DO("of double", tf, 16, (tf)d);
    DO("of long double", tf, 16, (tf)l);
    DO("of half", tf, 16, (tf)h);
    DO("half to float", float, 4, (float)h);
    DO("half to double", double, 8, (double)h);
    DO("half to long double", long double, 10, (long double)h);
    DO("half of float", _Float16, 2, (_Float16)f);
    DO("half of double", _Float16, 2, (_Float16)d);
    DO("half of long double", _Float16, 2, (_Float16)l);
    DO("half of 128", _Float16, 2, (_Float16)(ti)u);
    DO("half of unsigned 128", _Float16, 2, (_Float16)(tu)u);
    DO("half to 128", ti, 16, (ti)h);
}
/* Which not-a-number comes out, and what is raised by the way, is each compiler's matter. */
static void part(tf x) {
    volatile tf seen = x == x ? x : 0;
    feclearexcept(FE_ALL_EXCEPT);
    say(x == x ? "part" : "no number", &seen, 16);
}
static void complexes(tf a, tf b) {
    volatile tc z, w;
    __real__ z = a, __imag__ z = number(3), __real__ w = b, __imag__ w = number(5);
    volatile tc product = z * w, quotient = z / w;
    part(__real__ product), part(__imag__ product), part(__real__ quotient), part(__imag__ quotient);
}

int main(void) {
    static const int modes[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
    for (int i = 0; i < 4000; i++) {
        volatile tf a = number(0), b = i % 16 ? number(i % 5 * 10) : a;
        fesetround(modes[i / 4 % 4]);
        feclearexcept(FE_ALL_EXCEPT);
        pairs(&a, &b);
        conversions(&a);
        integers();
        others();
        complexes(a, b);
    }
    DO("power", tf, 16, __builtin_powi((double)(tf)1.5, 7));
    return 0;
}

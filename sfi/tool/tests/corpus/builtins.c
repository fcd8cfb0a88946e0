/* What compilers call functions for: prints the same whichever library they come from. */
#include <complex.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>

typedef __int128 ti;
typedef unsigned __int128 tu;

static uint64_t state = 88172645463325252u;
static uint64_t any(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}
static void say(tu x) { printf("%016llx%016llx\n", (unsigned long long)(x >> 64), (unsigned long long)x); }
static tu number(int i) {
    tu a = (tu)any() << 64 | any();
    switch (i % 5) {
    case 0: return ~(tu)0 >> any() % 3;
    case 1: return (tu)1 << any() % 128;
    default: return a >> any() % 128;
    }
}

static void integers(tu a, tu b) {
    say(a / b), say(a % b);
    if (b != ~(tu)0)
        say((tu)((ti)a / (ti)b)), say((tu)((ti)a % (ti)b));
    ti product;
    long long narrow;
    printf("%d ", __builtin_mul_overflow((ti)a, (ti)b, &product));
    say((tu)product);
    printf("%d ", __builtin_mul_overflow((long long)a, (long long)b, &narrow));
    printf("%llx %d %d\n", narrow, __builtin_popcountll((uint64_t)a), __builtin_parityll((uint64_t)b));
}

static void conversions(tu a) {
    volatile double d = (double)a, e = (double)(ti)a;
    volatile float f = (float)a, g = (float)(ti)a;
    volatile long double l = (long double)a, m = (long double)(ti)a;
    printf("%a %a %a %a %La %La\n", d, e, f, g, l, m);
    if (d < 0x1p126 && isfinite(f))
        say((tu)d), say((tu)f), say((tu)l), say((tu)(ti)-d), say((tu)(ti)-f), say((tu)(ti)-l);
    volatile double power = __builtin_powi(1 + d / 0x1p128, (int)(any() % 40) - 20);
    printf("%a\n", power);
}

static void complexes(double re, double im, int by) {
    volatile double complex a = re + im * I, product = a * a, quotient = product / (ldexp(1, by) * I);
    volatile float complex f = (float)by + 2 * I, square = f * f;
    printf("%a %a %a %a %a %a\n", creal(product), cimag(product), creal(quotient), cimag(quotient), crealf(square), cimagf(square));
}

int main(void) {
    for (int i = 0; i < 3000; i++) {
        tu a = number(i), b = number(i / 5);
        integers(a, b ? b : 1);
        conversions(a);
        complexes((double)(int)a, (double)(int)b, (int)(any() % 60) - 30);
    }
    complexes(INFINITY, 1, 1), complexes(1, -INFINITY, 2), complexes(INFINITY, NAN, 3);
    return 0;
}
